"""Make players of all kinds behind one interface, batched on the device where possible.

`random`, `greedy`, `policy` and `search` run on the device, `perfect` on the host. `expert` uses
both.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.config import SearchConfig
from jaxzero.errors import InputError
from jaxzero.game import (
    DotsAndBoxes,
    State,
    box_sides_table,
    fullest_beside,
    legal_edges,
    most_sides_beside,
    random_edge,
)
from jaxzero.game.board import take_free_boxes
from jaxzero.network.network import Agent, Network, inference_copy
from jaxzero.players import choosing, expert
from jaxzero.players.choosing import Choice, by_policy, by_search, choose
from jaxzero.search.rounds import rounds_of
from jaxzero.search.search import network_evaluator
from jaxzero.solver.endgame import check_board, new_table, solve_many
from jaxzero.solver.small import exact_answer

Decide = Callable[[jax.Array, State], Choice]  # (keys [B], State [B])
KNOWN = (
    *("random", "greedy", "rules", "perfect", "perfect:SHARE", "policy"),
    *("search:SIMULATIONS", "expert:SECONDS", "level:LEVEL"),
)
LEARNT = ("policy", "search", "expert", "level")  # starts of the names of players with a network
# A pattern and what it stands for; other players take no argument.
ARGUMENTS = {
    "perfect": (r"(0|1|0?\.\d+)?", "a share of random moves, such as perfect:0.1"),
    "search": (r"[1-9]\d{0,4}", "a whole number of simulations up to 99999, such as search:64"),
    "expert": (r"(?=.*[1-9])\d{0,4}(\.\d+)?", "seconds for a decision, such as expert:1"),
    "level": (".*", "a level"),
}
# `perfect` always solves boards up to 3x4. On larger boards it tries positions with at most this
# many undrawn edges, with a node limit of about 0.1 s: nearly always enough for 36 edges on 5x5.
ALWAYS_SOLVED_EDGES = 31
TRIED_UNDRAWN = 38
NODE_LIMIT = 200_000


@dataclass(frozen=True, eq=False)
class Player:
    """A named way to choose moves.

    The key of a game is its only randomness, so a game does not depend on its batch.
    """

    name: str
    function: Decide
    board: DotsAndBoxes | None = None  # the only board it plays; None: any board
    candidates: Callable | None = None  # drawn [B, A] to edges [B, A] bool that are equally likely

    def decide(self, keys: jax.Array, state: State) -> Choice:
        """Choose edges for a batch, with values if the player has them: NumPy [B].

        Choices in finished games mean nothing. Do not call it inside jit.
        Raises: InputError for a batch of another board and for an edge that cannot be drawn.
        """
        drawn = np.asarray(state.drawn)
        if self.board and self.board.num_edges != drawn.shape[-1]:
            raise InputError(f"player: {self.name} plays {self.board}, not {drawn.shape[-1]} edges")
        choice = jax.device_get(self.function(keys, state))
        edges = choice.edge
        outside = (edges < 0) | (edges >= drawn.shape[1])
        wrong = outside | drawn[np.arange(len(drawn)), np.where(outside, 0, edges)]
        wrong &= ~drawn.all(axis=1)
        if wrong.any():
            edge = edges[wrong][0]
            raise InputError(f"player: {self.name} chose edge {edge}, which cannot be drawn")
        return choice


def on_host(choose_edges: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Decide:
    """Return the decisions of `choose_edges(seeds [B] uint32, drawn [B, A] bool)`, all NumPy.

    It is not asked about finished games.
    """

    def decide(keys: jax.Array, state: State) -> Choice:
        drawn = np.array(state.drawn)  # arrays from the device are read-only
        going, edges = ~drawn.all(axis=1), np.zeros(len(drawn), np.int32)
        edges[going] = choose_edges(seeds(keys)[going], drawn[going])
        return Choice(edges)

    return decide


def seeds(keys: jax.Array) -> np.ndarray:
    """Return a NumPy seed for each key: [B] uint32."""
    return np.asarray(_bits(keys))


_bits = jax.jit(jax.vmap(partial(jax.random.bits, dtype=jnp.uint32)))


def make_player(
    name: str, board: DotsAndBoxes, agent: Agent | None = None, field: str = "player"
) -> Player:
    """Return the player that `name` describes, such as `greedy` or `search:64`.

    Errors name the option `field`. Raises: InputError for an unknown name, a bad argument, a
    missing network, or a player that cannot play this board.
    """
    kind, _, argument = name.partition(":")
    if kind not in [known.partition(":")[0] for known in KNOWN]:
        raise InputError(f"{field}: {name!r} is unknown (known: {', '.join(KNOWN)})")
    try:
        return replace(_make(kind, argument, name, board, agent), board=board)
    except InputError as error:
        raise InputError(f"{field}: {name!r}: {error}") from error


def make_players(
    names: str, board: DotsAndBoxes, agent: Agent | None = None, field: str = "players"
) -> list[Player]:
    """Return the players named in a comma-separated list; errors name the option `field`."""
    return [make_player(name, board, agent, field) for name in split_list(field, names)]


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


def _make(kind: str, argument: str, name: str, board: DotsAndBoxes, agent: Agent | None) -> Player:
    pattern, needed = ARGUMENTS.get(kind, ("", "no argument"))
    if not re.fullmatch(pattern, argument, re.ASCII):
        raise InputError(f"takes {needed}")
    if kind in LEARNT:
        if agent is None:
            raise InputError("needs a trained network")
        if agent.network.board != board:
            raise InputError(f"has a network of {agent.network.board}, not of {board}")
    match kind:
        case "random":
            return Player(name, _decide_at_random, candidates=np.logical_not)
        case "greedy":
            return Player(name, _greedy(board), candidates=partial(careful_edges, board))
        case "rules":
            return Player(name, on_host(partial(choose_by_rules, board)))
        case "perfect":
            check_board(board)
            return Player(name, on_host(partial(play_perfectly, board, float(argument or 0))))
        case "expert":
            made = expert.new_expert(agent, float(argument))
            return Player(name, on_host(partial(expert.choose_edges, made)))
        case "level":
            return _level_player(name, find_level(argument), board, agent)
        case _:
            return _network_player(name, int(argument or 0), agent)


@jax.jit
def _decide_at_random(keys: jax.Array, state: State) -> Choice:
    return Choice(jax.vmap(random_edge)(keys, state))


@lru_cache(maxsize=8)
def _greedy(board: DotsAndBoxes) -> Decide:
    """Return the decisions of `greedy`: one program for all players of a board."""
    return jax.jit(lambda keys, state: Choice(jax.vmap(partial(greedy_edge, board))(keys, state)))


def greedy_edge(board: DotsAndBoxes, key: jax.Array, state: State) -> jax.Array:
    """Draw an edge that takes a box, else one that gives none away, else any edge: [] int32.

    Edges of equal rank are chosen at random. Plays one game.
    """
    sides = most_sides_beside(board, state.drawn)
    rank = jnp.where(sides == 3, jnp.int32(2), jnp.where(sides == 2, 0, 1))
    rank = jnp.where(legal_edges(state), rank, -1)
    logits = jnp.where(rank == rank.max(), jnp.float32(0), -jnp.inf)
    return jax.random.categorical(key, logits).astype(jnp.int32)


def play_perfectly(
    board: DotsAndBoxes, random_share: float, seeds: np.ndarray, drawn: np.ndarray
) -> np.ndarray:
    """Choose an edge at random among the best edges in every position: [B] int32.

    With probability `random_share` the edge is a random legal edge instead. In an unsolved position
    the edge is a random one of `careful_edges`. `seeds` [B] uint32, `drawn` [B, A] bool.
    """
    generators = [np.random.default_rng(seed) for seed in seeds]
    slips = np.array([generator.random() < random_share for generator in generators], bool)
    candidates = ~drawn
    small = board.num_edges <= ALWAYS_SOLVED_EDGES
    tried = ~slips & (small | (candidates.sum(axis=1) <= TRIED_UNDRAWN))
    solved = np.zeros(len(drawn), bool)
    if tried.any():
        limit = None if small else NODE_LIMIT
        _, best, solved[tried] = solve_many(
            board, drawn[tried], node_limit=limit, table=_table(board)
        )
        candidates[solved] = best[solved[tried]]
    unknown = ~slips & ~solved
    candidates[unknown] = careful_edges(board, drawn[unknown])
    return np.array(
        [
            generator.choice(np.flatnonzero(row))
            for generator, row in zip(generators, candidates, strict=True)
        ],
        np.int32,
    )


def careful_edges(board: DotsAndBoxes, drawn: np.ndarray) -> np.ndarray:
    """Return edges that close a box, else edges that give none away, else all: [B, A] bool."""
    fullest = fullest_beside(board, drawn)
    closing, safe = ~drawn & (fullest == 3), ~drawn & (fullest < 2)
    chosen = np.where(safe.any(axis=1, keepdims=True), safe, ~drawn)
    return np.where(closing.any(axis=1, keepdims=True), closing, chosen)


def choose_by_rules(board: DotsAndBoxes, seeds: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Choose an edge in every position without compiling: [B] int32.

    With few edges left it is the exact answer, else one of `simple_edges` at random.
    `seeds` [B] uint32, `drawn` [B, A] bool.
    """
    edges = [exact_answer(board, row) for row in drawn]
    for number, row in enumerate(drawn):
        if edges[number] is None:
            generator = np.random.default_rng([seeds[number], row.sum()])
            edges[number] = generator.choice(simple_edges(board, row))
    return np.array(edges, np.int32)


