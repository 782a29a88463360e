"""Matches: fair, routed by turn, independent of the batch."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled import tiny_agent
from referee import Referee

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, State
from jaxzero.game.quiet import max_decisions
from jaxzero.measure.arena import (
    MatchResult,
    after_openings,
    draw_openings,
    play_games,
    play_match,
    wilson_interval,
)
from jaxzero.players.network_player import Choice
from jaxzero.players.players import Player, make_player

BOARD = DotsAndBoxes(2, 2)
RANDOM, GREEDY = (make_player(name, BOARD) for name in ("random", "greedy"))


def first_legal(_keys, state: State) -> Choice:
    return Choice(np.argmin(state.drawn, axis=-1))


def last_legal(_keys, state: State) -> Choice:
    return Choice(BOARD.num_edges - 1 - np.argmin(state.drawn[:, ::-1], axis=-1))


FIRST, LAST = Player("first", first_legal), Player("last", last_legal)


@pytest.mark.parametrize("edge", [0, -1, BOARD.num_edges])
def test_a_player_that_breaks_the_rules_is_named(edge):
    wrong = Player("wrong", lambda _keys, state: Choice(jnp.full(len(state.drawn), edge)))
    for players in ((wrong, FIRST), (FIRST, wrong)):
        with pytest.raises(InputError, match=r"^player: wrong "):
            play_match(BOARD, *players, games=4, opening_plies=3, seed=0)
    state = State(*(jnp.array([x]) for x in (np.arange(BOARD.num_edges) < 1, 0, 0)))
    with pytest.raises(InputError, match=r"^player: wrong "):
        wrong.decide(jax.random.split(jax.random.key(0), 1), state)


def test_odd_numbers_of_games_and_players_of_another_board_are_named():
    for games in (0, 3):
        with pytest.raises(InputError, match=r"^games: "):
            play_match(BOARD, FIRST, LAST, games, 0, 0)
    other = make_player("greedy", DotsAndBoxes(1, 3))
    for players in ((GREEDY, other), (other, GREEDY)):
        with pytest.raises(InputError, match=r"^player: greedy plays 1x3"):
            play_match(BOARD, *players, 2, 0, 0)


def test_the_moves_of_a_match_give_its_result(monkeypatch):
    """The number of parallel games does not matter. Moves include openings, even whole games."""
    result = play_match(BOARD, GREEDY, RANDOM, 24, 20, 3)
    monkeypatch.setattr("jaxzero.measure.arena.MAX_AT_ONCE", 8)
    assert result == play_match(BOARD, GREEDY, RANDOM, 24, 20, 3)
    openings, margins = draw_openings(BOARD, 12, 20, 3), []
    for number, game in enumerate(result.moves.tolist()):
        opening, referee = openings[number // 2].tolist(), Referee(BOARD)
        assert game[: len(opening)] == opening
        for edge in game:
            referee.play(edge)
        assert not referee.legal()
        first, second = referee.scores if number % 2 == 0 else referee.scores[::-1]
        margins.append(first - second)
    assert MatchResult.of(np.array(margins), result.repeats) == result


def test_openings_repeat_only_when_there_are_no_others():
    many = [frozenset(moves.tolist()) for moves in draw_openings(BOARD, 64, 3, seed=0)]
    assert len(set(many)) == 64
    assert many[:16] == [frozenset(moves.tolist()) for moves in draw_openings(BOARD, 16, 3, seed=0)]
    few = draw_openings(BOARD, 64, 1, seed=0)  # the empty board and 12 edges
    assert len({tuple(moves) for moves in few}) == 13


def counting(player: Player) -> tuple[Player, list[int]]:
    """Return a player and a list; each call of the player appends its number of positions."""
    asked = []

    def counted(keys: jax.Array, state: State) -> Choice:
        asked.append((~state.drawn.all(axis=1)).sum())
        return player.decide(keys, state)

    return replace(player, function=counted), asked


def test_captures_follow_from_the_decision_that_they_belong_to():
    """The moves equal those of a player that searches at every edge, with fewer searches."""
    board, games = DotsAndBoxes(2, 3), 32
    player = make_player("search:2", board, tiny_agent(board, nodes="quiet"))
    at_every_edge = Player("every", lambda *asked: player.decide(*asked)._replace(quiet=None))
    once, asked = counting(player)
    openings = after_openings(board, draw_openings(board, games // 2, 4, seed=6))
    numbers = np.arange(games)
    play = partial(play_games, board, openings=openings, key=jax.random.key(5), numbers=numbers)
    _, expected = play((at_every_edge, at_every_edge))
    for players in ((once, once), (once, at_every_edge), (at_every_edge, once)):
        asked.clear()
        np.testing.assert_array_equal(play(players)[1], expected)
        most = games * (max_decisions(board) + 1) // (1 if players == (once, once) else 2)
        assert 0 < sum(asked) <= most


def test_games_that_repeat_others_do_not_narrow_the_interval():
    """Two players without randomness play only two different games from one opening."""
    again = play_match(BOARD, FIRST, LAST, games=64, opening_plies=0, seed=0)
    assert (again.games, again.distinct) == (64, 2)
    assert again.interval == wilson_interval(again.points, 2)
    assert again.to_dict()["distinct"] == 2
    many = play_match(BOARD, FIRST, LAST, games=64, opening_plies=4, seed=0)
    back = play_match(BOARD, LAST, FIRST, games=64, opening_plies=4, seed=0)
    assert many.first == {-margin: games for margin, games in back.second.items()}
    assert many.distinct == 64
    noisy = play_match(BOARD, RANDOM, LAST, games=64, opening_plies=0, seed=0)
    assert noisy.distinct > 60


def test_wilson_interval_by_hand():
    low, high = wilson_interval(0.5, 100)
    assert (low, high) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert wilson_interval(1.0, 10)[0] == pytest.approx(0.7225, abs=1e-4)
    assert wilson_interval(0.0, 10)[0] == 0


def test_results_add_up():
    result = MatchResult.of(np.array([3, -1, 3, 0, -2, -1, 0, -4, 1, -3]))
    assert (result.wins, result.draws, result.losses) == (3, 2, 5)
    assert result.points == 0.4
    assert result.margin == pytest.approx(-0.4)
    assert result.to_dict()["games"] == 10
    assert result.to_dict()["margins"]["first"] == {"-2": 1, "+0": 1, "+1": 1, "+3": 2}
