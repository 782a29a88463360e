"""Test scripts from the command line, once in a separate process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import script_runner
from script_runner import run_here

ROOT = Path(__file__).parent.parent
TINY = script_runner.TINY.split()


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, *map(str, arguments)]


def test_a_process_of_its_own_says_and_ends_the_same(tmp_path):
    options = [*TINY, "--run_dir", tmp_path / "run", "--network.blocks", "0"]
    done = subprocess.run(
        command("scripts/train.py", *options), cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == run_here("train.py", *options)


def test_a_page_without_its_packages_says_how_to_install_them(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("jaxzero.page.server")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    done = run_here("play.py", "--web")
    assert done.returncode == 2
    assert done.stderr.startswith("error: web: needs starlette")
    assert 'pip install -e ".[web]"' in done.stderr and done.stderr.count("\n") == 1
