"""`synmt check` names every fault of a file by its exact line, and nothing else."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import re
import shutil

import pytest
from support.tree_workshop import Workshop

from synmt_cli.io.reading import not_utf8

ROW = "{}\t{}\t_\tX\t_\t_\t{}\tdep\t_\t_\n"
FIRST, LINE = ROW.format(1, "a", 0), ROW.format(2, "b", 1)
GOOD = "# text = a b\n" + FIRST + LINE


def second(line):
    """A block whose fault is in its third line."""
    return 3, GOOD.replace(LINE, line)


def tree(*heads):
    return "".join(ROW.format(i, "w", head) for i, head in enumerate(heads, 1))


def row(id):
    return LINE.replace("2", str(id), 1)


# Faults 1 to 5, 7, 10 and 11 of CoNLL-U in reliability.md: (line in its block, block).
BLOCKS = [
    second(LINE.replace("\tdep", "")),
    second(LINE.replace("\t_\t_\n", "\n")),
    second(LINE.replace("\n", "\tx\n")),
    second(LINE.replace("\n", "\t\n")),
    second(LINE.replace("\tb\t", "\tb\tb\t")),
    second(LINE.replace("\t", "    ")),
    second("b\n"),
    second(LINE.replace("\tb\t", "\t\t")),
    *[
        second(ROW.format(2, "b", head))
        for head in ("b", "1.0", "-1", "_", "+1", " 1", "1_0", "١", "１", "²", "0x1", "-0", "01",
                     "9" * 5000, "4", "999999999", "2")
    ],
    second(ROW.format(2, "b", 0)),  # two roots
    *((1, tree(*heads)) for heads in [(2, 1), (2, 3, 1), (1,)]),
    (2, tree(0, 3, 2)),
    *(
        second(row(id))
        for id in ("02", "0", "-2", "2-", "2.", "2,5", "+2", "٢", "２", " 2", "x", "1", "3", "3-2",
                   "1-2", "2-2147483647", "2.0")
    ),
    *(second(row(id) + LINE) for id in ("2-9", "2-999999999", "1.2", "2.1")),
    (1, row("2") + row("1")),
    (2, ROW.format("1-2", "ab", "_") + ROW.format("2-3", "b", "_") + tree(0, 1, 1)),
    (1, ROW.format("1-2", "ab", "_")),
    second("# in the middle\n" + LINE),
    (1, "# alone\n"),
    second(LINE.replace("b", "b\0")),
    *(second(LINE.replace("b", "b" + bad)) for bad in ("\udcff", "\udcc3", "\udced\udca0\udc80")),
]  # fmt: skip


def bytes_of(text):
    return text.encode("utf-8", "surrogateescape")


def lines_of(out):
    return [int(found) for found in re.findall(rb"^<stdin>:([0-9]+): ", out, re.MULTILINE)]


def test_every_fault_of_conllu_is_named_by_its_line(forked):
    text, expected = "", []
    for line, block in BLOCKS:
        text += GOOD + "\n"
        expected.append(text.count("\n") + line)
        text += block + "\n"
    done = forked("check", "--from", "conllu", stdin=bytes_of(text + GOOD))
    assert done.returncode == 1
    assert lines_of(done.stdout) == expected
    assert done.stderr == f"synmt check: {len(BLOCKS)} problems\n".encode()
    assert max(map(len, done.stdout.splitlines())) < 300
    crlf = forked("check", "--from", "conllu", stdin=bytes_of(text + GOOD).replace(b"\n", b"\r\n"))
    assert crlf.stdout == done.stdout
    spread = bytes_of(text + GOOD).replace(b"\n\n", b"\n\n\n\n")
    assert len(lines_of(forked("check", "--from", "conllu", stdin=spread).stdout)) == len(BLOCKS)


# Cases 6, 8, 9 and 12 in reliability.md: nothing is wrong with these.
SOUND = [
    "﻿" + GOOD,
    GOOD.rstrip("\n"),
    "\n\n\n" + GOOD + "\n\n\n\n" + GOOD,
    GOOD.replace("\n", "\r\n"),
    "#\n# a\tb\tc\td\te\tf\tg\th\ti\tj\n"
    + ROW.format("0.1", "_", "_")
    + ROW.format("1-2", "ab", "_")
    + "".join(map(ROW.format, (1, 2), "_#", (0, 1)))
    + "".join(ROW.format(f"2.{i}", "e", "_") for i in range(1, 12)),
    "".join(
        ROW.format(1, form, 0) + "\n"
        for form in ("a b", "a\u00a0b", "\u2028", "\u0085", "\x0b", "\x1c", "a\rb", " ", "\u3000")
    ),
]


@pytest.mark.parametrize("text", SOUND)
def test_nothing_is_said_of_what_is_sound(forked, text):
    done = forked("check", "--from", "conllu", stdin=text.encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.slow
def test_great_sentences_are_sound_or_refused_quickly(forked):
    """Faults 13 and 14, as far as a test has room for them."""
    deep = "".join(map(ROW.format, range(1, 70_001), ["w"] * 70_000, range(70_000)))
    wide = tree(0, *[1] * 1000)
    done = forked("check", stdin=f"{deep}\n{wide}\n{ROW.format(1, 'w' * 100_000, 0)}\n".encode())
    assert (done.returncode, done.stdout) == (0, b"")
    done = forked("check", "--from", "conllu", stdin=bytes_of(GOOD + "\n") + b"a" * 34_000_000)
    message = b"<stdin>:5: sentence longer than 32 MiB; the rest was not checked\n"
    assert (done.returncode, done.stdout) == (1, message)


RECORDS = [
    *(b'{"a', b"[1]", b'"a"', b"null", b"{}", b'{"src":NaN}', b"[" * 200_000, b""),
    *(b'{"src":"a","x":' + b"1" * 10_000 + b"}", b'{"src":"\\ud800"}', b'{"src":"a","src":"b"}'),
    *(b'{"src":"a"}{"src":"b"}', b"1\ta\ta\tX\t_\t_\t0\troot\t_\t_", b'{"src":"a","status":"x"}'),
    *(b'{"src":"a","words":["a"]}', b'{"src":"a","id":1}', b'{"src":"\xff"}', b'{"src":5}'),
]


def test_every_fault_of_records_is_named_by_its_line(forked):
    """Fault 16, and faults 10 and 11 in records."""
    data = b"".join(b'{"src":"a"}\n' + line + b"\n" for line in RECORDS)
    done = forked("check", "--from", "jsonl", stdin=data)
    assert done.returncode == 1
    assert lines_of(done.stdout) == [2 * n for n in range(1, len(RECORDS) + 1)]
    assert max(map(len, done.stdout.splitlines())) < 300


def test_lines_of_text_and_of_transitions(forked):
    text = forked("check", stdin=b"a\n\xff b\n\nc\xc3\nd")
    problems = f"<stdin>:2: {not_utf8(1)}\n<stdin>:4: {not_utf8(2)}\n"
    assert text.stdout.decode() == problems
    assert forked("check", stdin=b"a\nb\0\n").stdout == b"<stdin>:2: NUL character\n"
    moves = b"the dog LEFT-ARC:det\n\na b\nRIGHT-ARC:x\na LEFT-ARC:\na b RIGHT-ARC:x\n"
    done = forked("check", stdin=moves)
    assert lines_of(done.stdout) == [3, 4, 5]


def test_transitions_of_a_record_build_a_tree(forked):
    """Over words, and over pieces with or without a named vocabulary."""
    lines = (
        '{"src":"a","transitions":["the","dog","LEFT-ARC:det"]}',
        '{"src":"a","transitions":["the","dog"]}',
        '{"src":"a","vocab":"1f2e","transitions":["▁the","▁do","g","LEFT-ARC:det"]}',
        '{"src":"a","transitions":["▁the","▁do","g","LEFT-ARC:det"]}',
        '{"src":"a","vocab":"1f2e","transitions":["▁the","▁do","g"]}',
        '{"src":"a","vocab":"1f2e","transitions":["LEFT-ARC:det","▁the"]}',
        '{"src":"a","status":"failed","transitions":[]}',
        '{"src":"a","transitions":["▁","dog","LEFT-ARC:dep"]}',  # of words
        '{"src":"a","vocab":"1f2e","transitions":["▁","dog","LEFT-ARC:dep"]}',
    )
    done = forked("check", "--from", "jsonl", stdin="\n".join(lines).encode())
    headless = "transitions: 2 words are left without a head, only one is the root"
    assert done.stdout.decode().splitlines() == [
        f"<stdin>:2: {headless}",
        f"<stdin>:5: {headless}",
        "<stdin>:6: transitions: token 1: the arc 'det' finds fewer than two words",
        "<stdin>:9: transitions: token 3: the arc 'dep' finds fewer than two words",
    ]


def test_a_name_is_believed_and_compression_read(forked, tmp_path):
    spaces = GOOD.replace("\t", " ").encode()  # looks like text
    for name, data in (("a.conllu", spaces), ("b.conllu.gz", gzip.compress(spaces))):
        (tmp_path / name).write_bytes(data)
        done = forked("check", name, cwd=tmp_path)
        assert done.stdout == f"{name}:2: 1 column, expected 10\n".encode()
    whole = bz2.compress(b"a\n" * 200_000)
    (tmp_path / "c.bz2").write_bytes(whole[: len(whole) // 2])
    (line,) = forked("check", "c.bz2", cwd=tmp_path).stdout.splitlines()
    assert re.match(rb"c.bz2:\d+: damaged compressed data: .*$", line)


def test_max_ends_the_search(forked):
    done = forked("check", "--max", 2, "--from", "jsonl", stdin=b"x\n" * 9)
    assert (done.returncode, lines_of(done.stdout)) == (1, [1, 2])
    assert done.stderr == b"synmt check: stopped after 2 problems\nsynmt check: 2 problems\n"


def test_the_readable_files_are_checked_beside_one_that_is_not(forked, tmp_path):
    (tmp_path / "bad").write_bytes(b"\xff\n")
    done = forked("check", "no", "bad", "none", cwd=tmp_path)
    assert (done.returncode, done.stdout.decode()) == (66, f"bad:1: {not_utf8(1)}\n")
    assert [b"cannot read no" in line for line in done.stderr.splitlines()] == [True, True]
    assert forked("check", tmp_path).returncode == 66


def test_parallel_files_have_as_many_segments(forked, tmp_path):
    split = "".join(f"# sent_id = 2.{k}\n# synmt_line = 2\n{tree(0, 1)}\n" for k in (1, 2))
    files = {
        "a": b"x\n\ny",
        "b.jsonl": b'{"src":"x"}\n' * 3,
        "c.conllu": f"{GOOD}\n{split}{GOOD}".encode(),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    done = forked("check", "--parallel", *files, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"")
    done = forked("check", "--parallel", *files, "-", stdin=b"x\n", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, b"<stdin>: 1 segment, but a has 3\n")
    (tmp_path / "c.conllu").write_bytes(f"{GOOD}\n{split}1\tx\n".encode())
    done = forked("check", "--parallel", *files, cwd=tmp_path)  # a broken sentence counts, too
    assert done.stdout == b"c.conllu:15: 2 columns, expected 10\n"
    wrong = "# sent_id = 2.3\n# synmt_line = 2\n1\tx\n\n"  # a sentence of the same line
    (tmp_path / "c.conllu").write_bytes(f"{GOOD}\n{split}{wrong}{GOOD}".encode())
    done = forked("check", "--parallel", *files, cwd=tmp_path)
    assert done.stdout == b"c.conllu:17: 2 columns, expected 10\n"
    done = forked("check", "--parallel", "a", cwd=tmp_path)
    assert (done.returncode, b"name two or more" in done.stderr) == (2, True)


@pytest.fixture(scope="module")
def place(tmp_path_factory, forked):
    """A Workshop with a sound run, `kept`."""
    shop = Workshop(tmp_path_factory.mktemp("check"), forked)
    shop.train("pascal", run="kept")
    assert shop("check", "kept").stdout == b""
    return shop


@pytest.fixture
def sound(place):
    """The run directory `pascal`: a copy of `kept`, sound, for tests to damage."""
    shutil.rmtree(place.folder / "pascal", ignore_errors=True)
    return shutil.copytree(place.folder / "kept", place.folder / "pascal", symlinks=True)


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_a_run_and_its_parts_are_sound(place, sound):
    parts = ("pascal", "pascal/checkpoints/step-1", "pascal/model.safetensors", "spm.model")
    done = place("check", *parts, "train.jsonl", "train.en.conllu", "train.en")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    place("check", "--parallel", "train.en", "pascal", status=2)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("model.safetensors", "damaged: its tensors do not have the digest it states"),
        ("checkpoints/step-1/weights.safetensors", "damaged"),
        ("checkpoints/step-1/optimizer.safetensors", "damaged"),
    ],
)
def test_a_flipped_bit_is_found(place, sound, name, problem):
    flip(sound / name, -3)
    done = place("check", "pascal", status=1)
    assert done.stdout.decode().startswith(f"pascal/{name}: {problem}")
    assert done.stdout.count(b"\n") == 1


def test_a_lost_model_is_missed_once_a_run_has_been_validated(place, sound):
    (sound / "model.safetensors").unlink()
    done = place("check", "pascal", status=1)
    assert done.stdout.startswith(b"pascal: no model.safetensors; synmt train writes it again")
    assert done.stdout.count(b"\n") == 1


def test_everything_wrong_with_a_run_is_told_in_one_go(place, sound):
    state = json.loads((sound / "checkpoints/step-1/state.json").read_bytes())
    state["state"]["step"] = 7
    (sound / "checkpoints/step-1/state.json").write_text(json.dumps(state), encoding="utf-8")
    (sound / "labels.json").write_bytes(b"{}")
    n = (sound / "metrics.jsonl").read_bytes().count(b"\n")
    with (sound / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step":\n{"event": "dev"}\n')
    (sound / "env.json").unlink()
    config = (sound / "config.toml").read_text(encoding="utf-8")
    (sound / "config.toml").write_text(config.replace("[pascal]", "[pascal]\nhats = 1"))
    done = place("check", "pascal", status=1)
    said = done.stdout.decode()
    for part in ("config.toml:", "labels.json:1: expected a list", "state.json:1: damaged",
                 "cannot read pascal/env.json", f"metrics.jsonl:{n + 1}: not JSON",
                 f"metrics.jsonl:{n + 2}: field step is missing"):  # fmt: skip
        assert part in said
    assert len(said.splitlines()) == len(set(said.splitlines())) == 6


def test_weights_of_another_vocabulary_or_size_are_found(place, sound):
    (sound / "spm.model").write_bytes((place.folder / "plain.model").read_bytes())
    said = place("check", "pascal", status=1).stdout.decode()
    assert "but the run was trained with" in said
    (sound / "spm.model").write_bytes((place.folder / "spm.model").read_bytes())
    config = (sound / "config.toml").read_text(encoding="utf-8")
    (sound / "config.toml").write_text(config.replace("d_ff = 32", "d_ff = 36"))
    said = place("check", "pascal", status=1).stdout.decode()
    assert re.search(r"pascal/model.safetensors: \S+ has shape .*, not ", said)
    assert re.search(r"pascal/checkpoints/step-1/weights.safetensors: \S+ has shape", said)


def test_models_are_loaded(place, sound, tmp_path):
    (tmp_path / "cut.model").write_bytes((place.folder / "spm.model").read_bytes()[:900])
    (tmp_path / "cut.udpipe").write_bytes(b"\x12morphodita_parsito\x03\x7f\x7f\x01")
    said = place("check", tmp_path / "cut.model", tmp_path / "cut.udpipe", status=1).stdout
    assert [b"damaged" in line for line in said.splitlines()] == [True, True]
    model = (sound / "model.safetensors").read_bytes()
    assert place("check", stdin=model).returncode == 2


def test_a_compressed_model_does_not_stop_the_check_of_other_files(place, tmp_path):
    model = (place.folder / "spm.model").read_bytes()
    (tmp_path / "m.gz").write_bytes(gzip.compress(model))
    (tmp_path / "bad.jsonl").write_text('{"src": 1}\n')
    done = place("check", tmp_path / "m.gz", tmp_path / "bad.jsonl", status=2)
    assert b"bad.jsonl:1: " in done.stdout
    assert b"m.gz: a model of this kind needs a plain file's name" in done.stderr


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_a_model_in_a_pipe_is_not_a_faulty_model(run, place, name):
    model = (place.folder / "spm.model").read_bytes()
    piped = {"stdin": model, "env": dict(os.environ)}  # as a process of its own: by a pipe
    done = run("check", name, **piped)
    problem = "a model of this kind needs a plain file's name; save it in one, uncompressed"
    assert (done.returncode, done.stdout) == (2, b"")
    shown = "<stdin>" if name == "-" else name
    assert done.stderr.decode() == f"synmt check: {shown}: {problem}\n"
    info = run("info", name, **piped).stdout  # it reads the vocabulary itself
    assert b"kind\tsentencepiece\n" in info
