"""Test the protocols of the engine: games follow the rules, and bad lines change nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import jaxzero
from jaxzero.game import DotsAndBoxes, edge_name, parse_edge
from jaxzero.game.records import RecordedGame
from jaxzero.host import background
from jaxzero.host.background import MAX_BOARDS, Programs
from jaxzero.play import engine as engine_module
from jaxzero.play.botzone import KEEP_RUNNING, botzone
from jaxzero.play.engine import Clock, Session
from jaxzero.play.game import LARGEST_SIDE, draw_turn
from jaxzero.play.gtp import gtp
from jaxzero.play.sau import sau, sau_edges, sau_message
from jaxzero.players import expert
from jaxzero.solver import null_window, proof
from jaxzero.solver.endgame import solve
from jaxzero.solver.small import exact_answer

BOARD = DotsAndBoxes(2, 2)
PROTOCOLS = {"gtp": gtp, "sau": sau, "botzone": botzone}
PATIENCE = 60  # seconds until a test fails instead of hanging
Say = Callable[[str], list[str]]  # from a line to the lines of its answer
Opponent = Callable[[RecordedGame], int]


@pytest.fixture(scope="module")
def made() -> Session:
    made = Session(jaxzero.load("2x2").agent, seconds=0.02)
    made.get_ready()
    return made


@pytest.fixture
def engine(made) -> Session:
    made.full, made.done = None, False
    made.words.clear()
    made.new_game(BOARD)
    return made


def by_gtp(say: Say, game: RecordedGame, plays: int, opponent: Opponent) -> RecordedGame:
    assert say(f"boardsize {game.board.rows} {game.board.cols}") == ["=\n"]
    while not game.is_over:
        if game.player == plays:
            (said,) = say("genmove")
            assert said.startswith("= ")
            for name in said[2:].split():
                assert game.player == plays
                game = game.draw(parse_edge(game.board, name))
        else:
            after = draw_turn(game, opponent)
            edges = after.moves[len(game.moves) :]
            assert say("play " + " ".join(edge_name(game.board, e) for e in edges)) == ["=\n"]
            game = after
    assert say("score") == ["= {} {}\n".format(*game.score)]
    return game


def test_sau_names_every_edge_of_the_largest_board():
    board = DotsAndBoxes(LARGEST_SIDE, LARGEST_SIDE)
    edges = list(range(board.num_edges))
    assert sau_edges(board, sau_message(board, edges).split()[1:]) == edges


def by_sau(say: Say, game: RecordedGame, plays: int, opponent: Opponent) -> RecordedGame:
    said = say(f"new {'white' if plays else 'black'}")
    while not game.is_over:
        if game.player == plays:
            (message,) = said
            word, *turn = message.split()
            assert word == "move"
            for edge in sau_edges(game.board, turn):
                assert game.player == plays
                game = game.draw(edge)
            assert game.is_over or game.player != plays, "the whole turn is one message"
        else:
            assert not said
            after = draw_turn(game, opponent)
            said = say(sau_message(game.board, list(after.moves[len(game.moves) :])))
            game = after
            continue
        said = []
    say("end")
    return game


def by_botzone(say: Say, game: RecordedGame, plays: int, opponent: Opponent) -> RecordedGame:
    """Play a game as the platform does: it asks both sides in turn; the side not to move passes."""
    board, asked, request = game.board, 0, {"x": -1, "y": -1}
    squares = {(x, y): edge for edge, (x, y) in enumerate(lattice(board))}
    requests, responses = [], []
    while not game.is_over:
        if asked == plays:
            requests.append(request)
            # Sometimes the whole history, sometimes only the last request.
            whole = len(requests) == 1 or len(requests) % 3 == 0
            line = {"requests": requests, "responses": responses} if whole else request
            reply, marker = say(json.dumps(line))
            assert marker == KEEP_RUNNING
            place = json.loads(reply)["response"]
            responses.append(place)
            assert (place["x"] == -1) == (game.player != plays), reply
            if game.player == plays:
                game = game.draw(squares[place["x"], place["y"]])
        elif game.player == asked:
            edge = opponent(game)
            game, (x, y) = game.draw(edge), lattice(board)[edge]
            request = {"x": x, "y": y, "pass": 0}
        else:
            request = {"x": -1, "y": -1, "pass": 1}
        asked = 1 - asked
    return game


def lattice(board: DotsAndBoxes) -> list[tuple[int, int]]:
    horizontal = [(2 * r, 2 * c + 1) for r in range(board.rows + 1) for c in range(board.cols)]
    return horizontal + [
        (2 * r + 1, 2 * c) for r in range(board.rows) for c in range(board.cols + 1)
    ]


GAMES = {"gtp": by_gtp, "sau": by_sau, "botzone": by_botzone}


def at_random(rng: np.random.Generator, game: RecordedGame) -> int:
    return int(rng.choice(np.flatnonzero(~game.drawn)))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_whole_games_are_played_by_the_rules(engine, name):
    rng = np.random.default_rng(0)
    for number in range(6):
        opponent = partial(at_random, rng)
        say = partial(PROTOCOLS[name], engine)
        game = GAMES[name](say, RecordedGame(2, 2), number % 2, opponent)
        assert game.is_over and engine.game.board == BOARD


OUTER = "h0,0 h0,1 h2,0 h2,1 v0,0 v1,0 v0,2 v1,2"  # 8 edges; then every edge gives boxes
PASS = '{"response": {"x": -1, "y": -1}}'
# A dialogue for each protocol: a line and its answers. `*` stands for any text, TURN for the edges
# that the engine has just drawn, OTHER for edges that it has not drawn before, LAST for those that
# it drew last.
DIALOGUES = {
    "gtp": [
        ("1 protocol_version", ["=1 2"]),
        ("2 boardsize 2", ["=2"]),
        ("3 komi 6.5", ["=3"]),
        ("# a comment", []),
        ("4 genmov", ["?4 *"]),
        ("list_commands", ["= protocol_version"]),
        ("showboard", ["="]),
        ("analyze", ["= {*}"]),
        ("play b h0,0 h0,1", ["? *"]),  # a turn has passed after one edge
        ("play B H0,0", ["="]),
        ("genmove b", ["? *"]),
        ("genmove w", ["= TURN"]),
        ("undo", ["= LAST"]),
        ("undo", ["= h0,0"]),
        ("undo", ["? *"]),
        ("boardsize 0", ["? rows: 0 *"]),
        ("final_score", ["? *"]),
        (f"play {OUTER}", ["="]),
        ("play b h1,0", ["="]),
        ("play w v0,1 h1,1", ["="]),
        ("genmove w", ["= v1,1"]),
        ("genmove", ["? *"]),
        ("final_score", ["= W+4"]),
        ("42 quit", ["=42"]),
    ],
    "sau": [
        ("name?", ["name jaxzero"]),
        ("new black", ["OTHER"]),
        ("error illegal move", ["OTHER"]),  # another turn in place of the refused one
        ("end", []),
        ("move 1 AAA", ["error *"]),
        ("new white move", []),  # words of a message may stand on several lines
        ("1", []),
        ("AAA", ["TURN"]),
        ("move 2 AAAAAB", ["error *"]),
        ("new red", ["error *"]),
    ],
    "botzone": [
        ('{"requests": [{"x": 0, "y": 1}], "responses": []}', ['{"response": TURN}', KEEP_RUNNING]),
        ('{"x": -1, "y": -1, "pass": 1}', [PASS, KEEP_RUNNING]),
        ('{"x": 0, "y": 1}', [PASS[:-1] + ', "debug": "*"}', KEEP_RUNNING]),  # drawn before
        ("name?", [PASS[:-1] + ', "debug": "*"}', KEEP_RUNNING]),
        ("", []),
    ],
}


@pytest.mark.parametrize("protocol", DIALOGUES)
def test_a_dialogue_is_answered_line_by_line(engine, protocol):
    drew = []
    for line, expected in DIALOGUES[protocol]:
        before = engine.game
        answers = PROTOCOLS[protocol](engine, line)
        assert len(answers) == len(expected), (line, answers)
        for reply, pattern in zip(answers, expected, strict=True):
            if "TURN" in pattern or "OTHER" in pattern:
                drew.append(turn_of(engine, protocol, before))
                assert "OTHER" not in pattern or drew[-1] not in drew[:-1]
            for word in ("TURN", "OTHER", "LAST"):
                pattern = pattern.replace(word, drew[-1] if drew else "")
            wanted = re.escape(pattern).replace(r"\*", ".*")
            assert re.fullmatch(wanted, reply.splitlines()[0].rstrip()), (line, reply)
            assert protocol != "gtp" or (reply.endswith("\n") and "\n\n" not in reply[:-1])


def turn_of(engine: Session, protocol: str, before: RecordedGame) -> str:
    """Return the edges that the engine has just drawn, in the protocol's words; check the rules."""
    begun = before.moves if protocol == "botzone" else engine.past[-1].moves
    edges = list(engine.game.moves[len(begun) :])
    if protocol == "botzone":
        x, y = lattice(BOARD)[edges[-1]]
        return json.dumps({"x": x, "y": y})
    replayed = draw_turn(engine.past[-1], lambda game: edges[len(game.moves) - len(begun)])
    assert replayed == engine.game, "the whole turn and no more"
    if protocol == "sau":
        return sau_message(BOARD, edges)
    return " ".join(edge_name(BOARD, edge) for edge in edges)


