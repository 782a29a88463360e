"""A sweep: lists multiply out, each point is a row whatever happens, and it goes on."""

from __future__ import annotations

import csv
import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jaxzero.cli import config_parser
from jaxzero.errors import InputError
from jaxzero.performance import sweep
from jaxzero.performance.grid import read_grid
from jaxzero.performance.measure_point import outcome
from jaxzero.performance.sweep import Effort, death, read_rows, run_sweep
from jaxzero.performance.sweep_report import choices, others, table, write_report

ROOT = Path(__file__).parent.parent.parent
TINY = ("--config", str(ROOT / "configs/tiny.yaml"))
SMALL = (
    "--network.channels 16 --search.simulations 4 --learner.batch_size 32 "
    "--learner.updates_per_iteration 2 --replay.capacity 500"
).split()


def grid_of(*arguments: str):
    parser = config_parser("")
    parser.add_argument("--preset", default="none")
    return read_grid(parser, [*TINY, *arguments])[0]


def test_lists_multiply_out_in_the_order_of_the_command_line():
    grid = grid_of("--selfplay.games=16,32", "--network.trunk", "dense,conv", "--seed", "7")
    assert grid.fields == ("selfplay.games", "network.trunk")
    combinations = [tuple(point.settings.values()) for point in grid.points]
    assert combinations == [(16, "dense"), (16, "conv"), (32, "dense"), (32, "conv")]
    for point in grid.points:
        assert point.config.selfplay.games == point.settings["selfplay.games"]
        assert point.config.network.trunk == point.settings["network.trunk"]
        assert point.config.seed == 7
        assert point.config.network.channels == 128  # of the file


def test_numbers_and_truths_are_typed_and_repetitions_are_one_point():
    grid = grid_of("--learner.learning_rate", "1e-3,0.001,2e-3", "--learner.symmetries=true,false")
    values = {tuple(point.settings.values()) for point in grid.points}
    assert values == {(r, s) for r in (1e-3, 2e-3) for s in (True, False)}


def test_texts_keep_their_commas():
    grid = grid_of("--evaluation.opponents", "random,greedy")
    assert grid.fields == () and len(grid.points) == 1
    assert grid.base.evaluation.opponents == "random,greedy"


def test_impossible_combinations_are_points_without_a_config():
    grid = grid_of("--network.attention_heads=0,2", "--network.trunk=dense,conv")
    assert [point.config is None for point in grid.points] == [False, False, True, False]
    assert grid.points[2].error.startswith("network.attention_heads: 2 needs")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--selfplay.gamez 1,2", r"^selfplay\.gamez: '1,2': no such field, did you mean selfplay"),
        ("--selfplay.games ,", r"^selfplay\.games: ',' has an empty entry"),
        ("--selfplay.games 16,,32", "empty entry"),
        ("--selfplay.games 16,many", r"^selfplay\.games: 'many'"),
        ("--selfplay 16,32", "selfplay"),
        ("--selfplay.games 0,-1", r"^selfplay\.games: 0 must be"),
    ],
)
def test_wrong_lists_are_refused_before_anything_runs(options, message):
    with pytest.raises(InputError, match=message):
        grid_of(*options.split())


def test_presets_give_lists_that_the_user_may_replace():
    batch = grid_of("--preset", "batch")
    games = [point.settings["selfplay.games"] for point in batch.points]
    assert batch.growing and games[0] == 64
    assert all(after == 2 * before for before, after in itertools.pairwise(games))
    own = grid_of("--preset", "batch", "--selfplay.games", "8,16")
    assert not own.growing and len(own.points) == 2
    interval = grid_of("--preset", "update_interval")
    ratios = [point.config.replay_ratio for point in interval.points]
    assert interval.fields == ("learner.updates_per_iteration",) and ratios == sorted(ratios)


