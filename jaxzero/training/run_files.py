"""What a training keeps of a run: a folder of files, or nothing but printed lines."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import jax

from jaxzero.config import Config
from jaxzero.network.network import Network
from jaxzero.runs.checkpoint import Checkpoints
from jaxzero.runs.metrics import MetricsWriter
from jaxzero.runs.run_dir import CONFIG_FILE, check_run_dir, new_folder, resume_command, save_config
from jaxzero.runs.summary import note_start
from jaxzero.runs.weights import LoadedAgent, note_initial_weights, noted_initial_weights
from jaxzero.training.processes import is_first, on_first, refuse_separate
from jaxzero.training.run_state import RunState, resume_run, save_run, start_run


class RunInMemory:
    """A run without files. Its lines are printed if it is `verbose`."""

    def __init__(self, verbose: bool):
        self.verbose = verbose

    def noted_initial_weights(self) -> LoadedAgent | None:
        """Return the initial weights of an earlier start of the run."""
        return None

    @contextmanager
    def open(self, config: Config, initial: LoadedAgent | None) -> Iterator[None]:
        """Open the files for a block; its end waits until the last checkpoint is written."""
        yield

    def restore(
        self,
        config: Config,
        network: Network,
        devices: list[jax.Device],
        initial: LoadedAgent | None,
    ) -> RunState:
        """Return the run from its newest checkpoint or, without one, a new run."""
        return start_run(config, network, devices, initial)

    def log(self, metrics: dict[str, float], line: str) -> None:
        """Record the metrics of an iteration, and print its line."""
        if self.verbose:
            print(f"{metrics['iteration']:>5}  {line}", flush=True)

    def save(self, config: Config, state: RunState) -> None:
        """Start to write a checkpoint. Raises: FloatingPointError if numbers are not finite."""

    def remedy(self, settings: dict[str, float]) -> str:
        """Say which checkpoint a failed run has left, and how to continue it with `settings`."""
        return ""


class RunFolder(RunInMemory):
    """The files of a run in `path`; with several processes the first one writes them."""

    def __init__(self, path: Path, resume: bool):
        super().__init__(verbose=True)
        self.path, self._resume = path, resume

    def noted_initial_weights(self) -> LoadedAgent | None:
        return noted_initial_weights(self.path) if self._resume else None

    @contextmanager
    def open(self, config: Config, initial: LoadedAgent | None) -> Iterator[None]:
        refuse_separate(self.path)
        if is_first() and not self._resume:
            # Before the folder of checkpoints: a run that dies from here on can be resumed.
            if initial:
                note_initial_weights(self.path, initial)
            save_config(config, self.path / CONFIG_FILE)
        with ExitStack() as self._opened:
            self._checkpoints = Checkpoints(self.path, owner=is_first())
            self._opened.enter_context(self._checkpoints)
            yield

    def restore(
        self,
        config: Config,
        network: Network,
        devices: list[jax.Device],
        initial: LoadedAgent | None,
    ) -> RunState:
        if self._resume and self._checkpoints.iterations():
            state = resume_run(config, network, devices, self._checkpoints)
        else:
            if self._resume:
                print("The run has no checkpoint yet: it starts from the beginning.")
            state = start_run(config, network, devices, initial)
        if is_first():
            if self._resume:
                save_config(config, self.path / CONFIG_FILE)
            note_start(self.path, devices, state.iteration)
            writer = MetricsWriter(self.path, state.iteration, config.iterations)
            self._writer = self._opened.enter_context(writer)
        return state

    def log(self, metrics: dict[str, float], line: str) -> None:
        self._checkpoints.check()
        if is_first():
            self._writer.write(metrics, line)

    def save(self, config: Config, state: RunState) -> None:
        save_run(config, state, self._checkpoints)

    def remedy(self, settings: dict[str, float]) -> str:
        self._checkpoints.wait()
        saved = self._checkpoints.iterations()
        intact = f"checkpoint {saved[-1]} is intact" if saved else "there is no checkpoint"
        return f"; {intact}. To go on: {resume_command(self.path, **settings)}"


@contextmanager
def open_run(
    config: Config, run_dir: Path | None, resume: bool, verbose: bool
) -> Iterator[RunInMemory]:
    """Lock the folder of a run for a block; without a folder the run is in memory.

    Raises: InputError, before anything is compiled, unless the run may start or resume there.
    """
    if run_dir is None:
        yield RunInMemory(verbose)
        return
    with ExitStack() as lock:
        on_first(lambda: lock.enter_context(new_folder("run_dir", run_dir)))
        on_first(lambda: check_run_dir(config, run_dir, resume))
        yield RunFolder(run_dir, resume)
