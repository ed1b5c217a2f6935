"""`synmt translate` as a user runs it, and run directories that nobody should trust."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle  # noqa: TID251 - to see that it is refused
import shutil
import struct
from types import SimpleNamespace

import pytest
import torch

from synmt_cli.core.decoding import ensemble
from synmt_cli.core.decoding.hypothesis import LengthLimit
from synmt_cli.core.decoding.translator import SearchSettings
from synmt_cli.core.inspection import model_problems
from synmt_cli.core.jobs.translation.job import TranslateJob, Wanted
from synmt_cli.core.run.directory import Run
from synmt_cli.errors import ConfigError, ReadError, SynmtError, Unavailable

SHORT = ("--max-output-len", "5", "--threads", "1")
TEXT = b"The dog sleeps.\n\nA cat sees the dog.\r\n \t\nAnna\xe2\x80\xa8laughs\nno end"


@pytest.fixture
def translate(run, example_folder):
    def translate(*arguments, stdin=b"", model="runs/pascal"):
        return run("translate", "-m", model, *SHORT, *arguments, stdin=stdin, cwd=example_folder)

    return translate


def test_one_line_for_each_line(translate):
    done = translate(stdin=TEXT)
    lines = done.stdout.split(b"\n")
    assert done.returncode == 0
    assert [bool(line) for line in lines] == [True, False, True, False, True, True, False]
    assert b"of 6 segments reached the length limit" in done.stderr


def test_text_trees_and_records_agree(translate, example_folder, run):
    parsed = run("parse", "-m", "en.udpipe", "test.en", cwd=example_folder).stdout
    made = run("featurize", "--spm", "spm.model", stdin=parsed, cwd=example_folder).stdout
    of_text = translate("test.en", "--format", "tsv").stdout
    assert of_text.count(b"\n") == 16
    assert translate("--format", "tsv", stdin=parsed).stdout == of_text
    assert translate("--format", "tsv", "--line-buffered", stdin=made).stdout == of_text


@pytest.mark.parametrize("window", [7, 1000])
def test_processes_write_what_one_writes(translate, window):
    options = ("--format", "tsv", "--window", window, "test.jsonl")
    alone = translate(*options)
    assert translate("-j", 3, *options).stdout == alone.stdout
    bad = b'{"src":"Anna laughs."}\n{"src":"A dog."}\n{"src":\n'
    done = translate("-j", 2, stdin=bad)
    assert (done.returncode, done.stdout.count(b"\n")) == (65, 2)
    assert b"<stdin>:3: invalid JSON" in done.stderr


def test_a_line_is_translated_while_the_pipe_waits(example_folder):
    settings = SearchSettings(beam=1, longest=LengthLimit(0, 5))
    model = str(example_folder / "runs/pascal")
    job = TranslateJob([model], "best", Wanted("cpu"), settings, jobs=1, threads=0)
    progress = SimpleNamespace(taken=iter, finished=iter, tick=lambda n, of: None)
    output, input = os.pipe()
    with open(input, "wb", buffering=0) as writer:
        records = job.reader("", ahead=1).read([f"/dev/fd/{output}"])
        results = job.translated(records, 1, print, progress, waited=float)
        for text in ("The dog sleeps.", "A cat sees the dog."):
            writer.write(f'{{"src":"{text}"}}\n'.encode())
            (translated,) = next(results)  # the pipe is open, and empty
            assert translated.record.src == text
    assert list(results) == []
    os.close(output)


def test_jsonl_keeps_the_record(translate):
    given = b'{"src":"The dog sleeps.","note":{"a":[1]},"cut":7}\n{"src":""}\n'
    done = translate("--format", "jsonl", "--nbest", "2", "--beam", "3", stdin=given)
    first, empty = map(json.loads, done.stdout.splitlines())
    assert (first["src"], first["note"]) == ("The dog sleeps.", {"a": [1]})
    assert first["hyp"] == first["nbest"][0]["hyp"]
    assert first["score"] == first["nbest"][0]["score"]
    assert len(first["nbest"]) == 2
    assert first.get("cut") == first["nbest"][0].get("cut")
    assert (empty["hyp"], empty["nbest"], empty["status"]) == ("", [], "empty")
    assert b"1 of 2 segments without a tree" in done.stderr


def test_tsv_gives_the_n_best(translate):
    rows = translate("--format", "tsv", "--nbest", "3", stdin=b"A dog.\n\n").stdout.splitlines()
    cells = [row.split(b"\t") for row in rows]
    assert [cell[0] for cell in cells] == [b"1", b"1", b"1", b"2"]
    assert cells[3] == [b"2", b"0.0000", b""]


def test_draws_depend_on_seed_and_segment_alone(translate, example_folder):
    options = ("--sample", "0", "--format", "tsv", "--nbest", "2")
    whole = translate(*options, "test.jsonl").stdout
    other = translate(*options, "--seed", "2", "test.jsonl").stdout
    assert whole.count(b"\n") == other.count(b"\n") == 32
    assert len({*whole.splitlines()} & {*other.splitlines()}) < 4
    for how in (("-j", 3, "--window", 7), ("--batch-size", 3), ("--line-buffered",)):
        assert translate(*options, *how, "test.jsonl").stdout == whole
    tail = b"".join((example_folder / "test.jsonl").read_bytes().splitlines(keepends=True)[5:])
    assert translate(*options, stdin=tail).stdout == b"".join(whole.splitlines(keepends=True)[10:])
    first = translate("--sample", "0", "test.jsonl").stdout.splitlines()
    assert first == [row.split(b"\t")[2] for row in whole.splitlines()[::2]]


def test_drawing_from_one_token_is_greedy(translate):
    greedy = translate("--beam", "1", "--format", "tsv", "test.jsonl").stdout
    assert translate("--sample", "1", "--format", "tsv", "test.jsonl").stdout == greedy


def test_an_ensemble_of_one_twice_is_that_one(translate):
    once = translate("test.jsonl").stdout
    assert translate("-m", "runs/pascal", "test.jsonl").stdout == once
    assert translate("-m", "runs/base", "test.jsonl").returncode == 0


def test_strict_ends_at_the_first_failure_after_whole_lines(translate):
    given = b'{"src":"a"}\n{"src":"b","status":"failed","reason":"no tree"}\n{"src":"c"}\n'
    done = translate("--strict", stdin=given)
    assert (done.returncode, done.stdout.count(b"\n")) == (65, 1)
    assert done.stderr.endswith(b"synmt translate: <stdin>:2: no tree\n")
    done = translate(stdin=given)
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 3)
    assert b"1 of 3 segments failed: translated without a tree" in done.stderr


def test_unreadable_text_is_translated_and_counted(translate):
    remark = b"2 of 3 segments with source pieces that the vocabulary lacks: read as <unk>"
    done = translate(stdin="Пёс спит.\nA dog sleeps.\nA пёс sleeps.\n".encode())
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 3)
    assert remark in done.stderr
    assert b"<unk>" not in translate(stdin=b"A dog sleeps.\n").stderr


def test_bad_records_end_with_their_line(translate):
    done = translate(stdin=b'{"src":"a"}\n{"src":1}\n')
    assert (done.returncode, done.stdout.count(b"\n")) == (65, 1)
    assert b"<stdin>:2: field src" in done.stderr


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (("--nbest", "2"), 2, b"--format tsv or jsonl"),
        (("--nbest", "5", "--format", "tsv"), 2, b"--beam 5 or more"),
        (("--sample", "0", "--beam", "2"), 2, b"--beam is for a search, and --sample draws"),
        (("--sample", "0", "--patience", "1"), 2, b"--patience is for a search"),
        (("--sample", "-1"), 2, b"--sample"),
        (("--sample", "0", "--temperature", "0"), 2, b"--temperature"),
        (("--temperature", "0.5"), 2, b"--temperature is for --sample"),
        (("--seed", "3"), 2, b"--seed is for --sample"),
        (("--beam", "0"), 2, b"--beam"),
        (("--lenpen", "nan"), 2, b"--lenpen"),
        (("--threads", "99999999999"), 2, b"at most 1024"),
        (("--checkpoint", "step-9"), 66, b"; it has best, last, step-2, step-3"),
        (("--device", "nowhere"), 69, b"--device cpu"),
        (("--parser", "spm.model"), 69, b"spm.model is damaged or no UDPipe 1 model"),
        (("-o", "nowhere/x"), 73, b"cannot create nowhere/x"),
    ],
)
def test_wrong_options_say_what_is_wrong(translate, options, status, message):
    done = translate(*options, stdin=b"A dog.\n")
    assert (done.returncode, done.stdout) == (status, b"")
    assert message in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_a_full_disk_is_an_error(shell, example_folder):
    done = shell(
        "echo dog | synmt translate -m runs/base --max-output-len 2 > /dev/full", example_folder
    )
    assert done.returncode == 74
    assert b"No space left" in done.stderr


# --- run directories ------------------------------------------------------------------------

CPU = torch.device("cpu")


@pytest.fixture
def copy(example_folder, tmp_path):
    """A copy of the trained run that may be damaged."""
    shutil.copytree(example_folder / "runs" / "pascal", tmp_path / "runs" / "pascal")
    return tmp_path / "runs" / "pascal"


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("pwned",)


def pickled(protocol):
    return pickle.dumps(Bomb(), protocol)


def torch_file(**options):
    file = io.BytesIO()
    torch.save({"a": Bomb()}, file, **options)
    return file.getvalue()


def with_header(model, change):
    n = struct.unpack("<Q", model[:8])[0]
    header = json.loads(model[8 : 8 + n])
    change(header[sorted(header)[1]])
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + model[8 + n :]


WEIGHTS = {
    "empty": lambda model: b"",
    "cut": lambda model: model[:-9],
    "flipped bit": lambda model: model[:-9] + bytes([model[-9] ^ 1]) + model[-8:],
    "pickle 2": lambda model: pickled(2),
    "pickle 4": lambda model: pickled(4),
    "torch zip": lambda model: torch_file(),
    "torch legacy": lambda model: torch_file(_use_new_zipfile_serialization=False),
    "header of 2^63": lambda model: struct.pack("<Q", 2**63) + model[8:],
    "offsets beyond": lambda model: with_header(
        model, lambda tensor: tensor.update(data_offsets=[0, 2**50])
    ),
    "huge shape": lambda model: with_header(
        model, lambda tensor: tensor.update(shape=[2**40, 2**40])
    ),
}


@pytest.mark.parametrize("damage", WEIGHTS)
def test_damaged_weights_are_refused_by_name(copy, damage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = copy / "model.safetensors"
    path.write_bytes(WEIGHTS[damage](path.read_bytes()))
    with pytest.raises(SynmtError, match=r"model\.safetensors"):
        ensemble.load([str(copy)], "best", CPU)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("d_model =", "d_modle =", r"config.toml:\d+: model.d_modle: .*did you mean 'd_model'"),
        ("d_model = 128", "d_model = true", "expected a whole number"),
        ("d_model = 128", "d_model = 64", "model.safetensors: .* has shape"),
        ("d_ff = 256", "d_ff = 99999999999", "must be at most"),
        ("d_ff = 256", "d_ff = 131072", "model.safetensors: .* has shape"),
        ("heads = 2", "heads = 99", "config.toml: pascal.heads must be within"),
        ('variant = "pascal"', 'variant = "pasca"', "config.toml: no variant 'pasca'"),
        ("[model]", "[model", r"config.toml:\d+: not TOML"),
        ("format = 1", "format = 9", "format 9, expected 1"),
        ("fingerprint = ", 'fingerprint = "0" # ', "but the run was trained with 0"),
        ("sha256 = ", "sha265 = ", r"\[parser\] needs file and sha256"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(copy, old, new, message):
    path = copy / "config.toml"
    text = path.read_text()
    assert old in text
    parser = text.index("[parser]") if old == "sha256 = " else 0
    path.write_text(text[:parser] + text[parser:].replace(old, new, 1))
    with pytest.raises(ConfigError, match=message):
        ensemble.load([str(copy)], "best", CPU)


@pytest.mark.parametrize("name", ["config.toml", "labels.json", "spm.model", "model.safetensors"])
def test_a_missing_file_is_named(copy, name):
    (copy / name).unlink()
    with pytest.raises((ReadError, Unavailable), match=name):
        ensemble.load([str(copy)], "best", CPU)


def test_a_run_without_a_best_model_says_what_is_there(copy):
    (copy / "model.safetensors").unlink()
    with pytest.raises(ReadError, match="--checkpoint last is there"):
        ensemble.load([str(copy)], "best", CPU)
    assert ensemble.load([str(copy)], "last", CPU).models


def test_an_ensemble_needs_one_vocabulary(copy, run, example_folder):
    run("vocab", "train", "--size", 120, "-o", copy / "spm.model", "train.de", cwd=example_folder)
    digest = hashlib.sha256((copy / "spm.model").read_bytes()).hexdigest()[:16]
    text = (copy / "config.toml").read_text()
    before = text.split('fingerprint = "')[1][:16]
    (copy / "config.toml").write_text(text.replace(before, digest))
    with pytest.raises(ConfigError, match=f"{before}.*{digest}"):
        ensemble.load([str(example_folder / "runs" / "base"), str(copy)], "best", CPU)


def test_a_run_that_was_moved_has_its_parser(copy, tmp_path, monkeypatch):
    """Nothing outside is needed, and the current folder makes no difference."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parser.udpipe").write_bytes(b"another")
    loaded = ensemble.load([str(copy)], "best", CPU)
    assert loaded.parser()() is not None
    assert list(model_problems.of_run(Run(copy))) == []
    (copy / "parser.udpipe").write_bytes(b"another")
    with pytest.raises(Unavailable, match=r"parser.udpipe is another file; .* --parser FILE"):
        loaded.parser()()
    (problem,) = model_problems.of_run(Run(copy))
    assert "parser.udpipe: not the parser of the digest in config.toml" in str(problem)
    (copy / "parser.udpipe").unlink()
    with pytest.raises(Unavailable, match=r"it is not there; .* --parser FILE"):
        loaded.parser()()


