"""Test games in the terminal, played with scripted input."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, edge_name, initial_state, step
from jaxzero.game.records import read_game
from jaxzero.measure.arena import MatchResult, play_match
from jaxzero.play.game import Record, Side, choose
from jaxzero.play.modes import choose_game, report_match
from jaxzero.play.terminal import COMMANDS, WORDS, Setup, find_entry, play_game
from jaxzero.players.choosing import Choice
from jaxzero.players.players import Player, make_player
from jaxzero.solver.endgame import solve

PAIR = DotsAndBoxes(1, 2)
SQUARE = DotsAndBoxes(2, 2)


def draw_lowest(_keys, state) -> Choice:
    return Choice(np.argmin(state.drawn, axis=-1))


LOWEST = Player("lowest", draw_lowest)  # draws the free edge with the lowest number
SIDES = (Side("you"), Side("AI", LOWEST))


def play(board: DotsAndBoxes, *entries: str, sides=SIDES) -> tuple[Record, list[str]]:
    """Play with these entries and then end the input; return the record and all lines."""
    waiting, written = list(entries), []

    def read(_prompt: str) -> str:
        if not waiting:
            raise EOFError
        return waiting.pop(0)

    record = play_game(Record(board), Setup(sides, read, written.append))
    assert not waiting
    return record, "\n".join(written).split("\n")


def random_record(board: DotsAndBoxes, seed: int, plies: int | None = None) -> Record:
    order = np.random.default_rng(seed).permutation(board.num_edges)[:plies]
    return Record(board, tuple(order.tolist()))


@pytest.mark.parametrize("seed", range(3))
def test_a_record_follows_the_rules(seed):
    board = DotsAndBoxes(2, 3)
    whole = random_record(board, seed)
    state, draw = initial_state(board), jax.jit(step, static_argnums=0)
    for plies in range(board.num_edges + 1):
        record = whole.cut(plies)
        jax.tree.map(
            lambda own, rule: np.testing.assert_array_equal(own[0], rule), record.state(), state
        )
        assert record.is_over == (plies == board.num_edges)
        if not record.is_over:
            state, _ = draw(board, state, whole.moves[plies])
    assert sum(whole.score) == board.num_boxes == len(whole.owners)


def test_edges_drawn_before_the_game_belong_to_nobody():
    start = (0, 2, 4, 5)  # the first box, closed
    record = Record(PAIR, start=start)
    assert (record.player, record.owners, record.boxes_left, record.is_over) == (0, {}, 1, False)
    assert (record.drawn.sum(), record.margin) == (4, 0)
    for edge in (1, 3, 6):
        record = record.draw(edge)
    assert (record.owners, record.score, record.is_over) == ({1: 0}, (1, 0), True)
    assert record.cut(1) == Record(PAIR, (1,), start)
    for edge in (0, -1, 7, 10**9):  # already drawn, or not on the board
        with pytest.raises(InputError):
            record.draw(edge)


def test_a_game_goes_on_from_its_record_and_is_saved_at_every_turn():
    saved, entries = [], iter(["undo", "v0,2", "quit"])
    setup = Setup(SIDES, lambda _prompt: next(entries), lambda _line: None, save=saved.append)
    begun = Record(PAIR, (1, 3), start=(0,))
    record = play_game(begun, setup)
    assert [one.moves for one in saved] == [(1, 3), (), (6,), (6, 1)]
    assert record == saved[-1] and record.start == (0,)


def test_a_whole_game_with_its_score():
    record, lines = play(PAIR, "h0,0", "h 1 0", "v01")
    assert record.moves == (0, 1, 2, 3, 5, 4, 6)
    assert record.owners == {0: 1, 1: 1}
    assert [line for line in lines if " draws " in line] == [
        "AI (lowest) draws h0,1",
        "AI (lowest) draws h1,1",
        "AI (lowest) draws v0,0, v0,2 and closes 2 boxes",
    ]
    assert lines[-1] == "You lose 0 : 2."
    record, lines = play(PAIR, "h0,1", "h1,1", "5", "6", sides=SIDES[::-1])
    assert record.moves == (0, 1, 2, 3, 4, 5, 6) and record.owners == {0: 1, 1: 1}
    assert "AI (lowest) 0 : 1 you, 1 box left, your turn" in lines, "who closes a box goes on"
    assert lines[-1] == "You win 2 : 0."


def test_undo_returns_to_the_previous_decision_exactly():
    straight, _ = play(SQUARE, "v0,0", "v1,0", "quit")  # the other game ends with its input
    there_and_back, lines = play(SQUARE, "v0,0", "v0,1", "undo", "undo", "undo", "v0,0", "v1,0")
    assert there_and_back == straight
    assert lines[-2:] == ["", "Stopped at you 0 : 0 AI (lowest)."]
    assert "there is no move of yours to take back" in lines


def test_what_cannot_be_drawn_is_refused_in_one_line_and_asked_again():
    wrong = ["h0,0", "h0,1", "v0,3", "7", "x1", "udno", ""]
    record, lines = play(PAIR, "h0,0", *wrong)
    assert record.moves == (0, 1)
    refused = lines[-2 - len(wrong) : -2]
    for entry, line in zip(wrong, refused, strict=True):
        assert entry in line


def test_commands_answer_and_leave_the_game_alone():
    record, lines = play(PAIR, "help", "board", "hint", "solve", "?")
    assert record.moves == ()
    for name in COMMANDS:
        assert sum(line.startswith(f"  {name} ") for line in lines) == 2
    assert set(WORDS) == {find_entry(PAIR, word) for word in WORDS}
    best = [edge_name(PAIR, edge) for edge in solve(PAIR, []).best]
    assert f"hint: {best[0]} (" in "\n".join(lines)
    assert f"best: {' '.join(best)}" in lines


@pytest.mark.parametrize("size", [(6, 6), (2, 21)])  # too hard, and beyond the solver
def test_without_a_proof_the_hint_is_what_the_opponent_would_draw(size):
    written, entries = [], iter(["solve", "hint", "quit"])
    setup = Setup(SIDES, lambda _prompt: next(entries), written.append, seconds=0.05)
    assert play_game(Record(DotsAndBoxes(*size)), setup).moves == ()
    assert "not solved in time" in written[1] or written[1].startswith("board: 2x21 must be")
    assert written[2].startswith("hint: h0,0 (") and "lowest would draw" in written[2]


def test_two_players_are_shown_turn_by_turn():
    record, lines = play(PAIR, sides=(Side("A", LOWEST), Side("B", LOWEST)))
    assert record.is_over and lines[-1] == "B (lowest) wins 2 : 0."
    boards, turns = (sum(sign in line for line in lines) for sign in ("  +", " draws "))
    assert boards == 2 * (turns + 1)


def test_a_player_repeats_itself_at_the_same_ply_and_seed():
    record, player = random_record(SQUARE, 0, 4), make_player("random", SQUARE)
    chosen = {choose(player, record, seed) for seed in range(20)}
    assert choose(player, record, 5) == choose(player, record, 5)
    assert len(chosen) > 2
    assert not record.drawn[list(chosen)].any()


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

    for given, board in (
        (("h0,0", 2, 3), (2, 3)),
        (("h0,0", None, None), (3, 3)),
        (("# 2x5", None, None), (2, 5)),
        ((None, None, None), (3, 3)),
        ((None, None, 4), (3, 4)),
    ):
        assert choose(*given) == DotsAndBoxes(*board)
    for given, field in (
        (("x", None, None), "load: .*game.txt: text"),
        (("2x2", 3, None), "rows: 3 "),
        (("2x2", None, 3), "cols: 3 "),
        ((None, 99, None), "rows: 99 "),
    ):
        with pytest.raises(InputError, match=f"^{field}"):
            choose(*given)


def test_a_player_that_compiles_is_waited_for_unless_the_solver_answers():
    """The exact answer is a move of perfect play; the player itself would draw another edge."""
    asked = []

    def compile_and_draw(keys, state) -> Choice:
        asked.append(keys)
        return draw_lowest(keys, state)

    for exact in (True, False):
        player = Player("slow", compile_and_draw)
        entries = iter(["quit"])
        sides = Side("AI", player), Side("you")
        setup = Setup(sides, lambda _, rest=entries: next(rest), lambda _: None, exact=exact)
        record = play_game(Record(PAIR), setup)
        assert bool(asked) == (not exact)
        assert record.moves == ((solve(PAIR, []).best[0],) if exact else (0,))
