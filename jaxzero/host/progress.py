"""Progress of long work on standard error: a bar on a terminal, else a line every 30 seconds."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

DELAY = 1.0  # seconds; shorter work shows nothing
INTERVAL = 30.0  # seconds between lines without a terminal

_state = SimpleNamespace(quiet=False)


def mute() -> None:
    """Show no more progress in this process, because another process shows it."""
    _state.quiet = True


@contextmanager
def working(text: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show `text` during a block of the main thread. The block may report steps of `total`."""
    done, ended = SimpleNamespace(steps=0), threading.Event()

    def report(steps: int) -> None:
        done.steps = steps

    if _state.quiet or threading.current_thread() is not threading.main_thread():
        yield report
        return
    thread = threading.Thread(target=_show, args=(text, total, done, ended), daemon=True)
    _state.quiet = True  # blocks inside this one show nothing
    thread.start()
    try:
        yield report
    finally:
        ended.set()
        thread.join()
        _state.quiet = False


def _show(text: str, total: int | None, done: SimpleNamespace, ended: threading.Event) -> None:
    """Show progress until the block has ended."""
    began, of = time.monotonic(), f" of {total}" if total else ""
    if not sys.stderr.isatty():
        while not ended.wait(INTERVAL):
            count = f", {done.steps}{of}" if total else ""
            print(f"{text}: {time.monotonic() - began:.0f} s{count}", file=sys.stderr, flush=True)
        return
    if ended.wait(DELAY):
        return
    from rich.console import Console  # slow to import
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as bar:
        task = bar.add_task(text, total=total)
        while not ended.wait(0.2):
            bar.update(task, completed=done.steps)
