"""The script of a study, from the command line."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from script_runner import run_here

from jaxzero.errors import InputError

ROOT = Path(__file__).parents[2]
TINY = ("--config", "configs/tiny.yaml", "--network.channels", "16", "--network.features", "raw")


def main(*arguments: str | Path) -> None:
    """Run the script in this process."""
    runpy.run_path(str(ROOT / "scripts" / "study.py"))["main"](list(map(str, arguments)))


def test_a_study_and_a_comparison(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("jaxzero.study.results.INFERENCE_SECONDS", 0.01)
    done = run_here("study.py", *TINY, "--out", tmp_path / "tiny", "--positions", "4000")
    assert done.returncode == 0, done.stderr
    main("--compare", tmp_path / "tiny", "--out", tmp_path)
    assert done.stdout.endswith("\n" + capsys.readouterr().out)
    assert (tmp_path / "comparison.png").exists()


def test_bad_input_is_one_line_and_exit_code_2(tmp_path):
    done = run_here("study.py", *TINY, "--out", tmp_path / "out", "--minutes", "0")
    assert done.returncode == 2
    assert done.stderr == "error: minutes: 0 must be > 0 in a study\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--minutes -1", "minutes: -1 must be a number >= 0"),
        ("--positions -1", "positions: -1 must be a whole number >= 0"),
        ("--network.chanels 8", "network.chanels: '8'"),
        ("--game.rows 5", "labels: 5x2 has 27 edges"),
        ("--labels nowhere.npz", "nowhere.npz cannot be read"),
        ("--positions 1", "positions: 1 is less than learner.batch_size, 256"),
        ("--compare nowhere", "config: configs/tiny.yaml cannot stand beside --compare"),
    ],
)
def test_bad_input_names_field_and_value(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        main(*TINY, "--out", tmp_path / "out", *options.split())
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()
