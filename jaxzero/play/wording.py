"""What a game in the terminal looks like: board, score, turns and the result, as text."""

from __future__ import annotations

from jaxzero.evaluation.arena import MatchResult
from jaxzero.game import edge_name, render
from jaxzero.play.record import Record
from jaxzero.play.sides import Sides


def count(number: int, one: str, many: str) -> str:
    """Return a number with its noun, such as `1 box` or `2 boxes`."""
    return f"{number} {one if number == 1 else many}"


def position(record: Record, sides: Sides) -> str:
    """Return the board, the score and whose turn it is."""
    marks = {box: sides[owner].mark for box, owner in record.owners.items()}
    board = render(record.game, record.drawn, marks)
    if record.is_over:
        return f"\n{board}\n"
    side = sides[record.player]
    turn = "your turn" if side.is_person else f"{side.name} to move"
    left = count(record.boxes_left, "box", "boxes")
    return f"\n{board}\n\n{score(record, sides)}, {left} left, {turn}"


def score(record: Record, sides: Sides) -> str:
    """Return the score between the names of the sides, such as `you 2 : 1 AI (perfect)`."""
    first, second = record.score
    return f"{sides[0].name} {first} : {second} {sides[1].name}"


def turn(before: Record, after: Record, sides: Sides) -> str:
    """Return the line on what a player did in its turn."""
    moves = after.moves[len(before.moves) :]
    names = ", ".join(edge_name(after.game, edge) for edge in moves)
    closed = before.boxes_left - after.boxes_left
    ending = f" and closes {count(closed, 'box', 'boxes')}" if closed else ""
    return f"{sides[before.player].name} draws {names}{ending}"


def result(record: Record, sides: Sides) -> str:
    """Return the line on how a finished game ended, the winner's boxes or one's own first."""
    first, second = record.score
    if first == second:
        return f"The game is a draw, {first} : {second}."
    winner = 0 if first > second else 1
    if not any(side.is_person for side in sides):
        return f"{sides[winner].name} wins {max(first, second)} : {min(first, second)}."
    if sides[winner].is_person:
        return f"You win {max(first, second)} : {min(first, second)}."
    return f"You lose {min(first, second)} : {max(first, second)}."


def match_report(names: tuple[str, str], outcome: MatchResult) -> str:
    """Return a line for each player: points with their 95 % interval, games, margin."""
    width = max(map(len, names))
    rows = zip(names, (outcome, outcome.mirrored()), strict=True)
    return "\n".join(f"{name:<{width}}  {one}" for name, one in rows)
