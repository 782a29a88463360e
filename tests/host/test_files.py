"""Test output files: unwritable paths are refused before any work; no file is half-written."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from script_runner import ROOT, python

from jaxzero import errors
from jaxzero.errors import InputError, RunError
from jaxzero.host.files import (
    LOCK_FILE,
    append_text,
    atomic_write,
    check_file,
    check_folder,
    locked_folder,
    make_folder,
    save_figure,
    temporary_folder,
    write_csv,
    write_json,
    write_text,
)
from jaxzero.host.readers import read_arrays, read_text
from jaxzero.runs.metrics import MetricsWriter


def disk_full(*_args, **_options):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_texts_are_read_and_others_named_with_their_option(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"\xef\xbb\xbfa \xc3\xa9\n")  # with the byte order mark of UTF-8
    assert read_text("load", file, 8) == "a \u00e9\n"
    wrong = {"has more than 7 bytes": (file, 7), "cannot be read .Is a dir": (tmp_path, 9)}
    for message, (path, most) in wrong.items():
        with pytest.raises(InputError, match=f"^load: {path} {message}"):
            read_text("load", path, most)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=f"^load: {file} is not text in UTF-8"):
        read_text("load", file, 9)


def test_what_can_be_written_passes_and_nothing_is_touched(tmp_path):
    kept = tmp_path / "kept"
    kept.write_text("kept")
    before = kept.stat()
    for path in (kept, tmp_path / "new", Path("/dev/null"), None):
        check_file("json", path)
    for path in (tmp_path, tmp_path / "new", tmp_path / "new" / "below", None):
        check_folder("out", path)
    assert everything(tmp_path) == ["kept"] and kept.stat() == before


def test_what_cannot_be_written_is_named_with_its_option(tmp_path):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("none/a")
    names = ("", "none/a", "file/a", "x" * 300, "loop", "dangling")
    for name in names:
        with pytest.raises(InputError, match=f"^json: {tmp_path / name} cannot be written "):
            check_file("json", tmp_path / name)
    for name in ("file", "file/below", "x" * 300, "loop", "dangling"):
        with pytest.raises(InputError, match=f"^out: {tmp_path / name} cannot be written "):
            check_folder("out", tmp_path / name)


def test_a_failure_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "result.json"
    write_json(path, {"a": 1})
    whole = path.read_text()
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    with pytest.raises(ZeroDivisionError), atomic_write(path) as temporary:
        temporary.write_text("half")
        assert path.read_text() == whole
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), temporary_folder(tmp_path) as folder:
        (folder / "file").write_text("")
        raise ZeroDivisionError
    with pytest.raises(InputError, match="cannot be written"):
        write_json(tmp_path / "none" / "a.json", {})
    assert path.read_text() == whole and everything(tmp_path) == ["result.json"]


def test_links_modes_and_devices_stay(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    write_csv(path, ["a", "b"], [{"a": 1, "b": 2}])
    assert path.read_text().split() == ["a,b", "1,2"]
    path.chmod(0o640)
    link.symlink_to(path)
    write_json(link, [])
    assert link.is_symlink() and path.read_text() == "[]\n"
    assert path.stat().st_mode & 0o777 == 0o640
    save_figure(tmp_path / "figure", Figure())  # PNG, because the name has no suffix
    assert (tmp_path / "figure").read_bytes().startswith(b"\x89PNG")
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
            words = f"^run_dir: {tmp_path} is in use by process {other.pid}$"
            with pytest.raises(InputError, match=words), locked_folder("run_dir", tmp_path):
                raise AssertionError
            other.kill() if end == "kill" else other.stdin.write("\n")
        with locked_folder("run_dir", tmp_path):  # a killed process leaves the file, not the lock
            pass
        assert everything(tmp_path) == []
    words = rf"^out: {tmp_path}/none cannot be written "
    with pytest.raises(InputError, match=words), locked_folder("out", tmp_path / "none"):
        raise AssertionError


def test_a_lock_that_its_last_owner_has_removed_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("fcntl.flock", lambda *_: (tmp_path / LOCK_FILE).unlink())
    words = f"^out: {tmp_path} was in use until now"
    with pytest.raises(InputError, match=words), locked_folder("out", tmp_path):
        raise AssertionError


@pytest.mark.parametrize(
    "array", [np.array([{}], object), np.zeros((2, 2)), np.zeros(2, int), np.array([np.nan])]
)
def test_arrays_of_other_kinds_are_refused(array, tmp_path):
    file = tmp_path / "a.npz"
    np.savez_compressed(file, a=array)
    with pytest.raises(InputError, match=f"^table: .*{file}"):
        read_arrays("table", file, {"a": "f1"})
    np.savez_compressed(file, a=np.zeros(2))
    assert list(read_arrays("table", file, {"a": "f1", "b": "f1"}, optional=("b",))) == ["a"]
    with pytest.raises(InputError, match=f"^table: {file} cannot be read"):
        read_arrays("table", file, {"a": "f1", "b": "f1"})


def test_outputs_are_checked_before_anything_slow_is_imported(tmp_path):
    (tmp_path / "file").write_text("in the way")
    lines = (
        "evaluate.py --weights 2x2 --suite table --json file/below",
        "make_suite.py --out file/below",
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


def test_a_full_disk_is_no_bad_input(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "replace", disk_full)
    with pytest.raises(OSError, match="No space left on device") as raised:
        write_text(tmp_path / "note.txt", "text")
    assert raised.value.filename == str(tmp_path / "note.txt")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_ends_a_run_also_where_only_tensorboard_meets_it(tmp_path):
    with MetricsWriter(tmp_path, 0, 0) as writer:
        writer._board._py_recordio_writer._writer.close()
        writer._board._py_recordio_writer._writer = open("/dev/full", "wb")  # noqa: SIM115
        with pytest.raises(OSError, match=r"No space left .*tfevents") as raised:
            writer.write(1, {"learn/loss": 1.0}, "")
    assert raised.value.errno == errno.ENOSPC


def test_folders_that_cannot_be_made_are_named(tmp_path, monkeypatch):
    words = rf"^{tmp_path}/none cannot be written "
    with pytest.raises(InputError, match=words), temporary_folder(tmp_path / "none"):
        raise AssertionError
    monkeypatch.setattr(Path, "mkdir", disk_full)
    with pytest.raises(RunError, match=rf"^out: {tmp_path}/new cannot be made \(No space left"):
        make_folder("out", tmp_path / "new")


def test_a_line_that_was_cut_off_spoils_no_other(tmp_path):
    path = tmp_path / "starts.jsonl"
    append_text(path, "one\n")
    append_text(path, "tw")
    append_text(path, "three\n")
    append_text(path, "four\n")
    assert path.read_text().splitlines() == ["one", "tw", "three", "four"]


class Fails:
    """Raise an error where Python can only print it."""

    def __init__(self, message: str):
        self.message = message

    def __del__(self):
        raise RuntimeError(self.message)


def test_what_a_full_disk_does_to_threads_is_one_line_or_none(monkeypatch, capsys):
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    errors.print_less()
    thread = threading.Thread(target=disk_full, name="writer")
    thread.start()
    thread.join()
    assert capsys.readouterr().err == "warning: writer: [Errno 28] No space left on device\n"
    Fails("Event loop is closed")  # raised by checkpoint writers after another writer has failed
    assert capsys.readouterr().err == ""
    Fails("something else")
    assert "something else" in capsys.readouterr().err


def test_a_result_for_standard_output_comes_after_what_was_printed(tmp_path):
    code = (
        "from pathlib import Path; from jaxzero.host.files import check_file, write_json; "
        "path = Path('/dev/stdout'); check_file('json', path, ('.json',)); "
        "print('before'); write_json(path, [1]); print('after')"
    )
    with (tmp_path / "out.txt").open("w") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out.txt").read_text().split() == ["before", "[", "1", "]", "after"]
