"""Test which modules import which, and that settings and options in the docs exist."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest
from script_runner import ROOT, parser_of, read_by_script

from jaxzero.config import Config, typed_fields

PACKAGE = "jaxzero"
# Subpackages ("rooms"), lowest first: a room imports only from itself and from rooms before it.
ROOMS = (
    *("errors", "host", "game", "config", "heads", "network", "search", "runs", "training"),
    *("solver", "players", "cli", "measure", "performance", "play", "api", "page", "adapters"),
    "__main__",
)
# Imports inside functions that point upward or close a cycle: (source, target), with the reason.
LAZY = {
    ("jaxzero", "jaxzero.api"): "jaxzero.load; importing the package stays instant",
}
KNOW_MCTX = {"jaxzero.search.mctx_search"}
KNOW_PMAP = {"jaxzero.training.devices"}


class Import(NamedTuple):
    """One import in a module of the package, anywhere in its file."""

    source: str
    target: str
    line: int


@cache
def modules() -> dict[str, Path]:
    """Return the modules of the package by their dotted names."""
    files = sorted((ROOT / PACKAGE).rglob("*.py"))
    names = (".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files)
    return {name.removesuffix(".__init__"): path for name, path in zip(names, files, strict=True)}


def imported(node: ast.AST) -> Iterator[str]:
    """Yield the dotted names of the modules that an import statement imports from."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert not node.level, "imports are absolute"
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in modules() else node.module


@cache
def imports() -> list[Import]:
    """Return all imports of the package, also those inside functions and of other libraries."""
    return [
        Import(name, target, node.lineno)
        for name, path in modules().items()
        for node in ast.walk(ast.parse(path.read_text()))
        for target in imported(node)
    ]


def inner_imports() -> list[Import]:
    return [one for one in imports() if one.target.startswith(f"{PACKAGE}.")]


def room(module: str) -> str:
    """Return the room of a module; the package itself is above all rooms."""
    return module.split(".")[1] if "." in module else "the package"


def test_every_room_has_its_place():
    assert {room(name) for name in modules()} - {"the package"} == set(ROOMS)


def test_imports_point_down():
    place = {name: number for number, name in enumerate(ROOMS)}
    upward = [
        one
        for one in inner_imports()
        if place[room(one.target)] > place.get(room(one.source), -1)
        and (one.source, one.target) not in LAZY
        and one.target != "jaxzero.errors"  # it imports nothing
    ]
    assert upward == []


def test_exceptions_are_needed_and_lazy():
    found = [one for one in inner_imports() if (one.source, one.target) in LAZY]
    assert {(one.source, one.target) for one in found} == set(LAZY)
    for one in found:
        line = modules()[one.source].read_text().splitlines()[one.line - 1]
        assert line.startswith("    "), one


def test_there_are_no_cycles():
    after: dict[str, set[str]] = {name: set() for name in modules()}
    for one in inner_imports():
        if (one.source, one.target) not in LAZY:
            after[one.source].add(one.target)
    TopologicalSorter(after).prepare()  # raises CycleError


def test_few_files_know_mctx_and_pmap():
    assert {one.source for one in imports() if one.target.split(".")[0] == "mctx"} == KNOW_MCTX
    named = {
        name
        for name, path in modules().items()
        for node in ast.walk(ast.parse(path.read_text()))
        if getattr(node, "attr", getattr(node, "id", None)) == "pmap"
    }
    assert named == KNOW_PMAP


def test_training_knows_nothing_of_play_and_nothing_below_it_does():
    allowed = {"errors", "host", "game", "config", "heads", "network", "search", "runs", "training"}
    sources = {"training", "runs", "search", "network"}
    used = {room(one.target) for one in inner_imports() if room(one.source) in sources}
    assert used <= allowed


def test_the_page_uses_the_api_and_only_its_script_uses_the_page():
    used = {room(one.target) for one in inner_imports() if room(one.source) == "page"}
    assert used - {"page"} == {"api", "errors", "game", "play"}
    files = [*modules().values(), *sorted((ROOT / "scripts").glob("*.py"))]
    users = {
        path.relative_to(ROOT).as_posix()
        for path in files
        for node in ast.walk(ast.parse(path.read_text()))
        if any(target.startswith(f"{PACKAGE}.page") for target in imported(node))
    }
    assert {user for user in users if not user.startswith(f"{PACKAGE}/page/")} == {
        "scripts/play.py"
    }


PAGES = [*sorted(ROOT.glob("README*.md")), *sorted((ROOT / "docs").glob("*.md"))]
CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))
SECTIONS = "game|network|search|selfplay|replay|learner|evaluation"
FILE_ENDINGS = {"py", "yaml", "json", "jsonl", "csv", "png", "md", "npz", "safetensors"}


def settings_named(text: str) -> set[str]:
    """Return the words of a text that look like a setting with its section."""
    words = re.findall(rf"(?<![\w./-])(?:--)?((?:{SECTIONS})\.[a-z_]+)\b(?!\()", text)
    return {word for word in words if word.partition(".")[2] not in FILE_ENDINGS}


@pytest.mark.parametrize("page", [*PAGES, *CONFIGS], ids=lambda path: path.name)
def test_settings_that_are_named_exist(page):
    text = page.read_text()
    if page.suffix == ".yaml":
        text = "\n".join(re.findall(r"#.*", text))
    text = re.sub(r"```python\n.*?```", "", text, flags=re.DOTALL)  # attributes there
    assert settings_named(text) - set(dict(typed_fields(Config))) == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_options_of_commands_exist(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    text = page.read_text()
    blocks = "\n".join(re.findall(r"```(?:bash|sh)\n(.*?)```", text, re.DOTALL))
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    for line in [*blocks.replace("\\\n", " ").splitlines(), *inline]:
        found = re.match(r"\s*(?:\$ )?(?:[A-Z_]+=\S+ )*python scripts/(\w+\.py)(.*)", line)
        if found:
            words = shlex.split(re.sub(r"\s+# .*", "", found[2]))
            try:
                read_by_script(found[1], words)
            except SystemExit as end:  # --help
                assert end.code in (0, None), line


def test_options_of_stored_results_exist():
    """A command beside a result runs today, or the commit at which it runs stands beside it."""
    known = {"--" + name for name, _ in typed_fields(Config)}
    for script in ("evaluate.py", "train.py"):
        known |= set(parser_of(script)._option_string_actions)
    for path in (ROOT / "docs" / "results").rglob("*.json"):
        named = set(re.findall(r"(?<=\s)--[a-z][\w.]*", path.read_text()))
        assert named <= known or '"commit": "' in path.read_text(), path
