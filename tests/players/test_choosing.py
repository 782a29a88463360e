"""Test searches of single positions: few programs for all requests, weights on any device."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from compiled import tiny_agent

from jaxzero.game import DotsAndBoxes, initial_states
from jaxzero.host import background
from jaxzero.network.network import Agent
from jaxzero.players import choosing, expert
from jaxzero.players.choosing import Choice
from jaxzero.players.players import make_player

BOARD = DotsAndBoxes(1, 2)
EMPTY = np.zeros(BOARD.num_edges, bool)


@pytest.fixture
def agent(monkeypatch) -> Agent:
    """Return an agent without compiled programs."""
    monkeypatch.setattr(background, "_boards", background.OrderedDict())
    return tiny_agent(BOARD)


def test_a_board_has_one_program_of_a_search(agent, monkeypatch):
    """Analysis, expert and player share this program for any number of simulations."""
    traced, search = [], choosing.search

    def count(board, *inputs, **others):
        if board == BOARD:  # a thread may still compile for another test
            traced.append(inputs)
        return search(board, *inputs, **others)

    monkeypatch.setattr(choosing, "search", count)
    monkeypatch.setattr("jaxzero.host.programs.cache_folder", lambda: None)  # no stored program
    visits = [choosing.think(agent, EMPTY, n).visits.sum() for n in (16, 64, 256, 1024)]
    assert 0 < visits[0] < visits[1] < visits[2] < visits[3] <= 1024
    made = expert.new_expert(agent, 0.1)
    expert.choose_edges(made, np.zeros(1, np.uint32), EMPTY[None])
    keys = jax.random.split(jax.random.key(0), 1)
    found = make_player("search:64", BOARD, agent).decide(keys, initial_states(BOARD, 1))
    assert found.edge == choosing.think(agent, EMPTY, 64).edge
    assert len(traced) == 1


def test_weights_may_lie_on_any_device(agent):
    """On the first device, on another one, or on all of them, as after training."""
    first, second = jax.devices()[:2]
    wanted = choosing.choose_many(agent, EMPTY[None], 0)
    mesh = jax.sharding.Mesh([first, second], "d")
    everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    for place in (first, second, everywhere):
        placed = replace(agent, params=jax.device_put(agent.params, place))
        found = choosing.choose_many(placed, EMPTY[None], 0)
        np.testing.assert_allclose(found[:2], wanted[:2], rtol=1e-5)


@pytest.mark.parametrize("simulations", [1, 64, 65, 1024, 4097, 65_536, 65_537])
def test_every_number_of_simulations_has_a_program_with_little_room(
    agent, simulations, monkeypatch
):
    asked = []

    def note(_function, agent, drawn, rounds):
        asked.append((agent.settings.simulations, len(np.atleast_2d(drawn)), int(rounds[1].max())))
        answer = Choice if drawn.ndim > 1 else choosing.SearchOutput
        return answer(*[np.zeros(len(drawn))] * len(answer._fields))

    monkeypatch.setattr(choosing, "call", note)
    # The rounds of that many simulations take seconds to compute.
    monkeypatch.setattr(
        choosing, "padded_rounds", lambda settings, simulations: (0, np.array([simulations]), 0)
    )
    choosing.think(agent, EMPTY, simulations)
    choosing.choose_many(agent, np.zeros((300, BOARD.num_edges), bool), simulations)
    for most, positions, needed in asked:
        assert needed == simulations <= most
        assert most <= max(choosing.MOST, 2 * simulations)
        assert positions == 1 or positions * most <= max(256 * 1024, 16 * 2 * simulations)
