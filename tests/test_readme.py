"""Every command in the README and in docs/ runs, as it stands there, on configs made small.

The long ones and repetitions among the slow tests.
"""

from __future__ import annotations

import io
import re
import shlex
import shutil
import subprocess
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from script_runner import ROOT, Ended, parser_of, run_here

from jaxzero.cli import parse
from jaxzero.training.replay import Replay
from jaxzero.training.targets import Decisions, Positions

SMALL = """
game: {rows: 2, cols: 2}
network: {trunk: dense, channels: 16, blocks: 1, features: raw}
search: {simulations: 4}
selfplay: {games: 16, opening_plies: 2}
replay: {capacity: 500}
learner: {batch_size: 32, updates_per_iteration: 2}
evaluation: {evaluate_every: 2, games: 4, final_games: 4, simulations: 4}
iterations: 2
"""
# What a command asks for at length is asked for again, in small: the last option wins. All runs
# have the same settings in the end, so that they share a program.
TINY_NETWORK = "--network.trunk dense --network.channels 16 --network.blocks 1"
BLIND = "--evaluation.evaluate_every 0 --evaluation.simulations 0 --evaluation.suite none"
TINY_RUN = (
    f"{TINY_NETWORK} --game.rows 2 --selfplay.start_ply 0 --selfplay.start_falls 0 "
    "--selfplay.adjudicate_below 0 --selfplay.games 16 "
    "--selfplay.opening_plies 2 --selfplay.sampled_plies 4 --selfplay.deviations 0 "
    "--selfplay.surprise_weight 0 --learner.learning_rate 1e-3 --learner.warmup_updates 0 "
    "--learner.decay_fraction 0 --learner.updates_per_iteration 2 --iterations 2 "
    "--learner.optimizer adamw --selfplay.solved_per_game 2 --selfplay.solved_nearness 2 "
    "--replay.capacity 500 --network.compute_dtype auto --network.convolution auto"
)
LESS = {
    r"train\.py --config": TINY_RUN,
    r"train\.py --config configs/(cpu|gpu)": BLIND,
    r"study\.py": f"{TINY_NETWORK} --minutes 0.01",
    r"sweep\.py": f"{TINY_NETWORK} --selfplay.games 8 --rounds 1",
    r"benchmark\.py": f"{TINY_NETWORK} --seconds 1",
    r"evaluate\.py .*--(opponents|ladder)": "--games 4",
    r"evaluate\.py (?!.*--players)": "--simulations 4",
    r"evaluate\.py .*--suite": "--suite table",
    r"evaluate\.py .*--weights2": "--weights2 2x2 --players policy,search:4",
    r"evaluate\.py .*--players .*search:64": "--weights runs/quick --players policy,greedy",
    r"evaluate\.py .*--rows 4": "--rows 2 --cols 2",
    r"export\.py": "--games 4 --simulations 4",
    r"solve\.py --rows 3": "--rows 2 --cols 2",
    r"analyse\.py": "--weights runs/quick --simulations 4 --position h0,0",
    r"make_suite\.py": "--rows 2 --cols 2 --games 16 --per_stratum 40 --fewest 2 --most 8",
    r"make_suite\.py --weights": "--weights runs/quick",
    r"play\.py --weights": "--weights 2x2 --player search:4",
    r"play\.py --run_dir": "--player search:4",
    r"play\.py --rows 4": "--rows 2 --cols 2",
    r"play\.py --weights .*--player2": "--weights runs/quick --player2 search:4",
    r"play\.py --mode dual": "--player search:4 --games 4",
    r"play\.py --mode dual --weights": "--weights runs/quick --player2 greedy",
    r"play\.py --mode dual .*--run_dir2": "--player2 search:4",
}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Of commands on which no other depends one of a kind is enough for `make test`: one with the same
# options of those in SHORT. What those in LONG do has tests of its own; here they are read, and so
# are all trainings.
LONG = ("benchmark.py", "sweep.py")
SHORT = ("evaluate.py", "export.py", "play.py", "solve.py", "train.py --config")
SIZES = {"--games", "--simulations", "--json"}


def commands_of(page: Path) -> list[str]:
    """Return the command lines of a page's bash blocks, without comments."""
    blocks = re.findall(r"```bash\n(.*?)```", page.read_text(), re.DOTALL)
    text = "\n".join(blocks).replace("\\\n", " ")
    lines = [re.sub(r"\s+# .*", "", line) for line in text.splitlines() if line.strip()]
    return [" ".join(line.split()) for line in lines]


