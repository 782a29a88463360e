"""Test the comparison of runs: seeds are averaged, levels count when first reached."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jaxzero.cli import load_config
from jaxzero.config.files import save_config
from jaxzero.errors import InputError
from jaxzero.runs.compare import (
    draw_runs,
    final,
    format_runs,
    group_runs,
    levels,
    players,
    read_run,
)
from jaxzero.runs.weights import Effort, InitialWeights, note_initial_weights

WRONG = (30.0, 9.0, 4.0)
BEGUN = InitialWeights(None, {}, "5x5", Effort(games=1000, minutes=20.0))


def make_run(folder: Path, *options: str, wrong: tuple[float, ...] = WRONG) -> Path:
    folder.mkdir()
    save_config(load_config("configs/tiny.yaml", *options), folder / "config.yaml")
    lines = [
        {
            "iteration": 2 * number,
            "speed/games": 100 * number,
            "speed/minutes": 0.5 * number,
            "suite/policy/optimal_share": 1 - percent / 100,
            "suite/search:16/optimal_share": 1 - percent / 200,
        }
        for number, percent in enumerate(wrong, start=1)
    ]
    lines.insert(1, {"iteration": 3, "speed/games": 150, "speed/minutes": 0.7})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def runs(tmp_path):
    """Return two runs that differ in their seed only, and one run with another setting."""
    other = ("--seed=1", "--search.value_scale_per_box=1")
    return [
        read_run(make_run(tmp_path / name, *given, wrong=(30.0, 9.0, end)))
        for name, given, end in (("a", ["--seed=1"], 4), ("b", ["--seed=2"], 6), ("c", other, 2))
    ]


def test_seeds_join_and_what_differs_is_the_name(runs, tmp_path):
    assert [point.games for point in runs[0].measurements] == [100, 200, 300]
    assert runs[0].measurements[0].wrong == pytest.approx({"policy": 30.0, "search:16": 15.0})
    with pytest.raises(InputError, match=r"^runs: .*blind was never measured"):
        read_run(make_run(tmp_path / "blind", wrong=()))
    groups = group_runs(runs)
    assert players(groups) == ["policy", "search:16"]
    assert {group.name: len(group.runs) for group in groups} == {
        "-": 2,
        "search.value_scale_per_box 1.0": 1,
    }
    # Student's t at 97.5 %, one degree of freedom: 12.706. Standard error of 4 and 6: 1.
    assert final(groups[0], "policy") == "5.00 % [0.00, 17.71]"
    assert final(groups[1], "policy") == "2.00 %" and "5.00 % [0.00, 17.71]" in format_runs(groups)
    assert "at most 10 % wrong   policy: 200 games" in levels(groups[0])
    draw_runs(tmp_path / "figure.png", groups)
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_only_finished_runs_are_averaged_where_there_are_any(tmp_path):
    paths = [
        make_run(tmp_path / name, f"--seed={number}", "--iterations=6", wrong=wrong)
        for number, (name, wrong) in enumerate({"a": WRONG, "b": WRONG, "c": WRONG[:1]}.items())
    ]
    (going,) = group_runs([read_run(path) for path in paths])
    assert final(going, "policy").startswith("12.67 %")
    assert "3, 3 unfinished" in format_runs([going])
    done = {"iterations": 6, "games": 300, "minutes": 1.5, "suite": {}}
    for path in paths[:2]:
        (path / "summary.json").write_text(json.dumps(done))
    (partly,) = group_runs([read_run(path) for path in paths])
    assert final(partly, "policy") == "4.00 % [4.00, 4.00]"
    line = format_runs([partly]).splitlines()[1]
    assert "3, 1 unfinished  " in line and " 300 " in line
    assert levels(partly).splitlines()[0] == f"-: {paths[0]}"


def test_runs_that_are_no_seeds_of_each_other_are_not_averaged(runs, tmp_path):
    """A run with initial weights also counts the games and minutes behind these weights."""
    with pytest.raises(InputError, match=r"runs: .*a and .*a have the same settings and seed 1"):
        group_runs([*runs, runs[0]])
    note_initial_weights(make_run(tmp_path / "later", "--seed=2"), BEGUN)
    later = read_run(tmp_path / "later")
    assert later.measurements[0][:2] == (1100, 20.5)
    assert [len(group.runs) for group in group_runs([runs[0], later])] == [1, 1]
    assert "weights 5x5" in [group.name for group in group_runs([runs[0], later])]
