"""Files and folders in the making, with a signal at every place where Python takes one."""

import os
import signal
import subprocess
import sys

import pytest

# Makes something again and again, each time in a new process, with a signal at the first, second,
# third ... call or return from C, until there are no more. Python takes signals there, and where
# a loop goes on.
EVERYWHERE = """
import os, signal, sys, tempfile
from pathlib import Path
from synmt_cli import signals
from synmt_cli.io import writing

def files(place):
    with writing.atomic(place / "one") as one, writing.atomic(place / "two") as two:
        one.write(b"whole")
        two.write(b"whole")

def together(place):
    with writing.together([str(place / "one"), str(place / "two")]) as writers:
        for writer in writers:
            writer.write(b"whole")

def folder(place, replace=False):
    with writing.atomic_folder(place / "folder", replace) as made:
        (made / "file").write_bytes(b"whole")

def replaced(place):
    folder(place, replace=True)

def interrupted_at(count, make, place):
    def profile(frame, event, argument):
        nonlocal count
        if event in ("call", "c_return", "c_exception"):
            count -= 1
            if count == 0:
                sys.setprofile(None)
                os.kill(os.getpid(), signal.SIGTERM)

    signals.install()
    sys.setprofile(profile)
    try:
        make(place)
    except signals.Interrupted:
        pass
    sys.setprofile(None)
    return count <= 0

make = globals()[sys.argv[1]]
count, goes_on = 0, True
while goes_on:
    count += 1
    with tempfile.TemporaryDirectory() as place:
        place = Path(place)
        if make is replaced:
            (place / "folder").mkdir()
            (place / "folder" / "file").write_bytes(b"older")
        child = os.fork()
        if not child:
            try:
                goes_on = interrupted_at(count, make, place)
                signals.close()
            finally:
                os._exit(goes_on)
        goes_on = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        left = {str(p.relative_to(place)): p.read_text() for p in place.rglob("*") if p.is_file()}
        print(*sorted(left.items()), sep=",")
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("made", "may_be_left"),
    [
        ("files", [{}, {"two": "whole"}, {"one": "whole", "two": "whole"}]),
        ("together", [{}, {"one": "whole", "two": "whole"}]),
        ("folder", [{}, {"folder/file": "whole"}]),
        ("replaced", [{"folder/file": "older"}, {"folder/file": "whole"}]),
    ],
)
def test_a_signal_leaves_whole_files_or_none(made, may_be_left):
    done = subprocess.run(
        [sys.executable, "-c", EVERYWHERE, made], capture_output=True, text=True, check=True
    )
    left = done.stdout.splitlines()
    assert len(left) > 100
    allowed = {",".join(map(str, sorted(files.items()))) for files in may_be_left}
    assert set(left) == allowed


def test_a_signal_before_a_file_is_closed_leaves_nothing(tmp_path):
    """The signal's error refers to the open files, and would keep them from being closed."""
    code = """
import os, signal, sys
from synmt_cli import cli

def profile(frame, event, argument):
    manager = frame.f_locals.get("self")
    if (event, frame.f_code.co_name) == ("call", "__exit__"):
        if getattr(getattr(manager, "gen", None), "__name__", "") == "atomic":
            sys.setprofile(None)
            os.kill(os.getpid(), signal.SIGTERM)

sys.setprofile(profile)
cli.main()
"""
    (tmp_path / "in").write_bytes(b"a b\n")
    command = ["bucket-by-length", "in", "--format", "labelled", "-o", "out"]
    done = subprocess.run([sys.executable, "-c", code, *command], cwd=tmp_path, check=False)
    assert done.returncode == 128 + signal.SIGTERM
    assert os.listdir(tmp_path) == ["in"]
