"""The script of a study, from the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TINY = ("--config", "configs/tiny.yaml", "--network.channels", "16")


def run(*arguments: str | Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "scripts/study.py", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_a_study_and_a_comparison(tmp_path):
    done = run(*TINY, "--out", tmp_path / "tiny", "--positions", "4000")
    assert done.returncode == 0, done.stderr
    compared = run("--compare", tmp_path / "tiny", "--out", tmp_path)
    assert compared.returncode == 0, compared.stderr
    assert (
        compared.stdout.splitlines()
        == done.stdout.splitlines()[-len(compared.stdout.splitlines()) :]
    )
    assert (tmp_path / "comparison.png").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--minutes 0", "minutes: 0.0 must be > 0"),
        ("--minutes .nan", "minutes: nan must be > 0"),
        ("--positions -1", "positions: -1 must be >= 0"),
        ("--network.chanels 8", "network.chanels: '8'"),
        ("--game.rows 5", "labels: 5x2 has 27 edges"),
        ("--labels nowhere.npz", "nowhere.npz cannot be read"),
        ("--compare nowhere", "compare: nowhere holds no result"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(options, message, tmp_path):
    done = run(*TINY, "--out", tmp_path / "out", *options.split())
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stderr.startswith("error: ") and message in done.stderr
    assert not (tmp_path / "out").exists()
