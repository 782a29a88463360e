"""Serve the files of the page; the browser caches them.

Each address contains the version of all files, such as /v-1a2b3c4d/app.js, so the browser fetches a
file only once for each version. It requests / on each visit, and that page names the version.
"""

import hashlib
import json
import mimetypes
import re
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

WEB = Path(__file__).parent / "web"
FOREVER = "public, max-age=31536000, immutable"


def web_routes() -> list[BaseRoute]:
    """Return the routes of the page, its files and its service worker."""
    paths = sorted(path for path in WEB.rglob("*") if path.is_file())
    names = [path.relative_to(WEB).as_posix() for path in paths]
    content = hashlib.sha256()
    for name in names:
        content.update(name.encode() + b"\0" + (WEB / name).read_bytes())
    version = content.hexdigest()[:8]
    page = re.sub(r'(href|src)="(?=[\w/-]+\.)', rf'\1="v-{version}/', read("index.html"))
    kept = [f"v-{version}/{name}" for name in names if name not in ("index.html", "sw.js")]
    worker = f'const VERSION = "{version}";\nconst FILES = {json.dumps(kept)};\n{read("sw.js")}'

    async def index(_request: Request) -> Response:
        return HTMLResponse(page)

    async def service_worker(_request: Request) -> Response:
        return Response(worker, media_type="text/javascript")

    files = {name: read(name) for name in names}

    async def file(request: Request) -> Response:
        """Answer with the newest version of a file, whatever version the address names.

        A tab that was opened before an update can request a file of the old version. The newest
        file nearly always works there, and the old file no longer exists.
        """
        name = request.path_params["name"]
        if name not in files:
            raise HTTPException(404)
        kept = {"Cache-Control": FOREVER} if request.path_params.get("version") == version else None
        kind = mimetypes.guess_type(name)[0] or "text/plain"
        return Response(files[name], media_type=kind, headers=kept)

    return [
        Route("/", index),
        Route("/sw.js", service_worker),
        Route("/v-{version}/{name:path}", file),
        Route("/{name:path}", file),
    ]


def read(name: str) -> str:
    return (WEB / name).read_text(encoding="utf-8")
