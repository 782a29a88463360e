"""A short version of `make chaos`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from script_runner import ROOT, TINY

from jaxzero.cli import config_of, config_parser, parse
from jaxzero.config.files import save_config


# This starts four to six training processes. Tests in training/ check that a run resumes bit for
# bit and that damaged checkpoints are skipped; `make chaos` is the long version of this test.
@pytest.mark.slow
def test_a_run_that_is_killed_and_damaged_ends_as_one_that_is_left_alone(tmp_path):
    small, parser = tmp_path / "small.yaml", config_parser("")
    save_config(config_of(parser, parse(parser, TINY.split())), small)
    words = [sys.executable, ROOT / "tests" / "chaos.py", "--kills", "2", "--config", small]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=800)
    assert ended.returncode == 0, ended.stderr
