"""Test `jaxzero.load`: a position has one meaning or is refused; an engine is a normal object."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import pydoc
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from short_run import short_config

import jaxzero
from jaxzero.api import Engine
from jaxzero.config import Config
from jaxzero.errors import InputError, RunError
from jaxzero.game import DotsAndBoxes, render
from jaxzero.game.records import RecordedGame
from jaxzero.measure.scoring import player_answers
from jaxzero.measure.suite import table_suite
from jaxzero.players.players import make_player
from jaxzero.runs.run_dir import check_run_dir, save_config

BOARD = DotsAndBoxes(2, 2)
EDGES = [3, 7]
MASK = [edge in EDGES for edge in range(BOARD.num_edges)]
BITS = [int(bit) for bit in MASK]

GOOD = {
    "list": EDGES,
    "set": {3, 7},
    "generator": (edge for edge in EDGES),
    "names": ["h1,1", "v0,1"],
    "a mixture": ["h1,1", np.int64(7)],
    "one text": "h1,1 v0,1",
    "numpy edges": np.array(EDGES, np.uint8),
    "jax edges": jnp.array(EDGES),
    "list of bools": MASK,
    "list of jax bools": [jnp.bool_(bit) for bit in MASK],
    "jax mask": jnp.array(MASK),
}
BAD = {
    "zeros and ones": BITS,
    "zeros and ones of int8": np.array(BITS, np.int8),  # a common type of action masks
    "an edge twice": [3, 3],
    "an edge twice by two names": ["h1,1", "h11"],
    "floats": [3.0, 7.0],
    "None inside": [None],
    "a list inside": [EDGES],
    "a number": 3,
    "None": None,
    "bytes": b"h0,0",
    "a mapping": {3: True},
    "a mask of another board": MASK[:-1],
    "edges and bools": [True, 3],
    "beyond the board": [12],
    "no name": ["edge"],
    "a picture": render(BOARD, MASK, labels={}),
    "a game": RecordedGame(2, 2, moves=(3, 7)),
}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return jaxzero.load("2x2")


@pytest.mark.parametrize("name", GOOD)
def test_a_position_is_taken_in_every_form(engine, name):
    drawn = engine.drawn(GOOD[name])
    assert drawn.dtype == bool and drawn.tolist() == MASK


@pytest.mark.parametrize("empty", [(), "", np.array([]), [False] * 12])
def test_the_empty_board_has_many_forms(engine, empty):
    assert not engine.drawn(empty).any()


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_position_is_refused_in_one_line(engine, name):
    with pytest.raises(InputError, match=r"^position: ") as refused:
        engine.drawn(BAD[name])
    said = str(refused.value)
    assert len(said) < 250 and said.isprintable()
    if name in ("zeros and ones", "zeros and ones of int8", "an edge twice"):
        assert "12 booleans" in said, "what is accepted"


def test_many_positions_come_in_every_form(engine):
    alone = [engine.best_move(position, 0) for position in ([3, 7], [0])]
    both = np.zeros((2, BOARD.num_edges), bool)
    both[0, EDGES] = both[1, 0] = True
    lazy = (position for position in ([3, 7], [0]))
    for many in (["h1,1 v0,1", "0"], ([3, 7], {0}), both, jnp.array(both), lazy):
        assert engine.best_moves(many, 0) == alone
    assert engine.best_moves(iter(()), 0) == engine.values([], 0) == []
    unordered = {(3, 7), (0,)}, {(3, 7): "a", (0,): "b"}
    for wrong in ("3 7", 3, EDGES, None, *unordered):
        field = "position" if wrong is EDGES else "positions"
        for ask in (engine.best_moves, engine.values):
            with pytest.raises(InputError, match=f"^{field}: "):
                ask(wrong)


def test_impossible_numbers_are_refused(engine):
    wrong = (-1, 1.5, None, True, "many")
    for simulations in wrong:
        for ask in (engine.best_move, engine.best_moves, engine.values, engine.analyse):
            with pytest.raises(InputError, match=r"^simulations: "):
                ask([], simulations)
    for rows in (*wrong, 0):
        with pytest.raises(InputError, match=r"^rows: "):
            engine.on_board(rows, 2)
        with pytest.raises(InputError, match=r"^cols: "):
            engine.on_board(2, rows)
    for seconds in (-1, float("nan"), None, "long"):
        with pytest.raises(InputError, match=r"^seconds: "):
            engine.analyse([], 8, seconds)


def test_an_engine_is_shown_in_a_line_and_equals_itself(engine):
    assert len(repr(engine)) < 80 and len(repr(engine.agent)) < 1000
    # Type checkers see what `load` returns, without importing the engine.
    assert inspect.signature(jaxzero.load).return_annotation == Engine.__name__
    assert Path(jaxzero.__file__).with_name("py.typed").is_file()
    other = jaxzero.load(Path("2x2"))
    assert engine == engine and engine != other and engine.agent != other.agent
    assert {engine: 1, other: 2}[engine] == 1 and hash(engine.agent)
    for again in (copy.deepcopy(engine), pickle.loads(pickle.dumps(engine))):
        assert again.board == BOARD


def test_numbers_of_other_libraries_are_numbers(engine):
    assert engine.best_move([], np.int64(0)) == engine.best_move([], jnp.int32(0))
    assert engine.on_board(np.uint8(2), 2.0).board == BOARD


@pytest.mark.parametrize("name", [None, ["2x2"], "9x9", Path("9x9"), "", " ", "x" * 999, "a\0b"])
def test_what_is_no_network_is_refused(name: Any):
    with pytest.raises(InputError, match=r"^name: "):
        jaxzero.load(name)


@pytest.mark.parametrize("wrong", [None, 5, {"iterations": 3}, "", "nosuch", "/"])
def test_what_is_no_config_or_folder_is_refused_at_once(wrong, nothing_compiles):
    with pytest.raises(InputError, match=r"^config: "):
        jaxzero.train(wrong)
    for path in ("" if wrong in (None, "nosuch", "/") else wrong, "x" * 999):
        with pytest.raises(InputError, match=r"^run_dir: "):
            jaxzero.train("tiny", run_dir=path)


RING: dict = {}
RING["network"] = RING


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        (["--iterations=3"], "settings"),
        ("iterations", "settings"),
        (RING, "network"),
        ({"nope": 1}, "nope"),
        ({"network": 5}, "network"),
        ({"network": {"nope": 1}}, "network.nope"),
        ({"iterations": True}, "iterations"),
        ({"learner.learning_rate": float("nan")}, "learner"),
        ({"save_replay": "true"}, "save_replay"),
        ({"evaluation.suite": ["none"]}, "evaluation.suite"),
    ],
)
def test_settings_have_the_types_of_their_fields(settings, field, nothing_compiles):
    with pytest.raises(InputError, match=rf"^{field}") as refused:
        jaxzero.train("tiny", settings)
    assert str(refused.value).isprintable()
    with pytest.raises(InputError, match=r"^settings: "):
        jaxzero.train(short_config(), settings)


@pytest.mark.parametrize("wrong", ["print", [print], lambda: True])
def test_what_is_no_function_of_the_metrics_is_refused_at_once(wrong, nothing_compiles):
    with pytest.raises(InputError, match=r"^on_iteration: "):
        jaxzero.train("tiny", on_iteration=wrong)


def test_what_cannot_be_resumed_is_refused_at_once(nothing_compiles, tmp_path):
    with pytest.raises(InputError, match=r"^resume: True needs run_dir"):
        jaxzero.train("tiny", resume=True)
    for wrong in ("yes", 1, None):
        with pytest.raises(InputError, match=r"^resume: "):
            jaxzero.train("tiny", run_dir=tmp_path, resume=wrong)
    (tmp_path / "file").touch()
    for resume in (False, True):
        with pytest.raises(InputError, match=r"^run_dir: "):
            jaxzero.train(short_config(), run_dir=tmp_path / "file", resume=resume)


def test_a_run_goes_on_with_its_own_config(monkeypatch, tmp_path):
    from jaxzero.training import trainer

    run_dir, own = tmp_path / "run", short_config("--network.channels=24")
    run_dir.mkdir()
    save_config(own, run_dir / "config.yaml")
    asked: list[Config] = []

    def train(config: Config, *_args: Any, **_options: Any) -> None:
        asked.append(config)
        raise RunError("begun")

    monkeypatch.setattr(trainer, "train", train)
    file = tmp_path / "mine.yaml"
    save_config(short_config(), file)
    for config in (None, "tiny", Path("tiny"), file, short_config()):
        settings = None if isinstance(config, Config) else {"iterations": 9}
        with pytest.raises(RunError):
            jaxzero.train(config, settings, run_dir=run_dir, resume=True)
    longer = [dataclasses.replace(one, iterations=9) for one in (own, own, own, short_config())]
    assert asked == [*longer, short_config()]
    with pytest.raises(InputError, match=r"^config: quick"):  # of another board
        jaxzero.train("quick", run_dir=run_dir, resume=True)
    with pytest.raises(InputError, match=r"^run_dir: .*resume=True"):
        check_run_dir(own, run_dir, resume=False)


def test_a_preset_for_a_gpu_is_not_begun_on_a_cpu_without_a_word(capsys, nothing_compiles):
    for name, warns in (("gpu_8gb", True), ("tiny", False)):
        with pytest.raises(InputError, match=r"^nope"):
            jaxzero.train(name, {"nope": 1})
        assert ("cpu" in capsys.readouterr().err) == warns


@pytest.fixture
def nothing_compiles(monkeypatch):
    """Fail if the program of an iteration is compiled."""
    from jaxzero.training import trainer

    monkeypatch.setattr(trainer, "compile_iteration", lambda *_: pytest.fail("compiled"))


def test_the_package_shows_its_functions():
    assert {*jaxzero.__all__, "__version__"} <= set(dir(jaxzero))
    assert (jaxzero.Engine, jaxzero.InputError, jaxzero.RunError) == (Engine, InputError, RunError)
    with pytest.raises(AttributeError):
        _ = jaxzero.nosuch
    shown = pydoc.plain(pydoc.render_doc(jaxzero))
    assert "load(" in shown and "train(" in shown and "__getattr__" not in shown
    code = "import sys, jaxzero; dir(jaxzero); sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_agents_of_another_board_are_named(engine):
    other = DotsAndBoxes(1, 2)
    for name in ("policy", "search:4", "expert:1"):
        with pytest.raises(InputError, match=f"^player: '{name}'.* of 2x2, not of 1x2"):
            make_player(name, other, engine.agent)
    with pytest.raises(InputError, match=r"^player: policy plays 2x2, not 1x2$"):
        player_answers(table_suite(other), make_player("policy", BOARD, engine.agent))


def test_nothing_compiles_where_the_solver_answers(monkeypatch):
    engine = jaxzero.load("2x2")
    monkeypatch.setattr(jax, "jit", pytest.fail)
    assert engine.best_move([]) == engine.best_moves([[]])[0]
