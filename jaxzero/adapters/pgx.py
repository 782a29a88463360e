"""Dots and Boxes as an environment of Pgx, for any board. Needs `pip install pgx`."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pgx
from flax import struct

from jaxzero.adapters.owned import OwnedGame, draw, new_game, observe
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, is_over, legal_edges, split_edges

NAME = "dots_and_boxes"
REWARDS = ("result", "boxes")
_DOT_DISTANCE = 40  # pixels in a picture of scale 1
_COLOURS = {"light": ("white", "black"), "dark": ("black", "white")}  # background, lines
_OWNERS = ("royalblue", "tomato")  # boxes of the first and of the second player


@struct.dataclass
class State(pgx.State):
    """One game in play: the fields of Pgx, and the game with the owners of its boxes."""

    current_player: jax.Array  # [] int32, player to move; either one may have begun
    observation: jax.Array  # [H, W, 4] bool, `owned.OBSERVED` for the player to move
    rewards: jax.Array  # [2] float32, of players 0 and 1 for the last step
    terminated: jax.Array  # [] bool
    truncated: jax.Array  # [] bool, always False
    legal_action_mask: jax.Array  # [A] bool; all True after the end
    _step_count: jax.Array  # [] int32
    _game: OwnedGame  # its player 0 is the one that began
    _board: DotsAndBoxes = struct.field(pytree_node=False)

    @property
    def env_id(self) -> str:
        return NAME

    def to_svg(self, *, color_theme: str | None = None, scale: float | None = None) -> str:
        """Return a picture of the game, or of all games of a batch side by side."""
        background, colour = _COLOURS[color_theme or "light"]
        board = self._board
        drawn = np.asarray(self._game.position.drawn).reshape(-1, board.num_edges)
        boxes = np.asarray(self._game.boxes).reshape(-1, 2, board.rows, board.cols)
        width, height = len(drawn) * (board.cols + 1), board.rows + 1
        pixels = _DOT_DISTANCE * (scale or 1.0)
        games = [
            f'<g transform="translate({0.5 + number * (board.cols + 1)} 0.5)">'
            f"{_shapes(board, drawn[number], boxes[number])}</g>"
            for number in range(len(drawn))
        ]
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width * pixels:g}" height="{height * pixels:g}">'
            f'<rect width="{width}" height="{height}" fill="{background}"/>'
            f'<g fill="{colour}" stroke="{colour}" stroke-width="0.08">{"".join(games)}</g></svg>'
        )

    def save_svg(
        self,
        filename: str | Path,
        *,
        color_theme: str | None = None,
        scale: float | None = None,
    ) -> None:
        """Write the picture of `to_svg` to a file."""
        Path(filename).write_text(self.to_svg(color_theme=color_theme, scale=scale))


class DotsAndBoxesEnv(pgx.Env):
    """Dots and Boxes on `rows` x `cols` boxes; an action is the number of an edge.

    Rewards come with the last edge. `rewards="result"`: 1 to the winner, -1 to the loser, 0 for a
    draw. `rewards="boxes"`: own boxes minus those of the opponent. As in all environments of Pgx
    chance decides which player begins, and an illegal action ends and loses the game.
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
        game = new_game(self.board)
        first = jax.random.bernoulli(key).astype(jnp.int32)
        return State(
            current_player=first,
            observation=observe(self.board, game, jnp.int32(0)),
            rewards=jnp.zeros(2, jnp.float32),
            terminated=jnp.zeros((), bool),
            truncated=jnp.zeros((), bool),
            legal_action_mask=legal_edges(game.position),
            _step_count=jnp.zeros((), jnp.int32),
            _game=game,
            _board=self.board,
        )

    def _step(self, state: State, action: jax.Array, key: jax.Array | None) -> State:
        game = draw(self.board, state._game, action)
        position, before = game.position, state._game.position
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
            _game=game,
        )

    def _observe(self, state: State, player_id: jax.Array) -> jax.Array:
        mover = state._game.position.player
        seat = jnp.where(player_id == state.current_player, mover, 1 - mover)
        return observe(self.board, state._game, seat)


def _shapes(board: DotsAndBoxes, drawn: np.ndarray, boxes: np.ndarray) -> str:
    """Return the boxes, lines and dots of one game as SVG; two dots are one unit apart."""
    squares = [
        f'<rect x="{col}" y="{row}" width="1" height="1" fill="{_OWNERS[owner]}" stroke="none"/>'
        for owner, row, col in np.argwhere(boxes)
    ]
    horizontal, vertical = map(np.argwhere, split_edges(board, drawn))
    lines = [f'<path d="M{col} {row}h1"/>' for row, col in horizontal]
    lines += [f'<path d="M{col} {row}v1"/>' for row, col in vertical]
    dots = [
        f'<circle cx="{col}" cy="{row}" r="0.06"/>'
        for row, col in product(range(board.rows + 1), range(board.cols + 1))
    ]
    return "".join(squares + lines + dots)
