"""`synmt split` as a user runs it."""

import pytest

from synmt_cli.commands.split import split
from synmt_cli.core.filtering import partition
from synmt_cli.errors import DataError


@pytest.fixture
def text(tmp_path):
    lines = [f"line {n}" for n in range(30)] + ["line 3", "", "line 7"]
    (tmp_path / "a.en").write_text("".join(f"{line}\n" for line in lines))
    others = [f"zeile {n}" for n in range(30)] + ["andere 3", "leer", "zeile 8"]
    (tmp_path / "a.de").write_text("".join(f"{line}\n" for line in others))
    return tmp_path


TEMPLATE = ("--out-template", "{part}.{name}")


def test_every_pair_is_in_one_part_in_its_order(run, text):
    done = run("split", "--part", "dev=4", "--part", "test=5", *TEMPLATE, "a.en", "a.de", cwd=text)
    assert done.returncode == 0
    assert b"33 pairs by a hash of their lines: dev 4, test 5, train 24" in done.stderr
    whole = list(zip(*((text / n).read_text().split("\n") for n in ("a.en", "a.de")), strict=True))
    seen = []
    for part, size in (("dev", 4), ("test", 5), ("train", 24)):
        sides = [(text / f"{part}.{n}").read_text().split("\n")[:-1] for n in ("a.en", "a.de")]
        pairs = list(zip(*sides, strict=True))
        assert len(pairs) == size
        assert pairs == [pair for pair in whole if pair in pairs]
        seen += pairs
    assert sorted(seen) == sorted(whole[:-1])


def test_a_missing_input_is_missing_when_there_are_outputs_of_before(run, text):
    (text / "dev.gone").write_text("x\n")
    done = run("split", "--part", "dev=4", *TEMPLATE, "gone", cwd=text)
    assert (done.returncode, (text / "dev.gone").read_text()) == (66, "x\n")
    assert done.stderr.startswith(b"synmt split: cannot read gone: No such file")


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--part", "dev=33"], 2, b"33 pairs are too few"),
        (["--part", "dev"], 2, b"--part is NAME=N"),
        (["--part", "dev=0"], 2, b"--part is NAME=N"),
        (["--part", f"dev={'9' * 5000}"], 2, b"--part is NAME=N"),
        (["--part", "dev=01"], 2, b"--part is NAME=N"),
        (["--part", "dev=1", "--part", "dev=2"], 2, b"twice"),
        (["--part", "dev=1", "--part", "./dev=2"], 2, b"names a file twice"),
        (["--part", "dev=1", "--rest", "./dev"], 2, b"names a file twice"),
        (["--part", "dev=1", "--rest", ""], 2, b"--rest is the name of a part"),
        (["--part", "train=1"], 2, b"twice"),
        (["--part", "dev=1", "missing"], 66, b"cannot read missing"),
        (["--part", "dev=1", "-"], 2, b"read twice"),
        (["--part", "dev=1", "/dev/zero"], 2, b"read twice"),
        (["--part", "dev=1", "short"], 65, b"short: 1 line, but a.en has 33"),
    ],
)
def test_what_cannot_be_split_leaves_nothing(run, text, options, status, message):
    (text / "short").write_text("one\n")
    before = sorted(text.iterdir())
    done = run("split", *TEMPLATE, "a.en", "a.de", *options, cwd=text)
    assert done.returncode == status
    assert message in done.stderr
    assert done.stderr.count(b"\n") == 1
    assert sorted(text.iterdir()) == before


@pytest.mark.parametrize(
    ("line", "kind"), [("# sent_id = {}", "CoNLL-U"), ('{{"id": "{}"}}', "JSONL")]
)
def test_what_begins_like_records_is_split_with_a_warning(run, tmp_path, line, kind):
    (tmp_path / "f").write_text("".join(line.format(n) + "\n" for n in range(9)))
    done = run("split", "--part", "dev=4", *TEMPLATE, "f", cwd=tmp_path)
    warning = f"synmt split: warning: f begins like {kind}, and is split line by line"
    assert (done.returncode, done.stderr.decode().splitlines()[0]) == (0, warning)
    assert len((tmp_path / "dev.f").read_text().splitlines()) == 4


@pytest.mark.parametrize("change", ["shorter", "longer", "edited"])
def test_a_file_that_changes_between_its_readings_leaves_nothing(text, monkeypatch, change):
    monkeypatch.chdir(text)
    before = sorted(text.iterdir())
    lines = (text / "a.en").read_text().splitlines(keepends=True)
    changed = {"shorter": lines[1:], "longer": [*lines, "x\n"], "edited": ["x\n", *lines[1:]]}
    grouped = partition.grouped

    def grouped_then_changed(pairs):
        groups = grouped(pairs)
        (text / "a.en").write_text("".join(changed[change]))
        return groups

    monkeypatch.setattr(partition, "grouped", grouped_then_changed)
    with pytest.raises(DataError, match=r"changed while it was read|lines, but a.en has 3"):
        split(["a.en", "a.de"], ["dev=4"], "{part}.{name}")
    assert sorted(text.iterdir()) == before
