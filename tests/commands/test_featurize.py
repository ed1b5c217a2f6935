import gzip
import io
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synmt_cli.core.jobs import featurize
from synmt_cli.core.jobs.cutting import cut_by_line, with_targets
from synmt_cli.core.jobs.featurize import Featurizer
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.core.text.vocabulary_training import VocabularySettings, train
from synmt_cli.errors import counted
from synmt_cli.formats import conllu, record
from synmt_cli.io.reading import Source

DOG = (
    "# text = A dog.\n"
    "1\tA\ta\tDET\t_\t_\t2\tdet\t_\t_\n"
    "2\tdog\tdog\tNOUN\t_\t_\t0\troot\t_\tSpaceAfter=No\n"
    "3\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_\n\n"
)
WRONG = DOG.replace("A dog.", "A cat.")
EMPTY = "# sent_id = 5\n# text = \n# synmt_status = empty\n1\t_\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
WORDS = {
    "id": "1",
    "status": "ok",
    "src": "A dog.",
    "words": ["A", "dog", "."],
    "spans": [[0, 1], [2, 5], [5, 6]],
    "heads": [1, -1, 1],
    "deprels": ["det", "root", "punct"],
    "upos": ["DET", "NOUN", "PUNCT"],
}
TEXT = ["a dog.", "the dog sees a cat.", "cats see dogs.", "Das ist ein Hund."] * 3


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Two vocabularies: spm.model and tgt.model."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "spm.model").write_bytes(train(TEXT, VocabularySettings(35)))
    (folder / "tgt.model").write_bytes(train(TEXT, VocabularySettings(40)))
    return folder


def objects(done):
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(b"\n") or not done.stdout
    return [json.loads(line) for line in done.stdout.split(b"\n")[:-1]]


def test_words_only(run):
    done = run("featurize", stdin=(DOG + EMPTY).encode())
    empty = {"id": "5", "status": "empty", "src": ""} | {name: [] for name in list(WORDS)[3:]}
    assert objects(done) == [WORDS, empty]
    assert done.stderr == b""


def test_pieces_targets_and_features(run, models, tmp_path):
    (tmp_path / "tgt").write_bytes(b"Ein Hund.\r\n")
    done = run(
        *("featurize", "--spm", models / "spm.model", "--tgt", tmp_path / "tgt"),
        *("--emit", "tag, parent_middle", "--tgt-spm", models / "tgt.model"),
        stdin=DOG.encode(),
    )
    (found,) = objects(done)
    source, target = (Vocabulary.load(str(models / f"{name}.model")) for name in ("spm", "tgt"))
    assert found["pieces"] == source.pieces("A dog.")
    assert (found["tgt"], found["tgt_pieces"]) == ("Ein Hund.", target.pieces("Ein Hund."))
    assert found["vocab"] == f"{source.fingerprint}+{target.fingerprint}"
    assert list(found)[-2:] == ["tag", "parent_middle"]
    dog = [i for i, word in enumerate(found["piece_word"]) if word == 1]
    assert {found["parent_middle"][i] for i in dog} == {sum(dog) / len(dog)}


def test_one_vocabulary_for_both_sides(run, models, tmp_path):
    (tmp_path / "tgt").write_bytes(b"a dog.")
    arguments = ("featurize", "--spm", models / "spm.model", "--tgt", tmp_path / "tgt", "-")
    (found,) = objects(run(*arguments, stdin=DOG.encode()))
    fingerprint = Vocabulary.load(str(models / "spm.model")).fingerprint
    assert found["vocab"] == fingerprint
    assert "".join(found["tgt_pieces"]) == "▁a▁dog."


@pytest.mark.parametrize("jobs", [1, 2])
def test_failed_segments_are_counted(run, jobs):
    done = run("featurize", "-j", jobs, stdin=(DOG + WRONG + WRONG + DOG).encode())
    assert [found["status"] for found in objects(done)] == ["ok", "failed", "failed", "ok"]
    assert b"2 of 4 segments failed" in done.stderr
    assert b"<stdin>:6: token 'dog' is not at character 3 of the text" in done.stderr
    strict = run("featurize", "--strict", "-j", jobs, stdin=(DOG + WRONG + DOG).encode())
    assert (strict.returncode, len(strict.stdout.splitlines())) == (65, 1)
    assert strict.stderr.startswith(b"synmt featurize: <stdin>:6: token 'dog' is not")


