"""Test where a run may start, resume and end, and which files other programs may write there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from jaxzero.cli import load_config
from jaxzero.config import save_config
from jaxzero.errors import InputError
from jaxzero.runs.run_dir import (
    OF_TRAINING,
    check_new_folder,
    check_result_file,
    check_run_dir,
    new_folder,
)

CONFIG = load_config("configs/tiny.yaml")


@pytest.fixture
def run_dir(tmp_path) -> Path:
    """Return a run of 48 iterations and 3 minutes; no checkpoint has its last 8 iterations."""
    folder = tmp_path / "run"
    for kept in (20, 40):
        (folder / "checkpoints" / str(kept)).mkdir(parents=True)
    save_config(CONFIG, folder / "config.yaml")
    lines = [{"iteration": n, "speed/minutes": n / 16} for n in (20, 40, 48)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_a_run_may_end_where_it_is_and_later(run_dir):
    for change in ({}, {"iterations": 40}, {"iterations": 400}, {"iterations": 0, "minutes": 3.0}):
        check_run_dir(replace(CONFIG, **change), run_dir, resume=True)
    for name, value in (("iterations", 39), ("minutes", 2.4)):
        with pytest.raises(InputError, match=rf"^{name}: {value} is less than"):
            check_run_dir(replace(CONFIG, **{name: value}), run_dir, resume=True)
    with pytest.raises(InputError, match="holds a run"):
        check_run_dir(CONFIG, run_dir, resume=False)
    with pytest.raises(InputError, match="holds no run"):
        check_run_dir(CONFIG, run_dir / "other", resume=True)
    over = replace(CONFIG, minutes=2.49)  # its last iteration ended after this limit
    save_config(over, run_dir / "config.yaml")
    check_run_dir(over, run_dir, resume=True)


@pytest.mark.parametrize("name", ["photo.jpg", "sweep.json", "metrics.jsonl", "checkpoints"])
def test_a_run_starts_among_no_older_files_but_logs(name, tmp_path):
    for log in ("train.log", "slurm-7.out", ".lock"):
        (tmp_path / log).write_text("")
    check_run_dir(CONFIG, tmp_path, resume=False)
    (tmp_path / name).write_text("")
    with pytest.raises(InputError, match=rf"^run_dir: .*\({name}\)"):
        check_run_dir(CONFIG, tmp_path, resume=False)


def test_a_program_goes_on_in_its_own_folder_alone(run_dir, tmp_path):
    own = tmp_path / "sweep"
    check_new_folder("out", own, ("sweep.json",))
    own.mkdir()
    (own / "points").mkdir()
    with pytest.raises(InputError, match=r"^out: .*\(points\)"):
        check_new_folder("out", own, ("sweep.json",))
    (own / "sweep.json").write_text("{}")
    check_new_folder("out", own, ("sweep.json",))
    with pytest.raises(InputError, match=r"^out: .* training run"):
        check_new_folder("out", run_dir, ("sweep.json",))


def test_results_may_lie_beside_a_run_and_replace_nothing_of_it(run_dir):
    (run_dir / "table.json").write_text("{}")
    for name in ("table.json", "weights", "ladder.png", "new"):
        check_result_file("json", run_dir / name)
    for name in (*OF_TRAINING, "checkpoints/40/x"):
        with pytest.raises(InputError, match=r"^json: .* training run"):
            check_result_file("json", run_dir / name)


def test_a_folder_that_nothing_was_written_to_goes_again(tmp_path):
    for name in ("refused", "used"):
        with pytest.raises(InputError), new_folder("out", tmp_path / name / "deep"):
            if name == "used":
                (tmp_path / name / "file").write_text("")
            raise InputError("no")
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == [
        "used",
        "used/file",
    ]
