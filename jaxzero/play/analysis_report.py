"""Format an analysis as a table for people and as JSON data for programs."""

from typing import Any

from jaxzero.game import edge_name, render
from jaxzero.game.records import RecordedGame
from jaxzero.host.table import table
from jaxzero.play.analysis import LONG, Analysis

MAX_ROWS = 12  # edges in a table


def format_analysis(game: RecordedGame, analysis: Analysis) -> str:
    """Return the board, the expected result, the chains, and a table of the best edges."""
    board, marks = game.board, {box: "AB"[owner] for box, owner in game.owners.items()}
    rows = [
        (
            edge_name(board, one.edge),
            one.kind,
            "" if one.prior is None else f"{one.prior:.1%}",
            one.visits or "",
            "" if one.value is None else f"{one.value:+.2f}",
            "" if one.lost is None else f"{one.lost:.2f}",
            "exact" if one.exact else "bound" if one.bound else "",
        )
        for one in sorted(analysis.edges, key=lambda one: (one.lost or 0.0, -(one.prior or 0.0)))
    ]
    heads = ["edge", "kind", "prior", "visits", "value", "margin lost", ""]
    more = f"and {len(rows) - MAX_ROWS} edges more" if len(rows) > MAX_ROWS else ""
    lines = [render(board, game.drawn, marks), "", *_summary(game, analysis), ""]
    return "\n".join([*lines, table(heads, rows[:MAX_ROWS], "llrrrrl"), more])


def _summary(game: RecordedGame, analysis: Analysis) -> list[str]:
    first, second = game.score
    lines = [f"A {first} : {second} B, {'AB'[game.player]} to move"]
    if analysis.value is not None:
        win, draw, lose = analysis.chances
        how, by = f"{analysis.simulations} simulations", " (the network without search)"
        if analysis.proven is not None:
            how, by = "proven", ""
        lines.append(f"value {analysis.value:+.2f} boxes for the side to move ({how})")
        lines.append(f"wins {win:.1%}, draws {draw:.1%}, loses {lose:.1%}{by}")
    if analysis.bounds is not None and analysis.proven is None:
        lines.append("proven: the value is {:+d} to {:+d}".format(*analysis.bounds))
    names = {"free": "boxes to take now", "chain": "chains", "loop": "loops"}
    sizes = {
        name: " + ".join(str(len(one.boxes)) for one in analysis.chains if one.kind == kind)
        for kind, name in names.items()
    }
    named = [f"{name}: {size}" for name, size in sizes.items() if size]
    lines.append("; ".join([f"safe edges {analysis.safe}", *named]))
    if analysis.line:
        lines.append("line " + " ".join(edge_name(game.board, edge) for edge in analysis.line))
    return lines


def to_json(analysis: Analysis) -> dict[str, Any]:
    """Return an analysis as JSON data with rounded numbers."""
    win, draw, lose = (round(chance, 4) for chance in analysis.chances)
    exact = None
    if analysis.bounds is not None:
        exact = {"lower": analysis.bounds[0], "upper": analysis.bounds[1]}
    if analysis.proven is not None:
        best = [one.edge for one in analysis.edges if one.exact and one.lost == 0]
        exact = {"value": analysis.proven, "best": best}
    chains = [
        {
            "boxes": list(chain.boxes),
            "kind": chain.kind if chain.kind == "loop" else "chain",
            "length": len(chain.boxes),
            "free": chain.kind == "free",
            "edges": list(chain.edges),
        }
        for chain in analysis.chains
        if chain.kind != "single"
    ]
    of_edge = {one.edge: one for one in analysis.edges}
    lines = [
        {
            "edge": line[0],
            "value": None if of_edge[line[0]].bound else _rounded(of_edge[line[0]].value),
            "lost": _rounded(of_edge[line[0]].lost),
            "line": list(line),
        }
        for line in analysis.lines
    ]
    long = sum(chain.kind == "chain" and len(chain.boxes) >= LONG for chain in analysis.chains)
    control = None
    closed = [chain for chain in analysis.chains if chain.kind != "free"]
    if not analysis.safe and closed and all(len(chain.boxes) >= LONG for chain in closed):
        # The side that must open a chain has lost control. Shorter chains could still change that.
        control = "mover" if analysis.declined else "other"
    return {
        "stage": analysis.stage,
        "simulations": analysis.simulations,
        "value": _rounded(analysis.value),
        "final": [[margin, round(chance, 4)] for margin, chance in analysis.final],
        "win": win,
        "draw": draw,
        "lose": lose,
        "best": analysis.best,
        "edges": [
            {
                "edge": one.edge,
                "class": one.kind,
                "prior": _rounded(one.prior, 4),
                "visits": one.visits,
                "value": _rounded(one.value),
                "lost": _rounded(one.lost),
                "exact": one.exact,
                "bound": one.bound,
            }
            for one in analysis.edges
        ],
        "line": list(analysis.line),
        "lines": lines,
        "exact": exact,
        "structure": {"chains": chains, "safe": analysis.safe, "long": long, "control": control},
    }


def _rounded(number: float | None, digits: int = 2) -> float | None:
    return None if number is None else round(number, digits)
