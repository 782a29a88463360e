"""Dialogues of programs with the engine on 2x2: data of `test_protocols.py`.

A dialogue is a protocol and pairs of a line and its answers. In an answer `*` stands for any text,
TURN for the edges that the engine has just drawn, OTHER for edges that it has not drawn before in
this dialogue, and LAST for the edges that it drew last. Only the first line of an answer counts.
`drawn` is the number of edges at the end, or the edges in their order.
"""

from __future__ import annotations

import json
from typing import NamedTuple


class Dialogue(NamedTuple):
    """One dialogue; `drawn` has the names of the edges at the end, or their number."""

    protocol: str
    pairs: list[tuple[str, list[str]]]
    drawn: str | int


Said = str | tuple[str, str]  # lines joined by |, then -> and the answer to each; or one pair


def pairs_of(said: tuple[Said, ...]) -> list[tuple[str, str]]:
    """Return pairs of a line and its answer; an empty answer means no answer."""
    pairs = []
    for one in said:
        if isinstance(one, str):
            lines, _, answer = one.rpartition("->")
            pairs += [(line.strip(), answer.strip()) for line in lines.split(" | ")]
        else:
            pairs.append(one)
    return pairs


def gtp(*said: Said, drawn: str | int = 0) -> Dialogue:
    """Return a dialogue in which every command has one answer; an empty answer means none."""
    return Dialogue(
        "gtp", [(line, [answer] if answer else []) for line, answer in pairs_of(said)], drawn
    )


def sau(*said: Said, drawn: str | int = 0) -> Dialogue:
    """Return a dialogue in which a line may have several answers, with a | between them."""
    split = [(line, answer.split("|") if answer else []) for line, answer in pairs_of(said)]
    return Dialogue("sau", split, drawn)


def botzone(*said: Said, drawn: str | int = 0) -> Dialogue:
    """Return a dialogue in which every line has TURN, PASS, WRONG or no answer."""
    answers = {
        "PASS": '{"response": {"x": -1, "y": -1}}',
        "WRONG": '{"response": {"x": -1, "y": -1}, "debug": "*"}',
        "TURN": '{"response": TURN}',
        "": "",
    }
    marker = ">>>BOTZONE_REQUEST_KEEP_RUNNING<<<"
    split = [(line, [answers[answer], marker] if answer else []) for line, answer in pairs_of(said)]
    return Dialogue("botzone", split, drawn)


def begin(*requests: tuple[int, int], responses: tuple[tuple[int, int], ...] = ()) -> str:
    """Return the first line of a Botzone game."""
    said = {"requests": requests, "responses": responses}
    return json.dumps(
        {name: [{"x": x, "y": y} for x, y in places] for name, places in said.items()}
    )


OUTER = "h0,0 h0,1 h2,0 h2,1 v0,0 v1,0 v0,2 v1,2"  # 8 edges; then every edge gives boxes
LOST = f"{OUTER} h1,0 v0,1 h1,1 v1,1"  # b opens, w takes all four boxes
THIRD = "h0,0 h1,0 v0,0"  # the side that moves next takes a box with v0,1

