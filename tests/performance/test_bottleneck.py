"""Each bound has numbers that lead to it, and advice that names fields of the config."""

from __future__ import annotations

import re

import pytest

from jaxzero.cli import field_names
from jaxzero.config import Config
from jaxzero.performance.diagnose import GROUPS, Profile, find_bottleneck

BALANCED = Profile(
    seconds={
        "network": 0.46,
        "tree": 0.1,
        "rules": 0.03,
        "replay_write": 0.01,
        "replay_sample": 0.02,
        "gradient": 0.3,
        "optimiser": 0.02,
        "host_gap": 0.01,
    },
    whole=1.0,
    flops_share=0.4,
    memory_share=0.3,
    doubling_gain=0.05,
    on_cpu=False,
    dtype="bfloat16",
    convolutional=True,
)


def profile(seconds: dict[str, float] | None = None, **changes) -> Profile:
    return BALANCED._replace(seconds=BALANCED.seconds | (seconds or {}), **changes)


CASES = {
    "network": (profile(), "the other network.convolution"),
    "network at the ceiling": (profile(flops_share=0.7), "less work"),
    "network in float32": (profile(dtype="float32"), "bfloat16"),
    "tree": (profile({"tree": 2.0}, whole=3.0), "search.simulations"),
    "memory bandwidth": (profile(memory_share=0.8), "network.convolution"),
    "memory bandwidth, dense": (profile(memory_share=0.8, convolutional=False), "network.blocks"),
    "launches": (profile(doubling_gain=0.4, flops_share=0.1), "selfplay.games"),
    "host": (profile({"host_gap": 0.5}, whole=1.5), "selfplay.games"),
    "solver": (profile(solver_share=0.5), "selfplay.adjudicate_below"),
    "replay": (profile({"replay_sample": 2.0}, whole=3.0), "replay.capacity"),
    "unknown": (profile(whole=3.0), "--trace"),
}


@pytest.mark.parametrize("case", CASES)
def test_every_bound_is_reached_and_advises(case):
    given, advice = CASES[case]
    bottleneck = find_bottleneck(given)
    assert bottleneck.name == re.split(",| in | at ", case)[0]
    assert re.search(advice, " ".join(bottleneck.advice))


@pytest.mark.parametrize("case", CASES)
def test_advice_names_fields_that_exist(case):
    bottleneck = find_bottleneck(CASES[case][0])
    named = re.findall(r"\b[a-z]+\.[a-z_]+\b", " ".join(bottleneck.advice))
    assert set(named) <= set(field_names(Config))


def test_more_bytes_than_could_be_moved_say_nothing_about_memory():
    assert find_bottleneck(profile(memory_share=3.0)).name == "network"
    assert find_bottleneck(profile(memory_share=None)).name == "network"


def test_a_network_near_its_ceiling_is_bound_by_nothing_else():
    assert find_bottleneck(profile(doubling_gain=0.4, flops_share=0.6)).name == "network"
    assert find_bottleneck(profile(memory_share=0.9, flops_share=0.6)).name == "network"


def test_learning_that_takes_most_is_named():
    advice = " ".join(find_bottleneck(profile({"gradient": 2.0}, whole=2.7)).advice)
    assert "learner.updates_per_iteration" in advice
    advice = " ".join(find_bottleneck(profile({"optimiser": 2.0}, whole=2.9)).advice)
    assert "learner.batch_size" in advice


def test_a_cpu_is_not_told_to_use_bfloat16():
    assert "bfloat16" not in " ".join(find_bottleneck(profile(dtype="float32", on_cpu=True)).advice)


def test_the_bottleneck_does_not_depend_on_the_unit_of_time():
    for given, _ in CASES.values():
        longer = {name: 60 * seconds for name, seconds in given.seconds.items()}
        scaled = given._replace(seconds=longer, whole=60 * given.whole)
        assert find_bottleneck(scaled) == find_bottleneck(given)


def test_every_part_belongs_to_one_group():
    parts = [part for group in GROUPS.values() for part in group]
    assert sorted(parts) == sorted(BALANCED.seconds)
