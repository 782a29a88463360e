"""What the exact solver says about a position within a limit of time."""

from __future__ import annotations

from jaxzero.agent.players import Player
from jaxzero.errors import InputError
from jaxzero.evaluation.endgame import Solution, solve
from jaxzero.game import edge_name
from jaxzero.play.record import Record
from jaxzero.play.sides import choose
from jaxzero.play.wording import count


def analyse(record: Record, seconds: float) -> Solution:
    """Solve a position as far as `seconds` allow. Raises: InputError for boards beyond 7x7."""
    return solve(record.game, record.drawn, seconds=seconds)


def verdict(record: Record, seconds: float) -> list[str]:
    """Return lines on the value of a position and its best edges, for the person to move."""
    solution = analyse(record, seconds)
    if solution.value is None:
        return _bounds(record, solution, seconds)
    left, value = record.boxes_left, solution.value
    gained = (left + value) // 2
    own, other = record.score[record.player], record.score[1 - record.player]
    lines = [
        f"value {value:+d}: of the {count(left, 'box', 'boxes')} left you get {gained} if both "
        f"sides play perfectly, and the game ends {own + gained} : {other + left - gained}"
    ]
    if not solution.best:
        return [*lines, f"the best edges were not all found within {seconds:g} seconds"]
    names = ", ".join(edge_name(record.game, edge) for edge in solution.best)
    free = record.game.num_edges - len(record.moves)
    return [*lines, f"best edges, {len(solution.best)} of {free}: {names}"]


def _bounds(record: Record, solution: Solution, seconds: float) -> list[str]:
    left = record.boxes_left
    lower, upper = max(solution.lower, -left), min(solution.upper, left)
    if (lower, upper) == (-left, left):
        proven = "nothing is proven yet; try again when more edges are drawn"
    else:
        proven = f"proven: the value is between {lower:+d} and {upper:+d} boxes for you"
    return [f"not solved within {seconds:g} seconds; {proven}"]


def hint(record: Record, player: Player, seed: int, seconds: float) -> str:
    """Return a line with a best edge where the solver finds one, else with the player's choice."""
    best = _best_edges(record, seconds)
    if best:
        why = "the best edge" if len(best) == 1 else f"one of {len(best)} best edges"
        return f"hint: {edge_name(record.game, best[0])} ({why}, proven)"
    edge = choose(player, record, seed)
    return f"hint: {edge_name(record.game, edge)} (what {player.name} would draw; not proven)"


def _best_edges(record: Record, seconds: float) -> tuple[int, ...]:
    try:
        return analyse(record, seconds).best
    except InputError:  # the board is too large for the solver
        return ()
