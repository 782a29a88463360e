"""What a search is made of: a game, an evaluator of positions, and the hooks between them.

Words: the search chooses *actions* (the word of mctx), the quiet game has *moves*
(`game/quiet.py`), and an *edge* is a line of the board. An action is the number of an edge.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import chex
import jax

from jaxzero.config import SearchConfig
from jaxzero.game import DotsAndBoxes, State
from jaxzero.game.structure import Structure


class Evaluation(NamedTuple):
    """Prior and value of a batch of positions, for the side to move."""

    prior_logits: jax.Array  # [B, A] float32, illegal edges masked with -1e9
    value: jax.Array  # [B] float32, utility still to come, -1 to 1


class PositionEvaluator(NamedTuple):
    """The leaf evaluator, and the platform that it was built for."""

    # (State [B], their structure [B], or None: not known)
    evaluate: Callable[[State, Structure | None], Evaluation]
    platform: str  # "cpu" or "gpu"


# embeddings [P], prior logits [P, A], values [P], which of them were evaluated [P] bool
Expanded = tuple[chex.ArrayTree, jax.Array, jax.Array, jax.Array]
# (embeddings [P], actions [P], which of them are used [P] bool, or None: all)
Expand = Callable[[chex.ArrayTree, jax.Array, jax.Array | None], Expanded]
# (ONE embedding, its value []) to reward [] and discount [] of the action that led to it
Outcome = Callable[[chex.ArrayTree, jax.Array], tuple[jax.Array, jax.Array]]


class Model(NamedTuple):
    """A batch of positions to search, and how their trees grow."""

    before_root: chex.ArrayTree  # [B, ...], embeddings from which `NO_ACTION` leads to the roots
    legal: jax.Array  # [B, A] bool, actions of the roots
    expand: Expand
    outcome: Outcome
    platform: str  # "cpu" or "gpu"
    value_scale: float  # c_scale of the paper; values are -1 to 1


class SearchResult(NamedTuple):
    """The result of a search of a batch of positions."""

    action: jax.Array  # [B] int32, the chosen action
    policy: jax.Array  # [B, A] float32, improved policy, the target of learning
    value: jax.Array  # [B] float32, utility of the chosen action after the search
    visits: jax.Array  # [B, A] int32, visit counts at the root
    prior: jax.Array  # [B, A] float32, the network's policy at the root
    qvalues: jax.Array  # [B, A] float32, utility of the actions of the root
    evaluations: jax.Array  # [B] int32, by the network: none of a finished game


# (model, settings, key, gumbel_scale): 1 explores at the root, 0 is deterministic
SearchAlgorithm = Callable[[Model, SearchConfig, jax.Array, float], SearchResult]

NO_ACTION = -1  # draws nothing and passes the turn


class SearchedGame(Protocol):
    """The game that is searched: `plain_game` or `quiet_game`. All functions are for ONE game.

    The *searched position* of a position is the same one in the plain game; in the quiet game it is
    the position after all free boxes are taken. `structure` is that of the position, None in the
    plain game. `value` [] is the expected margin of the searched position, in boxes.
    """

    @staticmethod
    def find_structure(board: DotsAndBoxes, drawn: jax.Array) -> Structure | None:
        """Return the structure of a position with these drawn edges [A]."""

    @staticmethod
    def searched(state: State, structure: Structure | None) -> State:
        """Return the searched position."""

    @staticmethod
    def structure_of_searched(structure: Structure | None) -> Structure | None:
        """Return the structure of the searched position, of one or many games; None: not known."""

    @staticmethod
    def legal(board: DotsAndBoxes, drawn: jax.Array, structure: Structure | None) -> jax.Array:
        """Return the actions of the searched position: [A] bool."""

    @staticmethod
    def prior(board: DotsAndBoxes, structure: Structure | None, logits: jax.Array) -> jax.Array:
        """Turn logits of edges into logits of actions: [A] to [A]."""

    @staticmethod
    def target(board: DotsAndBoxes, structure: Structure | None, policy: jax.Array) -> jax.Array:
        """Turn a policy over actions into a policy over edges: [A] to [A]."""

    @staticmethod
    def resolve(state: State, structure: Structure | None, value: jax.Array) -> State:
        """Return the searched position, once its value has decided the captures before it."""

    @staticmethod
    def total(structure: Structure | None, value: jax.Array, margin: jax.Array) -> jax.Array:
        """Return the remaining margin [] of a position, given the `margin` [] of the searched."""

    @staticmethod
    def edge_to_draw(
        board: DotsAndBoxes,
        drawn: jax.Array,
        structure: Structure | None,
        value: jax.Array,
        action: jax.Array,
    ) -> jax.Array:
        """Return the edge to draw now, given the best `action` of the searched position: [] int32.

        The searched position stays the same until the free boxes are gone, so all edges of one
        capture follow one decision.
        """

    @staticmethod
    def play(
        board: DotsAndBoxes, state: State, action: jax.Array
    ) -> tuple[State, Structure | None]:
        """Play an action in a searched position; return the next position and its structure."""

    @staticmethod
    def embed(state: State, structure: Structure | None) -> chex.ArrayTree:
        """Return the embedding of a searched position: what a node of the tree stores."""

    @staticmethod
    def expand(
        board: DotsAndBoxes, embedding: chex.ArrayTree, action: jax.Array
    ) -> tuple[chex.ArrayTree, Structure | None]:
        """Return the embedding after an action, and the structure before its captures.

        `NO_ACTION` draws nothing and passes the turn.
        """

    @staticmethod
    def outcome(
        board: DotsAndBoxes, embedding: chex.ArrayTree, value: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Return reward and discount [] of the action that led to an embedding.

        `value` [] is that of the embedding; value and reward are shares of the board's boxes. An
        action after the end has reward 0 and discount 0.
        """
