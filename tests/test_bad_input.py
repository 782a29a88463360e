"""Test wrong input: every option of every script and every kind of file.

Wrong input ends in one InputError that names the field and the value: exit code 2, one line, no
traceback, nothing written. A damaged file never raises another error.
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
from jaxzero.config import Config
from jaxzero.config.files import typed_fields
from jaxzero.errors import InputError
from jaxzero.host.status import MARK

SCRIPTS = sorted(path.name for path in (ROOT / "scripts").glob("*.py"))
LONGEST = 600  # characters of a line
CONFIG_FIELDS = set(dict(typed_fields(Config)))

# Wrong command lines. The text before the bar is the start of the error: field and value. The
# lines run in `place`, which has a run of 48 iterations, a game, a picture folder and other files.
TRAIN = "train.py --config tiny --run_dir new"
WRONG_LINES = """\
--: | TRAIN --
--=3: | TRAIN --=3
-x: | train.py --config tiny -x 5
4: | solve.py --rows 3 4
word: | solve.py word
\N{EN DASH}seed: | TRAIN \N{EN DASH}seed 3
batch-size: 512: no such field | train.py --run_dir new --batch-size 512 --lr 0.1
run-dir: new: no such field | train.py --config tiny --run-dir new
learner.lr: 0.1 in --learner | TRAIN --learner '{lr: 0.1}'
learner: [] | TRAIN --learner []
game: {rows: 2, rows: 3} | TRAIN --game '{rows: 2, rows: 3}'
game.rows: 二 | TRAIN --game.rows 二
distributed: | TRAIN --distributed=1
name: | export.py --weights 2x2 --out new --name ''
json: | analyse.py --weights 2x2 --json --
run_dir: | train.py --config tiny --run_dir --seed 3

config: name | train.py --run_dir new
config: name | train.py --predict_memory
config: name | sweep.py --out new --selfplay.games_per_iteration 8,16
config: tiny.yml | train.py --run_dir new --config tiny.yml
config: run is a folder | train.py --run_dir new --config run
config: pipe | train.py --run_dir new --config pipe
config: loop | train.py --run_dir new --config loop
config: empty.yaml | train.py --run_dir new --config empty.yaml
config: README.md | train.py --run_dir new --config README.md
config: utf16.yaml | train.py --run_dir new --config utf16.yaml
config: list.yaml | train.py --run_dir new --config list.yaml
config: two.yaml | train.py --run_dir new --config two.yaml
minutes: 1:30 in | train.py --run_dir new --config minutes.yaml
game: None in null.yaml | train.py --run_dir new --config null.yaml

selfplay.random_opening_moves: 13 | TRAIN --selfplay.random_opening_moves 13
selfplay.late_start_moves: 99 | TRAIN --selfplay.late_start_moves 99
selfplay.games_per_iteration: 1000000000 | TRAIN --selfplay.games_per_iteration 1000000000
evaluation.final_games: 7 | TRAIN --evaluation.final_games 7
evaluation.opponents: greedi | TRAIN --evaluation.opponents greedi
evaluation.opponents: search:4 | TRAIN --evaluation.opponents search:4
evaluation.opponents: perfect | TRAIN --game.rows 8 --game.cols 8 --evaluation.opponents perfect
evaluation.suite: tabel | TRAIN --evaluation.suite tabel
evaluation.suite: 5x5_test | TRAIN --evaluation.suite 5x5_test
evaluation.suite: table | train.py --config cpu --run_dir new --evaluation.suite table
evaluation.suite: folder.npz | TRAIN --evaluation.suite folder.npz
network.channels: 4 contradicts | train.py --resume --run_dir run --network.channels 4
iterations: 10 | train.py --resume --run_dir run --iterations 10
minutes: 2.9 | train.py --resume --run_dir run --minutes 2.9
devices: 99 | train.py --config tiny --predict_memory --devices 99
devices: 99 | TRAIN --devices 99
heartbeat_seconds: 5 | TRAIN --heartbeat_seconds 5
num_processes: 2 | TRAIN --num_processes 2

