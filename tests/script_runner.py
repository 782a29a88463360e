"""Run scripts in the process of the tests, which saves starting Python and importing jax."""

from __future__ import annotations

import io
import os
import runpy
import subprocess
import sys
from collections.abc import Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest
from jsonargparse import ArgumentParser

from jaxzero.cli import run_script

ROOT = Path(__file__).parent.parent
# The iteration of all short runs of `configs/tiny.yaml`: later processes find it in the cache.
ITERATION = (
    "--network.features=raw",
    "--network.channels=16",
    "--search.simulations=4",
    "--selfplay.games_per_iteration=16",
    "--learner.batch_size=32",
    "--learner.updates_per_iteration=3",
    "--replay.capacity=500",
)
BASE = (
    *ITERATION,
    "--evaluation.opponents=random",
    "--evaluation.suite=none",
    "--evaluation.simulations=0",
    "--evaluation.final_games=8",
    "--evaluation.evaluate_every=0",
)
TINY = f"--config configs/tiny.yaml --iterations 2 {' '.join(BASE)}".replace("=", " ")


class Ended(NamedTuple):
    """The result of a script, with the fields of `subprocess.CompletedProcess`."""

    returncode: int
    stdout: str
    stderr: str


def run_here(script: str, *options: str | Path, cwd: Path = ROOT, entries: str = "") -> Ended:
    """Run a script of `scripts/` with these options in this process; `entries` are its stdin."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    words = [script, *map(str, options)]
    with (
        chdir(cwd),
        patch.multiple(sys, argv=words, stdin=io.StringIO(entries)),
        patch("jaxzero.cli.end_now", sys.exit),
        patch("signal.signal"),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            run_script(runpy.run_path(str(ROOT / "scripts" / script))["main"])
        except SystemExit as end:
            code = end.code or 0
    return Ended(code, out.getvalue(), err.getvalue())


def python(*words: str | Path, **environment: str) -> subprocess.CompletedProcess:
    """Run Python in a process of its own, in the root of the project."""
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
    )


class Parsed(Exception):
    """Raised to stop a script at its command line, before the script does anything else."""


def read_by_script(script: str, words: Sequence[str], parses: bool = True) -> ArgumentParser:
    """Let a script parse a command line, stop there, and return its parser."""
    parse = ArgumentParser.parse_args

    def parse_and_stop(parser: ArgumentParser, arguments: list[str]) -> None:
        if parses:
            parse(parser, arguments)
        raise Parsed(parser)

    main = runpy.run_path(str(ROOT / "scripts" / script))["main"]
    with (
        patch.object(ArgumentParser, "parse_args", parse_and_stop),
        pytest.raises(Parsed) as stopped,
    ):
        main(list(words))
    return stopped.value.args[0]


@cache
def parser_of(script: str) -> ArgumentParser:
    """Return the parser of a script."""
    return read_by_script(script, (), parses=False)
