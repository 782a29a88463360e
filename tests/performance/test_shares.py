"""A share above its limit is never printed without a word that says why."""

from __future__ import annotations

import re

import pytest

from jaxzero.config import Config
from jaxzero.performance import report
from jaxzero.performance.account import Ceilings, Timed, Work
from jaxzero.performance.busy import Busy
from jaxzero.performance.diagnose import WHAT, Diagnosis, report_lines
from jaxzero.performance.sweep_report import table
from jaxzero.performance.transfers import Transfers
from jaxzero.performance.verdict import Numbers, Verdict, judge
from jaxzero.training.throughput import ABOVE, share_cell, share_notes, share_of


def above(text: str) -> set[str]:
    """Return the limits that `text` says are passed."""
    words = " ".join(text.split())
    return {limit for limit, why in ABOVE.items() if why in words}


def starred(text: str) -> list[str]:
    return re.findall(r"\S+%\*", text)


def test_only_what_is_written_above_100_percent_is_explained():
    assert share_of("products", 0.5) == "50%"
    assert share_of("products", 1.004) == "100%"
    assert share_of("products", 1.004, 1) == f"100.4% ({ABOVE['products']})"
    assert [share_cell(share, 1) for share in (0.999, 1.0004, 1.032)] == [
        "99.9%",
        "100.0%",
        "103.2%*",
    ]
    shares = {"network": [0.5, None, 1.1], "whole": [0.5, None, 1.0004]}
    assert list(share_notes(shares, 1)) == [f"* {ABOVE['network']}"]


def result_of(network: float, mfu: float, copies: float, phase: float) -> dict:
    """Return a result of a benchmark with these shares."""
    seconds = {"selfplay": phase, "replay_write": 0.1, "learning": 0.2, "host_gap": 0.0}
    return {
        "network_evaluations_per_second": 100.0,
        "search_evaluations_per_second": 100.0 * network,
        "selfplay_evaluations_per_second": 50.0,
        "learner_samples_per_second": 1.0,
        "games_per_second": 1.0,
        "games_per_second_with_learning": 1.0,
        "flops_per_second": dict.fromkeys(("network", "selfplay", "learner"), 1e12),
        "mfu": {"network": mfu, "selfplay": 0.1, "learner": 0.1},
        "bytes_per_evaluation": 1e3,
        "copy_share": copies,
        "phases": {**seconds, "iteration": 1.0},
        "iteration_measured_whole": True,
    }


def benchmark_text(**shares: float) -> str:
    result = result_of(**{"network": 0.9, "mfu": 0.5, "copies": 0.5, "phase": 0.6} | shares)
    lines = [*report._rates(result), *report._phases(result)]
    assert max(map(len, lines)) <= 100
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("shares", "limit", "stars"),
    [
        ({}, set(), []),
        ({"network": 1.05}, {"network"}, ["105.0%*"]),
        ({"mfu": 1.26}, {"products"}, ["126.0%*"]),
        ({"copies": 3.0}, {"copies"}, ["300.0%*"]),
        ({"phase": 0.9}, {"whole"}, ["120.0%*"]),  # only the sum is more than the iteration
    ],
)
def test_the_benchmark_says_which_shares_are_above_their_limits(shares, limit, stars):
    text = benchmark_text(**shares)
    assert above(text) == limit
    assert starred(text) == stars


def numbers_of(flops: float, memory: float, seconds: float) -> Numbers:
    parts = dict.fromkeys(WHAT, 0.0) | {"network": seconds}
    return Numbers(parts, 1.0, flops, memory, 0.0, True, "float32", False)


def diagnosis_text(flops: float = 0.5, memory: float = 0.5, seconds: float = 0.8) -> str:
    numbers = numbers_of(flops, memory, seconds)
    timed = Timed({"selfplay": 1.0, "evaluation": 0.5, "free_selfplay": 0.4}, {}, 1.0, 0.0)
    found = Diagnosis(
        device="cpu",
        devices=1,
        timed=timed,
        ceilings=Ceilings(1e9, 1e9),
        work=Work(flops * 1e9, 0.0, None),
        numbers=numbers,
        busy=Busy(0.9, "clock", 1.0, 1),
        transfers=Transfers(4, 1, 0, "", True, True, (), 0),
        trace=None,
        verdict=Verdict("network", "", ()),
    )
    lines = list(report_lines(Config(), found))
    assert max(map(len, lines)) <= 100
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("shares", "limit"),
    [
        ({}, set()),
        ({"flops": 1.03}, {"products"}),
        ({"memory": 1.5}, {"copies"}),
        ({"seconds": 1.1}, {"whole"}),
    ],
)
def test_the_diagnosis_says_which_shares_are_above_their_limits(shares, limit):
    assert above(diagnosis_text(**shares)) == limit


def test_the_verdict_says_so_too():
    assert above(judge(numbers_of(1.26, 0.5, 0.8)).reason) == {"products"}
    assert above(judge(numbers_of(0.5, 0.5, 1.1)).reason) == {"whole"}
    assert above(judge(numbers_of(0.5, 0.5, 0.8)).reason) == set()


@pytest.mark.parametrize(
    ("share", "mfu", "limit"),
    [(0.9, 0.9, set()), (1.2, 0.9, {"network"}), (1.2, 1.1, {"network", "products"})],
)
def test_the_sweep_says_which_shares_are_above_their_limits(share, mfu, limit):
    row = {
        "settings": {"selfplay.games": 8},
        "status": "ok",
        "games_per_second": 1.0,
        "evaluations_per_second": 1.0,
        "selfplay_of_network": share,
        "samples_per_second": None,
        "learning_share": 0.5,
        "replay_ratio": 1.0,
        "mfu": mfu,
        "peak_memory_bytes": 1,
        "predicted_memory_bytes": None,
        "compile_seconds": 1.0,
    }
    failed = {"settings": {"selfplay.games": 9}, "status": "failed", "error": "x"}
    text = table([row, failed], {})
    assert above(text) == limit
    assert len(starred(text)) == len(limit)
    assert max(map(len, text.splitlines())) <= 120
