"""Test records of games: every format survives a round trip; bad input is named by its field."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from referee import Referee

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, edge_name
from jaxzero.game.records import (
    FORMATS,
    LONGEST_TEXT,
    RecordedGame,
    format_of_file,
    read_game,
    write_game,
)

BOARDS = [(1, 1), (1, 2), (3, 2), (5, 5), (20, 20)]


def random_game(rows: int, cols: int, seed: int) -> RecordedGame:
    """Return a game of random length from a random position, often the empty board."""
    chance, board = random.Random(seed), DotsAndBoxes(rows, cols)
    edges = range(board.num_edges)
    start = chance.choice([(), chance.sample(edges, chance.randrange(board.num_edges))])
    moves = [edge for edge in edges if edge not in set(start)]
    chance.shuffle(moves)
    moves = moves[: chance.choice([len(moves), chance.randrange(len(moves) + 1)])]
    names = chance.choice([("", ""), ("队 A", "# 5x5"), ("h0,0", "{")])
    return RecordedGame(rows, cols, tuple(start), tuple(moves), names, "a: title", "2026-01-31")


def named(game: RecordedGame) -> list[str]:
    return [edge_name(game.board, edge) for edge in game.moves]


def read_field(text: str) -> str:
    """Return the field of the error that reading a text raises."""
    with pytest.raises(InputError) as caught:
        read_game(text)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 250
    return str(caught.value).partition(": ")[0]


@pytest.mark.parametrize(("rows", "cols"), BOARDS)
def test_a_game_survives_a_round_trip_in_every_format(rows, cols):
    for seed in range(4 if rows == 20 else 20):
        game = random_game(rows, cols, seed)
        assert read_game(write_game(game, "json")) == game
        record = replace(game, rows=5, cols=5, start=(), moves=random_game(5, 5, seed).moves)
        assert read_game(write_game(record, "ccgc")) == record
        edges = RecordedGame(rows, cols, moves=game.moves)
        assert read_game(write_game(replace(game, start=()), "text")) == edges


def test_edges_are_read_by_name_and_number_and_from_any_keyboard():
    board = DotsAndBoxes(3, 4)
    game = RecordedGame(3, 4, moves=random_game(3, 4, 1).moves)
    assert game.moves
    for edges in (
        " ".join(named(game)),
        "\n".join(named(game)).upper(),
        "; ".join(name.replace(",", " ") for name in named(game)),
        ",".join(map(str, game.moves)),
        ", ".join(named(game)).translate({code: code + 0xFEE0 for code in range(0x21, 0x7F)}),
    ):
        assert read_game(edges, board) == game
        for size in ("# 3x4", "3 X 4", "# a comment\n#3x4"):
            assert read_game(f"{size}\n{edges}", DotsAndBoxes(9, 9)) == game
    assert read_game("# 3x4") == replace(game, moves=())


@pytest.mark.parametrize("seed", range(5))
def test_players_owners_and_score_are_the_referees(seed):
    game = random_game(3, 4, seed)
    referee = Referee(game.board)
    for edge in game.start:
        referee.play(edge)
    referee.scores, referee.player = [0, 0], 0
    players = []
    for edge in game.moves:
        players.append(referee.player)
        referee.play(edge)
    assert game.players == [*players, referee.player]
    assert game.score == tuple(referee.scores)
    ours, theirs = game.score[game.player], game.score[1 - game.player]
    assert game.margin == ours - theirs
    assert game.boxes_left == sum(not box <= {*game.start, *game.moves} for box in referee.boxes)


def test_a_game_is_drawn_and_cut():
    start = (0, 2, 4, 5)  # the first box, closed: it belongs to nobody
    game = RecordedGame(1, 2, start)
    assert (game.player, game.owners, game.boxes_left, game.is_over) == (0, {}, 1, False)
    for edge in (1, 3, 6):
        game = game.draw(edge)
    assert (game.owners, game.score, game.is_over) == ({1: 0}, (1, 0), True)
    assert game.cut(1) == RecordedGame(1, 2, start, (1,))
    for edge in (0, -1, 7, 10**9):  # already drawn, or not on the board
        with pytest.raises(InputError):
            game.draw(edge)
    whole = RecordedGame.from_json(TREE)
    for plies, comments, variations in ((0, 1, 0), (1, 1, 1), (3, 2, 2)):
        cut = whole.cut(plies)
        assert (len(cut.comments), len(cut.variations)) == (comments, variations)
        assert read_game(write_game(cut, "json")) == cut


def ccgc(*pieces: str, **fields: str) -> str:
    return json.dumps({**fields, "game": [{"piece": piece} for piece in pieces]})


def test_ccgc_by_hand():
    pieces = ["r(a6,h)", "b(a1,h)", "r(e6,h)", "b(a5,v)", "r(f1,v)", "b(c3,v)"]
    text = ccgc(*pieces, R="甲", B="乙", Event="final")
    game = read_game(text)
    assert named(game) == ["h0,0", "h5,0", "h0,4", "v0,0", "v4,5", "v2,2"]
    assert (game.names, game.title, game.board) == (("甲", "乙"), "final", DotsAndBoxes(5, 5))
    blue_first = read_game(text.translate(str.maketrans("rb", "br")))
    assert blue_first == replace(game, names=("乙", "甲"))
    whole = RecordedGame(5, 5, moves=tuple(np.random.default_rng(0).permutation(60).tolist()))
    content = json.loads(write_game(whole, "ccgc"))
    first, second = whole.score
    assert (content["RScore"], content["BScore"], first + second) == (first, second, 25)
    assert content["winner"] == ("R" if first > second else "B")
    begun = whole.cut(9)
    assert json.loads(write_game(begun, "ccgc"))["winner"] == ""
    resigned = replace(begun, result="first resigned")
    assert json.loads(write_game(resigned, "ccgc"))["winner"] == "B"
    assert read_game(write_game(resigned, "json")) == resigned
    assert resigned.draw(whole.moves[9]).result == resigned.cut(3).result == "", "it goes on"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "text"),
        ("x" * (LONGEST_TEXT + 1), "text"),
        ("h0,0", "text"),  # no size
        ("# 2x2\nhello", "text"),
        ("# 2x2\nh3,0", "text"),
        ("# 2x2\nh0,0 0", "text"),
        ("# 2x2\n# 3x3\nh0,0", "text"),
        ("# 0x3\nh0,0", "rows"),
        ("# 3x21", "cols"),
        ("{", "text"),
        ('{"rows": ' + "1" * 5000 + "}", "text"),
        ("{}", "rows"),
        ('{"rows": 5, "cols": 21}', "cols"),
        ('{"rows": 2, "cols": 2, "moves": 5}', "moves"),
        ('{"rows": 2, "cols": 2, "moves": [0, 12]}', "moves[1]"),
        ('{"rows": 2, "cols": 2, "moves": ["h9,9"]}', "moves"),
        ('{"rows": 2, "cols": 2, "start": [3], "moves": [3]}', "moves[0]"),
        ('{"rows": 2, "cols": 2, "names": ["a"]}', "names"),
        ('{"rows": 2, "cols": 2, "title": {}}', "title"),
        ('{"rows": 2, "cols": 2, "result": "lost"}', "result"),
        ('{"rows": 2, "cols": 2, "move": []}', "'move'"),
        ('{"game": 3}', "game"),
        ('{"R": 1, "game": []}', "R"),
        (ccgc("r(g1,h)"), "game[0]"),
        (ccgc("r(a6,v)"), "game[0]"),
        (ccgc("r(a6,h)", "b(a6,h)"), "game[1]"),
        (ccgc("r(a6,h)", "r(b6,h)"), "game[1]"),
    ],
)
def test_what_is_no_game_is_refused_by_its_field(text, field):
    assert read_field(text) == field


def test_what_a_format_cannot_hold_is_refused():
    from_a_position = RecordedGame(5, 5, start=(0,))
    for game, name in (
        (RecordedGame(3, 3), "ccgc"),
        (from_a_position, "ccgc"),
        (from_a_position, "text"),
        (RecordedGame(1, 1), "jso"),
    ):
        with pytest.raises(InputError, match=r"^format: "):
            write_game(game, name)


def test_names_become_one_printable_line():
    game = RecordedGame(1, 1, names=("a\n\tb\ud800", "x" * 300), title=" t\u2028u ")
    assert game.names == ("a b", "x" * 200) and game.title == "t u"
    write_game(game, "json").encode()


def test_the_ending_of_a_file_is_its_format():
    endings = {"txt": "text", "ccgc.json": "ccgc", "v1.json": "json", "TXT": "text"}
    for ending, name in endings.items():
        assert format_of_file(Path(f"folder.x/game.{ending}")) == name
    for wrong in ("game", "game.pdf", "json", "game.txt.gz"):
        with pytest.raises(InputError):
            format_of_file(Path(wrong))


def mutated(text: str, chance: random.Random) -> str:
    """Return a text with a few characters lost, doubled, swapped or replaced."""
    letters = list(text)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(letters) + 1)
        new = chance.choice([*text[:200], *'0129,;()[]{}"#+-| \n\tPhvABRx\ufeff²٣\x00\u2028😀'])
        letters[at : at + chance.choice([0, 1, 1, 5])] = chance.choice([[], [new], [new] * 3])
    return "".join(letters)


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_text_is_a_game_or_one_line(name):
    chance = random.Random(name)
    size = (5, 5) if name == "ccgc" else (2, 3)
    whole = RecordedGame(*size, moves=random_game(*size, 0).moves or (0,))
    refused = 0
    for _ in range(500):
        text = mutated(write_game(whole, name), chance)
        try:
            game = read_game(text)
        except InputError as error:
            refused += 1
            assert str(error).isprintable() and len(str(error)) < 250, repr(text)
        else:
            assert read_game(write_game(game, "json")) == game
    assert 50 < refused < 500


@pytest.mark.parametrize("text", ["h0" + " " * 60000, "h" * 60000, "#" * 60000, "0 " * 30000])
def test_long_noise_is_refused(text):
    assert read_field(text) == read_field(f"# 20x20\n{text}\nx") == "text"


TREE = {
    "rows": 2,
    "cols": 2,
    "start": [],
    "moves": [0, 11, 6],
    "names": ["", ""],
    "title": "",
    "date": "",
    "comments": {"0": "begin", "3": "end"},
    "variations": [
        {
            "at": 1,
            "moves": [2, 3],
            "comments": {"2": "better"},
            "variations": [{"at": 2, "moves": [5]}],
        },
        {"at": 3, "moves": [1]},
    ],
}


def test_json_keeps_comments_and_variations():
    game = read_game(json.dumps(TREE))
    assert json.loads(write_game(game, "json")) == TREE
    assert game.variations[0].variations[0].moves == (5,)
    assert read_game(write_game(game, "text")) == replace(game, comments=(), variations=())


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"comments": {"4": "after the end"}}, "comments"),
        ({"comments": {"-1": "x"}}, "comments"),
        ({"comments": {"9" * 5000: "x"}}, "comments"),
        ({"comments": {"1": 7}}, "comments"),
        ({"comments": ["x"]}, "comments"),
        ({"variations": [{"at": 4, "moves": [1]}]}, "variations[0]"),
        ({"variations": [{"at": 1, "moves": [0]}]}, "variations[0]"),
        ({"variations": [{"at": 1, "moves": [12]}]}, "variations[0]"),
        ({"variations": [{"at": 1}]}, "variations[0]"),
        ({"variations": [{"at": 1, "moves": [2], "edges": []}]}, "variations[0]"),
        ({"variations": [{"at": 1, "moves": [2], "comments": {"1": "x"}}]}, "variations[0]"),
        ({"variations": {}}, "variations"),
    ],
)
def test_wrong_comments_and_variations_are_refused_by_their_field(change, field):
    assert read_field(json.dumps(TREE | change)) == field
