"""Each bound has numbers that lead to it, and advice that names fields of the config."""

from __future__ import annotations

import re

import pytest

from jaxzero.cli import field_names
from jaxzero.config import Config
from jaxzero.performance.verdict import GROUPS, Numbers, judge

BALANCED = Numbers(
    seconds={
        "features": 0.01,
        "network": 0.45,
        "tree": 0.1,
        "rules": 0.02,
        "moves": 0.01,
        "replay write": 0.01,
        "replay draw": 0.02,
        "gradient": 0.3,
        "optimiser": 0.02,
        "host gap": 0.01,
    },
    whole=1.0,
    flops_share=0.4,
    memory_share=0.3,
    doubling_gain=0.05,
    on_cpu=False,
    dtype="bfloat16",
    convolutional=True,
)


def numbers(seconds: dict[str, float] | None = None, **changes) -> Numbers:
    return BALANCED._replace(seconds=BALANCED.seconds | (seconds or {}), **changes)


CASES = {
    "network": (numbers(), "another|the other network.convolution"),
    "network at the ceiling": (numbers(flops_share=0.7), "less work"),
    "network in float32": (numbers(dtype="float32"), "bfloat16"),
    "tree": (numbers({"tree": 2.0}, whole=3.0), "search.simulations"),
    "memory bandwidth": (numbers(memory_share=0.8), "network.convolution"),
    "memory bandwidth, dense": (numbers(memory_share=0.8, convolutional=False), "network.blocks"),
    "launches": (numbers(doubling_gain=0.4, flops_share=0.1), "selfplay.games"),
    "host": (numbers({"host gap": 0.5}, whole=1.5), "selfplay.games"),
    "replay": (numbers({"replay draw": 2.0}, whole=3.0), "replay.capacity"),
    "unknown": (numbers(whole=3.0), "--trace"),
}


@pytest.mark.parametrize("case", CASES)
def test_every_bound_is_reached_and_advises(case):
    given, advice = CASES[case]
    verdict = judge(given)
    assert verdict.bound == re.split(",| in | at ", case)[0]
    assert re.search(advice, " ".join(verdict.advice))


@pytest.mark.parametrize("case", CASES)
def test_advice_names_fields_that_exist(case):
    verdict = judge(CASES[case][0])
    named = re.findall(r"\b[a-z]+\.[a-z_]+\b", " ".join(verdict.advice))
    assert set(named) <= set(field_names(Config))


def test_more_bytes_than_could_be_moved_say_nothing_about_memory():
    assert judge(numbers(memory_share=3.0)).bound == "network"
    assert judge(numbers(memory_share=None)).bound == "network"


def test_a_network_near_its_ceiling_is_bound_by_nothing_else():
    assert judge(numbers(doubling_gain=0.4, flops_share=0.6)).bound == "network"
    assert judge(numbers(memory_share=0.9, flops_share=0.6)).bound == "network"


def test_learning_that_takes_most_is_named():
    advice = " ".join(judge(numbers({"gradient": 2.0}, whole=2.7)).advice)
    assert "learner.updates_per_iteration" in advice
    advice = " ".join(judge(numbers({"optimiser": 2.0}, whole=2.9)).advice)
    assert "learner.batch_size" in advice


def test_a_cpu_is_not_told_to_use_bfloat16():
    assert "bfloat16" not in " ".join(judge(numbers(dtype="float32", on_cpu=True)).advice)


def test_the_verdict_does_not_depend_on_the_unit_of_time():
    for given, _ in CASES.values():
        longer = {name: 60 * seconds for name, seconds in given.seconds.items()}
        scaled = given._replace(seconds=longer, whole=60 * given.whole)
        assert judge(scaled) == judge(given)


def test_every_part_belongs_to_one_group():
    parts = [part for group in GROUPS.values() for part in group]
    assert sorted(parts) == sorted(BALANCED.seconds)