def simple_edges(board: DotsAndBoxes, drawn: np.ndarray) -> np.ndarray:
    """Return the edges of a position [A] bool that simple rules allow.

    They close a box, else give no box away, else give away the fewest boxes.
    """
    edges = np.flatnonzero(careful_edges(board, drawn[None])[0])
    if fullest_beside(board, drawn)[edges].max() == 2:  # every edge gives boxes away
        after = take_free_boxes(board, drawn | (np.arange(board.num_edges) == edges[:, None]))
        lost = after[:, box_sides_table(board)].all(axis=-1).sum(axis=1)  # with those closed before
        edges = edges[lost == lost.min()]
    return edges


@lru_cache(maxsize=4)
def _table(board: DotsAndBoxes):
    """Return the transposition table that all games on a board share."""
    return new_table(2**20)


def _network_player(name: str, simulations: int, agent: Agent) -> Player:
    """Return the player that searches with this many `simulations`; 0: without search."""
    settings, searches = agent.settings, simulations > 0
    if searches:
        settings = replace(settings, simulations=simulations)
    program = _program(agent.network, settings, agent.temperature, searches)
    shares = not (searches and agent.temperature)

    @cache
    def params() -> chex.ArrayTree:
        """Return the weights on the device, where they are copied once."""
        return jax.device_put(agent.params, jax.local_devices()[0])

    def decide(keys: jax.Array, state: State) -> Choice:
        if len(state.drawn) > 1 or not shares:
            return program(params(), keys, state)
        # One position has a program that analysis and expert use too.
        drawn, noise = np.asarray(state.drawn), None
        if searches:
            found = choosing.think(agent, drawn[0], simulations)
            return Choice(found.edge[None], found.value[None])
        if agent.temperature:  # the largest logit plus Gumbel noise is a policy sample
            gumbel = jax.random.gumbel(keys[0], drawn[0].shape, jnp.float32)
            noise = agent.temperature * np.asarray(gumbel)
        return choosing.choose_many(agent, drawn, 0, noise)

    return Player(name, decide)


