"""How runs end: one line, the right status, for every kind of failure."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from multiprocessing.reduction import ForkingPickler

import pytest
from support import program

from synmt_cli import cli, console, errors, signals
from synmt_cli.errors import BUG, DataError, SynmtError, printable, quoted

STATUSES = {
    "NegativeAnswer": 1,
    "UsageError": 2,
    "DataError": 65,
    "ReadError": 66,
    "Unavailable": 69,
    "CreateError": 73,
    "WriteError": 74,
    "WorkerLost": 74,
    "Stopped": 75,
    "ConfigError": 78,
}
TEMPORARY = "no folder for temporary files can be written; set TMPDIR to one"
MEMORY = "out of memory: try smaller batches or fewer processes"
BROKEN = "1\tThe\t_\tDET\t_\t_\t2\tdet\t_\n\n"  # nine columns
TREE = "1\tWait\twait\tVERB\t_\t_\t0\troot\t_\t_\n\n"


def test_every_error_has_the_exit_status_of_the_contract():
    found = {
        name: one.exit_code
        for name, one in vars(errors).items()
        if isinstance(one, type) and issubclass(one, SynmtError) and one is not SynmtError
    }
    assert found == STATUSES


def test_the_docstring_lists_every_error_with_its_status():
    rows = dict(re.findall(r"^  (\w+) +(\d+) ", errors.__doc__, re.MULTILINE))
    assert {name: int(status) for name, status in rows.items()} == STATUSES


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (DataError("dev.conllu", 1834, "9 columns, expected 10"), "dev.conllu:1834: 9 columns"),
        (DataError("dev.conllu", None, "no sentences"), "dev.conllu: no sentences"),
        (DataError("new\nline\x1b", 2, "x"), r"new\nline\x1b:2: x"),
    ],
)
def test_bad_data_is_named_by_file_and_line(error, text):
    assert str(error).startswith(text)


def test_an_error_comes_whole_out_of_a_worker():
    error = ForkingPickler.loads(ForkingPickler.dumps(DataError("f", 7, "bad")))
    assert (error.source, error.line, error.problem) == ("f", 7, "bad")
    assert str(error) == "f:7: bad"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ä 日本 🙂", "plain ä 日本 🙂"),
        ("a\nb\tc\x1b[31m", r"a\nb\tc\x1b[31m"),
        ("\u202eevil\u2066\u200b\ufeff", r"\u202eevil\u2066\u200b\ufeff"),
        ("\u2028\u2029\x85", r"\u2028\u2029\x85"),
        ("\udcff\ue000\U000e0001", r"\udcff\ue000\U000e0001"),
        ("a\u00a0b\u3000c e\u0301", "a\u00a0b\u3000c e\u0301"),
    ],
)
def test_what_could_disturb_a_terminal_is_escaped(text, shown):
    assert printable(text) == shown


def test_an_error_escapes_names_and_words_of_the_input():
    assert str(SynmtError("a\x1b[31m\nb")) == r"a\x1b[31m\nb"
    assert str(DataError("f\n", 7, "\u202eevil")) == r"f\n:7: \u202eevil"


def test_a_quote_is_cut_at_eighty_characters():
    assert quoted("ä" * 80) == f"'{'ä' * 80}'"
    assert quoted("ä" * 5000) == f"'{'ä' * 80}…'"
    assert quoted("\x00" * 100) == "'" + r"\x00" * 80 + "…'"


# The end of a run.


@pytest.fixture
def lines(capfd, monkeypatch):
    """`lines()` returns what went to stderr since the last call."""
    monkeypatch.setattr(console, "command", "synmt parse")
    return lambda: capfd.readouterr().err


@pytest.mark.parametrize("name", STATUSES)
def test_an_error_is_one_line_and_its_status(lines, name):
    kind = getattr(errors, name)
    error = kind("f", 3, "bad") if kind is DataError else kind("f:3: bad")
    assert cli._status(error) == STATUSES[name]
    assert lines() == "synmt parse: f:3: bad\n"


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (signals.Interrupted(2), 130, ""),
        (signals.Interrupted(15), 143, ""),
        (BrokenPipeError(), 141, ""),
        (OSError(28, "No space left on device", "x\ny"), 74, "x\\ny: No space left on device"),
        (OSError("damaged"), 74, "stdout: damaged"),
        (MemoryError(), 74, MEMORY),
        (RuntimeError("CUDA out of memory. Tried to allocate"), 74, MEMORY),
        (RuntimeError("can't start new thread"), 74, MEMORY),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"), 74, MEMORY),
        (ImportError("x.so: failed to map segment from shared object"), 74, MEMORY),
        (OSError(12, "Cannot allocate memory"), 74, MEMORY),
        (FileNotFoundError(2, "No usable temporary directory found in ['/tmp']"), 73, TEMPORARY),
        (SystemExit(0), 0, ""),
    ],
)
def test_what_the_system_does_is_reported_without_a_traceback(lines, error, status, text):
    assert cli._status(error) == status
    assert lines() == (f"synmt parse: {text}\n" if text else "")


def test_a_bug_keeps_its_traceback(lines):
    with pytest.raises(KeyError) as caught:
        raise KeyError("deprel")
    assert cli._status(caught.value) == BUG == 70
    shown = lines()
    assert "Traceback" in shown
    assert shown.endswith(
        "synmt parse: this is a bug in synmt; please report it with the lines above\n"
    )


def test_processes_that_find_the_same_bug_print_its_traceback_once(lines, monkeypatch, tmp_path):
    monkeypatch.setattr(console, "_errors", str(tmp_path / "errors"))
    for _ in range(2):  # processes
        with pytest.raises(KeyError) as caught:
            raise KeyError("deprel")
        assert cli._status(caught.value) == BUG
    assert lines().count("Traceback") == 1


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["parse", "-m", "x"], "synmt parse"),
        (["vocab", "train"], "synmt vocab train"),
        (["vocab"], "synmt"),
        (["-q", "score", "ref"], "synmt"),  # the option comes before the command
        (["nonsense"], "synmt"),
        ([], "synmt"),
    ],
)
def test_messages_begin_with_the_command(arguments, name):
    assert cli._name(arguments) == name


# Usage.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "no command 'nonsense'"),
        (["--nonsense"], "No such option: --nonsense"),
        (["vocab", "nonsense"], "no command 'vocab nonsense'"),
        (["featurize", "--nonsense"], "No such option: --nonsense"),
        (["featurize", "-j", "two"], "'-j'"),
        (["featurize", "-j", "-1"], "'-j'"),
        (["featurize", "-o"], "'-o' requires an argument"),
        (["translate"], "Missing option '-m'"),
        (["parse", "-m", "x", "--from", "pdf"], "'pdf' is not one of 'text'"),
        (["featurize", "--a\x1b[31mb\u202e\nc"], r"--a\x1b[31mb\u202e"),
    ],
)
def test_a_usage_error_is_one_line_and_2(run, arguments, message):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    shown = done.stderr.decode()
    assert shown.count("\n") == 1
    assert shown.startswith("synmt")
    assert message in shown
    assert shown.endswith("--help)\n")
    assert printable(shown[:-1]) == shown[:-1]


@pytest.mark.parametrize("arguments", [[], ["vocab"]])
def test_no_command_at_all_shows_the_help_on_stderr(run, arguments):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"Usage: synmt")


# A real filter from end to end.


def shell(line, stdin=b"", cwd=None):
    program = f"synmt() {{ '{sys.executable}' -m synmt_cli \"$@\"; }}\n"
    return subprocess.run(
        ["bash", "-c", program + line],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        timeout=60,
        check=False,
    )


def test_records_before_the_error_are_written_whole():
    done = shell("synmt featurize", stdin=(TREE * 3 + BROKEN + TREE).encode())
    assert done.returncode == 65
    assert done.stdout.count(b"\n") == 3
    assert done.stdout.endswith(b"}\n")
    assert done.stderr.startswith(b"synmt featurize: <stdin>:7: ")
    assert done.stderr.count(b"\n") == 1


def test_a_missing_file_is_66_and_named():
    done = shell("synmt featurize no.conllu")
    assert (done.returncode, done.stdout) == (66, b"")
    assert done.stderr == b"synmt featurize: cannot read no.conllu: No such file or directory\n"


def test_an_output_that_cannot_be_created_is_73():
    done = shell("synmt featurize -o /proc/x", stdin=TREE.encode())
    assert done.returncode == 73
    assert done.stderr.startswith(b"synmt featurize: cannot create /proc/x: ")


@pytest.mark.parametrize("n", [1, 3000])
def test_a_full_disk_is_74(n):
    done = shell("synmt featurize > /dev/full", stdin=(TREE * n).encode())
    assert done.returncode == 74
    assert done.stderr == b"synmt featurize: cannot write <stdout>: No space left on device\n"


def test_an_error_keeps_the_file_that_was_there(tmp_path):
    (tmp_path / "out.jsonl").write_bytes(b"old\n")
    done = shell("synmt featurize -o out.jsonl", stdin=(TREE + BROKEN).encode(), cwd=tmp_path)
    assert done.returncode == 65
    assert (tmp_path / "out.jsonl").read_bytes() == b"old\n"
    assert os.listdir(tmp_path) == ["out.jsonl"]


def test_a_closed_pipe_is_silent_and_141():
    line = 'synmt featurize | head -1 > /dev/null; echo "${PIPESTATUS[0]}"'
    done = shell(line, stdin=(TREE * 20_000).encode())
    assert (done.stdout, done.stderr) == (b"141\n", b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_signal_ends_a_filter_with_its_last_line_whole(number, jobs):
    command = [sys.executable, "-m", "synmt_cli", "featurize", "-j", str(jobs), "--line-buffered"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0) as child:
        child.stdin.write((TREE * 50).encode())
        out = child.stdout.read(1)  # it works; its input is still open
        child.send_signal(number)
        rest, err = child.communicate(timeout=15)
    assert (child.returncode, err) == (128 + number, b"")
    assert (out + rest).endswith(b"}\n")


# Runs a command whose input never ends again and again, with a signal at the first, second, third
# ... call or return from C in the main thread's waits, until two seconds pass without one. The
# first four are there on any system, however busy it is.
WAITS = """
import os, select, signal, sys, threading
from synmt_cli import cli

