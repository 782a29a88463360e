"""Configure all tests: two fake devices, fast compilation, strict broadcasting, a shared cache."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import threading
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

# Tests spend more time on compiling than on computing. Without optimisations, fusion emitters and
# parallel code generation, XLA takes a third of the time and of the memory. The variables must be
# set before jax is imported; subprocesses inherit them. Later versions of jaxlib do not know all
# flags, and XLA ends the process at an unknown flag.
if version("jaxlib").startswith("0.10."):
    flags = (
        "--xla_cpu_use_fusion_emitters=false",
        "--xla_cpu_parallel_codegen_split_count=1",
        "--xla_cpu_opt_preset=CPU_OPT_PRESET_FAST_COMPILE",
    )
    os.environ["XLA_FLAGS"] = " ".join((os.environ.get("XLA_FLAGS", ""), *flags))
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

import jax
import pytest

ROOT = Path(__file__).parent.parent
CACHE = ROOT / ".cache" / "xla"
MAX_BYTES = 5 * 2**28  # resident memory of a worker, checked after each test file
ITERATIONS = {}  # compiled iterations, by the settings, devices and shapes that they depend on
# Files of more than 25 seconds, longest first. Tests of the page wait more than they compute.
LONGEST = (
    *("test_interrupts.py", "test_processes.py", "test_web_keeps.py", "test_recovery.py"),
    *("test_trainer.py", "test_selfplay.py", "test_web_layout.py", "test_web_outage.py"),
    *("test_rounds.py", "test_web_views.py", "test_problems.py"),
    *("test_switches.py", "test_notebook.py"),
)

# Use the CPU even if there is a GPU: the tests need two devices. JAX_PLATFORMS=cuda overrides it.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax.config.update("jax_platforms", os.environ["JAX_PLATFORMS"])

# Subprocesses inherit these.
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(CACHE)
os.environ["MPLBACKEND"] = "agg"
jax.config.update("jax_compilation_cache_dir", str(CACHE))
# Cache quick compilations too; otherwise every test file and every process repeats them.
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_rank_promotion", "raise")


def pytest_collection_finish() -> None:
    """Exempt existing objects from garbage collection, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)


@pytest.fixture
def heeds_ctrl_c():
    """Heed SIGINT and SIGHUP even if the tests ignore them: started with & or nohup."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def gate():
    """Yield an event that a test lets threads wait for; it is set at the end of the test."""
    made = threading.Event()
    yield made
    made.set()


@pytest.fixture(autouse=True, scope="module")
def memory_is_given_back():
    """Clear all compiled programs after a test file if memory is above MAX_BYTES or unknown."""
    yield
    pages = Path("/proc/self/statm")
    if not pages.exists() or int(pages.read_text().split()[1]) * 4096 > MAX_BYTES:
        jax.clear_caches()
        ITERATIONS.clear()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first, so that no worker starts a long file near the end."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(LONGEST)))


@pytest.fixture(scope="session")
def whole(tmp_path_factory) -> Path:
    """Train a complete short run of six iterations; return its folder."""
    from short_run import short_config, train

    run_dir = tmp_path_factory.mktemp("whole") / "run"
    assert train(short_config(), run_dir)
    return run_dir


@pytest.fixture
def run(whole, tmp_path) -> Path:
    """Copy the complete short run, so that a test can damage it."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


@pytest.fixture(autouse=True, scope="session")
def alike_runs_share_a_program():
    """Compile the iteration once for all runs that differ only in settings it does not use."""
    from jaxzero.config import Config, EvaluationConfig
    from jaxzero.search.search import SEARCHES
    from jaxzero.training import program

    compile_ = program.lower_and_compile
    names = (
        *("seed", "iterations", "minutes", "devices"),
        *("checkpoint_every", "save_replay"),
    )
    unseen = {name: getattr(Config(), name) for name in names}

    def once(config, network, devices, shapes):
        seen = replace(config, evaluation=EvaluationConfig(), **unseen)
        key = (
            seen,
            *SEARCHES.values(),
            *devices,
            jax.tree.structure(shapes),
            *jax.tree.leaves(shapes),
        )
        if key not in ITERATIONS:
            ITERATIONS[key] = compile_(config, network, devices, shapes)
        return ITERATIONS[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program, "lower_and_compile", once)
        yield
