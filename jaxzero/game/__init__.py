"""The game itself: rules, symmetries, features, names and pictures. Knows nothing of learning."""

from jaxzero.game.features import (
    board_planes,
    boxes_on_lattice,
    edges_from_lattice,
    edges_from_planes,
    edges_on_lattice,
    lattice_planes,
    margin_bins,
    margin_mask,
    most_sides_beside,
)
from jaxzero.game.geometry import box_neighbours, box_sides_table, count_sides
from jaxzero.game.notation import edge_name, parse_edge
from jaxzero.game.render import render
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
    random_edge,
    split_edges,
    step,
)
from jaxzero.game.symmetry import edge_permutations

__all__ = [
    "DotsAndBoxes",
    "State",
    "board_planes",
    "box_neighbours",
    "box_sides",
    "box_sides_table",
    "boxes_closed",
    "boxes_gained",
    "boxes_on_lattice",
    "count_sides",
    "discount",
    "edge_name",
    "edge_permutations",
    "edges_from_lattice",
    "edges_from_planes",
    "edges_on_lattice",
    "initial_state",
    "initial_states",
    "is_over",
    "lattice_planes",
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
