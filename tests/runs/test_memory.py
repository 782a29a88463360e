"""Test memory limits: memory is predicted, and an error names the setting that needs most."""

import jax
import pytest
from script_runner import ITERATION

from jaxzero.cli import load_config
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes
from jaxzero.measure import evaluator
from jaxzero.measure.evaluator import Evaluator
from jaxzero.network.network import Network
from jaxzero.runs.memory import LEARNING, PLAYING, REPLAY, DoesNotFit, Parts, least_bytes
from jaxzero.training import iteration
from jaxzero.training.iteration import Program, compile_iteration, init_actor, input_shapes

GIB = 2**30
PRESETS = {"gpu_8gb": 8e9, "gpu_24gb": 24e9, "gpu_80gb": 80e9, "cpu": 8e9}


def tiny(*options: str):
    config = load_config("configs/tiny.yaml", "--devices=1", *ITERATION, *options)
    return config, Network(config.game.board, config.network)


def compiled(*options: str) -> Program:
    return compile_iteration(*tiny(*options), jax.local_devices()[:1])


def least(config, devices: int = 1) -> Parts:
    network = Network(config.game.board, config.network)
    shapes = input_shapes(config, network, devices)
    return least_bytes(config, shapes.learner, shapes.actor, devices)


def test_the_replay_is_counted_to_the_byte():
    option = "--replay.capacity=400000"
    config, _ = tiny(option)
    ring = jax.eval_shape(lambda: init_actor(config, 1))
    counted = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(ring))
    assert least(config)[REPLAY] == compiled(option).replay == counted
    assert REPLAY not in least(tiny("--replay.capacity=1")[0])  # a lower one would change nothing
    one, two = least(config, 1), least(config, 2)
    for settings in (PLAYING, LEARNING):
        assert two[settings] * 2 == one[settings]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *((PLAYING[0], 10**9), (PLAYING[1], 100_000), ("replay.capacity", 10**9)),
        *(("learner.batch_size", 10**9), ("network.channels", 65536)),
    ],
)
def test_the_absurd_is_refused_by_name_without_compiling(setting, value, monkeypatch):
    monkeypatch.setattr(iteration, "memory_limit_bytes", lambda _: GIB // 16)
    monkeypatch.setattr(iteration, "lower_and_compile", lambda *_: pytest.fail("compiled"))
    with pytest.raises(DoesNotFit, match=rf"^[^M]*{setting}: {value}[^M]* takes? .* MiB"):
        compiled(f"--{setting}={value}")
    if setting == PLAYING[0]:  # more positions than an index can count
        monkeypatch.setattr(iteration, "memory_limit_bytes", lambda _: 10**15)
        with pytest.raises(InputError, match=r"^replay\.capacity: .* at most 2,147,483,647"):
            compiled(f"--{setting}={value}")


@pytest.mark.parametrize(
    ("setting", "value", "named"),
    [
        ("replay.capacity", 400_000, "replay.capacity: 400000 takes"),
        ("learner.batch_size", 16384, f"{PLAYING[0]}: .*learner.batch_size: 16384 take"),
    ],
)
def test_a_plan_beyond_the_limit_names_what_takes_most(setting, value, named, monkeypatch):
    predicted = compiled(f"--{setting}={value}").predicted
    monkeypatch.setattr(iteration, "memory_limit_bytes", lambda _: predicted - 1)
    with pytest.raises(DoesNotFit, match=rf"^{named} [\d,]+ MiB of .*: lower "):
        compiled(f"--{setting}={value}")
    monkeypatch.setattr(iteration, "memory_limit_bytes", lambda _: predicted)
    assert compiled(f"--{setting}={value}").predicted == predicted
    # The estimate without compiling is never larger.
    parts = least(tiny(f"--{setting}={value}")[0])
    assert sum(parts.values()) - min(parts[PLAYING], parts[LEARNING]) <= predicted


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_fits_its_size_with_a_tenth_to_spare(name, monkeypatch):
    """The prediction is for the memory layout of the device that runs the tests."""
    monkeypatch.setattr(iteration, "memory_limit_bytes", lambda _: int(0.9 * PRESETS[name]))
    config = load_config(f"configs/{name}.yaml", "--devices=1")
    compile_iteration(config, Network(config.game.board, config.network), jax.local_devices()[:1])


def test_named_searches_that_are_too_large_are_refused(monkeypatch):
    """The simulations in the name decide; the other players need no search memory."""
    board = DotsAndBoxes(5, 5)
    monkeypatch.setattr(evaluator, "memory_limit_bytes", lambda _: GIB)
    evaluator.refuse_searches("players", ["policy", "perfect:0.5", "search:64"], 512, board)
    with pytest.raises(InputError, match=r"^players: 16384 takes 3.* for 256 games at once"):
        evaluator.refuse_searches("players", ["greedy", "search:16384"], 512, board)
    with pytest.raises(InputError, match=r"^players: 16384 takes .* for 512 games at once"):
        evaluator.refuse_searches("players", ["search:16384"], 512, board, positions=512)
    monkeypatch.setattr(evaluator, "memory_limit_bytes", lambda _: GIB // 32)
    with pytest.raises(InputError, match=r"^players: 256 takes"):
        evaluator.refuse_searches("players", ["level:beginner", "level:master"], 512, board)


def test_evaluations_that_are_too_large_are_refused_before_compiling(monkeypatch):
    config = load_config("configs/tiny.yaml", "--evaluation.suite=none")
    batch, nodes = config.evaluation.games // 2, config.evaluation.simulations + 1
    needed = batch * nodes * config.game.board.num_edges * 16
    monkeypatch.setattr(evaluator, "memory_limit_bytes", lambda _: needed - 1)
    with pytest.raises(InputError, match=r"^evaluation\.simulations: 16 takes .* for 32 games"):
        Evaluator(config).prepare()
