"""Fresh weights of one program, and a complete run of six iterations for the tests of a file."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import jax
import numpy as np
import pytest
from short_run import short_config

from jaxzero.training import learner
from jaxzero.training.trainer import train


@pytest.fixture(autouse=True, scope="session")
def fresh_weights_share_a_program():
    """Compile the initialisation once for a network, not for every run."""
    initialise = cache(lambda network: jax.jit(network.init))

    def init_params(network, key):
        return initialise(network)(key, np.zeros((1, network.game.num_edges), bool))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learner, "init_params", init_params)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A complete short run."""
    run_dir = tmp_path_factory.mktemp("whole") / "run"
    assert train(short_config(), run_dir)
    return run_dir


@pytest.fixture
def run(whole, tmp_path) -> Path:
    """A copy of the complete short run, to be damaged."""
    return Path(shutil.copytree(whole, tmp_path / "run"))
