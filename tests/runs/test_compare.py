"""Laws of setting runs side by side: seeds join, levels are first reached, bad runs are named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jaxzero.cli import load_config, save_config
from jaxzero.errors import InputError
from jaxzero.runs.compare import (
    draw_runs,
    final,
    first_below,
    format_runs,
    format_starts,
    group_runs,
    levels,
    players,
    read_run,
)
from jaxzero.runs.weights import Effort, InitialWeights, note_initial_weights

WRONG = (30.0, 9.0, 4.0)


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
            "suite/policy/boxes_lost": 0.1,
        }
        for number, percent in enumerate(wrong, start=1)
    ]
    lines.insert(1, {"iteration": 3, "speed/games": 150, "speed/minutes": 0.7})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def runs(tmp_path):
    options = {
        "a": ("--seed=1",),
        "b": ("--seed=2",),
        "c": ("--seed=1", "--search.value_scale_per_box=1"),
    }
    ends = {"a": 4.0, "b": 6.0, "c": 2.0}
    return [
        read_run(make_run(tmp_path / name, *given, wrong=(30.0, 9.0, ends[name])))
        for name, given in options.items()
    ]


def test_a_run_is_read_where_it_was_measured(runs):
    assert [point.games for point in runs[0].measurements] == [100, 200, 300]
    assert players(group_runs(runs)) == ["policy", "search:16"]
    assert runs[0].measurements[0].wrong == pytest.approx({"policy": 30.0, "search:16": 15.0})


def test_games_and_minutes_count_from_zero(tmp_path):
    run = make_run(tmp_path / "run")
    note_initial_weights(run, InitialWeights(None, {}, "5x5", Effort(games=1000, minutes=20.0)))
    first = read_run(run).measurements[0]
    assert (first.games, first.minutes) == (1100, 20.5)


def test_seeds_join_and_what_differs_is_the_name(runs):
    entries = group_runs(runs)
    assert {entry.name: len(entry.runs) for entry in entries} == {
        "-": 2,
        "search.value_scale_per_box 1.0": 1,
    }
    # Student's t of one degree of freedom at 97.5 %: 12.706; the mean of 4 and 6 errs by 1.
    assert final(entries[0], "policy") == pytest.approx((5.0, 12.706), rel=1e-4)
    assert "5.00 % [0.00, 17.71]" in format_runs(entries) and "2.00 %" in format_runs(entries)


def test_only_finished_runs_are_averaged_where_there_are_any(tmp_path):
    paths = [
        make_run(tmp_path / name, f"--seed={number}", "--iterations=6", wrong=wrong)
        for number, (name, wrong) in enumerate({"a": WRONG, "b": WRONG, "c": WRONG[:1]}.items())
    ]
    (going,) = group_runs([read_run(path) for path in paths])
    assert final(going, "policy")[0] == pytest.approx((4.0 + 4.0 + 30.0) / 3)
    assert "3, 3 unfinished" in format_runs([going])
    done = {"iterations": 6, "games": 300, "minutes": 1.5, "suite": {}}
    for path in paths[:2]:
        (path / "summary.json").write_text(json.dumps(done))
    (partly,) = group_runs([read_run(path) for path in paths])
    assert final(partly, "policy") == pytest.approx((4.0, 0.0))
    line = format_runs([partly]).splitlines()[1]
    assert "3, 1 unfinished  " in line and " 300 " in line
    assert levels(partly).splitlines()[0] == f"-: {paths[0]}"


def test_runs_that_are_no_seeds_of_each_other_are_not_averaged(runs, tmp_path):
    with pytest.raises(InputError, match=r"runs: .*a and .*a have the same settings and seed 1"):
        group_runs([*runs, runs[0]])
    later = make_run(tmp_path / "later", "--seed=2")
    note_initial_weights(later, InitialWeights(None, {}, "5x5", Effort(games=1000, minutes=20.0)))
    groups = group_runs([runs[0], read_run(later)])
    assert [len(group.runs) for group in groups] == [1, 1]
    assert "weights 5x5" in [group.name for group in groups]


def test_what_the_machines_had_not_in_common_is_told(runs):
    assert format_starts(group_runs(runs)) == ""
    for run, device in zip(runs, ("cpu", "cpu", "H100"), strict=True):
        line = {"device": device, "commit": "abc", "versions": {"jax": "1"}}
        (run.run_dir / "starts.jsonl").write_text(json.dumps(line) + "\n")
    a, b, c = (run.run_dir for run in runs)
    assert format_starts(group_runs(runs)) == f'device differs: "cpu" ({a}, {b}); "H100" ({c})'


def test_every_start_that_trained_is_told(runs):
    """Not one that only measured a run of six iterations again."""
    a, b = (run.run_dir for run in runs[:2])

    def start(run_dir: Path, commit: str, after: int) -> None:
        with (run_dir / "starts.jsonl").open("a") as file:
            file.write(json.dumps({"commit": commit, "after_iteration": after}) + "\n")

    start(a, "A", 0)
    start(b, "A", 0)
    start(b, "B", 6)
    assert format_starts(group_runs(runs[:2])) == ""
    start(a, "B", 4)
    assert format_starts(group_runs(runs[:2])) == f'commit differs: "A" ({a}, {b}); "B" ({a})'


def test_a_level_is_reached_at_the_first_evaluation_below_it(runs):
    assert first_below(runs[0], "policy", 10).games == 200
    assert first_below(runs[0], "policy", 9.01).minutes == 1.0
    assert first_below(runs[0], "policy", 1) is None
    assert "at most 10 % wrong   policy: 200 games" in levels(group_runs(runs)[0])


def test_the_figure_is_drawn(runs, tmp_path):
    draw_runs(tmp_path / "figure.png", group_runs(runs))
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_what_is_no_run_is_named(tmp_path):
    with pytest.raises(InputError, match=r"runs: .* holds no run"):
        read_run(tmp_path)
    make_run(tmp_path / "blind", wrong=())
    with pytest.raises(InputError, match="never measured"):
        read_run(tmp_path / "blind")
