"""Test the answers of a network: few programs for all requests, weights on any device."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from compiled import tiny_agent

from jaxzero.game import DotsAndBoxes, initial_states
from jaxzero.host import background
from jaxzero.measure.arena import play_match
from jaxzero.network.network import Agent
from jaxzero.players import expert, network_player
from jaxzero.players.network_player import (
    BATCHES,
    MAX_OF_LARGE,
    MIN_ROOM,
    Answer,
    choose_edge,
    choose_edges,
)
from jaxzero.players.players import make_player

BOARD = DotsAndBoxes(1, 2)
EMPTY = np.zeros(BOARD.num_edges, bool)


@pytest.fixture
def agent(monkeypatch) -> Agent:
    """Return an agent without compiled programs."""
    monkeypatch.setattr(background, "_boards", background.OrderedDict())
    return tiny_agent(BOARD)


@pytest.fixture
def traced(monkeypatch) -> list[int]:
    """Return the list of the programs that are traced, by their numbers of positions."""
    sizes, answer = [], network_player.answer

    def note(board, settings, evaluator, drawn, *others):
        if board == BOARD:  # a thread may still compile for another test
            sizes.append(len(drawn))
        return answer(board, settings, evaluator, drawn, *others)

    monkeypatch.setattr(network_player, "answer", note)
    monkeypatch.setattr("jaxzero.host.programs.cache_folder", lambda: None)  # no stored program
    return sizes


def test_a_board_has_one_program_of_a_search(agent, traced):
    """Analysis, expert and player share this program for any number of simulations."""
    visits = [choose_edge(agent, EMPTY, n).visits.sum() for n in (16, 64, 256, 1024)]
    assert 0 < visits[0] < visits[1] < visits[2] < visits[3] <= 1024
    made = expert.new_expert(agent, 0.1)
    expert.choose_edges(made, np.zeros(1, np.uint32), EMPTY[None])
    keys = jax.random.split(jax.random.key(0), 1)
    choice = make_player("search:64", BOARD, agent).decide(keys, initial_states(BOARD, 1))
    assert choice.edge == choose_edge(agent, EMPTY, 64).edge
    assert traced == [1]


@pytest.mark.parametrize("simulations", [0, 16])
def test_weights_and_temperature_are_data_of_a_program(simulations, agent, traced):
    flat = replace(agent, params=jax.tree.map(np.zeros_like, agent.params))
    name = f"search:{simulations}" if simulations else "policy"
    keys, states = jax.random.split(jax.random.key(0), 2), initial_states(BOARD, 2)
    values = []
    for other in (agent, flat, replace(agent, temperature=0.5)):
        choice = make_player(name, BOARD, other).decide(keys, states)
        values.append(choice.value[0])
    assert values[0] == values[2] != values[1] and len(traced) == 1


def test_a_match_of_32_games_takes_the_program_of_the_suites(agent, monkeypatch):
    sizes = []

    def first_free(_function, agent, drawn, _noise, _rounds):
        sizes.append(len(drawn))
        zeros, edge = np.zeros(len(drawn)), np.argmin(drawn, axis=1)
        return Answer(edge, zeros, edge, zeros, drawn, drawn, drawn)

    monkeypatch.setattr(network_player, "call", first_free)
    player = make_player("search:16", BOARD, agent)
    play_match(BOARD, player, make_player("random", BOARD), 32, 2, seed=0)
    choose_edges(agent, np.zeros((100, BOARD.num_edges), bool), 16)
    assert set(sizes) == {BATCHES[2]}


def test_weights_may_lie_on_any_device(agent):
    """On the first device, on another one, or on all of them, as after training."""
    first, second = jax.devices()[:2]
    wanted = choose_edges(agent, EMPTY[None], 0)
    mesh = jax.sharding.Mesh([first, second], "d")
    everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    for place in (first, second, everywhere):
        placed = replace(agent, params=jax.device_put(agent.params, place))
        answer = choose_edges(placed, EMPTY[None], 0)
        np.testing.assert_allclose(answer.value, wanted.value, rtol=1e-5)
        np.testing.assert_array_equal(answer.edge, wanted.edge)


@pytest.mark.parametrize("simulations", [1, 64, 65, 1024, 4097, 65_536, 65_537])
def test_every_number_of_simulations_has_a_program_with_little_room(
    agent, simulations, monkeypatch
):
    requests = []

    def note(_function, agent, drawn, _noise, rounds):
        requests.append((agent.settings.simulations, len(drawn), int(rounds[1].max())))
        return Answer(*[np.zeros(len(drawn))] * len(Answer._fields))

    monkeypatch.setattr(network_player, "call", note)
    # The rounds of that many simulations take seconds to compute.
    monkeypatch.setattr(
        network_player,
        "padded_rounds",
        lambda settings, simulations: (0, np.array([simulations]), 0),
    )
    for positions in (1, 2, 300):
        drawn = np.zeros((positions, BOARD.num_edges), bool)
        assert len(choose_edges(agent, drawn, simulations).edge) == positions
    assert {size for _, size, _ in requests} <= set(BATCHES)
    for room, size, needed in requests:
        assert needed == simulations <= room <= max(MIN_ROOM[size], 2 * simulations)
        largest = max(BATCHES[2] * MAX_OF_LARGE, BATCHES[1] * 2 * simulations)
        assert size == 1 or size * room <= largest
