"""Define the levels from beginner to expert: players, shares of random moves, and ratings."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from jaxzero.errors import InputError
from jaxzero.game import State, random_edge


@dataclass(frozen=True)
class Level:
    """One level of strength of an opponent."""

    name: str
    player: str  # as in `make_player`
    rating: int  # Elo on 5x5 with the pretrained network; beginner has 400
    random_share: float = 0.0  # share of moves that are uniformly random legal edges
    temperature: float = 0.0  # above 0, sample moves from policy^(1 / temperature)


LEVELS = (
    Level("beginner", "greedy", 400, random_share=0.5),
    Level("novice", "greedy", 760, random_share=0.2),
    Level("casual", "greedy", 1060),
    Level("learner", "policy", 1170, random_share=0.05, temperature=0.5),
    Level("regular", "policy", 1330, random_share=0.02, temperature=0.5),
    Level("strong", "policy", 1460, temperature=0.4),
    Level("advanced", "search:16", 1650),
    Level("master", "search:256", 2060),
    Level("expert", "expert:2", 2130),
)


def find_level(text: str) -> Level:
    """Return a level by its number or its name. Raises: InputError."""
    for number, level in enumerate(LEVELS):
        if text in (str(number), level.name):
            return level
    names = ", ".join(f"{number} {level.name}" for number, level in enumerate(LEVELS))
    raise InputError(f"level: {text[:40]!r} does not exist (known: {names})")


@jax.jit
def with_random_moves(share: float, keys: jax.Array, state: State, edges: jax.Array) -> jax.Array:
    """Replace each of the `edges` [B] by a random legal edge with probability `share`."""
    slip_keys, edge_keys = jax.vmap(jax.random.split, out_axes=1)(keys)
    slips = jax.vmap(lambda key: jax.random.bernoulli(key, jnp.float32(share)))(slip_keys)
    return jnp.where(slips, jax.vmap(random_edge)(edge_keys, state), edges)
