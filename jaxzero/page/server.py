"""The server of the page: the browser keeps the game, the server answers questions about it.

Every request carries the whole game, so nothing of one visitor is kept and none sees another's
game. All input is checked, sizes and times are bounded, and no text of a client becomes a path.
What a client no longer waits for is not computed.
"""

from __future__ import annotations

import errno
import json
import math
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, aclosing, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from jaxzero import __version__
from jaxzero.errors import InputError, shortened
from jaxzero.game import DotsAndBoxes
from jaxzero.game.notation import FORMATS, format_of, read_game, write_game
from jaxzero.game.recorded import RecordedGame
from jaxzero.host.status import waiting
from jaxzero.page.desk import PAUSE, Desk, TooMuch
from jaxzero.page.levels import (
    LEVELS,
    OWN_NETWORK,
    Level,
    agent_of,
    find_level,
    is_warm,
    needs_no_warmth,
    play_level,
    warm_up,
)
from jaxzero.play.analysis import (
    Analysis,
    Tables,
    judge_by_search,
    judge_exactly,
    stages,
)
from jaxzero.play.analysis_report import to_json
from jaxzero.play.game import Record
from jaxzero.play.looking import prepare
from jaxzero.players.preparation import PATIENCE as PATIENCE_FOR_MOVE
from jaxzero.players.preparation import PREPARATION
from jaxzero.solver.cancellation import check_cancelled
from jaxzero.solver.endgame import LARGEST_SIDE, solve

WEB = Path(__file__).parent / "web"
MOST_BYTES = 64 * 1024  # of a request
PATIENCE = 30.0  # seconds for a client to send its question, or to read a line
MOST_SIMULATIONS, MOST_SECONDS = 1024, 60
DEFAULT = DotsAndBoxes(5, 5)  # of the page at its start
REVIEW_SECONDS = 1.0  # of the solver for each position of a review
OF_PORT = (errno.EADDRINUSE, errno.EACCES)  # other errors are the host's
LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")
HEADERS = {
    # Nothing from another host, and no page of another host may show this one.
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}

Answer = dict[str, Any]
WAIT: Answer = {}  # no answer yet

TABLES = Tables()


def make_app(hosts: tuple[str, ...] = LOOPBACK) -> Starlette:
    """Return the application; requests to other `hosts` are refused."""
    desk = Desk()

    def answer(work: Callable[[Answer], Answer], ask: Callable = desk.ask) -> Endpoint:
        """Return an endpoint that answers a JSON question with JSON."""

        async def respond(question: Answer) -> Response:
            return JSONResponse(await ask(work, question))

        return Endpoint(respond)

    def stream(work: Callable[[Answer], Iterator[Answer]]) -> Endpoint:
        """Return an endpoint that answers with lines of JSON, each as soon as it is known."""

        async def respond(question: Answer) -> Response:
            return Lines(lines_in_turn(desk, work(question)), media_type="application/x-ndjson")

        return Endpoint(respond)

    async def ask_for_move(work: Callable[[Answer], Answer], question: Answer) -> Answer:
        await warm(question, record_of(question), PATIENCE_FOR_MOVE)
        return await desk.ask(work, question)

    async def warm(question: Answer, record: Record, patience: float = math.inf) -> None:
        """Have a level compiled, in turn; wait until it is ready or patience ends."""
        level, game = level_of(question)
        if not (is_warm(level, game) or needs_no_warmth(level, record)):
            with desk.place(), wanted_level(level, game), anyio.move_on_after(patience):
                while not is_warm(level, game):
                    await anyio.sleep(PAUSE)

    async def respond_when_warm(question: Answer) -> Response:
        await warm(question, Record(record_of(question).game))
        return JSONResponse({"ready": True})

    async def info(_request: Request) -> Response:
        return JSONResponse(about())

    routes = [
        Route("/api/info", info),
        Route("/api/warm", Endpoint(respond_when_warm), methods=["POST"]),
        Route("/api/move", answer(move, ask_for_move), methods=["POST"]),
        Route("/api/read", answer(read, anyio.to_thread.run_sync), methods=["POST"]),
        Route("/api/write", answer(write, anyio.to_thread.run_sync), methods=["POST"]),
        Route("/api/analyse", stream(analyse), methods=["POST"]),
        Route("/api/review", stream(review), methods=["POST"]),
        Mount("/", StaticFiles(directory=WEB, html=True, check_dir=False)),
    ]
    middleware = [
        Middleware(WithHeaders),
        Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts)),
    ]
    return Starlette(routes=routes, middleware=middleware)


