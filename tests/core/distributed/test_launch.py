"""Processes that are started and ended together."""

import contextlib
import os
import signal
import subprocess
import sys

import pytest

from synmt_cli.core.distributed import launch
from synmt_cli.errors import Stopped, WorkerLost


def test_processes_that_a_signal_ends_before_they_begin_are_stopped(monkeypatch):
    def start(arguments, rank, *_):
        if rank == 0:  # one signal: a second one would end this process
            os.kill(os.getpid(), signal.SIGTERM)
        return subprocess.Popen(["sleep", "60"], process_group=0)

    monkeypatch.setattr(launch, "_start", start)
    with pytest.raises(Stopped, match="the same command starts again"):
        launch.launch(["train"], 2)


@pytest.mark.parametrize(("given", "threads"), [(None, "3"), ("7", "7")])
def test_processes_share_the_cores(monkeypatch, given, threads):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if given is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    monkeypatch.setattr(launch, "n_processes", lambda jobs: 7)
    reading, writing = os.pipe()
    says = f"import os; os.write({writing}, os.environ['OMP_NUM_THREADS'].encode())"
    monkeypatch.setattr(launch, "PROGRAM", says)
    files = {launch.MEETING: f"{launch.DESCRIPTOR}{writing}"}
    child = launch._start(["train"], 0, 2, files, reading)
    assert child.wait() == 0
    assert os.read(reading, 9).decode() == threads


def test_a_process_that_something_else_ends_is_lost(monkeypatch):
    commands = iter((["sleep", "60"], ["sh", "-c", "kill -9 $$"]))
    monkeypatch.setattr(launch, "_start", lambda *_: subprocess.Popen(next(commands)))
    with pytest.raises(WorkerLost, match="a training process was killed") as lost:
        launch.launch(["train"], 2)
    assert lost.value.exit_code == 74


SAVES = "trap 'echo saved >> $ERRORS; exit 75' TERM; echo; while :; do sleep 0.05; done"


@pytest.mark.parametrize(
    ("scripts", "outcome"),
    [
        # The first said why it failed; the other one had no reason to give.
        (("echo no space >> $ERRORS; exit 74", "kill -9 $$"), 74),
        (("echo no space >> $ERRORS; exit 74", "exit 74"), 74),
        # The failure counts, not the process that was asked to end and saved.
        ((SAVES, "echo no card >> $ERRORS; exit 78"), 78),
        ((SAVES, "kill -9 $$"), "a training process was killed"),
        (("exit 74", "kill -9 $$"), "a training process was killed"),
        # Each lost the other, and one of them cannot end by itself.
        (
            ("exit 74", "trap '' TERM; echo; while :; do sleep 0.05; done"),
            "cannot reach each other",
        ),
        # Each lost the other.
        (("exit 74", "exit 74"), "cannot reach each other"),
        # Python itself said why it does not start.
        (("exit 1", "exit 1"), 1),
    ],
)
def test_what_failed_first_decides_how_all_end(monkeypatch, tmp_path, scripts, outcome):
    """The launcher says why, where no process could say so."""

    def start(arguments, rank, n, files, lifeline):
        command, environment = ["sh", "-c", scripts[rank]], {"ERRORS": str(tmp_path / "errors")}
        child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
        with child.stdout:
            is_ready = child.stdout.readline()
        if not is_ready:
            child.wait()
        return child

    @contextlib.contextmanager
    def file():
        (tmp_path / "errors").touch()
        yield str(tmp_path / "errors")

    monkeypatch.setattr(launch, "_start", start)
    monkeypatch.setattr(launch, "_shared_file", file)
    monkeypatch.setattr(launch, "GRACE", 1.0)
    if isinstance(outcome, int):
        assert launch.launch(["train"], 2) == outcome
    else:
        with pytest.raises(WorkerLost, match=outcome) as error:
            launch.launch(["train"], 2)
        assert error.value.exit_code == 74


def test_processes_that_a_signal_ends_while_they_import_are_stopped(monkeypatch):
    """They have signal handlers, but not yet those that save: they end with 143."""

    def start(arguments, rank, *_):
        if rank == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        ends = "trap 'exit 143' TERM; echo; while :; do sleep 0.05; done"
        child = subprocess.Popen(["sh", "-c", ends], stdout=subprocess.PIPE, process_group=0)
        assert child.stdout.readline() == b"\n"
        child.stdout.close()
        return child

    monkeypatch.setattr(launch, "_start", start)
    with pytest.raises(Stopped, match="the same command starts again"):
        launch.launch(["train"], 2)


def test_a_signal_that_comes_twice_does_not_interrupt_one_of_several():
    """It may come once to all processes, and once more from the program that started them."""
    code = """
import os, signal
from synmt_cli import signals
signals.install()
with signals.requested(is_one_of_several=True) as request:
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGTERM)
    assert request.number == signal.SIGTERM
    print("saved")
with signals.requested() as request:
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGTERM)
    print("too far")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.stdout == b"saved\n"
    assert b"Interrupted" in done.stderr


def test_processes_run_the_package_of_their_launcher(tmp_path):
    """It is not an installed one, and files next to it hide no module of Python."""
    (tmp_path / "synmt_cli").mkdir()
    (tmp_path / "synmt_cli/__init__.py").touch()
    main = "import sys, json\ndef main(): print(sys.argv[1:], json.dumps(1))\n"
    (tmp_path / "synmt_cli/__main__.py").write_text(main)
    (tmp_path / "json.py").write_text("raise SystemExit('hidden')")
    command = [sys.executable, "-P", "-c", launch.PROGRAM, str(tmp_path), "train"]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"['train'] 1\n"
