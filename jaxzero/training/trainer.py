"""The training loop on the host: build, restore, iterate, log, evaluate, save."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import chex
import jax

from jaxzero.agent.network import Network
from jaxzero.cli import load_config, save_config
from jaxzero.config import Config
from jaxzero.errors import InputError
from jaxzero.training.checkpoint import Checkpoints
from jaxzero.training.iteration import Actor, init_actor
from jaxzero.training.learner import Learner, init_learner
from jaxzero.training.memory import peak_memory_bytes, plan_iteration
from jaxzero.training.metrics import MetricsWriter
from jaxzero.training.parallel import (
    assert_replicated,
    choose_devices,
    replicate,
    spread,
    spread_actor,
)
from jaxzero.training.report import headline, print_header, print_summary, summarize
from jaxzero.training.stop import Stop
from jaxzero.training.strength import Judge, flatten
from jaxzero.training.transfer import begin_with, transfer

CONFIG_FILE = "config.yaml"


class Progress(NamedTuple):
    """Where a run stands."""

    learner: Learner
    actor: Actor
    minutes: float  # spent so far, resumed parts included
    games: int  # played so far


def train(
    config: Config,
    run_dir: Path,
    resume: bool = False,
    stop: Stop | None = None,
    weights: chex.ArrayTree | None = None,
) -> bool:
    """Train in `run_dir`, from scratch, from `weights` or from its newest good checkpoint.

    Returns whether the run is complete; its summary is then written. Raises: InputError when the
    directory holds a run and `resume` is off, or holds a run of another board or network, or the
    device has not the memory for the run.
    """
    stop = stop or Stop()
    check_run_dir(config, run_dir, resume)
    devices = choose_devices(config.devices)
    config.check_devices(len(devices))
    network = Network(config.game.board, config.network)
    judge = Judge(config, network)
    learner = first_learner(config, network, weights)
    # Before the compiler runs, because an unwritable place can be told at once.
    make_run_dir(run_dir)
    try:
        plan = plan_iteration(config, network, devices)
    except InputError:
        remove_if_empty(run_dir)
        raise
    checkpoints = Checkpoints(run_dir, config.keep_checkpoints)
    progress = start(config, learner, devices, checkpoints, resume)
    save_config(config, run_dir / CONFIG_FILE)

    run_key = replicate(jax.random.key(config.seed), devices)
    print_header(config, devices, progress.learner, plan)

    first = int(progress.learner.iteration)
    writer = MetricsWriter(run_dir, first, config.iterations)
    with stop.on_signals():
        for done in range(first + 1, config.iterations + 1):
            progress, metrics = run_iteration(config, plan.compiled, run_key, progress)
            metrics["memory/peak_bytes"] = max(map(peak_memory_bytes, devices))
            line = headline(metrics)
            if config.evaluation.evaluate_every and done % config.evaluation.evaluate_every == 0:
                learner, measured, words = judge_iteration(config, judge, progress.learner)
                progress = progress._replace(learner=learner)
                metrics |= measured
                line += words
            writer.write(done, metrics, line)
            ending = stop.iteration_done() or done == config.iterations
            if ending or done % config.checkpoint_every == 0:
                save(config, checkpoints, progress)
            if ending:
                break
    writer.close()
    checkpoints.close()

    done = int(progress.learner.iteration)
    if done < config.iterations:
        print(
            f"Stopped after {done} of {config.iterations} iterations and saved. "
            f"To go on: python scripts/train.py --run_dir {run_dir} --resume"
        )
        return False
    results = judge.play(progress.learner, config.evaluation.final_games)
    scores = judge.examine(progress.learner)
    summary = summarize(
        config, run_dir, network, devices, progress.learner, progress.minutes, results, scores
    )
    print_summary(run_dir, judge.player_name, summary, results, scores)
    return True


def check_run_dir(config: Config, run_dir: Path, resume: bool) -> None:
    """Raise an InputError unless a run may start, or with `resume` go on, in `run_dir`."""
    saved = run_dir / CONFIG_FILE
    if saved.exists() and not resume:
        raise InputError(
            f"run_dir: {run_dir} holds a run; continue it with --resume or name another directory"
        )
    if resume and not saved.exists():
        raise InputError(f"run_dir: {run_dir} holds no run to resume")
    if resume:
        refuse_contradiction(config, load_config(saved), run_dir)


def make_run_dir(run_dir: Path) -> None:
    """Create a run directory. Raises: InputError where that cannot be."""
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"run_dir: {run_dir} cannot be made ({error.strerror})") from error


def remove_if_empty(run_dir: Path) -> None:
    """Take back a run directory that nothing was written to."""
    if not any(run_dir.iterdir()):
        run_dir.rmdir()


def refuse_contradiction(config: Config, saved: Config, run_dir: Path) -> None:
    """Raise an InputError when board or network differ from those of the saved run."""
    for section in ("game", "network"):
        now, before = asdict(getattr(config, section)), asdict(getattr(saved, section))
        for name, value in now.items():
            if value != before[name]:
                raise InputError(
                    f"{section}.{name}: {value} contradicts {before[name]} of the run in {run_dir}"
                )


def first_learner(config: Config, network: Network, weights: chex.ArrayTree | None) -> Learner:
    """Return a learner with fresh weights, or with all of `weights` that fits its network.

    Raises: InputError when nothing does.
    """
    learner = init_learner(network, config)
    if weights is None:
        return learner
    found = transfer(weights, learner.params)
    if not found.taken:
        raise InputError("weights: no array of theirs fits this network")
    print(f"weights       {found.taken} of {found.arrays} arrays taken over, the others are fresh")
    return begin_with(learner, found.params)


def start(
    config: Config,
    learner: Learner,
    devices: list[jax.Device],
    checkpoints: Checkpoints,
    resume: bool,
) -> Progress:
    """Return `learner` and an empty replay, or those of the newest good checkpoint."""
    actor = spread_actor(lambda: init_actor(config, len(devices)), devices)
    if resume and not checkpoints.iterations():
        print("The run has no checkpoint yet: it starts from the beginning.")
        resume = False
    if not resume:
        return Progress(replicate(learner, devices), actor, 0.0, 0)
    restored = checkpoints.restore_newest(learner, actor.replay)
    if restored.replay is not None:
        actor = Actor(spread(restored.replay, devices))
    elif config.save_replay:
        print("The replay of this checkpoint is missing or of another size: it starts empty.")
    return Progress(
        replicate(restored.learner, devices),
        actor,
        restored.record["minutes"],
        restored.record["games"],
    )


def run_iteration(
    config: Config, compiled, run_key: jax.Array, progress: Progress
) -> tuple[Progress, dict[str, Any]]:
    """Run one iteration and read its scalars, the only wait for the device."""
    begin = time.perf_counter()
    learner, actor, metrics = compiled(progress.learner, progress.actor, run_key)
    values = jax.device_get(metrics)
    seconds = time.perf_counter() - begin
    games = config.selfplay.games
    progress = Progress(learner, actor, progress.minutes + seconds / 60, progress.games + games)
    return progress, {name: float(value) for name, value in values.items()} | {
        "speed/seconds": seconds,
        "speed/games_per_second": games / seconds,
        "speed/evaluations_per_second": config.evaluations_per_iteration / seconds,
        "speed/games": progress.games,
        "speed/minutes": progress.minutes,
    }


def judge_iteration(
    config: Config, judge: Judge, learner: Learner
) -> tuple[Learner, dict[str, float], str]:
    """Measure the strength, pass the gate; return the learner, metrics and words for the line."""
    learner, gate = judge.gate(learner)
    results = judge.play(learner, config.evaluation.games)
    scores = judge.examine(learner)
    words = "".join(f"  {name} {result.points:.1%}" for name, result in results.items())
    if gate:
        words += f"  gate {'passed' if gate['gate/accepted'] else 'kept'} {gate['gate/points']:.1%}"
    if scores:
        wrong = (f"{1 - parts['all']['optimal_share']:.1%}" for parts in scores.values())
        words += f"  wrong moves {', '.join(wrong)} ({', '.join(scores)})"
    return learner, flatten(results, scores) | gate, words


def save(config: Config, checkpoints: Checkpoints, progress: Progress) -> None:
    """Start an asynchronous save of where the run stands."""
    assert_replicated(progress.learner)
    record = {"config": asdict(config), "minutes": progress.minutes, "games": progress.games}
    replay = progress.actor.replay if config.save_replay else None
    checkpoints.save(progress.learner, replay, record)
