"""A share above its limit is never printed without a word that says why."""

from __future__ import annotations

import re
from dataclasses import asdict

import pytest

from jaxzero.config import Config
from jaxzero.performance import benchmark, diagnose
from jaxzero.performance.monitor import Transfers, Utilisation
from jaxzero.performance.report import ABOVE, Share, measures, table
from jaxzero.performance.sweep_report import sweep_table

SETTING = {
    "device": "cpu",
    "platform": "cpu",
    "devices": 1,
    "devices_present": 1,
    "versions": {},
    "config": asdict(Config()),
    "parameters": 1,
    "compute_dtype": "float32",
    "convolution": None,
    "peak_memory_bytes": 1,
    "predicted_memory_bytes": None,
    "compile_seconds": 1.0,
    "replay_ratio": 1.0,
    "decisions_per_game": 1.0,
}


def above(text: str) -> set[str]:
    """Return the limits that `text` says are passed."""
    words = " ".join(text.split())
    return {limit for limit, why in ABOVE.items() if why in words}


def starred(text: str) -> list[str]:
    return re.findall(r"\S+%\*", text)


def test_only_what_is_written_above_100_percent_is_explained():
    assert Share(0.5, "products", 0).sentence() == "50%"
    assert Share(1.004, "products", 0).sentence() == "100%"
    assert Share(1.004, "products").sentence() == f"100.4% ({ABOVE['products']})"
    written = [str(Share(share, "whole")) for share in (0.999, 1.0004, 1.032)]
    assert written == ["99.9%", "100.0%", "103.2%*"]
    shares = [("network", 0.5), ("network", 1.1), ("network", 1.2), ("whole", 1.0004)]
    text = table(("",), [[Share(share, limit)] for limit, share in shares] + [[None]], "r")
    assert above(text) == {"network"} and " ".join(text.split()).count(ABOVE["network"]) == 1


def result_of(network: float = 0.9, mfu: float = 0.5, copies: float = 0.5, phase: float = 0.6):
    """Return a result of one device with these shares."""
    # One second of the network alone, 1 / network of self-play.
    config = Config()
    evaluations = config.evaluations_per_iteration
    seconds = {"network": 1.0, "search": 1 / network, "selfplay": 2.0, "learning": 0.2 * 2 / phase}
    seconds |= {"replay_write": 0.1 * 2 / phase, "host_gap": 0.0, "iteration": 2 / phase}
    limits = {
        "flops_per_evaluation": mfu / evaluations,
        "flops_per_sample": 0.0,
        "bytes_per_evaluation": copies / evaluations,
        "matmul_ceiling_flops": 1.0,
        "copy_ceiling_bytes": 1.0,
    }
    return SETTING | measures(config, 1, seconds, limits, config.selfplay.games)


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
    result = result_of(**shares) | {"notes": []}
    text = benchmark.report(result)
    assert max(map(len, text.splitlines())) <= 100
    assert above(text) == limit
    assert starred(text) == stars


def profile_of(flops: float, memory: float, seconds: float) -> diagnose.Profile:
    parts = {part: 0.0 for group in diagnose.GROUPS.values() for part in group}
    return diagnose.Profile(
        parts | {"network": seconds}, 1.0, flops, memory, 0.0, True, "float32", False
    )


def diagnosis_text(flops: float = 0.5, memory: float = 0.5, seconds: float = 0.8) -> str:
    profile = profile_of(flops, memory, seconds)
    found = SETTING | {
        "matmul_ceiling_flops": 1e9,
        "copy_ceiling_bytes": 1e9,
        "iteration_mfu": flops,
        "seconds": {"iteration": 1.0},
        "profile": profile.seconds,
        "unexplained_seconds": 1 - seconds,
        "doubling_gain": 0.0,
        "network_flops_share": flops,
        "network_memory_share": memory,
        "utilisation": Utilisation(0.9, "clock", 1.0)._asdict(),
        "transfers": Transfers(4, 1, 0, {"span": 8}, "", True, True, (), 0)._asdict(),
        "trace": {},
        "solver_wait_share": None,
        "notes": [],
        "bottleneck": diagnose.Bottleneck("network", "", ())._asdict(),
    }
    text = diagnose.report(found)
    assert max(map(len, text.splitlines())) <= 100
    return text


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


def test_the_bottleneck_says_so_too():
    def reason(*shares: float) -> str:
        return diagnose.find_bottleneck(profile_of(*shares)).reason

    assert above(reason(1.26, 0.5, 0.8)) == {"products"}
    assert above(reason(0.5, 0.5, 1.1)) == {"whole"}
    assert above(reason(0.5, 0.5, 0.8)) == set()


@pytest.mark.parametrize(
    ("share", "mfu", "limit"),
    [(0.9, 0.9, set()), (1.2, 0.9, {"network"}), (1.2, 1.1, {"network", "products"})],
)
def test_the_sweep_says_which_shares_are_above_their_limits(share, mfu, limit):
    row = {"settings": {"selfplay.games": 8}, "status": "ok"} | result_of()
    row |= {"selfplay_of_network": share, "iteration_mfu": mfu}
    failed = {"settings": {"selfplay.games": 9}, "status": "failed", "error": "x"}
    text = sweep_table([row, failed], {})
    assert above(text) == limit
    assert len(starred(text)) == len(limit)
    assert max(map(len, text.splitlines())) <= 120
