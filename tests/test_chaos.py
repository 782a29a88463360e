"""A short version of `make chaos`."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter

import chaos
import pytest
from script_runner import ROOT, TINY

from jaxzero.cli import config_of, config_parser, parse
from jaxzero.config.files import save_config


# Five trainings in processes of their own. That a run resumes bit for bit and that damaged
# checkpoints are passed over have tests in training/; `make chaos` does this at length.
@pytest.mark.slow
def test_a_run_that_is_killed_and_damaged_ends_as_one_that_is_left_alone(tmp_path):
    small, parser = tmp_path / "small.yaml", config_parser("")
    save_config(config_of(parser, parse(parser, TINY.split())), small)
    words = [sys.executable, ROOT / "tests" / "chaos.py", "--kills", "2", "--config", small]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=800)
    assert ended.returncode == 0, ended.stderr


def test_damage_is_counted_and_spares_a_single_checkpoint(tmp_path):
    run_dir, chance, done = tmp_path / "run", random.Random(0), Counter()
    for iteration in (2, 4):
        folder = run_dir / "checkpoints" / str(iteration)
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(bytes(100))
        if iteration == 2:
            chaos.damage(run_dir, chance, done)
            assert not done
    for _ in range(20):
        (run_dir / "checkpoints" / "4" / "file").write_bytes(bytes(100))
        chaos.damage(run_dir, chance, done)
        assert (run_dir / "checkpoints" / "4" / "file").read_bytes() != bytes(100)
        assert (run_dir / "checkpoints" / "2" / "file").read_bytes() == bytes(100)
    assert done.total() == 20 and done["truncated"] and done["flipped"]
