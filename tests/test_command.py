"""Test the command `jaxzero` and the content of a wheel, which must work outside a checkout."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from script_runner import ROOT, TINY, python, run_here
from setuptools import Distribution

from jaxzero.__main__ import COMMANDS, main
from jaxzero.cli import find_config, load_config
from jaxzero.errors import InputError


def run_command(*words: str) -> int:
    """Return the exit code of the command, run in this process."""
    ends = patch("jaxzero.cli.end_now", sys.exit), patch("signal.signal")
    with patch.object(sys, "argv", ["jaxzero", *words]), ends[0], ends[1]:
        try:
            main()
        except SystemExit as end:
            return end.code or 0
    return 0


def test_every_script_is_a_command():
    scripts = {path.stem for path in (ROOT / "scripts").glob("*.py")}
    assert scripts == set(COMMANDS)


def test_a_command_does_what_its_script_does(capsys):
    options = "--rows 1 --cols 2 --position h0,0".split()
    assert run_command("solve", *options) == 0
    said = capsys.readouterr().out.splitlines()[:-1]  # without the seconds it took
    assert said == run_here("solve.py", *options).stdout.splitlines()[:-1]


@pytest.mark.parametrize(
    ("words", "code", "out", "err"),
    [
        ("", 0, "make_suite", ""),
        ("--help", 0, "usage: jaxzero COMMAND", ""),
        ("--version", 0, "jaxzero 0.", ""),
        ("solve --help", 0, "usage: jaxzero solve", ""),
        ("trian", 2, "", "error: unknown command 'trian'"),
        ("solve --rows 0", 2, "", "error: rows: "),
    ],
)
def test_the_command_explains_itself(words, code, out, err, capsys):
    assert run_command(*words.split()) == code
    said = capsys.readouterr()
    assert out in said.out and said.err.startswith(err) and said.err.count("\n") == bool(err)


def test_a_process_of_its_own_says_and_ends_the_same(tmp_path):
    options = [*TINY.split(), "--run_dir", tmp_path / "run", "--network.blocks", "0"]
    done = python("scripts/train.py", *options)
    assert (done.returncode, done.stdout, done.stderr) == run_here("train.py", *options)


def test_a_page_without_its_packages_says_how_to_install_them(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("jaxzero.page.server")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    done = run_here("play.py", "--web")
    assert done.returncode == 2
    assert done.stderr.startswith("error: web: needs starlette")
    assert 'pip install -e ".[web]"' in done.stderr and done.stderr.count("\n") == 1


def test_shipped_configs_are_found_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shipped = load_config(ROOT / "configs" / "tiny.yaml")
    for name in ("tiny", "configs/tiny.yaml"):
        assert load_config(name) == shipped
    for name in ("tiny.yaml", "x/tiny.yaml", "configs/tinier.yaml"):
        assert find_config(name) == name
    with pytest.raises(InputError, match=r"config.*tin"):
        load_config("tin")
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "tiny.yaml").write_text("seed: 7")  # the user's own
    assert load_config("configs/tiny.yaml").seed == 7 and load_config("tiny") == shipped


def test_a_wheel_holds_the_package_the_scripts_and_the_configs(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    project = Distribution({"script_name": "setup.py"})
    project.parse_config_files()
    build = project.get_command_obj("build_py")
    build.build_lib = str(tmp_path)
    build.ensure_finalized()
    found = {str(Path(path).relative_to(tmp_path)) for path in build.get_outputs(False)}
    wanted = {
        str(Path("jaxzero", path.relative_to(base)))
        for base, folder in ((ROOT / "jaxzero", ""), (ROOT, "scripts"), (ROOT, "configs"))
        for path in (base / folder).rglob("*")
        if path.is_file() and path.suffix != ".sh" and path.parent.name != "__pycache__"
    }
    assert found == wanted and "jaxzero/py.typed" in found
    assert not list(tmp_path.iterdir()), "listed, not built"
