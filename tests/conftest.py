"""Settings of all tests: two fake devices, quick compiling, strict broadcasting, a shared cache."""

from __future__ import annotations

import gc
import os
import signal
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

# Tests compile for longer than they compute. Without optimisations, fusion emitters and threads of
# its own XLA takes a third of the time and of the memory. Set before jax is imported; subprocesses
# inherit it. Later versions of jaxlib do not know all flags, and XLA ends a process for one that it
# does not know.
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
MOST_BYTES = 5 * 2**28  # resident, of one worker between two files
ITERATIONS = {}  # compiled, by what they see
# More than 25 seconds each, the longest first; those of the page wait more than they compute.
LONGEST = (
    *("test_readme.py", "test_web_layout.py", "test_processes.py", "test_web_outage.py"),
    *("test_interrupts.py", "test_web_input.py", "test_trainer.py", "test_web.py"),
    *("test_recovery.py", "test_web_keeps.py", "test_benchmark.py"),
)

# On a CPU even where there is a GPU: the tests want two devices. JAX_PLATFORMS=cuda overrides it.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax.config.update("jax_platforms", os.environ["JAX_PLATFORMS"])

# Subprocesses inherit these.
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(CACHE)
os.environ["MPLBACKEND"] = "agg"
jax.config.update("jax_compilation_cache_dir", str(CACHE))
# Also what compiles at once: every file and every process would compile it anew.
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_rank_promotion", "raise")


def pytest_collection_finish() -> None:
    """Spare the garbage collector what is there by now, and most of its rounds while jax traces."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)


@pytest.fixture
def heeds_ctrl_c():
    """Heed Ctrl-C also in a job that a script has started with &, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True, scope="module")
def memory_is_given_back():
    """Forget all programs after the last test of a file where they take much memory."""
    yield
    pages = Path("/proc/self/statm")
    if not pages.exists() or int(pages.read_text().split()[1]) * 4096 > MOST_BYTES:
        jax.clear_caches()
        ITERATIONS.clear()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first, so that no worker begins one when the others are done."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(LONGEST)))


@pytest.fixture(autouse=True, scope="session")
def alike_runs_share_a_program():
    """Compile the iteration once for all runs that differ only in what it does not see."""
    from jaxzero.config import Config, EvaluationConfig
    from jaxzero.training import iteration

    compile_ = iteration.lower_and_compile
    names = (
        *("seed", "iterations", "minutes", "devices"),
        *("checkpoint_every", "keep_checkpoints", "save_replay"),
    )
    unseen = {name: getattr(Config(), name) for name in names}

    def once(config, network, devices, shapes):
        seen = replace(config, evaluation=EvaluationConfig(), **unseen)
        key = (seen, *devices, jax.tree.structure(shapes), *jax.tree.leaves(shapes))
        if key not in ITERATIONS:
            ITERATIONS[key] = compile_(config, network, devices, shapes)
        return ITERATIONS[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iteration, "lower_and_compile", once)
        yield
