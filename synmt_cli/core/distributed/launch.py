"""Several processes of one command on this machine, started and ended together.

They meet in a file that only they have open, and send over the loopback interface alone: no port
is open to another machine, and nothing that arrives is unpickled. Each process holds the reading
end of a pipe whose writing end the launcher holds. When the launcher is gone, however it went,
the pipe ends, and the processes save and end.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from synmt_cli import signals
from synmt_cli.errors import Stopped, UsageError, WorkerLost, reason
from synmt_cli.pool.processes import n_processes

MEETING, ERRORS = "SYNMT_MEETING", "SYNMT_ERRORS"  # paths of files
LIFELINE = "SYNMT_LIFELINE"  # the number of a descriptor
DESCRIPTOR = "/proc/self/fd/"  # followed by its number: the path of an open file
GRACE = 30.0  # seconds to save and end
TICK = 0.05  # seconds between looks at the processes
ENDED = (WorkerLost.exit_code, *(128 + number for number in signals.ENDS))
NOT_BEGUN = "stopped before training began; the same command starts again"
GO_ON = "the same command goes on from the last checkpoint"
# -P: the working folder holds data; its Python files are not for this program. The launcher's own
# package comes before an installed one, but the files next to it come after everything else.
PROGRAM = (
    "import sys; folder = sys.argv.pop(1); sys.path.insert(0, folder); import synmt_cli; "
    "sys.path.remove(folder); sys.path.append(folder); "
    "from synmt_cli.__main__ import main; main()"
)

Children = list[subprocess.Popen[bytes]]


class PeerLost(WorkerLost):
    """Another process of the same training has ended or cannot be reached."""


def launch(arguments: Sequence[str], n: int) -> int:
    """Runs `synmt ARGUMENTS` in n processes. Returns 0 if all do, else one status for them.

    A first signal of ENDS asks all processes to end, and so does the failure of one, which
    leaves the others GRACE seconds; a second signal ends them at once. They print their own
    messages, and note the errors among them in `errors_file`, so that each is printed once. Raises
    WorkerLost where one cannot be started or was killed, and Stopped where they were asked to end
    before any of them could answer.
    """
    children: Children = []
    with (
        signals.requested() as request,
        _shared_file() as meeting,
        _shared_file() as errors,
        _lifeline() as lifeline,
    ):
        files = {MEETING: meeting, ERRORS: errors}
        try:
            for rank in range(n):
                children.append(_start(arguments, rank, n, files, lifeline))
            return _status(_watch(children, request, errors), bool(request))
        except OSError as error:
            raise WorkerLost(f"cannot start a process: {reason(error)}") from error
        finally:
            for child in children:
                child.kill()
            for child in children:
                child.wait()


def _start(
    arguments: Sequence[str], rank: int, n: int, files: dict[str, str], lifeline: int
) -> subprocess.Popen[bytes]:
    interfaces = [name for _, name in socket.if_nameindex()]
    loopback = next((name for name in interfaces if name.startswith("lo")), "lo")
    settings = {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(n),
        "LOCAL_WORLD_SIZE": str(n),
        "GLOO_SOCKET_IFNAME": loopback,
        "NCCL_SOCKET_IFNAME": loopback,
        "PYTHONSAFEPATH": "1",  # as -P, for its own children
        LIFELINE: str(lifeline),
        **files,
    }
    if "OMP_NUM_THREADS" not in os.environ:  # each would take every core; --threads may say more
        settings["OMP_NUM_THREADS"] = str(max(1, n_processes(0) // n))
    open_files = [path for path in files.values() if path.startswith(DESCRIPTOR)]
    inherited = [lifeline, *(int(path.removeprefix(DESCRIPTOR)) for path in open_files)]
    package = Path(__file__).parents[3]  # the folder that synmt_cli is in
    return subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM, str(package), *arguments],
        stdin=subprocess.DEVNULL,
        env=os.environ | settings,
        pass_fds=inherited,
        process_group=0,  # so that Ctrl-C reaches the launcher alone, which passes it on
    )


@dataclass(frozen=True)
class End:
    """How several processes ended.

    statuses: of all; that of one that was killed because it did not end when asked is -SIGTERM.
    first: the statuses of those that failed before any was asked to end.
    is_told: whether a message says why; see `errors_file`.
    """

    statuses: Sequence[int]
    first: Sequence[int]
    is_told: bool


def _watch(children: Children, request: signals.Request, errors: str) -> End:
    """Waits for all processes; a request or the failure of one makes it end the others."""
    first, is_told, deadline = None, False, float("inf")
    hung: set[int] = set()  # the ranks of the processes that did not end in time
    while True:
        statuses = _statuses(children, hung)
        failed = [status for status in statuses if status]
        if failed:
            deadline = min(deadline, time.monotonic() + GRACE)
        if (failed or request) and first is None:
            first, is_told = failed, _has_text(errors)
            for child in children:
                child.terminate()
        ended = [status for status in statuses if status is not None]
        if len(ended) == len(statuses):
            return End(ended, first or (), is_told or (bool(request) and _has_text(errors)))
        if time.monotonic() > deadline:
            hung |= _kill_running(children)
        time.sleep(TICK)


def _statuses(children: Children, hung: Set[int]) -> list[int | None]:
    """The status of each process, None while it runs. hung: the ranks of those killed here."""
    polled = [child.poll() for child in children]
    return [
        -signal.SIGTERM if rank in hung and status == -signal.SIGKILL else status
        for rank, status in enumerate(polled)
    ]


def _kill_running(children: Children) -> set[int]:
    """Kills the processes that still run, and returns their ranks."""
    running = {rank for rank, child in enumerate(children) if child.poll() is None}
    for rank in running:
        children[rank].kill()
    return running


def _has_text(path: str) -> bool:
    with contextlib.suppress(OSError):  # a cleaner of temporary files may have removed it
        return os.path.getsize(path) > 0
    return False


def _status(end: End, is_asked: bool) -> int:
    """One status for all. is_asked: whether a signal asked the launcher to end."""
    if not any(end.statuses):
        return 0
    if is_asked:
        if not end.is_told and all(status <= 0 or status in ENDED for status in end.statuses):
            raise Stopped(NOT_BEGUN)
        return one_of(end.statuses)
    saved = Stopped.exit_code  # whoever was asked to end, and saved, did not fail
    status = one_of([one for one in end.statuses if one != saved or one in end.first])
    if status != WorkerLost.exit_code or end.is_told:
        return status
    if {*end.statuses} <= {0, WorkerLost.exit_code, -signal.SIGTERM, saved}:
        raise PeerLost(f"the processes of this training cannot reach each other; {GO_ON}")
    raise WorkerLost(f"a training process was killed (out of memory?); {GO_ON}")


@contextlib.contextmanager
def _shared_file() -> Iterator[str]:
    """The path of an empty file of the processes, which no other user can open."""
    if not hasattr(os, "memfd_create"):
        with tempfile.TemporaryDirectory(prefix="synmt-") as folder:
            path = Path(folder) / "shared"
            path.touch()
            yield str(path)
        return
    descriptor = os.memfd_create("synmt")  # Linux: a file without a name, in no folder
    try:
        yield f"{DESCRIPTOR}{descriptor}"
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _lifeline() -> Iterator[int]:
    """The reading end of a pipe to which nothing is written, and which ends with this process."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)