@lru_cache(maxsize=8)
def _program(
    network: Network, settings: SearchConfig, temperature: float, searches: bool
) -> Callable[[chex.ArrayTree, jax.Array, State], Choice]:
    """Return the compiled decisions of a network player; equal players share them."""
    board = network.board

    @jax.jit
    def program(params: chex.ArrayTree, keys: jax.Array, state: State) -> Choice:
        def at_random(logits: jax.Array) -> jax.Array:
            """Sample from the policy to the power 1 / temperature; a game depends on its key."""
            return jax.vmap(jax.random.categorical)(keys, logits / temperature).astype(jnp.int32)

        pick = at_random if temperature else None
        params = inference_copy(network, params, len(keys))
        chooser = by_policy(network, settings, params, pick)
        if searches:
            evaluator, rounds = network_evaluator(network), rounds_of(settings)
            chooser = by_search(board, settings, evaluator, params, rounds, pick)
        return choose(board, settings, chooser, state)

    return program


# Levels


@dataclass(frozen=True)
class Level:
    """One level of strength of an opponent."""

    name: str
    player: str  # as in `make_player`
    rating: int  # Elo on 5x5 with the pretrained network; `greedy`, half of it random, has 400
    random_share: float = 0.0  # share of moves that are uniformly random legal edges
    temperature: float = 0.0  # above 0, sample moves from policy^(1 / temperature)


LEVELS = (
    Level("beginner", "greedy", 90, random_share=0.8),
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


def _level_player(name: str, level: Level, board: DotsAndBoxes, agent: Agent) -> Player:
    """Return the player of a level: another player with a share of random moves."""
    kind, _, argument = level.player.partition(":")
    agent = replace(agent, temperature=level.temperature)
    player = _make(kind, argument, name, board, agent)
    if not level.random_share:
        return player

    def decide(keys: jax.Array, state: State) -> Choice:
        edges = player.decide(keys, state).edge
        return Choice(with_random_moves(level.random_share, keys, state, edges))

    return Player(name, decide)


@jax.jit
def with_random_moves(share: float, keys: jax.Array, state: State, edges: jax.Array) -> jax.Array:
    """Replace each of the `edges` [B] by a random legal edge with probability `share`."""
    slip_keys, edge_keys = jax.vmap(jax.random.split, out_axes=1)(keys)
    slips = jax.vmap(lambda key: jax.random.bernoulli(key, jnp.float32(share)))(slip_keys)
    return jnp.where(slips, jax.vmap(random_edge)(edge_keys, state), edges)
