"""Test output files: unwritable paths are refused before any work; no file is half-written."""

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from script_runner import ROOT, python, run_here

from jaxzero.errors import InputError
from jaxzero.host.files import (
    append_text,
    atomic_write,
    check_file,
    check_folder,
    locked_folder,
    write_json,
    write_text,
)
from jaxzero.runs.metrics import MetricsWriter, read_metrics


def disk_full(*_args, **_options):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_what_cannot_be_written_is_named_with_its_option_and_nothing_is_touched(tmp_path):
    (tmp_path / "file").write_text("kept")
    for path in (tmp_path / "file", tmp_path / "new", Path("/dev/null"), None):
        check_file("json", path)
    for path in (tmp_path, tmp_path / "new" / "below", None):
        check_folder("out", path)
    for name in ("", "none/a", "file/a"):
        with pytest.raises(InputError, match=f"^json: {tmp_path / name} "):
            check_file("json", tmp_path / name)
    for name in ("file", "file/below"):
        with pytest.raises(InputError, match=f"^out: {tmp_path / name} "):
            check_folder("out", tmp_path / name)
    assert everything(tmp_path) == ["file"] and (tmp_path / "file").read_text() == "kept"


def test_a_failure_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "result.json"
    write_json(path, {"a": 1})
    whole = path.read_text()
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    with pytest.raises(KeyboardInterrupt), atomic_write(path) as temporary:
        temporary.write_text("half")
        assert path.read_text() == whole
        raise KeyboardInterrupt
    assert path.read_text() == whole and everything(tmp_path) == ["result.json"]


def test_links_and_devices_stay(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    path.touch()
    link.symlink_to(path)
    write_json(link, [])
    assert link.is_symlink() and path.read_text() == "[]\n"
    write_json(Path("/dev/null"), [])
    assert Path("/dev/null").is_char_device()


def test_a_folder_in_use_is_refused_with_the_process_until_it_ends(tmp_path):
    hold = (
        "import sys, pathlib; from jaxzero.host.files import locked_folder\n"
        "with locked_folder('out', pathlib.Path(sys.argv[1])): print('in', flush=True); input()"
    )
    command = [sys.executable, "-c", hold, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    for end in ("end", "kill"):
        with subprocess.Popen(command, **pipes) as other:
            assert other.stdout.readline() == "in\n"
            words = f"^run_dir: {tmp_path} .* {other.pid}$"
            with pytest.raises(InputError, match=words), locked_folder("run_dir", tmp_path):
                raise AssertionError
            other.kill() if end == "kill" else other.stdin.write("\n")
        with locked_folder("run_dir", tmp_path):  # a killed process leaves the file, not the lock
            pass
        assert everything(tmp_path) == []


def test_outputs_are_checked_before_anything_slow_is_imported(tmp_path):
    (tmp_path / "file").write_text("in the way")
    lines = (
        "evaluate.py --weights 2x2 --suite table --json file/below",
        "make_suite.py --out file/below.npz",
        "solve.py --json file/below.json",
        "sweep.py --config tiny --preset batch --out file/below",
        "train.py --config tiny --run_dir file/below",
    )
    code = (
        "import sys; from script_runner import run_here\n"
        "for line in sys.argv[1:]: assert run_here(*line.split()).returncode == 2\n"
        "assert not {'flax', 'numba', 'matplotlib'} & set(sys.modules)"
    )
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))
    given = [line.replace("file", str(tmp_path / "file")) for line in lines]
    done = python("-c", code, *given, PYTHONPATH=paths)
    assert done.returncode == 0, done.stderr
    assert everything(tmp_path) == ["file"]


def test_a_full_disk_keeps_the_file_and_is_not_bad_input(tmp_path, monkeypatch):
    path = tmp_path / "out.json"
    path.write_text("[]")
    monkeypatch.setattr(Path, "replace", disk_full)
    with pytest.raises(OSError, match="No space left on device") as raised:
        write_text(path, "text")
    assert raised.value.filename == str(path)
    done = run_here("solve.py", "--rows", "1", "--cols", "1", "--json", path)
    assert done.returncode == 1 and f"error: {path}: " in done.stderr
    assert everything(tmp_path) == ["out.json"] and path.read_text() == "[]"


@pytest.mark.parametrize("refused", ["fsync", "open"])
def test_curves_that_cannot_be_written_are_one_warning(refused, tmp_path, monkeypatch, capsys):
    def refuse(*_):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    if refused == "fsync":  # by a network drive
        monkeypatch.setattr(os, "fsync", refuse)
    else:
        (tmp_path / "tensorboard").touch()
    with MetricsWriter(tmp_path, 0, 0) as writer:
        for iteration in (1, 2):
            writer.write({"iteration": iteration, "x": 1.0}, "")
    warnings = capsys.readouterr().err.splitlines()
    assert len(warnings) == 1 and str(tmp_path / "tensorboard") in warnings[0]
    assert [line["iteration"] for line in read_metrics(tmp_path)] == [1, 2]


def test_a_full_disk_is_a_warning_for_every_log(tmp_path, capsys):
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    with MetricsWriter(tmp_path, 0, 0) as writer:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, limit[1]))
            for iteration in (1, 2):
                writer.write({"iteration": iteration, "x": 1.0}, "")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        writer.write({"iteration": 3, "x": 1.0}, "")
    assert capsys.readouterr().err.count("warning: ") == 2
    assert read_metrics(tmp_path) == [{"iteration": 3, "x": 1.0}]


@pytest.mark.parametrize(("named", "kept"), [("module://nosuch", "module://nosuch"), ("x", "")])
def test_a_figure_needs_no_backend(named, kept, tmp_path):
    code = """
import sys
from jaxzero.host.files import new_figure, save_figure
from pathlib import Path
save_figure(Path(sys.argv[1]), new_figure())
import os, matplotlib
named = os.environ["MPLBACKEND"]
print(matplotlib.rcParams["backend"] if matplotlib.rcParams["backend"] == named else "")
"""
    done = python("-c", code, tmp_path / "figure.png", MPLBACKEND=named)
    assert (done.returncode, done.stdout) == (0, f"{kept}\n"), done.stderr
    assert (tmp_path / "figure.png").is_file()


def test_a_line_that_was_cut_off_spoils_no_other(tmp_path):
    path = tmp_path / "metrics.jsonl"
    for text in ('{"iteration": 1}\n', '{"itera', '{"iteration": 3}\n', '{"iteration": 4}\n'):
        append_text(path, text)
    assert [line["iteration"] for line in read_metrics(tmp_path)] == [1, 3, 4]
