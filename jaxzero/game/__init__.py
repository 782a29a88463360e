"""The game itself: rules, board, structure, features and text. Knows nothing of learning."""

from jaxzero.game.board import (
    automorphisms,
    box_neighbours,
    box_sides_table,
    count_sides,
    edge_permutations,
)
from jaxzero.game.features import board_planes, edges_from_planes, margin_bins, margin_mask
from jaxzero.game.rules import (
    DotsAndBoxes,
    State,
    box_sides,
    boxes_closed,
    boxes_gained,
    discount,
    initial_state,
    initial_states,
    is_over,
    legal_edges,
    most_sides_beside,
    random_edge,
    split_edges,
    step,
)
from jaxzero.game.text import edge_name, parse_edge, render

__all__ = [
    "DotsAndBoxes",
    "State",
    "automorphisms",
    "board_planes",
    "box_neighbours",
    "box_sides",
    "box_sides_table",
    "boxes_closed",
    "boxes_gained",
    "count_sides",
    "discount",
    "edge_name",
    "edge_permutations",
    "edges_from_planes",
    "initial_state",
    "initial_states",
    "is_over",
    "legal_edges",
    "margin_bins",
    "margin_mask",
    "most_sides_beside",
    "parse_edge",
    "random_edge",
    "render",
    "split_edges",
    "step",
]
