"""Test that GPU programs have no loop of unknown length: the host would read its condition back.

The tests inspect the traced program, so they need no GPU. A loop with a static number of rounds
traces to a scan. Only a loop with an end that depends on the data traces to a `while`.
"""

from collections.abc import Callable, Iterator
from functools import partial

import jax
import jax.extend.core
import jax.numpy as jnp
import pytest

from jaxzero.cli import load_config
from jaxzero.config import Config, SearchConfig, plan
from jaxzero.game import DotsAndBoxes, initial_states
from jaxzero.network.network import TRUNKS, Network, inference_copy
from jaxzero.network.parts import LOOP
from jaxzero.performance.timing import random_positions
from jaxzero.search.interface import Evaluation, PositionEvaluator
from jaxzero.search.rounds import halving, rounds_of
from jaxzero.search.search import network_evaluator, search
from jaxzero.training.learner import init_learner, schedule_of, update
from jaxzero.training.openings import open_games

# Small sizes: nothing is compiled, and the batch size does not change the tracing time.
SMALL = ("--selfplay.games_per_iteration=4", "--learner.batch_size=4", "--network.blocks=3")
PLAIN = ("--selfplay.late_start_moves=0", "--selfplay.late_start_until=0", "--selfplay.td_lambda=1")
# Part, config and its options. A search evaluates the network, which finds the structure.
CASES = (
    ("search", "gpu_8gb", "--search.simulations=32"),
    ("update", "gpu_8gb"),
    ("search", "gpu_24gb", "--search.nodes=all", *PLAIN),
    ("network", "gpu_8gb", "--network.attention_heads=4"),
    ("network", "cpu", "--game.rows=7", "--game.cols=7"),
    ("update", "cpu", "--game.rows=7", "--game.cols=7"),
)

Found = tuple[jax.extend.core.JaxprEqn, int]


def equations(program: jax.extend.core.Jaxpr, times: int = 1) -> Iterator[Found]:
    """Yield every equation of a traced program with the number of times that it runs.

    Inner programs are included. The rounds of a `while` are unknown and count once.
    """
    for equation in program.eqns:
        yield equation, times
        inside = times * equation.params.get("length", 1)  # the rounds of a scan
        for value in jax.tree.leaves(list(equation.params.values()), is_leaf=is_program):
            if is_program(value):
                yield from equations(getattr(value, "jaxpr", value), inside)


def is_program(value) -> bool:
    return isinstance(value, jax.extend.core.Jaxpr | jax.extend.core.ClosedJaxpr)


def part_program(config: Config, network: Network, part: str) -> tuple[Callable, tuple]:
    """Return the program of a part of an iteration and the shapes of its inputs."""
    games = plan(config).lanes
    state = jax.eval_shape(lambda: initial_states(network.board, games))
    learner = jax.eval_shape(lambda: init_learner(network, config))
    if part == "update":
        samples = partial(random_positions, network, config.learner.batch_size)
        schedule = schedule_of(config.learner, (0.0, 1.0))
        return partial(update, network, config), (learner, jax.eval_shape(samples), schedule)
    prepared = jax.eval_shape(partial(inference_copy, network, batch=games), learner.params)
    if part == "network":
        return network.apply, (prepared, state.drawn)
    key = jax.eval_shape(lambda: jax.random.key(0))

    def program(params, key, state):
        evaluator, rounds = network_evaluator(network, params), rounds_of(config.search)
        return search(network.board, config.search, evaluator, key, state, rounds=rounds)

    return program, (prepared, key, state)


def unknown_loops(program) -> list[str]:
    """Return the name stacks of all loops of unknown length but those over parts.

    The host reads its condition in some 20 us; a part is at least half a millisecond of work.
    """
    stacks = [
        str(equation.source_info.name_stack) or "at the top"
        for equation, _ in equations(program.jaxpr)
        if equation.primitive.name == "while"
    ]
    return [stack for stack in stacks if not stack.endswith(LOOP)]


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_no_loop_of_unknown_length(case):
    part, name, *options = case
    settings = load_config(f"configs/{name}.yaml", *SMALL, *options)
    network = Network(settings.game.board, settings.network, "gpu")
    program, inputs = part_program(settings, network, part)
    assert unknown_loops(jax.make_jaxpr(program)(*inputs)) == []


