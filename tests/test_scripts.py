"""The scripts as a user meets them: from the command line, once in a process of their own."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import script_runner
from script_runner import run_here

from jaxzero.runs.metrics import read_metrics
from jaxzero.runs.weights import load_agent

ROOT = Path(__file__).parent.parent
TINY = script_runner.TINY.split()


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, *map(str, arguments)]


WRONG = {
    "unknown key": ("--network.chanels 8", "network.chanels: '8'"),
    "impossible board": ("--game.rows 0", "game.rows: 0"),
    "zero blocks": ("--network.blocks 0", "network.blocks: 0"),
    "negative rate": ("--learner.learning_rate -1", "learner.learning_rate: -1"),
    "indivisible": ("--devices 3", "devices: 3"),
    "unknown opponent": ("--evaluation.opponents greed", "'greed' is unknown, did you mean greedy"),
    "missing file": ("--config nowhere.yaml", "config: nowhere.yaml cannot be read"),
    "no memory": ("--selfplay.games 1000000000", "selfplay.games: 1000000000 takes"),
    "negative minutes": ("--max_minutes -1", "max_minutes: -1 must be a number >= 0"),
    "endless minutes": ("--max_minutes inf", "max_minutes: inf must be a number >= 0"),
    "nothing to resume": ("--resume", "holds no run"),
    "a seed twice": ("--seeds 4 4", "seeds: 4 4 names a seed twice"),
    "a seed beside them": ("--seeds 4 --seed 5", "seed: 5 cannot stand beside --seeds 4"),
    "no seeds to resume": ("--seeds 4 --resume", "holds no run to resume"),
    "seeds of processes": (
        "--seeds 4 --num_processes 2 --process_id 0",
        "seeds: 4 are trained by one process",
    ),
    "no port": (
        "--coordinator_address node1 --num_processes 2 --process_id 0",
        "coordinator_address: 'node1' must be an address and a port",
    ),
    "seeds of a job": ("--seeds 4 --distributed", "seeds: 4 are trained by one process"),
}


@pytest.mark.parametrize("case", WRONG)
def test_bad_input_is_one_line_and_exit_code_2(case, tmp_path):
    options, message = WRONG[case]
    done = run_here("train.py", *TINY, "--run_dir", tmp_path / "run", *options.split())
    assert done.returncode == 2, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert message in lines[0]
    assert not (tmp_path / "run").exists()


def test_a_process_of_its_own_says_and_ends_the_same(tmp_path):
    options = [*TINY, "--run_dir", tmp_path / "run", "--network.blocks", "0"]
    done = subprocess.run(
        command("scripts/train.py", *options), cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == run_here("train.py", *options)


def test_help_explains_every_field_with_its_default():
    done = run_here("train.py", "--help")
    assert done.returncode == 0
    text = " ".join(done.stdout.split())
    for part in ("--network.channels", "Games per iteration, all devices", "default: 1024"):
        assert part in text
    fields = [word for word in done.stdout.split() if word.startswith("--learner.")]
    assert "--learner.weight_decay" in fields


def test_sigterm_finishes_the_iteration_saves_and_says_how_to_go_on(tmp_path):
    run_dir = tmp_path / "run"
    arguments = ["scripts/train.py", *TINY, "--iterations", "100000", "--run_dir", run_dir]
    process = subprocess.Popen(
        command("-u", *arguments), cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    for line in process.stdout:
        if "2/100000" in line:
            break
    process.send_signal(signal.SIGTERM)
    said = process.stdout.read()
    assert process.wait() == 143
    assert f"To go on: python scripts/train.py --run_dir {run_dir} --resume" in said
    stopped = int(re.search(r"Stopped after (\d+) of 100000 iterations", said)[1])
    assert load_agent(run_dir).iteration == stopped >= 2
    # On a device alone, as the process had; here there are two.
    options = ["--resume", "--devices", "1", "--max_minutes", "0.001"]
    resumed = run_here("train.py", "--run_dir", run_dir, *options)
    assert resumed.returncode == 0, resumed.stderr
    assert "Stopped after" in resumed.stdout


def test_seeds_are_runs_of_their_own_and_complete_ones_are_not_repeated(tmp_path):
    seeds, alone = tmp_path / "seeds", tmp_path / "alone"
    measured = [*TINY, "--weights", "2x2", "--evaluation.suite", "table"]
    runs = ["train.py", *measured, "--run_dir", seeds]
    first = run_here(*runs, "--seeds", "3", "5", "--max_minutes", "0.0001")
    assert first.returncode == 0, first.stderr
    assert first.stdout.endswith(f"train.py --run_dir {seeds} --seeds 3 5 --resume\n")
    assert not (seeds / "seed_5").exists()
    again = run_here(*runs, "--seeds", "3")
    assert (again.returncode, "holds a run" in again.stderr) == (2, True)
    done = run_here("train.py", "--run_dir", seeds, "--seeds", "3", "5", "--resume")
    assert done.returncode == 0, done.stderr
    assert re.search(r"\n-  *2  *20,512 .* % \[", done.stdout)  # a mean with an interval
    assert run_here("train.py", *measured, "--seed", "5", "--run_dir", alone).returncode == 0
    losses = [
        [line["learn/loss"] for line in read_metrics(run)]
        for run in (seeds / "seed_3", seeds / "seed_5", alone)
    ]
    assert losses[0] != losses[1] == losses[2]
    assert [len(each) for each in losses] == [2, 2, 2]
    last = run_here("train.py", "--run_dir", seeds, "--seeds", "3", "5", "--resume")
    assert last.stdout.count("complete in") == 2


@pytest.mark.parametrize("script", ["play", "watch"])
def test_a_page_without_its_packages_says_how_to_install_them(script, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("jaxzero.page.server")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    (tmp_path / "config.yaml").write_text("seed: 0")
    of_run = ["--run_dir", tmp_path] if script == "watch" else []
    done = run_here(f"{script}.py", "--web", *of_run)
    assert done.returncode == 2
    assert done.stderr.startswith("error: web: needs starlette")
    assert 'pip install -e ".[web]"' in done.stderr and done.stderr.count("\n") == 1


def test_a_run_dir_that_cannot_be_written_is_told(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    done = run_here("train.py", *TINY, "--run_dir", blocked / "run")
    assert done.returncode == 2
    assert done.stderr == f"error: run_dir: {blocked / 'run'} cannot be written (Not a directory)\n"
    assert blocked.read_text() == "in the way"


@pytest.mark.parametrize(
    ("command_line", "message"),
    [
        ("solve.py --rows 9 --cols 9", "board: 9x9 has 180 edges"),
        ("solve.py --position h0,0,h9,9", "position: edge"),
        ("solve.py --position 3,3", "listed twice"),
        ("evaluate.py --run_dir nowhere --suite table", "run_dir: nowhere holds no run"),
        ("evaluate.py --run_dir nowhere --games 3", "games: 3 must be even"),
        ("evaluate.py --suite table", "run_dir: name a run with --run_dir or a network"),
        ("evaluate.py --weights 9x9 --suite table", "weights: '9x9' do not exist"),
        ("evaluate.py --weights 2x2 --players greedy", "players: greedy needs --suite"),
        ("evaluate.py --weights 2x2", "suite: name --suite, --opponents or --ladder: nothing is"),
        ("solve.py --table t --position h0,0", "table: t cannot stand beside --position"),
        ("solve.py --rows 3 --cols 4 --table t", "board: 3x4"),
        ("watch.py --run_dir nowhere --port 8002", "port: 8002 needs --web"),
        (
            "train.py --config tiny --run_dir r --heartbeat_seconds 5",
            "heartbeat_seconds: 5 needs --distributed",
        ),
        ("evaluate.py --weights 2x2 --weights2 2x3", "weights2: 2x3 needs --suite"),
        (
            "evaluate.py --weights 2x2 --weights2 2x3 --suite table",
            "weights2: 2x3 was trained on 2x3 and cannot play 2x2",
        ),
        (
            "evaluate.py --weights 2x2 --opponents random --games 2 --suite tabel",
            "suite: 'tabel' does not exist, did you mean table",
        ),
        (
            "evaluate.py --weights 2x2 --suite table --players serch:4",
            "'serch:4' is unknown, did you mean search",
        ),
        (
            "evaluate.py --weights 2x2 --weights2 2x2 --suite table --players greedy",
            "players: greedy have no network",
        ),
        (
            "evaluate.py --weights 5x5 --rows 8 --cols 8 --opponents perfect --games 2",
            "board: 8x8 must be at most 7x7 for the exact solver",
        ),
        ("make_suite.py --rows 8 --cols 8 --players greedy --out x.npz", "board: 8x8 must be"),
        ("make_suite.py --per_stratum 0 --out x.npz", "per_stratum: 0 must be a whole number >= 1"),
        ("make_suite.py --games 0 --out x.npz", "games: 0 must be a whole number >= 1"),
        ("make_suite.py --noise 2 --out x.npz", "noise: 2 must be a number >= 0 and <= 1"),
        ("play.py --weights 9x9", "weights: '9x9' do not exist"),
        ("train.py --config tiny --weights 9x9 --run_dir nowhere", "weights: '9x9' do not exist"),
        (
            "train.py --config tiny --weights configs --run_dir nowhere",
            "weights: configs holds no run",
        ),
        (
            "evaluate.py --run_dir nowhere --weights 2x2",
            "weights: 2x2 cannot stand beside --run_dir",
        ),
        ("play.py --mode ai --checkpoint2 3", "checkpoint2: 3 needs --run_dir2"),
        ("benchmark.py --startup --config quick", "config: quick cannot stand beside --startup"),
        ("benchmark.py --startup --compare x.json", "compare: x.json cannot stand beside"),
        ("benchmark.py --startup --json nowhere/x.json", "json: nowhere/x.json cannot be written"),
        ("train.py --weights 2x2 --run_dir nowhere --resume", "weights: 2x2 cannot stand beside"),
        ("export.py", "run_dir: name a run with --run_dir or a network with --weights"),
        ("export.py --weights 2x2", "out: name a folder with --out"),
        ("export.py --weights 2x2 --out jaxzero/weights", "safetensors exists; --overwrite"),
        ("export.py --weights 2x2 --out configs --name quick", "quick.yaml exists; --overwrite"),
        ("export.py --weights 2x2 --checkpoint 3", "checkpoint: 3 needs --run_dir"),
        ("make_suite.py --weights 2x2 --out nowhere.npz", "weights: 2x2 plays 2x2, not 5x5"),
        ("engine.py --weights 5x5 --rows 6 --cols 8", "board: 6x8 must be at most 7x7"),
        ("engine.py --weights 2x2 --protocol gtpp", "protocol: 'gtpp' must be"),
        ("engine.py --weights 2x2 --clock 0", "clock: 0 must be a number >= 0.001"),
        ("engine.py --weights 2x2 --rows 3", "weights: 2x2 was trained on 2x2"),
        ("analyse.py --weights 2x2 --position h9,9", "position: edge h9,9"),
        ("analyse.py --weights 2x2 --position h0,0 --load x.txt", "cannot stand beside --load"),
        ("analyse.py --weights 2x2 --load nowhere.txt", "load: nowhere.txt cannot be read"),
        ("analyse.py --weights 2x2 --simulations -1", "simulations: -1 must be"),
        ("play.py --web --games 4", "games: 4 cannot stand beside --web"),
        (f"play.py --web --host {'é' * 70}", "cannot be used (encoding of hostname failed)"),
        ("play.py --port 99", "port: 99 needs --web"),
        ("play.py --web --port 99999", "port: 99999 must be"),
        ("watch.py --run_dir nowhere", "run_dir: nowhere holds no run"),
        ("watch.py --run_dir nowhere --every .nan", "every: '.nan' must be"),
        ("watch.py --run_dir nowhere --port 99999", "port: 99999 must be"),
        ("watch.py --run_dir nowhere --web --once", "once: cannot stand beside --web"),
    ],
)
def test_the_other_scripts_name_bad_input_too(command_line, message):
    script, *options = command_line.split()
    done = run_here(script, *options)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert message in done.stderr
