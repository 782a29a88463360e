"""The training loop on the host: build, restore, iterate, log, evaluate, save."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax

from jaxzero.agent.network import Network
from jaxzero.cli import save_config
from jaxzero.config import Config
from jaxzero.errors import InputError, RunError
from jaxzero.interrupts import at_stop
from jaxzero.training.beginning import Beginning, beginning_of, write_beginning
from jaxzero.training.checkpoint import Checkpoints
from jaxzero.training.learner import Learner
from jaxzero.training.memory import Plan, peak_memory_bytes, plan_iteration
from jaxzero.training.metrics import MetricsWriter
from jaxzero.training.parallel import choose_devices, replicate
from jaxzero.training.progress import (
    Progress,
    begin,
    first_learner,
    refuse_misfit,
    run_iteration,
    save,
    take_up,
)
from jaxzero.training.report import headline, print_header, print_summary, summarize
from jaxzero.training.run_folder import CONFIG_FILE, check_run_dir, make_run_dir, remove_if_empty
from jaxzero.training.stop import Stop
from jaxzero.training.strength import Judge, flatten


class Run(NamedTuple):
    """What stays the same from the first iteration of a run to the last."""

    config: Config
    run_dir: Path
    devices: list[jax.Device]
    network: Network
    judge: Judge
    plan: Plan
    checkpoints: Checkpoints


def train(
    config: Config,
    run_dir: Path,
    resume: bool = False,
    stop: Stop | None = None,
    beginning: Beginning | None = None,
) -> bool:
    """Train in `run_dir`, from zero, from `beginning` or from its newest good checkpoint.

    Returns whether the run is complete; its summary is then written. Raises: InputError when the
    directory holds a run and `resume` is off, or holds a run of another board or network, or the
    device has not the memory for the run; RunError when the training diverges.
    """
    check_run_dir(config, run_dir, resume)
    devices = choose_devices(config.devices)
    config.check_devices(len(devices))
    network = Network(config.game.board, config.network)
    judge = Judge(config, network)
    if resume and beginning is None:
        beginning = beginning_of(run_dir)
    if beginning:
        refuse_misfit(config, network, beginning.params)
    print("Compiling the program of an iteration ...", flush=True)
    plan = _plan_in(run_dir, config, network, devices)
    stop = stop or Stop()
    # Signals ask for an end from here until the last checkpoint is written.
    with stop.on_signals(), Checkpoints(run_dir, config.keep_checkpoints) as checkpoints:
        if resume and checkpoints.iterations():
            progress = take_up(config, network, devices, checkpoints)
        else:
            if resume:
                print("The run has no checkpoint yet: it starts from the beginning.")
            weights = beginning.params if beginning else None
            progress = begin(config, first_learner(config, network, weights), devices)
        save_config(config, run_dir / CONFIG_FILE)
        if beginning:
            write_beginning(run_dir, beginning)
        print_header(config, devices, progress.learner, plan)
        run = Run(config, run_dir, devices, network, judge, plan, checkpoints)
        try:
            progress = _iterate(run, progress, stop)
        except FloatingPointError as error:
            raise RunError(_diverged(run, str(error))) from error
    if stop.requested and int(progress.learner.iteration) == config.iterations:
        print(
            "All iterations are done and saved. To measure the strength: "
            f"python scripts/train.py --run_dir {run_dir} --resume"
        )
        return False
    return _conclude(run, progress)


def _diverged(run: Run, what: str) -> str:
    """Say in one line what is not finite, what is left, and how to go on."""
    run.checkpoints.wait()
    rate, found = run.config.learner.learning_rate, run.checkpoints.iterations()
    left = f"checkpoint {found[-1]} stays" if found else "there was no checkpoint yet"
    return (
        f"learner.learning_rate: {rate:g} made the training diverge: {what}. Nothing of this is "
        f"saved, {left}. To go on with a smaller one: python scripts/train.py "
        f"--run_dir {run.run_dir} --resume --learner.learning_rate {min(rate / 10, 1e-3):g}"
    )


def _plan_in(run_dir: Path, config: Config, network: Network, devices: list[jax.Device]) -> Plan:
    """Make the run's folder, compile, and take the folder back where the run does not fit."""
    # Before the compiler runs, because an unwritable place can be told at once.
    make_run_dir(run_dir)
    at_stop(partial(remove_if_empty, run_dir))
    try:
        return plan_iteration(config, network, devices)
    except InputError:
        remove_if_empty(run_dir)
        raise


def _iterate(run: Run, progress: Progress, stop: Stop) -> Progress:
    """Run iterations, logged, measured and saved, until the last or until told to stop."""
    config = run.config
    run_key = replicate(jax.random.key(config.seed), run.devices)
    first = int(progress.learner.iteration)
    with MetricsWriter(run.run_dir, first, config.iterations) as writer:
        for done in range(first + 1, config.iterations + 1):
            progress, metrics = run_iteration(config, run.plan.compiled, run_key, progress)
            metrics["memory/peak_bytes"] = max(map(peak_memory_bytes, run.devices))
            line = headline(metrics)
            if config.evaluation.evaluate_every and done % config.evaluation.evaluate_every == 0:
                learner, measured, words = judge_iteration(config, run.judge, progress.learner)
                progress = progress._replace(learner=learner)
                metrics |= measured
                line += words
            writer.write(done, metrics, line)
            ending = stop.iteration_done() or done == config.iterations
            if ending or done % config.checkpoint_every == 0:
                save(config, run.checkpoints, progress)
            if ending:
                break
    return progress


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


def _conclude(run: Run, progress: Progress) -> bool:
    """Measure and summarise a run that is complete, or say how one that is not goes on."""
    config, learner = run.config, progress.learner
    done = int(learner.iteration)
    if done < config.iterations:
        print(
            f"Stopped after {done} of {config.iterations} iterations and saved. "
            f"To go on: python scripts/train.py --run_dir {run.run_dir} --resume"
        )
        return False
    print("Measuring the final strength ...", flush=True)
    results = run.judge.play(learner, config.evaluation.final_games)
    scores = run.judge.examine(learner)
    summary = summarize(config, run.run_dir, run.devices, progress, results, scores)
    print_summary(run.run_dir, run.judge.player_name, summary, results, scores)
    return True
