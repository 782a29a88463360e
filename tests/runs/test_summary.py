"""Test what a run reports: its curves and the next commands."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from script_runner import parser_of

from jaxzero.cli import load_config
from jaxzero.game import DotsAndBoxes
from jaxzero.measure.evaluator import Evaluator, as_metrics
from jaxzero.measure.scoring import Answers, score
from jaxzero.measure.suite import Suite
from jaxzero.runs import metrics as metrics_module
from jaxzero.runs.metrics import draw_curves
from jaxzero.runs.summary import headline, print_next


@pytest.mark.parametrize("suite", ["none", "5x5_test"])
def test_the_next_commands_are_three_that_take_this_run(suite, capsys):
    folder = Path("runs/of mine; $HOME")
    print_next(folder, suite)
    commands = re.findall(r"python scripts/(\w+\.py)(.*)", capsys.readouterr().out)
    for name, options in commands:
        assert parser_of(name).parse_args(shlex.split(options)).run_dir == folder
    assert len(commands) == len(dict(commands)) == 3


def test_wrong_moves_are_those_of_decisive_positions_wherever_a_run_shows_them(
    capsys, tmp_path, monkeypatch
):
    """Of four positions three are decisive, and one of these three is answered wrong."""
    board, drawn = DotsAndBoxes(1, 1), []
    values = np.array([[1, 0, 0, 0], [0, 0, 0, 0], [2, 1, 0, 0], [3, 0, 0, 0]], np.int8)
    suite = Suite("four", board, np.zeros((4, 4), bool), values)
    scores = {"policy": score(suite, Answers(np.array([1, 1, 0, 0]), np.zeros(4)))}
    evaluator = Evaluator(load_config("configs/tiny.yaml", "--evaluation.opponents="))
    evaluator.prepare()
    monkeypatch.setattr(evaluator, "score", lambda *_: scores)
    evaluator.final({})
    assert "33.3%" in capsys.readouterr().out
    metrics = evaluator.evaluate({})
    speed = dict.fromkeys(("speed/games_per_second", "speed/evaluations_per_second"), 1.0)
    line = headline(load_config("configs/tiny.yaml"), metrics | speed | {ENTROPY: 1.0})
    assert "33.3%" in line
    monkeypatch.setattr(metrics_module, "save_figure", lambda _path, figure: drawn.append(figure))
    draw_curves(tmp_path / "curves.png", "title", [{"iteration": 1} | metrics])
    shares = [axis.get_lines()[0].get_ydata()[0] for axis in drawn[0].axes]
    assert shares[0] == pytest.approx(33.3, abs=0.1)
    nothing = {"policy": score(replace(suite, moves=values * 0), Answers(np.ones(4, int)))}
    assert as_metrics({}, nothing) == {"suite/policy/boxes_lost": 0.0}  # no position is decisive


ENTROPY = "selfplay/policy_entropy"
SCORES = (
    *("suite/policy/wrong_share", "suite/policy/boxes_lost"),
    *("suite/search:16/wrong_share", "suite/search:16/boxes_lost"),
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
def test_curves_have_no_empty_panel_and_no_invisible_line(
    keys, panels, iterations, tmp_path, monkeypatch
):
    drawn = []
    monkeypatch.setattr(metrics_module, "save_figure", lambda _path, figure: drawn.append(figure))
    numbers = range(1, iterations + 1)
    records = [{"iteration": number} | dict.fromkeys(keys, 0.5 + number) for number in numbers]
    draw_curves(tmp_path / "curves.png", "title", records)
    (figure,) = drawn
    assert len(figure.axes) == panels
    for axis in figure.axes:
        assert axis.get_lines()
        for line in axis.get_lines():
            assert len(line.get_xdata()) == iterations
            assert len(line.get_xdata()) > 1 or line.get_marker() == "o"
