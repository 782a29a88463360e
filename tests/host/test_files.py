"""Outputs: refused before any work where they cannot be written, and never half-written."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from jaxzero import errors
from jaxzero.errors import InputError, RunError
from jaxzero.host.files import (
    FIGURES,
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

ROOT = Path(__file__).parents[2]


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_texts_are_read_and_others_named_with_their_option(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"\xef\xbb\xbfa \xc3\xa9\n")  # with the mark of UTF-8
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
    for path in (tmp_path, tmp_path / "none" / "a", tmp_path / "file" / "a", Path("x" * 300)):
        with pytest.raises(InputError, match=f"^json: {path} cannot be written "):
            check_file("json", path)
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InputError, match=f"^out: {path} cannot be written "):
            check_folder("out", path)


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_what_may_not_be_written_is_named(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    for check, path in ((check_file, closed / "a"), (check_folder, closed / "a" / "b")):
        with pytest.raises(InputError, match="Permission denied"):
            check("out", path)


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
    write_json(Path("/dev/null"), [])
    assert Path("/dev/null").is_char_device()


def test_figures_are_png_unless_their_name_says_other(tmp_path):
    from matplotlib.figure import Figure

    for name, begin in (("a.png", b"\x89PNG"), ("b", b"\x89PNG"), ("c.svg", b"<?xml")):
        save_figure(tmp_path / name, Figure())
        assert (tmp_path / name).read_bytes().startswith(begin)
    assert everything(tmp_path) == ["a.png", "b", "c.svg"]


def test_a_temporary_folder_goes(tmp_path):
    with pytest.raises(ZeroDivisionError), temporary_folder(tmp_path) as folder:
        (folder / "file").write_text("")
        raise ZeroDivisionError
    assert everything(tmp_path) == []


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


def test_names_end_as_their_content_needs(tmp_path):
    for name in ("a.png", "a.svg", "a"):
        check_file("out", tmp_path / name, FIGURES)
    with pytest.raises(InputError, match=r"^out: .*a\.npz must end with \.png or \.svg or \.pdf$"):
        check_file("out", tmp_path / "a.npz", FIGURES)


def npz(path: Path, **arrays) -> Path:
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)
    return path


def test_arrays_are_compared_with_their_headers_before_they_are_read(tmp_path):
    kinds = {"a": "f1"}
    pickled = npz(tmp_path / "pickled.npz", a=np.array([{}], object))
    with pytest.raises(InputError, match="a is object"):
        read_arrays("table", pickled, kinds)
    with pytest.raises(InputError, match="a is int64 with 2 axes"):
        read_arrays("table", npz(tmp_path / "other.npz", a=np.zeros((2, 2), int)), kinds)
    with pytest.raises(InputError, match="a is not finite"):
        read_arrays("table", npz(tmp_path / "nan.npz", a=np.array([np.nan])), kinds)
    with pytest.raises(InputError, match="a is missing"):
        read_arrays("table", npz(tmp_path / "b.npz", b=np.zeros(2)), kinds)
    huge = bytearray(npz(tmp_path / "huge.npz", a=np.zeros(2)).read_bytes())
    directory = huge.index(b"PK\1\2")
    huge[directory + 24 : directory + 28] = (2**32 - 2).to_bytes(4, "little")  # bytes unpacked
    (tmp_path / "huge.npz").write_bytes(huge)
    with pytest.raises(InputError, match=r"claims 4294967294 bytes"):
        read_arrays("table", tmp_path / "huge.npz", kinds)


COMMAND_LINES = (
    "benchmark.py --config tiny --json BAD",
    "compare.py --runs nowhere --out BAD",
    "benchmark.py --config tiny --trace BAD",
    "evaluate.py --weights 2x2 --suite table --json BAD",
    "evaluate.py --weights 2x2 --suite table --figures BAD",
    "export.py --weights 2x2 --out BAD",
    "make_suite.py --out BAD",
    "solve.py --json BAD",
    "solve.py --table BAD",
    "study.py --config tiny --out BAD",
    "sweep.py --config tiny --preset batch --out BAD",
    "train.py --config tiny --run_dir BAD",
)
ONE_AFTER_THE_OTHER = """
import json, sys
sys.path.insert(0, "tests")
from script_runner import run_here
for line in sys.argv[1:]:
    before = set(sys.modules)
    print(json.dumps([*run_here(*line.split()), sorted(set(sys.modules) - before)]), flush=True)
