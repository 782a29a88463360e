"""Input from strangers: every option of every script and every kind of file, with seeded chance.

Whatever is wrong ends as one InputError that names the field: exit code 2, one line, no traceback,
nothing written. A bad value never passes a parser, and a damaged file never becomes another error.
"""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import jsonargparse
import numpy as np
import pytest
from script_runner import ROOT, parser_of, run_here

from jaxzero.cli import MAY_BE_EMPTY, load_config, parse
from jaxzero.errors import InputError
from jaxzero.host.status import MARK

SCRIPTS = sorted(path.name for path in (ROOT / "scripts").glob("*.py"))
VALUES = 60  # of each script, 40 times as many in the slow test
DAMAGES = 10  # of files that take long to use
SENSELESS = (
    *("", " ", "nan", ".nan", "-.inf", ".inf", "inf", "-inf", "NaN", "1e400", "-1e400", "1e300"),
    *(
        "-1",
        "-1e300",
        "1" + "0" * 400,
        "-" + "9" * 5000,
        "9" * 5000,
        "10000000000",
        "0x" + "f" * 40,
    ),
    *("true", "null", "~", "[]", "{}", "[1]", "{a: 1}", "[" * 1500, "{" * 1500, "!!python/name:os"),
    *("&a [*a]", "2001-99-99", "1e", "--", "\ud800", "a\0b", "1_0__", "'", '"', "%s%n", "${HOME}"),
)


def options_of(script: str) -> dict[str, typing.Any]:
    """Return the types of the options of a script, by name; None for flags and sections."""
    found = {}
    for action in parser_of(script)._actions:
        names = [name for name in action.option_strings if name.startswith("--")]
        takes_value = action.nargs != 0 and names and names[0] not in ("--help", "--print_config")
        if takes_value:
            hint = getattr(action, "_typehint", None)
            found[names[0][2:]] = hint if hint is not None else action.type
    return found


def bad_values(chance: random.Random, kind: typing.Any) -> str:
    """Return a value that no option of this type may take."""
    kind = next(iter(typing.get_args(kind)), kind) if typing.get_origin(kind) is list else kind
    if kind in (int, float):  # the script checks their range
        return chance.choice(["many", "1,2", "0.5.5", "", "[1]", "{a: 1}", "[" * 1500, "9" * 5000])
    if hasattr(kind, "_restrictions"):
        values = ["many", "1,2", "0.5.5", *(value for value in SENSELESS if _wrong(kind, value))]
        for operator, bound in kind._restrictions:
            step = max(1, abs(bound)) * chance.choice((1, 2, 1e9, 10**30))
            values.append(str(bound + step if operator.__name__ == "le" else bound - step))
        return chance.choice(values)
    if kind is bool:
        return chance.choice(["maybe", "2", "[]", "", "9" * 5000])
    if typing.get_origin(kind) is typing.Literal:
        return chance.choice([v for v in SENSELESS if v] + ["other"])
    return chance.choice(["", " ", "\t", "\ud800", "a\0b", "9" * 5000])


def _wrong(kind: typing.Any, value: str) -> bool:
    """Return whether a number of this type cannot be written so."""
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return True
    inside = all(operator(number, bound) for operator, bound in kind._restrictions)
    return not inside or (kind._type is int and number % 1 != 0)


