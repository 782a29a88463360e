"""Test labels of self-play positions: results, lambda-returns and ends of the safe moves."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.cli import load_config
from jaxzero.config import SelfplayConfig
from jaxzero.heads import HEADS, Decisions, heads_of, possible_margin, totals
from jaxzero.training.targets import label

EDGES, KEY = 12, jax.random.key(0)


def decisions_of(**fields) -> Decisions:
    """Return decisions [T, B] with these fields, the others zero."""
    steps = fields["random"].shape
    given = {
        "drawn": jnp.zeros((*steps, EDGES), bool),
        "policy": jnp.zeros((*steps, EDGES)),
        "player": jnp.zeros(steps, jnp.int32),
        "ahead": jnp.zeros(steps, jnp.int32),
        "played": jnp.ones(steps, bool),
        "game": jnp.broadcast_to(jnp.arange(steps[1]), steps),
        "random": jnp.zeros(steps, bool),
    }
    others = ("entropy", "surprise", "simulations", "evaluations", "value")
    rest = {name: jnp.zeros(steps) for name in others}
    return Decisions(**(given | rest | fields))


def test_early_targets_are_lambda_returns_and_late_ones_results():
    """Each lane has two games, one after the other; even lanes do not play the last step."""
    rng, steps, lanes, settings = (
        np.random.default_rng(0),
        12,
        40,
        SelfplayConfig(td_lambda=0.7, td_above_edges=5),
    )
    first_length = rng.integers(1, steps - 1, lanes)
    game = np.where(np.arange(steps)[:, None] < first_length, np.arange(lanes), lanes)
    game = np.where(game == lanes, lanes + np.arange(lanes), game)
    fields = {
        "drawn": rng.random((steps, lanes, EDGES)) < 0.5,
        "player": rng.integers(0, 2, (steps, lanes)),
        "ahead": rng.integers(-3, 4, (steps, lanes)),
        "random": rng.random((steps, lanes)) < 0.2,
        "value": rng.normal(0, 3, (steps, lanes)).astype(np.float32),
        "game": game,
        "played": np.arange(steps)[:, None] < np.where(np.arange(lanes) % 2, steps, steps - 1),
    }
    results = rng.integers(-4, 5, 2 * lanes)
    decisions = decisions_of(**{name: jnp.asarray(field) for name, field in fields.items()})
    total, known = jax.device_get(totals(settings, decisions, jnp.asarray(results)))
    expected = fields["ahead"] + np.where(fields["player"], -1, 1) * fields["value"]
    early = (~fields["drawn"]).sum(-1) > settings.td_above_edges
    random, compared = fields["random"], 0

    def taught(lane: int, here: int, *later: int) -> tuple[float, bool]:
        """Return the target of the first of these decisions of a game, and whether it is known."""
        if not later:
            return results[game[here, lane]], not random[here, lane]
        total, is_known = taught(lane, *later)
        share = settings.td_lambda if early[here, lane] else 1.0
        share = share if is_known else 0.0
        mean = share * total + (1 - share) * expected[later[0], lane]
        return mean, not random[here, lane] and (is_known or early[here, lane])

    for lane in range(lanes):
        for number in {lane, lane + lanes}:
            own = np.flatnonzero((game[:, lane] == number) & fields["played"][:, lane])
            for first, step in enumerate(own):
                mean, is_known = taught(lane, *own[first:])
                assert known[step, lane] == is_known
                if is_known:
                    assert total[step, lane] == pytest.approx(mean, abs=1e-4)
                    compared += early[step, lane] and own[-1] > step
    assert compared > 50


def board_of(*rows: str) -> np.ndarray:
    """Return the drawn edges [A] of a picture with - and | between dots."""
    across = [mark == "-" for row in rows[::2] for mark in row[1::2]]
    return np.array(across + [mark == "|" for row in rows[1::2] for mark in row[::2]])


# A loop of four boxes, a chain of two, and the right column, a chain of three: two are long.
NO_SAFE_EDGE = board_of("+-+-+ +", "|   | |", "+ + + +", "|   | |", "+-+-+ +", "    | |", "+-+ + +")
A_SAFE_EDGE = board_of("+ + + +", "|      ", "+ + + +", "       ", "+ + + +", "       ", "+-+ + +")


def test_the_end_of_the_safe_moves_is_told_back_to_the_first_move():
    """Four games in three lanes: the second lane has two games, the third a random move."""
    options = ("--game.rows=3", "--game.cols=3", "--network.trunk=conv", "--network.safe_end=true")
    config = load_config("configs/tiny.yaml", *options)
    ended, safe = NO_SAFE_EDGE, A_SAFE_EDGE
    drawn = np.stack([[safe] * 3, [safe, ended, safe], [ended, safe, ended], [ended, safe, ended]])
    decisions = decisions_of(
        drawn=jnp.asarray(drawn),
        player=jnp.array([[0, 0, 1], [1, 1, 0], [1, 0, 0], [0, 1, 1]]),
        random=jnp.array([[0, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]], bool),
        game=jnp.array([[0, 1, 3], [0, 1, 3], [0, 2, 3], [0, 2, 3]]),
        played=jnp.array([[1, 1, 1], [1, 1, 1], [1, 1, 1], [1, 1, 0]], bool),
    )
    told = np.asarray(HEADS["safe_end"].label(config, decisions, None, None))
    # First lane: player 1 is the first without a safe edge. Second: its last game still has one.
    both = 2 * 2
    assert told.tolist() == [[both + 1, both + 1, -1], [both, -1, both], [-1, -1, -1], [-1, -1, -1]]
    assert set(heads_of(config.network)) == {"margin", "safe_end"}
    without = load_config("configs/tiny.yaml")
    labelled = label(without, decisions_of(random=jnp.zeros((2, 3), bool)), jnp.zeros(3), KEY)
    assert {name: x.shape for name, x in labelled.labels.items()} == {"margin": (6,)}


def test_margins_are_rounded_to_possible_ones_without_a_bias():
    left = jnp.array([4, 5, 5, 3, 0])
    wanted = jnp.array([0.6, -1.7, 5.0, 1.0, 0.0])
    uniform = jax.random.uniform(jax.random.key(0), (20_000, 5))
    rounded = np.asarray(possible_margin(wanted[None], left[None], uniform))
    assert ((rounded - np.asarray(left)) % 2 == 0).all()
    assert (abs(rounded) <= np.asarray(left)).all()
    np.testing.assert_allclose(rounded.mean(0), wanted, atol=0.03)
    # Possible whole margins stay unchanged, whatever the random number.
    assert (rounded[:, 2:] == np.asarray(wanted)[2:]).all()
    edge = possible_margin(jnp.float32(12.0), jnp.int32(24), jnp.float32(1 - 2**-24))
    assert int(edge) == 12
