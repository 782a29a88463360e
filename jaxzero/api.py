"""The Python API of jaxzero: engines that choose and analyse moves, and training."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from inspect import signature
from os import PathLike, fsdecode
from pathlib import Path
from typing import Any

import chex
import jax
import numpy as np

from jaxzero import config as settings_of
from jaxzero.cli import find_config, load_config, shipped_configs, warn_of_presets
from jaxzero.config import (
    AmountOrZero,
    BoardSide,
    Config,
    CountOrZero,
    SizeOrZero,
    build_config,
    config_of_file,
    dotted,
)
from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes, drawn_of
from jaxzero.game.text import to_python
from jaxzero.host.files import check_file
from jaxzero.host.interrupts import dropped_exceptions
from jaxzero.host.programs import use_compilation_cache, usual_types
from jaxzero.network.network import Agent
from jaxzero.play.analysis import Analysis, analyse
from jaxzero.players.network_player import choose_edges
from jaxzero.runs import weights
from jaxzero.runs.metrics import read_metrics
from jaxzero.runs.resize import resize
from jaxzero.runs.run_dir import SUFFIX, check_run, config_file, refuse_run
from jaxzero.solver.small import exact_answer

# Drawn edges: numbers or names such as h2,1; names in a text; or A booleans.
Position = Iterable[int | str] | str | np.ndarray | jax.Array


@dataclass(frozen=True, eq=False)
class Engine:
    """A trained network that plays one board. Moves are numbers of edges, values are boxes.

    An engine equals only itself, because comparing weights would take longer than a move.
    """

    agent: Agent

    def __repr__(self) -> str:
        config = self.agent.network.config
        return f"<Engine of {self.board}: {config.trunk}, {config.channels}x{config.blocks}>"

    @property
    def board(self) -> DotsAndBoxes:
        """The board that the engine plays; `jaxzero.game.edge_name` names its edges."""
        return self.agent.network.board

    def on_board(self, rows: int, cols: int) -> Engine:
        """Return the engine for another board.

        Raises: InputError if its network fits only one board; the network of 5x5 fits all boards.
        """
        board = DotsAndBoxes(_number("rows", rows, BoardSide), _number("cols", cols, BoardSide))
        return Engine(resize(self.agent, board, "engine: this network"))

    def best_move(self, position: Position = (), simulations: int = 64) -> int:
        """Return the edge to draw in a position; `[]` is the empty board.

        With 0 simulations the network answers without search. Else the exact solver answers if at
        most 12 edges are left. The first call that searches waits for the compiler.
        Raises: ValueError for an invalid position, or if no edge is left.
        """
        return self.best_moves([position], simulations)[0]

    def best_moves(self, positions: Iterable[Position], simulations: int = 64) -> list[int]:
        """Return the edge to draw in each of many positions, searched together."""
        simulations = _number("simulations", simulations, SizeOrZero)
        boards = self._boards(positions)
        known = [exact_answer(self.board, drawn) if simulations else None for drawn in boards]
        rest = [drawn for drawn, edge in zip(boards, known, strict=True) if edge is None]
        chosen = iter(self._choose(rest, simulations)[0])
        return [next(chosen) if edge is None else edge for edge in known]

    def values(self, positions: Iterable[Position], simulations: int = 64) -> list[float]:
        """Return for each position the boxes still to come: side to move minus opponent.

        Network and search estimate them, also where `best_move` has the exact solver.
        """
        simulations = _number("simulations", simulations, SizeOrZero)
        return self._choose(self._boards(positions), simulations)[1]

    @dropped_exceptions()
    @usual_types()
    def analyse(
        self, position: Position = (), simulations: int = 256, seconds: float = 0.0
    ) -> Analysis[float]:
        """Return an analysis of a position and of each edge: prior, visits, value, margin lost.

        The exact solver gets `seconds`; proven values are marked exact. Raises: as `best_move`.
        """
        simulations = _number("simulations", simulations, SizeOrZero)
        seconds = _number("seconds", seconds, AmountOrZero)
        return analyse(self.agent, self.drawn(position), 0, simulations, seconds)

    def drawn(self, position: Position) -> np.ndarray:
        """Return the drawn edges of a position: [A] bool. Raises: InputError."""
        return drawn_of(self.board, position)

    def _boards(self, positions: Iterable[Position]) -> list[np.ndarray]:
        """Return the drawn edges of each position. Raises: InputError, also if no edge is left."""
        positions = to_python(positions)
        # A text is one position; a set has no order.
        if isinstance(positions, str | Set | Mapping) or not isinstance(positions, Iterable):
            raise InputError(f"positions: {positions!r} must be a list of positions")
        boards = [self.drawn(position) for position in positions]
        if any(drawn.all() for drawn in boards):
            raise InputError(f"position: no edge is left on a {self.board} board")
        return boards

    @dropped_exceptions()
    @usual_types()
    def _choose(
        self, boards: Sequence[np.ndarray], simulations: int
    ) -> tuple[list[int], list[float]]:
        """Return edges and values of positions with an edge left."""
        if not len(boards):
            return [], []
        answer = choose_edges(self.agent, np.stack(boards), simulations)
        return answer.edge.tolist(), answer.value.tolist()


def _checked(name: str, value: Any, kind: Any) -> Any:
    """Return an argument. Raises: InputError unless it has the type."""
    if not isinstance(value, kind):
        raise InputError(f"{name}: {value!r} must be of type {kind}")
    return value


def _path(name: str, value: Any) -> str:
    """Return a path, or the name of what is shipped, as text. Raises: InputError."""
    path = fsdecode(_checked(name, value, str | PathLike))
    if not path.strip():
        raise InputError(f"{name}: is empty")
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # too long, a zero byte, a folder of somebody else
        raise InputError(f"{name}: {path[:60]!r} cannot be used ({error})"[:200]) from error
    return path


def _number(name: str, value: Any, kind: type) -> int | float:
    """Return a plain number in the range of `kind`. Raises: InputError."""
    return settings_of.check_number(name, to_python(value), kind)


def number_within(name: str, value: Any, least: float, most: float) -> int | float:
    """Return a number from `least` to `most`, whole if `least` is an int.

    Raises: InputError that calls the number `name`.
    """
    number = _number(name, value, CountOrZero if isinstance(least, int) else AmountOrZero)
    if not least <= number <= most:
        raise InputError(f"{name}: {value!r} is not from {least} to {most}")
    return number


def load(name: str | PathLike[str]) -> Engine:
    """Load a network that is shipped, such as "5x5", or by its path an exported one or a run.

    What its engine compiles is kept on disk, unless jax has a folder for that already.
    Raises: InputError naming the networks there are.
    """
    path = _path("name", name)
    use_compilation_cache(in_script=False)
    return Engine(weights.load_weights(path, "name").agent)


@dataclass(frozen=True, eq=False)
class Trained:
    """The result of a training."""

    engine: Engine
    metrics: list[dict[str, float]]  # one dict per iteration; "iteration" counts from 1
    network: weights.LoadedAgent  # with the config of the training

    def __repr__(self) -> str:
        return f"<Trained for {self.network.iteration} iterations: {self.engine}>"

    @property
    def params(self) -> chex.ArrayTree:
        """The weights that play, float32."""
        return self.engine.agent.params

    def save(self, path: str | PathLike[str]) -> None:
        """Write NAME.safetensors, NAME.yaml and NAME.json, which `jaxzero.load` reads as a network.

        Weights are rounded to float16. Raises: InputError if a file exists or cannot be written.
        """
        path = Path(_path("path", path))
        if path.suffix != SUFFIX:
            raise InputError(f"path: {path} must end with {SUFFIX}")
        check_file("path", path)
        refuse_run("path", path.parent)
        for suffix in (SUFFIX, ".yaml", ".json"):
            if path.with_suffix(suffix).exists():
                raise InputError(f"path: {path.with_suffix(suffix)} exists: name another file")
        weights.write_weights(self.network, path)


def changed(config: Config, settings: Mapping[str, Any]) -> Config:
    """Return a config with other values of `settings`, by dotted names. Raises: InputError."""
    content = asdict(config)
    for name, value in dotted(settings):
        section, _, leaf = name.rpartition(".")
        (content.setdefault(section, {}) if section else content)[leaf] = to_python(value)
    return build_config(content)


def _config_of(
    config: Config | str | PathLike[str] | None, settings: Mapping[str, Any], resumed: Path | None
) -> Config:
    """Return the config of a training; `resumed` is the folder of a run. Raises: InputError."""
    if isinstance(config, Config):
        if settings:
            raise InputError(f"settings: {settings!r} cannot be combined with a Config")
        return config
    if config is None and resumed is None:
        raise InputError("config: None needs resume=True, which takes the config of the run")
    named = None
    if config is not None:
        path = _path("config", config)
        try:
            named = load_config(path)
        except InputError as error:
            said = str(error).removeprefix("config: ")
            raise InputError(f"config: {path}: {' '.join(said.split())}") from error
    if resumed is not None:
        check_run("run_dir", resumed)
        before = config_of_file(config_file(resumed), "run_dir")
        is_preset = config and Path(find_config(fsdecode(config))) in shipped_configs().values()
        if is_preset and named.game != before.game:
            raise InputError(f"config: {config} plays {named.game.board}, not {before.game.board}")
        if named is None or is_preset:
            named = before
    elif config is not None:
        warn_of_presets([fsdecode(config)])
    return changed(named, settings)


@dropped_exceptions()
@usual_types()
def train(
    config: Config | str | PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    on_iteration: Callable[[dict[str, float]], Any] | None = None,
    run_dir: str | PathLike[str] | None = None,
    resume: bool = False,
) -> Trained:
    """Train a network; return an engine that plays it, and all metrics.

    `config` is a preset such as "tiny", a YAML file or a `Config`; `settings` change its fields:
    `{"iterations": 20, "network.channels": 64}`. After every iteration `on_iteration` gets its
    metrics, and a line is printed without it; if it returns True or after Ctrl-C, the training
    ends. With `run_dir` the run is saved as by `scripts/train.py`; without it no file is written.
    `resume` continues the run with its own config, which a file or a `Config` replaces, and a
    preset or None does not.
    Raises: InputError for settings that are wrong or do not fit the devices, and as
    `training.trainer.train`; RunError if the training diverges.
    """
    _checked("config", config, Config | str | PathLike | None)
    _checked("settings", settings, Mapping | None)
    folder = None if run_dir is None else Path(_path("run_dir", run_dir))
    _checked("resume", resume, bool | np.bool_)
    try:
        signature(print if on_iteration is None else on_iteration).bind({})
    except TypeError as error:
        words = f"{on_iteration!r} cannot be called with the metrics ({error})"
        raise InputError(f"on_iteration: {words}") from error
    except ValueError:  # some functions of C have no signature
        pass
    if resume and folder is None:
        raise InputError("resume: True needs run_dir, the folder of the run")
    config = _config_of(config, settings or {}, folder if resume else None)
    use_compilation_cache(in_script=False)  # before anything imports matplotlib
    from jaxzero.measure.evaluator import Evaluator  # slow to import
    from jaxzero.training import trainer

    evaluator = Evaluator(config)
    if folder is None:
        result = trainer.train(config, None, evaluator, on_iteration=on_iteration)
        metrics, last = result.history, result.history[-1]
        training = {"minutes": last["speed/minutes"], "games": last["speed/games"]}
        record = {"training": training}
        network = weights.LoadedAgent(result.agent, config, last["iteration"], record)
    else:
        trainer.train(config, folder, evaluator, resume=bool(resume), on_iteration=on_iteration)
        network, metrics = weights.load_agent(folder), read_metrics(folder)
    return Trained(Engine(network.agent), metrics, network)
