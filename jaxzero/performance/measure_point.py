"""One point of a sweep, measured in a process of its own.

python -m jaxzero.performance.measure_point CONFIG KNOWN RESULT ROUNDS [PIPE]

It ends when the pipe with this file descriptor closes at its other end.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
import traceback
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import chex
import jax

from jaxzero.agent.forms import compute_dtype
from jaxzero.agent.network import Network
from jaxzero.cli import load_config
from jaxzero.config import Config
from jaxzero.errors import InputError
from jaxzero.files import write_json
from jaxzero.interrupts import end_with_parent
from jaxzero.performance.ceilings import matmul_flops_per_second
from jaxzero.performance.costs import network_flops, update_flops
from jaxzero.training.iteration import init_actor, make_iteration
from jaxzero.training.learner import init_learner, playing_params
from jaxzero.training.memory import (
    DoesNotFit,
    abstract_inputs,
    peak_memory_bytes,
    plan_iteration,
)
from jaxzero.training.parallel import (
    choose_devices,
    local_copy,
    parallelize,
    replicate,
    spread_actor,
)
from jaxzero.training.throughput import network_call, seconds_per_call

COST_BATCH = 64  # operations per position do not depend on the batch

Known = dict[str, dict[str, Any]]  # what one point measures for all: "ceilings" and "costs"


def measure_point(config: Config, known: Known, rounds: int) -> dict[str, Any]:
    """Measure training with `config`: speeds per second, memory in bytes, shares of 1.

    Adds to `known` the ceiling and the costs that are not there yet. Raises: DoesNotFit, and
    InputError for settings that do not divide over the devices.
    """
    devices = choose_devices(config.devices)
    config.check_devices(len(devices))
    network = Network(config.game.board, config.network)
    begin = time.perf_counter()
    plan = plan_iteration(config, network, devices)
    compile_seconds = time.perf_counter() - begin
    train, play, alone = _seconds(config, network, devices, plan.compiled, rounds)
    peak = max(map(peak_memory_bytes, devices))

    samples = config.learner.batch_size * config.learner.updates_per_iteration
    evaluations = config.evaluations_per_iteration
    learning = train - play
    cost = _costs(config, network, known)
    flops = evaluations * cost["evaluation"] + samples * cost["sample"]
    ceiling = _ceiling(config, known) * len(devices)
    rates = {
        "games_per_second": config.selfplay.games / train,
        "evaluations_per_second": evaluations / train,
        # Noise may hide the learning of few samples; then nothing is known of its speed.
        "samples_per_second": samples / learning if samples and learning > 0 else None,
        "selfplay_evaluations_per_second": evaluations / play,
        "network_evaluations_per_second": config.selfplay.games / alone,
        "selfplay_of_network": alone * evaluations / config.selfplay.games / play,
    }
    return rates | {
        "mfu": flops / train / ceiling,
        "replay_ratio": config.replay_ratio,
        "selfplay_share": min(1.0, play / train),
        "learning_share": max(0.0, learning / train),
        "iteration_seconds": train,
        "compile_seconds": compile_seconds,
        "peak_memory_bytes": peak,
        "predicted_memory_bytes": plan.predicted,
        "replay_memory_bytes": plan.replay,
        "devices": len(devices),
        "device": devices[0].device_kind,
        "jax": jax.__version__,
    }


def _seconds(
    config: Config,
    network: Network,
    devices: list[jax.Device],
    compiled: jax.stages.Compiled,
    rounds: int,
) -> tuple[float, float, float]:
    """Time an iteration, one without its learning, and one batch of the network alone.

    The network runs on one device at the batch of self-play there: seconds per batch.
    """
    learner = replicate(init_learner(network, config), devices)
    actor = spread_actor(lambda: init_actor(config, len(devices)), devices)
    run_key = replicate(jax.random.key(config.seed), devices)
    params = local_copy(playing_params(learner))
    without = replace(config, learner=replace(config.learner, updates_per_iteration=0))
    playing = parallelize(make_iteration(without, network, len(devices)), devices)
    state = [learner, actor]
    del learner, actor  # donated: the list holds what came back

    def run(program) -> chex.ArrayTree:
        state[:], metrics = (result := program(*state, run_key))[:2], result[2]
        return metrics

    batch = config.selfplay.games // len(devices)
    repeats = max(1, config.positions_per_game * (config.search.simulations + 1) // 4)
    train, play, alone = seconds_per_call(
        lambda: run(compiled),
        lambda: run(playing),
        network_call(network, params, batch, repeats),
        rounds=rounds,
    )
    return train, play, alone / repeats


def _costs(config: Config, network: Network, known: Known) -> dict[str, float]:
    """Return the operations of one evaluation and of one sample of an update."""
    key = json.dumps([asdict(config.game), asdict(config.network)])
    if key not in known["costs"]:
        learner = abstract_inputs(config, network, 1).learner
        known["costs"][key] = {
            "evaluation": network_flops(network, learner.params, COST_BATCH),
            "sample": update_flops(network, config, learner, COST_BATCH),
        }
    return known["costs"][key]


def _ceiling(config: Config, known: Known) -> float:
    """Return what one device computes at best in the network's number format, in FLOP/s."""
    dtype = compute_dtype(config.network)
    if dtype.name not in known["ceilings"]:
        known["ceilings"][dtype.name] = matmul_flops_per_second(dtype)
    return known["ceilings"][dtype.name]


def outcome(config: Config, known: Known, rounds: int) -> dict[str, Any]:
    """Return the status of a point with its measurements, or with the last line of its error."""
    try:
        return {"status": "ok", **measure_point(config, known, rounds)}
    except DoesNotFit as error:
        status, line = "does not fit", str(error)
        sizes = {"predicted_memory_bytes": error.needed, "device_memory_bytes": error.limit}
        return {"status": status, "error": line, **sizes}
    except InputError as error:
        return {"status": "invalid", "error": str(error)}
    except Exception as error:
        traceback.print_exc()
        words = f"{type(error).__name__}: {error}"
        exhausted = isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in words
        return {"status": "out of memory" if exhausted else "failed", "error": last_line(words)}


def last_line(text: str) -> str:
    """Return the last line of `text` that says something."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def main(
    config_file: str, known_file: str, result_file: str, rounds: str, pipe: str | None = None
) -> None:
    """Measure the point of a config file and write its outcome."""
    if pipe is not None:
        end_with_parent(int(pipe))
    # Where memory ends the system shall end this process, not the one that keeps the results.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    known = json.loads(Path(known_file).read_text())
    result = outcome(load_config(config_file), known, int(rounds))
    write_json(Path(known_file), known)
    write_json(Path(result_file), result)


if __name__ == "__main__":
    main(*sys.argv[1:])
