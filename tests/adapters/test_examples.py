"""Test that the examples of docs/adapters.md print the output shown there."""

from __future__ import annotations

from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "adapters.md"


@pytest.mark.parametrize(
    ("section", "library"),
    [("OpenSpiel", "pyspiel"), ("Pgx", "pgx"), ("A search with mctx", "pgx")],
)
def test_the_example_prints_what_stands_there(section, library, capsys):
    pytest.importorskip(library, reason="needs the extra jaxzero[adapters]")
    text = PAGE.read_text().split(f"## {section}\n")[1]
    exec(text.split("```python\n")[1].split("```")[0], {})
    assert capsys.readouterr().out == text.split("prints\n\n```\n")[1].split("```")[0]