def tries(script: str, count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield options of a script, each with a value that it must refuse."""
    chance, options = random.Random(f"{script} {seed}"), options_of(script)
    # Which players there are is known after the networks are read; empty lists have a meaning.
    names = [name for name in options if name not in MAY_BE_EMPTY]
    for number in range(count):
        name = names[number % len(names)]
        yield name, bad_values(chance, options[name])


def complaint(script: str, name: str, value: str) -> str:
    """Return what a script's parser says of an option. Raises what it raises but InputError."""
    try:
        parse(parser_of(script), [f"--{name}={value}"])
    except InputError as error:
        return str(error)
    return "accepted"


@pytest.mark.parametrize("script", SCRIPTS)
def test_no_bad_value_passes_a_parser(script):
    check_values(script, VALUES, 0)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_no_bad_value_passes_a_parser_of_very_many(script):
    check_values(script, 40 * VALUES, 1)


def check_values(script: str, count: int, seed: int) -> None:
    for name, value in tries(script, count, seed):
        said = complaint(script, name, value)
        assert said.startswith(name), (name, value, said)
        assert len(said) < 1000 and said.isprintable(), (name, value[:80], said)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_bad_value_ends_a_script_with_one_line_and_writes_nothing(script, tmp_path):
    for name, value in list(tries(script, 400, 2))[:: 400 // 4]:
        done = run_here(script, f"--{name}={value}", cwd=tmp_path)
        assert done.returncode == 2 and done.stdout == "", (name, value[:80], done)
        assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1, done.stderr
        assert not list(tmp_path.iterdir())


# Command lines, by the field that their error names. In the folder are a run of 48 iterations, a
# file README.md, a game, and a folder with a picture.
WRONG_LINES = {
    "config": (
        "train.py --run_dir new",
        "train.py --run_dir new --seed 3 --minutes 1",
        "train.py --run_dir new --seeds 1 2",
        "train.py --predict_memory",
        "train.py --run_dir new --config empty.yaml",
        "train.py --run_dir new --config nothing.yaml",
        "train.py --run_dir new --config run",
        "train.py --run_dir new --config gpu",
        "train.py --run_dir new --config README.md",
        "study.py --out new",
        "benchmark.py",
        "benchmark.py --network.channels 8",
        "sweep.py --out new --selfplay.games 8,16",
        "gpu_compile.py --parts search",
    ),
    "iterations": (
        "train.py --run_dir run --resume --iterations 10",
        "train.py --run_dir run --resume --iterations 47",
    ),
    "minutes": (
        "train.py --run_dir run --resume --minutes 2.9",
        "study.py --config tiny --out new --minutes 0",
    ),
    "run_dir": (
        "train.py --config tiny",
        "train.py --config tiny --run_dir run",
        "train.py --config tiny --run_dir pictures",
        "train.py --config tiny --run_dir README.md",
        "train.py --config tiny --run_dir games",
        "evaluate.py --suite table",
        "evaluate.py --run_dir pictures --suite table",
        "watch.py --run_dir pictures",
    ),
    "out": (
        "sweep.py --config tiny --out run --selfplay.games 8,16",
        "sweep.py --config tiny --out pictures --selfplay.games 8,16",
        "sweep.py --config tiny --out games --preset batch",
        "study.py --config tiny --out run",
        "study.py --config tiny --out pictures",
        "study.py --out run --compare pictures",
        "export.py --weights 2x2 --out run",
        "export.py --weights 2x2 --out run --name config --overwrite",
        "export.py --weights 2x2",
        "compare.py --runs run --out run/curves.png",
        "make_suite.py --out run/checkpoints/48/x.npz",
        "make_suite.py --out old.npz",
    ),
    "save": (
        "play.py --mode dual --player greedy --player2 greedy --save run",
        "play.py --mode dual --player greedy --player2 greedy --save pictures",
        "play.py --mode dual --player greedy --player2 greedy --save games",
        "play.py --player greedy --save games/1.json",
        "play.py --player greedy --save run/summary.json",
        "play.py --player greedy --save notes.txt",
    ),
    "json": (
        "solve.py --rows 1 --cols 1 --json README.md",
        "solve.py --rows 1 --cols 1 --json run/config.yaml",
        "benchmark.py --config tiny --json run/checkpoints/48/result.json",
        "analyse.py --weights 2x2 --json README.md",
        "evaluate.py --weights 2x2 --suite table --json run/metrics.jsonl",
        "gpu_compile.py --config tiny --json run/config.yaml",
    ),
    "trace": (
        "benchmark.py --config tiny --trace run",
        "benchmark.py --config tiny --trace pictures",
    ),
    "figures": (
        "evaluate.py --weights 2x2 --suite table --figures run",
        "evaluate.py --weights 2x2 --opponents greedy --figures new",
    ),
    "table": ("solve.py --rows 1 --cols 1 --table run/config.yaml",),
    "selfplay.opening_plies": (
        "train.py --config tiny --run_dir new --selfplay.opening_plies 999",
        "benchmark.py --config tiny --selfplay.opening_plies 13",
    ),
    "evaluation.opening_plies": (
        "train.py --config tiny --run_dir new --evaluation.opening_plies 13",
    ),
    "opening_plies": (
        "evaluate.py --weights 2x2 --opponents greedy --opening_plies 500",
        "evaluate.py --weights 2x2 --suite table --opening_plies 4",
        "play.py --mode dual --rows 2 --cols 2 --player greedy --player2 greedy --opening_plies 13",
    ),
    "evaluation.opponents": (
        "train.py --config tiny --run_dir new --evaluation.opponents greedy,,random",
        "train.py --config tiny --run_dir new --evaluation.opponents greedi",
        "train.py --config tiny --run_dir new --evaluation.opponents greedy,greedy",
        "train.py --config tiny --run_dir new --evaluation.opponents search:4",
        "train.py --config tiny --run_dir new --game.rows 8 --game.cols 8 "
        "--evaluation.opponents perfect",
    ),
    "evaluation.suite": (
        "train.py --config tiny --run_dir new --evaluation.suite tabel",
        "train.py --config tiny --run_dir new --evaluation.suite README.md",
        "train.py --config tiny --run_dir new --evaluation.suite 5x5_test",
        "train.py --config quick --run_dir new --game.rows 5 --game.cols 5 "
        "--evaluation.suite table",
    ),
    "opponents": (
        "evaluate.py --weights 2x2 --opponents greedy,,random",
        "evaluate.py --weights 2x2 --opponents ,",
        "evaluate.py --weights 2x2 --opponents greedy,random,greedy",
    ),
    "players": (
        "evaluate.py --weights 2x2 --suite table --players policy,,greedy",
        "evaluate.py --weights 2x2 --suite table --players policy,policy",
        "evaluate.py --weights 2x2 --suite table --players alphabeta",
        "make_suite.py --players greedy,,perfect --out new.npz",
        "make_suite.py --players greedy,policy --out new.npz",
    ),
    "player": ("play.py --player alphabeta:0",),
    "player2": ("play.py --mode ai --player greedy --player2 expert:1",),
    "suite": (
        "evaluate.py --weights 2x2 --suite README.md",
        "evaluate.py --weights 2x2",
    ),
    "weights": (
        "evaluate.py --weights README.md --suite table",
        "evaluate.py --weights pictures --suite table",
        "play.py --weights 2x2 --player greedy",
        "engine.py --weights empty.yaml",
        "train.py --config tiny --run_dir new --weights README.md",
    ),
    "checkpoint": (
        "evaluate.py --weights 2x2 --suite table --checkpoint 3",
        "evaluate.py --run_dir run --ladder --checkpoint 3",
    ),
    "ladder": ("evaluate.py --weights 2x2 --ladder",),
    "rows": ("evaluate.py --run_dir run --ladder --rows 3", "engine.py --weights 2x2 --rows 21"),
    "games": (
        "evaluate.py --weights 2x2 --suite table --games 4",
        "export.py --weights 2x2 --out new --opponents= --games 4",
        "make_suite.py --games 1 --split --out new.npz",
        "play.py --games 4",
        "play.py --web --games 100",
    ),
    "simulations": ("evaluate.py --weights 2x2 --suite table --players policy --simulations 9",),
    "preset": ("sweep.py --config tiny --out new", "sweep.py --config tiny --out new --seed 3"),
    "selfplay.games": (
        "sweep.py --config tiny --out new --preset batch --selfplay.games 8,16",
        "sweep.py --config tiny --out new --preset batch --selfplay.games 8",
        "sweep.py --config tiny --out new --selfplay.games 8,,16",
    ),
    "learner.updates_per_iteration": (
        "sweep.py --config tiny --out new --preset update_interval "
        "--learner.updates_per_iteration 8",
    ),
    "positions": (
        "study.py --config tiny --out new --positions 1",
        "study.py --out new --compare run --positions 500",
    ),
    "parts": (
        "gpu_compile.py --config tiny --parts search,,update",
        "gpu_compile.py --config tiny --parts search,search",
        "gpu_compile.py --config tiny --parts ,",
    ),
    "runs": ("compare.py --runs run run", "compare.py --runs pictures", "compare.py"),
    "names": ("compare.py --runs run pictures --names a a", "compare.py --runs run --names"),
    "compare": ("study.py --out new --compare run run",),
    "fewest": (
        "make_suite.py --rows 2 --cols 2 --fewest 13 --out new.npz",
        "make_suite.py --fewest 40 --out new.npz",
    ),
    "most": ("make_suite.py --rows 2 --cols 2 --most 13 --out new.npz",),
    "per_stratum": ("make_suite.py --fewest 9 --most 16 --per_stratum 1 2 3 --out new.npz",),
    "seconds": (
        "engine.py --weights 2x2 --seconds nan",
        "engine.py --weights 2x2 --seconds inf",
        "engine.py --weights 2x2 --seconds 2 --clock 60",
        "solve.py --seconds -1",
    ),
    "clock": ("engine.py --weights 2x2 --clock .nan",),
    "protocol": ("engine.py --weights 2x2 --protocol gtpp",),
    "process_id": (
        "train.py --config tiny --run_dir new --process_id 2 --num_processes 2 "
        "--coordinator_address a:1",
    ),
    "target": ("train.py --config tiny --run_dir new --target H200",),
    "once": ("watch.py --run_dir run --web --once",),
    "every": ("watch.py --run_dir run --once --every 3",),
    "host": (
        "play.py --host 127.0.0.1",
        "play.py --web --host 203.0.113.9 --port 0",
        "play.py --web --host no.such.host.invalid",
    ),
    "position": (
        "solve.py --rows 2 --cols 2 --position h0,0;h0,0",
        "analyse.py --weights 2x2 --position h0,0,h0,0",
        "analyse.py --weights 2x2 --position h0,0、x",
    ),
    "batch-size": ("train.py --run_dir new --batch-size 512 --lr 0.1",),
    "lr": ("train.py --run_dir new --lr --batch-size 512",),
    "learner.lr": ("train.py --config tiny --run_dir new --learner {lr: 0.1}",),
    "learner.learning_rate": (
        "train.py --config tiny --run_dir new --learner.learning_rate nan",
        "train.py --config tiny --run_dir new --learner.learning_rate .inf",
    ),
    "'-x'": ("train.py --config tiny -x 5", "solve.py -x"),
    "'4'": ("solve.py --rows 3 4",),
    "'word'": ("solve.py word",),
}


# Paths of every odd kind, names and numbers that are nearly right, options that contradict.
ODD_LINES = {
    "'--'": ("train.py --config tiny --run_dir new --",),
    "'\N{EN DASH}seed'": ("train.py --config tiny --run_dir new \N{EN DASH}seed 3",),
    "'--=3'": ("train.py --config tiny --run_dir new --=3",),
    "board": (
        "solve.py --rows 20 --cols 20 --position h0,0",
        "solve.py --rows 5 --cols 5 --table x.npz",
    ),
    "checkpoint": ("engine.py --weights 2x2 --checkpoint 1",),
    "clock": ("engine.py --weights 2x2 --clock 0",),
    "compare": (
        "benchmark.py --config tiny --compare pictures",
        "benchmark.py --config tiny --compare null.json",
        "benchmark.py --config tiny --compare loop",
        "study.py --out new --compare new",
        "study.py --out new --compare README.md",
        "study.py --out new --compare",
    ),
    "config": (
        "train.py --config tiny.yml --run_dir new",
        "train.py --config configs --run_dir new",
        "train.py --config pipe --run_dir new",
        "train.py --config loop --run_dir new",
        "train.py --config dangling --run_dir new",
        "train.py --config utf16.yaml --run_dir new",
        "train.py --config list.yaml --run_dir new",
        "train.py --config two.yaml --run_dir new",
        "train.py --config binary.npz --run_dir new",
        "sweep.py --config tiny,quick --out new",
    ),
    "coordinator_address": (
        "train.py --config tiny --run_dir new --num_processes 1 --process_id 0 "
        "--coordinator_address a:99999",
        "train.py --config tiny --run_dir new --num_processes 1 --process_id 0 "
        "--coordinator_address a:1.5",
    ),
    "devices": (
        "train.py --config tiny --run_dir new --devices -1",
        "train.py --config tiny --predict_memory --devices 99",
        "benchmark.py --config tiny --devices 99",
    ),
    "distributed": ("train.py --config tiny --run_dir new --distributed=1",),
    "evaluation.final_games": ("train.py --config tiny --run_dir new --evaluation.final_games 7",),
    "evaluation.opponents": (
        "train.py --config tiny --run_dir new --evaluation.opponents alphabeta:999999999999",
    ),
    "evaluation.suite": (
        "train.py --config tiny --run_dir new --evaluation.suite pipe",
        "train.py --config tiny --run_dir new --evaluation.suite folder.npz",
        "train.py --config tiny --run_dir new --evaluation.suite loop",
    ),
    "every": ("watch.py --run_dir run --every 0",),
    "fewest": ("make_suite.py --rows 1 --cols 1 --out new.npz",),
    "figures": (
        "evaluate.py --weights 2x2 --suite table --figures README.md",
        "evaluate.py --weights 2x2 --suite table --figures run/checkpoints",
        "evaluate.py --weights 2x2 --suite table --figures linkrun",
    ),
    "first": ("play.py --first ai --mode ai",),
    "game": (
        "train.py --config null.yaml --run_dir new",
        "train.py --config tiny --run_dir new --game '{rows: 2, rows: 3}'",
    ),
    "game.rows": (
        "train.py --config tiny --run_dir new --game.rows 二",
        "train.py --config tiny --run_dir new --game.rows 2.",
        "train.py --config tiny --run_dir new --game.rows '2 2'",
    ),
    "games": (
        "evaluate.py --weights 2x2 --opponents greedy --games 3",
        "play.py --mode dual --player greedy --player2 greedy --games 3",
        "export.py --weights 2x2 --out new --games 3",
        "make_suite.py --games 100001 --out new.npz",
    ),
    "heartbeat_seconds": ("train.py --config tiny --run_dir new --heartbeat_seconds 5",),
    "host": (
        "play.py --web --host 'a b' --port 0",
        "play.py --web --host 999.1.1.1 --port 0",
        "play.py --web --host [::1] --port 0",
    ),
    "json": (
        "evaluate.py --weights 2x2 --suite table --json link.json",
        "evaluate.py --weights 2x2 --suite table --json linkrun/summary.json",
        "evaluate.py --weights 2x2 --suite table --json run/x/../summary.json",
        "evaluate.py --weights 2x2 --suite table --json pictures/../run/summary.json",
        "evaluate.py --weights 2x2 --suite table --json folder.json",
        "evaluate.py --weights 2x2 --suite table --json loop",
        "evaluate.py --weights 2x2 --suite table --json dangling.json",
        "analyse.py --weights 2x2 --json link.json",
        "analyse.py --weights 2x2 --json --",
        "benchmark.py --config tiny --json link.json",
        "benchmark.py --config tiny --json folder.json",
        "gpu_compile.py --config tiny --json link.json",
        "evaluate.py --weights 2x2 --suite table --figures new.json --json new.json",
    ),
    "keep_checkpoints": ("train.py --config tiny --run_dir new --keep_checkpoints 0",),
    "labels": (
        "study.py --config tiny --out new --labels missing.npz",
        "study.py --config tiny --out new --labels binary.npz",
    ),
    "learner": ("train.py --config tiny --run_dir new --learner []",),
    "learner.learning_rate": ("train.py --config tiny --run_dir new --learner.learning_rate 1,5",),
    "load": (
        "play.py --load pictures",
        "play.py --load loop",
        "play.py --load null.json",
        "play.py --load deep.json",
        "play.py --load latin.txt",
        "play.py --load gif.json",
        "analyse.py --weights 2x2 --load pipe",
        "analyse.py --weights 2x2 --load games/1.json --rows 2 --cols 9",
    ),
    "minutes": ("study.py --config tiny --out new --minutes -1",),
    "mode": (
        "play.py --web --mode human",
        "play.py --mode Human",
    ),
    "name": (
        "export.py --weights 2x2 --out new --name a/b",
        "export.py --weights 2x2 --out new --name ''",
        f"export.py --weights 2x2 --out new --name {244 * 'a'}",
    ),
    "names": ("compare.py --runs run --names a b",),
    "network.channels": ("train.py --resume --run_dir run --network.channels 4",),
    "network.trunk": (
        "train.py --config tiny --run_dir new --network.trunk Conv",
        "sweep.py --config tiny --out new --network.trunk conv,foo",
    ),
    "noise": ("make_suite.py --noise 2 --out new.npz",),
    "num_processes": ("train.py --config tiny --run_dir new --num_processes 2",),
    "opponents": (
        "evaluate.py --weights 2x2 --opponents search:0",
        "evaluate.py --weights 2x2 --opponents search:",
        "evaluate.py --weights 2x2 --opponents alphabeta",
        "evaluate.py --weights 2x2 --opponents alphabeta:1.5",
        "evaluate.py --weights 2x2 --opponents expert",
        "evaluate.py --weights 2x2 --opponents expert:1e9",
        "evaluate.py --weights 2x2 --opponents perfect:nan",
        "evaluate.py --weights 2x2 --opponents greedy:1",
        "evaluate.py --weights 2x2 --opponents 'random greedy'",
        "evaluate.py --weights 2x2 --opponents 贪心",
        "export.py --weights 2x2 --out new --opponents random,random",
    ),
    "out": (
        "export.py --weights 2x2 --out run/checkpoints",
        "export.py --weights 2x2 --out run/checkpoints/49",
        "export.py --weights 2x2 --out linkrun",
        "compare.py --runs run --out x.gif",
        "compare.py --runs run --out link.png",
        "make_suite.py --out x.txt",
        "make_suite.py",
        "sweep.py --config tiny --seed 1,2",
        "make_suite.py --out folder.npz",
        "make_suite.py --out run/x/../checkpoints/48/x.npz",
        "make_suite.py --out loop",
        "study.py --config tiny --out run/checkpoints/x",
        "study.py --config tiny --out linkrun",
        "study.py --config tiny --out pipe",
        "sweep.py --config tiny --out run/checkpoints/x --selfplay.games 8,16",
        "sweep.py --config tiny --out linkrun --selfplay.games 8,16",
        "sweep.py --config tiny --out pipe --selfplay.games 8,16",
        "sweep.py --config tiny --out loop --selfplay.games 8,16",
        "export.py --weights 2x2 --out loop",
    ),
    "parts": ("gpu_compile.py --config tiny --parts 'search update'",),
    "per_stratum": ("make_suite.py --per_stratum 0 --out new.npz",),
    "player": (
        "play.py --player human",
        "play.py --player policy",
        "play.py --player greedy,random",
        "play.py --rows 20 --cols 20",
    ),
    "player2": ("play.py --mode ai --player2 search:4",),
    "players": (
        "evaluate.py --weights 2x2 --suite table --players 'policy,search'",
        "evaluate.py --weights 2x2 --suite table --players ''",
        "make_suite.py --players '' --out new.npz",
        "make_suite.py --players greedy,,x --out new.npz",
    ),
    "ponder": ("engine.py --weights 2x2 --ponder=1",),
    "port": (
        "play.py --web --port http",
        "watch.py --run_dir run --port 1",
    ),
    "position": (
        "solve.py --position .",
        "solve.py --position loop",
        "solve.py --position README.md",
        "solve.py --position nul.txt",
        "solve.py --position missing.txt",
        "solve.py --position 99",
        "solve.py --position h2",
        "solve.py --position 'h0,0|h0,1'",
        "solve.py --position '[0, 1]'",
        "solve.py --position 'h0,0 h0\N{FULLWIDTH COMMA}0'",
        "analyse.py --weights 2x2 --position h0,0 --load games/1.json",
        "analyse.py --weights 2x2 --position '0 1 2 3 4 5 6 7 8 9 10 11'",
    ),
    "preset": ("sweep.py --config tiny --out new --preset batches",),
    "protocol": ("engine.py --weights 2x2 --protocol GTP",),
    "resume": ("train.py --config tiny --run_dir new --resume=banana",),
    "rounds": (
        "benchmark.py --config tiny --rounds 0",
        "sweep.py --config tiny --out new --rounds 0 --selfplay.games 8,16",
    ),
    "rows": ("play.py --load games/1.json --rows 2",),
    "run-dir": ("train.py --config tiny --run-dir new",),
    "run_dir": (
        "train.py --config tiny --run_dir run/checkpoints/50",
        "train.py --config tiny --run_dir run/tensorboard",
        "train.py --config tiny --run_dir run/checkpoints/48/x",
        "train.py --config tiny --run_dir linkrun",
        "train.py --config tiny --run_dir dangling",
        "train.py --config tiny --run_dir loop",
        "train.py --config tiny --run_dir /dev/null",
        "train.py --config tiny --run_dir run --seeds 1 2",
        "train.py --config tiny --run_dir loop --seeds 1 2",
        "train.py --resume --run_dir README.md",
        "train.py --resume --run_dir loop",
        "train.py --config tiny --run_dir --seed 3",
        "evaluate.py --run_dir loop --ladder",
        "analyse.py --position h0,0",
        "engine.py",
        "export.py --run_dir pictures",
        "watch.py --run_dir new",
        "watch.py --run_dir loop",
        "benchmark.py --config tiny --run_dir x",
        "train.py --resume --run_dir new",
        "train.py --resume --run_dir pictures",
        "evaluate.py --run_dir run/config.yaml --ladder",
        "watch.py",
    ),
    "run_dir2": ("evaluate.py --weights 2x2 --suite table --run_dir2 pipe",),
    "runs": (
        "compare.py --runs run",
        "compare.py --runs run linkrun",
        "compare.py --runs run pictures/../run",
        "compare.py --runs pipe",
        "compare.py --runs loop",
    ),
    "save": (
        "play.py --save x.png",
        "play.py --save .json",
        "play.py --save folder.json",
        "play.py --save dangling.json",
        "play.py --save loop",
        "play.py --save link.json",
        "play.py --save run/x/../summary.json",
        "play.py --save run/checkpoints/1.json",
        "play.py --save games/1.json --load pictures/../games/2.json",
        "play.py --mode dual --player greedy --player2 greedy --save run/checkpoints/x",
        "play.py --mode dual --player greedy --player2 greedy --save run/checkpoints",
        "play.py --mode dual --player greedy --player2 greedy --save pipe",
        "play.py --mode dual --player greedy --player2 greedy --save x.JSON",
    ),
    "seconds": (
        "play.py --seconds nan",
        "solve.py --seconds 1e9",
    ),
    "seed": (
        "train.py --config tiny --run_dir new --seeds 1 --seed 2",
        "train.py --config tiny --run_dir new --seed 4294967296",
    ),
    "seeds": (
        "train.py --config tiny --run_dir new --seeds 1 1",
        "train.py --config tiny --run_dir new --seeds 1,2",
        "train.py --config tiny --run_dir new --seeds 1 2 --num_processes 2",
    ),
    "selfplay.adjudicate_below": (
        "train.py --config tiny --run_dir new --selfplay.adjudicate_below 99",
    ),
    "selfplay.game": ("sweep.py --config tiny --out new --selfplay.game 8,16",),
    "selfplay.games": (
        "sweep.py --config tiny --out new --selfplay.games 0,8",
        "sweep.py --config tiny --out new --selfplay.games 8\N{FULLWIDTH COMMA}16",
    ),
    "selfplay.start_ply": ("train.py --config tiny --run_dir new --selfplay.start_ply 99",),
    "suite": (
        "evaluate.py --weights 2x2 --suite pictures",
        "evaluate.py --weights 2x2 --suite binary.npz",
        "evaluate.py --weights 2x2 --suite loop",
        "evaluate.py --weights 2x2 --suite TABLE",
        "evaluate.py --weights 2x2 --suite auto",
    ),
    "table": (
        "solve.py --table pictures",
        "solve.py --table loop",
        "solve.py --table link.json",
        "solve.py --table run/checkpoints/48/x",
        "solve.py --table binary.npz",
    ),
    "target": ("gpu_compile.py --config tiny --target Voodoo",),
    "temperature": (
        "play.py --temperature 0.001",
        "play.py --temperature 200",
        "play.py --mode ai --temperature 1 --player greedy --player2 greedy",
    ),
    "trace": (
        "benchmark.py --config tiny --trace pipe",
        "benchmark.py --config tiny --trace run/checkpoints/x",
        "benchmark.py --config tiny --trace linkrun",
    ),
    "version": ("train.py --config tiny --run_dir new --version",),
    "weights": (
        "train.py --resume --weights 2x2 --run_dir run",
        "train.py --config tiny --run_dir new --weights loop",
        "train.py --config tiny --run_dir new --weights net",
        "train.py --config tiny --run_dir new --weights dangling",
        "evaluate.py --weights 2x2 --suite table --rows 3 --cols 9",
        "evaluate.py --run_dir run/ --weights 2x2 --suite table",
        "evaluate.py --weights '2x2 ' --suite table",
        "evaluate.py --weights 2\N{MULTIPLICATION SIGN}2 --suite table",
        "evaluate.py --weights / --suite table",
        "evaluate.py --weights 2x2,3x3 --suite table",
        "evaluate.py --weights run/checkpoints --suite table",
        "evaluate.py --weights run/checkpoints/48 --suite table",
        "play.py --load games/1.json --weights 2x2",
        "make_suite.py --weights 3x3 --out new.npz",
    ),
    "weights2": (
        "evaluate.py --weights 2x2 --suite table --weights2 nope",
        "evaluate.py --weights 2x2 --suite table --run_dir2 run --weights2 2x2",
        "play.py --mode ai --weights 2x2 --weights2 3x3",
    ),
    "work": (),
}


@pytest.fixture
def place(tmp_path) -> Path:
    """A folder with files that a wrong command line must not touch."""
    run = tmp_path / "run"
    for folder in (run / "checkpoints" / "48", tmp_path / "pictures", tmp_path / "games"):
        folder.mkdir(parents=True)
    (run / "config.yaml").write_bytes((ROOT / "configs" / "tiny.yaml").read_bytes())
    record = {"iteration": 48, "speed/minutes": 3.0}
    (run / "metrics.jsonl").write_text(json.dumps(record) + "\n")
    game = '{"rows": 3, "cols": 3, "moves": [0]}'
    for name, text in {
        "README.md": "# title",
        "empty.yaml": "",
        "nothing.yaml": "# all by default\nnetwork: {}\n",
        "notes.txt": "mine",
        "old.npz": "mine",
        "pictures/cat.jpg": "mine",
        "games/1.json": game,
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def odd_place(place) -> Path:
    """The same with links, a pipe, folders named like files, and text in other encodings."""
    for name in ("folder.json", "folder.npz", "folder.png", "leer"):
        (place / name).mkdir()
    os.mkfifo(place / "pipe")
    for link, to in {
        "loop": "loop",
        "dangling": "nowhere",
        "dangling.json": "nowhere/x.json",
        "linkrun": "run",
        "link.json": "run/summary.json",
        "link.png": "run/curves.png",
    }.items():
        (place / link).symlink_to(to)
    for name, content in {
        "run/summary.json": b"{}",
        "run/curves.png": b"mine",
        "bad.jsonl": b"[]\n",
        "binary.npz": bytes(range(256)) * 20,
        "deep.json": b"[" * 50_000,
        "gif.json": b"GIF89a\0\1\2",
        "latin.txt": b"h0,0 \xe9",
        "list.yaml": b"- 1\n",
        "net.safetensors": b"mine",
        "nul.txt": b"h0,0\0",
        "null.json": b"null",
        "null.yaml": b"game: null\n",
        "two.yaml": b"seed: 1\n---\nseed: 2\n",
        "utf16.yaml": "seed: 1".encode("utf-16"),
    }.items():
        (place / name).write_bytes(content)
    return place


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(p): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


@pytest.mark.parametrize("field", WRONG_LINES)
def test_a_wrong_line_names_its_field_and_touches_nothing(field, place):
    before = contents(place)
    for line in WRONG_LINES[field]:
        words = re.findall(r"\{.*?\}|\S+", line)
        done = run_here(*words, cwd=place)
        assert done.returncode == 2, (line, done)
        assert done.stderr.startswith(f"error: {field}: "), (line, done.stderr)
        assert done.stderr.count("\n") == 1 and len(done.stderr) < 600, (line, done.stderr)
        assert not re.search(r"must be (int|float)\b|: True ", done.stderr), (line, done.stderr)
        assert contents(place) == before, line


@pytest.mark.parametrize("field", ODD_LINES)
def test_an_odd_line_names_its_field_and_touches_nothing(field, odd_place):
    before = contents(odd_place)
    for line in ODD_LINES[field]:
        done = run_here(*shlex.split(line), cwd=odd_place)
        said = [said for said in done.stderr.splitlines() if not said.startswith(MARK)]
        assert done.returncode == 2 and len(said) == 1, (line, done)
        assert said[0].startswith(f"error: {field}: ") and len(said[0]) < 600, (line, said)
        assert contents(odd_place) == before, line


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_names_types_in_words(script):
    text = " ".join(run_here(script, "--help").stdout.split())
    assert not re.search(r"\b(int|float)_\d|<class|ClosedUnit|Literal|type: |null", text)


# Files


def damaged(whole: bytes, chance: random.Random) -> bytes:
    """Return a file that was cut off, changed, or is of another kind."""
    position, content = chance.randrange(len(whole) + 1), bytearray(whole)
    kind = chance.randrange(6)
    if kind == 0:
        return whole[:position]
    if kind == 1:
        for _ in range(chance.choice((1, 4, 64))):
            content[chance.randrange(len(content))] = chance.randrange(256)
        return bytes(content)
    if kind == 2:
        return chance.randbytes(chance.choice((0, 1, 100)))
    if kind == 3:
        return whole[:position] + chance.randbytes(8) + whole[position:]
    if kind == 4:
        return chance.choice((b"[" * 100_000, b"{}", b"[]", b"null", b"NaN", b"1e999", b"9" * 5000))
    return whole[position:] + whole[:position]


def twisted(content: typing.Any, chance: random.Random) -> typing.Any:
    """Return the content of a JSON file with one value replaced, removed or added."""
    values = [None, -1, 1e300, 10**30, "text", "\0", [], {}, True, [[]], {"a": 1}, 0, "../" * 50]
    if isinstance(content, dict) and content and chance.random() < 0.9:
        name = chance.choice(list(content))
        if chance.random() < 0.2:
            return {key: value for key, value in content.items() if key != name}
        return content | {name: twisted(content[name], chance)}
    if isinstance(content, list) and content and chance.random() < 0.9:
        place = chance.randrange(len(content))
        return [*content[:place], twisted(content[place], chance), *content[place + 1 :]]
    return chance.choice(values)


def check_damage(
    file: Path, use: Callable[[], object], count: int, as_json: bool = False
) -> dict[str, int]:
    """Damage a file in many ways; using it works or ends with an InputError of one line."""
    whole, ended = file.read_bytes(), {"refused": 0, "accepted": 0}
    chance = random.Random(file.name)
    for number in range(count):
        if as_json and number % 2:
            first = whole.decode().splitlines()[0] if file.suffix == ".jsonl" else whole
            file.write_text(json.dumps(twisted(json.loads(first), chance)))
        else:
            file.write_bytes(damaged(whole, chance))
        try:
            use()
            ended["accepted"] += 1
        except InputError as error:
            ended["refused"] += 1
            assert "\n" not in str(error) and len(str(error)) < 2000
    file.write_bytes(whole)
    return ended


def folder_of_weights(folder: Path) -> Path:
    for suffix in ("json", "yaml", "safetensors"):
        source = ROOT / "jaxzero" / "weights" / f"2x2.{suffix}"
        (folder / f"net.{suffix}").write_bytes(source.read_bytes())
    return folder / "net.safetensors"


@pytest.mark.parametrize("suffix", ["json", "yaml", "safetensors"])
def test_damaged_files_of_a_network(suffix, tmp_path):
    from jaxzero.runs.weights import load_weights, read_initial_weights

    file = folder_of_weights(tmp_path)
    load = read_initial_weights if suffix == "json" else load_weights
    ended = check_damage(file.with_suffix(f".{suffix}"), lambda: load(str(file)), DAMAGES)
    assert ended["refused"] > DAMAGES // 4, ended


def test_weights_that_are_not_finite_or_not_float_are_refused(tmp_path):
    from safetensors.numpy import load_file, save_file

    from jaxzero.runs.weights import load_weights

    file = folder_of_weights(tmp_path)
    whole = load_file(file)
    name = next(iter(whole))
    for wrong, words in (
        (np.full_like(whole[name], np.nan), "is not finite"),
        (np.full_like(whole[name], -np.inf), "is not finite"),
        (whole[name].astype(np.int32), "is int32"),
    ):
        save_file(whole | {name: wrong}, file)
        with pytest.raises(InputError, match=rf"^weights: {name} in .*{words}"):
            load_weights(str(file))


def test_damaged_suites_tables_and_solved_positions(tmp_path):
    from jaxzero.game import DotsAndBoxes
    from jaxzero.measure.make_suite import read_store, write_store
    from jaxzero.measure.suite import Suite, read_suite, write_suite
    from jaxzero.solver.tablebase import ILLEGAL, Table, load_table, save_table

    game = DotsAndBoxes(1, 2)
    drawn = np.eye(game.num_edges, dtype=bool)
    moves = np.where(drawn, ILLEGAL, 1).astype(np.int8)
    suite, table, store = (tmp_path / f"{name}.npz" for name in ("suite", "table", "store"))
    write_suite(Suite("", game, drawn, moves, np.full(len(drawn), "greedy")), suite)
    save_table(Table(np.zeros(1 << game.num_edges, np.int8)), game, table)
    write_store(
        store, game, 10, {row.tobytes(): (m, True) for row, m in zip(drawn, moves, strict=True)}
    )
    for file, use in (
        (suite, lambda: read_suite(suite, "s", game)),
        (table, lambda: load_table(game, table)),
        (store, lambda: read_store(store, game, 10)),
    ):
        use()
        assert check_damage(file, use, 150)["refused"] > 75


YAMLS = {
    "a: &a [1]\nb: *a": "an alias",
    "a: &a {b: *a}": "an alias",
    "seed: 1\nseed: 2": "'seed' is there twice",
    "[" * 10_000: "nested more than 32 deep",
    "seed: !!python/object/apply:os.system [x]": "type .* is not allowed",
    "seed: !!timestamp 2001-99-99": "type .* is not allowed",
    "seed: !!bool maybe": "is not YAML",
    "seed: !!float 1" + ":1" * 250: "is not YAML",
    "? [1]\n: 2": "a key is a list",
    "<<: {seed: 1}": "no such field",
    "seed: 2001-99-99": "must be a whole number",
    'seed: "3"': "must be a whole number",
    "seed: [3]": "must be a whole number",
    "learner: {learning_rate: .nan}": "must be a number",
    "learner: {learning_rate: 1e300}": "must be a number",
    "iterations: 1" + "0" * 400: "must be a whole number",
    "seed: " + "9" * 5000: "is not YAML",
    "network: {safe_end: 1}": "must be true or false",
    "evaluation: {opponents: 'greedy,,random'}": "has an empty entry",
    "#" * 70_000: "more than 65536 bytes",
}


@pytest.mark.parametrize("content", YAMLS, ids=[text[:20] for text in YAMLS])
def test_configs_that_only_a_stranger_writes(content, tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(content)
    with pytest.raises(InputError, match=YAMLS[content]) as caught:
        load_config(file)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 600


def test_damaged_configs(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_bytes((ROOT / "configs" / "tiny.yaml").read_bytes())
    assert check_damage(file, lambda: load_config(file), 60)["refused"] > 20


def test_the_parser_opens_no_file_by_itself(tmp_path):
    for name in ("network", "game"):
        with pytest.raises(InputError, match=f"^{name}: /dev/zero must be a mapping"):
            parse(parser_of("train.py"), [f"--{name}=/dev/zero"])
    with patch.object(jsonargparse.Path, "read_text", side_effect=AssertionError):
        load_config(ROOT / "configs" / "tiny.yaml")


def test_damaged_folders_of_a_run(tmp_path):
    from jaxzero.runs.compare_runs import format_runs, group_runs, levels, read_run
    from jaxzero.runs.run_dir import finished_checkpoints
    from jaxzero.runs.watching import watch_run
    from jaxzero.runs.weights import effort_before

    (tmp_path / "config.yaml").write_bytes((ROOT / "configs" / "tiny.yaml").read_bytes())
    metrics, begun = tmp_path / "metrics.jsonl", tmp_path / "begun_with.json"
    line = {"iteration": 3, "speed/games": 64, "speed/minutes": 0.5, "speed/seconds": 1.0}
    line |= {"suite/policy/optimal_share": 0.5, "learn/policy_loss": 1.0}
    metrics.write_text(f"{json.dumps(line)}\n" * 3)
    begun.write_text(json.dumps({"weights": "2x2", "games": 3, "minutes": 0.5}))

    def compare() -> None:
        groups = group_runs([read_run(tmp_path)])
        format_runs(groups), [levels(group) for group in groups]

    check_damage(metrics, lambda: watch_run(tmp_path), 50, as_json=True)
    check_damage(metrics, compare, 50, as_json=True)
    assert check_damage(begun, lambda: effort_before(tmp_path), 100, as_json=True)["refused"] > 30
    (tmp_path / "checkpoints").write_text("in the way")
    with pytest.raises(InputError, match=r"^run_dir: .*checkpoints is no folder"):
        finished_checkpoints(tmp_path / "checkpoints")


def test_a_folder_with_signs_of_markup_is_watched(tmp_path):
    run = tmp_path / "a[" / "red]"  # together "[/red]"
    run.mkdir(parents=True)
    (run / "config.yaml").write_bytes((ROOT / "configs" / "tiny.yaml").read_bytes())
    done = run_here("watch.py", "--run_dir", "a[/red]", "--once", cwd=tmp_path)
    assert done.returncode == 0 and "a[/red]" in done.stdout


def test_damaged_results_of_benchmarks_and_studies(tmp_path):
    from jaxzero.performance.report import comparison, read_result
    from jaxzero.study.results import COSTS, ERRORS, format_results, read_results

    benchmark, study = tmp_path / "benchmark.json", tmp_path / "study" / "result.json"
    study.parent.mkdir()
    speed = {"games_per_second": 2.0, "config": {"seed": 0}, "device": "cpu", "notes": []}
    benchmark.write_text(json.dumps(speed))
    errors, costs = dict.fromkeys(ERRORS, 0.5), dict.fromkeys(COSTS, 2.0)
    network = {"trunk": "conv", "channels": 8, "blocks": 1, "features": "raw"}
    config = {"network": network, "game": {"rows": 2, "cols": 2}}
    curve = [{"seconds": 1.0, "positions": 2, **errors}]
    result = {"config": config, "by_undrawn": {"1-8": errors}, "curve": curve, **errors, **costs}
    study.write_text(json.dumps(result))

    def compare() -> None:
        comparison(speed, read_result(benchmark))

    compare()
    assert check_damage(benchmark, compare, 100, as_json=True)["refused"] > 30
    read = [study.parent]
    format_results(read_results(read))
    used = lambda: format_results(read_results(read))  # noqa: E731
    assert check_damage(study, used, 200, as_json=True)["refused"] > 60


def test_damaged_results_of_a_sweep(tmp_path):
    from jaxzero.performance.sweep import COLUMNS, open_folder, read_grid, read_row, write_report

    words = [f"--out={tmp_path}", "--selfplay.games=16,32", "--config", "configs/tiny.yaml"]
    grid, _ = read_grid(parser_of("sweep.py"), words)
    open_folder(grid, tmp_path)
    file = tmp_path / "points" / "games=16.json"
    row = {"status": "ok", "device": "cpu", "notes": [], **dict.fromkeys(COLUMNS, 1.0)}
    file.write_text(json.dumps(row))

    def use() -> None:
        write_report(tmp_path, {}, [{"settings": {"selfplay.games": 16}} | read_row(file)])

    use()
    check_damage(file, use, 100, as_json=True)
    used = lambda: open_folder(grid, tmp_path)  # noqa: E731
    check_damage(tmp_path / "sweep.json", used, 60, as_json=True)
