"""A sweep: lists multiply out, each point is a row whatever happens, and it goes on."""

from __future__ import annotations

import csv
import itertools
import json
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jaxzero.cli import config_parser
from jaxzero.errors import InputError
from jaxzero.performance import sweep, timing
from jaxzero.performance.report import SPEED
from jaxzero.performance.sweep import death, outcome, read_grid, read_rows, run_sweep
from jaxzero.performance.sweep_report import (
    advice,
    choices,
    names_of_choices,
    other_values,
    sweep_table,
    write_report,
)

ROOT = Path(__file__).parent.parent.parent
TINY = ("--config", str(ROOT / "configs/tiny.yaml"))
SMALL = (
    "--game.rows 1 --network.features raw --network.channels 8 --search.simulations 1 "
    "--learner.batch_size 8 --learner.updates_per_iteration 2 --replay.capacity 100 "
    "--selfplay.opening_plies 2"
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
    grid = grid_of(
        "--learner.learning_rate", "1e-3,0.001,2e-3", "--learner.augmentation=true,false"
    )
    values = {tuple(point.settings.values()) for point in grid.points}
    assert values == {(r, s) for r in (1e-3, 2e-3) for s in (True, False)}


def test_texts_keep_their_commas():
    grid = grid_of("--evaluation.opponents", "random,greedy", "--seed=1,2")
    assert grid.fields == ("seed",) and len(grid.points) == 2
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


def test_a_sweep_in_which_nothing_varies_is_refused():
    with pytest.raises(InputError, match=r"^preset: nothing varies"):
        grid_of("--selfplay.games", "8")


@pytest.mark.parametrize("games", ["8,16", "8"])
def test_a_preset_stands_beside_no_other_value_of_its_setting(games):
    with pytest.raises(InputError, match=rf"^selfplay\.games: {games} cannot stand beside"):
        grid_of("--preset", "batch", "--selfplay.games", games)


def test_presets_give_lists():
    batch = grid_of("--preset", "batch")
    games = [point.settings["selfplay.games"] for point in batch.points]
    assert batch.growing and games[0] == 64
    assert all(after == 2 * before for before, after in itertools.pairwise(games))
    interval = grid_of("--preset", "update_interval")
    ratios = [point.config.replay_ratio for point in interval.points]
    assert interval.fields == ("learner.updates_per_iteration",) and ratios == sorted(ratios)


def ok(games_per_second: float, **more) -> dict:
    return {
        "status": "ok",
        SPEED: games_per_second,
        "evaluations_per_second_with_learning": 10.0,
        "decisions_per_second_with_learning": 2.0,
        "notes": ["a note"],
        "selfplay_of_network": 0.5,
        "learner_samples_per_second": None,
        "learning_share": 0.5,
        "replay_ratio": 4.0,
        "iteration_mfu": 0.1,
        "peak_memory_bytes": 2**30,
        "predicted_memory_bytes": 2**20,
        "compile_seconds": 1.0,
        "device": "cpu",
        "versions": {"jax": "1"},
        **more,
    }


def fake_measure(answers: dict, asked: list):
    def measure(point, out, rounds, point_minutes):
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
    run_sweep(grid_of("--selfplay.games=16,32"), tmp_path)
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"settings": {"selfplay.games": 64}, "sta')  # a crash while writing
    assert len(read_rows(tmp_path)) == 2
    rows = run_sweep(grid_of("--selfplay.games=64,16,32"), tmp_path)
    assert asked == [16, 32, 64]
    assert [row["settings"]["selfplay.games"] for row in rows] == [16, 32, 64]


def test_a_point_that_timed_out_is_measured_again_with_more_time(tmp_path, monkeypatch):
    asked, late = [], {"status": "timed out", "error": "after 1 minutes", "point_minutes": 1.0}
    answers = {32: late}
    monkeypatch.setattr(sweep, "measure", fake_measure(answers, asked))
    for minutes in (1.0, 1.0, 2.0):
        run_sweep(grid_of("--selfplay.games=16,32"), tmp_path, point_minutes=minutes)
    assert asked == [16, 32, 32]
    answers.clear()
    rows = run_sweep(grid_of("--selfplay.games=16,32"), tmp_path, point_minutes=3.0)
    assert [row["status"] for row in rows] == ["ok", "ok"] and read_rows(tmp_path)[-1] == rows[-1]


def test_only_points_have_to_be_possible(tmp_path):
    grid = grid_of("--selfplay.start_falls=0.5", "--selfplay.start_ply=4,8", "--search.nodes=quiet")
    assert grid.base.selfplay.start_ply == 4 and len(grid.points) == 2


def test_a_sweep_of_points_that_are_all_impossible_leaves_no_folder(tmp_path, monkeypatch):
    impossible = {"status": "invalid", "error": "selfplay.games: 16 is not divisible"}
    monkeypatch.setattr(sweep, "measure", lambda *_: impossible)
    with pytest.raises(InputError, match=r"^selfplay\.games: 16"):
        run_sweep(grid_of("--selfplay.games=16,32"), tmp_path / "new" / "sweep")
    assert not list(tmp_path.iterdir())


def test_a_growing_sweep_ends_where_it_does_not_fit(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(sweep, "measure", fake_measure({256: MISFIT}, asked))
    rows = run_sweep(grid_of("--preset", "batch"), tmp_path)
    assert asked == [64, 128, 256]
    assert [row["status"] for row in rows] == ["ok", "ok", "does not fit"]


def test_another_sweep_in_the_same_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sweep, "measure", fake_measure({}, []))
    run_sweep(grid_of("--selfplay.games=16,32"), tmp_path)
    with pytest.raises(InputError, match=r"^network\.channels: 64 contradicts 128"):
        run_sweep(grid_of("--selfplay.games=16,32", "--network.channels=64"), tmp_path)
    with pytest.raises(InputError, match=r"sweeps selfplay\.games, not search\.simulations"):
        run_sweep(grid_of("--search.simulations=4,8"), tmp_path)


def test_the_ways_a_process_dies():
    assert death(-signal.SIGKILL, "")["status"] == "out of memory"
    assert death(-signal.SIGABRT, "terminate: std::bad_alloc\n")["status"] == "out of memory"
    assert death(1, "a\nRESOURCE_EXHAUSTED: 9 bytes\n")["error"] == "RESOURCE_EXHAUSTED: 9 bytes"
    assert death(-signal.SIGSEGV, "oh\n") == {"status": "failed", "error": "SIGSEGV: oh"}


def test_a_point_over_its_time_and_a_killed_one_are_rows(tmp_path, monkeypatch):
    grid = grid_of("--selfplay.games=16,32")
    sweep.open_folder(grid, tmp_path)
    row = sweep.measure(grid.points[0], tmp_path, 1, 1e-4)
    assert row["status"] == "timed out"
    killer = tmp_path / "killer"
    killer.write_text("#!/bin/sh\nkill -9 $$\n")
    killer.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(killer))
    assert sweep.measure(grid.points[1], tmp_path, 1, 10)["status"] == "out of memory"


