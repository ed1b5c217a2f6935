"""Training records as numbers on disk: the same as in memory, and made anew after a change."""

import os

import numpy as np
import pytest

from synmt_cli import signals
from synmt_cli.core.data import cache, record_reader
from synmt_cli.core.data.targets import Targets
from synmt_cli.core.run.config import from_settings, resolve
from synmt_cli.core.run.directory import Run
from synmt_cli.core.training.session import Inputs, open_session
from synmt_cli.errors import ConfigError, DataError

FEATURED = "pascal+gps+tags"  # numbers, paths and labels


@pytest.fixture
def opened(example_folder):
    def start(kept=None, variant=FEATURED, train=None, jobs=1, settings=()):
        config = resolve(variant, "tiny", from_settings(settings))
        files = [str(train or example_folder / "train.jsonl")]
        dev, spm = (str(example_folder / name) for name in ("dev.jsonl", "spm.model"))
        inputs = Inputs(files, dev, spm, jobs=jobs)
        read = []
        if kept:
            kept.mkdir(exist_ok=True)
        run = kept and Run(kept)
        session = open_session(config, inputs, "cpu", signals.Request(), run, None, read.append)
        return session, sum(read)

    return start


def batches(corpus):
    """All that training reads of a corpus, as plain lists."""

    def plain(side):
        paths = side.paths and [side.paths.labels.tolist(), side.paths.shorter.tolist()]
        return [side.ids.tolist(), {n: v.tolist() for n, v in side.features.items()}, paths]

    made = map(corpus.batch, corpus.epoch(500, 1, 0))
    return [[plain(b.source), plain(b.target), b.target_out.tolist()] for b in made]


def test_chunks_and_files_change_nothing(opened, tmp_path, monkeypatch):
    in_memory, n_lines = opened()
    monkeypatch.setattr(record_reader, "CHUNK", 7)
    first, n_first = opened(tmp_path / "c")
    again, n_again = opened(tmp_path / "c")
    by_two, _ = opened(tmp_path / "d", jobs=2)
    assert (n_lines == n_first, n_again < n_first) == (True, True)  # only dev is read again
    for session in (first, again, by_two):
        assert session.train.encoding.labels.names == in_memory.train.encoding.labels.names
        assert not session.train.encoding.labels.growing
        assert batches(session.train) == batches(in_memory.train)
        assert batches(session.dev) == batches(in_memory.dev)
        assert session.tables()["data"] == in_memory.tables()["data"]
        assert session.train.left_out == in_memory.train.left_out
        assert session.train.n_treeless == in_memory.train.n_treeless


def test_numbers_are_mapped_and_not_copied(opened, tmp_path):
    session, _ = opened(tmp_path / "c")
    values = session.train.source.values
    assert isinstance(values.base, np.memmap)
    assert values.dtype == np.int32


@pytest.mark.parametrize("what", ["touched", "variant", "damaged", "no index"])
def test_a_cache_that_does_not_fit_is_made_anew(opened, tmp_path, example_folder, what):
    train = tmp_path / "train.jsonl"
    train.write_bytes((example_folder / "train.jsonl").read_bytes())
    folder, kept = tmp_path / "c", tmp_path / "c/cache"
    session, n_lines = opened(folder, train=train)
    if what == "touched":
        os.utime(train, ns=(1, 1))
    elif what == "damaged":
        (kept / "target.values").write_bytes(b"1234")
    elif what == "no index":
        (kept / "index.json").unlink()
    variant = "gps" if what == "variant" else FEATURED
    again, n_again = opened(folder, variant, train)
    assert n_again == n_lines
    assert len(again.train) == len(session.train)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "train.jsonl"]


def test_a_cache_of_longer_pairs_or_unchecked_records_is_made_anew(opened, tmp_path):
    """It may be in the folder of a run that has no settings yet."""
    folder = tmp_path / "c"
    short = ["training.max_length=30"]
    wanted, _ = opened(variant="vanilla", settings=short)
    session, _ = opened(folder, "vanilla")
    found, _ = opened(folder, "vanilla", settings=short)
    assert batches(found.train) == batches(wanted.train) != batches(session.train)
    opened(folder, "vanilla")
    with pytest.raises(ConfigError, match=r"train\.jsonl:1: no task tags"):
        opened(folder, "multitask")


def test_another_file_of_the_same_name_size_and_time_is_read(opened, tmp_path, example_folder):
    lines = (example_folder / "train.jsonl").read_bytes().splitlines(keepends=True)
    digests = []
    for folder, content in (("a", lines), ("b", lines[::-1])):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "train.jsonl"
        path.write_bytes(b"".join(content))
        os.utime(path, (10**9, 10**9))
        digests.append(opened(tmp_path / "c", train=path)[0].train_sha256)
    assert digests[0] != digests[1]


def test_a_file_that_changes_while_it_is_read_is_refused(opened, tmp_path, example_folder):
    train = tmp_path / "train.jsonl"
    train.write_bytes((example_folder / "train.jsonl").read_bytes())
    session, _ = opened(train=train)
    reader = record_reader.CorpusReader(
        session.vocabularies, (), Targets(session.vocabularies.target), 256
    )

    def lines():
        yield from record_reader.lines_of([str(train)])
        os.utime(train, ns=(1, 1))

    with pytest.raises(DataError, match=r"train\.jsonl: changed while it was read"):
        cache.make(tmp_path / "c", reader, map(reader.chunk, lines()), [str(train)])
    assert [path.name for path in tmp_path.iterdir()] == ["train.jsonl"]