def test_a_mean_has_the_parser_of_its_run(run, copy, tmp_path):
    mean, parser = tmp_path / "mean", copy / "parser.udpipe"
    done = run("average", "-m", copy, "best", "-o", mean)
    assert done.returncode == 0, done.stderr.decode()
    assert (mean / "parser.udpipe").read_bytes() == parser.read_bytes()
    parser.write_bytes(b"another")
    done = run("average", "-m", copy, "best", "-o", tmp_path / "again")
    assert done.returncode == 65
    assert b"parser.udpipe: not the parser of the digest in config.toml" in done.stderr
    assert not (tmp_path / "again").exists()


def test_a_linked_parser_is_found_by_its_digest(copy, tmp_path, example_folder, monkeypatch):
    """By an absolute path, or next to the run; a relative one is never of the current folder."""
    monkeypatch.chdir(example_folder)
    digest = hashlib.sha256((copy / "parser.udpipe").read_bytes()).hexdigest()
    (copy / "parser.udpipe").unlink()
    absolute = str(example_folder / "en.udpipe")
    assert ensemble.find_parser(copy, absolute, digest) == absolute
    with pytest.raises(Unavailable, match="it is not there"):
        ensemble.find_parser(copy, "en.udpipe", digest)
    shutil.copy(absolute, copy.parent)
    assert ensemble.find_parser(copy, "en.udpipe", digest) == str(copy.parent / "en.udpipe")


