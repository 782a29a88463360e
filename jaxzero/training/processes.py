"""Several processes of one training: how they start, agree and end.

All processes do the same. Only the first one writes files and prints.
"""

import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
import numpy as np
from jax.experimental import multihost_utils

from jaxzero.errors import InputError, RunError
from jaxzero.host.interrupts import end_now
from jaxzero.host.programs import check_devices
from jaxzero.host.progress import mute
from jaxzero.runs.run_dir import CHECKPOINTS, finished_checkpoints

HEARTBEAT_SECONDS = 60  # after which a silent process ends the job
JOIN_SECONDS = 300  # within which all processes must come
MESSAGE_BYTES = 400
SEEN_SECONDS = 60  # within which a shared file system shows a new folder to all machines


def join(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    heartbeat_seconds: float = HEARTBEAT_SECONDS,
    join_seconds: float = JOIN_SECONDS,
) -> None:
    """Join a job as one process; SLURM, Open MPI or Kubernetes provide missing arguments.

    Call it before anything uses a device. It ends the process, with exit code 1, unless all come
    within `join_seconds`. Only the first process prints to standard output.
    Raises: InputError if neither arguments nor environment identify this process, or if the address
    cannot be used.
    """
    address = coordinator_address or "the address that the scheduler gives"

    def give_up() -> None:
        words = f"the processes of the job did not meet within {join_seconds} s at {address}"
        print(f"error: {words}", file=sys.stderr)
        end_now(1)

    limit = threading.Timer(join_seconds, give_up)
    limit.daemon = True
    limit.start()
    # The handler of this service would catch the SIGTERM that asks a run to save and stop.
    jax.config.update("jax_enable_preemption_service", False)
    seconds = max(1, round(heartbeat_seconds))
    try:
        if coordinator_address is not None:
            check_address(coordinator_address, is_coordinator=process_id == 0)
            print(f"waiting for the processes of the job at {address}", file=sys.stderr, flush=True)
        jax.distributed.initialize(
            coordinator_address,
            num_processes,
            process_id,
            initialization_timeout=10**6,  # after it jax aborts the process; `limit` ends before
            heartbeat_timeout_seconds=seconds,
            shutdown_timeout_seconds=seconds,
        )
    except InputError:
        raise
    except (ValueError, TypeError) as error:
        raise InputError(f"distributed: {' '.join(str(error).split())}") from error
    except jax.errors.JaxRuntimeError as error:
        raise RunError(f"the processes of the job did not meet: {_first_line(error)}") from error
    finally:
        limit.cancel()
    check_devices()
    if jax.process_index():
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, for as long as the process lives
        mute()
    # On CPUs the first collective waits only 30 seconds for all processes; later ones wait on.
    gather([0.0])


def check_address(address: str, is_coordinator: bool) -> None:
    """Raise an InputError unless an address resolves and the coordinator can listen there.

    Otherwise jax.distributed aborts the process.
    """
    host, _, port = address.rpartition(":")
    host = host.strip("[]")  # of an IPv6 address
    dual = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual else socket.AF_INET
    try:
        socket.getaddrinfo(host, port)
        if is_coordinator:
            socket.create_server(("", int(port)), family=family, dualstack_ipv6=dual).close()
    except (OSError, UnicodeError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).partition(" (")[0]
        raise InputError(f"coordinator_address: {address} cannot be used ({reason})") from error


def is_first() -> bool:
    """Return whether this is the process that writes metrics, figures and logs."""
    return jax.process_index() == 0


def gather(values: list[float]) -> np.ndarray:
    """Return the values of every process: [P, K] float64. All processes must call it."""
    row = np.asarray(values, np.float64)
    if jax.process_count() == 1:
        return row[None]
    # Sent as uint32 words, because jax would round a float64.
    return multihost_utils.process_allgather(row.view(np.uint32)).view(np.float64)


def on_first(action: Callable[[], object]) -> None:
    """Call `action` in the first process; raise its InputError in all processes."""
    message = ""
    if is_first():
        try:
            action()
        except InputError as error:
            if jax.process_count() == 1:
                raise
            message = str(error)
    if jax.process_count() > 1:
        letters = message.encode()[:MESSAGE_BYTES].ljust(MESSAGE_BYTES)
        said = gather([float(letter) for letter in letters])[0].astype(np.uint8).tobytes()
        if said.strip():
            raise InputError(said.decode(errors="replace").strip())


@contextmanager
def ends_together(resume_command: str) -> Iterator[None]:
    """End this process at once if a block fails here alone or because another process has died.

    The processes wait for each other, so no collective and no save of a checkpoint would return.
    The other processes end as soon as they miss this one.
    """
    try:
        yield
    except Exception as error:
        if jax.process_count() == 1:
            raise
        if isinstance(error, (InputError, RunError)):  # perhaps in this process alone
            print(f"error: {error}", file=sys.stderr)
            end_now(2 if isinstance(error, InputError) else 1)
        if not isinstance(error, (jax.errors.JaxRuntimeError, OSError)):
            traceback.print_exc()
        print(
            f"error: process {jax.process_index()} of {jax.process_count()} ends, and the job with "
            f"it: {_first_line(error)}. To go on from the last checkpoint: {resume_command}",
            file=sys.stderr,
        )
        end_now(1)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:200]


def refuse_separate(run_dir: Path) -> None:
    """Raise an InputError unless every process sees the run folder of the first process."""
    for _ in range(SEEN_SECONDS):
        saved = finished_checkpoints(run_dir / CHECKPOINTS)
        seen = gather([run_dir.is_dir(), len(saved), max(saved, default=0)])
        if (seen == seen[0]).all():
            return
        time.sleep(1)
    raise InputError(
        f"run_dir: {run_dir} is not the same folder in every process: name one that all share"
    )