def test_a_point_that_does_not_divide_or_fit_says_so():
    # The tests have two devices.
    odd = outcome(grid_of("--selfplay.games=33", "--seed=0,1").points[0].config, 1)
    assert odd["status"] == "invalid" and "33 is not divisible by 2" in odd["error"]
    huge = outcome(grid_of("--selfplay.games=1000000000", "--seed=0,1").points[0].config, 1)
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
    assert other_values(rows[0]) == (4,)
    assert choices(rows_of({(8,): None})) == {}


def test_the_report_shows_every_row(tmp_path, capsys):
    rows = rows_of({(8, 4): 50, (16, 4): 91, (8, 8): 20, (1_000_000_000, 4): None})
    lines = sweep_table(rows, choices(rows)).splitlines()
    assert max(map(len, lines)) <= 128
    assert "does not fit (predicted 2,048 MiB, device has 1,024 MiB)" in lines[-1]
    write_report(tmp_path, {}, rows)
    printed = capsys.readouterr().out
    assert "best games/s" in printed and "2 decisions/s" in printed
    assert printed.count("note: a note") == 1
    with (tmp_path / "results.csv").open() as file:
        assert [line["status"] for line in csv.DictReader(file)] == [r["status"] for r in rows]
    assert json.loads((tmp_path / "results.json").read_text())["best"]["selfplay.games"] == 16
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("speeds", "fits", "rises"),
    [
        ({(8, 4): 50, (16, 4): 100}, False, True),
        ({(8, 4): 100, (16, 4): 50}, False, False),
        ({(8, 4): 99, (16, 4): 100}, False, False),  # no more than noise
        ({(8, 4): 50, (16, 4): 100, (32, 4): None}, True, False),
        ({(8, 2): 10, (8, 4): 50, (16, 2): 5, (16, 4): 100}, False, True),
        ({(8,): 50}, False, False),
        ({(False,): 50, (True,): 100}, False, False),
    ],
)
def test_the_largest_point_fits_only_where_one_did_not_and_a_rise_at_the_end_is_told(
    speeds, fits, rises, tmp_path, capsys
):
    rows = rows_of(speeds)
    best = choices(rows)["best"]
    assert bool(advice(rows, best)) == rises
    assert names_of_choices(rows)["largest"] == ("largest that fits" if fits else "largest tried")
    write_report(tmp_path, {}, rows)
    printed = capsys.readouterr().out
    assert names_of_choices(rows)["largest"] in printed and advice(rows, best) in printed


