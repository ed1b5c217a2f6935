"""Commands that are given mutated files: a right result or one clear line, and never a bug.

They run in this process, so that thousands of runs take minutes.
"""

from __future__ import annotations

import itertools
import json
from contextlib import nullcontext

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.mutations import FEW, JSON_PIECES, PIECES, ROUNDS, mutations
from support.run_folders import SIZE

from synmt_cli import cli, console
from synmt_cli.core.jobs.translation.input import Reader
from synmt_cli.core.run import tensors
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.errors import ConfigError, DataError

CLEAR = (0, 1, 2, 65, 66, 69, 78)
BINARY = [b"\0", b"\xff" * 8, b"\x7f", b"\x80", b"{", b'"', b":", b"9" * 20]
TOML_PIECES = [b"=", b"[", b"]", b'"', b"\n", b"1e400", b"nan", b"-1", b"9" * 30, b"\xff", b"true"]
SIZES = [word for word in SIZE if word not in ("--threads", "1")]
DRY = ("--dry-run", "--threads", "1")


@pytest.fixture
def quiet():
    yield
    console.set_level(console.NORMAL)


@pytest.fixture
def folder(example_folder, tmp_path, monkeypatch):
    """A working folder with copies of small inputs, which tests mutate."""
    monkeypatch.chdir(tmp_path)
    for name in ("train.en.conllu", "train.jsonl"):
        lines = (example_folder / name).read_bytes().split(b"\n")
        end = 40 if name.endswith("jsonl") else lines.index(b"", 60) + 1
        (tmp_path / name).write_bytes(b"\n".join(lines[:end]) + b"\n")
    blocks = (tmp_path / "train.en.conllu").read_bytes().split(b"\n\n")
    (tmp_path / "two.conllu").write_bytes(b"\n\n".join(blocks[:2]) + b"\n\n")
    for name in ("spm.model", "symbols", "en.udpipe"):
        (tmp_path / name).write_bytes((example_folder / name).read_bytes())
    config = (example_folder / "runs/pascal/config.toml").read_text()
    (tmp_path / "c.toml").write_text(config[config.index("[model]") : config.index("[vocab")])
    assert cli._run(["linearize", "-q", "-o", "transitions", "train.en.conllu"]) == 0
    return tmp_path


TRAIN = ("train", "-q", "--train", "train.jsonl", "--spm", "spm.model", *SIZES, *DRY)
QUIET = ("-q", "-o", "out")
KINDS = {  # the file that is mutated, with what, and the command
    "featurize": ("train.en.conllu", PIECES, ("featurize", *QUIET, "--spm", "spm.model")),
    "linearize": ("train.en.conllu", PIECES, ("linearize", *QUIET)),
    "delinearize": ("transitions", PIECES, ("delinearize", *QUIET)),
    "repair": ("transitions", PIECES, ("delinearize", *QUIET, "--repair")),
    "parse": ("two.conllu", PIECES, ("parse", *QUIET, "--from=conllu", "-m", "en.udpipe")),
    "train": ("train.jsonl", JSON_PIECES, TRAIN),
    "configuration": ("c.toml", TOML_PIECES, (*TRAIN, "--variant=pascal", "--config=c.toml")),
    "vocabulary": (
        "spm.model",
        BINARY,
        ("vocab", "encode", "-o", "out", "-m", "spm.model", "symbols"),
    ),
    "pieces": ("spm.model", BINARY, ("vocab", "info", "-o", "out", "spm.model")),
}
for name, pieces in {
    **dict.fromkeys(("train.en.conllu", "transitions"), PIECES),
    "train.jsonl": JSON_PIECES,
    "spm.model": BINARY,
}.items():
    KINDS[f"info of {name}"] = (name, pieces, ("info", *QUIET))
    KINDS[f"check of {name}"] = (name, pieces, ("check", *QUIET))
OPERANDS = ("train.en.conllu", "two.conllu", "transitions")


def n_sentences(data):
    """The number of blocks in CoNLL-U: runs of lines that are not empty."""
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    groups = itertools.groupby(line.removesuffix(b"\r") != b"" for line in lines)
    return sum(is_block for is_block, _ in groups)


def n_lines(data):
    """The number of lines, including a last one without LF."""
    return data.count(b"\n") + (not data.endswith((b"\n", b"\xef\xbb\xbf")) and data != b"")


