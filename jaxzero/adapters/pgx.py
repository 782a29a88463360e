"""Dots and Boxes as an environment of Pgx, for any board. Needs `pip install pgx`."""

from functools import partial

import jax
import jax.numpy as jnp
import pgx
from flax import struct

from jaxzero.errors import InputError
from jaxzero.game import (
    DotsAndBoxes,
    box_sides,
    initial_state,
    is_over,
    legal_edges,
    split_edges,
    step,
)
from jaxzero.game import State as Position
from jaxzero.network.features import on_dots

NAME = "dots_and_boxes"
REWARDS = ("result", "boxes")


@struct.dataclass
class State(pgx.State):
    """One game in play: the fields of Pgx, the position, and the owners of its boxes."""

    current_player: jax.Array  # [] int32, player to move; either one may have begun
    observation: jax.Array  # [H, W, 4] bool, for the player to move
    rewards: jax.Array  # [2] float32, of players 0 and 1 for the last step
    terminated: jax.Array  # [] bool
    truncated: jax.Array  # [] bool, always False
    legal_action_mask: jax.Array  # [A] bool; all True after the end
    _step_count: jax.Array  # [] int32
    _position: Position  # its player 0 is the one that began
    _boxes: jax.Array  # [2, rows, cols] bool, boxes of the player that began and of the other

    @property
    def env_id(self) -> str:
        return NAME


class DotsAndBoxesEnv(pgx.Env):
    """Dots and Boxes on `rows` x `cols` boxes; an action is the number of an edge.

    Rewards come with the last edge. `rewards="result"`: 1 to the winner, -1 to the loser, 0 for a
    draw. `rewards="boxes"`: own boxes minus those of the opponent. As in all environments of Pgx,
    a random player begins, and an illegal action ends and loses the game.
    """

    def __init__(self, rows: int = 5, cols: int = 5, rewards: str = "result"):
        super().__init__()
        if rewards not in REWARDS:
            raise InputError(f"rewards: {rewards!r} must be {' or '.join(REWARDS)}")
        self.board = DotsAndBoxes(rows, cols)
        self.rewards = rewards

    @property
    def id(self) -> str:
        return NAME

    @property
    def version(self) -> str:
        return "v0"

    @property
    def num_players(self) -> int:
        return 2

    @property
    def _illegal_action_penalty(self) -> float:
        # No regular end is worse, so that breaking the rules never pays.
        return -1.0 if self.rewards == "result" else -float(self.board.num_boxes)

    def _init(self, key: jax.Array) -> State:
        position = initial_state(self.board)
        boxes = jnp.zeros((2, self.board.rows, self.board.cols), bool)
        first = jax.random.bernoulli(key).astype(jnp.int32)
        return State(
            current_player=first,
            observation=self._planes(position, boxes, jnp.int32(0)),
            rewards=jnp.zeros(2, jnp.float32),
            terminated=jnp.zeros((), bool),
            truncated=jnp.zeros((), bool),
            legal_action_mask=legal_edges(position),
            _step_count=jnp.zeros((), jnp.int32),
            _position=position,
            _boxes=boxes,
        )

    def _step(self, state: State, action: jax.Array, key: jax.Array | None) -> State:
        # Numbers outside the mask of legal actions are illegal; Pgx would read its nearest entry.
        is_edge = (action >= 0) & (action < self.board.num_edges)
        after = self._after(state, action)
        lost = self._step_with_illegal_action(after, state.current_player)
        return jax.tree.map(partial(jnp.where, is_edge), after, lost)

    def _after(self, state: State, action: jax.Array) -> State:
        before = state._position
        position, _ = step(self.board, before, action)
        player = state.current_player ^ before.player ^ position.player
        over = is_over(position)
        margin = position.margin.astype(jnp.float32)  # of the player to move
        reward = jnp.sign(margin) if self.rewards == "result" else margin
        rewards = jnp.where(jnp.arange(2) == player, reward, -reward)
        return state.replace(
            current_player=player,
            rewards=jnp.where(over, rewards, 0.0),
            terminated=over,
            legal_action_mask=legal_edges(position),
            _position=position,
            _boxes=self._owned(state, position),
        )

    def _owned(self, state: State, after: Position) -> jax.Array:
        """Return the boxes of both players; those that are new belong to the side that moved."""
        before = state._position
        closed = box_sides(self.board, after.drawn) == 4
        new = closed & (box_sides(self.board, before.drawn) < 4)
        mover = (jnp.arange(2) == before.player)[:, None, None]
        return state._boxes | (mover & new[None])

    def _observe(self, state: State, player_id: jax.Array) -> jax.Array:
        mover = state._position.player
        seat = jnp.where(player_id == state.current_player, mover, 1 - mover)
        return self._planes(state._position, state._boxes, seat)

    def _planes(self, position: Position, boxes: jax.Array, seat: jax.Array) -> jax.Array:
        """Return horizontal edges, vertical edges, own boxes, boxes of the opponent: [H, W, 4].

        An edge or a box lies at its upper left dot, H = rows + 1, W = cols + 1; the rest is False.
        """
        own, other = jnp.where(seat == 0, boxes, boxes[::-1])
        planes = (*split_edges(self.board, position.drawn), own, other)
        return jnp.stack([on_dots(self.board, plane) for plane in planes], axis=-1)
