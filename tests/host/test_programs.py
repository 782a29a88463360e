"""Test kept programs: each is traced once and gives the same results; a bad file does no harm."""

import os
import shutil
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.host.programs import (
    cache_folder,
    cache_home,
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
    """Yield the folder of kept programs, which is empty."""
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


def test_programs_used_least_recently_are_removed(folder, monkeypatch):
    monkeypatch.setattr("jaxzero.host.programs.MAX_TRACED", 2)
    for factor in (2.0, 3.0):
        call(factor)
        (new,) = [path for path in folder.iterdir() if path.stat().st_mtime > 1e9]
        os.utime(new, (1e9 - 10 * factor,) * 2)  # 3.0 was used before 2.0
    call(3.0)
    call(4.0)
    assert len(list(folder.iterdir())) == 2
    call(3.0)
    assert TRACED == [2.0, 3.0, 4.0]
    call(2.0)
    assert TRACED == [2.0, 3.0, 4.0, 2.0]


def test_a_torn_file_is_replaced_and_without_a_folder_programs_run(folder):
    call()
    (kept,) = folder.iterdir()
    kept.write_bytes(kept.read_bytes()[:100])
    call()
    call()
    assert len(TRACED) == 2
    shutil.rmtree(folder)
    folder.write_text("in the way")
    call()
    assert len(TRACED) == 3


def test_other_code_another_compiler_and_other_settings_trace_anew(folder, monkeypatch):
    call()
    for name, other in (("_sources", lambda: "changed"), ("version", lambda _name: "0.0.1")):
        monkeypatch.setattr(f"jaxzero.host.programs.{name}", other)
        call()
    with jax.threefry_partitionable(False):
        call()
    call()
    assert len(TRACED) == 4


@pytest.mark.parametrize("named", [None, "", "gs://nowhere/x"])
def test_the_cache_is_the_user_s_and_gets_nothing_where_it_is_off(named, folder, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.setenv("MPLCONFIGDIR", "named")
    cache_home.cache_clear()
    jax.config.update("jax_compilation_cache_dir", None)
    use_compilation_cache()
    assert cache_folder() == folder / "jaxzero"
    shutil.rmtree(folder)
    monkeypatch.chdir(folder.parent)
    if named is None:
        jax.config.update("jax_enable_compilation_cache", False)
    else:
        jax.config.update("jax_compilation_cache_dir", named)
    try:
        use_compilation_cache()
        assert cache_folder() is None
        x = {"a": np.arange(3, dtype=np.float32)}
        kept_program(partial(scaled, 2.0), x).lower(x)  # jax itself would use the network
    finally:
        jax.config.update("jax_enable_compilation_cache", True)
        cache_home.cache_clear()
    assert list(folder.parent.iterdir()) == []
