"""What a person sees on stderr: messages, levels, progress."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pyte
import pytest

from synmt_cli import console
from synmt_cli.io import reading

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


@pytest.mark.parametrize("say", [console.error, console.warn, console.info, console.debug])
def test_a_message_is_one_line_whatever_is_in_it(messages, say):
    console.set_level(console.VERBOSE)
    say("parameter a\n\x1b[31mb\udcff of model")
    assert messages().endswith(r"parameter a\n\x1b[31mb\udcff of model" + "\n")
    assert messages() == ""


def test_progress_is_a_line_now_and_then_where_no_terminal_is(messages, monkeypatch):
    with console.progress("parsed", total=2000) as bar:
        bar.advance(1000)
        assert messages() == ""
        monkeypatch.setattr(console, "INTERVAL", 0.0)
        bar.advance(500, "loss 3.1")
    assert bar.done == 1500
    shown = messages()
    assert shown.startswith("synmt train: parsed: 1,500 of 2,000 lines, ")
    assert shown.endswith("/s, loss 3.1\n")


def test_quiet_hides_progress(messages, monkeypatch):
    monkeypatch.setattr(console, "INTERVAL", 0.0)
    console.set_level(console.QUIET)
    with console.progress("parsed") as bar:
        bar.advance()
    assert messages() == ""


def on_terminal(code, **environment):
    """Runs a program with a terminal as stderr. Returns what it writes there, and its stdout."""
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
    assert "3 of 3 lines" in shown
    assert "loss 3.1" in shown
    assert "\x1b[3" in shown  # a colour
    assert out == b""


MESSAGES = """
import time
from synmt_cli import console
console.command = "synmt train"
console.WARM_UP = 99.0  # on a slow machine, too, no time left is told
with console.progress("training", 40, "steps") as bar:
    for n in range(8):
        time.sleep(0.1)
        bar.advance(5, f"epoch 1, loss {3 - n / 10:.3f}")
        console.info(f"step {bar.done}: dev perplexity 10.26, [BLEU] 0.03 :smile:, best")
        console.warn("w" * 150)
console.info("done")
"""


def screens(shown, width=100):
    """The lines that a terminal shows each time before the bar is drawn again, and at the end."""
    screen = pyte.Screen(width, 60)
    stream = pyte.Stream(screen)
    for part in re.split(r"(?=\r\x1b\[2K)", shown):  # before the bar is cleared
        stream.feed(part)
        yield [line.rstrip() for line in screen.display if line.strip()]


def test_messages_pass_above_the_bar_and_no_line_is_garbled():
    """pyte, a terminal in Python, shows whole messages, and one bar below them."""
    shown, _ = on_terminal(MESSAGES)
    message = re.compile(
        r"synmt train: (step \d+: dev perplexity 10\.26, \[BLEU] 0\.03 :smile:, best|done"
        r"|warning: w{78})|w{72}"
    )
    bar = re.compile(r"training [━╸╺]{20} \d+ of 40 steps 0:00:0\d(, epoch 1, loss [0-9.]+)?")
    bars = set()
    for lines in screens(shown):
        others = [line for line in lines if not message.fullmatch(line)]
        assert len(others) <= 1, others
        assert all(bar.fullmatch(line) for line in others), others
        bars.update(others)
    assert len(bars) >= 3  # it moves
    assert lines[-1] == "synmt train: done"
    assert sum(line.startswith("synmt train: step") for line in lines) == 8


def test_a_bar_is_as_wide_as_the_terminal_and_one_line_high():
    code = MESSAGES.replace("console.info(f", "str(").replace("console.warn", "str")
    shown, _ = on_terminal(code, COLUMNS="40")
    assert all(len(lines) <= 1 for lines in screens(shown, 40))


def test_records_and_a_bar_never_share_a_terminal():
    code = """
import os, sys, time
os.dup2(2, 1)
from synmt_cli import console
with console.progress("parsed", 3, output="-") as bar:
    for n in range(3):
        time.sleep(0.1)
        print(n, flush=True)
        bar.advance()
"""
    shown, _ = on_terminal(code)
    assert shown == "0\r\n1\r\n2\r\n"


def test_the_bytes_of_files_say_how_much_is_left(tmp_path, monkeypatch, messages):
    path = tmp_path / "lines"
    path.write_text("1234\n" * 4)
    monkeypatch.setattr(console, "WARM_UP", 0.0)
    with console.progress("parsed", files=[str(path)]) as bar, reading.open_source(str(path)) as f:
        assert bar.share() == 0
        assert bar.left() == ""
        read = list(bar.taken(reading.lines(f)))  # read ahead, as by several processes
        assert bar.share() == 0
        bar.tick(1, 0.5)
        assert bar.share() == 0.125  # half of the first line
        shares = []
        for _ in bar.finished(read):
            bar.advance()
            shares.append(bar.share())
        assert shares == [0.25, 0.5, 0.75, 1.0]
        assert bar.left() == "0 s left"
        assert bar.count() == "4 lines, 100%"
    with console.progress("parsed", files=[str(path)]) as bar, reading.open_source(str(path)) as f:
        monkeypatch.setattr(console, "INTERVAL", 0.0)
        [*bar.taken(reading.lines(f))]
        messages()
        bar.tick(1)
        assert messages() == "synmt train: parsed: 1 line\n"  # no speed before a part is done
        bar.tick(1, 0.5)
        assert re.fullmatch(r"synmt train: parsed: 1 line, 12%, .*s.* left\n", messages())
    with console.progress("parsed", files=["/dev/zero"]) as bar:
        assert bar.share() is None  # what is not a regular file has no size


def test_no_color_is_honoured():
    shown, _ = on_terminal(BAR, NO_COLOR="1")
    assert "parsed" in shown
    assert "\x1b[3" not in shown


def test_a_closed_stderr_ends_nothing():
    code = "from synmt_cli import console; console.error('x'); print('on')"
    line = f"'{sys.executable}' -c \"{code}\" 2>&-"
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=True)
    assert done.stdout == b"on\n"
