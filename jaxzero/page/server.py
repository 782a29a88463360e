"""Serve the page: the browser keeps the game, and the server answers questions about it.

Every request carries the whole game, so the server keeps no games and no visitor sees the game of
another. Sizes and times are bounded, and no text of a client becomes a path. When its client
leaves, a stream ends after its present answer.
"""

import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes
from jaxzero.page import answers
from jaxzero.page.answers import WAIT, Answer
from jaxzero.page.web_files import web_routes
from jaxzero.play.opponents import analysis_programs, programs_of
from jaxzero.play.problems import SOLVER

DEFAULT = DotsAndBoxes(3, 3)  # board of the page at its start
MAX_BYTES = 2**21  # of a request body; in JSON a game of 1 MiB may take twice its bytes
AT_ONCE = 2  # questions answered at the same time; others wait
MAX_WAITING = 200  # questions and streams; more are refused
PAUSE = 0.1  # seconds between two polls
LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")
OTHER_HOST = (
    "Invalid host header: this page answers to localhost only. Start it with --host NAME or with "
    "--host 0.0.0.0 to let other names in; then everyone who reaches the machine can use it."
)
HEADERS = {
    # Load nothing from other hosts, and let no page embed this page.
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def make_app(hosts: tuple[str, ...] = LOOPBACK) -> Starlette:
    """Return the application, which refuses requests to hosts not in `hosts`."""
    queue = Queue()

    async def info(_request: Request) -> Response:
        return JSONResponse(answers.about())

    async def warm(question: Answer) -> Response:
        """Answer when a level is compiled."""
        level, board = answers.level_of(question), answers.game_of(question).board
        await compiled(queue, programs_of(level, board).waits())
        return JSONResponse({"ready": True})

    async def move(question: Answer) -> Response:
        await warm(question)
        return JSONResponse(await queue.ask(answers.move, question))

    async def problem(question: Answer) -> Response:
        """Answer when the solver is compiled; the first compilation takes seconds."""
        await compiled(queue, SOLVER.waits())
        return JSONResponse(await queue.ask(answers.problem, question))

    async def read(question: Answer) -> Response:
        return JSONResponse(await anyio.to_thread.run_sync(answers.read, question))

    async def write(question: Answer) -> Response:
        return JSONResponse(await anyio.to_thread.run_sync(answers.write, question))

    async def analyse(question: Answer) -> Response:
        return Lines(lines_in_turn(queue, answers.analyse(question)))

    async def review(question: Answer) -> Response:
        return Lines(lines_in_turn(queue, answers.review(question)))

    questions = (warm, move, problem, read, write, analyse, review)
    routes = [
        Route("/api/info", info),
        *(Route(f"/api/{ask.__name__}", Endpoint(ask), methods=["POST"]) for ask in questions),
        *web_routes(),
    ]
    middleware = [
        Middleware(WithHeaders),
        Middleware(KnownHosts, hosts=hosts),
        # Compression would delay lines.
        Middleware(GZipMiddleware, exclude_content_types=(Lines.media_type,)),
    ]
    return Starlette(routes=routes, middleware=middleware)


class KnownHosts:
    """Refuse requests to other hosts than `hosts`, and say how to let them in (ASGI)."""

    def __init__(self, app, hosts: tuple[str, ...]):
        self.app, self.hosts = app, hosts

    async def __call__(self, scope, receive, send):
        known = False

        async def answer(*asgi):
            nonlocal known
            known = True
            await self.app(*asgi)

        async def send_known(message):
            if known:
                await send(message)

        await TrustedHostMiddleware(answer, list(self.hosts))(scope, receive, send_known)
        if not known:
            await PlainTextResponse(OTHER_HOST, 400)(scope, receive, send)


class WithHeaders:
    """Add the `HEADERS` that a response has not set (ASGI)."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        async def send_more(message):
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, send_more)


@dataclass(frozen=True)
class Endpoint:
    """Answer a JSON question, unless the client stops waiting before its turn (ASGI)."""

    respond: Callable[[Answer], Awaitable[Response]]

    async def __call__(self, scope, receive, send):
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            try:
                question = await question_of(Request(scope, receive))
                group.start_soon(watch)
                response = await self.respond(question)
            except ValueError as error:
                response = JSONResponse({"error": " ".join(str(error).split())}, 400)
            except HTTPException as error:
                response = JSONResponse({"error": error.detail}, error.status_code)
            except ClientDisconnect:
                return
            await response(scope, anyio.sleep_forever, send)
            group.cancel_scope.cancel()


async def question_of(request: Request) -> Answer:
    """Return the JSON object of a request. Raises: InputError, HTTPException."""
    origin = request.headers.get("origin")
    if origin and origin.split("//")[-1] != request.headers.get("host"):
        raise HTTPException(403, "requests from pages of other hosts are refused")
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > MAX_BYTES:
            raise HTTPException(413, f"body: more than {MAX_BYTES} bytes")
    try:
        found = json.loads(bytes(data))
    except (ValueError, RecursionError) as error:
        raise InputError("body: is not JSON") from error
    if not isinstance(found, dict):
        raise InputError("body: must be a JSON object")
    return found


class Lines(StreamingResponse):
    """Send lines of JSON as they come; close their source when the client goes away."""

    media_type = "application/x-ndjson"

    async def stream_response(self, send) -> None:
        async with aclosing(self.body_iterator):
            await super().stream_response(send)


class Queue:
    """Answer a few questions at a time while a limited number of others wait.

    So the page itself always loads at once. Separate threads compile programs, and a question polls
    until its programs are ready. A question that no client waits for any more leaves the queue.
    """

    def __init__(self) -> None:
        self._waiting = 0
        self._turns: anyio.CapacityLimiter | None = None

    async def ask(self, work: Callable, *question: Any) -> Any:
        """Return the result of `work`, run in a thread when it is this question's turn.

        Other threads stay free for the page. Raises: HTTPException if too many questions wait.
        """
        with self.place():
            return await self.turn(work, *question)

    async def turn(self, work: Callable, *question: Any) -> Any:
        """Return the result of `work`, run in a thread in turn, for a caller that holds a place."""
        self._turns = self._turns or anyio.CapacityLimiter(AT_ONCE)  # needs the running event loop
        return await anyio.to_thread.run_sync(work, *question, limiter=self._turns)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place in the queue. Raises: HTTPException if the queue is full."""
        if self._waiting >= MAX_WAITING:
            raise HTTPException(503, f"{MAX_WAITING} questions wait already; try again later")
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1


async def compiled(queue: Queue, waits: Iterator[float]) -> None:
    """Wait until programs are compiled. Raises: HTTPException if the queue is full."""
    with queue.place(), closing(waits):
        for _ in waits:
            await anyio.sleep(PAUSE)


async def lines_in_turn(queue: Queue, found: Iterator[Answer]) -> AsyncIterator[str]:
    """Yield answers as lines, each computed in this stream's turn; leave out repeated lines."""
    last = None
    try:
        with closing(found), queue.place():
            while (line := await queue.turn(next, found, None)) is not None:
                if line == WAIT:
                    await anyio.sleep(PAUSE)
                elif line != last:
                    last = line
                    yield json.dumps(line) + "\n"
    except HTTPException as error:
        yield json.dumps({"error": error.detail}) + "\n"


def serve(host: str, port: int) -> None:
    """Serve the page until interrupted. Raises: InputError if host or port cannot be used."""
    import uvicorn

    is_v6 = ":" in host
    try:
        family = socket.AF_INET6 if is_v6 else socket.AF_INET
        listening = socket.create_server((host, port), family=family)
    except (OSError, OverflowError, TypeError, UnicodeError) as error:  # of the host or the port
        why = str(error).partition(" (while")[0]
        raise InputError(f"host, port: {host}, {port} cannot be used ({why})") from error
    if host not in LOOPBACK:
        print(f"WARNING: everyone who reaches {host} can use this server; it knows no passwords")
    shown = f"[{host}]" if is_v6 else host
    port = listening.getsockname()[1]  # any that is free, for port 0
    print(f"Play at http://{shown}:{port}/ (Ctrl-C ends)", flush=True)
    analysis_programs(DEFAULT).begin()
    app = make_app(LOOPBACK if host in LOOPBACK else ("*",))
    config = uvicorn.Config(app, log_level="error", ws="none", timeout_graceful_shutdown=1)
    with listening:
        uvicorn.Server(config).run(sockets=[listening])
