"""Test sweeps: lists are combined, each point gives a row, and a stopped sweep resumes."""

import itertools
import json
import runpy
import signal
import sys

import pytest
from script_runner import ROOT

from jaxzero.cli import config_parser
from jaxzero.errors import InputError
from jaxzero.performance import sweep
from jaxzero.performance.sweep import (
    COLUMNS,
    GAMES,
    SPEED,
    choices,
    death,
    measured_row,
    read_grid,
    run_sweep,
    write_report,
)

TINY = ("--config", str(ROOT / "configs/tiny.yaml"))
SMALL = (
    "--game.rows 1 --network.features raw --network.channels 8 --search.simulations 1 "
    "--learner.batch_size 8 --learner.updates_per_iteration 2 --replay.capacity 100 "
    "--selfplay.random_opening_moves 2"
).split()


main = runpy.run_path(str(ROOT / "scripts" / "sweep.py"))["main"]


def grid_of(*arguments: str):
    parser = config_parser("")
    parser.add_argument("--preset", default="none")
    return read_grid(parser, [*TINY, *arguments])[0]


def test_lists_multiply_out_in_the_order_of_the_command_line():
    grid = grid_of(f"--{GAMES}=16,32", "--network.trunk", "dense,conv", "--seed", "7")
    assert grid.fields == (GAMES, "network.trunk")
    combinations = [tuple(point.settings.values()) for point in grid.points]
    assert combinations == [(16, "dense"), (16, "conv"), (32, "dense"), (32, "conv")]
    for point in grid.points:
        config = point.config
        set_ = (config.selfplay.games_per_iteration, config.network.trunk)
        assert set_ == tuple(point.settings.values())
        assert (config.seed, config.network.channels) == (7, 128)  # from an option; from the file
    # Values are typed, so equal values make one point; text values keep their commas.
    words = "--learner.learning_rate 1e-3,0.001,2e-3 --save_replay=true,false"
    grid = grid_of(*words.split(), "--evaluation.opponents", "random,greedy")
    values = {tuple(point.settings.values()) for point in grid.points}
    assert values == {(r, s) for r in (1e-3, 2e-3) for s in (True, False)}
    assert grid.base.evaluation.opponents == "random,greedy"


def test_of_a_grid_one_point_has_to_be_possible():
    grid = grid_of("--selfplay.late_start_moves=0,5", "--search.nodes=all,quiet")
    assert [point.config is None for point in grid.points] == [False, False, True, False]
    assert grid.points[2].error.startswith("selfplay.late_start_moves: 5 needs")


def test_the_preset_gives_a_list():
    batch = grid_of("--preset", "batch")
    games = [point.settings[GAMES] for point in batch.points]
    assert batch.growing and games[0] == 64
    assert all(after == 2 * before for before, after in itertools.pairwise(games))
    for games in ("64", "16,32"):
        with pytest.raises(InputError, match=rf"^--{GAMES} .*batch"):
            grid_of("--preset", "batch", f"--{GAMES}", games)


# Resuming


def ok(games_per_second: float, **more) -> dict:
    numbers = dict.fromkeys(COLUMNS, 0.5)
    about = {"status": "ok", "device": "cpu", SPEED: games_per_second}
    bytes_ = {"peak_memory_bytes": 2**30, "predicted_memory_bytes": None}
    return numbers | about | bytes_ | more


MISFIT = {"status": "does not fit", "error": "predicted 2,048 MiB, device has 1,024 MiB"}


@pytest.fixture
def asked(monkeypatch) -> dict:
    """Replace the processes of points: return answers by games, and under "asked" all requests."""
    answers = {"asked": []}

    def run(command, _log, _seconds):
        stem = command[3]
        games = int(stem.rpartition("=")[2])
        answers["asked"].append(games)
        answer = answers.get(games, ok(games))
        with open(f"{stem}.json", "w") as file:
            json.dump(answer, file)
        return 0

    monkeypatch.setattr(sweep, "run_point", run)
    return answers


def test_a_sweep_goes_on_where_it_stopped(tmp_path, asked):
    asked[32] = {"status": "failed", "error": "x"}
    run_sweep(grid_of(f"--{GAMES}=16,32"), tmp_path)
    rows = run_sweep(grid_of(f"--{GAMES}=64,16,32"), tmp_path)
    assert asked["asked"] == [16, 32, 64]
    assert [row["status"] for row in rows] == ["ok", "ok", "failed"]


