"""Test the startup benchmark: what it records of each start, and the error of a failed start."""

from __future__ import annotations

import json

import pytest

from jaxzero.errors import RunError
from jaxzero.performance import startup
from jaxzero.performance.startup import Start, measure_starts, of_api, startup_table


@pytest.fixture(autouse=True)
def short_wait(monkeypatch):
    monkeypatch.setattr(startup, "QUIET_SECONDS", 0.2)


def test_a_start_is_measured_cold_and_warm():
    # The exact solver answers here: nothing compiles.
    result = measure_starts([of_api("2x2")])
    assert json.loads(json.dumps(result)) == result
    assert {"date", "device", "platform", "versions", "cores"} < result.keys()
    (row,) = result["starts"]
    assert row["what"] == "first move"
    for state in ("cold", "warm"):
        assert row[state]["cpu_seconds"] > 0 and row[state]["wall_seconds"] > 0
        assert row[state]["by"] is None
    heading, rule, line = startup_table(result).splitlines()
    assert heading.count("|") == rule.count("|") == line.count("|")
    assert row["start"] in line and row["what"] in line


# Prints whether both caches of compiled programs had a file, and creates these files.
KEEPER = """
import os, pathlib
kept = [pathlib.Path(os.environ[name], "kept")
        for name in ("JAX_COMPILATION_CACHE_DIR", "NUMBA_CACHE_DIR")]
for line in iter(input, "quit"):
    print("itself answers" if all(path.exists() for path in kept) else "STAND_IN answers")
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.touch()
"""


def test_the_second_process_has_what_the_first_one_kept():
    def talk(child):
        for what in ("first", "second"):
            child.ask("move")
            yield what, child.stand_in(child.read("answers\n"))

    code = KEEPER.replace("STAND_IN", startup.STAND_INS["rules"])
    rows = startup.measure_start(Start("keeper", ["-c", code], talk))
    by = {(row["what"], state): row[state]["by"] for row in rows for state in ("cold", "warm")}
    assert by.pop(("first", "cold")) == "rules"
    assert set(by.values()) == {startup.NOBODY} and len(by) == 3


@pytest.mark.parametrize("asks", [False, True])
def test_a_process_that_fails_is_named_with_its_last_line(asks):
    def talk(child):
        if asks:
            child.settle()  # the process has ended
            child.ask("move")
        child.read("ready")
        yield "ready", None

    code = "raise SystemExit('error: weights: are lost')"
    with pytest.raises(RunError, match="weights: are lost"):
        startup.measure_start(Start("failing", ["-c", code], talk))