"""


@pytest.fixture(scope="module")
def refused(tmp_path_factory) -> tuple[Path, dict[str, list]]:
    """Run all scripts in a process that has imported little; return code, outputs and imports."""
    folder = tmp_path_factory.mktemp("bad")
    (folder / "file").write_text("in the way")
    lines = [line.replace("BAD", str(folder / "file" / "below")) for line in COMMAND_LINES]
    command = [sys.executable, "-c", ONE_AFTER_THE_OTHER, *lines]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    results = map(json.loads, done.stdout.splitlines())
    return folder, dict(zip(COMMAND_LINES, results, strict=True))


@pytest.mark.parametrize("command_line", COMMAND_LINES)
def test_every_script_checks_its_outputs_before_it_works(command_line, refused):
    folder, ended = refused
    code, said, complaint, imported = ended[command_line]
    option = command_line.split("--")[-1].split()[0]
    assert code == 2 and said == ""
    assert re.match(f"error: {option}: {folder}.*\n$", complaint), complaint
    assert not set(imported) & {"flax", "numba", "matplotlib"}
    assert everything(folder) == ["file"]


def test_a_full_disk_is_no_bad_input(tmp_path, monkeypatch):
    def replace(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", replace)
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


def test_no_error_shows_a_temporary_name_or_only_a_number(tmp_path, monkeypatch):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    for error in (full, OSError(errno.ENOSPC, "full", str(tmp_path / "folder" / "file"))):
        with pytest.raises(OSError) as raised, temporary_folder(tmp_path) as folder:
            if error.filename:
                error.filename = str(folder / "file")
            raise error
        assert raised.value.filename == str(tmp_path) and raised.value.errno == errno.ENOSPC
    words = rf"^{tmp_path}/none cannot be written "
    with pytest.raises(InputError, match=words), temporary_folder(tmp_path / "none"):
        raise AssertionError
    other = OSError(errno.EACCES, "denied", str(tmp_path / "other"))
    with pytest.raises(OSError) as raised, temporary_folder(tmp_path):
        raise other
    assert raised.value is other

    def mkdir(*_args, **_options):
        raise full

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with pytest.raises(RunError, match=rf"^out: {tmp_path}/new cannot be made \(No space left"):
        make_folder("out", tmp_path / "new")


def test_a_read_only_file_system_is_called_so(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    for flag, words in ((os.ST_RDONLY, "Read-only file system"), (0, "Permission denied")):
        monkeypatch.setattr(os, "statvfs", lambda _, flag=flag: SimpleNamespace(f_flag=flag))
        for check in (check_file, check_folder):
            with pytest.raises(InputError, match=f"^out: {tmp_path}/a cannot be written .{words}"):
                check("out", tmp_path / "a")


def test_a_lock_on_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def write(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", write)
    words = rf"^out: {tmp_path} cannot be written \(No space left"
    with pytest.raises(RunError, match=words), locked_folder("out", tmp_path):
        raise AssertionError
    monkeypatch.undo()
    assert everything(tmp_path) == []


def test_a_locked_folder_that_cannot_be_is_named_itself(tmp_path):
    words = rf"^out: {tmp_path}/none cannot be written "
    with pytest.raises(InputError, match=words), locked_folder("out", tmp_path / "none"):
        raise AssertionError


def test_a_line_that_was_cut_off_spoils_no_other(tmp_path):
    path = tmp_path / "starts.jsonl"
    append_text(path, "one\n")
    append_text(path, "tw")
    append_text(path, "three\n")
    append_text(path, "four\n")
    assert path.read_text().splitlines() == ["one", "tw", "three", "four"]


class Fails:
    """Raises where Python can only print it."""

    def __init__(self, message: str):
        self.message = message

    def __del__(self):
        raise RuntimeError(self.message)


def test_what_a_full_disk_does_to_threads_is_one_line_or_none(monkeypatch, capsys):
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    errors.print_less()

    def write() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    thread = threading.Thread(target=write, name="writer")
    thread.start()
    thread.join()
    assert capsys.readouterr().err == "warning: writer: [Errno 28] No space left on device\n"
    Fails("Event loop is closed")  # as writers of checkpoints complain where another has failed
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
