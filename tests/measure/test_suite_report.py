"""Test that a report names every player and compares players in pairs."""

from __future__ import annotations

import json
import runpy
from collections import defaultdict
from dataclasses import replace
from types import SimpleNamespace

import pytest
from script_runner import ROOT, run_here

from jaxzero.config import SearchConfig
from jaxzero.errors import InputError
from jaxzero.measure import suite_report
from jaxzero.measure.suite import table_suite
from jaxzero.measure.suite_report import draw_scores, score_suite, scored_players
from jaxzero.runs.weights import load_weights


@pytest.fixture(scope="module")
def small():
    return replace(load_weights("2x2").agent, settings=SearchConfig(nodes="all"))


@pytest.fixture(scope="module")
def few(small):
    return table_suite(small.network.board, positions=200)


def test_players_are_compared_with_the_first(small, few, tmp_path, capsys):
    names = scored_players("policy, greedy,random", few.board, small, 1)
    found = score_suite({"2x2": small}, few, names, tmp_path)
    assert list(found["suite"]) == ["policy", "greedy", "random"]
    assert list(found["differences"]) == ["greedy - policy", "random - policy"]
    wrong = {player: parts["all"]["wrong_share"] for player, parts in found["suite"].items()}
    difference = found["differences"]["random - policy"]["all"]["difference"]
    assert difference == pytest.approx(wrong["random"] - wrong["policy"], abs=1e-4)
    assert (tmp_path / "suite_table.png").exists()
    json.dumps(found)
    said = capsys.readouterr().out
    low, high = found["suite"]["policy"]["all"]["wrong_interval"]
    assert f"{wrong['policy']:.1%} [{100 * low:.1f}, {100 * high:.1f}]" in said
    assert f"{wrong['random']:.1%}  " in said
    assert f"{100 * difference:+.1f} [" in said


def test_two_networks_are_compared_player_by_player(small, few, tmp_path):
    networks = {"2x2": small, "other": small}
    names = scored_players("policy,search:2,greedy", few.board, small, 2)
    with pytest.raises(InputError, match="players: greedy have no network"):
        scored_players("greedy", few.board, small, 2)
    found = score_suite(networks, few, names, tmp_path)
    assert list(found["differences"]) == [
        "policy of 2x2 - policy of other",
        "search:2 of 2x2 - search:2 of other",
    ]
    assert all(parts["all"]["first_only"] == 0 for parts in found["differences"].values())
    assert {"policy of 2x2", "policy of other", "greedy"} < set(found["suite"])


def test_two_checkpoints_of_one_run_have_names_that_differ():
    tell_apart = runpy.run_path(str(ROOT / "scripts" / "evaluate.py"))["tell_apart"]
    old, new, other = (SimpleNamespace(iteration=number, agent=object()) for number in (5, 9, 9))
    for first, second, names in (
        (("run", old), ("run", new), ("run, iteration 5", "run, iteration 9")),
        (("run", new), ("run", other), ("run, iteration 9", "run, iteration 9 (2)")),
        (("run", new), ("run2", other), ("run", "run2")),
    ):
        agents = (first[1].agent, second[1].agent)
        assert tell_apart(first, second) == dict(zip(names, agents, strict=True))


def test_two_networks_play_a_match(tmp_path):
    file = tmp_path / "match.json"
    pair = "--weights 2x2 --weights2 2x3 --rows 2 --cols 2 --opening_plies 0".split()
    words = [*"--weights 2x2 --weights2 2x2 --games 4 --opening_plies 2".split(), "--json", file]
    done = run_here("evaluate.py", *words, "--players", "policy")
    assert done.returncode == 0, done.stderr
    assert json.loads(file.read_text())["match"]["policy"]["points"] == 0.5  # against itself
    for wrong, field in (
        ([*pair, "--players", "policy"], "weights2: "),  # 2x3 does not fit 2x2
        ([*words, "--players", "policy,greedy"], "players: greedy "),
        ([*words[2:], "--weights", "2x2"], "--weights2 "),
        (["--weights", "2x2", "--players", "policy"], "--players "),
    ):
        done = run_here("evaluate.py", *wrong)
        assert done.returncode == 2 and done.stderr.startswith(f"error: {field}"), done.stderr


def part(wrong: float | None, error: float | None = None) -> dict:
    return {"wrong_share": wrong} | ({} if error is None else {"value_error": error})


def test_a_figure_has_one_colour_for_a_player_and_no_empty_panel(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(suite_report, "save_figure", lambda _path, figure: drawn.append(figure))
    bands = {
        "greedy": {"1-8": part(0.2), "9-12": part(None)},
        "policy": {"1-8": part(0.1, 0.5), "9-12": part(0.1, 0.5)},
        "search": {"1-8": part(0.0, 0.1), "9-12": part(0.0, 0.1)},
    }
    scores = {name: {"by_undrawn": of} for name, of in bands.items()}
    draw_scores(tmp_path / "a.png", "title", scores)
    draw_scores(tmp_path / "b.png", "title", {"greedy": scores["greedy"]})
    assert [len(figure.axes) for figure in drawn] == [2, 1]
    colors = defaultdict(set)
    for axis in drawn[0].axes:
        handles, labels = axis.get_legend_handles_labels()
        for handle, label in zip(handles, labels, strict=True):
            colors[label].add(handle.get_color())
    assert set(colors) == set(scores) and all(len(used) == 1 for used in colors.values())
    assert len(set.union(*colors.values())) == 3
