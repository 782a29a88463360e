"""A bot for the game `dots_and_boxes` of OpenSpiel. Needs `pip install open_spiel`.

OpenSpiel and jaxzero number the edges alike, so an action is an edge.
"""

import numpy as np
import pyspiel

from jaxzero.api import Engine
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes


class EngineBot(pyspiel.Bot):
    """Play with an engine, deterministically, on the board of the engine.

    The bot maximises boxes, even if the game rewards only the result. It can play both seats.
    """

    def __init__(self, engine: Engine, simulations: int = 64):
        super().__init__()
        self.engine = engine
        self.simulations = simulations

    def step(self, state: pyspiel.State) -> int:
        """Return the action for the side to move. The first call compiles.

        Raises: InputError for another game, another board or a game that is over.
        """
        game = state.get_game()
        name, sizes = game.get_type().short_name, game.get_parameters()
        if name != "dots_and_boxes":
            raise InputError(f"game: {name} must be dots_and_boxes")
        board = DotsAndBoxes(sizes["num_rows"], sizes["num_cols"])
        if board != self.engine.board:
            raise InputError(
                f"state: a board of {board}, but the engine plays {self.engine.board}; "
                f"engine.on_board({board.rows}, {board.cols}) may play it"
            )
        # Do not use the history: a game may begin from any position.
        drawn = np.ones(board.num_edges, bool)
        drawn[state.legal_actions()] = False
        return self.engine.best_move(drawn, self.simulations)

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        """Return the legal actions with their probabilities: 1 for the chosen one."""
        return self.step_with_policy(state)[0]

    def step_with_policy(self, state: pyspiel.State) -> tuple[list[tuple[int, float]], int]:
        """Return the policy of `get_policy` and the action of `step`."""
        chosen = self.step(state)
        return [(edge, float(edge == chosen)) for edge in state.legal_actions()], chosen

    def provides_policy(self) -> bool:
        """Return True, because `get_policy` is implemented."""
        return True

    def restart_at(self, state: pyspiel.State) -> None:
        """Do nothing, because the bot keeps nothing between two steps."""
