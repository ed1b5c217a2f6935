"""Training that is killed, stopped, or wanted by two: nothing is lost."""

from __future__ import annotations

import json
import random
import signal
import time

import pytest
from support.run_folders import (
    ENDLESS,
    OFTEN,
    check_whole,
    differences,
    is_temporary,
    last_step,
    wait_for,
)

pytestmark = pytest.mark.long


# --- kill, stop, resume ---------------------------------------------------------------------


def seconds_of_a_short_one(train, options):
    """The time of a short run, so that signals come at the same places on a busy machine."""
    start = time.monotonic()
    train("--max-steps", 3, *options, run="short", status=0)
    return time.monotonic() - start


def test_a_run_killed_twenty_times_ends_as_one_never_stopped(train, tmp_path):
    """First while it starts, then anywhere: whatever has a final name is whole each time."""
    rng = random.Random(27)
    options = ("--set", "pascal.ignore=0.5", "--variant", "pascal", *OFTEN)
    short, saved = seconds_of_a_short_one(train, options), 0
    for n in range(20):
        when = 0.02 * (n + 1) if n < 4 else rng.uniform(0.3, 2.5) * short
        train(*ENDLESS, *options, signals=[(when, signal.SIGKILL)], status=-signal.SIGKILL)
        steps = check_whole(tmp_path / "r") if (tmp_path / "r").exists() else []
        assert max(steps, default=0) >= saved
        saved = max(steps, default=0)
    assert saved > 0
    for run in ("r", "whole"):
        train("--max-steps", saved + 5, *options, run=run, status=0)
    assert differences(tmp_path / "r", tmp_path / "whole") == []
    assert not [path for path in (tmp_path / "r").rglob("*") if is_temporary(path.name)]


def test_a_run_stopped_twenty_times_ends_as_one_never_stopped(train, tmp_path):
    rng = random.Random(28)
    options = ("--set", "training.accumulate=2", *OFTEN)
    short, saved = seconds_of_a_short_one(train, options), 0
    for n in range(20):
        if n % 3 == 0:
            done = train(*ENDLESS, *options, "--time-limit", "0.1s", status=75)
        else:
            number = (signal.SIGTERM, signal.SIGINT)[n % 2]
            when = rng.uniform(0.9, 1.8) * short
            done = train(*ENDLESS, *options, signals=[(when, number)], status=75)
        if b"stopped while reading the records" in done.stderr:
            continue  # on a machine with other work the signal may come that early
        step = last_step(tmp_path / "r")
        assert f"stopped at step {step:,} ".encode() in done.stderr
        assert step >= saved
        saved = step
    assert saved >= 20
    for run in ("r", "whole"):
        train("--max-steps", saved + 5, *options, run=run, status=0)
    assert differences(tmp_path / "r", tmp_path / "whole") == []


def test_a_run_that_is_moved_away_ends_and_leaves_the_next_one_alone(train, tmp_path):
    """make moves a run like this if the settings change while the training still goes on."""
    training = train.start(*ENDLESS, *OFTEN)
    wait_for(lambda: last_step(tmp_path / "r"))
    training.send_signal(signal.SIGSTOP)
    (tmp_path / "r").rename(tmp_path / "aside")
    train("--max-steps", 4, *OFTEN, status=0)
    made = {path: path.read_bytes() for path in (tmp_path / "r").rglob("*") if path.is_file()}
    training.send_signal(signal.SIGCONT)
    _, errors = training.communicate(timeout=60)
    assert training.returncode == 74
    assert b"was moved or replaced while this training wrote to it" in errors
    assert check_whole(tmp_path / "aside")
    assert made == {p: p.read_bytes() for p in (tmp_path / "r").rglob("*") if p.is_file()}


def test_a_second_signal_ends_at_once(train, tmp_path):
    """Both come at the same moment, while the process is held: nothing can happen between."""
    training = train.start(*ENDLESS, *OFTEN)
    wait_for(lambda: last_step(tmp_path / "r"))
    for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
        training.send_signal(number)
    _, errors = training.communicate(timeout=5)
    assert training.returncode == 128 + signal.SIGTERM
    assert errors.count(b"\n") == errors.count(b"synmt train: ")  # no traceback, no save
    assert b"stopped at" not in errors
    assert check_whole(tmp_path / "r")


def test_a_signal_does_not_wait_for_an_update_of_many_batches(train, tmp_path, example_folder):
    more = ("--train", example_folder / "train.jsonl") * 60
    training = train.start(*ENDLESS, *more, "--set", "training.accumulate=100000")
    wait_for(lambda: (tmp_path / "r/config.toml").exists())
    time.sleep(0.5)
    training.terminate()
    _, errors = training.communicate(timeout=10)
    assert training.returncode == 75
    assert b"stopped at step 0 " in errors
    assert check_whole(tmp_path / "r") == [0]


def test_a_signal_at_any_time_has_a_right_status(train, tmp_path):
    """While the program reads, builds or trains, it is stopped, or ended by the signal."""
    for n in range(12):
        run = f"r{n}"
        done = train(*ENDLESS, *OFTEN, run=run, signals=[(0.02 * n, signal.SIGTERM)])
        assert done.returncode in (-signal.SIGTERM, 75, 128 + signal.SIGTERM)
        if (tmp_path / run).exists():
            steps = check_whole(tmp_path / run)
            assert (done.returncode == 75) == bool(steps)


@pytest.mark.parametrize("variant", ["vanilla", "gps+tags"])
def test_ten_and_ten_steps_are_twenty(train, tmp_path, variant):
    options = ("--variant", variant, "--set", "training.accumulate=6", "--set", "model.dropout=0.3")
    options += ("--set", "training.validate_every=5", "--set", "training.save_every=5")
    for steps in (10, 20):
        train(*options, "--max-steps", steps, run="parts", status=0)
    train(*options, "--max-steps", 20, run="whole", status=0)
    assert differences(tmp_path / "parts", tmp_path / "whole") == []
    lines = map(json.loads, (tmp_path / "whole/metrics.jsonl").read_bytes().splitlines())
    first, middle, _, end = (line["epoch"] for line in lines if line["event"] == "dev")
    assert first < middle < end  # an epoch ends in each half


# --- two writers ----------------------------------------------------------------------------


def test_of_two_writers_the_second_is_refused_and_the_first_goes_on(train, tmp_path):
    first = train.start(*ENDLESS, *OFTEN)
    wait_for(lambda: last_step(tmp_path / "r"))
    start = time.monotonic()
    done = train(*ENDLESS, *OFTEN, status=73)
    assert time.monotonic() - start < 60
    assert b"another" in done.stderr
    seen = last_step(tmp_path / "r")
    wait_for(lambda: last_step(tmp_path / "r") > seen)
    first.kill()
    first.wait()
    saved = last_step(tmp_path / "r")
    done = train("--max-steps", saved + 1, *OFTEN, status=0)
    assert f"at step {saved:,}".encode() in done.stderr
