"""A complete run of six iterations, shared by all tests of this folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from short_run import short_config

from jaxzero.training.trainer import train


@pytest.fixture(scope="session")
def whole(tmp_path_factory) -> Path:
    """A complete short run."""
    run_dir = tmp_path_factory.mktemp("whole") / "run"
    assert train(short_config(), run_dir)
    return run_dir


@pytest.fixture
def run(whole, tmp_path) -> Path:
    """A copy of the complete short run, to be damaged."""
    return Path(shutil.copytree(whole, tmp_path / "run"))
