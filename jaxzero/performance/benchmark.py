"""The benchmark: all measures of one config on one device, as one dictionary."""

from __future__ import annotations

import platform
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import jax

import jaxzero
from jaxzero.agent.forms import compute_dtype, convolution_form
from jaxzero.agent.network import Network, count_params
from jaxzero.config import Config
from jaxzero.performance.baseline_pool import Baseline
from jaxzero.performance.ceilings import Ceilings
from jaxzero.performance.costs import Cost, network_cost, update_cost
from jaxzero.performance.host_gap import Iterations, quiet_writer, timed_compilation
from jaxzero.performance.plan import Plan, make_plan
from jaxzero.performance.rates import Rates, measure_rates, probe
from jaxzero.training.learner import Learner, init_learner
from jaxzero.training.memory import peak_memory_bytes, predicted_memory_bytes


def benchmark(
    config: Config, seconds: float = 120.0, rounds: int = 3, baseline: Baseline | None = None
) -> dict[str, Any]:
    """Measure a config on the first device in about `seconds`, compilation not counted.

    The device gets all games and samples of the config. Rates are per second, memory in bytes.
    A `baseline` takes its turns with the rest, in time of its own.
    """
    device = jax.local_devices()[0]
    network = Network(config.game.board, config.network)
    learner = init_learner(network, config)
    print("Compiling an iteration ...", flush=True)
    compiled, compile_seconds = timed_compilation(config, network, device)
    memory = {"predicted_memory_bytes": predicted_memory_bytes(compiled)}
    print("Compiling and timing the parts ...", flush=True)
    plan = make_plan(config, probe(config, network, learner), seconds, rounds)
    if not plan.whole_iteration(config):
        compiled, _ = timed_compilation(plan.iteration, network, device)
    with quiet_writer(config) as writer:
        iterations = Iterations(plan.iteration, compiled, learner, device, writer)
        jax.block_until_ready(iterations.back_to_back())
        # Read before the parts are measured, which hold more than a run does.
        memory["peak_memory_bytes"] = peak_memory_bytes(device)
        ceilings = Ceilings(compute_dtype(network.config))
        turns = [ceilings.measure, *(baseline.turns() if baseline else [])]
        rates = measure_rates(config, network, learner, plan, iterations, turns)
    result = describe_setting(config, network, learner, device)
    result |= whole(config, plan, rates)
    result |= shares(costs(config, network, learner, plan), rates, ceilings) | memory
    if baseline:
        result["baseline"] = baseline.summary(result["games_per_second"])
    return result | {"compile_seconds": compile_seconds, "notes": [*plan.notes]}


def describe_setting(
    config: Config, network: Network, learner: Learner, device: jax.Device
) -> dict[str, Any]:
    """Return what was measured, on what, with what."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": device.device_kind,
        "platform": device.platform,
        "devices_present": jax.local_device_count(),
        "devices_measured": 1,
        "versions": {
            "jaxzero": jaxzero.__version__,
            "jax": jax.__version__,
            "jaxlib": version("jaxlib"),
            "mctx": version("mctx"),
            "python": platform.python_version(),
        },
        "config": asdict(config),
        "parameters": count_params(learner.params),
        "compute_dtype": compute_dtype(network.config).name,
        "convolution": convolution_form(network.config, config.selfplay.games)
        if network.config.convolutional
        else None,
    }


def whole(config: Config, plan: Plan, rates: Rates) -> dict[str, Any]:
    """Return rates, and the seconds of an iteration and of its phases."""
    phases = {
        "selfplay": config.evaluations_per_iteration / rates.selfplay,
        "replay_write": rates.write_seconds,
        "learning": config.learner.updates_per_iteration
        * config.learner.batch_size
        / rates.samples,
        "host_gap": rates.gap_seconds,
    }
    as_configured = plan.whole_iteration(config)
    phases["iteration"] = rates.iteration_seconds if as_configured else sum(phases.values())
    return {
        "games_per_second": config.selfplay.games / phases["selfplay"],
        "games_per_second_with_learning": config.selfplay.games / phases["iteration"],
        "network_evaluations_per_second": rates.network,
        "search_evaluations_per_second": rates.search,
        "selfplay_evaluations_per_second": rates.selfplay,
        "learner_samples_per_second": rates.samples,
        "host_gap_share": rates.gap_seconds / phases["iteration"],
        "phases": phases,
        "iteration_measured_whole": as_configured,
    }


def costs(config: Config, network: Network, learner: Learner, plan: Plan) -> tuple[Cost, Cost]:
    """Count the work of one evaluation and of one sample of learning."""
    return (
        network_cost(network, learner.params, plan.games),
        update_cost(network, config, learner, plan.samples),
    )


def shares(work: tuple[Cost, Cost], rates: Rates, ceilings: Ceilings) -> dict[str, Any]:
    """Return what the work takes and its shares of the ceilings."""
    evaluation, sample = work
    flops = {
        "network": evaluation.flops * rates.network,
        "selfplay": evaluation.flops * rates.selfplay,
        "learner": sample.flops * rates.samples,
    }
    matmul, copy, moved = ceilings.matmul, ceilings.copy, evaluation.bytes_moved
    return {
        "flops_per_evaluation": evaluation.flops,
        "flops_per_sample": sample.flops,
        "flops_per_second": flops,
        "matmul_ceiling_flops": matmul,
        "mfu": {name: value / matmul for name, value in flops.items()},
        "bytes_per_evaluation": moved,
        "copy_ceiling_bytes": copy,
        "copy_share": moved and moved * rates.network / copy,
    }
