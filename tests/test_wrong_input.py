"""Test that wrong input ends a script with exit code 2 and one line that names the field."""

from __future__ import annotations

import shlex

import pytest
from script_runner import ROOT, run_here

from jaxzero.cli import load_config
from jaxzero.errors import InputError

TRAIN = "train.py --config tiny --run_dir new"
# What the line of the error names, then the command line.
WRONG = """\
run_dir | train.py --config tiny
config, tiny | train.py --run_dir new
config, none.yaml | train.py --run_dir new --config none.yaml
blokcs | TRAIN --network.blokcs 3
network.channels, many | TRAIN --network.channels many
game.rows, 0 | TRAIN --game.rows 0
network.trunk, foo | TRAIN --network.trunk foo
network.safe_end, dense | TRAIN --network.safe_end true
learner.learning_rate, nan | TRAIN --learner.learning_rate nan
save_replay, maybe | TRAIN --save_replay maybe
selfplay.random_opening_moves, 13 | TRAIN --selfplay.random_opening_moves 13
evaluation.opponents, greedi | TRAIN --evaluation.opponents greedi
evaluation.suite, 5x5_test | TRAIN --evaluation.suite 5x5_test
weights, resume | TRAIN --resume --weights 2x2
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
position, load | analyse.py --weights 2x2 --position h0,0 --load file.txt
load, none.json | play.py --load none.json
games, mode dual | play.py --games 4
games, web | play.py --web --games 4
seconds, clock | engine.py --weights 2x2 --seconds 2 --clock 60
simulations, 8,,16 | sweep.py --config tiny --out new --search.simulations 8,,16
out, file.txt | sweep.py --config tiny --out file.txt --search.simulations 8,16
"""


@pytest.mark.parametrize("row", WRONG.splitlines())
def test_a_wrong_command_line_names_the_field_and_writes_nothing(row, tmp_path):
    (tmp_path / "file.txt").write_text("mine")
    names, _, line = row.partition(" | ")
    done = run_here(*shlex.split(line.replace("TRAIN", TRAIN)), cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert all(name in done.stderr for name in names.split(", "))
    assert [path.name for path in tmp_path.iterdir()] == ["file.txt"]
    assert (tmp_path / "file.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("chanels", "network: {chanels: 64}"),
        ("network", "network: 5"),
        ("game.rows", "game: {rows: 0}"),
        ("seed", "seed: [3]"),
        ("final_rate_fraction", "learner: {final_rate_fraction: 0.02}"),  # of an older version
    ],
)
def test_a_wrong_config_file_names_the_setting(name, content, tmp_path):
    (tmp_path / "config.yaml").write_text(content)
    with pytest.raises(InputError, match=name):
        load_config(tmp_path / "config.yaml")


@pytest.mark.parametrize("script", sorted(path.name for path in (ROOT / "scripts").glob("*.py")))
def test_every_script_has_help(script):
    done = run_here(script, "--help")
    assert done.returncode == 0 and "--help" in done.stdout and "<class" not in done.stdout
