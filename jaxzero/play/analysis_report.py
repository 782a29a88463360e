"""Format an analysis as a table for people and as JSON data for programs."""

from typing import Any

from jaxzero.game import edge_name, render
from jaxzero.game.records import RecordedGame
from jaxzero.host.table import table
from jaxzero.play.analysis import LONG, Analysis

MAX_ROWS = 12  # edges in a table


def format_analysis(game: RecordedGame, found: Analysis) -> str:
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
        for one in sorted(found.edges, key=lambda one: (one.lost or 0.0, -(one.prior or 0.0)))
    ]
    heads = ["edge", "kind", "prior", "visits", "value", "margin lost", ""]
    more = f"and {len(rows) - MAX_ROWS} edges more" if len(rows) > MAX_ROWS else ""
    lines = [render(board, game.drawn, marks), "", *_summary(game, found), ""]
    return "\n".join([*lines, table(heads, rows[:MAX_ROWS], "llrrrrl"), more])


def _summary(game: RecordedGame, found: Analysis) -> list[str]:
    first, second = game.score
    lines = [f"A {first} : {second} B, {'AB'[game.player]} to move"]
    if found.value is not None:
        win, draw, lose = found.chances
        how, by = f"{found.simulations} simulations", " (the network without search)"
        if found.proven is not None:
            how, by = "proven", ""
        lines.append(f"value {found.value:+.2f} boxes for the side to move ({how})")
        lines.append(f"wins {win:.1%}, draws {draw:.1%}, loses {lose:.1%}{by}")
    if found.bounds is not None and found.proven is None:
        lines.append("proven: the value is {:+d} to {:+d}".format(*found.bounds))
    names = {"free": "boxes to take now", "chain": "chains", "loop": "loops"}
    sizes = {
        name: " + ".join(str(len(one.boxes)) for one in found.chains if one.kind == kind)
        for kind, name in names.items()
    }
    named = [f"{name}: {size}" for name, size in sizes.items() if size]
    lines.append("; ".join([f"safe edges {found.safe}", *named]))
    if found.line:
        lines.append("line " + " ".join(edge_name(game.board, edge) for edge in found.line))
    return lines


def to_json(found: Analysis) -> dict[str, Any]:
    """Return an analysis as JSON data with rounded numbers."""
    win, draw, lose = (round(chance, 4) for chance in found.chances)
    exact = None
    if found.bounds is not None:
        exact = {"lower": found.bounds[0], "upper": found.bounds[1]}
    if found.proven is not None:
        best = [one.edge for one in found.edges if one.exact and one.lost == 0]
        exact = {"value": found.proven, "best": best}
    chains = [
        {
            "boxes": list(chain.boxes),
            "kind": chain.kind if chain.kind == "loop" else "chain",
            "length": len(chain.boxes),
            "free": chain.kind == "free",
            "edges": list(chain.edges),
        }
        for chain in found.chains
        if chain.kind != "single"
    ]
    of_edge = {one.edge: one for one in found.edges}
    lines = [
        {
            "edge": line[0],
            "value": None if of_edge[line[0]].bound else _rounded(of_edge[line[0]].value),
            "lost": _rounded(of_edge[line[0]].lost),
            "line": list(line),
        }
        for line in found.lines
    ]
    long = sum(chain.kind == "chain" and len(chain.boxes) >= LONG for chain in found.chains)
    control = None
    closed = [chain for chain in found.chains if chain.kind != "free"]
    if not found.safe and closed and all(len(chain.boxes) >= LONG for chain in closed):
        # The side that must open a chain has lost control. Shorter chains could still change that.
        control = "mover" if found.declined else "other"
    return {
        "stage": found.stage,
        "simulations": found.simulations,
        "value": _rounded(found.value),
        "final": [[margin, round(chance, 4)] for margin, chance in found.final],
        "win": win,
        "draw": draw,
        "lose": lose,
        "best": found.best,
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
            for one in found.edges
        ],
        "line": list(found.line),
        "lines": lines,
        "exact": exact,
        "structure": {"chains": chains, "safe": found.safe, "long": long, "control": control},
    }


def _rounded(number: float | None, digits: int = 2) -> float | None:
    return None if number is None else round(number, digits)
