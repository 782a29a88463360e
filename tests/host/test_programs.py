"""Kept programs: traced once for what they depend on, with the same results, never in the way."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.errors import InputError
from jaxzero.host.programs import (
    cache_folder,
    drop_open_entries,
    kept_program,
    use_compilation_cache,
)

pytest.importorskip("flatbuffers", reason="jax needs it to write programs")
TRACED: list[float] = []


def scaled(factor: float, x: dict[str, jax.Array]) -> tuple[jax.Array, jax.Array]:
    TRACED.append(factor)
    return factor * x["a"], jnp.sum(x["a"])


@pytest.fixture
def folder(tmp_path):
    """Return the folder of kept programs, empty."""
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    TRACED.clear()
    yield tmp_path / "traced"
    jax.config.update("jax_compilation_cache_dir", before)


def call(factor: float = 2.0, size: int = 3) -> None:
    """Make and call a program as a new process would."""
    x = {"a": np.arange(size, dtype=np.float32)}
    out = kept_program(partial(scaled, factor), x)(x)
    assert isinstance(out, tuple)
    np.testing.assert_array_equal(out[0], factor * x["a"])
    assert out[1] == x["a"].sum()


def test_a_user_without_a_home_has_a_cache_too(monkeypatch, tmp_path):
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    before = jax.config.jax_compilation_cache_dir
    monkeypatch.setattr(Path, "home", home)
    try:
        for named in (str(tmp_path), ""):
            monkeypatch.setenv("XDG_CACHE_HOME", named)
            jax.config.update("jax_compilation_cache_dir", None)
            use_compilation_cache()
            kept = jax.config.jax_compilation_cache_dir
            assert kept.startswith(named) and kept.endswith("/jaxzero")
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


def test_a_program_is_traced_once_for_what_it_depends_on(folder):
    call()
    call()
    assert TRACED == [2.0]
    call(3.0)
    call(size=4)
    assert TRACED == [2.0, 3.0, 2.0] and len(list(folder.iterdir())) == 3
    call(3.0)
    call(size=4)
    assert len(TRACED) == 3


def test_other_code_traces_anew(folder, monkeypatch):
    call()
    monkeypatch.setattr("jaxzero.host.programs._sources", lambda: "changed")
    call()
    assert len(TRACED) == 2


def test_another_compiler_traces_anew(folder, monkeypatch):
    call()
    monkeypatch.setattr("jaxzero.host.programs.version", lambda _name: "0.0.1")
    call()
    assert len(TRACED) == 2


def test_what_is_compiled_for_another_processor_has_another_name():
    """jax names what it keeps by this number among others: it must know the instructions."""
    script = (
        "import jax; from jax._src.lib import xla_client as client; "
        "print(client.get_topology_for_devices(jax.devices()).fingerprint())"
    )
    found = set()
    for most in ("SSE4_2", "AVX"):
        env = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": f"--xla_cpu_max_isa={most}"}
        command = [sys.executable, "-c", script]
        found.add(subprocess.check_output(command, env=env, text=True, timeout=60))
    assert len(found) == 2


def test_a_torn_file_is_replaced(folder):
    call()
    (kept,) = folder.iterdir()
    kept.write_bytes(kept.read_bytes()[:100])
    call()
    call()
    assert len(TRACED) == 2


def test_where_nothing_can_be_written_programs_run(folder):
    Path(folder).write_text("in the way")
    call()
    jax.config.update("jax_compilation_cache_dir", None)
    call()
    assert len(TRACED) == 2


@pytest.mark.parametrize("named", [None, "", "gs://nowhere/x", "s3://nowhere"])
def test_a_cache_that_is_off_or_elsewhere_gets_nothing(named, folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    if named is None:
        jax.config.update("jax_enable_compilation_cache", False)
    else:
        jax.config.update("jax_compilation_cache_dir", named)
    try:
        use_compilation_cache()
        assert cache_folder() is None
        x = {"a": np.arange(3, dtype=np.float32)}
        kept_program(partial(scaled, 2.0), x).lower(x)  # jax itself would ask the network
        drop_open_entries()
    finally:
        jax.config.update("jax_enable_compilation_cache", True)
    assert list(folder.parent.iterdir()) == []


@pytest.mark.parametrize(("named", "kept"), [(".", "traced"), ("file://{}/sub", "sub/traced")])
def test_a_cache_of_this_machine_is_found_by_every_name(named, kept, folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    jax.config.update("jax_compilation_cache_dir", named.format(folder.parent))
    use_compilation_cache()
    call()
    assert len(list((folder.parent / kept).iterdir())) == 1
    with Path("log.txt").open("w") as file:  # in the same folder
        print("mine", file=file, flush=True)
        drop_open_entries()
        assert Path("log.txt").read_text() == "mine\n"


def test_a_cache_that_cannot_be_is_named(folder):
    jax.config.update("jax_compilation_cache_dir", "banana://x")
    with pytest.raises(InputError, match=r"^JAX_COMPILATION_CACHE_DIR: 'banana://x' "):
        use_compilation_cache()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("jax_default_matmul_precision", "float32"),
        ("jax_default_prng_impl", "rbg"),
        ("jax_threefry_partitionable", False),
        ("jax_numpy_dtype_promotion", "strict"),
        ("jax_debug_nans", True),
    ],
)
def test_other_settings_of_jax_trace_anew(name, value, folder):
    before = getattr(jax.config, name)
    call()
    jax.config.update(name, value)
    try:
        call()
    finally:
        jax.config.update(name, before)
    assert len(TRACED) == 2
    call()
    assert len(TRACED) == 2


def test_settings_of_a_thread_count_too(folder):
    call()
    with jax.default_matmul_precision("float32"):
        call()
    assert len(TRACED) == 2
