"""A client for the application of the page that may leave."""

from __future__ import annotations

import json
import threading

import anyio

GAME = {"rows": 2, "cols": 2, "start": [], "moves": []}
GZIP = (b"accept-encoding", b"gzip, deflate, br")
PATIENCE = 60  # seconds until a test fails instead of hanging


class Client:
    """One request and its response: the status, the body, and the complete lines of the body."""

    def __init__(self, path: str, question: object = None, host: str = "localhost", **other):
        self.path, self.method = path, other.get("method", "POST")
        self.data = question if isinstance(question, bytes) else json.dumps(question).encode()
        self.headers = [(b"host", host.encode()), *other.get("headers", ())]
        self.status: int | None = None
        self.answer_headers: dict[str, str] = {}
        self.body = bytearray()
        self._left = threading.Event()

    @property
    def json(self) -> dict:
        return json.loads(bytes(self.body))

    @property
    def lines(self) -> list[dict]:
        return [json.loads(line) for line in self.body.rpartition(b"\n")[0].splitlines()]

    def leave(self) -> None:
        self._left.set()

    async def ask(self, app) -> Client:
        """Send the request; wait until the server has answered or noticed that the client left."""
        parts = [self.data[i : i + 1000] for i in range(0, len(self.data), 1000)] or [b""]
        scope = {"type": "http", "http_version": "1.1", "method": self.method, "path": self.path}
        scope |= {"raw_path": self.path.encode(), "query_string": b"", "root_path": ""}
        scope |= {"scheme": "http", "server": ("here", 80), "asgi": {"version": "3.0"}}
        scope["headers"] = self.headers

        async def receive():
            if parts:
                part, more = parts.pop(0), bool(parts)
                return {"type": "http.request", "body": part, "more_body": more}
            while not self._left.is_set():
                await anyio.sleep(0.01)
            return {"type": "http.disconnect"}

        async def send(message):
            if message["type"] == "http.response.start":
                self.status = message["status"]
                answer_headers = message["headers"]
                self.answer_headers = {
                    name.decode(): text.decode() for name, text in answer_headers
                }
                assert self.answer_headers["content-security-policy"]
            self.body.extend(message.get("body", b""))

        with anyio.fail_after(PATIENCE):
            await app(scope, receive, send)
        return self
