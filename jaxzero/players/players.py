"""Make players of all kinds behind one interface, batched on the device where possible.

`random`, `greedy`, `policy` and `search` run on the device, `perfect` on the host. `expert` uses
both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.config import SearchConfig
from jaxzero.errors import InputError
from jaxzero.game import (
    DotsAndBoxes,
    State,
    fullest_beside,
    legal_edges,
    most_sides_beside,
    random_edge,
)
from jaxzero.network.network import Network, inference_copy
from jaxzero.players import expert, single
from jaxzero.players.agent import Agent
from jaxzero.players.choosing import (
    Choice,
    Chooser,
    by_policy,
    by_search,
    choose,
    decide,
)
from jaxzero.players.levels import Level, find_level, with_random_moves
from jaxzero.search.search import network_evaluator
from jaxzero.solver.endgame import check_board, new_table, solve_many

Act = Callable[[chex.ArrayTree, jax.Array, State], jax.Array]
HostAct = Callable[[np.ndarray, np.ndarray], np.ndarray]
Decide = Callable[[chex.ArrayTree, jax.Array, State], Choice]
KNOWN = {
    "random": "any legal edge",
    "greedy": "takes a box, else gives none away, else anything",
    "perfect": "the exact solver, random among the best moves",
    "perfect:SHARE": "the same with this share of random moves, such as perfect:0.1",
    "policy": "the network without search",
    "search:SIMULATIONS": "the network with search",
    "expert:SECONDS": "network and exact solver together, with this time for a decision",
    "level:LEVEL": "a level of the page, by its number or name, such as level:3",
}
LEARNT = ("policy", "search", "expert", "level")  # starts of the names of players with a network
# `perfect` always solves boards up to 3x4. On larger boards it tries positions with at most this
# many undrawn edges, with a node limit of about 0.1 s: nearly always enough for 36 edges on 5x5.
ALWAYS_SOLVED_EDGES = 31
TRIED_UNDRAWN = 38
NODE_LIMIT = 200_000
LONGEST_DECISION = 3600  # seconds
MOST_COUNT = 100_000  # simulations


@dataclass(frozen=True, eq=False)  # arrays do not compare to one truth value
class Player:
    """A named way to choose moves.

    On the device, `act(params, keys [B], State [B])` returns edges [B] int32 and can be jitted.
    With `on_host`, `act(seeds [B] uint32, drawn [B, A] bool)` takes and returns NumPy arrays.
    A player that searches only quiet positions also has `decide`, with the arguments of `act`.
    `decide` returns move and value [B] of the quiet positions. `quiet_game.edge_to_draw` derives
    all edges up to this move from them.
    A player that asks a network for every move also has `whole`, with the arguments of `act`. It
    returns edge and value [B] of the positions themselves.
    `one(params, keys [1], drawn [A] bool)` returns the same edge as `act` for one position. Players
    share its program.
    The key or seed of a game is its only randomness, so a game does not depend on its batch.
    """

    name: str
    act: Act | HostAct
    params: chex.ArrayTree = field(default=(), repr=False)
    on_host: bool = False
    decide: Decide | None = None
    whole: Decide | None = None
    board: DotsAndBoxes | None = None  # the only board it plays; None: any board
    one: Callable[[chex.ArrayTree, jax.Array, np.ndarray], int] | None = None
    candidates: Callable | None = None  # drawn [B, A] to edges [B, A] bool that are equally likely

    def choose(self, keys: jax.Array, state: State) -> np.ndarray:
        """Choose edges [B] for a batch, on device or host. Do not call it inside jit.

        The edges of finished games mean nothing.
        Raises: InputError for a batch of another board and for an illegal edge.
        """
        drawn = np.array(state.drawn)  # arrays from the device are read-only
        if self.board and self.board.num_edges != drawn.shape[-1]:
            raise InputError(f"player: {self.name} plays {self.board}, not {drawn.shape[-1]} edges")
        if self.on_host:
            going = ~drawn.all(axis=1)
            edges = np.zeros(len(drawn), np.int32)
            chosen = self.act(seeds(keys)[going], drawn[going])
            edges[going] = self.checked(chosen, going.sum())
        elif self.one and len(drawn) == 1:
            edges = np.array([self.one(self.params, keys, drawn[0])])
        else:
            # jit caches by function object, so each player compiles once.
            edges = jax.jit(self.act)(self.params, keys, state)
        edges = self.checked(edges, len(drawn))
        for edge, row in zip(edges.tolist(), drawn, strict=True):
            if not row.all() and (edge not in range(len(row)) or row[edge]):
                raise InputError(f"player: {self.name} drew edge {edge}, which it may not draw")
        return edges

    def checked(self, edges: Any, games: int) -> np.ndarray:
        """Return `edges` on the host. Raises: InputError unless it is one integer for each game."""
        edges = np.asarray(edges)
        if edges.shape != (games,) or not np.issubdtype(edges.dtype, np.integer):
            found = f"{edges.dtype}{list(edges.shape)}"
            raise InputError(f"player: {self.name} returned {found}, not int32[{games}], its edges")
        return edges


def seeds(keys: jax.Array) -> np.ndarray:
    """Return a NumPy seed for each key: [B] uint32."""
    return np.asarray(_bits(keys))


_bits = jax.jit(jax.vmap(jax.random.bits))


def make_player(
    name: str, game: DotsAndBoxes, agent: Agent | None = None, field: str = "player"
) -> Player:
    """Return the player that `name` describes, such as `greedy` or `search:64`.

    Errors name the option `field`. Raises: InputError for an unknown name, a bad argument, a
    missing network, or a player that cannot play this board.
    """
    kind, _, argument = name.partition(":")
    kinds = [known.partition(":")[0] for known in KNOWN]
    if kind not in kinds:
        raise InputError(f"{field}: {name!r} is unknown (known: {', '.join(KNOWN)})")
    try:
        return replace(_make(kind, argument, name, game, agent), board=game)
    except InputError as error:
        raise InputError(f"{field}: {name!r}: {error}") from error


def make_players(
    names: str, game: DotsAndBoxes, agent: Agent | None = None, field: str = "players"
) -> list[Player]:
    """Return the players named in a comma-separated list; errors name the option `field`."""
    return [make_player(name, game, agent, field) for name in split_list(field, names)]


def split_list(field: str, text: str) -> list[str]:
    """Split a text at its commas; an empty text has no entries.

    Raises: InputError for an empty or repeated entry.
    """
    entries = [entry.strip() for entry in text.split(",")] if text else []
    for entry in entries:
        if not entry or entries.count(entry) > 1:
            raise InputError(f"{field}: {text!r} has an empty or duplicate entry {entry!r}")
    return entries


def name_shown(player: str, network: str, networks: int) -> str:
    """Return the name of a player; with several networks, the name includes the network."""
    return f"{player} of {network}" if networks > 1 and player.startswith(LEARNT) else player


def _make(kind: str, argument: str, name: str, game: DotsAndBoxes, agent: Agent | None) -> Player:
    if argument and kind in ("random", "greedy", "policy"):
        raise InputError("takes no argument")
    count = int(argument) if re.fullmatch("[0-9]{1,6}", argument) else 0
    if kind == "search" and not 1 <= count <= MOST_COUNT:
        raise InputError(f"needs a whole number >= 1 and <= {MOST_COUNT}, such as search:64")
    share, seconds = _number(argument or "0"), _number(argument)
    if kind == "perfect" and not 0 <= share <= 1:
        raise InputError("needs a share of random moves, such as perfect:0.1")
    if kind == "expert" and not 0 < seconds <= LONGEST_DECISION:
        words = f"above 0 and at most {LONGEST_DECISION}, such as expert:1"
        raise InputError(f"needs seconds for a decision, {words}")
    if kind in LEARNT:
        if agent is None:
            raise InputError("needs a trained network")
        if agent.network.game != game:
            raise InputError(f"has a network of {agent.network.game}, not of {game}")
    if kind == "level":
        return _level_player(name, find_level(argument), game, agent)
    if kind == "random":
        return Player(name, _act_random, candidates=np.logical_not)
    if kind == "greedy":
        return Player(name, _greedy(game), candidates=partial(careful_edges, game))
    if kind == "perfect":
        check_board(game)
        return Player(name, partial(_act_perfect, game, share), on_host=True)
    if kind == "expert":
        made = expert.new_expert(agent, seconds)
        return Player(name, partial(expert.choose_edges, made), on_host=True)
    assert kind in ("policy", "search"), f"{kind} has no player"
    return _network_player(name, count, agent)


def _level_player(name: str, level: Level, game: DotsAndBoxes, agent: Agent) -> Player:
    """Return the player of a level: another player with a share of random moves."""
    kind, _, argument = level.player.partition(":")
    agent = replace(agent, temperature=level.temperature)
    player = _make(kind, argument, name, game, agent)
    if not level.random_share:
        return player

    def act(params: chex.ArrayTree, keys: jax.Array, state: State) -> jax.Array:
        return with_random_moves(level.random_share, keys, state, player.act(params, keys, state))

    def one(params: chex.ArrayTree, keys: jax.Array, drawn: np.ndarray) -> int:
        zero = np.zeros(1, np.int32)
        state = State(drawn[None], zero, zero)
        edges = replace(player, params=params).choose(keys, state)
        return int(with_random_moves(level.random_share, keys, state, edges)[0])

    return replace(player, act=act, decide=None, whole=None, one=one, candidates=None)


def _number(argument: str) -> float:
    """Return the argument as a number, or NaN if it is not a number."""
    try:
        return float(argument)
    except ValueError:
        return math.nan


def _act_random(_params: chex.ArrayTree, keys: jax.Array, state: State) -> jax.Array:
    return jax.vmap(random_edge)(keys, state)


@lru_cache(maxsize=8)
def _greedy(game: DotsAndBoxes) -> Act:
    """Return `act` of `greedy`: one function, hence one program, for all players of a board."""
    return lambda _params, keys, state: jax.vmap(partial(greedy_edge, game))(keys, state)


def greedy_edge(game: DotsAndBoxes, key: jax.Array, state: State) -> jax.Array:
    """Draw an edge that takes a box, else one that gives none away, else any edge: [] int32.

    Edges of equal rank are chosen at random. Plays one game.
    """
    sides = most_sides_beside(game, state.drawn)
    rank = jnp.where(sides == 3, 2, jnp.where(sides == 2, 0, 1))
    rank = jnp.where(legal_edges(state), rank, -1)
    logits = jnp.where(rank == rank.max(), 0.0, -jnp.inf)
    return jax.random.categorical(key, logits).astype(jnp.int32)


def _act_perfect(
    game: DotsAndBoxes, random_share: float, seeds: np.ndarray, drawn: np.ndarray
) -> np.ndarray:
    """Choose an edge at random among the best edges in every position: [B] int32.

    With probability `random_share` the edge is a random legal edge instead. In an unsolved position
    the edge is a random one of `careful_edges`. `seeds` [B] uint32, `drawn` [B, A] bool.
    """
    generators = [np.random.default_rng(seed) for seed in seeds]
    slips = np.array([generator.random() < random_share for generator in generators], bool)
    candidates = ~drawn
    small = game.num_edges <= ALWAYS_SOLVED_EDGES
    tried = ~slips & (small | (candidates.sum(axis=1) <= TRIED_UNDRAWN))
    solved = np.zeros(len(drawn), bool)
    if tried.any():
        limit = None if small else NODE_LIMIT
        _, best, solved[tried] = solve_many(
            game, drawn[tried], node_limit=limit, table=_table(game)
        )
        candidates[solved] = best[solved[tried]]
    unknown = ~slips & ~solved
    candidates[unknown] = careful_edges(game, drawn[unknown])
    return np.array(
        [
            generator.choice(np.flatnonzero(row))
            for generator, row in zip(generators, candidates, strict=True)
        ],
        np.int32,
    )


def careful_edges(game: DotsAndBoxes, drawn: np.ndarray) -> np.ndarray:
    """Return edges that close a box, else edges that give none away, else all: [B, A] bool."""
    fullest = fullest_beside(game, drawn)
    closing, safe = ~drawn & (fullest == 3), ~drawn & (fullest < 2)
    chosen = np.where(safe.any(axis=1, keepdims=True), safe, ~drawn)
    return np.where(closing.any(axis=1, keepdims=True), closing, chosen)


@lru_cache(maxsize=4)
def _table(game: DotsAndBoxes):
    """Return the transposition table that all games on a board share."""
    return new_table(2**20)


def _network_player(name: str, simulations: int, agent: Agent) -> Player:
    """Return the player that searches with this many `simulations`; 0: without search."""
    settings, searches = agent.settings, simulations > 0
    if searches:
        settings = replace(settings, simulations=simulations)
    varied = searches and (agent.temperature or settings.engine != "rounds")
    act, of_turn, whole = _deciders(agent.network, settings, agent.temperature, searches)

    def alone(params: chex.ArrayTree, keys: jax.Array, drawn: np.ndarray) -> int:
        own, noise = replace(agent, params=params, settings=settings), None
        if searches:
            return int(single.think(own, drawn, simulations).edge)
        if agent.temperature:  # the largest logit plus Gumbel noise is a policy sample
            noise = agent.temperature * np.asarray(jax.random.gumbel(keys[0], drawn.shape))
        return int(single.choose_many(own, drawn[None], 0, noise).edge[0])

    return Player(
        name,
        act,
        agent.params,
        decide=of_turn if settings.nodes == "quiet" else None,
        whole=whole,
        one=None if varied else alone,
    )


@lru_cache(maxsize=8)
def _deciders(
    network: Network, settings: SearchConfig, temperature: float, searches: bool
) -> tuple[Act, Decide, Decide]:
    """Return `act`, `decide` and `whole` of a network player; equal players share programs."""
    game = network.game

    def chooser_of(params: chex.ArrayTree, keys: jax.Array) -> Chooser:
        def at_random(logits: jax.Array) -> jax.Array:
            """Sample from the policy to the power 1 / temperature; a game depends on its key."""
            return jax.vmap(jax.random.categorical)(keys, logits / temperature).astype(jnp.int32)

        pick = at_random if temperature else None
        params = inference_copy(network, params, len(keys))
        if not searches:
            return by_policy(network, settings, params, pick)
        return by_search(game, settings, network_evaluator(network, settings), params, pick)

    def whole(params: chex.ArrayTree, keys: jax.Array, state: State) -> Choice:
        return choose(game, settings, chooser_of(params, keys), state)

    def act(params: chex.ArrayTree, keys: jax.Array, state: State) -> jax.Array:
        return whole(params, keys, state).edge

    def of_turn(params: chex.ArrayTree, keys: jax.Array, state: State) -> Choice:
        return decide(game, settings, chooser_of(params, keys), state)[0]

    return act, of_turn, whole
