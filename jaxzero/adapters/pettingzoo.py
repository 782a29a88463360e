"""Dots and Boxes as an AEC environment of PettingZoo. Needs `pip install pettingzoo`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.utils import EzPickle
from pettingzoo import AECEnv
from pettingzoo.utils import wrappers

from jaxzero.adapters.owned import OBSERVED, draw, new_game, observe
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, is_over, legal_edges, render

_draw = jax.jit(draw, static_argnums=0)
_observe = jax.jit(observe, static_argnums=0)


def env(rows: int = 5, cols: int = 5, render_mode: str | None = None) -> AECEnv:
    """Return the environment in the usual wrappers: an illegal action ends the game and loses."""
    game = wrappers.TerminateIllegalWrapper(raw_env(rows, cols, render_mode), illegal_reward=-1)
    return wrappers.OrderEnforcingWrapper(wrappers.AssertOutOfBoundsWrapper(game))


class raw_env(AECEnv, EzPickle):
    """The environment without wrappers; `player_0` begins.

    An action is the number of an edge. With the last edge the winner gets 1 and the loser -1; a
    draw gives 0. An observation holds the planes of `owned.OBSERVED` and a mask of actions, which
    is all 0 for the player that is not to move. Raises: InputError for a mode of rendering that
    there is not.
    """

    def __init__(self, rows: int = 5, cols: int = 5, render_mode: str | None = None):
        EzPickle.__init__(self, rows, cols, render_mode)
        super().__init__()
        self.metadata = {
            "name": "dots_and_boxes_v0",
            "render_modes": ["ansi"],
            "is_parallelizable": False,
        }
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise InputError(f"render_mode: {render_mode!r} must be 'ansi' or None")
        self.board = DotsAndBoxes(rows, cols)
        self.render_mode = render_mode
        self.possible_agents = ["player_0", "player_1"]
        planes = Box(0, 1, (rows + 1, cols + 1, len(OBSERVED)), np.int8)
        mask = Box(0, 1, (self.board.num_edges,), np.int8)
        space = Dict({"observation": planes, "action_mask": mask})
        self.observation_spaces = dict.fromkeys(self.possible_agents, space)
        actions = Discrete(self.board.num_edges)
        self.action_spaces = dict.fromkeys(self.possible_agents, actions)

    def observation_space(self, agent: str) -> Dict:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin a new game; nothing in it is left to chance."""
        self.game = new_game(self.board)
        self.agents = self.possible_agents[:]
        self.agent_selection = self.agents[0]
        self.rewards = dict.fromkeys(self.agents, 0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}

    def step(self, action: int | None) -> None:
        """Draw an edge for the selected player. Raises: InputError for one it may not draw."""
        if not getattr(self, "agents", None):
            raise InputError("step: nobody is left to move; call reset()")
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        is_edge = self.action_space(agent).contains(action)
        if not is_edge or self.game.position.drawn[int(action)]:
            raise InputError(f"action: {action!r} is no edge that {agent} may draw")
        self._clear_rewards()
        self._cumulative_rewards[agent] = 0
        self.game = _draw(self.board, self.game, jnp.int32(action))
        position = self.game.position
        mover, other = np.roll(self.possible_agents, -int(position.player)).tolist()
        self.agent_selection = mover
        if is_over(position):
            result = int(np.sign(position.margin))
            self.rewards = {mover: result, other: -result}
            self.terminations = dict.fromkeys(self.agents, True)
        self._accumulate_rewards()

    def observe(self, agent: str) -> dict[str, np.ndarray]:
        seat = self.possible_agents.index(agent)
        planes = _observe(self.board, self.game, jnp.int32(seat))
        mask = legal_edges(self.game.position) & (agent == self.agent_selection)
        return {"observation": np.int8(planes), "action_mask": np.int8(mask)}

    def render(self) -> str | None:
        """Return the board as text in the mode `ansi`, with the number of the player in a box."""
        if self.render_mode is None:
            return None
        boxes = np.asarray(self.game.boxes).reshape(2, -1)
        owners = {int(box): str(player) for player, box in np.argwhere(boxes)}
        return render(self.board, self.game.position.drawn, owners, labels={})