def test_a_process_answers_every_line_once():
    lines = ["name", "5 play b \udcff", "", "genmove b", "x" * 10_000, "quit", "name"]
    command = ["scripts/engine.py", "--protocol", "gtp", "--weights", "2x2", "--seconds", "0.02"]
    done = subprocess.run(
        [sys.executable, *command],
        input="\r\n".join(lines).encode(errors="surrogateescape"),
        capture_output=True,
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr
    assert done.stdout.count(b"\n\n") == 5  # nothing after `quit` has an answer


def test_getting_ready_compiles_anew_where_other_boards_came_between(engine, monkeypatch):
    """Only programs of recent boards are kept; compiling must not use the clock of a decision."""
    asked = []
    monkeypatch.setattr(expert, "choose_edge", lambda *inputs: asked.append(inputs))
    monkeypatch.setattr(engine, "agent", jaxzero.load("5x5").agent)
    for _ in range(2):
        before = len(asked)
        gtp(engine, "boardsize 3 2")
        engine.get_ready().future.result(PATIENCE)
        assert len(asked) > before
        for cols in range(10, 10 + MAX_BOARDS):
            Programs(DotsAndBoxes(10, cols), "another board", object).get()
        assert not engine._programs().ready


def test_a_refused_turn_of_several_edges_begins_with_another(engine):
    """Two boxes can be taken: after every refusal the next turn is legal."""
    engine.plays, engine.game = 0, RecordedGame(2, 2, moves=(0, 2, 6, 1, 4, 3, 8, 5))
    assert engine.game.player == 0
    engine.refused, begun = set(), engine.game
    turns = [engine.play_turn()]
    for _ in range(len(np.flatnonzero(~begun.drawn)) - 1):
        (said,) = sau(engine, "error")
        turns.append(sau_edges(BOARD, said.split()[1:]))
        assert engine.past[-1] == begun
        replayed = draw_turn(begun, lambda game: turns[-1][len(game.moves) - len(begun.moves)])
        assert replayed == engine.game
    assert len({turn[0] for turn in turns}) == len(turns)


def test_time_for_a_turn_comes_from_the_clock_of_its_player(engine):
    say = partial(gtp, engine)
    for line in ("time_settings 100 30 5", "time_left b 50 0", "time_left w 20 4"):
        assert say(line) == ["=\n"]
    assert engine.full == Clock(100.0, 6.0) and engine.clocks == {0: Clock(50.0), 1: Clock(0, 5.0)}
    say("genmove b")
    assert engine.clocks[0].left < 50.0 and engine.clocks[1] == Clock(0, 5.0)
    say("clear_board")
    full = Clock(100.0, 6.0)
    assert engine.clocks == {0: full, 1: full}
    say("time_left 7")  # of the side to move
    assert engine.clocks == {0: Clock(7.0), 1: full}
    # One process may play both sides: each uses its own time.
    say("genmove b")
    used = engine.clocks[0].left
    say("genmove w")
    assert used < 7.0 and engine.clocks[0].left == used and engine.clocks[1].left < 100.0
    say("clear_board")
    engine.clocks[0].left = 1.0
    # Sending the whole history again starts no new game.
    botzone(engine, json.dumps({"requests": [{"x": -1, "y": -1}], "responses": []}))
    assert engine.clocks[0].left < 1.0
    say("time_settings 0 1 0")
    say("time_left 0")
    say("clear_board")
    assert engine.full is None and not engine.clocks
    # A decision without main time uses overtime, but never all of it.
    assert 0 < Clock(0.0, 10.0).for_decision(40, 16) < 10.0 < Clock(900.0, 1.0).for_decision(40, 16)


def test_rules_decide_while_the_engine_compiles_and_that_is_said(gate, monkeypatch):
    said = []
    monkeypatch.setattr(background, "_threads", ThreadPoolExecutor(1))  # idle, unlike ours
    monkeypatch.setattr(expert, "prepare", lambda _: gate.wait(PATIENCE))
    session = Session(jaxzero.load("5x5").agent, 0.05, tell=said.append)
    session.get_ready()
    for _ in range(3):
        edges = session.play_turn()
        assert edges and all(session.game.drawn[edges])
    assert len(said) == 2, "that it compiles, and once a game that simple rules answer"
    session.new_game()
    session.play_turn()
    assert len(said) == 3
    session.game = RecordedGame(5, 5, moves=tuple(range(session.board.num_edges - 12)))
    began = time.monotonic()
    session.seconds = PATIENCE
    assert exact_answer(session.board, session.game.drawn) == session.play_turn()[0]
    assert time.monotonic() - began < PATIENCE / 2, "the exact solver needs no compiler"


def test_the_newest_board_is_compiled_next_and_no_line_waits_for_another(gate, monkeypatch):
    compiled, begun, mine = [], threading.Event(), threading.current_thread()
    resize = engine_module.resize

    def traces(*arguments):
        assert threading.current_thread() != mine
        return resize(*arguments)

    def prepare(player: expert.Expert) -> None:
        begun.set()
        gate.wait(PATIENCE)
        compiled.append(player.board)

    monkeypatch.setattr(background, "_threads", ThreadPoolExecutor(1))
    monkeypatch.setattr(engine_module, "resize", traces)
    monkeypatch.setattr(expert, "prepare", prepare)
    monkeypatch.setattr(expert.Expert, "think", lambda *_: None)
    session = Session(jaxzero.load("5x5").agent, 0.01)
    gtp(session, "boardsize 2 3")
    assert begun.wait(PATIENCE)
    for line in ("boardsize 3 2", "clear_board", "boardsize 2 4", "genmove", "clear_board"):
        assert gtp(session, line)[0].startswith("=")
    gate.set()
    session.get_ready().future.result(PATIENCE)
    assert compiled == [DotsAndBoxes(2, 3), DotsAndBoxes(2, 4)]


def ponders(made: Session, board: DotsAndBoxes, monkeypatch) -> Session:
    """Return an engine that is ready on a board; its network values every position as 0."""
    guess = SimpleNamespace(value=0.0)
    player = SimpleNamespace(think=lambda *_: guess, board=board, entries=2**21)
    engine = Session(made.agent, seconds=0.02)
    monkeypatch.setattr(engine, "_expert", lambda _board: player)
    monkeypatch.setattr(Programs, "ready", True)
    return engine


def test_what_was_pondered_need_not_be_proven_again(made, monkeypatch):
    """After the opponent's move the proof finds most values in the table."""
    board, nodes = DotsAndBoxes(3, 3), {}
    engine = ponders(made, board, monkeypatch)
    drawn = np.random.default_rng(3).permutation(board.num_edges)[:3].tolist()
    for pondered in (False, True):
        expert._table.cache_clear()
        engine.game = RecordedGame(3, 3, moves=tuple(drawn[:2]))
        if pondered:
            engine.ponder()
            engine._pondering[1].join()
            engine.stop_pondering()
        engine.game = engine.game.draw(drawn[2])
        task = expert.task_of(engine._expert(board), engine.game.drawn, threads=1)
        proof.prove_value(task, 0.0)
        nodes[pondered] = task.control[null_window.NODES], task.value
    assert nodes[True][1] == nodes[False][1] == solve(board, drawn).value
    assert nodes[True][0] < nodes[False][0] / 2


def test_pondering_ends_when_it_is_told_to(made, monkeypatch):
    board = DotsAndBoxes(5, 5)
    engine = ponders(made, board, monkeypatch)
    engine.game = RecordedGame(
        5, 5, moves=tuple(range(12))
    )  # 48 edges are left: a proof would take days
    engine.ponder()
    thread = engine._pondering[1]
    time.sleep(0.1)
    assert thread.is_alive()
    engine.stop_pondering()
    assert not thread.is_alive() and engine._pondering is None


def test_a_turn_that_has_not_passed_is_refused(engine):
    """The other side closes a box, so it must draw another edge in the same message."""
    engine.game, engine.plays = RecordedGame(2, 2, moves=(0, 2, 6)), 0
    (said,) = sau(engine, sau_message(BOARD, [7]))
    assert said.startswith("error move: ") and len(engine.game.moves) == 3


def test_many_games_at_short_clocks_never_flag(monkeypatch):
    """Each decision takes all the time it has, plus a random delay of the machine."""
    rng, now = np.random.default_rng(0), SimpleNamespace(seconds=0.0)
    clock = SimpleNamespace(monotonic=lambda: now.seconds)
    monkeypatch.setattr("jaxzero.play.engine.time", clock)
    monkeypatch.setattr(Session, "_expert", lambda *_: expert.Expert(None, 1.0))
    monkeypatch.setattr(Programs, "ready", True)

    def use_all_the_time(made: expert.Expert, drawn: np.ndarray) -> int:
        now.seconds += made.seconds + rng.exponential(0.005)  # the delay of the machine
        return int(rng.choice(np.flatnonzero(~drawn)))

    monkeypatch.setattr(expert, "decide", use_all_the_time)
    for number in range(30):
        side = 5 if number % 20 == 0 else 2 + number % 2
        agent = SimpleNamespace(network=SimpleNamespace(board=DotsAndBoxes(side, side)))
        session = Session(agent, 2.0, Clock(float(rng.choice([1.5, 3.0, 10.0, 900.0]))))
        while not session.game.is_over:
            if session.game.player == number % 2:
                session.play_turn()
                assert session.clocks[number % 2].left > 0, (number, session.full)
            else:
                session.game = draw_turn(session.game, partial(at_random, rng))
