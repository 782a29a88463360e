"""What the parts of an iteration are timed on: states, positions and a ring of the run's shapes."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxzero.config import Config
from jaxzero.game import DotsAndBoxes, State, initial_states
from jaxzero.training.positions import Positions
from jaxzero.training.replay import Replay, empty_replay

RING_BYTES = 2**28  # a ring beyond every cache is as slow as a larger one


def random_state(game: DotsAndBoxes, games: int) -> State:
    """Return a batch of states with half of the edges drawn."""
    start = initial_states(game, games)
    return start._replace(drawn=jax.random.bernoulli(jax.random.key(0), 0.5, start.drawn.shape))


def random_positions(game: DotsAndBoxes, count: int) -> Positions:
    """Return positions to learn from with half of the edges drawn."""
    drawn = random_state(game, count).drawn
    legal = jnp.where(drawn, 0.0, 1.0)
    return Positions(
        drawn=drawn,
        policy=legal / jnp.maximum(legal.sum(-1, keepdims=True), 1.0),
        margin=jnp.zeros(count, jnp.int32),
        margin_known=jnp.ones(count, bool),
    )


def full_ring(config: Config, block: int) -> Replay:
    """Return a full ring of the run's size, or of `RING_BYTES` where that is less."""
    edges = config.game.board.num_edges
    fields = jax.eval_shape(lambda: empty_replay(block, edges))
    block_bytes = sum(field.size * field.dtype.itemsize for field in fields)
    blocks = min(config.iterations_kept, max(1, RING_BYTES // block_bytes))
    ring = empty_replay(blocks * block, edges)
    return ring._replace(size=jnp.asarray(blocks * block, jnp.int32))
