"""scripts/play.py as a user meets it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from script_runner import run_here

ROOT = Path(__file__).parent.parent.parent


def run(*options: str | Path, entries: str = "") -> subprocess.CompletedProcess:
    command = [sys.executable, "scripts/play.py", *map(str, options)]
    return subprocess.run(command, cwd=ROOT, input=entries, capture_output=True, text=True)


WRONG = {
    "missing run": ("--run_dir nowhere", "run_dir: nowhere holds no run"),
    "unknown player": ("--player greedi", "player: 'greedi' is unknown, did you mean greedy"),
    "another mode": ("--games 4", "games: 4 needs --mode dual"),
}


@pytest.mark.parametrize("case", WRONG)
def test_bad_input_is_one_line_and_exit_code_2(case):
    options, message = WRONG[case]
    done = run_here("play.py", *options.split())
    assert done.returncode == 2, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"error: {message}")


def test_a_piped_game_runs_to_its_end():
    done = run(*"--rows 1 --cols 1 --player greedy".split(), entries="h00\nh0,0\nh10\nv00\nv01\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().split("\n")[-1] in ("You lose 0 : 1.", "You win 1 : 0.")
