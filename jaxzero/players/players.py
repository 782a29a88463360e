"""Make players of all kinds behind one interface, batched on the device where possible.

`random`, `greedy`, `policy` and `search` run on the device, `perfect` on the host. `expert` uses
both.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pkgutil import resolve_name

import jax
import jax.numpy as jnp
import numpy as np

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
from jaxzero.network.network import Agent
from jaxzero.players import expert
from jaxzero.players.kinds import kind_of
from jaxzero.players.network_player import Choice, check_search_memory, choose_edges
from jaxzero.solver.endgame import check_board, new_table, solve_many
from jaxzero.solver.small import exact_answer

Decide = Callable[[jax.Array, State], Choice]  # (keys [B], State [B])
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
    kind, argument = kind_of(name, field)
    try:
        if kind.uses_network and agent is None:
            raise InputError("needs a trained network")
        if kind.uses_network and agent.network.board != board:
            raise InputError(f"has a network of {agent.network.board}, not of {board}")
        return replace(resolve_name(kind.make)(name, argument, board, agent), board=board)
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


# The players of `kinds.KINDS`


def random_player(name: str, _argument: str, _board: DotsAndBoxes, _agent: None) -> Player:
    return Player(name, _decide_at_random, candidates=np.logical_not)


@jax.jit
def _decide_at_random(keys: jax.Array, state: State) -> Choice:
    return Choice(jax.vmap(random_edge)(keys, state))


def greedy_player(name: str, _argument: str, board: DotsAndBoxes, _agent: None) -> Player:
    return Player(name, _greedy(board), candidates=partial(careful_edges, board))


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


def perfect_player(name: str, argument: str, board: DotsAndBoxes, _agent: None) -> Player:
    check_board(board)
    return Player(name, on_host(partial(play_perfectly, board, float(argument or 0))))


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


def rules_player(name: str, _argument: str, board: DotsAndBoxes, _agent: None) -> Player:
    return Player(name, on_host(partial(choose_by_rules, board)))


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


def expert_player(name: str, argument: str, _board: DotsAndBoxes, agent: Agent) -> Player:
    made = expert.new_expert(agent, float(argument))
    return Player(name, on_host(partial(expert.choose_edges, made)))


def network_player(name: str, argument: str, board: DotsAndBoxes, agent: Agent) -> Player:
    """Return the player that searches with `argument` simulations; without it, the policy."""
    simulations = int(argument or 0)
    check_search_memory(board, simulations)

    @cache
    def on_device() -> Agent:
        """Return the agent with its weights on the device, where they are copied once."""
        return replace(agent, params=jax.device_put(agent.params))

    def decide(keys: jax.Array, state: State) -> Choice:
        drawn, noise = np.asarray(state.drawn), None
        if agent.temperature:
            # The largest log-policy plus Gumbel noise is a sample from policy^(1 / temperature).
            noise = agent.temperature * np.asarray(_gumbel(keys, drawn.shape[1]))
        answer = choose_edges(on_device(), drawn, simulations, noise)
        quiet = agent.settings.nodes == "quiet"
        searched = Choice(answer.action, answer.searched_value) if quiet else None
        return Choice(answer.edge, answer.value, searched)

    return Player(name, decide)


@partial(jax.jit, static_argnums=1)
def _gumbel(keys: jax.Array, edges: int) -> jax.Array:
    """Return Gumbel noise that depends on the key of each game only: [B, A] float32."""
    return jax.vmap(lambda key: jax.random.gumbel(key, (edges,), jnp.float32))(keys)


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


def level_player(name: str, argument: str, board: DotsAndBoxes, agent: Agent) -> Player:
    """Return the player of a level: another player with a share of random moves."""
    level = find_level(argument)
    agent = replace(agent, temperature=level.temperature)
    player = replace(make_player(level.player, board, agent), name=name)
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
