"""The scripts as a user meets them: from the command line, once in a process of their own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import script_runner
from script_runner import run_here

from jaxzero.runs.metrics import read_metrics

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


def test_seeds_are_runs_of_their_own_and_complete_ones_are_not_repeated(tmp_path):
    seeds, alone = tmp_path / "seeds", tmp_path / "alone"
    measured = [*TINY, "--weights", "2x2", "--evaluation.suite", "table"]
    runs = ["train.py", *measured, "--run_dir", seeds]
    first = run_here(*runs, "--seeds", "3", "5", "--max_minutes", "0.0001")
    assert first.returncode == 0, first.stderr
    assert first.stdout.endswith(f"train.py --run_dir {seeds} --seeds 3 5 --resume\n")
    assert not (seeds / "seed_5").exists()
    again = run_here(*runs, "--seeds", "3")
    assert (again.returncode, "holds a run" in again.stderr) == (2, True)
    done = run_here("train.py", "--run_dir", seeds, "--seeds", "3", "5", "--resume")
    assert done.returncode == 0, done.stderr
    assert re.search(r"\n-  *2  *20,512 .* % \[", done.stdout)  # a mean with an interval
    assert run_here("train.py", *measured, "--seed", "5", "--run_dir", alone).returncode == 0
    losses = [
        [line["learn/loss"] for line in read_metrics(run)]
        for run in (seeds / "seed_3", seeds / "seed_5", alone)
    ]
    assert losses[0] != losses[1] == losses[2]
    assert [len(each) for each in losses] == [2, 2, 2]
    last = run_here("train.py", "--run_dir", seeds, "--seeds", "3", "5", "--resume")
    assert last.stdout.count("complete in") == 2


def test_a_page_without_its_packages_says_how_to_install_them(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("jaxzero.page.server")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    done = run_here("play.py", "--web")
    assert done.returncode == 2
    assert done.stderr.startswith("error: web: needs starlette")
    assert 'pip install -e ".[web]"' in done.stderr and done.stderr.count("\n") == 1