run_dir: name | train.py --config tiny
run_dir: linkrun | train.py --config tiny --run_dir linkrun
run_dir: run/checkpoints/50 | train.py --config tiny --run_dir run/checkpoints/50
run_dir: pictures | train.py --config tiny --run_dir pictures
run_dir: loop | train.py --config tiny --run_dir loop
run_dir: new | train.py --resume --run_dir new
run_dir: name | evaluate.py --suite table
run_dir2: pipe | evaluate.py --weights 2x2 --suite table --run_dir2 pipe
weights: README.md | evaluate.py --weights README.md --suite table
weights: pictures | evaluate.py --weights pictures --suite table
weights: 2x2 cannot | train.py --resume --run_dir run --weights 2x2
weights: 2x2 cannot | evaluate.py --run_dir run --weights 2x2 --suite table
weights: 2x2 was | evaluate.py --weights 2x2 --suite table --rows 3 --cols 9
weights: 2x2 needs | play.py --weights 2x2 --player greedy
weights: 3x3 plays | make_suite.py --weights 3x3 --out new.npz
weights2: 2x2 cannot | evaluate.py --weights 2x2 --suite table --run_dir2 run --weights2 2x2
weights2: 2x2 needs | play.py --mode ai --player greedy --weights2 2x2 --player2 greedy
weights2: 3x3 was | play.py --mode ai --weights 2x2 --weights2 3x3
checkpoint: 3 | evaluate.py --weights 2x2 --suite table --checkpoint 3
checkpoint2: 3 | play.py --mode ai --checkpoint2 3

out: run holds | sweep.py --config tiny --out run --selfplay.games_per_iteration 8,16
out: run holds | export.py --weights 2x2 --out run --name config --overwrite
out: list.yaml exists | export.py --weights 2x2 --out . --name list
out: run/checkpoints/48/x.npz | make_suite.py --out run/checkpoints/48/x.npz
out: old.npz | make_suite.py --out old.npz
out: name | export.py --weights 2x2
json: run/metrics.jsonl | evaluate.py --weights 2x2 --suite table --json run/metrics.jsonl
json: link.json | benchmark.py --config tiny --json link.json
json: README.md | solve.py --rows 1 --cols 1 --json README.md
json: loop | analyse.py --weights 2x2 --json loop
json: new.json | evaluate.py --weights 2x2 --suite table --figures new.json --json new.json
figures: run | evaluate.py --weights 2x2 --suite table --figures run
figures: new | evaluate.py --weights 2x2 --opponents greedy --figures new
save: run | play.py --mode dual --player greedy --player2 greedy --save run
save: games | play.py --mode dual --player greedy --player2 greedy --save games
save: x.JSON | play.py --mode dual --player greedy --player2 greedy --save x.JSON
save: games/1.json | play.py --player greedy --save games/1.json
save: a.ccgc.json | play.py --rows 2 --save a.ccgc.json
save: x.png | play.py --save x.png

opponents: greedy,,random | evaluate.py --weights 2x2 --opponents greedy,,random
opponents: greedy | evaluate.py --weights 2x2 --opponents greedy,random,greedy
opponents: search:0 | evaluate.py --weights 2x2 --opponents search:0
opponents: perfect:nan | evaluate.py --weights 2x2 --opponents perfect:nan
players: greedy needs | evaluate.py --weights 2x2 --players greedy
players: greedy have | evaluate.py --weights 2x2 --weights2 2x2 --suite table --players greedy
players: policy | make_suite.py --players greedy,policy --out new.npz
player: human | play.py --player human
player: perfect | play.py --rows 8 --cols 8
player2: expert:1 | play.py --mode ai --player greedy --player2 expert:1
suite: README.md | evaluate.py --weights 2x2 --suite README.md
suite: name | evaluate.py --weights 2x2
weights2: 2x2 needs | evaluate.py --weights 2x2 --weights2 2x2 --opponents greedy
simulations: 9 | evaluate.py --weights 2x2 --suite table --players policy --simulations 9
opening_plies: 500 | evaluate.py --weights 2x2 --opponents greedy --opening_plies 500
opening_plies: 4 | evaluate.py --weights 2x2 --suite table --opening_plies 4
games: 3 | evaluate.py --weights 2x2 --opponents greedy --games 3
games: 3 | export.py --weights 2x2 --out new --games 3
games: 3 | play.py --mode dual --player greedy --player2 greedy --games 3
games: 4 | play.py --games 4
games: 4 | play.py --web --games 4
games: 1 | make_suite.py --games 1 --split --out new.npz
name: a/b | export.py --weights 2x2 --out new --name a/b
temperature: 0.001 | play.py --temperature 0.001
temperature: 1.0 | play.py --mode ai --temperature 1 --player greedy --player2 greedy
seconds: 2 | engine.py --weights 2x2 --seconds 2 --clock 60
host: 203.0.113.9 | play.py --web --host 203.0.113.9 --port 0
host: 127.0.0.1 | play.py --host 127.0.0.1