COUNTS = {  # functions that count an input and its output: equal if all is well
    **dict.fromkeys(("featurize", "linearize"), (n_sentences, n_lines)),
    **dict.fromkeys(("delinearize", "repair"), (n_lines, n_lines)),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files_give_a_result_or_a_clear_error(folder, quiet, kind, capfd):
    """The status is never 0 with a segment missing, and check writes the problems that it finds."""
    name, pieces, arguments = KINDS[kind]
    good = (folder / name).read_bytes()
    arguments = [*arguments, *([name] if " of " in kind or name in OPERANDS else [])]
    rounds = ROUNDS if kind in COUNTS or kind == "vocabulary" else FEW
    count_input, count_output = COUNTS.get(kind, (n_sentences, n_sentences))
    assert cli._run(arguments) == 0, capfd.readouterr().err
    n_refused = 0
    for data in mutations(good, 7, pieces, rounds):
        (folder / name).write_bytes(data)
        (folder / "out").write_bytes(b"")
        status = cli._run(arguments)
        messages = capfd.readouterr().err
        assert status in CLEAR, (data, messages)
        assert "Traceback" not in messages
        assert (status == 0) == (messages == ""), (data, messages)
        assert messages.count("\n") == (status != 0), (data, messages)
        output = (folder / "out").read_bytes()
        if status == 0 and (kind in COUNTS or kind == "parse"):
            assert count_output(output) == count_input(data), data
        assert (status == 1) == (arguments[0] == "check" and output != b""), (data, messages)
        n_refused += status != 0
    assert n_refused > 0
    assert n_refused < rounds or kind == "configuration"  # few mutations of one are valid


SETTINGS = b"training.lr=1e-3\tmodel.d_ff=16\tmodel.dropout=0.1\ttraining.betas=[0.9, 0.98]"


@pytest.mark.long
def test_mutated_settings_give_a_plan_or_a_clear_error(folder, quiet, capfd):
    n_refused = 0
    for data in mutations(SETTINGS, 10, [*TOML_PIECES, b".", b"\t"], FEW):
        texts = data.replace(b"\0", b"").decode("utf-8", "surrogateescape").split("\t")
        status = cli._run([*TRAIN, *(word for text in texts for word in ("--set", text))])
        messages = capfd.readouterr().err
        assert status in CLEAR, (data, messages)
        assert messages.count("\n") == (status != 0), (data, messages)
        n_refused += status != 0
    assert n_refused > 0


def test_mutated_tensors_are_refused(tmp_path):
    path = tmp_path / "w.safetensors"
    tensors.write(path, {"b": torch.arange(6.0).view(2, 3), "a": torch.ones(3)}, {"step": "7"})
    good = path.read_bytes()
    for data in mutations(good, 8, BINARY):
        path.write_bytes(data)
        with pytest.raises((DataError, ConfigError)) if data != good else nullcontext():
            tensors.read(path)


def test_mutated_records_are_sources_or_refused(folder):
    """The reader of translate finds a record in every line, or refuses the file."""
    vocabulary = Vocabulary.load(str(folder / "spm.model"))
    reader = Reader(vocabulary, vocabulary)
    good = b"\n".join((folder / "train.jsonl").read_bytes().split(b"\n")[:3]) + b"\n"
    n_read = n_refused = 0
    for data in mutations(good, 9, JSON_PIECES):
        (folder / "test.jsonl").write_bytes(data)
        try:
            found = list(reader.read(["test.jsonl"], "jsonl"))
        except (DataError, ConfigError):
            n_refused += 1
            continue
        assert len(found) == data.removesuffix(b"\n").count(b"\n") + 1
        n_read += 1
    assert n_read
    assert n_refused


LINES = st.lists(st.text(st.characters(exclude_characters="\0\n", codec="utf-8"), max_size=30))


@pytest.mark.long
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(LINES, st.integers(0, 30))
def test_any_lines_go_through_the_pipe_in_order(forked, tiny_udpipe, texts, cut):
    """parse | featurize gives one record for each line, the same with -j 4 or in two parts."""

    def piped(texts, *options):
        stdin = "".join(f"{text}\n" for text in texts).encode()
        parsed = forked("parse", "-m", tiny_udpipe, *options, stdin=stdin)
        done = forked("featurize", *options, stdin=parsed.stdout)
        assert (parsed.returncode, done.returncode) == (0, 0), parsed.stderr + done.stderr
        return done.stdout

    def bare(output):
        return [{**json.loads(line), "id": ""} for line in output.split(b"\n")[:-1]]

    whole = piped(texts)
    found = [json.loads(line) for line in whole.split(b"\n")[:-1]]
    assert [one["id"] for one in found] == [str(n) for n in range(1, len(texts) + 1)]
    assert [one["src"].removesuffix("\r") for one in found if one["status"] == "ok"] == [
        text.removesuffix("\r")
        for text, one in zip(texts, found, strict=True)
        if one["status"] == "ok"
    ]
    assert piped(texts, "-j", "4") == whole
    assert bare(piped(texts[:cut])) + bare(piped(texts[cut:])) == bare(whole)
