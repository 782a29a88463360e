"""Kept programs: traced once for what they depend on, with the same results, never in the way."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.programs import kept_program, use_compilation_cache

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
    monkeypatch.setattr("jaxzero.programs._sources", lambda: "changed")
    call()
    assert len(TRACED) == 2


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
