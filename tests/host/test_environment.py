"""Test the environment variables that jax reads: an error is one line that names the variable."""

from __future__ import annotations

import re
from functools import partial

import jax
import pytest
from script_runner import python

from jaxzero.cli import run_script
from jaxzero.errors import InputError
from jaxzero.host.environment import check_devices, check_environment

WRONG = {
    "JAX_NUM_CPU_DEVICES": ("banana", "", "0", "1.5", "1000000"),
    "XLA_CLIENT_MEM_FRACTION": ("banana", "0", "90", "nan"),
    "XLA_PYTHON_CLIENT_MEM_FRACTION": ("2",),
    "XLA_PYTHON_CLIENT_PREALLOCATE": ("no", "FALSE"),
}
RIGHT = {
    "JAX_NUM_CPU_DEVICES": ("1", "16"),
    "XLA_CLIENT_MEM_FRACTION": ("", "0.9", "1"),
    "XLA_PYTHON_CLIENT_MEM_FRACTION": ("0.5",),
    "XLA_PYTHON_CLIENT_PREALLOCATE": ("", "true", "0"),
}


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch):
    for name in WRONG:
        monkeypatch.delenv(name, raising=False)


def test_what_jax_would_misread_is_refused(monkeypatch):
    for name in WRONG:
        for value in RIGHT[name]:
            monkeypatch.setenv(name, value)
            check_environment()
        for value in WRONG[name]:
            monkeypatch.setenv(name, value)
            with pytest.raises(InputError, match=f"^{name}: {value!r} "):
                check_environment()
        monkeypatch.delenv(name)
    for name in ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"):  # old and new name
        monkeypatch.setenv(name, "0.5")
    with pytest.raises(InputError, match=r"^XLA_PYTHON_CLIENT_MEM_FRACTION: .* XLA_CLIENT_"):
        check_environment()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("JAX_NUM_CPU_DEVICES", "banana"),
        ("JAX_PLATFORMS", "banana"),
        ("JAX_ENABLE_X64", "banana"),
    ],
)
def test_a_script_ends_with_a_line_about_the_variable(name, value):
    # Variables that notebooks and other programs set must change nothing.
    others = {"MPLBACKEND": "module://matplotlib_inline", "JSONARGPARSE_DEBUG": "1"}
    done = python("scripts/benchmark.py", "--config", "tiny", **{name: value}, **others)
    assert done.returncode == 2 and re.fullmatch(f"error: {name}: .*{value}.*\n", done.stderr)


@pytest.mark.parametrize("has_build", [False, True])
def test_a_gpu_without_the_build_for_it_names_the_command(has_build, monkeypatch):
    def devices():
        raise AssertionError  # as jax 0.10 does without the plugin, with no message

    monkeypatch.setattr(jax, "devices", devices)
    monkeypatch.setattr("jaxzero.host.environment.has_cuda_build", lambda: has_build)
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    with pytest.raises(InputError, match=r"^JAX_PLATFORMS: 'cuda'") as refused:
        check_devices()
    assert ('pip install -e ".[cuda13]"' in str(refused.value)) != has_build


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
@pytest.mark.parametrize(
    "message", ["RESOURCE_EXHAUSTED: 9 GiB", "INTERNAL: x: CUDA_ERROR_OUT_OF_MEMORY: out of memory"]
)
def test_a_full_gpu_names_what_lets_jax_reserve_less(message, backend, monkeypatch, capsys):
    def main(_words, message=message):
        raise RuntimeError(message)

    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    with pytest.raises(RuntimeError, match=r"^other$"):  # other errors are raised as usual
        run_script(partial(main, message="other"))
    with pytest.raises(SystemExit) as ended:
        run_script(main)
    said = capsys.readouterr().err
    assert ended.value.code == 1 and said.count("\n") == 1 and message[:9] in said
    for name in ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_PREALLOCATE", "nvidia-smi"):
        assert (name in said) == (backend == "gpu")