@pytest.mark.parametrize("jobs", [1, 2])
def test_records_before_a_bad_line_come_out(run, jobs):
    done = run("featurize", "-j", jobs, stdin=(DOG + DOG + DOG.replace("\t_\n", "\n", 1)).encode())
    assert done.returncode == 65
    assert done.stderr == b"synmt featurize: <stdin>:12: 9 columns, expected 10\n"
    assert len(done.stdout.splitlines()) == 2


@pytest.mark.parametrize(("n", "text"), [(1, b"x\n"), (3, b"x\ny\nz\n"), (0, b"")])
def test_another_number_of_targets_is_refused(run, tmp_path, n, text):
    (tmp_path / "tgt").write_bytes(text)
    done = run("featurize", "--tgt", tmp_path / "tgt", stdin=(DOG + DOG).encode())
    assert done.returncode == 65
    assert f"tgt: {counted(n, 'line')}, but the source has 2".encode() in done.stderr
    assert len(done.stdout.splitlines()) == min(n, 2)


def test_a_bad_target_line_is_named_after_the_good_ones(run, tmp_path):
    (tmp_path / "tgt").write_bytes(b"x\n\xff\ny\n")
    done = run("featurize", "--tgt", tmp_path / "tgt", stdin=DOG.encode() * 3)
    assert (done.returncode, len(done.stdout.splitlines())) == (65, 1)
    assert b"tgt:2: invalid UTF-8 at byte 1" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--emit", "depht"], 2, "--emit 'depht' is none of depth, parent_middle"),
        (["--tgt-spm", "m"], 2, "--tgt-spm needs --spm and --tgt"),
        (["--on-nonprojective", "error", "--tgt", "t"], 2, "--multiword are for --tgt-conllu"),
        (["--tgt", "-"], 2, "only one input can be stdin"),
        (["--spm", "none.model"], 69, "cannot read the vocabulary none.model"),
        (["none.conllu"], 66, "cannot read none.conllu"),
        (["--tgt", "none.de"], 66, "cannot read none.de"),
        (["-o", "no/where"], 73, "cannot create no/where"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(run, tmp_path, arguments, status, message):
    done = run("featurize", *arguments, stdin=DOG.encode(), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (status, b"")
    assert message in done.stderr.decode()
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_too_great_features_make_a_segment_skipped(monkeypatch):
    monkeypatch.setattr(featurize, "LARGEST", 8)
    (work,) = cut_by_line(conllu.batches(Source("f", io.BytesIO((DOG + EMPTY).encode()))))
    done = Featurizer(emit=("depth", "struct_rel")).run(work)
    assert done.statuses == {"skipped": 1, "empty": 1}
    found = json.loads(done.records[0])
    assert found["reason"] == "struct_rel has 9 values, at most 8 are written"
    assert "depth" not in found
    failed = "# synmt_status = failed\n# synmt_reason = two roots\n"
    (marked,) = cut_by_line(conllu.batches(Source("f", io.BytesIO((failed + DOG).encode()))))
    done = Featurizer(emit=("struct_rel",)).run(marked)
    found_of_failed = json.loads(done.records[0])
    assert (found_of_failed["status"], found_of_failed["reason"]) == ("failed", "two roots")
    strict = Featurizer(emit=("depth", "struct_rel"), strict=True).run(work)
    assert (str(strict.error), strict.records) == (f"f:1: {found['reason']}", [])


def split(line, *forms):
    return "".join(
        f"# sent_id = {line}.{k}\n# text = {form}\n# synmt_line = {line}\n"
        f"1\t{form}\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
        for k, form in enumerate(forms, 1)
    )


def test_sentences_of_a_line_are_one_segment_in_any_batches(models):
    text = (split(1, "a", "b", "c") + EMPTY + split(2, "d", "e")) * 2 + split(2, "f") + DOG
    vocabulary = Vocabulary.load(str(models / "spm.model"))
    expected = None
    for size in (1, 50, 100, 1000, 10**6):
        batches = rebatched(text.encode(), size)
        parts = with_targets(cut_by_line(batches), Source("t", io.BytesIO(b"x\n" * 8)))
        done = [Featurizer(vocabulary).run(work) for work in parts]
        lines = [line for part in done for line in part.records]
        expected = expected or lines
        assert lines == expected
    found = [json.loads(line) for line in expected]
    assert [f["id"] for f in found] == ["1", "5", "2", "1", "5", "2", "2", "8"]
    assert [f["src"] for f in found] == ["a b c", "", "d e"] * 2 + ["f", "A dog."]
    assert found[0]["sents"] == [0, 1, 2]


def rebatched(data, size):
    """The blocks of `data`, at least `size` bytes at a time."""
    pending, line = b"", 1
    for block in data.split(b"\n\n")[:-1]:
        pending += block + b"\n\n"
        if len(pending) >= size:
            yield conllu.RawBlocks("f", line, pending)
            line += pending.count(b"\n")
            pending = b""
    if pending:
        yield conllu.RawBlocks("f", line, pending)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\0"), min_size=1)))
@settings(max_examples=60)
def test_as_many_records_as_segments(texts):
    texts = [text.rstrip("\r") for text in texts]
    blocks = [
        f"# text = {text}\n1\t{text}\t_\tX\t_\t_\t0\troot\t_\t_\n\n" for text in texts if text
    ]
    blocks = [block for block in blocks if "\t" not in block.split("\n")[0]]
    parts = list(cut_by_line(conllu.batches(Source("f", io.BytesIO("".join(blocks).encode())))))
    lines = [line for work in parts for line in Featurizer().run(work).records]
    assert len(lines) == len(blocks) == sum(map(len, parts))
    for block, line in zip(blocks, lines, strict=True):
        found = record.from_bytes(line[:-1])
        assert found.words == [block.split("\t")[1]]


def test_two_processes_write_the_same_bytes(run, models, data, tmp_path):
    treebank = data / "ud" / "de_gsd-test.conllu.gz"
    arguments = ["featurize", "--spm", models / "spm.model", "--emit", "depth,path", treebank]
    one, two = run(*arguments, "-j", 1), run(*arguments, "-j", 2)
    assert one.returncode == two.returncode == 0
    assert one.stdout == two.stdout
    assert len(one.stdout.splitlines()) == 977


def test_every_locale_gives_the_same_bytes(run):
    data = DOG.replace("dog", "dög İ").encode()
    usual = run("featurize", stdin=data).stdout
    for name in ("C", "tr_TR.UTF-8"):
        environment = {"LC_ALL": name, "PYTHONIOENCODING": "ascii", "PYTHONHASHSEED": "7"}
        assert run("featurize", stdin=data, env=environment).stdout == usual


def test_a_record_comes_before_the_end_of_input():
    command = [sys.executable, "-m", "synmt_cli", "featurize", "--line-buffered"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        process.stdin.write(DOG.encode())
        process.stdin.flush()
        assert json.loads(process.stdout.readline()) == WORDS
        process.stdin.close()
        assert process.wait(20) == 0


@pytest.mark.long
@pytest.mark.parametrize("jobs", [1, 2])
def test_memory_does_not_grow_with_the_input(models, data, jobs):
    raw = gzip.decompress((data / "ud" / "en_ewt-dev.conllu.gz").read_bytes())
    peaks = [peak_memory(itertools.repeat(raw, n), models, jobs) for n in (2, 30)]
    assert peaks[1] - peaks[0] < 16 * 2**20  # for 51 MB more input


def peak_memory(parts, models, jobs):
    """The most bytes that featurize has had, without its workers, once it got the whole input."""
    command = [sys.executable, "-m", "synmt_cli", "featurize", "--spm", models / "spm.model"]
    with subprocess.Popen(
        [*command, "-j", str(jobs), "-o", "/dev/null"], stdin=subprocess.PIPE
    ) as process:
        for part in parts:
            process.stdin.write(part)
        status = Path(f"/proc/{process.pid}/status").read_text()
        process.stdin.close()
        assert process.wait() == 0
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024
