"""Records to translations: one for each, in order, whatever is translated together."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.labels import Labels
from synmt_cli.core.data.task_tags import tagged
from synmt_cli.core.decoding.hypothesis import Hypothesis, LengthLimit
from synmt_cli.core.decoding.translator import SearchSettings, Translator, in_parts, windows
from synmt_cli.core.jobs.featurize import Featurizer
from synmt_cli.core.model.size import Size
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.variants.pascal import Pascal
from synmt_cli.errors import DataError
from synmt_cli.formats.record import Record

LINES = ["A dog sleeps .", "", "Tom and Mary go to school .", " ", "dog", "The cats see the dogs ."]
SIZE = Size(d_model=16, d_ff=32, n_heads=2, encoder_layers=1, decoder_layers=1)


@pytest.fixture(scope="module")
def translator(vocabulary):
    torch.manual_seed(1)
    n = vocabulary.size
    model = Transformer(SIZE, n, n, encoder=[Pascal({0: 2}, 1.0, 0.0, False)])
    settings = SearchSettings(beam=2, longest=LengthLimit(0, 8))
    encoding = Encoding(["parent_middle"], Labels())
    return Translator(
        [model.eval()], vocabulary, vocabulary, encoding, torch.device("cpu"), settings
    )


@pytest.fixture(scope="module")
def records(vocabulary):
    return [Featurizer(vocabulary).of_text(line, str(i)) for i, line in enumerate(LINES, 1)]


def texts(found):
    return [[line.text for line in one.lines] for one in found]


def changed(translator, **settings):
    return replace(translator, settings=replace(translator.settings, **settings))


def test_every_record_has_its_translation_and_empty_ones_have_none(translator, records):
    found = translator.translate(records)
    assert [one.record.id for one in found] == ["1", "2", "3", "4", "5", "6"]
    assert [len(one.lines) for one in found] == [1, 0, 1, 0, 1, 1]


@pytest.mark.parametrize("settings", [{"batch_size": 1}, {"batch_pieces": 20}, {"batch_size": 3}])
def test_batches_change_nothing(translator, records, settings):
    together = texts(translator.translate(records))
    assert texts(changed(translator, **settings).translate(records)) == together
    assert [texts(translator.translate([one]))[0] for one in records] == together


def test_paths_of_labels_go_with_their_window(translator, vocabulary):
    """Their number never stops growing: there are 30,000 in 16,000 trees of EWT."""
    encoding = Encoding(["parent_middle", "path"], Labels(["root", "det", "nsubj"]))
    words = {"words": ["dog", "sleeps"], "spans": [[0, 3], [4, 10]]}
    tree = {"heads": [1, -1], "deprels": ["nsubj", "root"], "upos": ["NOUN", "VERB"]}
    pieces = vocabulary.pieces("dog")
    record = Record("1", "dog sleeps", pieces=pieces, piece_word=[0] * len(pieces), **words, **tree)
    assert len(replace(translator, encoding=encoding).translate([record])[0].lines) == 1
    assert len(encoding.paths.table) == 1
    assert encoding.values(record)["path"]  # and this adds some
    assert len(encoding.paths.table) > 1


@pytest.mark.parametrize(("rereads", "power"), [(False, 1), (True, 2)])
def test_progress_is_that_of_the_work(translator, records, monkeypatch, rereads, power):
    """Sources are weighed by their length, or its square if the decoder re-reads."""
    monkeypatch.setattr(translator.models[0], "rereads", rereads)
    seen = []
    changed(translator, batch_size=1).translate(records, lambda *one: seen.append(one))
    lengths = sorted((len(one.pieces) + 1 for one in records if one.pieces), reverse=True)
    work = np.array(lengths) ** power
    shares = work.cumsum() / work.sum()
    assert [n for n, _ in seen] == [*range(1, len(work) + 1)]
    assert [share for _, share in seen] == pytest.approx(shares)
    seen.clear()
    changed(translator, batch_size=64).translate(records, lambda *one: seen.append(one))
    *first, last = seen
    assert {share for _, share in first} <= {0.0}  # all are searched at once
    assert last == (len(work), pytest.approx(1.0))


@pytest.mark.parametrize("name", ["max_pieces", "batch_size", "batch_pieces"])
def test_settings_that_would_never_translate_anything(name):
    with pytest.raises(ValueError, match=f"^{name} must be at least 1, not 0$"):
        SearchSettings(**{name: 0})
    with pytest.raises(ValueError, match="no search has these"):
        SearchSettings(beam=0)


def test_nothing_at_all(translator):
    assert translator.translate([]) == []


def test_a_tree_matters_unless_it_failed(translator, vocabulary):
    pieces = vocabulary.pieces("A dog sleeps .")
    tree = {
        "words": ["A", "dog"],
        "spans": [[0, 1], [2, 5]],
        "heads": [1, -1],
        "deprels": ["det", "root"],
        "upos": ["X", "X"],
        "piece_word": [1, *[0] * (len(pieces) - 1)],
    }
    plain = Record("1", "A dog sleeps .", pieces=pieces)
    ok, failed = replace(plain, **tree), replace(plain, **tree, status="failed")
    score = [one.lines[0].score for one in translator.translate([plain, ok, failed])]
    assert score[0] == pytest.approx(score[2], abs=1e-6) != pytest.approx(score[1], abs=1e-6)


def test_a_long_source_is_translated_in_parts(translator, vocabulary):
    line = " ".join(["A dog sleeps ."] * 5)
    whole = Featurizer(vocabulary).of_text(line, "1")
    (found,) = changed(translator, max_pieces=10).translate([whole])
    parts = [Record("1", line, pieces=some) for some in in_parts(whole.pieces, 10)]
    each = [text for (text,) in texts(translator.translate(parts))]
    assert [line.text for line in found.lines] == [" ".join(each)]
    assert found.n_parts == len(parts) > 1


def test_parts_have_one_score_and_are_cut_if_any_is(translator, records):
    parts = [[Hypothesis([5], -2.0, 2, -1.0)], [Hypothesis([6, 7], -6.0, 7, -3.0, cut=True)]]
    (line,) = translator._lines(records[0], parts, 0.5)
    assert (line.score, line.cut) == (pytest.approx(-8 / 3), True)  # -(2 + 6) / (2 + 7)^0.5


def test_each_part_of_a_tagged_source_has_its_tags(translator, vocabulary):
    whole = Featurizer(vocabulary).of_text(" ".join(["A dog sleeps ."] * 5), "1")
    short = changed(translator, max_pieces=10)
    (found,) = texts(short.translate([tagged(whole, "<PA>")]))
    parts = [tagged(Record("1", "", pieces=some), "<PA>") for some in in_parts(whole.pieces, 10)]
    assert len(parts) > 2
    assert found == [" ".join(text for (text,) in texts(translator.translate(parts)))]
    assert found != texts(short.translate([whole]))[0]  # or the line above says nothing


def test_a_cut_translation_says_so(translator, records):
    (found,) = changed(translator, longest=LengthLimit(0, 1)).translate(records[:1])
    assert found.lines[0].cut == bool(found.lines[0].text)


@given(st.lists(st.sampled_from(["▁a", "b", "▁"]), max_size=30), st.integers(1, 7))
def test_parts_are_whole_and_bounded(pieces, limit):
    parts = list(in_parts(pieces, limit))
    assert [piece for part in parts for piece in part] == pieces
    assert all(0 < len(part) <= limit for part in parts)


def test_the_first_windows_are_short_where_asked():
    assert [len(window) for window in windows(range(20), 6, first=2)] == [2, 4, 6, 6, 2]
    assert [len(window) for window in windows(range(4), 3, first=9)] == [3, 1]


def test_a_window_is_cut_where_its_items_had_to_be_waited_for():
    clock = [0.0]

    def items():
        for n in range(20):
            clock[0] += 1.0 if n in (2, 3, 12) else 0.0
            yield n

    found = list(windows(items(), 8, first=2, waited=lambda: clock[0]))
    assert [len(window) for window in found] == [2, 2, 8, 2, 6]
    assert [*itertools.chain(*found)] == [*range(20)]


@given(st.integers(0, 9), st.integers(1, 4), st.booleans())
def test_windows_keep_what_came_before_an_error(n, size, breaks):
    def items():
        yield from range(n)
        if breaks:
            raise DataError("x", n + 1, "broken")

    seen = []
    with pytest.raises(DataError) if breaks else pytest.MonkeyPatch.context():
        for window in windows(items(), size):
            assert len(window) <= size
            seen += window
    assert seen == list(range(n))
