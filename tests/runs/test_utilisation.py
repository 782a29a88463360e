"""Test the true utilisation of a run: only the work that it needs counts."""

import threading
from functools import partial

import jax
import jax.numpy as jnp
import pytest
from script_runner import ITERATION

from jaxzero.cli import load_config
from jaxzero.host.background import Programs
from jaxzero.network.network import Network
from jaxzero.performance.report import measure_work
from jaxzero.runs.summary import Work, print_header
from jaxzero.runs.warnings import Warnings
from jaxzero.training.devices import replicate
from jaxzero.training.run_state import start_run
from jaxzero.training.trainer import (
    begin_evaluations,
    compile_evaluations,
    measured,
    report_line,
    run_iteration,
)

MAIN = threading.main_thread()


def test_a_gpu_reports_its_utilisation_and_compiles_evaluations_while_it_trains():
    """The updates of an iteration and 50 evaluations are 50 * 4 + 400 = 600 operations."""
    options = ("--learner.updates_per_iteration=2", "--learner.batch_size=8")
    config = load_config("configs/tiny.yaml", *ITERATION, *options, "--evaluation.evaluate_every=2")
    network, devices = Network(config.game.board, config.network, "gpu"), jax.devices()[:1]
    compiled, begun = [], threading.Event()

    class Evaluator:
        def compile(self, params):
            shapes = jax.tree.map(jnp.shape, params)
            assert shapes == jax.tree.map(jnp.shape, state.learner.params)
            compiled.append(threading.current_thread())
            begun.set()

    def iteration(learner, actor, key, schedule):
        assert begun.wait(60), "the evaluation did not compile in the background"
        names = ("games", "evaluations", "policy_entropy", "new_positions", "decisions")
        return learner, actor, {f"selfplay/{name}": 50.0 for name in names}

    work = Programs(network.board, "work", lambda: Work(4.0, 400.0, peak=1200.0))
    state, key = start_run(config, network, devices, None), replicate(jax.random.key(0), devices)
    ahead = partial(compile_evaluations, Evaluator(), network, devices)
    evaluations = Programs(network.board, "evaluations", ahead)
    begin_evaluations(config, evaluations)
    for _ in range(2):
        state, metrics = run_iteration(config, iteration, key, state)
        metrics |= measured(devices, work, metrics)
        seconds = metrics["speed/seconds"]
        assert metrics["speed/utilisation"] == pytest.approx(600 / seconds / 1200)
        assert metrics["speed/useful_tflops"] == pytest.approx(600 / seconds / 1e12)
        line = {"iteration": state.iteration, **metrics}
        assert "useful" in report_line(config, state, line, Warnings(config))
    evaluations.get()
    assert len(compiled) == 1 and compiled[0] is not MAIN


def test_the_work_of_a_run_is_counted_and_its_devices_are_measured(monkeypatch):
    monkeypatch.setattr("jaxzero.performance.timing.MATMUL_SIZES", (64, 64))
    config = load_config("configs/tiny.yaml", *ITERATION)
    work = measure_work(config, jax.devices()[:2])()
    # A sample is at least an evaluation and its gradient.
    least = 2 * config.samples_per_iteration * work.per_evaluation
    assert work.peak > 0 and work.per_iteration > least > 0


@pytest.mark.parametrize(("games", "warned"), [(24576, True), (2 * 24576, False)])
def test_a_run_says_when_each_of_several_gpus_gets_too_few_games(games, warned, capsys):
    options = (f"--selfplay.games_per_iteration={games}",)
    config = load_config("configs/gpu_80gb.yaml", *options)
    network = Network(config.game.board, config.network, "gpu", cores=132)
    print_header(config, jax.devices()[:1] * 4, network)
    assert ("games_per_iteration" in capsys.readouterr().out) == warned