board: 20x20 | solve.py --rows 20 --cols 20 --position h0,0
seconds: 0 | solve.py --seconds 0
seconds: nan | solve.py --seconds nan
board: 8x8 | make_suite.py --rows 8 --cols 8 --players greedy --out new.npz
board: 6x10 | engine.py --weights 5x5 --rows 6 --cols 10
position: edge h0,0 | solve.py --rows 2 --cols 2 --position h0,0;h0,0
position: edge x | analyse.py --weights 2x2 --position h0,0、x
position: missing.txt | solve.py --position missing.txt
position: edge 99 | solve.py --position 99
position: h0,0 cannot | analyse.py --weights 2x2 --position h0,0 --load games/1.json
position: h0,0 cannot | analyse.py --weights 2x2 --position h0,0 --game games/1.json
load: games/1.json cannot | analyse.py --weights 2x2 --load games/1.json --game games/1.json
simulations: 0 cannot | analyse.py --weights 2x2 --simulations 0 --game games/1.json
game: null.json | analyse.py --weights 2x2 --game null.json
game: none | analyse.py --weights 2x2 --game none
position: no edge | analyse.py --weights 2x2 --position '0 1 2 3 4 5 6 7 8 9 10 11'
load: null.json | play.py --load null.json
load: deep.json | play.py --load deep.json
load: latin.txt | play.py --load latin.txt
rows: 2 contradicts | analyse.py --weights 2x2 --load games/1.json --rows 2 --cols 9
fewest: 13 | make_suite.py --rows 2 --cols 2 --fewest 13 --out new.npz
fewest: 40 | make_suite.py --fewest 40 --out new.npz
most: 0 | make_suite.py --rows 1 --cols 1 --fewest 0 --most 0 --out new.npz
per_stratum: 1 2 3 | make_suite.py --fewest 9 --most 16 --per_stratum 1 2 3 --out new.npz
trace: null.json | benchmark.py --config tiny --trace null.json
preset: nothing | sweep.py --config tiny --out new --selfplay.games_per_iteration 8
selfplay: 16 | sweep.py --config tiny --out new --selfplay 16,32
selfplay.gamez: | sweep.py --config tiny --out new --selfplay.gamez 1,2
selfplay.games_per_iteration: , | sweep.py --config tiny --out new --selfplay.games_per_iteration ,
selfplay.games_per_iteration: 8 | sweep.py --out new --preset batch --selfplay.games_per_iteration 8
network.trunk: foo | sweep.py --config tiny --out new --network.trunk conv,foo
search.simulations: 8,,16 | sweep.py --config tiny --out new --search.simulations 8,,16
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Make a folder with files that a wrong command line must not touch."""
    place = tmp_path_factory.mktemp("place")
    for name in ("run/checkpoints/48", "torn", "pictures", "games", "folder.npz"):
        (place / name).mkdir(parents=True)
    os.mkfifo(place / "pipe")
    for link, to in {
        "loop": "loop",
        "linkrun": "run",
        "link.json": "run/summary.json",
    }.items():
        (place / link).symlink_to(to)
    for name, content in {
        "run/config.yaml": (ROOT / "configs" / "tiny.yaml").read_bytes(),
        "run/metrics.jsonl": b'{"iteration": 48, "speed/minutes": 3.0}\n',
        "run/summary.json": b"{}",
        "README.md": b"# title",
        "deep.json": b"[" * 50_000,
        "empty.yaml": b"# all by default\nnetwork: {}\n",
        "games/1.json": b'{"rows": 3, "cols": 3, "moves": [0]}',
        "latin.txt": b"h0,0 \xe9",
        "list.yaml": b"- 1\n",
        "minutes.yaml": b"minutes: 1:30\n",
        "null.json": b"null",
        "null.yaml": b"game: null\n",
        "old.npz": b"mine",
        "pictures/cat.jpg": b"mine",
        "torn/config.yaml": b"x: [",
        "two.yaml": b"seed: 1\n---\nseed: 2\n",
        "utf16.yaml": "seed: 1".encode("utf-16"),
    }.items():
        (place / name).write_bytes(content)
    return place


@pytest.mark.parametrize("row", [*filter(None, WRONG_LINES.splitlines())])
def test_a_wrong_line_names_field_and_value_and_touches_nothing(row, place):
    def contents() -> dict[str, bytes | None]:
        return {str(p): p.read_bytes() if p.is_file() else None for p in place.rglob("*")}

    begin, _, line = row.partition(" | ")
    before = contents()
    done = run_here(*shlex.split(line.replace("TRAIN", TRAIN)), cwd=place)
    (said,) = [said for said in done.stderr.splitlines() if not said.startswith(MARK)]
    assert done.returncode == 2
    assert said.replace("'", "").startswith(f"error: {begin}") and len(said) < LONGEST, said
    assert contents() == before


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_names_types_in_words(script):
    text = " ".join(run_here(script, "--help").stdout.split())
    assert not re.search(r"\b(int|float)_\d|<class|ClosedUnit|Literal|type: |null", text)
    if script == "train.py":  # the docstring of a field, and its default
        assert re.search(r"--selfplay.games_per_iteration .*Games per iter[^-]*default: 1024", text)


# Values that no parser takes, for every option of every script

SENSELESS = (
    *("", " ", "nan", ".nan", "-.inf", "inf", "1e400", "-1e400", "-1", "-1e300", "10000000000"),
    *("1" + "0" * 400, "9" * 5000, "0x10", "010", "1_0", "1:30", "true", "null", "[]", "{a: 1}"),
    "[" * 100,
    *("!!python/name:os", "&a [*a]", "2001-99-99", "1e", "--", "\ud800", "a\0b", "'", "${HOME}"),
)


def options_of(script: str) -> Iterator[tuple[str, typing.Any]]:
    """Yield names and types of the options of a script; flags and sections take no value."""
    for action in parser_of(script)._actions:
        name = next((name for name in action.option_strings if name.startswith("--")), None)
        if name and action.nargs != 0 and name not in ("--help", "--print_config"):
            yield name[2:], getattr(action, "_typehint", None) or action.type


def bad_values(kind: typing.Any) -> list[str]:
    """Return values that no option of this type may take."""
    kind = typing.get_args(kind)[0] if typing.get_origin(kind) is list else kind
    if hasattr(kind, "_restrictions"):
        values = ["many", "1,2", "0.5.5", *SENSELESS]
        for operator, bound in kind._restrictions:
            for step in (max(1, abs(bound)), 10**30):
                values.append(str(bound + step if operator.__name__ == "le" else bound - step))
        return values
    if kind is bool:
        return ["maybe", "2", "[]", "", "9" * 5000]
    if typing.get_origin(kind) is typing.Literal:
        return [*filter(None, SENSELESS), "other"]
    return ["", " ", "\t", "\ud800", "a\0b", "9" * 5000]


@pytest.mark.parametrize("script", SCRIPTS)
def test_no_bad_value_passes_a_parser(script):
    # Empty lists have a meaning, and names of players are checked later. Only train.py tests the
    # fields of a config, which are the same for all scripts.
    left_out = {*MAY_BE_EMPTY, *(CONFIG_FIELDS if script != "train.py" else ())}
    tried = set()
    for name, kind in options_of(script):
        if name in left_out:
            continue
        values = bad_values(kind)
        # The first option of a type gets all values.
        for value in values[:1] if str(kind) in tried else values:
            with pytest.raises(InputError, match=f"^{re.escape(name)}") as refused:
                parse(parser_of(script), [f"--{name}={value}"])
            assert len(str(refused.value)) < 1000 and str(refused.value).isprintable()
        tried.add(str(kind))


# Configs: how the error begins, and contents of the file

CONFIGS = {
    "config:": (
        *("a: &a [1]\nb: *a", "a: &a {b: *a}", "seed: 1\nseed: 2", "[" * 10_000, "a: [b"),
        *("seed: !!python/object/apply:os.system [x]", "seed: !!bool maybe", "? [1]\n: 2"),
        "seed: 2001-99-99",
        *("seed: " + "9" * 5000, "#" * 70_000, "just text", "", "{}", "null", "network: {}"),
    ),
    "seed:": ("seed: 2001-01-01", 'seed: "3"', "seed: [3]"),
    "sed: 3 in .* did you mean seed": ("sed: 3",),
    "iterations:": ("iterations: 1" + "0" * 400,),
    "learner.learning_rate:": ("learner: {learning_rate: .nan}", "learner: {learning_rate: 1e300}"),
    "network:": ("network: 5",),
    "network.channels: 'wide'": ("network: {channels: wide}",),
    "network.chanels: 64 in .* did you mean network.channels": ("network: {chanels: 64}",),
    "network.safe_end:": ("network: {safe_end: 1}",),
    "evaluation.opponents:": ("evaluation: {opponents: 'greedy,,random'}",),
}


@pytest.mark.parametrize(
    ("begin", "content"), [(begin, text) for begin, texts in CONFIGS.items() for text in texts]
)
def test_configs_that_only_a_stranger_writes(begin, content, tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(content)
    with pytest.raises(InputError, match=f"^{begin}") as caught:
        load_config(file)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < LONGEST


def test_the_parser_opens_no_file_by_itself():
    for name in ("network", "game"):
        with pytest.raises(InputError, match=f"^{name}: /dev/zero must be a mapping"):
            parse(parser_of("train.py"), [f"--{name}=/dev/zero"])
    with patch.object(jsonargparse.Path, "read_text", side_effect=AssertionError):
        load_config(ROOT / "configs" / "tiny.yaml")


# Damaged files


def damaged(whole: bytes, chance: random.Random) -> bytes:
    """Return content that is cut off, changed, extended, or replaced by other content."""
    position, content = chance.randrange(len(whole) + 1), bytearray(whole)
    for _ in range(chance.choice((1, 4, 64))):
        content[chance.randrange(len(content))] = chance.randrange(256)
    other = chance.choice((b"", b"[" * 100_000, b"{}", b"[]", b"null", b"NaN", b"1e999"))
    inserted = whole[:position] + chance.randbytes(8) + whole[position:]
    return chance.choice((whole[:position], bytes(content), other, inserted, whole[position:]))


def twisted(content: typing.Any, chance: random.Random) -> typing.Any:
    """Return the content of a JSON file with one value replaced, removed or added."""
    if isinstance(content, dict) and content and chance.random() < 0.9:
        name = chance.choice(list(content))
        if chance.random() < 0.2:
            return {key: value for key, value in content.items() if key != name}
        return content | {name: twisted(content[name], chance)}
    if isinstance(content, list) and content and chance.random() < 0.9:
        place = chance.randrange(len(content))
        return [*content[:place], twisted(content[place], chance), *content[place + 1 :]]
    values = [None, -1, 1e300, 10**30, "text", "\0", [], {}, True, [[]], {"a": 1}, 0, "../" * 50]
    return chance.choice(values)


def check_damage(file: Path, use: Callable[[], object], count: int) -> None:
    """Damage a file `count` times; using it must work or raise an InputError of one line."""
    use()
    whole, refused, chance = file.read_bytes(), 0, random.Random(file.name)
    for number in range(count):
        if file.suffix in (".json", ".jsonl") and number % 2:
            content = json.loads(whole.splitlines()[0] if file.suffix == ".jsonl" else whole)
            file.write_text(json.dumps(twisted(content, chance)))
        else:
            file.write_bytes(damaged(whole, chance))
        try:
            use()
        except InputError as error:
            refused += 1
            assert "\n" not in str(error) and len(str(error)) < 2000
    file.write_bytes(whole)
    # Readers of a log skip its damaged lines.
    assert refused > count // 4 or file.suffix == ".jsonl", (file.name, refused)


def folder_of_weights(folder: Path, own: bool = True) -> Path:
    from safetensors.numpy import load_file, save_file

    for suffix in ("json", "yaml", "safetensors"):
        source = ROOT / "jaxzero" / "weights" / f"2x2.{suffix}"
        (folder / f"net.{suffix}").write_bytes(source.read_bytes())
    if not own:  # as another program writes it
        save_file(load_file(source), folder / "net.safetensors")
    return folder / "net.safetensors"


@pytest.mark.parametrize("suffix", ["json", "yaml", "safetensors"])
def test_damaged_files_of_a_network(suffix, tmp_path):
    from jaxzero.runs.weights import load_weights, read_initial_weights

    file = folder_of_weights(tmp_path, own=suffix == "safetensors")
    load = read_initial_weights if suffix == "json" else load_weights
    check_damage(file.with_suffix(f".{suffix}"), lambda: load(str(file)), 10)


def test_weights_that_are_not_finite_or_not_float_are_refused(tmp_path):
    from safetensors.numpy import load_file, save_file

    from jaxzero.runs.weights import load_weights

    file = folder_of_weights(tmp_path)
    whole = load_file(file)
    name = next(iter(whole))
    for wrong in (np.full_like(whole[name], np.nan), whole[name].astype(np.int32)):
        save_file(whole | {name: wrong}, file)
        with pytest.raises(InputError, match=f"^weights: {name} in "):
            load_weights(str(file))


def test_damaged_suites_and_solved_positions(tmp_path):
    from jaxzero.game import DotsAndBoxes
    from jaxzero.measure.make_suite import read_store, write_store
    from jaxzero.measure.suite import Suite, read_suite, write_suite
    from jaxzero.solver.endgame import ILLEGAL

    game = DotsAndBoxes(1, 2)
    drawn = np.eye(game.num_edges, dtype=bool)
    moves = np.where(drawn, ILLEGAL, 1).astype(np.int8)
    suite, store = (tmp_path / f"{name}.npz" for name in ("suite", "store"))
    write_suite(Suite("", game, drawn, moves), suite)
    solved = {row.tobytes(): (move, True) for row, move in zip(drawn, moves, strict=True)}
    write_store(store, game, 10, solved)
    check_damage(suite, lambda: read_suite(suite, "s", game), 150)
    for rows in (drawn[:0], drawn | True):
        write_suite(Suite("", game, rows, np.full(rows.shape, ILLEGAL, np.int8)), suite)
        with pytest.raises(InputError, match=r"^suite: .*suite.npz"):
            read_suite(suite, "s", game)
    check_damage(store, lambda: read_store(store, game, 10), 150)


def test_damaged_folders_of_a_run(tmp_path):
    from jaxzero.runs.metrics import read_metrics
    from jaxzero.runs.run_dir import finished_checkpoints
    from jaxzero.runs.weights import initial_note

    config, metrics, begun = (
        tmp_path / name for name in ("config.yaml", "metrics.jsonl", "begun_with.json")
    )
    config.write_bytes((ROOT / "configs" / "tiny.yaml").read_bytes())
    line = {"iteration": 3, "speed/games": 64, "speed/minutes": 0.5, "speed/seconds": 1.0}
    line |= {"suite/policy/optimal_share": 0.5, "learn/policy_loss": 1.0}
    metrics.write_text(f"{json.dumps(line)}\n" * 3)
    begun.write_text(json.dumps({"weights": "2x2", "games": 3, "minutes": 0.5}))

    check_damage(config, lambda: load_config(config), 20)
    check_damage(metrics, lambda: read_metrics(tmp_path), 30)
    check_damage(begun, lambda: initial_note(tmp_path), 100)
    (tmp_path / "checkpoints").write_text("in the way")
    with pytest.raises(InputError, match=r"^run_dir: .*checkpoints is no folder"):
        finished_checkpoints(tmp_path / "checkpoints")


def test_damaged_results_of_a_sweep(tmp_path):
    from jaxzero.performance.sweep import COLUMNS, open_folder, read_grid, read_row, write_report

    words = f"--out={tmp_path} --search.simulations=16,32 --config configs/tiny.yaml".split()
    grid, _ = read_grid(parser_of("sweep.py"), words)
    open_folder(grid, tmp_path)
    file = tmp_path / "points" / "simulations=16.json"
    row = {"status": "ok", "device": "cpu", "notes": [], **dict.fromkeys(COLUMNS, 1.0)}
    file.write_text(json.dumps(row))
    point = {"settings": {"search.simulations": 16}}
    check_damage(file, lambda: write_report(tmp_path, {}, [point | read_row(file)]), 100)
    check_damage(tmp_path / "sweep.json", lambda: open_folder(grid, tmp_path), 60)