def is_launched() -> bool:
    """Whether `launch` started this process."""
    return LIFELINE in os.environ


def is_one_of_several() -> bool:
    """Whether `launch` or torchrun started this process."""
    by_torchrun = {"MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys()
    return {"RANK", "WORLD_SIZE"} <= os.environ.keys() and (by_torchrun or MEETING in os.environ)


def errors_file() -> str | None:
    """The file in which the processes of a `launch` note the errors that they printed.

    Only the launcher says that a process is gone: it can see whether that process said why.
    """
    return os.environ.get(ERRORS)


def end_with_launcher() -> None:
    """Makes a process that `launch` started save and end when the launcher is gone."""
    if (descriptor := os.environ.pop(LIFELINE, None)) is not None:
        threading.Thread(target=_wait_for_end, args=(int(descriptor),), daemon=True).start()


def _wait_for_end(lifeline: int) -> None:
    with contextlib.suppress(OSError):
        os.read(lifeline, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os.kill(os.getpid(), signal.SIGKILL)


def refuse_one_card(device: str, n: int) -> None:
    """Raises UsageError where n processes of one machine would share the card that is named."""
    if n > 1 and device.startswith("cuda:"):
        raise UsageError(
            f"--device {device} names one GPU for {n} processes; --device cuda gives each its own"
        )


def one_of(statuses: Sequence[int]) -> int:
    """One status for several processes: that of one that failed by itself, if there is one.

    A process that lost another one, or was ended because of that, did not fail by itself. If all
    were asked to end, it is the status of those that saved.

    >>> one_of([74, 78]), one_of([74, -9]), one_of([143, -9]), one_of([75, 75])
    (78, 74, 74, 75)
    """
    own = [status for status in statuses if status > 0 and status not in ENDED]
    return min(own, default=WorkerLost.exit_code)


def without(option: str, arguments: Sequence[str]) -> list[str]:
    """The arguments without an option and its value.

    >>> without("--nproc", ["train", "--nproc", "2", "--run", "r", "--nproc=2"])
    ['train', '--run', 'r']
    """
    values = {i + 1 for i, argument in enumerate(arguments) if argument == option}
    return [
        argument
        for i, argument in enumerate(arguments)
        if i not in values and argument.partition("=")[0] != option
    ]