def kind_of(command: str) -> str:
    """Return what commands have in common that do the same with other values."""
    options = sorted({word for word in command.split() if word.startswith("--")} - SIZES)
    for script in SHORT:
        if script in command:
            return " ".join([script, *options])
    return command


def is_long(command: str) -> bool:
    return any(script in command for script in LONG)


def all_commands() -> list:
    """Return every command once, page by page; those of a kind that was there are slow."""
    found, kinds = {}, set()
    for page in PAGES:
        for command in commands_of(page):
            if command not in found:
                slow = [pytest.mark.slow] * (kind_of(command) in kinds or is_long(command))
                found[command] = pytest.param(command, id=command[:70], marks=slow)
            kinds.add(kind_of(command))
    return list(found.values())


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """A directory like a clone of the project whose configs are all small."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("scripts", "Makefile", "jaxzero", "pyproject.toml"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "configs").mkdir()
    for config in (ROOT / "configs").glob("*.yaml"):
        (folder / "configs" / config.name).write_text(SMALL)
    return folder


def run(command: str, clone: Path) -> Ended | subprocess.CompletedProcess:
    program, *words = shlex.split(command.removeprefix("JAX_NUM_CPU_DEVICES=2 "))  # they have two
    if program == "make":  # what it would do; the tests are themselves run by make
        made = [program, "--dry-run", *words]
        return subprocess.run(made, cwd=clone, capture_output=True, text=True)
    if program != "python" or not words[0].startswith("scripts/"):
        pytest.fail(f"a command of another kind: {command}")
    begins = re.search(r"train\.py --config .*--run_dir (\S+)", command)
    if begins:  # another page may have used the same name
        shutil.rmtree(clone / begins[1], ignore_errors=True)
    less = " ".join(less for long, less in LESS.items() if re.search(f"scripts/{long}", command))
    return run_here(words[0].removeprefix("scripts/"), *words[1:], *less.split(), cwd=clone)


def test_there_are_commands():
    commands = commands_of(PAGES[0])
    assert "make train" in commands and "make test" in commands
    assert any(command.startswith("python scripts/train.py") for command in commands)
    everything = "\n".join(command for page in PAGES for command in commands_of(page))
    assert [long for long in LESS if not re.search(f"scripts/{long}", everything)] == []


def test_long_commands_have_options_that_there_are():
    everything = {command for page in PAGES for command in commands_of(page)}
    read = [command for command in everything if is_long(command) or " scripts/train.py" in command]
    assert len(read) >= 20
    long = [re.sub(r"^.*?python ", "", command).split() for command in read]
    for script, *options in long:
        if "sweep.py" not in script:  # it takes lists of values and parses each config
            parse(parser_of(Path(script).name), options)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [PAGES[0], ROOT / "docs" / "playing.md"], ids=lambda page: page.name
)
def test_python_examples_run_and_print_what_stands_below_them(page):
    below = r"```python\n(.*?)```\n(?:\nprints\n\n```\n(.*?)```)?"
    examples = re.findall(below, page.read_text(), re.DOTALL)
    assert examples
    for code, shown in examples:
        with redirect_stdout(io.StringIO()) as out:
            exec(code, {})
        assert out.getvalue() and (not shown or out.getvalue() == shown)


TOUR = (ROOT / "docs" / "tour.md").read_text()


def words_of(printed: str) -> list[str]:
    """Return what was printed without its numbers, which versions of jax change."""
    return re.sub(r"-?\d[\d.,%]*", "", printed).split()


def test_the_tour_shows_every_field():
    shown = set(re.findall(r"^(\w+) +(?:\w+\[|-$)", TOUR, re.MULTILINE))
    for record in (Positions, Decisions, Replay):
        assert set(record._fields) <= shown, record


@pytest.mark.slow
def test_the_blocks_of_the_tour_print_what_stands_below_them(monkeypatch):
    monkeypatch.chdir(ROOT)
    there: dict = {}
    blocks = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", TOUR, re.DOTALL)
    assert len(blocks) >= 9
    for code, shown in blocks:
        with redirect_stdout(io.StringIO()) as out:
            exec(code, there)
        assert words_of(out.getvalue()) == words_of(shown), code


# One after the other, as a reader would: most need the run of an earlier one.
@pytest.mark.parametrize("command", all_commands())
def test_every_command_runs_in_order(command, clone):
    done = run(command, clone)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("script", ["train.py", "play.py"])
def test_scripts_explain_themselves(script, clone):
    assert "--run_dir" in run(f"python scripts/{script} --help", clone).stdout
