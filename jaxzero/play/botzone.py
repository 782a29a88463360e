"""Speak the JSON protocol of botzone.org.cn.

A place is a point of the lattice of dots, edges and boxes: x from 0 to 2 * rows, y to 2 * cols.
"""

import json
from itertools import zip_longest
from typing import Any

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, edge_name
from jaxzero.game.records import RecordedGame
from jaxzero.game.text import place_of
from jaxzero.play.engine import Session

KEEP_RUNNING = ">>>BOTZONE_REQUEST_KEEP_RUNNING<<<"


def botzone(engine: Session, line: str) -> list[str]:
    """Answer a line, which holds the whole game so far or only the next request.

    The answer is -1, -1 when the opponent is to move, the game is over or the line is invalid.
    """
    if not line.strip():
        return []
    answer: dict[str, Any] = {"response": {"x": -1, "y": -1}}
    try:
        _take_in(engine, line)
        game = engine.game
        if game.player == engine.plays and not game.is_over:
            edge = engine.choose(game)
            engine.game = game.draw(edge)
            x, y = places(engine.board)[edge]
            answer = {"response": {"x": x, "y": y}}
    except (ValueError, RecursionError) as error:  # `json.dumps` of deeply nested input fails too
        answer["debug"] = str(error)
    return [json.dumps(answer), KEEP_RUNNING]


def _take_in(engine: Session, line: str) -> None:
    """Draw all edges that a line reports, or none if one is illegal. Raises: InputError."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError("line: is not JSON") from error
    if not isinstance(said, dict):
        raise InputError("line: must be a JSON object")
    board, game, plays = engine.board, engine.game, engine.plays
    if "requests" in said:
        requests, responses = said["requests"], said.get("responses", [])
        if not (isinstance(requests, list) and isinstance(responses, list) and requests):
            raise InputError("requests: must be a list with at least one request")
        asked = [_edge_at(board, request) for request in requests]
        own = [_edge_at(board, response) for response in responses[: len(asked)]]
        game, plays = RecordedGame(board.rows, board.cols), 0 if asked[0] is None else 1
    else:
        asked, own = [_edge_at(board, said)], []
        if plays is None:
            plays = 0 if asked[0] is None else 1
    for turn in zip_longest(asked, own):  # the other side's edge, then the engine's own
        for edge, who in zip(turn, (1 - plays, plays), strict=True):
            if edge is None:
                continue
            if game.player != who:
                raise InputError(f"{edge_name(board, edge)}: the other side was to move")
            game = game.draw(edge)
    if game.moves[: len(engine.game.moves)] != engine.game.moves:
        engine.new_game()  # another game begins, with full clocks
    engine.game, engine.plays = game, plays


def _edge_at(board: DotsAndBoxes, said: Any) -> int | None:
    """Return the edge at a place; None for a pass, -1, -1. Raises: InputError."""
    x, y = (said.get(name) for name in "xy") if isinstance(said, dict) else (None, None)
    if x == -1 and y == -1:
        return None
    # `type` and not `==`: 1.0 and True equal 1.
    if type(x) is not int or type(y) is not int or (x, y) not in places(board):
        raise InputError(f"x, y: {json.dumps([x, y])[:60]} is no edge of a {board} board")
    return places(board).index((x, y))


def places(board: DotsAndBoxes) -> list[tuple[int, int]]:
    """Return the place (x, y) of every edge; x counts rows."""
    places = (place_of(board, edge) for edge in range(board.num_edges))
    return [(2 * row + (kind == "v"), 2 * col + (kind == "h")) for kind, row, col in places]
