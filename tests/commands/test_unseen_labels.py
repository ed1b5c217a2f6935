"""Trees of another label scheme: models that read labels say so once, and others say nothing."""

from __future__ import annotations

import json

import pytest

from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.labels import Labels
from synmt_cli.core.data.unseen_labels import UnseenLabels, warnings
from synmt_cli.formats.record import Record

UNSEEN = b" words have labels that did not occur in training ("
SMALL = ("--preset", "tiny", "--max-steps", "1", "--set", "model.d_model=64")


@pytest.fixture(scope="module")
def folder(example_folder, forked, tmp_path_factory):
    """A run of `tags` and one of `dep`, and records with labels of another scheme."""
    made = tmp_path_factory.mktemp("labels")
    for variant in ("tags", "dep"):
        options = ("--variant", variant, "--train", example_folder / "train.jsonl", *SMALL)
        assert forked("train", *options, "--run", made / variant).returncode == 0
    lines = (example_folder / "test.jsonl").read_bytes().splitlines()
    records = [*map(json.loads, lines)]
    for record in records:
        record["deprels"] = [label.upper() for label in record["deprels"]]
    (made / "other.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    (made / "same.jsonl").write_bytes(b"\n".join(lines))
    return made


SEARCH = ("translate", "--max-output-len", "2")
COMMANDS = (SEARCH, (*SEARCH, "-j", "2"), ("likelihood",), ("analyze", "heads"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_model_that_reads_labels_says_that_they_are_of_another_scheme(folder, run, command):
    names = ("other.jsonl", "same.jsonl")
    other, same = (run(*command, "-m", "tags", name, cwd=folder) for name in names)
    assert (other.returncode, same.returncode) == (0, 0)
    (line,) = (line for line in other.stderr.splitlines() if UNSEEN in line)
    n, of, n_words, *_ = line[line.index(b"warning: ") :].replace(b"tags: ", b"").split()[1:]
    assert (n, of) == (n_words, b"of")
    assert b"NSUBJ" in line
    assert b"the parser that made those of training" in line
    assert UNSEEN not in same.stderr


def test_a_model_that_reads_no_labels_is_silent(folder, run):
    done = run(*SEARCH, "-m", "dep", "other.jsonl", cwd=folder)
    assert done.returncode == 0
    assert UNSEEN not in done.stderr


def test_training_says_that_dev_has_labels_of_another_scheme(folder, run, example_folder):
    for variant, dev, warns in (
        ("tags", "other.jsonl", True),
        ("tags", "same.jsonl", False),
        ("dep", "other.jsonl", False),
    ):
        files = ("--train", example_folder / "train.jsonl", "--dev", dev, "--dry-run")
        quick = ("--set", "training.batch_tokens=100")  # --dry-run times twenty updates
        done = run("train", "--variant", variant, *files, *SMALL, *quick, cwd=folder)
        assert done.returncode == 0
        assert (b"warning: other.jsonl: " in done.stderr and UNSEEN in done.stderr) == warns


@pytest.mark.parametrize(
    ("counts", "n"),
    [
        ({"det": 97, "SBJ": 3}, 3),
        ({"det": 98, "SBJ": 2}, 0),  # a word or two by chance
        ({"det": 297, "SBJ": 2, "OBJ": 1}, 3),
        ({"det": 298, "SBJ": 2, "OBJ": 1}, 0),  # fewer than one in a hundred
        ({"det": 50, "det:poss": 50}, 0),  # read as `det`
        ({}, 0),
    ],
)
def test_rare_labels_make_no_noise(counts, n):
    found = [*warnings(counts, Encoding(["tag"], Labels(["det"])))]
    assert [line.split()[0] for line in found] == [str(n)] * bool(n)
    assert [*warnings(counts, Encoding(["depth", "sentence"], Labels()))] == []


def test_the_commonest_labels_are_named():
    counts = {name: n for n, name in enumerate("abcdefgh", 1)}
    (line,) = warnings(counts, Encoding(["path"], Labels(["a"])))
    assert line.startswith("35 of 36 words")
    assert "('h', 'g', 'f', 'e', 'd' and 2 more)" in line


def test_a_failed_tree_is_not_counted():
    unseen = UnseenLabels(Encoding(["tag"], Labels()))
    for status, n in (("failed", 0), ("ok", 1)):
        unseen.add(Record("1", "a b c", status, heads=[-1, 0, 0], deprels=["x", "y", "z"]))
        assert len([*unseen.warnings()]) == n