def test_a_growing_sweep_ends_at_a_misfit_or_two_points_slower_than_the_best(tmp_path, asked):
    asked |= {64: ok(5.0), 128: ok(4.0), 256: ok(9.0), 512: ok(8.0), 1024: ok(8.5)}
    rows = run_sweep(grid_of("--preset", "batch"), tmp_path / "slower")
    assert [row["settings"][GAMES] for row in rows] == [64, 128, 256, 512, 1024]
    asked[256] = MISFIT
    rows = run_sweep(grid_of("--preset", "batch"), tmp_path / "misfit")
    assert [row["status"] for row in rows] == ["ok", "ok", "does not fit"]


def test_another_sweep_in_the_same_folder_is_refused(tmp_path, asked):
    run_sweep(grid_of(f"--{GAMES}=16,32"), tmp_path)
    for other, field in (
        ((f"--{GAMES}=16,32", "--network.channels=64"), r"network\.channels"),
        (("--search.simulations=4,8",), r"fields, .*search\.simulations"),
    ):
        with pytest.raises(InputError, match=rf"^out: .* holds a sweep with other {field}"):
            run_sweep(grid_of(*other), tmp_path)


# Points


def test_the_ways_a_process_dies():
    assert death(-signal.SIGKILL, "")["status"] == "out of memory"
    assert death(-signal.SIGABRT, "terminate: std::bad_alloc\n")["status"] == "out of memory"
    assert death(1, "a\nRESOURCE_EXHAUSTED: 9 bytes\n")["error"] == "RESOURCE_EXHAUSTED: 9 bytes"
    assert death(-signal.SIGSEGV, "oh\n") == {"status": "failed", "error": "exit code -11: oh"}


def test_a_config_that_cannot_run_is_a_row():
    odd, huge = grid_of(f"--{GAMES}=33,39999998").points  # the tests have two devices
    statuses = [measured_row(point.config, 1)["status"] for point in (odd, huge)]
    assert statuses == ["invalid", "does not fit"]


def test_a_point_over_its_time_and_a_killed_one_are_rows(tmp_path, monkeypatch):
    grid = grid_of(f"--{GAMES}=16,32")
    sweep.open_folder(grid, tmp_path)
    assert sweep.measure(grid.points[0], tmp_path, 1, 1e-4)["status"] == "timed out"
    killer = tmp_path / "killer"
    killer.write_text("#!/bin/sh\nkill -9 $$\n")
    killer.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(killer))
    assert sweep.measure(grid.points[1], tmp_path, 1, 10)["status"] == "out of memory"


def test_a_point_is_measured_in_a_process_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    # A long limit, so that a busy machine does not end a point.
    words = [*TINY, *SMALL, "--rounds", "1", "--point_minutes", "600", "--out", str(tmp_path)]
    main([*words, f"--{GAMES}", "4,4"])
    (point,) = json.loads((tmp_path / "results.json").read_text())["points"]
    assert point["status"] == "ok" and all(point[name] is not None for name in COLUMNS)
    assert point["decisions_per_game"] == 7  # on 1x2


def test_a_sweep_of_which_no_point_runs_ends_with_1(tmp_path, asked, capsys):
    asked |= {16: MISFIT, 32: MISFIT}
    with pytest.raises(SystemExit) as ended:
        main([*TINY, f"--{GAMES}", "16,32", "--out", str(tmp_path)])
    assert ended.value.code == 1 and MISFIT["error"] in capsys.readouterr().out


# The report


def rows_of(speeds: dict[tuple, float]) -> list[dict]:
    fields = (GAMES, "search.simulations")
    return [
        {"settings": dict(zip(fields, values, strict=False))}
        | (MISFIT if speed is None else ok(speed))
        for values, speed in speeds.items()
    ]


def test_best_and_knee_are_chosen_and_every_row_is_shown(tmp_path, capsys):
    rows = rows_of({(8, 4): 50, (16, 4): 91, (32, 4): 100, (64, 4): 99, (8, 2): 95, (99, 4): None})
    chosen = {name: tuple(row["settings"].values()) for name, row in choices(rows).items()}
    assert chosen == {"best": (32, 4), "knee": (16, 4)}
    assert choices(rows_of({(8,): None})) == {}
    write_report(tmp_path, {}, rows)
    table = capsys.readouterr().out.partition("\nB  ")[0]
    assert max(map(len, table.splitlines())) <= 130 and MISFIT["error"] in table
    assert json.loads((tmp_path / "results.json").read_text())["knee"][GAMES] == 16
