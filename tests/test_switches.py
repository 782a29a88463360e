"""Test that training, playing and analysing work under jax's own switches."""

from __future__ import annotations

import json
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from script_runner import BASE, python

from jaxzero.game import DotsAndBoxes
from jaxzero.host.programs import USUAL, call, use_compilation_cache
from jaxzero.training.devices import compile_shapes, parallelize
from jaxzero.training.iteration import DEVICE_AXIS

SETTINGS = dict(option.removeprefix("--").split("=") for option in BASE)
SETTINGS |= {"devices": 1, "iterations": 1, "evaluation.evaluate_every": 1, "evaluation.games": 2}
USE = """
import jax, jaxzero, json, sys
from jaxzero.game import initial_states
from jaxzero.players.players import make_player, seeds

settings, simulations = json.loads(sys.argv[1]), int(sys.argv[2])
trained = jaxzero.train("tiny", settings, on_iteration=lambda _: None)
engine = trained.engine
print(trained.metrics[0]["learn/loss"], engine.best_move([], simulations))
print(engine.analyse([], 4).value if simulations else engine.values([[]], 0)[0])
print(jax.config.jax_enable_x64, jax.config.jax_numpy_dtype_promotion)
print(*{leaf.dtype for leaf in jax.tree.leaves(trained.params)})
if simulations:
    with jax.transfer_guard("allow"):
        keys, states = jax.random.split(jax.random.key(0), 3), initial_states(engine.board, 3)
        player = make_player("level:3", engine.board, engine.agent)
        print(*seeds(keys), *player.decide(keys, states).edge)
"""
TYPES = {
    "JAX_ENABLE_X64": "1",
    "JAX_NUMPY_DTYPE_PROMOTION": "strict",
    "JAX_TRANSFER_GUARD": "disallow",
}


def used(settings: dict, simulations: int, **switches: str) -> list[str]:
    """Return what the program above prints in a process with these switches."""
    done = python("-c", USE, json.dumps(settings), str(simulations), **switches)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split()


def test_types_and_copies_are_those_of_the_programs(capsys, monkeypatch):
    """All three at once: each is an error by itself where it is not heeded."""
    monkeypatch.setattr(sys, "argv", ["-c", json.dumps(SETTINGS), "4"])
    exec(USE, {})
    loss, edge, value, *before = capsys.readouterr().out.split()
    loss2, edge2, value2, *after = used(SETTINGS, 4, **TYPES)
    assert edge2 == edge
    assert [float(loss2), float(value2)] == pytest.approx([float(loss), float(value)], rel=1e-5)
    assert (before[:2], after[:2]) == (["False", "standard"], ["True", "strict"])
    assert before[2:] == after[2:] and before[2] == "float32"


@pytest.mark.slow
def test_a_training_that_is_not_compiled_gives_the_same():
    small = ("game.rows", "game.cols", "learner.updates_per_iteration", "search.simulations")
    small = SETTINGS | dict.fromkeys(small, 1) | {"selfplay.random_opening_moves": 1}
    small |= {"selfplay.games_per_iteration": 2, "learner.batch_size": 2}
    small |= {"evaluation.evaluate_every": 0, "evaluation.random_opening_moves": 1}
    loss, edge, value, *_ = used(small, 0)
    loss2, edge2, value2, *_ = used(small, 0, JAX_DISABLE_JIT="1")
    assert edge2 == edge
    assert [float(loss2), float(value2)] == pytest.approx([float(loss), float(value)], rel=1e-4)


def test_without_jit_nothing_is_compiled_ahead():
    def double(x):
        assert not isinstance(x, jax.core.Tracer)
        return (2 * x,)

    def iteration(learner, actor, key, schedule):
        assert not isinstance(learner, jax.core.Tracer)
        total = jax.lax.psum(actor + jax.lax.axis_index(DEVICE_AXIS), DEVICE_AXIS)
        return learner + total, actor + key, schedule

    with jax.disable_jit():
        assert call(DotsAndBoxes(1, 1), partial(double), np.float32(3)) == (6,)
        mapped = parallelize(iteration, jax.devices()[:2])
        inputs = jnp.float32(3), jnp.arange(2.0), jnp.float32(5), jnp.zeros(2)
        learner, actor, _ = compile_shapes(mapped, inputs)(*inputs)
    assert learner == 3 + 0 + 1 + 1 and actor.tolist() == [5, 6]


def test_a_script_has_the_usual_settings_in_all_threads():
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    use_compilation_cache(in_script=False)
    assert jax.config.jax_numpy_dtype_promotion == "strict"
    use_compilation_cache()
    assert {name: getattr(jax.config, f"jax_{name}") for name in USUAL} == USUAL
