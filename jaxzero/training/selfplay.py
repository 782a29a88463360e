"""Self-play: a batch of games on the device, one decision of every game at a time.

A step searches the position of every game, decides captures by the value found, and plays a move.
`plain_game` or `quiet_game` (the setting `search.nodes`) defines the searched positions and the
moves. Games differ in length, so a mask marks the steps that were played. A block of fixed size is
resampled from these steps.

Whole games have similar lengths: each has its own lane of the batch. The lengths of late games
(`selfplay.late_start_moves`) differ a lot: see `queue`.
"""

from functools import partial

import chex
import jax
import jax.numpy as jnp

from jaxzero.config import Config, plan
from jaxzero.network.heads import Decisions
from jaxzero.search.search import PositionEvaluator, game_of, selfplay_search
from jaxzero.training.queue import (
    Games,
    Play,
    first_player_margin,
    has_ended,
    new_games,
    play_queue,
    positions_to_search,
    start_lanes,
)
from jaxzero.training.targets import (
    Positions,
    label,
    policy_divergence,
    policy_entropy,
    resample,
    result_metrics,
    sampling_weights,
)


def play_block(
    config: Config,
    evaluator: PositionEvaluator,
    params: chex.ArrayTree,
    key: jax.Array,
    games: int,
    fraction: chex.Numeric = 0.0,
) -> tuple[Positions, dict[str, jax.Array]]:
    """Play `games` games; return their positions to learn from, and metrics.

    `fraction` [] of the run is done. `plan` says how many positions there are. They are
    resampled from all played ones, evenly or weighted by `config.selfplay.surprise_weight`.
    """
    total = partial(jnp.sum, dtype=jnp.int32)
    begin_key, play_key, label_key, sample_key = jax.random.split(key, 4)
    begin = new_games(config, begin_key, games, fraction)
    decisions, margins = play_to_the_end(config, evaluator, params, play_key, begin)
    chex.assert_equal_shape([decisions.played, decisions.game, decisions.simulations])
    chex.assert_shape(margins, (games,), custom_message="margins")
    played, late = total(decisions.played), config.selfplay.late_start_moves > 0
    steps = plan(config).steps if late else total(jnp.any(decisions.played, axis=1))
    begun = jnp.zeros(games, bool).at[decisions.game].max(decisions.played)
    count = total(begun)
    positions = resample(
        label(config, decisions, margins, label_key),
        sampling_weights(decisions, config.selfplay.surprise_weight),
        plan(config, games).positions,
        jax.random.uniform(sample_key, (), jnp.float32),
    )
    metrics = {
        "selfplay/policy_entropy": jnp.sum(decisions.entropy * decisions.played) / played,
        "selfplay/policy_surprise": jnp.sum(decisions.surprise * decisions.played) / played,
        **result_metrics(margins, begun, count),
        "selfplay/decisions": played / count,
        "selfplay/steps": jnp.float32(steps),
        # Per decision; fewer if a position has fewer moves than `max_considered_actions`.
        "selfplay/simulations": total(decisions.simulations * decisions.played) / played,
        # Fraction of the steps of all lanes in which a game was in play.
        "selfplay/used": played / (steps * decisions.played.shape[1]),
        "selfplay/games": count,
        "selfplay/moves": played,
        # By the network. A simulation that ends in a finished game needs none.
        "selfplay/evaluations": total(decisions.evaluations * decisions.played),
    }
    return positions, metrics


def play_to_the_end(
    config: Config,
    evaluator: PositionEvaluator,
    params: chex.ArrayTree,
    play_key: jax.Array,
    games: Games,
) -> tuple[Decisions, jax.Array]:
    """Play games [N] to their end.

    Returns their decisions and the final margins of the first player [N] int32. With a queue some
    games may never begin: they have no decision.
    """
    step = partial(play_step, config, evaluator, params, play_key)
    if config.selfplay.late_start_moves:
        return play_queue(config, step, games)

    def unfinished(play: Play) -> jax.Array:
        return ~jnp.all(has_ended(positions_to_search(config, play.games)))

    play = jax.lax.while_loop(unfinished, step, start_lanes(config, games))
    return play.decisions, first_player_margin(positions_to_search(config, play.games))


def play_step(
    config: Config,
    evaluator: PositionEvaluator,
    params: chex.ArrayTree,
    play_key: jax.Array,
    play: Play,
) -> Play:
    """Make one decision in every lane."""
    board, rules, games = config.game.board, game_of(config.search), play.games
    step_key = jax.random.fold_in(play_key, play.step)
    search_key, sample_key = jax.random.split(step_key)
    position = positions_to_search(config, games)
    ended = has_ended(position)
    found = selfplay_search(
        board, config.search, evaluator, params, search_key, position, games.view
    )
    chex.assert_equal_shape([found.policy, found.visits, position.drawn])
    chex.assert_equal_shape([found.value, found.edge, ended])
    value = jnp.where(ended, 0.0, found.value * board.num_boxes)
    state = jax.vmap(rules.resolve)(games.state, games.view, value)

    is_random = games.random.at(games.ply)
    legal = jax.vmap(partial(rules.legal, board))(games.view)
    policy = jnp.where(is_random[:, None], legal, found.policy)
    sampled = jax.random.categorical(sample_key, jnp.log(policy))
    is_sampled = is_random | (games.ply < config.selfplay.sampled_moves)
    move = jnp.where(is_sampled, sampled, found.edge).astype(jnp.int32)

    decision = Decisions(
        drawn=state.drawn,
        policy=jax.vmap(partial(rules.target, board))(games.view, found.policy),
        player=state.player,
        ahead=first_player_margin(state),
        entropy=policy_entropy(found.policy),
        surprise=policy_divergence(found.policy, found.prior),
        # No random move in a finished game: it would mask the result.
        random=is_random & ~ended,
        played=~ended,
        game=games.number,
        simulations=jnp.sum(found.visits, axis=-1, dtype=jnp.int32),
        evaluations=found.evaluations,
        value=value,
    )
    chex.assert_tree_shape_prefix(decision, ended.shape)
    state, view = jax.vmap(partial(rules.play, board))(state, move)
    return Play(
        step=play.step + 1,
        games=games._replace(ply=games.ply + 1, state=state, view=view),
        decisions=jax.tree.map(lambda a, b: a.at[play.step].set(b), play.decisions, decision),
    )