def test_a_gpu_evaluates_the_used_nodes_in_parts_and_waits_for_nothing_else():
    settings = load_config("configs/gpu_8gb.yaml", *SMALL, "--network.blocks=1")
    network = Network(settings.game.board, settings.network, "gpu", cores=1)
    program, inputs = part_program(settings, network, "search")
    traced = jax.make_jaxpr(program)(*inputs)
    loops = [one for one, _ in equations(traced.jaxpr) if one.primitive.name == "while"]
    assert len(loops) == len(network.part_sizes) and unknown_loops(traced) == []
    convolved = {
        one.outvars[0].aval.shape[0]
        for one, _ in equations(traced.jaxpr)
        if one.primitive.name == "conv_general_dilated"
    }
    assert convolved == set(network.part_sizes)


def test_a_gpu_learns_from_a_batch_at_once_where_a_cpu_takes_steps():
    def products(platform: str, batch: int) -> int:
        options = ("--network.blocks=1", "--network.features=raw", f"--learner.batch_size={batch}")
        settings = load_config("configs/gpu_8gb.yaml", *SMALL, *options)
        network = Network(settings.game.board, settings.network, platform)
        program, inputs = part_program(settings, network, "update")
        traced = jax.make_jaxpr(program)(*inputs).jaxpr
        kinds = ("conv_general_dilated", "dot_general")
        return sum(times for one, times in equations(traced) if one.primitive.name in kinds)

    step = TRUNKS["conv"].cpu_chunk
    at_once = products("gpu", 4 * step)
    assert products("cpu", 4 * step) > at_once == products("gpu", step + 1) > 0


def test_random_openings_have_no_loop_of_unknown_length():
    openings = partial(open_games, DotsAndBoxes(3, 3), games=2)
    traced = jax.make_jaxpr(lambda key, plies: openings(key, plies=plies))(jax.random.key(0), 5)
    assert unknown_loops(traced) == []


def traced_search(settings: SearchConfig, of_selfplay: bool = False):
    """Trace a search; its evaluator is a program with the name `counted`."""
    board = DotsAndBoxes(2, 2)

    @jax.jit
    def counted(drawn: jax.Array) -> Evaluation:
        return Evaluation(jnp.zeros(drawn.shape), jnp.zeros(len(drawn)))

    evaluator = PositionEvaluator(lambda state, _structure: counted(state.drawn), "gpu")
    rounds = None if of_selfplay else rounds_of(settings)
    program = partial(search, board, settings, evaluator, rounds=rounds)
    return jax.make_jaxpr(program)(jax.random.key(0), initial_states(board, 2))


def network_calls(search) -> int:
    """Count how often a traced search calls its evaluator."""
    calls = equations(search.jaxpr)
    return sum(times for equation, times in calls if equation.params.get("name") == "counted")


@pytest.mark.parametrize(("simulations", "considered"), [(12, 16), (50, 4), (1, 1)])
def test_a_round_is_one_call_of_the_network(simulations, considered):
    rounds = len(halving(min(considered, simulations), simulations))
    assert network_calls(traced_search(SearchConfig(simulations, considered))) == rounds + 1


def test_self_play_searches_by_mctx_where_every_position_is_a_node():
    plain = traced_search(SearchConfig(16, 16, nodes="all"), of_selfplay=True)
    assert network_calls(plain) == 17  # one after the other
    assert unknown_loops(plain)  # its descent and its backup
    quiet = traced_search(SearchConfig(16, 16, nodes="quiet"), of_selfplay=True)
    assert network_calls(quiet) == len(halving(16, 16)) + 1 and not unknown_loops(quiet)
