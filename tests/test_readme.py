"""Test that the README's commands run, made small, that examples run, and that named files exist.

test_house.py parses the commands of the other pages.
"""

from __future__ import annotations

import ast
import io
import re
import shlex
import subprocess
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from script_runner import BASE, ROOT, run_here

from jaxzero import heads
from jaxzero.heads import Decisions
from jaxzero.training.replay import Replay
from jaxzero.training.targets import Positions

SMALL = """
game: {rows: 2, cols: 2}
network: {trunk: dense, channels: 16, blocks: 1, features: raw}
search: {simulations: 4}
selfplay: {games_per_iteration: 16, random_opening_moves: 2}
replay: {capacity: 500}
learner: {batch_size: 32, updates_per_iteration: 2}
evaluation: {evaluate_every: 2, games: 4, final_games: 4, simulations: 4}
iterations: 2
"""
# Options that make the game short. They are added at the end, and the last option wins.
LESS = "--weights 2x2 --player search:4"
README = (ROOT / "README.md").read_text()
TOUR = (ROOT / "docs" / "tour.md").read_text()


def commands_of(page: str) -> list[str]:
    """Return the command lines of a page's bash blocks, without comments."""
    blocks = re.findall(r"```bash\n(.*?)```", page, re.DOTALL)
    text = "\n".join(blocks).replace("\\\n", " ")
    lines = [re.sub(r"\s+# .*", "", line) for line in text.splitlines() if line.strip()]
    return [" ".join(line.split()) for line in lines]


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """Make a directory like a clone of the project, with small configs."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("scripts", "Makefile", "jaxzero", "pyproject.toml"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "configs").mkdir()
    for config in (ROOT / "configs").glob("*.yaml"):
        (folder / "configs" / config.name).write_text(SMALL)
    return folder


@pytest.mark.parametrize("command", commands_of(README))
def test_every_command_runs(command, clone):
    program, script, *words = [*shlex.split(command), ""]
    if program == "make":  # only print its steps, because make itself runs these tests
        made = [program, "--dry-run", script]
        done = subprocess.run(made, cwd=clone, capture_output=True, text=True)
    else:
        assert program == "python" and script.startswith("scripts/")
        words = [*words[:-1], *(LESS.split() if script == "scripts/play.py" else ())]
        done = run_here(script.removeprefix("scripts/"), *words, cwd=clone)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def examples_of(page: str) -> list[tuple[str, str]]:
    """Return the Python blocks of a page, each with the output shown below it."""
    below = r"```python\n(.*?)```\n(?:\nprints\n\n```\n(.*?)```)?"
    return re.findall(below, (ROOT / page).read_text(), re.DOTALL)


@pytest.mark.parametrize(
    ("page", "number"),
    [
        ("docs/playing.md", 0),
        pytest.param("docs/playing.md", 1, marks=pytest.mark.slow),
        pytest.param("docs/playing.md", 2, marks=pytest.mark.slow),
        pytest.param("README.md", 0, marks=pytest.mark.slow),
    ],
)
def test_python_examples_run_and_print_what_stands_below_them(page, number, capsys):
    code, shown = examples_of(page)[number]
    exec(code, {})
    printed = capsys.readouterr().out
    assert printed and (page == "README.md" or printed == shown)


FOLDERS = ("configs", "docs", "jaxzero", "scripts", "tests")
FILES = [path.relative_to(ROOT).as_posix() for name in FOLDERS for path in (ROOT / name).rglob("*")]
FILES += [path.name for path in ROOT.iterdir()]
ENDINGS = "py|md|yaml|sh|json|npz|png|ipynb|safetensors"


def docstrings(path: Path) -> str:
    """Return all texts of a module that are statements."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Expr)]
    return "\n".join(str(getattr(node.value, "value", "")) for node in nodes)


def files_named(text: str) -> set[str]:
    """Return the paths with a folder, the modules and pages, and the targets of links in a text."""
    named = re.findall(rf"(?<![\w./:<-])[\w-]+(?:/[\w.-]+)+\.(?:{ENDINGS})\b", text)
    named += re.findall(r"`([\w-]+\.(?:py|md|sh))`", text)
    named += re.findall(r"\]\((?!http)([^)#\s]+)", text)
    return {name for name in named if not name.startswith("runs/")}


def test_every_file_that_pages_and_docstrings_name_exists():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "docs" / "notebook.ipynb"]
    texts = {path: path.read_text() for path in pages}
    modules = [ROOT / name for name in FILES if name.endswith(".py")]
    texts |= {path: docstrings(path) for path in modules}
    for path, text in texts.items():
        for name in files_named(text):
            assert any(f"/{file}".endswith(f"/{name}") for file in FILES), f"{path}: {name}"


def words_of(printed: str) -> list[str]:
    """Return the printed words without numbers, which differ between versions of jax."""
    return re.sub(r"-?\d[\d.,%]*", "", printed).split()


def test_the_tour_shows_every_field():
    shown = set(re.findall(r"^(\w+)(?:\.\w+)? +\w+\[", TOUR, re.MULTILINE))
    for record in (Positions, Decisions, Replay):
        assert set(record._fields) <= shown, record


def test_the_new_head_of_the_tour_is_learnt(monkeypatch, capsys):
    monkeypatch.setattr(heads, "HEADS", dict(heads.HEADS))
    (code,) = re.findall(r"```python\n([^`]*HEADS\[.*?)```", TOUR, re.DOTALL)
    settings = dict(option.removeprefix("--").split("=") for option in BASE)
    settings["learner.updates_per_iteration"] = 9
    there: dict = {"small": settings}
    exec(code.replace("settings, on_iteration", "settings | small, on_iteration"), there)
    losses = [float(word) for word in re.findall(r"\d+\.\d+", capsys.readouterr().out)]
    assert len(losses) == 3 and losses[0] > losses[2] > 0


@pytest.mark.slow
def test_the_blocks_of_the_tour_print_what_stands_below_them(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(heads, "HEADS", dict(heads.HEADS))
    there: dict = {}
    blocks = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", TOUR, re.DOTALL)
    assert len(blocks) >= 9
    for code, shown in blocks:
        with redirect_stdout(io.StringIO()) as out:
            exec(code, there)
        assert words_of(out.getvalue()) == words_of(shown), code
