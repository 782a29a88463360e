"""The benchmark of starting: the time from a new process to its first answers.

Each start is measured cold, with empty folders for compiled programs, and then warm, with the same
folders. Wall-clock time is what a person waits. Processor time does not depend on other programs
and includes compilation in other threads. It is read from /proc, so only on Linux.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from subprocess import PIPE
from typing import Any, NamedTuple

import jax
import tabulate

from jaxzero.errors import RunError, one_line
from jaxzero.host.files import shipped_folder, temporary_folder
from jaxzero.host.interrupts import cleaned_up
from jaxzero.host.status import doing
from jaxzero.performance.report import Result, describe_machine
from jaxzero.players.preparation import STAND_INS

PACKAGES = Path(__file__).parents[2]  # where a child finds the package of this process
PROMPT = "edge> "  # of play.py
QUIET_SECONDS, QUIET_SHARE = 3.0, 0.05  # below this share of a core nothing compiles
NOBODY = "itself"  # answered without a stand-in
Mark = tuple[str, str | None]  # the awaited answer, and who gave it if a stand-in may


class Child:
    """A running process, and the time since its start or the last question to it."""

    def __init__(self, process: subprocess.Popen, errors: Path):
        self._process, self._errors, self._said = process, errors, ""
        self._begin, self._cpu_begin = time.monotonic(), 0.0

    def cpu_seconds(self) -> float:
        """Return the processor time of the process and of its children that have ended."""
        # The name may contain spaces. After it follow the fields from the third on (man 5 proc).
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def elapsed(self) -> dict[str, float]:
        cpu, wall = self.cpu_seconds() - self._cpu_begin, time.monotonic() - self._begin
        return {"cpu_seconds": round(cpu, 2), "wall_seconds": round(wall, 2)}

    def is_asked(self) -> None:
        """Restart the clock for a new question."""
        self._begin, self._cpu_begin = time.monotonic(), self.cpu_seconds()

    def ask(self, line: str) -> None:
        self.is_asked()
        with suppress(BrokenPipeError):  # the process has ended; `read` raises the reason
            self._process.stdin.write(f"{line}\n".encode())

    def read(self, pattern: str) -> str:
        """Return the output of the process up to a pattern. Raises: RunError if it ends first."""
        while not (found := re.search(pattern, self._said, re.MULTILINE)):
            more = os.read(self._process.stdout.fileno(), 2**16)
            if not more:
                lines = self._errors.read_text(errors="replace").splitlines() or ["no message"]
                raise RunError(f"startup: a process ended: {one_line(lines[-1])}")
            self._said += more.decode(errors="replace")
        said, self._said = self._said[: found.end()], self._said[found.end() :]
        return said

    def stand_in(self, said: str) -> str:
        """Return the key of `STAND_INS` that the output or the errors name, else NOBODY."""
        said += self._errors.read_text(errors="replace")
        return next((by for by, words in STAND_INS.items() if f"{words} answers" in said), NOBODY)

    def settle(self) -> None:
        """Wait until the process has ended or is idle; then its programs are on disk."""
        before = -QUIET_SECONDS
        while (now := self.cpu_seconds()) - before > QUIET_SHARE * QUIET_SECONDS:
            before = now
            time.sleep(QUIET_SECONDS)


class Start(NamedTuple):
    """A program to start, and the conversation with it, which yields at each moment to measure."""

    name: str
    arguments: list[str]  # of Python
    talk: Callable[[Child], Iterator[Mark]]


def of_api(board: str) -> Start:
    """Return the start of a program that asks the API for its first move."""
    code = f"import jaxzero; print(jaxzero.load({board!r}).best_move([]), flush=True)"

    def talk(child: Child) -> Iterator[Mark]:
        child.read("[0-9]+\n")
        yield "first move", None

    return Start(f'load("{board}").best_move([])', ["-c", code], talk)


def of_script(command: str, talk: Callable[[Child], Iterator[Mark]], more: str = "") -> Start:
    """Return the start of a script; its name leaves out the options `more`."""
    script, *options = f"{command} {more}".split()
    return Start(command, [str(shipped_folder("scripts") / script), *options], talk)


def talk_to_player(child: Child) -> Iterator[Mark]:
    child.read(PROMPT)
    yield "prompt", None
    child.ask("h0,0")
    yield "answer to a move", child.stand_in(child.read(PROMPT))


def talk_to_training(child: Child) -> Iterator[Mark]:
    child.read("\n")
    yield "first line", None
    child.read("^ *1/.*\n")
    yield "first iteration", None


def talk_to_page(child: Child) -> Iterator[Mark]:
    port = int(re.search(r":([0-9]+)/", child.read("http://.*\n"))[1])
    yield "address", None
    question = {"rows": 5, "cols": 5, "moves": [], "level": "strong"}

    def answer(path: str) -> dict[str, Any]:
        child.is_asked()
        with closing(HTTPConnection("127.0.0.1", port)) as connection:
            connection.request("POST", path, json.dumps(question))
            return json.loads(connection.getresponse().readline())

    yield "reply of level strong", answer("/api/move")["by"] or NOBODY
    yield "first line of analysis", answer("/api/analyse")["stage"]
    answer("/api/warm")  # as the page asks beside the game; only requested programs compile


def talk_to_engine(child: Child) -> Iterator[Mark]:
    child.ask("name")
    child.read("= jaxzero\n")
    yield "answer to name", None
    child.ask("genmove b")
    yield "answer to genmove", child.stand_in(child.read("= .+\n"))


STARTS = (
    *map(of_api, ("2x2", "3x3", "5x5")),
    of_script("play.py --weights 5x5", talk_to_player),
    of_script("play.py --web", talk_to_page, "--port 0"),
    of_script("engine.py --weights 5x5", talk_to_engine),
    # It ends after its first iteration.
    of_script("train.py --config quick", talk_to_training, "--run_dir run --max_minutes 0.001"),
)


def measure_starts(starts: Sequence[Start] = STARTS) -> Result:
    """Measure all starts, one after the other. Raises: RunError if one of them fails."""
    found = [row for start in starts for row in measure_start(start)]
    # Last: jax reserves most of a GPU's memory when it finds the GPU; the processes needed it.
    return describe_machine(jax.local_devices()[0]) | {"cores": os.cpu_count(), "starts": found}


def measure_start(start: Start) -> list[dict[str, Any]]:
    """Return a row for each awaited answer, in order: cold and warm times, and who answered."""
    rows: dict[str, dict[str, Any]] = {}
    with temporary_folder() as folder:
        for state in ("cold", "warm"):
            with doing(f"{start.name}, {state}"), child_of(start, folder, state) as child:
                for what, by in start.talk(child):
                    row = rows.setdefault(what, {"start": start.name, "what": what})
                    row[state] = child.elapsed() | {"by": by}
                if state == "cold":
                    child.settle()
    return list(rows.values())


@contextmanager
def child_of(start: Start, folder: Path, state: str) -> Iterator[Child]:
    """Start a process in its own folder, with the caches of `folder`; kill it at the end."""
    place, errors = folder / state, folder / f"{state}.log"
    place.mkdir()
    paths = [str(PACKAGES), os.environ.get("PYTHONPATH")]
    environment = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(folder / "jax"),
        "NUMBA_CACHE_DIR": str(folder / "numba"),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONUNBUFFERED": "1",
    }

    def end() -> None:
        process.kill()
        process.wait()  # or it would write to folders that are about to be removed

    words = [sys.executable, *start.arguments]
    with (
        errors.open("wb") as log,
        subprocess.Popen(
            words, 0, stdin=PIPE, stdout=PIPE, stderr=log, cwd=place, env=environment
        ) as process,
        cleaned_up(end),
    ):
        yield Child(process, errors)


def startup_table(result: Result) -> str:
    """Format the times as a table in Markdown."""
    rows = []
    for row in result["starts"]:
        times = (row[state][f"{c}_seconds"] for state in ("cold", "warm") for c in ("wall", "cpu"))
        by = dict.fromkeys(row[state]["by"] or "" for state in ("cold", "warm"))
        name = f"`{row['start']}`: {row['what']}"
        rows.append([name, *(f"{seconds:.1f}" for seconds in times), ", then ".join(by)])
    headings = ("seconds to", "cold", "processor", "warm", "processor", "answered by")
    sides = ("left", *["right"] * 4, "left")
    return tabulate.tabulate(rows, headings, "pipe", disable_numparse=True, colalign=sides)