def ok(games_per_second: float, **more) -> dict:
    return {
        "status": "ok",
        "games_per_second": games_per_second,
        "evaluations_per_second": 10.0,
        "selfplay_of_network": 0.5,
        "samples_per_second": None,
        "learning_share": 0.5,
        "replay_ratio": 4.0,
        "mfu": 0.1,
        "peak_memory_bytes": 2**30,
        "predicted_memory_bytes": 2**20,
        "compile_seconds": 1.0,
        "device": "cpu",
        "jax": "1",
        **more,
    }


def fake_measure(answers: dict, asked: list):
    def measure(point, out, effort):
        games = point.settings["selfplay.games"]
        asked.append(games)
        return answers.get(games, ok(games))

    return measure


MISFIT = {"status": "does not fit", "error": "too large"} | {
    f"{kind}_memory_bytes": size for kind, size in (("predicted", 2**31), ("device", 2**30))
}


def test_a_sweep_goes_on_where_it_stopped(tmp_path, monkeypatch):
    asked = []
    answers = {32: {"status": "failed", "error": "x"}}
    monkeypatch.setattr(sweep, "measure", fake_measure(answers, asked))
    run_sweep(grid_of("--selfplay.games=16,32"), tmp_path, Effort())
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"settings": {"selfplay.games": 64}, "sta')  # a crash while writing
    assert len(read_rows(tmp_path)) == 2
    rows = run_sweep(grid_of("--selfplay.games=64,16,32"), tmp_path, Effort())
    assert asked == [16, 32, 64]
    assert [row["settings"]["selfplay.games"] for row in rows] == [16, 32, 64]
    answers.clear()
    rows = run_sweep(grid_of("--selfplay.games=16,32,64"), tmp_path, Effort(retry_failed=True))
    assert asked == [16, 32, 64, 32]
    assert all(row["status"] == "ok" for row in rows)


def test_a_growing_sweep_ends_where_it_does_not_fit(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(sweep, "measure", fake_measure({256: MISFIT}, asked))
    rows = run_sweep(grid_of("--preset", "batch"), tmp_path, Effort())
    assert asked == [64, 128, 256]
    assert [row["status"] for row in rows] == ["ok", "ok", "does not fit"]


def test_another_sweep_in_the_same_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sweep, "measure", fake_measure({}, []))
    run_sweep(grid_of("--selfplay.games=16,32"), tmp_path, Effort())
    with pytest.raises(InputError, match=r"^network\.channels: 64 contradicts 128"):
        run_sweep(grid_of("--selfplay.games=16,32", "--network.channels=64"), tmp_path, Effort())
    with pytest.raises(InputError, match=r"sweeps selfplay\.games, not search\.simulations"):
        run_sweep(grid_of("--search.simulations=4,8"), tmp_path, Effort())


def test_the_ways_a_process_dies():
    assert death(-signal.SIGKILL, "")["status"] == "out of memory"
    assert death(-signal.SIGABRT, "terminate: std::bad_alloc\n")["status"] == "out of memory"
    assert death(1, "a\nRESOURCE_EXHAUSTED: 9 bytes\n")["error"] == "RESOURCE_EXHAUSTED: 9 bytes"
    assert death(-signal.SIGSEGV, "oh\n") == {"status": "failed", "error": "SIGSEGV: oh"}


def test_a_point_over_its_time_and_a_killed_one_are_rows(tmp_path, monkeypatch):
    grid = grid_of("--selfplay.games=16,32")
    sweep.open_folder(grid, tmp_path)
    row = sweep.measure(grid.points[0], tmp_path, Effort(point_minutes=1e-4))
    assert row["status"] == "timed out"
    killer = tmp_path / "killer"
    killer.write_text("#!/bin/sh\nkill -9 $$\n")
    killer.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(killer))
    assert sweep.measure(grid.points[1], tmp_path, Effort())["status"] == "out of memory"