class WithHeaders:
    """Add `HEADERS` to every response (ASGI)."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        async def send_more(message):
            if message["type"] == "http.response.start":
                more = [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        await self.app(scope, receive, send_more if scope["type"] == "http" else send)


@dataclass(frozen=True)
class Endpoint:
    """Answer a JSON question for as long as its client waits for the answer (ASGI)."""

    respond: Callable[[Answer], Awaitable[Response]]

    async def __call__(self, scope, receive, send):
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            async def send_in_time(message) -> None:
                with anyio.move_on_after(PATIENCE) as waiting:
                    return await send(message)
                if waiting.cancelled_caught:
                    group.cancel_scope.cancel()

            async def respond(question: Answer) -> Response:
                group.start_soon(watch)
                return await self.respond(question)

            response = await guarded(Request(scope, receive), respond)
            await response(scope, anyio.sleep_forever, send_in_time)
            group.cancel_scope.cancel()


class Lines(StreamingResponse):
    """Lines that end with their reader."""

    async def stream_response(self, send) -> None:
        async with aclosing(self.body_iterator):
            await super().stream_response(send)


async def guarded(request: Request, respond: Callable[[Answer], Awaitable[Response]]) -> Response:
    """Answer a question; what is wrong with it is one line with status 400."""
    try:
        return await respond(await body_of(request))
    except (InputError, ValueError) as error:
        return JSONResponse({"error": " ".join(str(error).split())}, 400)
    except TooMuch as error:
        return JSONResponse({"error": str(error)}, error.status)
    except ClientDisconnect:
        return Response(status_code=499)


async def body_of(request: Request) -> Answer:
    """Return the JSON object of a request. Raises: InputError, TooMuch."""
    origin = request.headers.get("origin")
    if origin and origin.split("//")[-1] != request.headers.get("host"):
        raise TooMuch(403, "requests from pages of other hosts are refused")
    data = bytearray()
    try:
        with anyio.fail_after(PATIENCE):
            async for part in request.stream():
                data += part
                if len(data) > MOST_BYTES:
                    raise TooMuch(413, f"body: more than {MOST_BYTES} bytes")
    except TimeoutError as error:
        raise TooMuch(408, f"body: did not come within {PATIENCE:g} seconds") from error
    try:
        found = json.loads(bytes(data))
    except (ValueError, RecursionError) as error:
        raise InputError("body: is not JSON") from error
    if not isinstance(found, dict):
        raise InputError("body: must be a JSON object")
    return found


async def lines_in_turn(desk: Desk, found: Iterator[Answer]) -> AsyncIterator[str]:
    """Yield answers as lines; each is worked out when it is this stream's turn.

    A line that says nothing new is left out.
    """
    last = None
    try:
        with closing(found), desk.place():
            while (line := await desk.turn(next, found, None)) is not None:
                if line == WAIT:
                    await anyio.sleep(PAUSE)
                elif line != last:
                    last = line
                    yield json.dumps(line) + "\n"
    except TooMuch as error:
        yield json.dumps({"error": str(error)}) + "\n"


def about() -> Answer:
    """Return what the page has to know at its start."""
    boards = [name.split("x") for name in OWN_NETWORK]
    return {
        "version": __version__,
        "boards": [
            {"rows": int(rows), "cols": int(cols), "name": f"{rows}x{cols}", "trained": True}
            for rows, cols in boards
        ],
        "sizes": {"min": 1, "max": LARGEST_SIDE},
        "default": {"rows": DEFAULT.rows, "cols": DEFAULT.cols},
        "levels": [{"id": str(i), "name": level.name} for i, level in enumerate(LEVELS)],
        "formats": list(FORMATS),
    }


def whole(
    question: Answer, name: str, lowest: int, highest: int, default: int | None = None
) -> int:
    """Return a whole number of a question. Raises: InputError naming field and value."""
    found = question.get(name, default)
    if isinstance(found, bool) or not isinstance(found, int) or not lowest <= found <= highest:
        shown = json.dumps(found)[:40]
        raise InputError(f"{name}: {shown} must be a whole number from {lowest} to {highest}")
    return found


def record_of(question: Answer) -> Record:
    """Return the game of a question. Raises: InputError."""
    rows, cols = (whole(question, name, 1, LARGEST_SIDE) for name in ("rows", "cols"))
    game = DotsAndBoxes(rows, cols)
    drawn: set[int] = set()
    edges: dict[str, tuple[int, ...]] = {}
    for name in ("start", "moves"):
        found = question.get(name, [])
        if not isinstance(found, list) or len(found) > game.num_edges:
            raise InputError(f"{name}: must be a list of at most {game.num_edges} edges")
        for edge in found:
            whole({name: edge}, name, 0, game.num_edges - 1)
            if edge in drawn:
                raise InputError(f"{name}: edge {edge} is drawn twice")
            drawn.add(edge)
        edges[name] = tuple(found)
    return Record(game, edges["moves"], edges["start"])


def level_of(question: Answer) -> tuple[Level, DotsAndBoxes]:
    """Return the level and the board of a question. Raises: InputError."""
    board = record_of({**question, "start": [], "moves": []}).game
    return find_level(text_of(question, "level", "5")), board


def text_of(question: Answer, name: str, default: str | None = None) -> str:
    found = question.get(name, default)
    if not isinstance(found, str) or len(found) > MOST_BYTES:
        raise InputError(f"{name}: must be a text")
    return found


def move(question: Answer) -> Answer:
    """Return the whole turn of the side to move, and who stood in for the level, if anybody."""
    record = record_of(question)
    level = find_level(text_of(question, "level", "5"))
    seed = whole(question, "seed", 0, 2**32 - 1, 0)
    if record.is_over:
        raise InputError("moves: the game is over")
    after, by = play_level(level, record, seed)
    return {"edges": list(after.moves[len(record.moves) :]), "by": by}


def read(question: Answer) -> Answer:
    """Return the game that a text holds."""
    text = text_of(question, "text")
    found = read_game(text)
    if max(found.rows, found.cols) > LARGEST_SIDE:
        raise InputError(
            f"text: a {found.rows}x{found.cols} board is beyond {LARGEST_SIDE}x{LARGEST_SIDE}"
        )
    return {"format": format_of(text), **found.to_json()}


def write(question: Answer) -> Answer:
    """Return a game as a text."""
    record, names = record_of(question), question.get("names", ["", ""])
    board = record.game.rows, record.game.cols
    title, date = text_of(question, "title", ""), text_of(question, "date", "")
    found = RecordedGame(*board, record.start, record.moves, names, title, date)
    return {"text": write_game(found, text_of(question, "format", "json"))}


def analyse(question: Answer) -> Iterator[Answer]:
    """Return better and better analyses of the position; the question is checked at once."""
    record = record_of(question)
    simulations = whole(question, "simulations", 0, MOST_SIMULATIONS, 256)
    seconds = whole(question, "seconds", 0, MOST_SECONDS, 10)
    return analyses(record, simulations, seconds)


def analyses(record: Record, simulations: int, seconds: int) -> Iterator[Answer]:
    """Yield better and better analyses, or WAIT while their programs compile.

    Where the first one proves every edge, no other is needed.
    """
    last: Answer = {"edges": []}
    for found in analyses_of(record, simulations, seconds):
        last = to_json(found)
        ready = found.is_exact or PREPARATION.is_done(record.game, prepare)
        yield {**last, "preparing": not ready}
        if found.is_exact:
            break
        if not ready:
            yield from until_prepared(record.game)
    yield {**last, "stage": "done", "preparing": False}


def until_prepared(game: DotsAndBoxes) -> Iterator[Answer]:
    """Yield WAIT until the programs of an analysis are compiled."""
    with PREPARATION.wanted(game, prepare, partial(prepare_board, game)):
        while not PREPARATION.is_done(game, prepare):
            yield WAIT


def prepare_board(game: DotsAndBoxes) -> None:
    """Compile the programs of an analysis; cancelled, end between them."""
    prepare(agent_of(game))
    check_cancelled()
    solve(game, range(game.num_edges - 1))


def wanted_level(level: Level, game: DotsAndBoxes) -> AbstractContextManager[None]:
    """Have a level compiled for a board, in turn, unless the block ends before."""
    return PREPARATION.wanted(game, level, partial(warm_up, level, game))


def analyses_of(record: Record, simulations: int, seconds: float) -> Iterator[Analysis]:
    agent = agent_of(record.game)
    return stages(agent, record.drawn, record.margin, simulations, seconds, TABLES)


def review(question: Answer) -> Iterator[Answer]:
    """Return what the moves of a game were worth; the question is checked at once."""
    record = record_of(question)
    return reviews(record, whole(question, "simulations", 1, MOST_SIMULATIONS, 64))


def reviews(record: Record, simulations: int) -> Iterator[Answer]:
    """Yield the expected end of every position, and what the move before it lost.

    Yields WAIT while the programs compile.
    """
    before: Answer | None = None
    for ply in range(len(record.moves) + 1):
        here = record.cut(ply)
        line = {"ply": ply, "player": here.player, "exact": True, "best": None}
        sign = 1 if here.player == 0 else -1
        value = 0.0
        if not here.is_over:
            found = judge_exactly(here.game, here.drawn, REVIEW_SECONDS, TABLES)
            if found is None:
                yield from until_prepared(here.game)
                found = judge_by_search(agent_of(here.game), here.drawn, simulations)
            value = found.value
            line |= {"exact": found.exact, "best": found.best}
        line["margin"] = round(sign * (here.margin + value), 2)
        if before is not None:
            mover = 1 if before["player"] == 0 else -1
            loss = max(0.0, mover * (before["margin"] - line["margin"]))
            yield {**before, "lost": round(loss, 2)}
        before = line
    yield {**before, "lost": None}
    yield {"done": True}


def serve(
    host: str, port: int, make: Callable[[tuple[str, ...]], Starlette] = make_app, to: str = "Play"
) -> None:
    """Serve a page until interrupted. Raises: InputError where the port is taken."""
    import uvicorn

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except (OSError, TypeError, UnicodeError) as error:  # the last two: no valid name of a host
        number = getattr(error, "errno", None)
        why = os.strerror(number) if number and number > 0 else str(error).partition(" (while")[0]
        if number in OF_PORT:
            raise InputError(f"port: {port} of host {host} cannot be used ({why})") from error
        raise InputError(f"host: {shortened(host)} cannot be used ({why})") from error
    hosts = LOOPBACK if host in LOOPBACK else ("*",)
    if host not in LOOPBACK:
        print(f"WARNING: everyone who reaches {host} can use this server; it knows no passwords")
    port = listening.getsockname()[1]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    print(f"{to} at http://{shown}:{port}/ (Ctrl-C ends)", flush=True)
    if make is make_app:
        PREPARATION.begin(DEFAULT, prepare, partial(prepare_board, DEFAULT))
    config = uvicorn.Config(
        make(hosts),
        # Others would hide signals from `interrupts`, which ends also what compiles.
        loop="asyncio",
        log_level="error",
        ws="none",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
    )
    with listening, waiting():
        uvicorn.Server(config).run(sockets=[listening])
