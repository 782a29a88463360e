"""Test that figures in README, docs and configs agree with stored results and the code."""

from __future__ import annotations

import json

import figures
from figures import ROOT, Figure
from PIL import Image


def test_figures_stand_in_their_pages():
    found = list(figures.figures())
    assert len(found) > 100
    assert figures.report(found) == []


def test_a_false_figure_is_found_with_the_line_that_is_meant():
    (line,) = figures.report([Figure("docs/results.md", "| `5x5` | 2,361,679 games", "a test")])
    assert "2,361,679" in line and "2,361,678" in line


def test_the_picture_shows_the_records_of_today():
    drawn = Image.open(ROOT / "docs" / "strength.png").text["Description"]
    assert json.loads(drawn) == figures.strength()
