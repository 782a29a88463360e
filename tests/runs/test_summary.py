"""Test what a run reports: its curves and the next commands."""

import re
import shlex
from pathlib import Path

import pytest
from script_runner import parser_of

from jaxzero.runs import metrics as metrics_module
from jaxzero.runs.metrics import draw_curves
from jaxzero.runs.summary import print_next


@pytest.mark.parametrize("suite", ["none", "5x5_test"])
def test_the_next_commands_are_three_that_take_this_run(suite, capsys):
    folder = Path("runs/of mine; $HOME")
    print_next(folder, suite)
    commands = re.findall(r"python scripts/(\w+\.py)(.*)", capsys.readouterr().out)
    for name, options in commands:
        assert parser_of(name).parse_args(shlex.split(options)).run_dir == folder
    assert len(commands) == len(dict(commands)) == 3


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
