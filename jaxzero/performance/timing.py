"""Time a whole iteration and its parts, each at the batch that it has in an iteration.

Each part is its own compiled program. It repeats its work in a scan. Each input depends on the
whole previous output, so the compiler can neither leave work out nor move it out of the loop.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxzero.config import Config, SearchConfig, plan
from jaxzero.game import DotsAndBoxes, State, initial_states
from jaxzero.game.structure import Structure
from jaxzero.heads import heads_of
from jaxzero.host.progress import working
from jaxzero.network.network import Network, inference_copy
from jaxzero.search.search import game_of, network_evaluator
from jaxzero.training.devices import local_copy, replicate
from jaxzero.training.learner import Learner, learn, schedule_of
from jaxzero.training.program import compile_iteration
from jaxzero.training.replay import Replay, empty_replay
from jaxzero.training.run_state import start_run
from jaxzero.training.selfplay import new_games, play_block, play_step, start_lanes
from jaxzero.training.targets import Positions

UNREACHED = 1e30  # no output is as large, but the compiler does not know
RING_BYTES = 2**28  # a replay larger than every cache is as slow as a still larger one
STAGES = 4  # stages of the game that the timed positions come from
MATMUL_SIZES, COPY_MEBIBYTES = (1536, 8192), (128, 1024)  # on a CPU, on a GPU

Call = Callable[[], chex.ArrayTree]


class Part(NamedTuple):
    """A timed call and its share in an iteration on one device."""

    call: Call
    items: int = 1  # evaluations or samples of one call
    total: int = 1  # items of one iteration


def time_parts(parts: dict[str, Part], rounds: int) -> dict[str, float]:
    """Time parts in turns and return the seconds of each in one iteration."""
    with working(f"measuring {', '.join(parts)}"):
        seconds = seconds_per_call(*(part.call for part in parts.values()), rounds=rounds)
    return {
        name: time * part.total / part.items
        for (name, part), time in zip(parts.items(), seconds, strict=True)
    }


def seconds_per_call(*calls: Call, rounds: int = 3) -> list[float]:
    """Time calls in turns and return the median of each, in seconds.

    The other load on the machine varies; with turns it slows all calls alike.
    """
    seconds = [[] for _ in calls]
    for round_ in range(rounds + 1):
        for call, times in zip(calls, seconds, strict=True):
            begin = time.perf_counter()
            jax.block_until_ready(call())
            if round_:  # the first round warms up
                times.append(time.perf_counter() - begin)
    return [statistics.median(times) for times in seconds]


class Done(NamedTuple):
    """What the self-play of an iteration does, on all devices.

    With late starts it may begin fewer games than the settings say. Positions with few moves, and
    finished games, need fewer evaluations; a search may compute more to fill a batch.
    """

    games: chex.Numeric
    decisions: chex.Numeric
    evaluations: chex.Numeric  # that searches need: one for the root and each unfinished game


def work_done(metrics: dict[str, jax.Array]) -> Done:
    """Read the work from the metrics of an iteration or of `play_block`."""
    return Done(*(metrics[f"selfplay/{name}"] for name in ("games", "moves", "evaluations")))


class Training:
    """A run in progress: the compiled iteration and its state."""

    def __init__(self, config: Config, devices: list[jax.Device]):
        network = Network(config.game.board, config.network)
        begin = time.perf_counter()
        self.program = compile_iteration(config, network, devices)
        self.compile_seconds = time.perf_counter() - begin
        state = start_run(config, network, devices, None)
        self.learner, self._actor = state.learner, state.actor
        self.done: Done | None = None  # by the last iteration
        self._run_key = replicate(jax.random.key(config.seed), devices)
        self._schedule = replicate(schedule_of(config.learner, (0.0, 0.0)), devices)

    def step(self) -> None:
        """Run one iteration and read its scalars."""
        self.learner, self._actor, metrics = self.program.compiled(
            self.learner, self._actor, self._run_key, self._schedule
        )
        self.done = Done(*map(float, work_done(metrics)))


class Workload(NamedTuple):
    """The work of one of `devices` devices in an iteration of `config`."""

    config: Config
    network: Network
    learner: Learner  # a copy on the first device
    prepared: chex.ArrayTree  # its weights as self-play uses them
    games: int  # parallel games
    samples: int  # of one update
    devices: int

    @property
    def evaluations(self) -> int:
        """Network evaluations of self-play."""
        decisions = plan(self.config, self.devices).decisions
        return decisions * (self.config.search.simulations + 1)

    @property
    def learned(self) -> int:
        """Samples of all updates."""
        return self.config.samples_per_iteration // self.devices


def make_workload(config: Config, learner: Learner, devices: int = 1) -> Workload:
    """Return the work of one of `devices` devices, with a local copy of their learner."""
    learner = local_copy(learner)
    network = Network(config.game.board, config.network)
    games = plan(config, devices).lanes
    samples = config.learner.batch_size // devices
    prepared = jax.jit(partial(inference_copy, network, batch=games))(learner.params)
    return Workload(config, network, learner, prepared, games, samples, devices)


# The network alone


def network_part(work: Workload, repeats: int) -> Part:
    """Return evaluations of the network alone: `repeats` batches one after the other.

    As in a search, the network receives the structure of a position if the rules compute it. On a
    GPU a batch is a part of a round of a search, as large as parts get.
    """
    network, settings, batch = work.network, work.config.search, work.games
    if network.platform != "cpu" and settings.nodes == "quiet":
        width = min(settings.max_considered_actions, settings.simulations)
        batch = min(batch * width, max(network.part_sizes))

    def evaluate(
        prepared: chex.ArrayTree, structure: Structure | None, drawn: jax.Array
    ) -> jax.Array:
        prediction = network.apply(prepared, drawn, structure)
        margin_logits = prediction.head_logits["margin"]
        total = prediction.policy_logits + margin_logits.sum(-1, keepdims=True)
        return drawn ^ (total > UNREACHED)

    state, structure = searched_states(network.board, settings, batch)
    prepared = jax.jit(partial(inference_copy, network, batch=batch))(work.learner.params)
    call = repeated(evaluate, state.drawn, repeats, prepared, structure)
    return Part(call, batch * repeats, work.evaluations)


def searched_states(
    board: DotsAndBoxes, settings: SearchConfig, count: int
) -> tuple[State, Structure | None]:
    """Return `count` positions as in a search, and their structure if the rules compute it."""
    state, rules = random_states(board, count), game_of(settings)
    structure = jax.jit(jax.vmap(partial(rules.find_structure, board)))(state.drawn)
    searched = jax.vmap(rules.searched)(state, structure)
    return searched, rules.structure_of_searched(structure)


def random_states(board: DotsAndBoxes, count: int) -> State:
    """Return `count` random positions, spread over the stages of the game: State [B]."""
    plies = jnp.arange(count, dtype=jnp.int32) % STAGES * board.num_edges // STAGES
    start = initial_states(board, count)
    order = jnp.argsort(jax.random.uniform(jax.random.key(0), start.drawn.shape, jnp.float32))
    return start._replace(drawn=jnp.argsort(order) < plies[:, None])


def repeated(step: Callable, start: chex.ArrayTree, repeats: int, *given: chex.ArrayTree) -> Call:
    """Return a call that runs `step` (given, carry -> carry) `repeats` times from `start`."""

    @jax.jit
    def run(given: tuple, start: chex.ArrayTree) -> chex.ArrayTree:
        return jax.lax.scan(lambda c, _: (step(*given, c), None), start, None, length=repeats)[0]

    return partial(run, given, start)


# Self-play and learning


def selfplay_part(work: Workload, moves: int = 0) -> Part:
    """Return whole games, or with `moves` only the first moves of games; it returns its `Done`."""
    config, sizes = work.config, plan(work.config, work.devices)

    @jax.jit
    def play(params: chex.ArrayTree, key: jax.Array) -> chex.ArrayTree:
        evaluator = network_evaluator(work.network, params)
        if not moves:
            positions, metrics = play_block(config, sizes, evaluator, key)
            return positions, work_done(metrics)
        start = start_lanes(config, sizes, new_games(config, key, work.games))
        step = partial(play_step, config, evaluator, key)
        decisions = jax.lax.fori_loop(0, moves, lambda _, play: step(play), start).decisions
        evaluations = jnp.sum(decisions.evaluations * decisions.played, dtype=jnp.int32)
        played = jnp.sum(decisions.played, dtype=jnp.int32)
        return decisions, Done(work.games * moves / whole, played, evaluations)

    whole = sizes.decisions // sizes.lanes
    decisions = work.games * (moves or whole)
    items = decisions * (config.search.simulations + 1)
    return Part(partial(play, work.prepared, jax.random.key(0)), items, work.evaluations)


def learning_part(work: Workload, updates: int) -> Part:
    """Return `updates` whole updates: sampling, gradient and optimiser."""
    settings = replace(work.config.learner, updates_per_iteration=updates)
    config = replace(work.config, learner=settings)

    @jax.jit
    def run(learner: Learner, ring: Replay, key: jax.Array) -> tuple:
        schedule = schedule_of(config.learner, (0.0, 1.0))
        return learn(work.network, config, learner, ring, key, work.samples, schedule)

    call = partial(run, work.learner, full_ring(work), jax.random.key(0))
    return Part(call, work.samples * updates, work.learned)


def full_ring(work: Workload) -> Replay:
    """Return a full replay of the run's size, or of about `RING_BYTES` if that is less."""
    edges, heads = work.network.board.num_edges, heads_of(work.config.network)
    sizes = plan(work.config, work.devices)
    block = sizes.positions
    fields = jax.eval_shape(lambda: empty_replay(block, edges, heads))
    block_bytes = sum(field.size * field.dtype.itemsize for field in jax.tree.leaves(fields))
    blocks = min(sizes.iterations_kept, max(1, RING_BYTES // block_bytes))
    ring = empty_replay(blocks * block, edges, heads)
    return ring._replace(size=jnp.asarray(blocks * block, jnp.int32))


def random_positions(network: Network, count: int) -> Positions:
    """Return positions that a network can learn from."""
    drawn = random_states(network.board, count).drawn
    legal = jnp.where(drawn, 0.0, jnp.float32(1))
    policy = legal / jnp.maximum(legal.sum(-1, keepdims=True), 1.0)
    labels = {name: jnp.zeros(count, jnp.int32) for name in heads_of(network.config)}
    return Positions(drawn, policy, labels)


# Ceilings of one device


def matmul_part(network: Network) -> Part:
    """Return a chain of square matrix products as in `network`; counts 2 size^3 FLOP a product."""
    on_gpu, dtype = network.platform != "cpu", network.dtype
    size, repeats = MATMUL_SIZES[on_gpu], 16 if on_gpu else 4
    # Random entries of +-1 / sqrt(size): the spectral radius is near 1, so products stay in range.
    left = jax.random.rademacher(jax.random.key(0), (size, size), dtype) * size**-0.5
    left = left.astype(dtype)
    call = repeated(lambda left, x: (left @ x).astype(dtype), left, repeats, left)
    return Part(call, repeats * 2 * size**3)


def copy_part(platform: str) -> Part:
    """Return passes over an array, read once and written once; counts the bytes."""
    array = jnp.zeros(COPY_MEBIBYTES[platform != "cpu"] * 2**18, jnp.float32)
    # The loop works in place; a fresh output would first need new pages.
    return Part(repeated(lambda x: x + 1, array, 8), 8 * 2 * array.nbytes)
