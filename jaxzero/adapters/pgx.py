"""Dots and Boxes as an environment of Pgx, for any board. Needs `pip install pgx`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pgx
from flax import struct
from pgx._src.visualizer import ColorSet, Visualizer

from jaxzero.adapters.owned import OwnedGame, draw, new_game, observe
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, is_over, legal_edges, split_edges

NAME = "dots_and_boxes"
REWARDS = ("result", "boxes")
_DOT_DISTANCE = 40  # pixels in a picture of scale 1
_COLOURS = (("white", "black"), ("black", "white"))  # background and lines, light and dark
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
        # Numbers outside the mask of legal actions are illegal; Pgx would read its nearest entry.
        is_edge = (action >= 0) & (action < self.board.num_edges)
        after = self._after(state, action)
        lost = self._step_with_illegal_action(after, state.current_player)
        return jax.tree.map(partial(jnp.where, is_edge), after, lost)

    def _after(self, state: State, action: jax.Array) -> State:
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


def _picture(drawing: Any, state: State, config: dict[str, Any]) -> Any:
    """Return the boxes, lines and dots of one game as a group of svgwrite. Raises: InputError."""
    board, drawn = state._board, np.asarray(state._game.position.drawn)
    if drawn.ndim != 1:
        raise InputError(f"state: its games have axes {drawn.shape[:-1]}; a picture shows one axis")
    unit, colour = config["GRID_SIZE"], config["COLOR_SET"].grid_color
    picture = drawing.g(stroke=colour, stroke_width=0.08 * unit, fill=colour)
    for owner, row, col in np.argwhere(state._game.boxes).tolist():
        place, size = (col * unit, row * unit), (unit, unit)
        picture.add(drawing.rect(place, size, fill=_OWNERS[owner], stroke="none"))
    horizontal, vertical = split_edges(board, drawn)
    for lines, right, down in ((horizontal, unit, 0), (vertical, 0, unit)):
        for row, col in np.argwhere(lines).tolist():
            x, y = col * unit, row * unit
            picture.add(drawing.line((x, y), (x + right, y + down)))
    for row, col in product(range(board.rows + 1), range(board.cols + 1)):
        picture.add(drawing.circle((col * unit, row * unit), 0.06 * unit, stroke="none"))
    return picture


def _draw_this_game_too(known: Callable[[Visualizer, pgx.State], None]) -> Callable:
    """Return a `Visualizer._set_config_by_state` for this game; `known` does the games of Pgx."""

    def set_config(self: Visualizer, state: pgx.State) -> None:
        if state.env_id != NAME:
            return known(self, state)
        background, lines = _COLOURS[self.config["COLOR_THEME"] == "dark"]
        board, colours = state._board, ColorSet(background_color=background, grid_color=lines)
        size = {"BOARD_WIDTH": board.cols, "BOARD_HEIGHT": board.rows}
        self.config |= {"GRID_SIZE": _DOT_DISTANCE, "COLOR_SET": colours, **size}
        self._make_dwg_group = _picture

    return set_config


# Pgx has no other way to add a game to `save_svg` and `save_svg_animation`.
Visualizer._set_config_by_state = _draw_this_game_too(Visualizer._set_config_by_state)
