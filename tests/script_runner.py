"""Run scripts in the process of the tests, which saves starting Python and importing jax."""

from __future__ import annotations

import io
import runpy
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import jsonargparse
import pytest

from jaxzero.cli import run_script

ROOT = Path(__file__).parent.parent
# The iteration of all short runs of `configs/tiny.yaml`: later processes find it in the cache.
ITERATION = (
    "--network.features=raw",
    "--network.channels=16",
    "--search.simulations=4",
    "--search.evaluation_batch=1000000",  # whole rounds, as on a GPU: they compile faster
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


def run_here(script: str, *options: str | Path, cwd: Path = ROOT) -> Ended:
    """Run a script of `scripts/` with these options and empty stdin, in this process."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    words, entries = [script, *map(str, options)], io.StringIO()
    with (
        chdir(cwd),
        patch.multiple(sys, argv=words, stdin=entries),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            run_script(runpy.run_path(str(ROOT / "scripts" / script))["main"])
        except SystemExit as end:
            code = end.code or 0
    return Ended(code, out.getvalue(), err.getvalue())


class Parsed(Exception):
    """Raised to stop a script at its command line, before the script does anything else."""


@cache
def parser_of(script: str) -> jsonargparse.ArgumentParser:
    """Return the parser of a script."""
    found = []

    def keep(parser, _arguments):
        found.append(parser)
        raise Parsed

    main = runpy.run_path(str(ROOT / "scripts" / script))["main"]
    with patch.object(jsonargparse.ArgumentParser, "parse_args", keep), pytest.raises(Parsed):
        main([])
    return found[0]
