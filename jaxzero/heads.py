"""Heads: what the network learns to predict beside the policy, one declaration each.

A head is a last layer of the network. Every decision of the finished games gets a label, which
passes through the replay to the loss. A new head is a new entry in `HEADS`; nothing else changes.
The search reads the policy and the margin. Other heads are auxiliary losses.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxzero.config import Config, NetworkConfig, SelfplayConfig
from jaxzero.game import DotsAndBoxes, boxes_closed
from jaxzero.game.structure import find_structure, first_boxes

LONG = 3  # boxes; the side that must open a chain this long loses control of the game
CHAIN_CLASSES = 8  # numbers of long chains and loops: 0 to 6, and more


class Decisions(NamedTuple):
    """The decisions in all lanes, step by step; `played` is False past the end of a game."""

    drawn: jax.Array  # [T, B, A] bool, edges of the searched position
    policy: jax.Array  # [T, B, A] float32, improved policy, split evenly over the edges of one move
    player: jax.Array  # [T, B] int32, side to move
    ahead: jax.Array  # [T, B] int32, boxes of the first player minus those of the second
    entropy: jax.Array  # [T, B] float32, of the improved policy over moves, in nats
    surprise: jax.Array  # [T, B] float32, its divergence from the network's policy, in nats
    random: jax.Array  # [T, B] bool, the move was a random one
    played: jax.Array  # [T, B] bool, the game was not over
    game: jax.Array  # [T, B] int32, number of the game, 0 to N - 1
    simulations: jax.Array  # [T, B] int32, of the search
    evaluations: jax.Array  # [T, B] int32, by the network in the search
    value: jax.Array  # [T, B] float32, margin to come for the side to move, by the search, in boxes


def cross_entropy(board: DotsAndBoxes, logits: jax.Array, label: jax.Array) -> dict[str, jax.Array]:
    """Return the cross-entropy of ONE position: logits [K], label []."""
    return {"loss": jax.nn.logsumexp(logits) - logits[label]}


@dataclass(frozen=True)
class Head:
    """A prediction of the network, from its logits to its loss.

    Labels are class indices; -1 is masked out.
    """

    size: Callable[[DotsAndBoxes], int]  # board -> K logits
    # (config, decisions, results [N], uniform [T, B]) -> [T, B] int32. Results are final margins of
    # the first player; uniform numbers, 0 to 1, are for labels that are rounded at random.
    label: Callable[[Config, Decisions, jax.Array, jax.Array], jax.Array]
    dtype: jnp.dtype  # of the label in the replay
    # (board, logits [K], label []) -> the "loss" of ONE position, and other numbers to report.
    losses: Callable[[DotsAndBoxes, jax.Array, jax.Array], dict[str, jax.Array]] = cross_entropy
    weight: float = 1.0  # of the loss
    # Whether the loss is a mean over the positions with a known label, not over all. Then the
    # fraction of known labels does not change the weight of the loss.
    mean_over_known: bool = False
    # (board, drawn [A]) -> [K] bool, False where a label is impossible; None: all are possible.
    possible: Callable[[DotsAndBoxes, jax.Array], jax.Array] | None = None
    is_on: Callable[[NetworkConfig], bool] = lambda _: True


def heads_of(config: NetworkConfig) -> dict[str, Head]:
    """Return the heads of a network by name."""
    return {name: head for name, head in HEADS.items() if head.is_on(config)}


def is_last_layer(path: tuple) -> bool:
    """Return whether a parameter belongs to the last layer of the policy or of a head."""
    return any(part.key == "policy" or part.key in HEADS for part in path)


# The margin: boxes that the side to move wins from here on, minus those that it loses. The label is
# the bin of the result of the game, or early in a game of a lambda-return: a mean of the result and
# the values of the next searches.


def margin_bins(board: DotsAndBoxes) -> jax.Array:
    """Return the remaining margin each bin stands for, in boxes: [2 * rows * cols + 1] int32."""
    return jnp.arange(-board.num_boxes, board.num_boxes + 1, dtype=jnp.int32)


def margin_mask(board: DotsAndBoxes, drawn: jax.Array) -> jax.Array:
    """Return which remaining margins are possible: [2 * rows * cols + 1] bool.

    Bin i stands for a margin of i - rows * cols boxes. With n boxes left the two sides share n
    boxes, so the margin lies in -n..n and has the parity of n.
    """
    left = board.num_boxes - boxes_closed(board, drawn)
    margins = margin_bins(board)
    return (jnp.abs(margins) <= left) & ((margins - left) % 2 == 0)


def margin_losses(board: DotsAndBoxes, logits: jax.Array, label: jax.Array) -> dict[str, jax.Array]:
    """Return the loss and the error in boxes of the expected margin of ONE position."""
    expected = jax.nn.softmax(logits) @ margin_bins(board).astype(jnp.float32)
    error = jnp.abs(expected - (label - board.num_boxes))
    return cross_entropy(board, logits, label) | {"error": error}


def margin_label(
    config: Config, decisions: Decisions, results: jax.Array, uniform: jax.Array
) -> jax.Array:
    """Return the bin of the margin to come for the side to move: [T, B] int32."""
    board = config.game.board
    total, known = totals(config.selfplay, decisions, results)
    to_come = total - decisions.ahead
    to_come = jnp.where(decisions.player == 0, to_come, -to_come)
    closed = jax.vmap(jax.vmap(partial(boxes_closed, board)))(decisions.drawn)
    margin = possible_margin(to_come, board.num_boxes - closed, uniform)
    return jnp.where(known, margin + board.num_boxes, -1)


def totals(
    settings: SelfplayConfig, decisions: Decisions, results: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return targets of the first player's final margin, and where they are known: [T, B] each.

    A target is the result [N] of the game; it is unknown at and before a random move. At more
    than `td_above_edges` undrawn edges it is a lambda-return: the fraction 1 - `td_lambda` is the
    value of the search after the next move; if the later target is unknown, all of it is.
    """
    value = jnp.where(decisions.player == 0, decisions.value, -decisions.value)
    expected = decisions.ahead + value
    early = jnp.sum(~decisions.drawn, axis=-1, dtype=jnp.int32) > settings.td_above_edges
    share = jnp.where(early, settings.td_lambda, jnp.float32(1))
    result = results[decisions.game].astype(jnp.float32)

    def back(carry: tuple, step: tuple) -> tuple[tuple, tuple[jax.Array, jax.Array]]:
        """carry: (game, played, total, known, expected) of the next decision."""
        game, played, total, known, expected = carry
        decision, result, share, own = step
        continues = (game == decision.game) & played
        weight = jnp.where(known | (share == 1), share, 0.0)
        # At weight 1 nothing is added, so a result stays a whole number.
        mixed = jnp.where(weight == 1, total, weight * total + (1 - weight) * expected)
        total = jnp.where(continues, mixed, result)
        known = ~decision.random & (known | (share < 1) | ~continues)
        return (decision.game, decision.played, total, known, own), (total, known)

    lanes = decisions.played.shape[1]
    nothing, zeros = jnp.zeros(lanes, bool), jnp.zeros(lanes, jnp.float32)
    last = jnp.full(lanes, -1, jnp.int32), nothing, zeros, nothing, zeros
    steps = decisions._replace(drawn=None, policy=None), result, share, expected
    return jax.lax.scan(back, last, steps, reverse=True)[1]


