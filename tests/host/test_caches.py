"""Test where caches go: with the user, else in a private temporary folder, else nowhere."""

import errno
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from numba import config
from numba.core.caching import IndexDataCacheFile
from script_runner import ROOT

from jaxzero.host import programs
from jaxzero.solver.bitboards import popcount

# Compile a function of the solver as a user of the library would, without any script.
SOLVE = """
import resource, sys
import numpy as np
most = int(sys.argv[1])  # bytes of a file: little room, as on a full disk
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
from jaxzero.solver.bitboards import pack
print(pack(np.ones(2, bool), np.array([0, 64]))[0])
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Return an empty temporary folder of the system; nothing is known of other folders."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for function in (programs.cache_home, programs._refusal):
        function.cache_clear()
    yield tmp_path
    programs.cache_home.cache_clear()


def warnings(capsys) -> int:
    return capsys.readouterr().err.count("warning: ")


UNUSABLE = [
    *({"HOME": home} for home in ("/dev/null", "/proc/none", "relative", "~")),
    *({"HOME": "/dev/null", "XDG_CACHE_HOME": folder} for folder in ("/dev/null/x", "relative")),
]


@pytest.mark.parametrize("environment", UNUSABLE, ids=str)
def test_without_a_home_caches_are_in_a_private_temporary_folder(
    environment, temporary, monkeypatch, capsys
):
    monkeypatch.chdir(temporary)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    home = programs.cache_home()
    assert home == temporary / f"jaxzero-{os.geteuid()}"
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert list(temporary.iterdir()) == [home] and warnings(capsys) == 1


def test_a_home_that_can_be_written_is_used_without_a_warning(temporary, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(temporary))
    assert programs.cache_home() == temporary / ".cache" / "jaxzero"
    monkeypatch.setenv("XDG_CACHE_HOME", str(temporary / "xdg"))
    programs.cache_home.cache_clear()
    assert programs.cache_home() == temporary / "xdg" / "jaxzero"
    assert warnings(capsys) == 0


@pytest.mark.parametrize("taken", ["open", "foreign", "link", "file"])
def test_a_folder_that_others_can_write_is_not_used(taken, temporary, monkeypatch, capsys):
    monkeypatch.setenv("HOME", "/dev/null")
    folder = temporary / f"jaxzero-{os.geteuid()}"
    if taken == "file":
        folder.touch()
    elif taken == "link":
        (temporary / "own").mkdir()
        folder.symlink_to(temporary / "own")
    else:
        folder.mkdir()
        folder.chmod(0o777 if taken == "open" else 0o700)
    if taken in ("foreign", "link"):
        if os.geteuid():
            pytest.skip("only root can give files away")
        os.chown(folder, 12345, 12345, follow_symlinks=False)
    assert programs.cache_home() is None and warnings(capsys) == 1


def test_matplotlib_has_a_folder_unless_the_user_has_settings(temporary, monkeypatch):
    monkeypatch.setenv("HOME", str(temporary))
    monkeypatch.setenv("MPLCONFIGDIR", "")  # so that it is restored
    monkeypatch.delenv("MPLCONFIGDIR")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(temporary))
    (temporary / "matplotlib").mkdir()
    programs.use_compilation_cache()
    assert "MPLCONFIGDIR" not in os.environ
    (temporary / "matplotlib").rmdir()
    programs.use_compilation_cache()
    assert Path(os.environ["MPLCONFIGDIR"]).is_relative_to(programs.cache_home())


@pytest.mark.parametrize("place", ["temporary", "none"])
def test_the_solver_runs_without_a_home_and_a_folder_of_code(place, tmp_path):
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "jaxzero", tmp_path / "jaxzero", ignore=ignored)
    (tmp_path / "jaxzero" / "solver" / "__pycache__").touch()  # even root cannot write in it
    environment = {"HOME": "/dev/null", "TMPDIR": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    most = 2**20 if place == "none" else 2**30
    done = subprocess.run(
        [sys.executable, "-c", SOLVE, str(most)],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if "CACHE" not in name}
        | environment,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr[-2000:]
    kept = [tmp_path / f"jaxzero-{os.geteuid()}" / "numba"] if place == "temporary" else []
    assert [path.parents[1] for path in tmp_path.rglob("*pack-*.nbi")] == kept
    assert done.stderr.count("warning: ") == len(done.stderr.splitlines()) == 1


def test_only_one_place_compiles_with_numba():
    naming = [path for path in (ROOT / "jaxzero").rglob("*.py") if "cache=" in path.read_text()]
    assert naming == [Path(programs.__file__)]


def count_bits(word):
    return popcount(word)


def compiled(folder, monkeypatch):
    """Compile a function, or load it from `folder`; return whether it was loaded."""
    monkeypatch.setattr(config, "CACHE_DIR", str(folder))
    function = programs.kept_njit("int64(uint64)")(count_bits)
    assert function(np.uint64(7)) == 3
    return bool(function.stats.cache_hits)


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("left", [0, 1, 20, -9])
def test_a_cut_file_in_the_cache_of_numba_is_written_again(suffix, left, tmp_path, monkeypatch):
    assert not compiled(tmp_path, monkeypatch) and compiled(tmp_path, monkeypatch)
    (path,) = tmp_path.rglob(f"*{suffix}")
    path.write_bytes(path.read_bytes()[:left])
    assert not compiled(tmp_path, monkeypatch) and compiled(tmp_path, monkeypatch)


def test_numba_compiles_without_a_cache_that_can_be_written(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(IndexDataCacheFile, "save", full)
    assert not compiled(tmp_path, monkeypatch)


def test_functions_of_the_solver_are_compiled_also_under_numba_disable_jit(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "DISABLE_JIT", 1)
    assert not compiled(tmp_path, monkeypatch) and config.DISABLE_JIT