DIALOGUES = {
    "tabs and blanks stand between words": gtp(
        ("1\tprotocol_version", "=1 2"),
        ("2\tplay\tb\th0,0", "=2"),
        (" \t 3 \t play   w \t h0,1 \t ", "=3"),
        ("\tscore\t", "= 0 0"),
        drawn="h0,0 h0,1",
    ),
    "a lone number has an answer, a comment has none": gtp(
        ("", ""),
        ("   ", ""),
        ("\t", ""),
        "# 4 name ->",
        "5 -> ?5 *",
        "6 # name -> ?6 *",
        "7# -> ?7 *",
        "8 name # who -> =8 jaxzero",
        "9 name#who -> =9 jaxzero",
        "#play b h0,0 ->",
    ),
    "numbers come back as they were": gtp(
        "0 name -> =0 jaxzero",
        "00012 score -> =00012 0 0",
        "4294967296 name -> =4294967296 jaxzero",
        "4294967296 nam -> ?4294967296 *",
        "-1 name | 1.5 name | ²3 name -> ? *",
        ("9" * 5000 + " name", "? *"),
        "12name -> ? *",
        "1 1 name -> ?1 *",
    ),
    "Sabaki begins": gtp(
        "1 name -> =1 jaxzero",
        "2 version -> =2 *",
        "3 protocol_version -> =3 2",
        "4 list_commands -> =4 protocol_version",
        "5 boardsize 2 -> =5",
        "6 clear_board -> =6",
        "7 komi 6.5 -> =7",
        "8 play B H0,0 -> =8",
        "9 genmove W -> =9 TURN",
        "10 undo -> =10 LAST",
        "11 undo -> =11 h0,0",
    ),
    "gogui-twogtp plays two turns": gtp(
        "protocol_version -> = 2",
        "known_command time_settings | known_command final_score -> = true",
        "known_command gogui-interrupt -> = false",
        "boardsize 2 | time_settings 600 0 0 | komi 0 | clear_board -> =",
        "time_left b 600 0 -> =",
        "genmove b -> = TURN",
        "time_left w 600 0 -> =",
        "genmove w -> = TURN",
        "final_score -> ? *",
        drawn=2,
    ),
    "colours are of the players": gtp(
        "genmove w | play w h0,0 | play white h0,0 | play b h0,0 h0,1 -> ? *",
        "play black h0,0 -> =",
        "play b h0,1 | genmove B | genmove BLACK | genmove red | genmove w w -> ? *",
        "play w h0,0 | play w pass | play w resign -> ? *",
        "play w h0,1 -> =",
        drawn="h0,0 h0,1",
    ),
    "who closes a box moves again": gtp(
        f"play {THIRD} | play w v0,1 -> =",
        "score -> = 0 1",
        "play b h0,1 | genmove b -> ? *",
        "play w h2,0 -> =",
        "play w h2,1 -> ? *",
        "play b h2,1 -> =",
        drawn=f"{THIRD} v0,1 h2,0 h2,1",
    ),
    "a turn of several edges has one answer": gtp(
        f"play {THIRD} -> =",
        "genmove w -> = TURN",
        "undo -> = LAST",
        "genmove -> = TURN",
        "undo -> = LAST",
        f"undo -> = {THIRD}",
        "undo -> ? *",
    ),
    "the game is over": gtp(
        "final_score -> ? *",
        f"play {OUTER} | play b h1,0 | play w v0,1 h1,1 -> =",
        "final_score -> ? *",
        "genmove w -> = v1,1",
        "genmove | genmove b | genmove w | analyze | play b h0,0 | play w v1,1 -> ? *",
        "score -> = 0 4",
        "final_score -> = W+4",
        "showboard -> =",
        "undo -> = v1,1",
        "genmove w -> = TURN",
        drawn=LOST,
    ),
    "komi is ignored": gtp(
        f"play {LOST} | komi 6.5 -> =",
        "komi | komi 1 2 | final_score b -> ? *",
        "final_score -> = W+4",
        drawn=LOST,
    ),
    "undo returns to before a command": gtp(
        "undo -> ? *",
        f"play {THIRD} | play v0,1 -> =",
        "play h9,9 | undo 2 -> ? *",
        "undo -> = v0,1",
        f"undo -> = {THIRD}",
        "undo -> ? *",
        "play h2,0 | clear_board -> =",
        "undo -> ? *",
    ),
    "clocks are of players": gtp(
        "time_settings 300 30 5 | time_left w 290 0 | time_left b 3 0 -> =",
        "time_left white 30 5 | time_left 290 -> =",
        "time_left | time_left w | time_left w 290 0 1 | time_left w x 0 -> ? *",
        "time_left w nan 0 | time_left w -1 0 | time_left w 1e99 0 -> ? *",
        "genmove b | genmove w -> = TURN",
        drawn=2,
    ),
    "a clock may be set and taken away": gtp(
        "time_settings 0 1 0 | time_settings 0 2 1 -> =",
        "genmove b -> = TURN",
        "time_settings 0 0 0 -> =",
        "genmove w -> = TURN",
        "time_settings | time_settings 300 | time_settings 300 30 -> ? *",
        "time_settings a b c | time_settings -1 0 0 | time_settings inf 0 0 -> ? *",
        "time_settings 1 2 3 4 -> ? *",
        drawn=2,
    ),
    "boards that there are not": gtp(
        "play h0,0 -> =",
        "boardsize 0 -> ? rows: 0 *",
        *(
            (f"boardsize {size}", "? *")
            for size in ("8", "19", "a", "2 2 2", "2.5", "2x2", "-1", "9999", "٣")
        ),
        "boardsize | clear_board 2 -> ? *",
        "score -> = 0 0",
        drawn="h0,0",
    ),
    "unknown words": gtp(
        "genmov -> ? *genmov*",
        "PLAY h0,0 | loadsgf x.sgf | play | play b | play h0,0 h0,0 | play h0 -> ? *",
        ("play " + "x" * 100_000, "? *"),
        ("play " + "9" * 5000, "? *"),
        ("x" * 100_000, "? *"),
        "你好 -> ? *",
        "known_command | known_command 你好 -> = false",
        "showboard all | score b | undo h0,0 -> ? *",
    ),
    "signs that cannot be seen": gtp(
        ("\ufeff1 name", "=1 jaxzero"),
        ("na\x00me", "= jaxzero"),
        ("2 na\x07me\r", "=2 jaxzero"),
        ("3\u00a0name", "=3 jaxzero"),
        ("\x00", ""),
        ("\x1b[A", "? *"),
        ("\ufffd\ufffd", "? *"),
    ),
    "the end of a session": gtp(("play h0,0", "="), ("42 quit", "=42"), drawn="h0,0"),
    "a platform begins": sau(
        "name? -> name jaxzero",
        "new black -> TURN",
        "end ->",
        "name? -> name jaxzero",
        "new white ->",
        "move 1 AAA -> TURN",
        drawn=2,
    ),
    "words of a message stand on several lines": sau(
        "new ->",
        ("", ""),
        "white | move | 1 ->",
        ("\t", ""),
        "AAA -> TURN",
        "end | end end | move 1 ->",
        "new -> error *",
        "black -> TURN",
        drawn=1,
    ),
    "messages stand on one line": sau(
        "name? new black -> name jaxzero|TURN",
        "new white move 1 AAA -> TURN",
        ("name?\tname?", "name jaxzero|name jaxzero"),
        ("\ufeffnew\twhite\r", ""),
        (" move\t1\tAAA ", "TURN"),
        drawn=2,
    ),
    "a refused move is taken back": sau(
        "new black | error | error illegal move -> OTHER",
        ("\terror ", "OTHER"),
        drawn=1,
    ),
    "every move is refused": sau(
        "new black -> OTHER",
        *[("error", "OTHER")] * 11,
        "error -> error *",
        "error ->",
        "new black -> TURN",
        drawn=1,
    ),
    "an error of another message changes nothing": sau(
        "error | new white | error ->",
        "move x -> error *",
        "error ->",
        "move 1 AAA -> TURN",
        "what -> error *",
        "error | move 9 ->",
        "AAA -> error *",
        "error ->",
        drawn=2,
    ),
    "messages that are none": sau(
        "new red -> error *",
        "new name? -> error *|name jaxzero",
        "move 1 AAA -> error *",
        "new white ->",
        "move 1 AAZ | move 2 AAA | move 0 AAA | move 1 AAAA | move -1 AAA -> error *",
        ("move " + "9" * 5000 + " AAA", "error *"),
        ("move 1 " + "A" * 100_000, "error *"),
        "move 2 AAAAAA | move 2 AAAAAB -> error *",
        "move 2 name? -> error *|name jaxzero",
        "MOVE 1 AAA | move 1 aaa | move ² AAA | move one edge | 你好 -> error *",
        ("x" * 100_000, "error *"),
    ),
    "nothing is said after quit": sau(
        "name? quit name? new black -> name jaxzero",
    ),
    "a game ends early": sau(
        "new black -> TURN",
        "end black wins ->",
        "move 1 AAB -> error *",
        "new white | end | quit ->",
    ),
    "who begins is told by the first request": botzone(
        ("\ufeff" + begin((-1, -1)) + "\r", "TURN"),
        (begin((0, 1)), "TURN"),
        drawn=2,
    ),
    "one request after another": botzone(
        (begin((0, 1)), "TURN"),
        '{"x": -1, "y": -1, "pass": 1} -> PASS',
        '{"x": 0, "y": 1} -> WRONG',
        ("", ""),
        ("\r", ""),
        '{"x": -1, "y": -1} -> PASS',
        drawn=2,
    ),
    "a whole history": botzone(
        (begin((0, 1), (0, 3), responses=((2, 1),)), "TURN"),
        (begin((0, 1), (0, 3), responses=((0, 1),)), "WRONG"),
        (begin((0, 1), (0, 1), responses=((2, 1),)), "WRONG"),
        (begin((0, 1), (0, 3), responses=((2, 2),)), "WRONG"),
        drawn=4,
    ),
    "places that are no edges": botzone(
        '{"x": 0, "y": 0} | {"x": 1, "y": 1} | {"x": 5, "y": 0} -> WRONG',
        '{"x": -2, "y": 1} | {"x": 1.0, "y": 0} | {"x": "1", "y": 0} -> WRONG',
        '{"x": true, "y": 0} | {"x": NaN, "y": 0} | {"x": Infinity, "y": 0} -> WRONG',
        '{"x": 1e400, "y": 0} -> WRONG',
        ('{"x": ' + "9" * 5000 + ', "y": 0}', "WRONG"),
        '{"x": {}, "y": []} | {"x": 1} | {} -> WRONG',
        ('{"x": "\\ud800", "y": "\\udfff"}', "WRONG"),  # unpaired surrogates
        # Nesting near the limit: Python reads some depths that it cannot write.
        *(
            (f'{{"x": {"[" * deep + "]" * deep}, "y": 0}}', "WRONG")
            for deep in (900, 960, 980, 985, 990, 995, 1000)
        ),
    ),
    "lines that are no requests": botzone(
        "{ | null | [] | 3 | name? | genmove b -> WRONG",
        ("[" * 9999, "WRONG"),
        ('{"a":' * 9999, "WRONG"),
        ("x" * 100_000, "WRONG"),
        '{"requests": []} | {"requests": null} | {"requests": "x"} -> WRONG',
        '{"requests": [null]} | {"requests": [[0, 1]]} -> WRONG',
        '{"requests": [{"x": 0, "y": 1}], "responses": null} -> WRONG',
        '{"requests": [{"x": 0, "y": 1}, {"x": 0, "y": 3}], "responses": [7]} -> WRONG',
    ),
    "more answers than questions": botzone(
        (begin((-1, -1), responses=((0, 1), (0, 1))), "PASS"),
        drawn=1,
    ),
    "the end of a game": botzone(
        (
            begin(
                *((0, 1), (4, 1), (1, 0), (1, 4), (2, 1), (-1, -1), (-1, -1), (-1, -1)),
                responses=((0, 3), (4, 3), (3, 0), (3, 4), (1, 2), (2, 3), (3, 2)),
            ),
            "PASS",
        ),
        '{"x": -1, "y": -1} -> PASS',
        drawn=12,
    ),
}
