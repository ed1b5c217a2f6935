"""What a person sees on stderr: messages, levels, progress."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from synmt_cli import console

BAR = """
import sys, time
from synmt_cli import console
with console.progress("parsed", total=3) as bar:
    for n in range(3):
        time.sleep(0.15)
        bar.advance(note="loss 3.1")
"""


@pytest.fixture
def messages(capfd, monkeypatch):
    monkeypatch.setattr(console, "command", "synmt train")
    monkeypatch.setattr(console, "_level", console.NORMAL)
    return lambda: capfd.readouterr().err


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        (console.QUIET, ["e"]),
        (console.NORMAL, ["e", "warning: w", "i"]),
        (console.VERBOSE, ["e", "warning: w", "i", "d"]),
    ],
)
def test_levels_hide_messages_but_never_errors(messages, level, shown):
    console.set_level(level)
    for say in (console.error, console.warn, console.info, console.debug):
        say(say.__name__[0])
    assert messages() == "".join(f"synmt train: {text}\n" for text in shown)


def test_progress_is_a_line_now_and_then_where_no_terminal_is(messages, monkeypatch):
    with console.progress("parsed", total=2000) as bar:
        bar.advance(1000)
        assert messages() == ""
        monkeypatch.setattr(console, "INTERVAL", 0.0)
        bar.advance(500, "loss 3.1")
    assert bar.done == 1500
    shown = messages()
    assert shown.startswith("synmt train: parsed: 1,500 of 2,000 lines, ")
    assert shown.endswith("/s loss 3.1\n")


def test_quiet_hides_progress(messages, monkeypatch):
    monkeypatch.setattr(console, "INTERVAL", 0.0)
    console.set_level(console.QUIET)
    with console.progress("parsed") as bar:
        bar.advance()
    assert messages() == ""


def on_terminal(code, **environment):
    """What a program writes to a stderr that is a terminal, and to stdout."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "100", **environment}
    env = {name: value for name, value in env.items() if value}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=theirs, env=env
    ) as child:
        os.close(theirs)
        shown = b""
        while True:
            try:
                data = os.read(ours, 2**16)
            except OSError:  # the other end is closed
                break
            if not data:
                break
            shown += data
        out = child.stdout.read()
    os.close(ours)
    assert child.returncode == 0
    return shown.decode(), out


def test_a_terminal_gets_a_bar_and_stdout_stays_clean():
    shown, out = on_terminal(BAR, NO_COLOR="")
    assert "parsed" in shown
    assert "3/3" in shown
    assert "loss 3.1" in shown
    assert "\x1b[3" in shown  # a colour
    assert out == b""


def test_no_color_is_honoured():
    shown, _ = on_terminal(BAR, NO_COLOR="1")
    assert "parsed" in shown
    assert "\x1b[3" not in shown


def test_a_closed_stderr_ends_nothing():
    code = "from synmt_cli import console; console.error('x'); print('on')"
    line = f"'{sys.executable}' -c \"{code}\" 2>&-"
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=True)
    assert done.stdout == b"on\n"
