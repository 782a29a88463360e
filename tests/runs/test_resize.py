"""Test networks on other boards: counts, margins and chain lengths keep their meaning."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled import analyse, any_params, apply

from jaxzero.config import NetworkConfig, SearchConfig
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes
from jaxzero.heads import margin_bins
from jaxzero.network.features import count_codes, count_rows, encode, grid_inputs
from jaxzero.network.network import Agent, Network
from jaxzero.runs.resize import margin_columns, resize, resize_params

CONV = NetworkConfig(trunk="conv", channels=8, blocks=1)
SMALL, LARGE = DotsAndBoxes(2, 2), DotsAndBoxes(3, 4)


@pytest.mark.parametrize("boards", [(SMALL, LARGE), (LARGE, SMALL), (LARGE, DotsAndBoxes(4, 3))])
def test_a_count_means_on_one_board_what_it_means_on_another(boards):
    source, target = boards
    rng = np.random.default_rng(0)
    read = rng.normal(size=len(count_rows(source, source)))
    ours, theirs = (count_codes(board)._asdict() for board in boards)
    counts = {n: rng.choice(list(code.values), size=code.counts) for n, code in theirs.items()}
    # Counts beyond the source's largest have the code of its largest.
    known = {name: np.resize(counts[name], code.counts) for name, code in ours.items()}

    @jax.jit
    def coded(counts, known):
        return [
            [encode([code], [those[name]]) for name, code in codes.items()]
            for codes, those in ((theirs, counts), (ours, known))
        ]

    bits, there = jax.device_get(coded(counts, known))
    rows, first = count_rows(source, target), 0
    said, begin = read[rows] * np.concatenate(bits), 0
    for (name, code), own in zip(ours.items(), there, strict=True):
        wanted = theirs[name]
        both = min(code.counts, wanted.counts)
        part = said[begin : begin + both * wanted.bits].sum()
        weights = read[first : first + code.counts * code.bits].reshape(code.counts, -1)
        assert part == pytest.approx((weights * own.reshape(code.counts, -1))[:both].sum()), name
        first, begin = first + code.counts * code.bits, begin + wanted.counts * wanted.bits


def test_a_margin_has_the_bin_of_the_same_margin():
    ours, theirs = np.asarray(margin_bins(SMALL)), np.asarray(margin_bins(LARGE))
    found = ours[margin_columns(SMALL, LARGE)]
    inside = np.abs(theirs) <= SMALL.num_boxes
    np.testing.assert_array_equal(found[inside], theirs[inside])
    assert (np.abs(found[~inside]) >= SMALL.num_boxes - 1).all()
    assert ((found - theirs) % 2 == 0).all()
    np.testing.assert_array_equal(theirs[margin_columns(LARGE, SMALL)], ours)


def test_a_network_that_went_to_a_larger_board_and_back_says_the_same():
    network, large = Network(SMALL, CONV), Network(LARGE, CONV)
    params = any_params(network)
    there = resize_params(network, large, params)
    chex.assert_trees_all_close(resize_params(large, network, there), params, rtol=1e-6)
    turned = Network(DotsAndBoxes(4, 3), CONV)
    chex.assert_trees_all_equal(resize_params(large, turned, there), there)
    drawn = np.random.default_rng(0).random((8, LARGE.num_edges)) < 0.5
    said = apply(large)(there, drawn, analyse(LARGE)(drawn))
    assert np.isfinite(said.policy_logits).all() and said.head_logits["margin"].shape == (8, 25)


def test_the_length_of_a_chain_has_the_same_weight():
    """The input for a chain of three of twelve boxes is 3/12; no other input has this value."""
    drawn = np.zeros(LARGE.num_edges, bool)
    drawn[:3] = drawn[4:7] = True  # a corridor from the left rim to a box of four open sides
    inputs = drawn[None], analyse(LARGE)(drawn[None])
    shares, _ = jax.jit(lambda *seen: grid_inputs(LARGE, *seen, jnp.float32))(*inputs)
    shares = np.asarray(shares).reshape(-1, shares.shape[-1])
    (place,) = np.flatnonzero((shares == 3 / 12).any(axis=0))
    network = Network(LARGE, CONV)
    params = any_params(network)
    there = resize_params(network, Network(SMALL, CONV), params)
    ours, theirs = (one["params"]["planes"]["kernel"][..., place, :] for one in (params, there))
    np.testing.assert_allclose(theirs / SMALL.num_boxes, ours / LARGE.num_boxes, rtol=1e-6)


def test_only_a_trunk_of_no_size_plays_another_board():
    for config in (NetworkConfig(trunk="dense"), NetworkConfig(trunk="conv", attention_heads=2)):
        agent = Agent(Network(SMALL, config), {}, SearchConfig())
        assert resize(agent, SMALL, "weights: x") is agent
        with pytest.raises(InputError, match=r"^weights: x was trained on 2x2 and cannot play 3x4"):
            resize(agent, LARGE, "weights: x")
