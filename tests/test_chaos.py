"""A short version of `make chaos`."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest
from script_runner import ROOT, TINY

from jaxzero.cli import config_of, config_parser, parse, save_config

sys.path.insert(0, str(ROOT / "scripts"))
import chaos


# Five trainings in processes of their own. That a run resumes bit for bit and that damaged
# checkpoints are passed over have tests in training/; `make chaos` does this at length.
@pytest.mark.slow
def test_a_run_that_is_killed_and_damaged_ends_as_one_that_is_left_alone(tmp_path):
    small, work = tmp_path / "small.yaml", tmp_path / "work"
    parser = config_parser("")
    save_config(config_of(parser, parse(parser, TINY.split())), small)
    work.mkdir()
    options = ["--kills", "2", "--work", work.name, "--config", small.name]
    words = [sys.executable, ROOT / "scripts" / "chaos.py", *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=800
    )
    assert ended.returncode == 0, ended.stderr
    assert "The same parameters, bit for bit" in ended.stdout
    assert not any(work.iterdir())


def test_damage_is_counted_and_spares_a_single_checkpoint(tmp_path):
    run_dir, chance = tmp_path / "run", random.Random(0)
    for iteration in (2, 4):
        folder = run_dir / "checkpoints" / str(iteration)
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(bytes(100))
        if iteration == 2:
            assert chaos.damage(run_dir, chance, chaos.Chaos()) == chaos.Chaos()
    done = chaos.Chaos()
    for _ in range(20):
        (run_dir / "checkpoints" / "4" / "file").write_bytes(bytes(100))
        done = chaos.damage(run_dir, chance, done)
        assert (run_dir / "checkpoints" / "4" / "file").read_bytes() != bytes(100)
        assert (run_dir / "checkpoints" / "2" / "file").read_bytes() == bytes(100)
    assert done.truncated + done.flipped == 20 and done.truncated and done.flipped


@pytest.mark.parametrize("kills", ["0", "-1", "10001"])
def test_a_number_of_kills_that_makes_no_sense_is_refused(kills):
    words = [sys.executable, ROOT / "scripts" / "chaos.py", "--kills", kills]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 2 and ended.stderr.startswith(f"error: kills: {kills} must be")
