"""How strong the network of a run is, measured during training."""

from __future__ import annotations

from dataclasses import replace

from jaxzero.agent.network import Network
from jaxzero.agent.players import Agent, make_player, make_players
from jaxzero.config import Config
from jaxzero.evaluation.arena import MatchResult, play_match
from jaxzero.training.learner import Learner, playing_params
from jaxzero.training.parallel import local_copy


class Judge:
    """Plays the network of a run against the opponents its config names."""

    def __init__(self, config: Config, network: Network):
        """Make the players. Raises: InputError for an opponent that does not exist."""
        self._opponents = make_players(config.evaluation.opponents, network.game)
        self._config = config
        self._network = network
        simulations = config.evaluation.simulations
        name = f"search:{simulations}" if simulations else "policy"
        # Made once: the weights change, the compiled matches stay.
        self._player = make_player(name, network.game, Agent(network, {}, config.search))

    @property
    def player_name(self) -> str:
        return self._player.name

    def play(self, learner: Learner, games: int) -> dict[str, MatchResult]:
        """Play a match of `games` games against every opponent."""
        player = replace(self._player, params=local_copy(playing_params(learner)))
        opening_plies = self._config.evaluation.opening_plies
        return {
            opponent.name: play_match(
                self._network.game, player, opponent, games, opening_plies, self._config.seed
            )
            for opponent in self._opponents
        }


def flatten(results: dict[str, MatchResult]) -> dict[str, float]:
    """Return match results as metrics: `versus/NAME/points` and `versus/NAME/margin`."""
    return {
        f"versus/{name}/{key}": value
        for name, result in results.items()
        for key, value in (("points", result.points), ("margin", result.margin))
    }