def run(count):
    def profile(frame, event, argument):
        nonlocal count
        if frame.f_code is threading.Condition.wait.__code__ and event in ("call", "c_return"):
            count -= 1
            if count == 0:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGINT)

    sys.setprofile(profile)
    sys.argv[:] = ["synmt", "featurize", "-j", "2"]
    cli.main()

source, held_open = os.pipe()
os.dup2(source, 0)
for count in range(1, 100):
    child = os.fork()
    if not child:
        os.close(held_open)
        run(count)
    watched = os.pidfd_open(child)
    if not select.select([watched], [], [], 2 if count > 4 else 60)[0]:
        os.kill(child, signal.SIGKILL)
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_a_signal_in_a_wait_for_workers_is_silent_wherever_it_comes():
    done = subprocess.run([sys.executable, "-c", WAITS], capture_output=True, check=True)
    assert done.stderr == b""
    assert len(statuses := done.stdout.split()) > 3
    assert set(statuses) == {b"130"}


@pytest.mark.parametrize("options", ["--help", "featurize --help", "--version"])
def test_help_to_a_full_disk_is_74_and_to_a_closed_pipe_silent(options):
    done = shell(f"synmt {options} > /dev/full")
    assert done.returncode == 74
    assert done.stderr.endswith(b"No space left on device\n")
    assert done.stderr.count(b"\n") == 1
    assert shell(f"synmt {options} | true").stderr == b""


