"""The training loop on the host: build, restore, loop {iterate, evaluate, log, save}."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax

from jaxzero.cli import command_name, save_config
from jaxzero.config import Config
from jaxzero.errors import InputError, RunError
from jaxzero.host.interrupts import Stop
from jaxzero.host.status import doing
from jaxzero.measure.suite import suite_name
from jaxzero.network.network import Network
from jaxzero.players.players import Agent
from jaxzero.runs.checkpoint import Checkpoints
from jaxzero.runs.memory import peak_memory_bytes
from jaxzero.runs.metrics import MetricsWriter
from jaxzero.runs.run_dir import (
    CHECKPOINTS,
    CONFIG_FILE,
    check_run_dir,
    finished_checkpoints,
    new_run_dir,
)
from jaxzero.runs.summary import (
    headline,
    note_start,
    print_header,
    print_needs,
    print_next,
    time_left,
    write_summary,
)
from jaxzero.runs.weights import (
    InitialWeights,
    note_initial_weights,
    noted_initial_weights,
)
from jaxzero.training.adjudication import Adjudicator
from jaxzero.training.evaluator import Evaluator
from jaxzero.training.iteration import Program, compile_iteration
from jaxzero.training.learner import accept_candidate, playing_params
from jaxzero.training.parallel import (
    choose_devices,
    ends_together,
    gather,
    is_first,
    local_copy,
    on_first,
    own_devices,
    replicate,
)
from jaxzero.training.progress import Progress, may_be_kept, refuse_misfit, run_iteration, save
from jaxzero.training.progress import resume as resume_progress
from jaxzero.training.progress import start as start_progress

SEEN_SECONDS = 60  # after which a file system that machines share shows a new folder to all
SMALLER = 0.3  # times the learning rate, after a training that diverged

OnIteration = Callable[[dict[str, float]], Any]  # takes the metrics of an iteration


class Diverged(RunError):
    """A loss or a weight that is not finite; the message says what is left."""


def train(
    config: Config,
    run_dir: Path,
    resume: bool = False,
    stop: Stop | None = None,
    initial: InitialWeights | None = None,
    on_iteration: OnIteration | None = None,
) -> bool:
    """Train in `run_dir`, from zero, from `initial` weights or from its newest good checkpoint.

    A training that diverges goes on once from its newest checkpoint with a smaller learning rate.
    Where this process is one of several, all of them call this alike, and the first one writes.
    `on_iteration` gets the metrics of every iteration.

    Returns whether the run is complete; its summary is written then. Raises: InputError when the
    directory holds a run and `resume` is off, or holds a run of another board or network, or the
    device has not the memory for the run; RunError when the training diverges again, or before its
    first checkpoint.
    """
    with ends_together(_resume_command(run_dir)), ExitStack() as place:
        # An unwritable place is told before the compiler runs.
        on_first(lambda: place.enter_context(new_run_dir(run_dir)))
        once = partial(_train, run_dir, stop or Stop(), on_iteration)
        return _train_twice(once, config, run_dir, resume, initial)


def _train_twice(
    once: Callable[[Config, bool, InitialWeights | None], bool],
    config: Config,
    run_dir: Path,
    resume: bool,
    initial: InitialWeights | None,
) -> bool:
    """Train, and where it diverges once more with a smaller learning rate. Raises: as `train`."""
    try:
        return once(config, resume, initial)
    except Diverged as error:
        before = config.learner.learning_rate
        if not gather([len(finished_checkpoints(run_dir / CHECKPOINTS))])[0, 0]:
            raise RunError(f"{error} {_slower_command(run_dir, before)}") from error
        rate = SMALLER * before
        print(f"{error} It goes on from there with learner.learning_rate {rate:g}.", flush=True)
    smaller = replace(config, learner=replace(config.learner, learning_rate=rate))
    try:
        return once(smaller, True, None)
    except Diverged as error:
        again = f"It had diverged before, with {before:g}."
        raise RunError(f"{error} {again} {_slower_command(run_dir, rate)}") from error


def _train(
    run_dir: Path,
    stop: Stop,
    on_iteration: OnIteration | None,
    config: Config,
    resume: bool,
    initial: InitialWeights | None,
) -> bool:
    """Train until the end, a stop or a divergence, as `train`. Raises: Diverged too."""
    # Build.
    on_first(lambda: check_run_dir(config, run_dir, resume))
    devices = choose_devices(config.devices)
    config.check_devices(len(devices))
    network = Network(config.game.board, config.network)
    print_header(config, devices, network)
    evaluator = Evaluator(config, network)
    if resume and initial is None:
        initial = noted_initial_weights(run_dir)
    if initial:
        refuse_misfit(network, initial)
    print("Compiling the program of an iteration ...", flush=True)
    _refuse_separate(run_dir)
    program = compile_iteration(config, network, devices)

    # Signals ask for an end from here until the last checkpoint is written.
    with (
        stop.on_signals(),
        Checkpoints(run_dir, config.keep_checkpoints, tidies=is_first()) as checkpoints,
        _solver(config, devices) as solver,
        ends_together(_resume_command(run_dir), passes=(Diverged,)),
    ):
        # Restore.
        if resume and checkpoints.iterations():
            with doing("reading the checkpoint"):
                progress = resume_progress(config, network, devices, checkpoints)
        else:
            if resume:
                print("The run has no checkpoint yet: it starts from the beginning.")
            with doing("preparing weights and replay"):
                progress = start_progress(config, network, devices, initial)
        if is_first():
            save_config(config, run_dir / CONFIG_FILE)
            note_start(run_dir, devices, progress.iteration)
            if initial:
                note_initial_weights(run_dir, initial)
        print_needs(config, program.predicted, program.replay, progress.iteration, progress.minutes)

        # Loop.
        iterations = iterate(config, devices, program, evaluator, progress, solver, stop)
        with (
            MetricsWriter(run_dir, progress.iteration, config.iterations)
            if is_first()
            else nullcontext() as writer
        ):
            # A checkpoint is due, and has waited for an iteration.
            ends, due, waited = progress.fraction_done(config) == 1, False, False
            while due or not ends:
                try:
                    progress, metrics, line, stopped = next(iterations)
                    if is_first():
                        writer.write(progress.iteration, metrics, line)
                    ends = ends or stopped or progress.fraction_done(config) == 1
                    due = due or ends or progress.iteration % config.checkpoint_every == 0
                    # The next iteration diverges, or takes an update: then these weights are good.
                    if due and (waited or may_be_kept(metrics)):
                        save(config, checkpoints, progress)
                        due = False
                    elif due:
                        print("The last update was skipped: saving waits for one more iteration.")
                    waited = due
                except FloatingPointError as error:
                    message = _divergence_message(config, checkpoints, error)
                    raise Diverged(message) from error
                if on_iteration is not None:
                    on_iteration({"iteration": progress.iteration, **metrics})
    return _finish(config, run_dir, devices, evaluator, progress, stop)


def iterate(
    config: Config,
    devices: list[jax.Device],
    program: Program,
    evaluator: Evaluator,
    progress: Progress,
    solver: Adjudicator | None,
    stop: Stop,
) -> Iterator[tuple[Progress, dict[str, float], str, bool]]:
    """Yield progress, metrics, a line for people and whether to stop, after each iteration.

    Without end: the caller knows when the run is done. Raises: FloatingPointError where a loss or a
    weight is not finite.
    """
    run_key = replicate(jax.random.key(config.seed), devices)
    gather([0.0])  # compilers need not end together, but first collectives must start so
    while True:
        # The body is `iteration` in training/iteration.py.
        with doing(_iteration_words(config, progress)):
            progress, metrics = run_iteration(config, program.compiled, run_key, progress, solver)
        metrics["memory/peak_bytes"] = _peak_memory(devices)
        line = headline(config, metrics) + f"  left {_time_left(config, progress)}"
        if evaluator.is_due(progress.iteration):
            measured, words = evaluator.evaluate(progress.learner)
            metrics, line = metrics | measured, line + words
        progress, stopped = _agree(progress, stop, metrics)
        yield progress, metrics, line, stopped


def train_in_memory(
    config: Config, on_iteration: OnIteration | None = None
) -> tuple[Agent, list[dict[str, float]]]:
    """Train without a folder; return who plays now and the metrics of all iterations.

    The first Ctrl-C ends the training after its iteration. Without `on_iteration` what `train`
    prints is printed. Raises: InputError as `train`; RunError where the training diverges.
    """
    devices, stop, found = choose_devices(config.devices), Stop(), []
    config.check_devices(len(devices))
    network = Network(config.game.board, config.network)
    if on_iteration is None:
        print_header(config, devices, network)
    evaluator = Evaluator(config, network)
    program = compile_iteration(config, network, devices)
    with stop.on_signals(), _solver(config, devices) as solver:
        progress = start_progress(config, network, devices, None)
        try:
            iterations = iterate(config, devices, program, evaluator, progress, solver, stop)
            for progress, metrics, line, stopped in iterations:
                found.append({"iteration": progress.iteration, **metrics})
                if on_iteration is None:
                    print(f"{progress.iteration:>5}  {line}", flush=True)
                elif on_iteration(found[-1]):
                    break
                if stopped or progress.fraction_done(config) == 1:
                    break
        except FloatingPointError as error:
            rate = config.learner.learning_rate
            message = f"learner.learning_rate: {rate:g} made the training diverge: {error}"
            raise RunError(message) from error
    params = local_copy(playing_params(progress.learner))
    return Agent(network, params, config.search), found


def _solver(
    config: Config, devices: list[jax.Device]
) -> AbstractContextManager[Adjudicator | None]:
    """Return what solves stopped games on the host, None where games are played to their end."""
    return Adjudicator(config, devices) if config.selfplay.adjudicate_below else nullcontext()


def _agree(progress: Progress, stop: Stop, metrics: dict[str, float]) -> tuple[Progress, bool]:
    """Let all processes go on, or stop, with the clock and the gate of the first one.

    A signal or a limit of time of any process stops all of them.
    """
    own = [progress.minutes, metrics.get("gate/accepted", 0.0), stop.iteration_done()]
    everywhere = gather([*own, stop.signal or 0])
    minutes, accepted = everywhere[0, :2]
    progress = progress._replace(minutes=float(minutes))
    if accepted:
        progress = progress._replace(learner=accept_candidate(progress.learner))
    stop.take_over(int(everywhere[:, 3].max()))
    return progress, bool(everywhere[:, 2].any())


def _iteration_words(config: Config, progress: Progress) -> str:
    """Return what is said of the next iteration while it runs."""
    of = f" of {config.iterations}" if config.iterations else ""
    left = f" ({_time_left(config, progress)} left)" if progress.iteration else ""
    return f"iteration {progress.iteration + 1}{of}{left}"


def _time_left(config: Config, progress: Progress) -> str:
    return time_left(progress.fraction_done(config), progress.minutes)


def _refuse_separate(run_dir: Path) -> None:
    """Raise an InputError unless every process sees the folder of the first one."""
    for _ in range(SEEN_SECONDS):
        saved = finished_checkpoints(run_dir / CHECKPOINTS)
        seen = gather([run_dir.is_dir(), len(saved), max(saved, default=0)])
        if (seen == seen[0]).all():
            return
        time.sleep(1)
    raise InputError(
        f"run_dir: {run_dir} is not the same folder in every process: name one that all share"
    )


def _peak_memory(devices: list[jax.Device]) -> int:
    return max(map(peak_memory_bytes, own_devices(devices)))


def _resume_command(run_dir: Path) -> str:
    return f"{command_name('train')} --run_dir {shlex.quote(str(run_dir))} --resume"


def _slower_command(run_dir: Path, rate: float) -> str:
    smaller = min(rate / 10, 1e-3)
    return f"To go on slower: {_resume_command(run_dir)} --learner.learning_rate {smaller:g}"


def _divergence_message(config: Config, checkpoints: Checkpoints, error: FloatingPointError) -> str:
    """Return one line: what is not finite, and what is left."""
    checkpoints.wait()
    rate, found = config.learner.learning_rate, checkpoints.iterations()
    left = f"checkpoint {found[-1]} stays" if found else "there was no checkpoint yet"
    return (
        f"learner.learning_rate: {rate:g} made the training diverge: {error}. Nothing of this is "
        f"saved, {left}."
    )


def _finish(
    config: Config,
    run_dir: Path,
    devices: list[jax.Device],
    evaluator: Evaluator,
    progress: Progress,
    stop: Stop,
) -> bool:
    """Measure and summarise a complete run; print the command that continues a stopped one."""
    resume_command = _resume_command(run_dir)
    if progress.fraction_done(config) < 1:
        iterations = f" of {config.iterations}" if config.iterations else ""
        minutes = f", {progress.minutes:.1f} of {config.minutes:g} minutes," * bool(config.minutes)
        print(
            f"Stopped after {progress.iteration}{iterations} iterations{minutes} and saved. "
            f"To go on: {resume_command}"
        )
        return False
    stop.take_over(int(gather([stop.signal or 0]).max()))
    if stop.requested:
        print(f"The training is done and saved. To measure the strength: {resume_command}")
        return False
    print("Measuring the final strength ...", flush=True)
    results = evaluator.play(progress.learner, config.evaluation.final_games)
    scores = evaluator.score(progress.learner)
    totals = progress.iteration, progress.minutes, progress.games, progress.evaluations
    peak, player = _peak_memory(devices), evaluator.player_name
    on_first(lambda: write_summary(config, run_dir, devices, totals, peak, player, results, scores))
    print_next(run_dir, suite_name("auto", config.game.board, "test"))
    return True
