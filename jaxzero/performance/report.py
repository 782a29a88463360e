"""The result of a measurement, in one form for all tools.

A result is a flat dictionary. Rates are per second, for all measured devices together. Memory is in
bytes. Shares are fractions of 1. `seconds` holds the seconds of each part in one iteration. A tool
leaves out values that it does not measure.
"""

import platform
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from typing import Any

import jax

import jaxzero
from jaxzero.config import Config, SearchConfig, plan
from jaxzero.network.layers import convolution_form
from jaxzero.network.network import Network, count_params
from jaxzero.performance.timing import (
    Done,
    matmul_part,
    random_positions,
    searched_states,
    seconds_per_call,
)
from jaxzero.runs.summary import Work
from jaxzero.training.learner import (
    Learner,
    init_learner,
    mean_gradient,
    schedule_of,
    update,
)

Result = dict[str, Any]
COUNTED = 64  # samples of an update whose operations are counted


def describe(config: Config, devices: list[jax.Device]) -> Result:
    """Return the date, devices, versions, config and network of a measurement."""
    network = Network(config.game.board, config.network)
    learner = jax.eval_shape(lambda: init_learner(network, config))
    games = plan(config, len(devices)).lanes
    form = convolution_form(network.platform, network.dtype, games)
    versions = {name: version(name) for name in ("jax", "jaxlib", "mctx")}
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": devices[0].device_kind,
        "platform": devices[0].platform,
        "versions": {"jaxzero": jaxzero.__version__, **versions}
        | {"python": platform.python_version()},
        "devices_present": jax.local_device_count(),
        "devices": len(devices),
        "config": asdict(config),
        "parameters": count_params(learner.params),
        "compute_dtype": network.dtype.name,
        "convolution": form if network.trunk.convolves else None,
    }


def count_flops(config: Config, learner: Learner) -> dict[str, float]:
    """Count the operations of an evaluation, of the gradient of a sample, and of an optimiser step.

    The count assumes the plain convolution with its zero padding, so a form with fewer operations
    gets a higher share.
    """
    # One step of the gradient on a CPU: the body of a loop would count only once. In bfloat16 its
    # convolution is a plain product of shifted slices.
    count = COUNTED
    settings = replace(config.network, compute_dtype="bfloat16")
    network = Network(config.game.board, settings, platform="cpu")
    positions = jax.eval_shape(partial(random_positions, network, count))
    # Lower for the CPU: the plugins of other devices count only compiled programs.
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        shapes, schedule = _shapes(learner), schedule_of(config.learner, (0.0, 0.0))
        lowered = (
            lower_evaluation(network, config.search, learner, count),
            jax.jit(partial(mean_gradient, network)).lower(shapes.params, positions),
            jax.jit(partial(update, network, config)).lower(shapes, positions, schedule),
        )
        evaluations, gradient, whole = (x.cost_analysis().get("flops", 0.0) for x in lowered)
    return {
        "flops_per_evaluation": evaluations / count,
        "flops_per_sample": gradient / count,
        "flops_per_update": whole - gradient,  # of the optimiser, for a batch of any size
    }


def learning_flops(config: Config, counts: dict[str, float]) -> float:
    """Return the operations of the updates of an iteration, by the `counts` of `count_flops`."""
    updates = config.learner.updates_per_iteration
    gradients = config.samples_per_iteration * counts["flops_per_sample"]
    return gradients + updates * counts["flops_per_update"]


def measure_work(config: Config, devices: list[jax.Device]) -> Callable[[], Work]:
    """Measure how fast the devices of a run multiply; return what counts its operations.

    Call this before anything else runs on them, such as the search of XLA for the fastest kernels.
    """
    product = matmul_part(Network(config.game.board, config.network))
    (seconds,) = seconds_per_call(product.call)
    return partial(count_work, config, len(devices) * product.items / seconds)


def count_work(config: Config, peak: float) -> Work:
    """Count the operations that a run needs on devices with this `peak` in FLOP/s."""
    network = Network(config.game.board, config.network)
    learner = jax.eval_shape(lambda: init_learner(network, config))
    counts = count_flops(config, learner)
    return Work(
        per_evaluation=counts["flops_per_evaluation"],
        per_iteration=learning_flops(config, counts),
        peak=peak,
    )


def count_bytes(config: Config, network: Network, learner: Learner, games: int) -> float | None:
    """Count the bytes that a compiled evaluation moves, per position.

    Fused operations share their reads. Return None if the compiler gives no count.
    """
    compiled = lower_evaluation(network, config.search, learner, games).compile()
    moved = (compiled.cost_analysis() or {}).get("bytes accessed")
    return moved and moved / games


def lower_evaluation(
    network: Network, settings: SearchConfig, learner: Learner, games: int
) -> jax.stages.Lowered:
    """Lower one evaluation of `games` games. Use no loop: its body would count only once."""
    state, structure = jax.eval_shape(partial(searched_states, network.board, settings, games))
    return jax.jit(network.apply).lower(_shapes(learner).params, state.drawn, structure)


def _shapes(learner: Learner) -> Learner:
    return jax.eval_shape(lambda learner: learner, learner)


def iteration_rates(config: Config, done: Done, seconds: float) -> Result:
    """Return the rates of an iteration whose self-play has `done` so much in `seconds`."""
    return {
        "games_per_second_with_learning": done.games / seconds,
        "decisions_per_second_with_learning": done.decisions / seconds,
        "evaluations_per_second_with_learning": done.evaluations / seconds,
        "decisions_per_game": done.decisions / done.games,
        "replay_ratio": config.replay_ratio,
    }


def measures(
    config: Config,
    devices: int,
    seconds: dict[str, float],
    limits: dict[str, float | None],
    done: Done,
) -> Result:
    """Return rates and shares of limits, from the seconds of parts in one iteration.

    `limits` holds operations and bytes per position and the ceilings of one device. Only the
    evaluations that searches ask for count.
    """
    games, decisions, evaluations = done
    samples = config.samples_per_iteration

    def rate(count: float, part: str) -> float | None:
        # Noise may hide the learning of few samples; then its speed is unknown.
        return count / seconds[part] if count and seconds.get(part, 0.0) > 0 else None

    forward = evaluations * limits["flops_per_evaluation"]
    learning = learning_flops(config, limits)
    flops = {
        "network": forward,
        "selfplay": forward,
        "learning": learning,
        "iteration": forward + learning,
    }
    used = {part: rate(count, part) for part, count in flops.items()}
    network = rate(evaluations, "network")
    moved, ceiling = limits.get("bytes_per_evaluation"), devices * limits["matmul_ceiling_flops"]
    return {
        **iteration_rates(config, done, seconds["iteration"]),
        "games_per_second": rate(games, "selfplay"),
        "decisions_per_second": rate(decisions, "selfplay"),
        "network_evaluations_per_second": network,
        "selfplay_evaluations_per_second": rate(evaluations, "selfplay"),
        "learner_samples_per_second": rate(samples, "learning"),
        **limits,
        **{f"{part}_mfu": done and done / ceiling for part, done in used.items()},
        "copy_share": moved and moved * network / devices / limits["copy_ceiling_bytes"],
        "seconds": seconds,
    }
