"""Test memory limits: XLA's figure is checked, and an error names what memory grows with."""

import jax
import pytest
from compiled import tiny_agent
from script_runner import ITERATION

from jaxzero.cli import load_config
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes
from jaxzero.measure.evaluator import Evaluator
from jaxzero.network.network import Network
from jaxzero.players import network_player
from jaxzero.players.players import make_player
from jaxzero.runs.memory import GROWS_WITH, DoesNotFit, tree_bytes
from jaxzero.training import program
from jaxzero.training.iteration import init_actor
from jaxzero.training.program import Program, compile_iteration

GIB = 2**30
PRESETS = {"gpu_8gb": 8e9, "gpu_24gb": 24e9, "gpu_80gb": 80e9, "cpu": 8e9}


def tiny(*options: str):
    config = load_config("configs/tiny.yaml", "--devices=1", *ITERATION, *options)
    return config, Network(config.game.board, config.network)


def compiled(*options: str) -> Program:
    return compile_iteration(*tiny(*options), jax.local_devices()[:1])


def test_a_program_beyond_the_limit_is_refused_with_what_memory_grows_with(monkeypatch):
    """The replay is counted to the byte."""
    option = "--replay.capacity=400000"
    fits = compiled(option)
    replay = jax.eval_shape(lambda: init_actor(tiny(option)[0], 1)).replay
    assert fits.replay == tree_bytes(replay) < fits.predicted
    monkeypatch.setattr(program, "memory_limit_bytes", lambda _: fits.predicted - 1)
    with pytest.raises(DoesNotFit) as refused:
        compiled(option)
    assert (refused.value.needed, refused.value.limit) == (fits.predicted, fits.predicted - 1)
    for name, value in zip(GROWS_WITH, (16, 400_000, 32), strict=True):
        assert f"{name}: {value}" in str(refused.value)
    monkeypatch.setattr(program, "memory_limit_bytes", lambda _: fits.predicted)
    assert compiled(option).predicted == fits.predicted


@pytest.mark.parametrize("name", ["replay.capacity", "selfplay.games_per_iteration"])
def test_more_positions_than_an_index_can_count_are_refused_without_compiling(name, monkeypatch):
    monkeypatch.setattr(program, "lower_and_compile", lambda *_: pytest.fail("compiled"))
    with pytest.raises(InputError, match=r"^replay\.capacity: .* at most 2,147,483,647"):
        compiled(f"--{name}={2**31 - 1}")  # rounded up to whole iterations


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_fits_its_size_with_a_tenth_to_spare(name, monkeypatch):
    """The prediction is for the memory layout of the device that runs the tests."""
    monkeypatch.setattr(program, "memory_limit_bytes", lambda _: int(0.9 * PRESETS[name]))
    config = load_config(f"configs/{name}.yaml", "--devices=1")
    compile_iteration(config, Network(config.game.board, config.network), jax.local_devices()[:1])


def test_searches_that_are_too_large_are_refused_before_compiling(monkeypatch):
    """512 positions at once, or 16 with more simulations than 1024: nodes of 16 bytes an edge."""
    board, agent = DotsAndBoxes(5, 5), tiny_agent(DotsAndBoxes(5, 5))
    limit = 512 * 64 * board.num_edges * 16
    monkeypatch.setattr(network_player, "memory_limit_bytes", lambda _: limit)
    for name in ("policy", "search:64", "search:2048"):
        make_player(name, board, agent)
    for name in ("search:65", "search:2049", "level:master"):
        with pytest.raises(InputError, match=rf"^players: '{name}'.*simulations: "):
            make_player(name, board, agent, "players")
    config = load_config("configs/tiny.yaml", "--evaluation.suite=none")
    monkeypatch.setattr(network_player, "memory_limit_bytes", lambda _: GIB // 1024)
    with pytest.raises(InputError, match=r"^evaluation\.simulations: 16 "):
        Evaluator(config).prepare()
