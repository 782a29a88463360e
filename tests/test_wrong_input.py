"""Test that wrong input ends a script with exit code 2 and one line that names the field."""

from __future__ import annotations

import shlex

import pytest
from script_runner import ROOT, parser_of, run_here

import jaxzero
from jaxzero.cli import load_config
from jaxzero.config import config_of_file
from jaxzero.errors import InputError

TRAIN = "train.py --config tiny --run_dir new"
# What the line of the error names, then the command line.
WRONG = """\
run_dir | train.py --config tiny
config, tiny | train.py --run_dir new
config, none.yaml | train.py --run_dir new --config none.yaml
network.blokcs, network.blocks | TRAIN --network.blokcs 3
network.trnk, network.trunk | TRAIN --network '{trnk: foo}'
rsume, resume | TRAIN --rsume
network.channels, many | TRAIN --network.channels many
game.rows, 0 | TRAIN --game.rows 0
network.trunk, foo, dense | TRAIN --network.trunk foo
network.trunk, foo, dense | TRAIN --network '{trunk: foo}'
trunk, line 1 | TRAIN --network '{trunk: dense, trunk: conv}'
mode, dual | play.py --mode match
network.safe_end, dense | TRAIN --network.safe_end true
learner.learning_rate, nan | TRAIN --learner.learning_rate nan
save_replay, maybe | TRAIN --save_replay maybe
config, notes.txt | train.py --run_dir new --config notes.txt
selfplay.random_opening_moves, 13 | TRAIN --selfplay.random_opening_moves 13
evaluation.opponents, greedi | TRAIN --evaluation.opponents greedi
evaluation.suite, 5x5_test | TRAIN --evaluation.suite 5x5_test
weights, resume | TRAIN --resume --weights 2x2
weights, 9x9 | TRAIN --predict_memory --weights 9x9
weights | TRAIN --predict_memory --weights 2x2 --network.trunk conv
heartbeat_seconds, distributed | TRAIN --heartbeat_seconds 5
num_processes, process_id | TRAIN --num_processes 2
run_dir, nowhere | train.py --resume --run_dir nowhere
run_dir, weights | evaluate.py --suite table
weights, 9x9, 5x5 | evaluate.py --weights 9x9 --suite table
weights2, run_dir2 | evaluate.py --weights 2x2 --run_dir2 x --weights2 2x2
checkpoint, run_dir | evaluate.py --weights 2x2 --suite table --checkpoint 3
opponents, greedy | evaluate.py --weights 2x2 --opponents greedy,random,greedy
players, suite | evaluate.py --weights 2x2 --players greedy
simulations, players | evaluate.py --weights 2x2 --suite table --players policy --simulations 9
games, 3 | evaluate.py --weights 2x2 --opponents greedy --games 3
json, file.txt | evaluate.py --weights 2x2 --suite table --json file.txt
json | evaluate.py --weights 2x2 --suite table --json none/out.json
out | make_suite.py --games 4
out, .npz | make_suite.py --out file.txt
fewest, 13 | make_suite.py --rows 2 --cols 2 --fewest 13 --out new.npz
position, h0,9 | solve.py --rows 2 --cols 2 --position h0,9
position, notes.txt | solve.py --position notes.txt
load, notes.txt | analyse.py --weights 2x2 --load notes.txt
suite, damaged.npz | evaluate.py --weights 2x2 --suite damaged.npz
players | evaluate.py --weights 2x2 --suite table --players policy,policy
opponents, greedi | evaluate.py --weights 2x2 --suite table --opponents greedi
position, load | analyse.py --weights 2x2 --position h0,0 --load file.txt
load, none.json | play.py --load none.json
games, mode dual | play.py --games 4
games, web | play.py --web --games 4
seconds, clock | engine.py --weights 2x2 --seconds 2 --clock 60
simulations, 8,,16 | sweep.py --config tiny --out new --search.simulations 8,,16
out, file.txt | sweep.py --config tiny --out file.txt --search.simulations 8,16
"""


@pytest.mark.parametrize("row", WRONG.splitlines())
def test_a_wrong_command_line_names_the_field_and_writes_nothing(row, tmp_path, monkeypatch):
    monkeypatch.setattr("jaxzero.measure.suite.table_suite", lambda _: pytest.fail("solved"))
    files = {
        "file.txt": b"mine",
        "notes.txt": "h0,0 é".encode("utf-16"),
        "damaged.npz": (ROOT / "jaxzero/measure/data/suite_4x4_test.npz").read_bytes()[:-9],
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    names, _, line = row.partition(" | ")
    done = run_here(*shlex.split(line.replace("TRAIN", TRAIN)), cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert all(name in done.stderr for name in names.split(", "))
    assert not any(word in done.stderr for word in ("Parser key", "typing.", "jsonargparse"))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files


SCRIPTS = sorted(path.name for path in (ROOT / "scripts").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_number_is_bounded_and_no_value_is_empty_unless_its_help_says_so(script):
    parser, known = parser_of(script), set()
    if script != "train.py":  # has the settings of all scripts
        known = {action.help for action in parser_of("train.py")._actions}

    def takes(option: str, value: str) -> bool:
        try:
            parser.parse_args([option, value, *required])
        except InputError as error:
            assert option.removeprefix("--") in str(error)
            return False
        return True

    required = ["--out", "x"] if "--out" in parser._option_string_actions else []
    for option, action in tuple(parser._option_string_actions.items()):
        if action.nargs == 0 or action.help in known or option == "--print_config":
            continue
        if not takes(option, "word"):
            for value in ("inf", "-inf", "nan", "1e30", str(2**63), "-1"):
                assert not takes(option, value), (option, value)
        if "empty" not in action.help.lower():
            assert not takes(option, ""), option


@pytest.mark.parametrize("content", [b"\xff\xfe", b"game: [", b"5", b""])
def test_a_run_with_a_config_of_another_kind_is_named_by_its_field(content, tmp_path):
    (tmp_path / "config.yaml").write_bytes(content)
    done = run_here("train.py", "--run_dir", tmp_path, "--resume")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: run_dir: ")
    with pytest.raises(InputError, match=r"^name: [^\n]*$"):
        jaxzero.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (r"network\.chanels: .*network\.channels\?, in .*yaml", "network: {chanels: 64}"),
        (r"netwrk.*: .*network.*\?, in .*yaml", "netwrk: {channels: 64}"),
        ("network", "network: 5"),
        (r"game\.rows", "game: {rows: 0}"),
        ("seed", "seed: [3]"),
        # Of an older version.
        (r"learner\.final_rate_fraction: .*yaml", "learner: {final_rate_fraction: 0.02}"),
        ("config: .*yaml .*'seed'", "seed: 1\nseed: 2"),
        ("config: .*yaml .*'rows'", "game:\n  rows: 2\n  cols: 2\n  rows: 3"),
        ("config: .*, in .*yaml", "config: 5"),
        (r"config.*: .*, in .*yaml", "config: [{seed: 3}]"),
    ],
)
@pytest.mark.parametrize("read", [load_config, config_of_file])
def test_a_wrong_config_file_names_the_setting(read, name, content, tmp_path):
    (tmp_path / "config.yaml").write_text(content)
    with pytest.raises(InputError, match=rf"^{name}"):
        read(tmp_path / "config.yaml")


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_has_help(script):
    done = run_here(script, "--help")
    assert done.returncode == 0 and "--help" in done.stdout and "<class" not in done.stdout
