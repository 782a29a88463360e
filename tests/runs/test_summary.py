"""Test what a run reports: its needs, its time left, its curves and the next commands."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from pathlib import Path

import pytest
from script_runner import parser_of
from short_run import train

import jaxzero.training.trainer as trainer_module
from jaxzero.cli import load_config
from jaxzero.runs import metrics as metrics_module
from jaxzero.runs.metrics import draw_curves
from jaxzero.runs.summary import print_needs, print_next, time_left


def test_device_and_network_are_told_before_anything_is_compiled(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(trainer_module, "compile_iteration", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        train(load_config("configs/tiny.yaml"), tmp_path / "run")
    heads = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert heads[:4] == ["device", "network", "replay", "run"]


@pytest.mark.parametrize(
    ("options", "iteration", "minutes", "words"),
    [
        ("--iterations=100", 0, 0.0, "known after the first iteration"),
        ("--iterations=100", 25, 2.0, "about 0:06:00"),
        ("--iterations=100 --minutes=10", 25, 4.0, "at most 0:06:00"),
        ("--iterations=0 --minutes=10", 99, 10.2, "at most 0 s"),
    ],
)
def test_the_header_says_how_long_a_run_takes_as_far_as_that_is_known(
    options, iteration, minutes, words, capsys
):
    config = load_config("configs/tiny.yaml", *options.split())
    print_needs(config, None, 0, iteration, minutes)
    (line,) = (one for one in capsys.readouterr().out.splitlines() if one.startswith("time left"))
    assert words in line
    assert time_left(0.0, 0.0) == time_left(0.5, 0.0) == "unknown"


@pytest.mark.parametrize("suite", ["none", "5x5_test"])
def test_the_next_commands_are_three_that_take_this_run(suite, capsys):
    folder = Path("runs/of mine; $HOME")
    print_next(folder, suite)
    commands = re.findall(r"python scripts/(\w+\.py)(.*)", capsys.readouterr().out)
    for name, options in commands:
        assert parser_of(name).parse_args(shlex.split(options)).run_dir == folder
    assert len(commands) == len(dict(commands)) == 3


def records(*keys: str, iterations: int = 3) -> list[dict]:
    return [{"iteration": i, **dict.fromkeys(keys, 0.5 + i)} for i in range(1, iterations + 1)]


SCORES = (
    *("suite/policy/optimal_share", "suite/policy/boxes_lost"),
    *("suite/search:16/optimal_share", "suite/search:16/boxes_lost"),
)


@pytest.mark.parametrize(
    ("keys", "panels"),
    [
        (("learn/margin_loss", "learn/margin_error", "versus/greedy/points"), 3),
        (("versus/random/points", "versus/greedy/points", *SCORES), 3),
        ((), 0),
    ],
)
@pytest.mark.parametrize("iterations", [1, 3])
def test_curves_have_no_empty_panel_and_one_colour_for_a_player(
    keys, panels, iterations, tmp_path, monkeypatch
):
    drawn = []
    monkeypatch.setattr(metrics_module, "save_figure", lambda _path, figure: drawn.append(figure))
    draw_curves(tmp_path / "curves.png", "title", records(*keys, iterations=iterations))
    (figure,) = drawn
    assert len(figure.axes) == panels
    colors = defaultdict(set)
    for axis in figure.axes:
        assert axis.get_lines()
        for line in axis.get_lines():
            assert len(line.get_xdata()) == iterations
            assert len(line.get_xdata()) > 1 or line.get_marker() == "o"  # else invisible
            colors[line.get_label()].add(line.get_color())
    assert all(len(used) == 1 for used in colors.values())
    players = {key.split("/")[1] for key in keys if key.count("/") == 2}
    assert len({color for player in players for color in colors[player]}) == len(players)
