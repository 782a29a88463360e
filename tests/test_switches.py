"""Test that training, playing and analysing work under jax's own switches."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled import tiny_agent
from script_runner import python

from jaxzero.game import DotsAndBoxes
from jaxzero.host.programs import USUAL, use_compilation_cache
from jaxzero.players import choosing
from jaxzero.training.devices import DEVICE_AXIS, compile_shapes, parallelize

USE = """
import jax, jaxzero, sys
board, simulations = int(sys.argv[1]), int(sys.argv[2])
trained = jaxzero.train(
    "tiny",
    {
        "game.rows": board,
        "game.cols": board,
        "network.channels": 4,
        "network.features": "raw",
        "search.simulations": 2,
        "selfplay.games_per_iteration": 2,
        "selfplay.random_opening_moves": 1,
        "learner.batch_size": 2,
        "learner.updates_per_iteration": 1,
        "evaluation.opponents": "random",
        "evaluation.evaluate_every": simulations,
        "evaluation.games": 2,
        "evaluation.random_opening_moves": 1,
        "evaluation.simulations": 0,
        "evaluation.suite": "none",
        "iterations": 1,
    },
    on_iteration=lambda _: None,
)
engine = trained.engine
print(trained.metrics[0]["learn/loss"], engine.best_move([], simulations))
print(engine.analyse([], 2).value if simulations else engine.values([[]], 0)[0])
print(jax.config.jax_enable_x64, jax.config.jax_numpy_dtype_promotion)
"""
TYPES = {
    "JAX_ENABLE_X64": "1",
    "JAX_NUMPY_DTYPE_PROMOTION": "strict",
    "JAX_TRANSFER_GUARD": "disallow",
}


def used(board: int, simulations: int, **switches: str) -> list[str]:
    """Return what the program above prints in a process with these switches."""
    done = python("-c", USE, str(board), str(simulations), **switches)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split()


def test_types_and_copies_are_those_of_the_programs():
    """All three at once: each is an error by itself where it is not heeded."""
    loss, edge, value, *before = used(2, 2)
    loss2, edge2, value2, *after = used(2, 2, **TYPES)
    assert edge2 == edge
    assert [float(loss2), float(value2)] == pytest.approx([float(loss), float(value)], rel=1e-5)
    assert (before, after) == (["False", "standard"], ["True", "strict"])


@pytest.mark.slow
def test_a_training_that_is_not_compiled_gives_the_same():
    loss, edge, value, *_ = used(1, 0)
    loss2, edge2, value2, *_ = used(1, 0, JAX_DISABLE_JIT="1")
    assert edge2 == edge
    assert [float(loss2), float(value2)] == pytest.approx([float(loss), float(value)], rel=1e-4)


def test_without_jit_nothing_is_compiled_ahead():
    agent, drawn = tiny_agent(DotsAndBoxes(1, 1), 3), np.zeros((1, 4), bool)
    with jax.disable_jit():
        found = choosing.choose_many(agent, drawn, 0)

        def iteration(learner, actor, _playing, key, span):
            assert not isinstance(learner, jax.core.Tracer)
            total = jax.lax.psum(actor + jax.lax.axis_index(DEVICE_AXIS), DEVICE_AXIS)
            return learner + total, actor + key, span

        mapped = parallelize(iteration, jax.devices()[:2])
        inputs = jnp.float32(3), jnp.arange(2.0), None, jnp.float32(5), jnp.zeros(2)
        learner, actor, _ = compile_shapes(mapped, inputs)(*inputs)
    assert found.edge.shape == (1,) and np.isfinite(found.value).all()
    assert learner == 3 + 0 + 1 + 1 and actor.tolist() == [5, 6]


def test_a_script_has_the_usual_settings_in_all_threads():
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    use_compilation_cache(in_script=False)
    assert jax.config.jax_numpy_dtype_promotion == "strict"
    use_compilation_cache()
    assert {name: getattr(jax.config, f"jax_{name}") for name in USUAL} == USUAL
