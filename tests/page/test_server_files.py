"""Test the files of the page: compressed, kept by the browser, and never stale."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from urllib.parse import urljoin

import anyio
import pytest
from client import GZIP, Client

pytest.importorskip("starlette", reason="needs the extra jaxzero[web]")

from jaxzero.page import web_files
from jaxzero.page.server import make_app

APP = make_app()
MAX_OF_FIRST_VISIT = 100_000  # bytes


def get(path: str, app=APP) -> Client:
    client = Client(path, method="GET", headers=[GZIP])
    return anyio.run(client.ask, app)


def text_of(client: Client) -> str:
    is_small = client.answer_headers.get("content-encoding") == "gzip"
    return (gzip.decompress(client.body) if is_small else bytes(client.body)).decode()


def files_of(app=APP) -> list[str]:
    """Return the addresses of the files that the service worker keeps."""
    (files,) = re.findall(r"FILES = (\[.*\]);", text_of(get("/sw.js", app)))
    return [f"/{path}" for path in json.loads(files)]


def test_a_first_visit_is_small():
    found = {path: get(path) for path in ("/", "/sw.js", *files_of())}
    assert {client.status for client in found.values()} == {200}
    sizes = {path: len(client.body) for path, client in found.items()}
    assert sum(sizes.values()) < MAX_OF_FIRST_VISIT, sizes
    assert len(text_of(found["/"])) > 2 * sizes["/"]


def test_files_of_this_version_are_kept_and_all_else_is_asked_for_again():
    files = files_of()
    for path in files:
        assert "immutable" in get(path).answer_headers["cache-control"], path
    app_script = next(path for path in files if path.endswith("/app.js"))
    assert app_script[1:] in text_of(get("/"))
    newest = get(app_script).body
    for path in ("/v-00000000/app.js", "/app.js"):  # a tab from before an update
        other = get(path)
        assert other.answer_headers["cache-control"] == "no-cache" and other.body == newest
    for path in ("/", "/sw.js", "/api/info", app_script + "x"):
        assert get(path).answer_headers["cache-control"] == "no-cache"


def test_a_changed_file_has_another_address(tmp_path, monkeypatch):
    folder = shutil.copytree(web_files.WEB, tmp_path / "web")
    monkeypatch.setattr(web_files, "WEB", folder)
    assert files_of(make_app()) == files_of()
    with open(folder / "rules.js", "a") as file:
        file.write("// more\n")
    assert not set(files_of(make_app())) & set(files_of())


def test_the_page_can_be_installed():
    (path,) = re.findall(r'rel="manifest" href="(.*?)"', text_of(get("/")))
    manifest = json.loads(text_of(get(f"/{path}")))
    assert urljoin(f"http://here/{path}", manifest["start_url"]).startswith("http://here/#")
    assert urljoin(f"http://here/{path}", manifest["scope"]) == "http://here/"
    (icon,) = manifest["icons"]  # browsers accept an icon of any size
    drawing = get(urljoin(f"/{path}", icon["src"]))
    assert drawing.status == 200
    assert drawing.answer_headers["content-type"].startswith(icon["type"])


def test_nothing_beside_the_folder_is_served():
    for path in ("/v-0/../../server.py", "/v-0/%2e%2e/server.py", "//etc/passwd", "/\0"):
        assert get(path).status in (400, 404, 405), path