main = runpy.run_path(str(ROOT / "scripts" / "sweep.py"))["main"]
# A busy machine is no reason to give a point up.
SWEEP = [*TINY, *SMALL, "--rounds", "1", "--point_minutes", "600"]


def test_a_sweep_with_a_size_that_cannot_fit_ends_with_a_table(tmp_path, capsys, monkeypatch):
    """The point that cannot fit in a process of its own."""
    in_a_process = sweep.measure

    def measure(point, *where):
        fits = point.config.selfplay.games == 4
        return outcome(point.config, 1) if fits else in_a_process(point, *where)

    monkeypatch.setattr(sweep, "measure", measure)
    monkeypatch.setattr(timing, "MATMUL_SIZES", (64, 64))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    arguments = [*SWEEP, "--out", str(tmp_path), "--selfplay.games", "4,1000000000"]
    main(arguments)
    rows = read_rows(tmp_path)
    assert [row["status"] for row in rows] == ["ok", "does not fit"]
    for row in rows[:1]:
        assert row["decisions_per_game"] == 7  # of 1 x 2
        for name in (SPEED, "iteration_mfu", "peak_memory_bytes", "compile_seconds"):
            assert row[name] > 0, name
        share = row["seconds"]["learning"] / row["seconds"]["iteration"]
        assert row["learning_share"] == pytest.approx(max(0.0, share))
    printed = capsys.readouterr().out
    assert "does not fit" in printed and "largest that fits" in printed
    main(arguments)
    assert read_rows(tmp_path) == rows


def test_bad_input_leaves_nothing_behind(tmp_path):
    (tmp_path / "file").write_text("in the way")
    for message, *arguments in (
        ("out", "--out", tmp_path / "file" / "below", "--selfplay.games", "8,16"),
        ("selfplay.games", "--out", tmp_path / "new", "--selfplay.games", "8,"),
        ("rounds", "--out", tmp_path / "new", "--rounds", "0"),
    ):
        with pytest.raises(InputError, match=f"^{message}: "):
            main([*TINY, *map(str, arguments)])
    assert not (tmp_path / "new").exists()


def test_bad_input_is_one_line_and_exit_code_2():
    command = [sys.executable, "scripts/sweep.py", "--out", "x", "--selfplay.games", "8,"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
