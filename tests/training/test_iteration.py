"""One compiled program per run: one transfer per iteration, devices in step."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from short_run import beginning, short_config

from jaxzero.config import plan
from jaxzero.errors import InputError
from jaxzero.network.network import Network
from jaxzero.training import trainer as trainer_module
from jaxzero.training.devices import (
    assert_replicated,
    choose_devices,
    parallelize,
    replicate,
)
from jaxzero.training.iteration import DEVICE_AXIS, input_shapes, make_iteration
from jaxzero.training.program import compile_iteration
from jaxzero.training.run_state import RunState
from jaxzero.training.trainer import run_iteration

CONFIG = short_config("--devices=2")


@pytest.fixture(scope="module")
def ran(alike_runs_share_a_program):
    """Run four iterations on two devices under a transfer guard; return all observations."""
    devices, history, reads = choose_devices(2), [], []
    iterate = compile_iteration(
        CONFIG, Network(CONFIG.game.board, CONFIG.network), devices
    ).compiled
    state, run_key = beginning(CONFIG, devices)
    read = jax.device_get

    def counted_read(tree):
        reads.append(jax.tree.map(np.shape, tree))
        return read(tree)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer_module.jax, "device_get", counted_read)
        with jax.transfer_guard("disallow"):
            for _ in range(4):
                state, metrics = run_iteration(CONFIG, iterate, run_key, state)
                history.append(metrics)
        begin = beginning(CONFIG, devices)[0]
        first, metrics = run_iteration(CONFIG, iterate, run_key, begin)
        first = jax.device_get((first.learner, first.actor, metrics))
        # The same learner in another iteration.
        learner, actor = beginning(CONFIG, devices)[0][:2]
        learner = learner._replace(iteration=replicate(jnp.int32(1), devices))
        other, _ = run_iteration(CONFIG, iterate, run_key, RunState(learner, actor))
        other = np.asarray(other.actor.replay.drawn)
    return state, history, reads[:4], first, other


def test_the_host_reads_scalars_once_per_iteration(ran):
    _, _, reads, *_ = ran
    assert len(reads) == 4
    assert all(shape == () for read in reads for shape in read.values())


def test_devices_hold_the_same_learner_and_different_games(ran):
    learner, actor = ran[0].learner, ran[0].actor
    assert_replicated(learner)
    assert len(learner.step.addressable_shards) == 2
    replay = np.asarray(actor.replay.drawn)
    assert replay.shape[0] == 2 and (replay[0] != replay[1]).any()
    # Games also differ between iterations.
    *_, (_, first, _), other = ran
    assert (first.replay.drawn != other).any()


def test_counters_and_ring_move_on(ran):
    state, history, *_ = ran
    assert int(state.learner.iteration) == 4
    assert int(state.learner.step) == 12
    block = plan(CONFIG, 2).positions
    assert state.actor.replay.cursor.tolist() == [block] * 2  # room for three, four written
    assert state.actor.replay.size.tolist() == [3 * block] * 2
    assert state.games == 64
    assert all(np.isfinite(value) for line in history for value in line.values())
    assert not any("learn/safe_end_loss" in line for line in history)
    assert set(state.actor.replay.labels) == {"margin"}


def test_a_learner_that_differs_between_devices_is_caught():
    devices = choose_devices(2)
    sharding = jax.sharding.NamedSharding(
        jax.sharding.Mesh(np.array(devices), DEVICE_AXIS), jax.sharding.PartitionSpec()
    )
    parts = [jax.device_put(np.float32(i), device) for i, device in enumerate(devices)]
    broken = jax.make_array_from_single_device_arrays((), sharding, parts)
    with pytest.raises(RuntimeError, match=r"devices disagree about .*weights"):
        assert_replicated({"weights": broken})


def test_indivisible_settings_are_refused_by_name():
    network = Network(CONFIG.game.board, CONFIG.network)
    with pytest.raises(
        InputError, match=r"selfplay\.games_per_iteration: 16 is not divisible by 3"
    ):
        make_iteration(CONFIG, network, 3)


def test_learning_rate_decay_and_clipping_are_data_of_the_program():
    def program(*options: str) -> str:
        config = short_config(*options)
        network = Network(config.game.board, config.network)
        iteration = parallelize(make_iteration(config, network, 1), jax.devices()[:1])
        return iteration.lower(*input_shapes(config, network, 1)).as_text()

    names = ("learning_rate", "weight_decay", "gradient_clip")
    assert program() == program(*(f"--learner.{name}=0.125" for name in names))
    assert program() != program("--learner.decay_fraction=0.125")
