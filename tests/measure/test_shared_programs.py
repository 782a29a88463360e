"""Networks of the same shape share what is compiled for matches and suites."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np

from jaxzero.measure.scoring import compile_answers
from jaxzero.players.players import make_player
from jaxzero.runs.weights import load_weights


def test_networks_alike_share_their_programs():
    loaded = load_weights("2x2").agent
    other = replace(loaded, params=jax.tree.map(np.zeros_like, loaded.params))
    warm = replace(loaded, temperature=0.5)
    game = loaded.network.game
    for name in ("policy", "search:4"):
        acts = [make_player(name, game, agent).act for agent in (loaded, other, warm)]
        assert acts[0] is acts[1] is not acts[2]
    answers = [compile_answers(agent.network, agent.settings, 4) for agent in (loaded, other)]
    assert answers[0] is answers[1]
    assert answers[0] is not compile_answers(loaded.network, loaded.settings, 0)
