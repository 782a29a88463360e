"""Test how well a network agrees with itself: on images of a position, and with its search."""

from __future__ import annotations

import json

import jax
import numpy as np
import pytest
from script_runner import run_here

from jaxzero.config import NetworkConfig, SearchConfig
from jaxzero.game import DotsAndBoxes, automorphisms, fullest_beside
from jaxzero.measure.agreement import disagreement, sample
from jaxzero.network.network import Network, init_params
from jaxzero.players.agent import Agent
from jaxzero.players.single import choose_many
from jaxzero.runs.weights import load_weights

GAME = DotsAndBoxes(2, 2)


@pytest.fixture(scope="module")
def graph():
    network = Network(GAME, NetworkConfig(trunk="graph", channels=8, blocks=1))
    return Agent(network, init_params(network, jax.random.key(0)), SearchConfig())


@pytest.fixture(scope="module")
def bands():
    return sample(GAME, 6, seed=0)


def test_positions_are_quiet_different_and_of_their_band(bands):
    images = set()
    for band, boards in bands.items():
        low, high = map(int, band.split("-"))
        left = (~boards).sum(axis=1)
        assert low <= left.min() and left.max() <= high and 1 <= len(boards) <= 6
        assert not (fullest_beside(GAME, boards) == 3).any()
        permutations = automorphisms(GAME)
        images |= {min(image.tobytes() for image in board[permutations]) for board in boards}
    assert len(images) == sum(map(len, bands.values()))
    assert {len(boards) for boards in bands.values()} >= {6}


def test_only_a_network_that_knows_directions_disagrees_with_images(bands, graph):
    drawn = np.concatenate(list(bands.values()))[-6:]
    spread = [disagreement(agent, drawn, 4)[0] for agent in (graph, load_weights("2x2").agent)]
    assert spread[0].max() < 1e-4 < 1e-2 < spread[1].max()


def test_the_change_is_that_of_the_value_of_a_search(bands, graph):
    drawn = np.concatenate(list(bands.values()))[-6:]
    change = disagreement(graph, drawn, 4)[1]
    values = [choose_many(graph, drawn, count).value for count in (0, 4)]
    assert change == pytest.approx(np.abs(values[1] - values[0])) and change.max() > 0.01


def test_two_networks_are_measured_on_the_same_positions(tmp_path):
    file = tmp_path / "found.json"
    words = "--weights 2x2 --weights2 2x2 --agreement 3 --simulations 4 --json"
    ended = run_here("evaluate.py", *words.split(), file)
    assert ended.returncode == 0, ended.stderr
    first, second = json.loads(file.read_text())["agreement"].values()
    assert first == second and sum(part["positions"] for part in first.values()) >= 6
    assert f"{first['9-12']['spread']:.2f}" in ended.stdout