def test_a_parser_that_cannot_be_read_hides_no_other(copy, example_folder, monkeypatch):
    """Such as that of a run which was linked to the files of someone else."""
    absolute, beside = str(example_folder / "en.udpipe"), copy.parent / "en.udpipe"
    digest = hashlib.sha256((copy / "parser.udpipe").read_bytes()).hexdigest()
    (copy / "parser.udpipe").rename(beside)

    def sha256(path):
        if path == absolute:
            raise ReadError("cannot read it")
        return digest

    monkeypatch.setattr(ensemble, "sha256", sha256)
    assert ensemble.find_parser(copy, absolute, digest) == str(beside)
    beside.unlink()
    with pytest.raises(Unavailable, match=r"but cannot read it; name a parser by --parser FILE"):
        ensemble.find_parser(copy, absolute, digest)


def test_a_parser_in_a_run_is_never_a_link(copy, example_folder):
    (copy / "parser.udpipe").unlink()
    (copy / "parser.udpipe").symlink_to(example_folder / "en.udpipe")
    with pytest.raises(ReadError, match=r"parser\.udpipe: it is a link"):
        ensemble.load([str(copy)], "best", CPU)


def test_models_without_syntax_need_no_parser(example_folder):
    assert ensemble.load([str(example_folder / "runs" / "base")], "last", CPU).parser() is None
