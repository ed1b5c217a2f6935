"""Training on disks that are full, too small, or not to be written on."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time

import pytest
from support.run_folders import check_whole, differences, last_step

EACH = ("--set", "training.save_every=1", "--set", "training.validate_every=1")

pytestmark = pytest.mark.long


@pytest.fixture
def mount():
    """`mount("-o", "size=4m", "-t", "tmpfs", "name", place)`; unmounts at the end. Needs root."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    with contextlib.ExitStack() as mounted:

        def mount(*arguments):
            command = ["mount", *map(str, arguments)]
            done = subprocess.run(command, capture_output=True, check=False)
            if done.returncode:
                pytest.skip(f"cannot mount: {done.stderr.decode().strip()}")
            unmount = ["umount", "--lazy", str(arguments[-1])]
            mounted.callback(subprocess.run, unmount, capture_output=True, check=False)

        yield mount


@pytest.fixture
def disk(mount, tmp_path):
    """A disk of 2 MiB at tmp_path/disk."""
    (tmp_path / "disk").mkdir()
    mount("-t", "tmpfs", "-o", "size=2m", "synmt-test", tmp_path / "disk")
    return tmp_path / "disk"


def fill(disk, rest):
    """Fills the disk except for `rest` bytes. Returns the file that takes the space."""
    found = os.statvfs(disk)
    ballast = disk / "ballast"
    ballast.write_bytes(b"\0" * (found.f_bavail * found.f_bsize - rest))
    return ballast


@pytest.mark.parametrize("rest", [0, 4096, 50_000, 130_000, 190_000])
def test_a_disk_that_fills_up_keeps_what_was_saved(train, disk, tmp_path, rest):
    """A checkpoint has about 130 kB and the best model 38 kB; three more do not fit."""
    run = disk / "r"
    train("--max-steps", 1, *EACH, run=run, status=0)
    ballast = fill(disk, rest)
    done = train("--max-steps", 6, *EACH, run=run, status=74)
    assert b"No space left" in done.stderr
    assert check_whole(run)
    assert not [path for path in run.rglob(".*") if path.name != ".lock"]
    ballast.unlink()
    train("--max-steps", 6, *EACH, run=run, status=0)
    train("--max-steps", 6, *EACH, run="whole", status=0)
    assert differences(run, tmp_path / "whole") == []


@pytest.mark.parametrize("rest", [0, 60_000, 140_000])
def test_a_disk_that_holds_no_checkpoint_at_all(train, disk, rest):
    run = disk / "r"
    ballast = fill(disk, rest)
    done = train("--max-steps", 3, *EACH, run=run)
    assert done.returncode in (73, 74)
    assert b"No space left" in done.stderr
    assert not run.exists() or check_whole(run) == []
    ballast.unlink()
    train("--max-steps", 3, *EACH, run=run, status=0)


@pytest.mark.parametrize("begun", [False, True])
def test_a_disk_that_is_only_read_is_refused_before_the_first_step(train, mount, tmp_path, begun):
    run = tmp_path / "r"
    run.mkdir()
    if begun:
        train("--max-steps", 1, status=0)
    before = sorted(run.rglob("*"))
    mount("--bind", run, run)
    mount("-o", "remount,bind,ro", run)
    start = time.monotonic()
    done = train("--max-steps", 9)
    assert done.returncode == 73
    assert time.monotonic() - start < 30
    assert b"Read-only file system" in done.stderr
    assert str(run).encode() in done.stderr
    assert sorted(run.rglob("*")) == before


def test_a_limit_on_the_size_of_files_keeps_what_was_saved(train, tmp_path):
    """The first checkpoint does not fit, and nothing incomplete has a final name."""
    line = "ulimit -f 40; trap '' XFSZ; exec "
    command = train.command("--max-steps", 4, *EACH)
    done = subprocess.run(["bash", "-c", line + command], capture_output=True, check=False)
    assert 1 <= done.returncode <= 125
    assert b"File too large" in done.stderr
    assert b"Traceback" not in done.stderr
    assert check_whole(tmp_path / "r") == []
    train("--max-steps", 4, *EACH, status=0)
    assert last_step(tmp_path / "r") == 4
