"""What an AlphaZero on the host does: one game at a time, its tree in Python, batches of one.

The yardstick of the games per second: PUCT (Silver et al. 2018) with root noise and reuse of the
subtree, over rules in plain Python. Knows no array library but the random numbers of NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from jaxzero.game import DotsAndBoxes, box_neighbours

C_PUCT = 1.5
NOISE_ALPHA, NOISE_SHARE = 0.3, 0.25

# From drawn edges [A] to (a prior per edge [A], value for the side to move, in boards won: -1 to 1)
Evaluate = Callable[[list[bool]], tuple[list[float], float]]


class Board:
    """One game that can take moves back."""

    def __init__(self, game: DotsAndBoxes):
        self.beside = [
            [box for box in pair if box < game.num_boxes] for pair in box_neighbours(game).tolist()
        ]
        self.num_boxes = game.num_boxes
        self.drawn = [False] * game.num_edges
        self.sides = [0] * game.num_boxes
        self.left = game.num_edges

    def legal(self) -> list[int]:
        return [edge for edge, drawn in enumerate(self.drawn) if not drawn]

    def play(self, edge: int) -> int:
        """Draw a free edge and return how many boxes it closes; with any, the mover goes on."""
        self.drawn[edge] = True
        self.left -= 1
        closed = 0
        for box in self.beside[edge]:
            self.sides[box] += 1
            closed += self.sides[box] == 4
        return closed

    def undo(self, edge: int) -> None:
        self.drawn[edge] = False
        self.left += 1
        for box in self.beside[edge]:
            self.sides[box] -= 1


class Node:
    """A position of the tree, with one entry per legal edge."""

    __slots__ = ("children", "edges", "priors", "totals", "visits")

    def __init__(self, edges: list[int], priors: list[float]):
        self.edges = edges
        self.priors = priors
        self.visits = [0] * len(edges)
        self.totals = [0.0] * len(edges)  # sums of values for the side to move here
        self.children: list[Node | None] = [None] * len(edges)

    def select(self) -> int:
        """Return the entry with the highest PUCT score."""
        scale = C_PUCT * math.sqrt(1 + sum(self.visits))
        best, best_score = 0, -math.inf
        for entry, visits in enumerate(self.visits):
            score = scale * self.priors[entry] / (1 + visits)
            if visits:
                score += self.totals[entry] / visits
            if score > best_score:
                best, best_score = entry, score
        return best


def expand(board: Board, evaluate: Evaluate) -> tuple[Node, float]:
    """Evaluate the position on the board: its node and its value for the side to move."""
    priors, value = evaluate(board.drawn)
    edges = board.legal()
    kept = [priors[edge] for edge in edges]
    total = sum(kept) or 1.0
    return Node(edges, [prior / total for prior in kept]), value


def simulate(board: Board, root: Node, evaluate: Evaluate) -> None:
    """Add one visit to the tree; the board is as before."""
    path, node = [], root
    while True:
        entry = node.select()
        closed = board.play(node.edges[entry])
        path.append((node, entry, closed))
        if not board.left:
            value = 0.0
            break
        child = node.children[entry]
        if child is None:
            node.children[entry], value = expand(board, evaluate)
            break
        node = child
    for node, entry, closed in reversed(path):
        # Who closes a box moves again, so only without one the value changes sides.
        value = closed / board.num_boxes + value if closed else -value
        node.visits[entry] += 1
        node.totals[entry] += value
        board.undo(node.edges[entry])


def add_noise(root: Node, rng: np.random.Generator) -> None:
    """Mix Dirichlet noise into the priors of the root."""
    noise = rng.dirichlet([NOISE_ALPHA] * len(root.edges)).tolist()
    root.priors = [
        (1 - NOISE_SHARE) * prior + NOISE_SHARE * extra
        for prior, extra in zip(root.priors, noise, strict=True)
    ]


def search_moves(board: Board, root: Node, evaluate: Evaluate, simulations: int) -> list[int]:
    """Run `simulations` and return the visits of the root's entries, reused ones included."""
    for _ in range(simulations):
        simulate(board, root, evaluate)
    return root.visits


def play_game(
    game: DotsAndBoxes,
    evaluate: Evaluate,
    simulations: int,
    sampled_plies: int,
    rng: np.random.Generator,
) -> list[tuple[int, list[float], int]]:
    """Play one game and return of every ply the edge, the policy [A] and the boxes it closed."""
    board, record = Board(game), []
    root, _ = expand(board, evaluate)
    for ply in range(game.num_edges):
        add_noise(root, rng)
        visits = search_moves(board, root, evaluate, simulations)
        total = sum(visits)
        policy = [0.0] * game.num_edges
        for edge, count in zip(root.edges, visits, strict=True):
            policy[edge] = count / total
        if ply < sampled_plies:
            entry = rng.choice(len(visits), p=np.array(visits) / total)
        else:
            entry = max(range(len(visits)), key=visits.__getitem__)
        edge, child = root.edges[entry], root.children[entry]
        record.append((edge, policy, board.play(edge)))
        if board.left:
            root = child or expand(board, evaluate)[0]
    return record
