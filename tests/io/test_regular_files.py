"""Only regular files are opened, and at once; only JSON that every program reads alike is taken."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket

import pytest

from synmt_cli.errors import CreateError, DataError, ReadError, SynmtError
from synmt_cli.io import json_files, regular_files, writing
from synmt_cli.io.digests import sha256


def socket_at(path):
    with socket.socket(socket.AF_UNIX) as one:
        here = os.getcwd()
        os.chdir(path.parent)  # the name of a socket has to be short
        try:
            one.bind(path.name)
        finally:
            os.chdir(here)


PLANTED = {
    "link": lambda path: path.symlink_to(path.parent / "outside"),
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "pipe": os.mkfifo,
    "socket": socket_at,
    "folder": lambda path: path.mkdir(),
}


@pytest.fixture(params=PLANTED)
def planted(request, tmp_path):
    """A name that is not a regular file; a link leads to `outside`."""
    (tmp_path / "outside").write_bytes(b"[1]\n")
    PLANTED[request.param](tmp_path / "planted")
    yield tmp_path / "planted"
    assert (tmp_path / "outside").read_bytes() == b"[1]\n"


def test_only_a_regular_file_is_read(planted):
    for read in (
        lambda: regular_files.read(planted, 9),
        lambda: [*regular_files.lines(planted, 9)],
        lambda: json_files.read(planted),
    ):
        with pytest.raises(ReadError, match="planted"):
            read()


def test_writing_goes_through_nothing_else(planted):
    with pytest.raises(CreateError, match="planted"):
        json_files.write(planted, 1)
    with pytest.raises(OSError):  # noqa: PT011
        regular_files.append(planted, b"x")
    assert {path.name for path in planted.parent.iterdir()} == {"outside", "planted"}


def test_a_full_disk_takes_all_or_nothing(tmp_path):
    path = tmp_path / "file"
    regular_files.append(path, b"one\n")
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            regular_files.append(path, b"two\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, previous)
    assert path.read_bytes() == b"one\n"
    regular_files.append(path, b"three\n")
    assert path.read_bytes() == b"one\nthree\n"


def test_a_link_that_the_user_named_is_followed(tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("file")
    assert regular_files.read(tmp_path / "link", 1, follow=True) == b"x"
    assert sha256(str(tmp_path / "link")) == sha256(str(tmp_path / "file"))
    with pytest.raises(ReadError):
        sha256("/dev/zero")


def test_a_file_beyond_its_limit_takes_no_memory(tmp_path):
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(5 * 2**30)
    with pytest.raises(DataError, match="5,368,709,120 bytes"):
        regular_files.read(tmp_path / "sparse", 100)
    with pytest.raises(DataError, match=":1: line longer"):
        next(regular_files.lines(tmp_path / "sparse", 100))


def test_a_name_with_nul_is_refused():
    with pytest.raises(ReadError):
        regular_files.read("a\0b", 1)


def test_a_temporary_name_that_is_taken_is_left_alone(tmp_path):
    """It may be a link that a stranger planted, or left by a former process of the same number."""
    (tmp_path / "victim").write_bytes(b"mine")
    (tmp_path / f".f.{os.getpid()}.tmp").symlink_to("victim")
    (tmp_path / f".d.{os.getpid()}.tmp").symlink_to("victim")
    with writing.atomic(tmp_path / "f") as writer:
        writer.write(b"new\n")
    with writing.atomic_folder(tmp_path / "d") as folder:
        (folder / "inside").write_bytes(b"new\n")
    assert (tmp_path / "f").read_bytes() == (tmp_path / "d/inside").read_bytes() == b"new\n"
    assert (tmp_path / "victim").read_bytes() == b"mine"


def test_a_new_folder_gets_those_above_it_and_one_that_is_replaced_does_not(tmp_path):
    with writing.atomic_folder(tmp_path / "a/b/c") as folder:
        (folder / "inside").touch()
    assert (tmp_path / "a/b/c/inside").exists()
    with pytest.raises(CreateError), writing.atomic_folder(tmp_path / "gone/d", replace=True):
        pass  # the folder it was in has been removed
    assert not (tmp_path / "gone").exists()
    inside = tmp_path / "a/b/c/inside"
    for below in (inside / "d", inside / "d/e"):
        with pytest.raises(CreateError, match=r"Not a directory$"), writing.atomic_folder(below):
            pass


def test_an_error_in_a_new_folder_names_the_file_as_in_the_final_one(tmp_path):
    final = tmp_path / "d"
    with (
        pytest.raises(CreateError, match=rf"^cannot create {final}/gone/f: No such file"),
        writing.atomic_folder(final) as folder,
        writing.atomic(folder / "gone/f"),
    ):
        pass
    with pytest.raises(FileNotFoundError) as raised, writing.atomic_folder(final) as folder:
        (folder / "gone/below").mkdir()
    assert raised.value.filename == f"{final}/gone/below"
    assert not list(tmp_path.iterdir())


HOSTILE_JSON = {
    "empty": b"",
    "not UTF-8": b'"\xff"',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "mark": b"\xef\xbb\xbf{}",
    "brackets": b"[" * 20_000,
    "closed brackets": b"[" * 20_000 + b"]" * 20_000,
    "objects": b'{"a":' * 900 + b"1" + b"}" * 900,
    "17 lists": b"[" * 17 + b"]" * 17,
    "digits": b"1" * 5_000,
    "65 bits": b"18446744073709551616",
    "NaN": b"[NaN]",
    "infinity": b'{"a": -Infinity}',
    "infinite exponent": b"1e999",
    "half a character": b'["\\ud800"]',
    "half a key": b'{"\\udfff": 1}',
    "duplicate key": b'{"a": 1, "b": {"a": 1, "a": 1}}',
    "two values": b"{} {}",
    "NUL": b"\0",
}


@pytest.mark.parametrize("kind", HOSTILE_JSON)
def test_json_that_others_read_differently_is_refused(tmp_path, kind):
    path = tmp_path / "x.json"
    path.write_bytes(HOSTILE_JSON[kind])
    with pytest.raises(DataError, match=r"x\.json:1: ") as raised:
        json_files.read(path)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("value", [None, True, -(2**63), 1.5, "ä😀", [[]], {"a": {"b": [1, None]}}])
def test_any_other_value_comes_back(tmp_path, value):
    json_files.write(tmp_path / "x.json", value)
    assert json_files.read(tmp_path / "x.json") == value


SEALED = {
    "list": [],
    "null": None,
    "no state": {"format": 1},
    "a list of a state": {"format": 1, "state": []},
    "format as text": {"format": "1" * 1000, "state": {}},
    "no digest": {"format": 1, "state": {}},
    "a digest that is a list": {"format": 1, "sha256": [], "state": {}},
}


@pytest.mark.parametrize("kind", SEALED)
def test_a_seal_of_another_shape_is_refused(tmp_path, kind):
    (tmp_path / "x.json").write_bytes(json.dumps(SEALED[kind]).encode())
    with pytest.raises(SynmtError, match=r"x\.json") as raised:
        json_files.read_sealed(tmp_path / "x.json", "a state")
    assert len(str(raised.value)) < 500


def test_a_name_that_is_not_utf_8_is_a_text():
    assert json_files.as_text(os.fsdecode(b"caf\xe9.jsonl")) == "caf\\xe9.jsonl"
    assert json_files.as_text("café.jsonl") == "café.jsonl"
