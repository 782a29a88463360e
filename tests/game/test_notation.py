"""Test games as text: every format survives a round trip; bad input gives a one-line error."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyspiel
import pytest
from referee import Referee

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, edge_name
from jaxzero.game.board import swedish_start
from jaxzero.game.move_lists import MOVE_LISTS, STARTS
from jaxzero.game.notation import FORMATS, format_of, format_of_file, read_game, write_game
from jaxzero.game.recorded import RecordedGame

BOARDS = [(1, 1), (1, 2), (3, 2), (5, 5), (20, 20)]


def random_game(rows: int, cols: int, seed: int) -> RecordedGame:
    """Return a game of random length from a start position, often the empty board."""
    chance, board = random.Random(seed), DotsAndBoxes(rows, cols)
    edges = range(board.num_edges)
    anywhere = chance.sample(edges, chance.randrange(board.num_edges))
    start = chance.choice([(), (), STARTS["swedish"](board), anywhere])
    moves = [edge for edge in edges if edge not in set(start)]
    chance.shuffle(moves)
    moves = moves[: chance.choice([len(moves), chance.randrange(len(moves) + 1)])]
    names = chance.choice([("", ""), ("队 A", "# 5x5"), ("P1(h,0,0)", "{")])
    return RecordedGame(rows, cols, tuple(start), tuple(moves), names, "a: title", "2026-01-31")


def named(game: RecordedGame) -> list[str]:
    return [edge_name(game.board, edge) for edge in game.moves]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("rows", "cols"), BOARDS)
def test_what_is_written_is_read_again(name, rows, cols):
    for seed in range(4 if rows == 20 else 20):
        game = random_game(rows, cols, seed)
        if name == "ccgc":
            game = replace(game, rows=5, cols=5, start=(), moves=random_game(5, 5, seed).moves)
        text = write_game(game, name)
        if game.moves:
            assert format_of(text) == name
        if name == "ascii":  # the position, without order, names and owners
            drawn = tuple(sorted(game.start + game.moves))
            game = RecordedGame(rows, cols, start=drawn)
        assert read_game(text) == game


@pytest.mark.parametrize("name", sorted(MOVE_LISTS))
def test_lists_of_moves_are_read_without_a_header_and_from_any_keyboard(name):
    game = RecordedGame(3, 4, moves=random_game(3, 4, 1).moves)
    whole = write_game(game, name)
    header, _, bare = whole.partition("\n")
    assert header == "# 3x4" and "#" not in bare
    assert read_game(bare, game.board) == read_game(whole, game.board) == game
    with pytest.raises(InputError, match="a game on 3x4, not on 4x4"):
        read_game(whole, DotsAndBoxes(4, 4))
    if name != "sau":  # as an East Asian keyboard writes it
        wide = {code: code + 0xFEE0 for code in range(ord("!"), ord("~") + 1) if chr(code) != "#"}
        assert read_game(whole.translate(wide)) == game
        assert read_game(whole.replace(",", "、")) == game


@pytest.mark.parametrize(("rows", "cols"), [(2, 2), (2, 3), (5, 4)])
def test_openspiel_writes_the_same_moves(rows, cols):
    spiel = pyspiel.load_game(f"dots_and_boxes(num_rows={rows},num_cols={cols})")
    state, words, chance = spiel.new_initial_state(), [], random.Random(rows)
    while not state.is_terminal():
        action = chance.choice(state.legal_actions())
        words.append(state.action_to_string(state.current_player(), action))
        state.apply_action(action)
    game = read_game(" ".join(words))
    assert game == RecordedGame(rows, cols, moves=tuple(state.history()))
    assert write_game(game, "openspiel").split() == ["#", str(game.board), *words]
    plain = RecordedGame(rows, cols, moves=game.moves)
    for text in (", ".join(named(game)), "\n".join(named(game)), " ".join(named(game)).upper()):
        assert read_game(text) == plain
    assert read_game("; ".join(name.replace(",", " ") for name in named(game))) == plain


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


def as_game(pieces: list[str]) -> list[dict[str, str]]:
    return [{"piece": piece} for piece in pieces]


def test_ccgc_by_hand():
    pieces = ["r(a6,h)", "b(a1,h)", "r(e6,h)", "b(a5,v)", "r(f1,v)", "b(c3,v)"]
    text = json.dumps({"R": "甲", "B": "乙", "Event": "final", "game": as_game(pieces)})
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
    assert json.loads(write_game(replace(whole, moves=whole.moves[:9]), "ccgc"))["winner"] == ""


def test_sau_codingame_and_numbers_by_hand():
    text = "name?\nnew black\nmove 1 AAA\nmove 1 AFE\nmove 1 BAA\nmove 1 BFE\nend\nquit\n"
    assert named(read_game(text)) == ["h0,0", "h5,4", "v0,0", "v4,5"]
    game = read_game("# 1x2\nmove 1 AAA\nmove 1 ABA\nmove 1 BAA\nmove 2 BBAAAB")
    assert named(game) == ["h0,0", "h1,0", "v0,0", "v0,1", "h0,1"]
    assert "move 2 BBAAAB" in write_game(game, "sau")
    assert named(read_game("A1B a2t B1 L\nB2R")) == ["h2,0", "h0,0", "v1,1", "v0,2"]
    assert "B1 L" in write_game(read_game("# 2x2\nA1R"), "codingame")
    assert named(read_game("# 2x2\nA1 R MSG B2 L is next\nB2 T")) == ["v1,1", "h0,1"]
    assert read_game("# 2x2\nA1R").moves == read_game("# 2x2\nB1L").moves
    game = RecordedGame(2, 2, moves=(11, 0, 7))
    assert write_game(game, "numbers") == "# 2x2\n11,0,7\n"
    assert read_game("11, 0 ;7\n") == game


@pytest.mark.parametrize(
    ("picture", "edges"),
    {
        "+  +--+\n|\n+  +  +\n": ["h0,1", "v0,0"],
        "+ +-+\n  |\n+ + +": ["h0,1", "v0,1"],
        "# 1x2\n  +--+--+\n   1\n  +  +--+": ["h0,0", "h0,1", "h1,1"],
    }.items(),
)
def test_pictures_of_all_widths_are_read(picture, edges):
    game = read_game(picture)
    assert (game.board, game.moves) == (DotsAndBoxes(1, 2), ())
    assert [edge_name(game.board, edge) for edge in game.start] == edges


def test_the_size_is_said_or_the_smallest_that_fits():
    sizes = {
        "h0,0": (1, 1),
        "h2,0": (2, 2),
        "v0,3": (3, 3),
        "0": (1, 1),
        "4": (2, 2),
        "A3L": (3, 3),
        "move 1 AAA": (5, 5),
        "# 2x3\n11": (2, 3),
        "4x2": (4, 2),
        "h00 h10 v00 v01": (1, 1),
        "h00 h01 h10 h11 v00 v01 v02": (1, 2),
    }
    for text, size in sizes.items():
        game = read_game(text)
        assert (game.rows, game.cols) == size, text
    assert read_game("h0,0", DotsAndBoxes(2, 7)).cols == 7


def test_start_positions_by_hand():
    board = DotsAndBoxes(2, 3)
    drawn = {name: [edge_name(board, e) for e in start(board)] for name, start in STARTS.items()}
    top, left = ["h0,0", "h0,1", "h0,2"], ["v0,0", "v1,0"]
    assert drawn["american"] == []
    assert drawn["icelandic"] == top + left
    bottom = ["h2,0", "h2,1", "h2,2"]
    assert sorted(drawn["swedish"]) == sorted(top + left + bottom + ["v0,3", "v1,3"])
    assert read_game("2x3 swedish").start == swedish_start(board)
    assert read_game("# 2x3 Icelandic\n# start: h1,0").start == (0, 1, 2, 3, 9, 13)
    assert "# 2x3 swedish" in write_game(read_game("2x3 swedish"), "numbers")


WHOLE = ",".join(map(str, range(17)))
REJECTED = {
    "": "text: holds no game",
    "x" * 2**21: "text: 2097152 characters are more than 1048576",
    "hello": "line 1: 'hello' begins none of the formats openspiel, numbers,",
    "h0,0\nv0,x": "line 2: 'v0,x' begins no move such as P1(h,0,1)",
    "P1(h,0,0) P2(h,0,0)": "line 1: move 2, P2(h,0,0), is already drawn",
    "P1(h,0,0)\nP1(h,1,0)": "line 2: move 2, P1(h,1,0), is of player 1, but player 2 is to move",
    "# 2x2\nh0,0\nP1(v,0,3)": "line 3: P1(v,0,3) is not on a 2x2 board",
    WHOLE: "board: 17 edges fill a board of 2x3 or 3x2: name it, as # 2x3",
    "# 0x3": "line 1: '# 0x3' must be a board from 1x1 to 20x20",
    "5x5\n6x6": "line 2: '6x6' is a second size, after 5x5",
    "5x5 swedisch": "line 1: start 'swedisch' is unknown, did you mean swedish?",
    "# start: h0,0": "line 1: start needs the size of the board before it",
    "2x2\n# start: h3,0": "line 2: edge h3,0 is not on a 2x2 board",
    "move 2 AAA": "line 1: 'move 2 AAA' must be a turn such as move 2 AABBCA",
    "+--+": "the picture needs at least two rows of two dots",
    "+--+\n|  |\n+---+": "line 3: its dots are not below those of line 1",
    "+--+\n+--+": "line 2: '' is only part of an edge",
    "+--+\n|  |\n   |\n+--+": "line 2: '| ' is only part of an edge",
    "+--+\n|  |\n+--+\nend": "line 4: 'end' is outside of the picture",
    "2x2\n+--+\n|  |\n+--+": "text: the picture shows 1x1, the line above it says 2x2",
    "{": "text: is not JSON",
    '{"rows": ' + "1" * 5000 + "}": "text: is not JSON",
    "{}": "rows: is missing",
    '{"rows": 5, "cols": 21}': "cols: 21 must be a whole number from 1 to 20",
    '{"rows": 2, "cols": 2, "moves": 5}': "moves: 5 must be a list",
    '{"rows": 2, "cols": 2, "moves": [0, 12]}': "moves[1]: 12 must be a whole number from 0 to 11",
    '{"rows": 2, "cols": 2, "moves": ["h9,9"]}': "moves: edge h9,9 is not on a 2x2 board",
    '{"rows": 2, "cols": 2, "start": [3], "moves": [3]}': "moves[0]: edge h1,1 is already drawn",
    '{"rows": 2, "cols": 2, "names": ["a"]}': "names: ['a'] must be two names",
    '{"rows": 2, "cols": 2, "title": {}}': "title: {} must be text",
    '{"rows": 2, "cols": 2, "move": []}': "'move': no such field, did you mean moves?",
    '{"game": 3}': "game: 3 must be a list",
    '{"R": 1, "game": []}': "R: 1 must be text",
    '{"game": [{"piece": "r(g1,h)"}]}': "game[0]: {'piece': 'r(g1,h)'} must hold a piece",
    '{"game": [{"piece": "r(a6,v)"}]}': "game[0]: r(a6,v) is not on a 5x5 board",
    json.dumps({"game": as_game(["r(a6,h)", "r(b6,h)"])}): "game[1]: move 2, r(b6,h), is of player",
}


@pytest.mark.parametrize("text", REJECTED, ids=lambda text: text[:30].replace("\n", " "))
def test_what_is_no_game_is_named_in_one_line(text):
    with pytest.raises(InputError) as caught:
        read_game(text)
    assert str(caught.value).startswith(REJECTED[text])


def test_what_a_format_cannot_hold_is_named():
    for game, what in ((RecordedGame(3, 3), "3x3"), (RecordedGame(5, 5, start=(0,)), "a start")):
        with pytest.raises(InputError, match=f"ccgc holds games of 5x5 from an empty.*not {what}"):
            write_game(game, "ccgc")
    with pytest.raises(InputError, match=r"'asci' is unknown, did you mean ascii\?"):
        write_game(RecordedGame(1, 1), "asci")


def test_names_become_one_printable_line():
    game = RecordedGame(1, 1, names=("a\n\tb\ud800", "x" * 300), title=" t\u2028u ")
    assert game.names == ("a b", "x" * 200) and game.title == "t u"
    assert read_game(write_game(game, "openspiel")) == game
    write_game(game, "json").encode()


def test_the_ending_of_a_file_is_its_format():
    endings = {"txt": "openspiel", "ccgc.json": "ccgc", "v1.json": "json", "NUMBERS.TXT": "numbers"}
    for ending, name in endings.items():
        assert format_of_file(Path(f"folder.x/game.{ending}")) == name
    for wrong in ("game", "game.pdf", "json", "game.txt.gz"):
        with pytest.raises(InputError, match=rf"^{wrong} must end with .json, .txt"):
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


def test_noise_is_refused():
    chance = random.Random(0)
    signs = 'Ph v(0,1)2{}[]":#x+-|\n \tAmove'
    for _ in range(500):
        with pytest.raises(InputError):
            read_game("~" + "".join(chance.choices(signs, k=chance.randrange(60))))
    for text in ("h0" + " " * 60000, "#" * 60000, "move " + "A" * 60000, "0 " * 30000, "+" * 60000):
        with pytest.raises(InputError):
            read_game(text)
    with pytest.raises(InputError):
        read_game("+-" * 300 + "\n|" * 150 + "\n" + "+-" * 300)


def test_the_header_lines_of_the_docs_are_read():
    page = (Path(__file__).parents[2] / "docs" / "playing.md").read_text()
    header = page.split("```\n# 5x5")[1].split("```")[0]
    game = read_game(f"# 5x5{header}")
    assert (game.names, len(game.start)) == (("Ann", "Ben"), 22)


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


def test_comments_and_variations_are_kept_by_json():
    game = read_game(json.dumps(TREE))
    assert json.loads(write_game(game, "json")) == TREE
    assert game.variations[0].variations[0].moves == (5,)
    assert read_game(write_game(game, "numbers")) == replace(game, comments=(), variations=())


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"comments": {"4": "after the end"}}, "comments"),
        ({"comments": {"-1": "x"}}, "comments"),
        ({"comments": {"9" * 5000: "x"}}, "comments"),
        ({"comments": {"1": 7}}, "comments"),
        ({"comments": ["x"]}, "comments"),
        ({"variations": [{"at": 4, "moves": [1]}]}, "variations[0].at"),
        ({"variations": [{"at": 1, "moves": [0]}]}, "variations[0].moves[0]"),
        ({"variations": [{"at": 1, "moves": [12]}]}, "variations[0].moves[0]"),
        ({"variations": [{"at": 1}]}, "variations[0]"),
        ({"variations": [{"at": 1, "moves": [2], "edges": []}]}, "variations[0]"),
        (
            {"variations": [{"at": 1, "moves": [2], "variations": [{"at": 1, "moves": [3]}]}]},
            "variations[0].variations[0].at",
        ),
        (
            {"variations": [{"at": 1, "moves": [2], "comments": {"1": "of the game"}}]},
            "variations[0].comments",
        ),
        ({"variations": {}}, "variations"),
    ],
)
def test_wrong_comments_and_variations_are_refused(change, field):
    with pytest.raises(InputError) as error:
        read_game(json.dumps(TREE | change))
    assert str(error.value).partition(": ")[0] == field