def test_the_locale_changes_nothing():
    plain = shell("synmt featurize", stdin=TREE.replace("Wait", "Wärter").encode())
    for change in (
        "LC_ALL=C PYTHONIOENCODING=ascii",
        "LC_ALL=tr_TR.UTF-8 PYTHONHASHSEED=7 TZ=Asia/Tokyo",
    ):
        done = shell(
            f"export {change}; synmt featurize", stdin=TREE.replace("Wait", "Wärter").encode()
        )
        assert (done.stdout, done.returncode) == (plain.stdout, 0)


def test_control_c_while_the_program_loads_is_silent():
    code = """
import os, signal, sys, types
loading = types.ModuleType("synmt_cli.cli")
loading.main = lambda: os.kill(os.getpid(), signal.SIGINT)
import synmt_cli
sys.modules["synmt_cli.cli"] = synmt_cli.cli = loading
from synmt_cli.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


def test_a_signal_where_python_ignores_exceptions_raises_soon_after():
    """Python does so in callbacks; imports have many. The signal still waits for a whole record."""
    code = """
import os, signal, sys, time, weakref
from synmt_cli import signals

class Thing:
    pass

def ends(_):
    os.kill(os.getpid(), signal.SIGTERM)
    sum(range(10))  # the signal arrives here

signals.GRACE, signals.SOON = 60, 0.2
signals.install()
try:
    thing = Thing()
    watched = weakref.ref(thing, ends)
    del thing
    with signals.shielded():
        time.sleep(0.4)
        print("whole")
    time.sleep(60)
except signals.Interrupted as error:
    print(error.number)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, check=True)
    assert (done.stdout, done.stderr) == (b"whole\n15\n", b"")


def test_other_exceptions_that_python_ignores_are_told():
    code = """
from synmt_cli import signals

class Thing:
    def __del__(self):
        raise ValueError("told")

signals.install()
Thing()
print("goes on")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (done.stdout, b"told" in done.stderr) == (b"goes on\n", True)


@pytest.mark.parametrize("words", ["--help", "--version", "train --help", "variants"])
def test_a_closed_stdout_is_said(tmp_path, words):
    done = program.shell(f"synmt {words} >&-", tmp_path)  # a fork cannot be given a closed stdout
    assert done.returncode == 74
    assert done.stderr.count(b"\n") == 1
    assert b"Bad file descriptor" in done.stderr