def test_a_point_that_does_not_divide_or_fit_says_so():
    known = {"ceilings": {}, "costs": {}}
    # The tests have two devices.
    odd = outcome(grid_of("--selfplay.games=33").base, known, 1)
    assert odd["status"] == "invalid" and "33 is not divisible by 2" in odd["error"]
    huge = outcome(grid_of("--selfplay.games=2000000000").base, known, 1)
    assert huge["status"] == "does not fit"
    assert huge["predicted_memory_bytes"] > huge["device_memory_bytes"]


def rows_of(speeds: dict[tuple, float]) -> list[dict]:
    return [
        {"settings": dict(zip(("selfplay.games", "search.simulations"), values, strict=False))}
        | (MISFIT if speed is None else ok(speed, predicted_memory_bytes=values[0]))
        for values, speed in speeds.items()
    ]


def test_best_knee_and_largest():
    rows = rows_of({(8, 4): 50, (16, 4): 91, (32, 4): 100, (64, 4): 99, (8, 2): 95, (99, 4): None})
    chosen = {name: tuple(row["settings"].values()) for name, row in choices(rows).items()}
    assert chosen == {"best": (32, 4), "knee": (16, 4), "largest": (64, 4)}
    assert others(rows[0]) == (4,)
    assert choices(rows_of({(8,): None})) == {}


def test_the_report_shows_every_row(tmp_path, capsys):
    rows = rows_of({(8, 4): 50, (16, 4): 91, (8, 8): 20, (2_000_000_000, 4): None})
    lines = table(rows, choices(rows)).splitlines()
    assert max(map(len, lines)) <= 120
    assert "does not fit (predicted 2,048 MiB, device has 1,024 MiB)" in lines[-1]
    write_report(tmp_path, {}, rows)
    assert "best games/s" in capsys.readouterr().out
    with (tmp_path / "results.csv").open() as file:
        assert [line["status"] for line in csv.DictReader(file)] == [r["status"] for r in rows]
    assert json.loads((tmp_path / "results.json").read_text())["best"]["selfplay.games"] == 16
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def run_script(*arguments: str | Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "scripts/sweep.py", *TINY, *SMALL, "--rounds", "1"]
    command += ["--point_minutes", "600"]  # a busy machine is no reason to give a point up
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*command, *map(str, arguments)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )


def test_a_sweep_with_a_size_that_cannot_fit_ends_with_a_table_and_exit_code_0(tmp_path):
    sizes = ("--selfplay.games", "8,16,2000000000")
    done = run_script("--out", tmp_path, *sizes)
    assert done.returncode == 0, done.stderr
    rows = read_rows(tmp_path)
    assert [row["status"] for row in rows] == ["ok"] * 2 + ["does not fit"]
    for row in rows[:2]:
        for name in ("games_per_second", "mfu", "peak_memory_bytes", "compile_seconds"):
            assert row[name] > 0, name
        assert row["selfplay_share"] + row["learning_share"] == pytest.approx(1)
    known = json.loads((tmp_path / "yardsticks.json").read_text())
    assert len(known["ceilings"]) == len(known["costs"]) == 1  # measured once for all
    assert "does not fit" in done.stdout and "largest that fits" in done.stdout
    again = run_script("--out", tmp_path, *sizes)
    assert again.returncode == 0 and len(read_rows(tmp_path)) == 3


def test_bad_input_is_one_line_and_exit_code_2(tmp_path):
    (tmp_path / "file").write_text("in the way")
    for arguments in (
        ("--out", tmp_path / "file" / "below", "--selfplay.games", "8,16"),
        ("--out", tmp_path / "new", "--selfplay.games", "8,"),
        ("--out", tmp_path / "new", "--rounds", "0"),
    ):
        done = run_script(*arguments)
        assert done.returncode == 2
        assert len(done.stderr.strip().splitlines()) == 1
        assert done.stderr.startswith("error: ")
    assert not (tmp_path / "new").exists()
