"""Players: whatever chooses moves, behind one interface, batched on the device where possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.agent.choosing import at_sight, choose, searched
from jaxzero.agent.network import Network, inference_copy
from jaxzero.agent.search import network_evaluator, search
from jaxzero.config import SearchConfig
from jaxzero.errors import InputError, nearest
from jaxzero.game import DotsAndBoxes, State, legal_edges, most_sides_beside, random_edge

Act = Callable[[chex.ArrayTree, jax.Array, State], jax.Array]
HostAct = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Player:
    """A named way to choose moves.

    On the device, `act(params, keys [B], State [B])` returns edges [B] int32 and can be jitted.
    With `on_host`, `act(seeds [B] uint32, drawn [B, A] bool)` takes and returns NumPy arrays.
    Randomness comes from the key or seed of each game alone, so a game does not depend on the
    batch it is played in.
    """

    name: str
    act: Act | HostAct
    params: chex.ArrayTree = ()
    on_host: bool = False

    def choose(self, keys: jax.Array, state: State) -> np.ndarray:
        """Choose edges [B] for a batch, wherever the player lives. Not for use inside jit."""
        if self.on_host:
            # A copy: what comes from the device is read-only, which compiled players refuse.
            return self.act(seeds(keys), np.array(state.drawn))
        # Compiled once for a player that is made once: jit remembers by function.
        return np.asarray(jax.jit(self.act)(self.params, keys, state))


def seeds(keys: jax.Array) -> np.ndarray:
    """Return a seed for NumPy per key: [B] uint32."""
    return np.asarray(_bits(keys))


_bits = jax.jit(jax.vmap(jax.random.bits))


@dataclass(frozen=True)
class Agent:
    """What the learning players need: a network, its weights and the settings of the search."""

    network: Network
    params: chex.ArrayTree
    settings: SearchConfig


Maker = Callable[[str, str, DotsAndBoxes, Agent | None], Player]

KNOWN = {
    "random": "any legal edge",
    "greedy": "takes a box, else gives none away, else anything",
    "alphabeta:DEPTH": "looks DEPTH plies ahead and counts boxes",
    "perfect": "the exact solver, random among the best moves",
    "perfect:SHARE": "the same with this share of random moves, such as perfect:0.1",
    "policy": "the network without search",
    "search:SIMULATIONS": "the network with search",
}


def make_player(name: str, game: DotsAndBoxes, agent: Agent | None = None) -> Player:
    """Return the player that `name` describes, such as `greedy` or `search:64`.

    Raises: InputError for an unknown name, a bad argument, or a player that needs a network
    where there is none.
    """
    kind, _, argument = name.partition(":")
    makers: dict[str, Maker] = {
        "random": _random,
        "greedy": _greedy,
        "alphabeta": _alphabeta,
        "perfect": _perfect,
        "policy": _policy,
        "search": _search,
    }
    if kind not in makers:
        raise InputError(
            f"player: {name!r} is unknown{nearest(kind, makers)} (known: {', '.join(KNOWN)})"
        )
    return makers[kind](name, argument, game, agent)


def make_players(names: str, game: DotsAndBoxes, agent: Agent | None = None) -> list[Player]:
    """Return the players of a list of names separated by commas."""
    return [make_player(name.strip(), game, agent) for name in names.split(",") if name.strip()]


def _refuse_argument(name: str, argument: str) -> None:
    if argument:
        raise InputError(f"player: {name!r} takes no argument")


def _count(name: str, argument: str, example: str) -> int:
    if not argument.isdecimal() or int(argument) < 1:
        raise InputError(f"player: {name!r} needs a positive number, such as {example}")
    return int(argument)


def _needed(name: str, agent: Agent | None) -> Agent:
    if agent is None:
        raise InputError(f"player: {name!r} needs a trained network")
    return agent


def _random(name: str, argument: str, game: DotsAndBoxes, agent: Agent | None) -> Player:
    _refuse_argument(name, argument)
    return Player(name, _act_random)


def _act_random(_params: chex.ArrayTree, keys: jax.Array, state: State) -> jax.Array:
    return jax.vmap(random_edge)(keys, state)


def _greedy(name: str, argument: str, game: DotsAndBoxes, agent: Agent | None) -> Player:
    _refuse_argument(name, argument)
    return Player(name, partial(_act_greedy, game))


def _act_greedy(
    game: DotsAndBoxes, _params: chex.ArrayTree, keys: jax.Array, state: State
) -> jax.Array:
    return jax.vmap(partial(greedy_edge, game))(keys, state)


def greedy_edge(game: DotsAndBoxes, key: jax.Array, state: State) -> jax.Array:
    """Take a box if one is there, else give none away, else anything; random among equals: [].

    Plays one game.
    """
    sides = most_sides_beside(game, state.drawn)
    rank = jnp.where(sides == 3, 2, jnp.where(sides == 2, 0, 1))
    rank = jnp.where(legal_edges(state), rank, -1)
    logits = jnp.where(rank == rank.max(), 0.0, -jnp.inf)
    return jax.random.categorical(key, logits).astype(jnp.int32)


def _alphabeta(name: str, argument: str, game: DotsAndBoxes, agent: Agent | None) -> Player:
    depth = _count(name, argument, "alphabeta:3")
    from jaxzero.agent.alphabeta import choose_edges  # compiles, so only when asked for

    return Player(name, partial(choose_edges, game, depth), on_host=True)


def _perfect(name: str, argument: str, game: DotsAndBoxes, agent: Agent | None) -> Player:
    try:
        share = float(argument or 0)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise InputError(f"player: {name!r} needs a share of random moves, such as perfect:0.1")
    from jaxzero.agent.perfect import choose_edges  # likewise

    return Player(name, partial(choose_edges, game, share), on_host=True)


def _policy(name: str, argument: str, game: DotsAndBoxes, agent: Agent | None) -> Player:
    _refuse_argument(name, argument)
    agent = _needed(name, agent)
    act = _act_quiet_policy if agent.settings.reduction == "exact" else _act_policy
    return Player(name, partial(act, agent.network), agent.params)


def _act_policy(
    network: Network, params: chex.ArrayTree, _keys: jax.Array, state: State
) -> jax.Array:
    logits = network.apply(params, state.drawn).policy_logits
    return jnp.argmax(logits, axis=-1).astype(jnp.int32)


def _act_quiet_policy(
    network: Network, params: chex.ArrayTree, _keys: jax.Array, state: State
) -> jax.Array:
    return choose(network.game, at_sight(network, params), state).edge


def _search(name: str, argument: str, game: DotsAndBoxes, agent: Agent | None) -> Player:
    simulations = _count(name, argument, "search:64")
    agent = _needed(name, agent)
    settings = replace(agent.settings, simulations=simulations)
    return Player(name, partial(_act_search, agent.network, settings), agent.params)


def _act_search(
    network: Network,
    settings: SearchConfig,
    params: chex.ArrayTree,
    _keys: jax.Array,
    state: State,
) -> jax.Array:
    evaluate = network_evaluator(network, settings)
    params = inference_copy(network, params, len(state.drawn))
    if settings.reduction == "exact":
        judge = searched(network.game, settings, evaluate, params)
        return choose(network.game, judge, state).edge
    # Without Gumbel noise the search draws nothing, so one key for the batch will do.
    key = jax.random.key(0)
    return search(network.game, settings, evaluate, params, key, state, gumbel_scale=0.0).edge
