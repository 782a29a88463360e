"""What the network sees: functions of the drawn edges only.

The boxes still to be won depend on neither the score nor the side to move, so neither is here.
Planes lie on the grid of dots, H = rows + 1 by W = cols + 1: the plane of horizontal edges holds
edge (r, c) at the dot on its left, the plane of verticals at the dot above, boxes at their top
left dot. What lies beyond the board is 0. On the lattice, H = 2 rows + 1 by W = 2 cols + 1, every
dot, edge and box has a square of its own.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxzero.game.rules import DotsAndBoxes, box_sides, split_edges

PLANES = (
    "horizontal edges drawn",
    "vertical edges drawn",
    "horizontal edges legal",
    "vertical edges legal",
    "boxes with 0 sides",
    "boxes with 1 side",
    "boxes with 2 sides",
    "boxes with 3 sides",
    "boxes closed",
    "board mask of boxes",
)
LATTICE_PLANES = ("edges drawn", "edges", "boxes", "dots")


def board_planes(game: DotsAndBoxes, drawn: jax.Array) -> jax.Array:
    """Return the planes named in `PLANES` for one board: [H, W, F] bool."""
    horizontal, vertical = split_edges(game, drawn)
    sides = box_sides(game, drawn)
    boxes = [sides == count for count in range(5)]
    planes = [horizontal, vertical, ~horizontal, ~vertical, *boxes, jnp.ones_like(boxes[0])]
    return jnp.stack([on_dots(game, plane) for plane in planes], axis=-1)


def on_dots(game: DotsAndBoxes, plane: jax.Array) -> jax.Array:
    """Pad a plane of edges or boxes to the grid of dots: [H, W]."""
    rows, cols = plane.shape
    return jnp.pad(plane, ((0, game.rows + 1 - rows), (0, game.cols + 1 - cols)))


def edges_from_planes(game: DotsAndBoxes, planes: jax.Array) -> jax.Array:
    """Read edges from a plane of horizontals and one of verticals: [..., H, W, 2] to [..., A]."""
    horizontal = planes[..., :, : game.cols, 0]
    vertical = planes[..., : game.rows, :, 1]
    batch = planes.shape[:-3]
    return jnp.concatenate([horizontal.reshape(*batch, -1), vertical.reshape(*batch, -1)], axis=-1)


def lattice_planes(game: DotsAndBoxes, drawn: jax.Array) -> jax.Array:
    """Return the planes named in `LATTICE_PLANES` for one board: [H, W, F] bool."""
    edges = edges_on_lattice(game, jnp.stack([drawn, jnp.ones_like(drawn)], axis=-1))
    boxes = boxes_on_lattice(jnp.ones((game.rows, game.cols, 1), bool))
    dots = ~edges[..., 1:] & ~boxes
    return jnp.concatenate([edges, boxes, dots], axis=-1)


def edges_on_lattice(game: DotsAndBoxes, edges: jax.Array) -> jax.Array:
    """Lay values of edges [A, F] on the lattice, 0 elsewhere: [H, W, F]."""
    horizontal = edges[: game.num_horizontal].reshape(game.rows + 1, game.cols, -1)
    vertical = edges[game.num_horizontal :].reshape(game.rows, game.cols + 1, -1)
    within, between, as_it_is = (1, 1, 1), (0, 0, 1), (0, 0, 0)
    zero = jnp.zeros((), edges.dtype)
    across = jax.lax.pad(horizontal, zero, (between, within, as_it_is))
    down = jax.lax.pad(vertical, zero, (within, between, as_it_is))
    return across | down if edges.dtype == bool else across + down


def boxes_on_lattice(boxes: jax.Array) -> jax.Array:
    """Lay values of boxes [rows, cols, F] on the lattice, 0 elsewhere: [H, W, F]."""
    within, as_it_is = (1, 1, 1), (0, 0, 0)
    return jax.lax.pad(boxes, jnp.zeros((), boxes.dtype), (within, within, as_it_is))


def edges_from_lattice(game: DotsAndBoxes, plane: jax.Array) -> jax.Array:
    """Read the edges from a plane on the lattice: [..., H, W] to [..., A]."""
    batch = plane.shape[:-2]
    parts = plane[..., 0::2, 1::2], plane[..., 1::2, 0::2]
    return jnp.concatenate([part.reshape(*batch, -1) for part in parts], axis=-1)


def margin_mask(game: DotsAndBoxes, drawn: jax.Array) -> jax.Array:
    """Return which remaining margins are possible: [2 * rows * cols + 1] bool.

    Bin i stands for a margin of i - rows * cols boxes. With n boxes left the two sides share n
    boxes, so the margin lies in -n..n and has the parity of n.
    """
    left = jnp.sum(box_sides(game, drawn) < 4, dtype=jnp.int32)
    margins = margin_bins(game)
    return (jnp.abs(margins) <= left) & ((margins - left) % 2 == 0)


def margin_bins(game: DotsAndBoxes) -> jax.Array:
    """Return the remaining margin each bin stands for, in boxes: [2 * rows * cols + 1] int32."""
    return jnp.arange(-game.num_boxes, game.num_boxes + 1, dtype=jnp.int32)


def most_sides_beside(game: DotsAndBoxes, drawn: jax.Array) -> jax.Array:
    """Return for every edge the drawn sides of its fullest box that is still open: [A] int32.

    3: drawing the edge closes a box; 2: it gives one away; less: it is safe. Drawn edges count
    like the others.
    """
    sides = box_sides(game, drawn)
    return highest_beside(jnp.where(sides == 4, 0, sides))


def highest_beside(boxes: jax.Array) -> jax.Array:
    """Return for every edge the higher value of its two boxes: [rows, cols] to [A], outside 0."""
    above = jnp.pad(boxes, ((1, 1), (0, 0)))
    beside = jnp.pad(boxes, ((0, 0), (1, 1)))
    horizontal = jnp.maximum(above[:-1], above[1:])
    vertical = jnp.maximum(beside[:, :-1], beside[:, 1:])
    return jnp.concatenate([horizontal.ravel(), vertical.ravel()])
