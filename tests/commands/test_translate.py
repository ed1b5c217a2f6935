"""`synmt translate` as a user runs it."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace

import pytest

from synmt_cli.core.decoding.hypothesis import LengthLimit
from synmt_cli.core.decoding.translator import SearchSettings
from synmt_cli.core.jobs.translation.job import TranslateJob, Wanted

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


def test_parts_have_one_translation_together_which_is_said(translate):
    options = ("--format", "tsv", "--nbest", "3", "--max-pieces", "6")
    done = translate(*options, stdin=b"A dog.\nThe dog sees the cat. The dog sees the cat.\n")
    assert [row.split(b"\t")[0] for row in done.stdout.splitlines()] == [b"1", b"1", b"1", b"2"]
    said = "1 of 2 segments of more than 6 pieces: translated in parts, with one translation each"
    assert said in done.stderr.decode()


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


def test_equal_parts_of_a_long_source_are_drawn_apart(translate):
    options = ("--sample", "0", "--max-output-len", "2", "--max-pieces", "1")
    (drawn,) = translate(*options, stdin=b"the " * 30).stdout.splitlines()
    once = translate(*options, stdin=b"the").stdout.strip()
    assert drawn.startswith(once)
    assert drawn != b" ".join([once] * 30)
    assert len({*drawn.split()}) > 10


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