def possible_margin(margin: jax.Array, left: jax.Array, uniform: jax.Array) -> jax.Array:
    """Round margins [...] float32 to possible ones with `left` [...] boxes to come: [...] int32.

    Possible margins are -left to left in steps of two. Rounding is up or down at random, by
    `uniform` [...] 0 to 1, so the mean does not change.
    """
    steps = jnp.floor((margin + left) / 2 + jnp.minimum(uniform, 0.999)).astype(jnp.int32)
    return 2 * jnp.clip(steps, 0, left) - left


# The safe end: the first later decision of the game without a safe edge. The label is twice the
# number of long chains there, plus the side to move there (0: the present side to move).


def safe_end_label(
    config: Config, decisions: Decisions, results: jax.Array, uniform: jax.Array
) -> jax.Array:
    """Return the label of the safe end: [T, B] int32.

    It is unknown without a safe edge, in games without a safe end, and before a random move that
    precedes the safe end.
    """
    chains, some = jax.vmap(jax.vmap(partial(long_chains, config.game.board)))(decisions.drawn)
    own = 2 * chains + decisions.player

    def back(carry: tuple, step: tuple) -> tuple[tuple, jax.Array]:
        """carry: (game, end) of the next decision; an end is twice the chains plus the player."""
        game, end = carry
        number, played, random, player, some, own = step
        later = jnp.where((game == number) & ~random, end, -1)
        end = jnp.where(played, jnp.where(some, later, own), -1)
        known = some & (end >= 0)
        return (number, end), jnp.where(known, end // 2 * 2 + (end + player) % 2, -1)

    steps = decisions.game, decisions.played, decisions.random, decisions.player, some, own
    last = jnp.full(decisions.game.shape[1], -1, jnp.int32)
    return jax.lax.scan(back, (last, last), steps, reverse=True)[1]


def long_chains(board: DotsAndBoxes, drawn: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Count chains and loops of at least `LONG` boxes; return also whether any edge is safe."""
    structure = find_structure(board, drawn)
    count = jnp.sum(first_boxes(structure) & (structure.length >= LONG), dtype=jnp.int32)
    return jnp.minimum(count, CHAIN_CLASSES - 1), jnp.any(structure.safe)


def safe_end_losses(
    board: DotsAndBoxes, logits: jax.Array, label: jax.Array
) -> dict[str, jax.Array]:
    """Return the loss of ONE position: cross-entropies of the side to move and of the chains."""
    chains, mover = jnp.divmod(label, 2)
    parts = (logits[:2], mover), (logits[2:], chains)
    return {"loss": sum(cross_entropy(board, *part)["loss"] for part in parts)}


HEADS = {
    "margin": Head(
        size=lambda board: 2 * board.num_boxes + 1,
        label=margin_label,
        dtype=jnp.int16,
        losses=margin_losses,
        mean_over_known=True,
        possible=margin_mask,
    ),
    "safe_end": Head(
        size=lambda _: 2 + CHAIN_CLASSES,
        label=safe_end_label,
        dtype=jnp.int8,
        losses=safe_end_losses,
        weight=0.5,
        is_on=lambda config: config.safe_end,
    ),
}
