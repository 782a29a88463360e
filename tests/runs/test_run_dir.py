"""Test where a run may start, resume and end, and which files other programs may write there."""

from dataclasses import replace
from pathlib import Path

import pytest

from jaxzero.cli import load_config
from jaxzero.errors import InputError
from jaxzero.runs.run_dir import (
    OF_TRAINING,
    check_result_file,
    check_run_dir,
    new_folder,
    save_config,
)

CONFIG = load_config("configs/tiny.yaml")


@pytest.fixture
def run_dir(tmp_path) -> Path:
    """Return the folder of a run with two checkpoints."""
    folder = tmp_path / "run"
    for kept in (20, 40):
        (folder / "checkpoints" / str(kept)).mkdir(parents=True)
    save_config(CONFIG, folder / "config.yaml")
    return folder


def test_a_run_begins_in_a_new_folder_and_is_resumed_in_its_own(run_dir):
    check_run_dir(replace(CONFIG, iterations=400), run_dir, resume=True)
    with pytest.raises(InputError, match="holds a run"):
        check_run_dir(CONFIG, run_dir, resume=False)
    with pytest.raises(InputError, match="holds no run"):
        check_run_dir(CONFIG, run_dir / "other", resume=True)


@pytest.mark.parametrize("name", ["a[1]", "b]", "**", "c?", "{d}", "back\\slash"])
def test_a_folder_that_orbax_would_read_as_a_pattern_is_refused(name, tmp_path):
    (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(name)
    for folder in (tmp_path / name / "run", tmp_path / "link"):
        with pytest.raises(InputError, match=r"^run_dir: "):
            check_run_dir(CONFIG, folder, resume=False)


@pytest.mark.parametrize("name", ["photo.jpg", "sweep.json", "metrics.jsonl", "checkpoints"])
def test_a_run_starts_among_no_older_files_but_logs(name, tmp_path):
    for log in ("train.log", "slurm-7.out", ".lock"):
        (tmp_path / log).write_text("")
    check_run_dir(CONFIG, tmp_path, resume=False)
    (tmp_path / name).write_text("")
    with pytest.raises(InputError, match=rf"^run_dir: .*\({name}\)"):
        check_run_dir(CONFIG, tmp_path, resume=False)


def test_results_may_lie_beside_a_run_and_replace_nothing_of_it(run_dir):
    (run_dir / "table.json").write_text("{}")
    for name in ("table.json", "weights", "ladder.png", "new"):
        check_result_file("json", run_dir / name)
    for name in (*OF_TRAINING, "checkpoints/40/x"):
        with pytest.raises(InputError, match=r"^json: .* training run"):
            check_result_file("json", run_dir / name)


def test_a_new_folder_that_nothing_was_written_to_goes_again(tmp_path):
    for name in ("refused", "used"):
        with pytest.raises(InputError), new_folder("out", tmp_path / name):
            if name == "used":
                (tmp_path / name / "file").write_text("")
            raise InputError("no")
    assert [path.name for path in tmp_path.iterdir()] == ["used"]
