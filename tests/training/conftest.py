"""Share one complete run of six iterations among all tests of this folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from short_run import short_config

from jaxzero.training.trainer import train


@pytest.fixture(scope="session")
def whole(tmp_path_factory) -> Path:
    """Train a complete short run; return its folder."""
    run_dir = tmp_path_factory.mktemp("whole") / "run"
    assert train(short_config(), run_dir)
    return run_dir


@pytest.fixture
def run(whole, tmp_path) -> Path:
    """Copy the complete short run, so that a test can damage it."""
    return Path(shutil.copytree(whole, tmp_path / "run"))
