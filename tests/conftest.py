"""Settings of all tests: two fake devices, strict broadcasting, a shared compilation cache."""

from __future__ import annotations

import os
from pathlib import Path

import jax

ROOT = Path(__file__).parent.parent
CACHE = ROOT / ".cache" / "xla"

# On a CPU even where there is a GPU: the tests want two devices. JAX_PLATFORMS=cuda overrides it.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax.config.update("jax_platforms", os.environ["JAX_PLATFORMS"])

# Subprocesses inherit these.
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(CACHE)
os.environ["MPLBACKEND"] = "agg"
jax.config.update("jax_compilation_cache_dir", str(CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_rank_promotion", "raise")
