"""Test scripts/play.py as a user runs it."""

from __future__ import annotations

from script_runner import run_here

from jaxzero.game.records import read_game


def test_a_piped_game_runs_to_its_end():
    options = "--rows 1 --cols 1 --player greedy".split()
    done = run_here("play.py", *options, entries="h00\nh0,0\nh10\nv00\nv01\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().split("\n")[-1].startswith("The winner is ")


def test_a_game_that_was_stopped_goes_on(tmp_path):
    file, copy = tmp_path / "game.json", tmp_path / "copy.json"
    options = "--rows 1 --cols 1 --player greedy --first ai".split()
    assert run_here("play.py", *options, "--save", file).returncode == 0
    begun = read_game(file.read_text())
    assert begun.names == ("AI (greedy)", "you") and len(begun.moves) == 1
    done = run_here("play.py", *options, "--load", file, "--save", copy)
    assert done.returncode == 0, done.stderr
    assert read_game(copy.read_text()) == begun
    # A saved game is replaced only by its own continuation.
    assert run_here("play.py", *options, "--save", copy).returncode == 2
    assert run_here("play.py", *options, "--load", copy, "--save", copy).returncode == 0
    assert len(read_game(copy.read_text()).moves) == 1


def test_a_temperature_makes_the_seed_decide(tmp_path):
    options = "--mode ai --weights 2x2 --player policy --player2 policy --temperature 1".split()
    for seed in (0, 1):
        done = run_here("play.py", *options, "--seed", seed, "--save", tmp_path / f"{seed}.txt")
        assert done.returncode == 0, done.stderr
    assert len({file.read_text() for file in tmp_path.iterdir()}) == 2
