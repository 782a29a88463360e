"""Test games in the terminal, played with scripted input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jaxzero
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, edge_name
from jaxzero.game.records import RecordedGame, read_game
from jaxzero.measure.arena import MatchResult, play_match
from jaxzero.play.game import Side, choose
from jaxzero.play.modes import choose_game, report_match
from jaxzero.play.terminal import COMMANDS, WORDS, Setup, find_entry, play_game
from jaxzero.players.network_player import Choice
from jaxzero.players.players import Player, make_player
from jaxzero.solver.endgame import solve

PAIR = DotsAndBoxes(1, 2)
SQUARE = DotsAndBoxes(2, 2)


def draw_lowest(_keys, state) -> Choice:
    return Choice(np.argmin(state.drawn, axis=-1))


LOWEST = Player("lowest", draw_lowest)  # draws the free edge with the lowest number
SIDES = (Side("you"), Side("AI", LOWEST))


def play(board: DotsAndBoxes, *entries: str, sides=SIDES) -> tuple[RecordedGame, list[str]]:
    """Play with these entries and then end the input; return the game and all lines."""
    waiting, written = list(entries), []

    def read(_prompt: str) -> str:
        if not waiting:
            raise EOFError
        return waiting.pop(0)

    game = play_game(RecordedGame(board.rows, board.cols), Setup(sides, read, written.append))
    assert not waiting
    return game, "\n".join(written).split("\n")


def test_a_game_goes_on_from_its_record_and_is_saved_at_every_turn():
    saved, entries = [], iter(["undo", "v0,2", "quit"])
    setup = Setup(SIDES, lambda _prompt: next(entries), lambda _line: None, save=saved.append)
    begun = RecordedGame(1, 2, (0,), (1, 3))
    game = play_game(begun, setup)
    assert [one.moves for one in saved] == [(1, 3), (), (6,), (6, 1)]
    assert game == saved[-1] and game.start == (0,)


def test_a_whole_game_with_its_score():
    game, lines = play(PAIR, "h0,0", "h 1 0", "v01")
    assert game.moves == (0, 1, 2, 3, 5, 4, 6)
    assert game.owners == {0: 1, 1: 1}
    assert [line for line in lines if " draws " in line] == [
        "AI (lowest) draws h0,1",
        "AI (lowest) draws h1,1",
        "AI (lowest) draws v0,0, v0,2 and closes 2 boxes",
    ]
    assert lines[-1] == "The winner is AI (lowest), 2 : 0."
    game, lines = play(PAIR, "h0,1", "h1,1", "5", "6", sides=SIDES[::-1])
    assert game.moves == (0, 1, 2, 3, 4, 5, 6) and game.owners == {0: 1, 1: 1}
    assert "AI (lowest) 0 : 1 you, 1 box left, your turn" in lines, "who closes a box goes on"
    assert lines[-1] == "The winner is you, 2 : 0."


def test_undo_returns_to_the_previous_decision_exactly():
    straight, _ = play(SQUARE, "v0,0", "v1,0", "quit")  # the other game ends with its input
    there_and_back, lines = play(SQUARE, "v0,0", "v0,1", "undo", "undo", "undo", "v0,0", "v1,0")
    assert there_and_back == straight
    assert lines[-2:] == ["", "Stopped at you 0 : 0 AI (lowest)."]
    assert "there is no move of yours to take back" in lines


def test_what_cannot_be_drawn_is_refused_in_one_line_and_asked_again():
    wrong = ["h0,0", "h0,1", "v0,3", "7", "x1", "udno", ""]
    game, lines = play(PAIR, "h0,0", *wrong)
    assert game.moves == (0, 1)
    refused = lines[-2 - len(wrong) : -2]
    for entry, line in zip(wrong, refused, strict=True):
        assert entry in line


def test_commands_answer_and_leave_the_game_alone():
    game, lines = play(PAIR, "help", "board", "hint", "solve", "?")
    assert game.moves == ()
    for name in COMMANDS:
        assert sum(line.startswith(f"  {name} ") for line in lines) == 2
    assert set(WORDS) == {find_entry(PAIR, word) for word in WORDS}
    best = [edge_name(PAIR, edge) for edge in solve(PAIR, []).best]
    assert f"hint: {best[0]} (" in "\n".join(lines)
    assert f"best: {' '.join(best)}" in lines


@pytest.mark.parametrize("size", [(6, 6), (2, 8)])  # too hard, and beyond the solver
def test_without_a_proof_the_hint_is_what_the_opponent_would_draw(size):
    written, entries = [], iter(["solve", "hint", "quit"])
    setup = Setup(SIDES, lambda _prompt: next(entries), written.append, seconds=0.05)
    assert play_game(RecordedGame(*size), setup).moves == ()
    assert "not solved in time" in written[1] or written[1].startswith("board: 2x8 must be")
    assert written[2].startswith("hint: h0,0 (") and "lowest would draw" in written[2]


def test_two_players_are_shown_turn_by_turn():
    game, lines = play(PAIR, sides=(Side("A", LOWEST), Side("B", LOWEST)))
    assert game.is_over and lines[-1] == "The winner is B (lowest), 2 : 0."
    boards, turns = (sum(sign in line for line in lines) for sign in ("  +", " draws "))
    assert boards == 2 * (turns + 1)


def test_a_player_repeats_itself_at_the_same_ply_and_seed():
    game, player = RecordedGame(2, 2, moves=(4, 0, 9, 7)), make_player("random", SQUARE)
    chosen = {choose(player, game, seed) for seed in range(20)}
    assert choose(player, game, 5) == choose(player, game, 5)
    assert len(chosen) > 2
    assert not game.drawn[list(chosen)].any()


@pytest.mark.parametrize("name", ["policy", "search:4"])
def test_a_temperature_makes_the_seed_decide(name):
    agent = jaxzero.load("2x2").agent

    def game(player: Player, seed: int) -> tuple[int, ...]:
        found = RecordedGame(2, 2)
        while not found.is_over:
            found = found.draw(choose(player, found, seed))
        return found.moves

    hot = make_player(name, SQUARE, replace(agent, temperature=1.0))
    assert game(hot, 0) == game(hot, 0) != game(hot, 1)
    cold = make_player(name, SQUARE, agent)
    assert game(cold, 0) == game(cold, 1)


@pytest.mark.parametrize("name", ["games.jsonl", "games"])
def test_a_match_reports_the_first_player_and_saves_its_games(name, tmp_path, capsys):
    """The saved games give the result of the match: seats are swapped, openings included."""
    players = (LOWEST, make_player("random", PAIR))
    result = play_match(PAIR, *players, 12, 2, 1)
    report_match(PAIR, players, 12, 2, 1, tmp_path / name)
    assert capsys.readouterr().out.splitlines()[-2] == f"A (lowest)  {result}"
    path = tmp_path / name
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    games = [read_game(text) for file in files for text in file.read_text().splitlines()]
    assert [file.name for file in files][:2] in (["01.json", "02.json"], ["games.jsonl"])
    assert [game.title for game in games] == [f"game {number} of 12" for number in range(1, 13)]
    margins = []
    for number, game in enumerate(games):
        seat = number % 2
        assert game.names[seat] == "A (lowest)" and game.names[1 - seat] == "B (random)"
        margins.append(game.score[seat] - game.score[1 - seat])
    assert MatchResult.of(np.array(margins), result.repeats) == result


def test_a_game_to_go_on_with_has_the_board_asked_for(tmp_path):
    def choose(text: str | None, *sides: int | None) -> DotsAndBoxes:
        path = None if text is None else tmp_path / "game.txt"
        if path:
            path.write_text(text)
        return choose_game(path, *sides, []).board

    assert choose("h0,0", 2, 3) == DotsAndBoxes(2, 3)
    assert choose("# 2x5", None, None) == DotsAndBoxes(2, 5)
    assert choose(None, None, 4) == DotsAndBoxes(3, 4)
    for given, field in (
        (("x", None, None), "load: .*game.txt: text"),
        (("2x2", 3, None), "rows: 3 "),
    ):
        with pytest.raises(InputError, match=f"^{field}"):
            choose(*given)
