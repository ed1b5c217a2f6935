"""The arcs that attention heads find, against loops, and cases without anything to find."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from support.models import make, side, small

from synmt_cli.core.analysis.attention_heads import Arcs, HeadMeter, found_by, word_weights
from synmt_cli.core.analysis.witness import witnessed
from synmt_cli.formats.record import Record

SIZE = small()
ROWS = [[4, 5, 6, 7, 8, 9, 3], [8, 9, 5, 3], [5, 6, 3]]  # token 3 is the end of sentence


def record(heads, deprels, piece_word):
    pieces = [str(i) for i in range(len(piece_word))]
    return Record("1", "", heads=heads, deprels=deprels, pieces=pieces, piece_word=piece_word)


RECORDS = [
    # Word 1 has two pieces, word 3 has none, and the fourth piece belongs to no word
    record([1, -1, 1, 1, 2], ["det", "root", "nsubj:pass", "obj", "det"], [0, 1, 1, -1, 2, 4]),
    record([2, 2, -1], ["nsubj", "advmod", "root"], [0, 1, 2]),
    record([-1, 0], ["root", "obj"], [0, 1]),
]
ARCS = {  # of words with pieces: (row, dependent, parent)
    "det": [(0, 0, 1), (0, 4, 2)],
    "nsubj": [(0, 2, 1), (1, 0, 2)],
    "advmod": [(1, 1, 2)],
    "obj": [(2, 1, 0)],
}


def measured(model, records=RECORDS, rows=ROWS, **options):
    meter = HeadMeter(model, **options)
    meter.add(records, side(rows))
    return {one.relation: one for one in meter.relations()}


def by_loops(weights, record, u, v):
    """The weight of word v for word u: summed over its pieces, a mean over those of u."""
    of_u, of_v = ([i for i, word in enumerate(record.piece_word) if word == w] for w in (u, v))
    return sum(weights[i][j].item() for i in of_u for j in of_v) / len(of_u)


def test_every_head_against_loops():
    model, source = make(SIZE), side(ROWS)
    seen = {}
    with witnessed(model.encoder, see_weights=seen.__setitem__):
        model.encoder(source)
    found = measured(model)
    assert list(found) == ["all", "det", "nsubj", "advmod", "obj"]
    for relation, arcs in [*ARCS.items(), ("all", [a for of in ARCS.values() for a in of])]:
        assert found[relation].words == len(arcs)
        for figures in found[relation].heads:
            hits, weights = [], []
            for row, dependent, parent in arcs:
                matrix, of = seen[figures.layer][row, figures.head], RECORDS[row]
                others = [w for w in sorted({*of.piece_word} - {-1}) if w != dependent]
                pairs = [
                    (dependent, w) if figures.looks == "up" else (w, dependent) for w in others
                ]
                between = [by_loops(matrix, of, *pair) for pair in pairs]
                hits.append(others[between.index(max(between))] == parent)
                weights.append(between[others.index(parent)])
            assert figures.accuracy == pytest.approx(sum(hits) / len(arcs))
            assert figures.weight == pytest.approx(sum(weights) / len(arcs))


def test_offsets_are_of_words():
    found = measured(make(SIZE))
    offsets = Counter(parent - word for _, word, parent in (a for of in ARCS.values() for a in of))
    assert offsets == {1: 2, -2: 1, -1: 2, 2: 1}
    assert (found["all"].offset, found["all"].by_offset) == (1, pytest.approx(2 / 6))  # before -1
    assert (found["obj"].offset, found["obj"].by_offset) == (-1, 1.0)


def test_a_weight_of_pieces_becomes_one_of_words():
    """Two pieces of word 0, one of word 1, and the end of sentence, which has no word."""
    weights = torch.tensor([[[[0.1, 0.2, 0.3, 0.4], [0.5, 0.1, 0.1, 0.3], [0.2, 0.4, 0.3, 0.1]]]])
    weights = torch.cat([weights, torch.zeros(1, 1, 1, 4)], dim=2)
    members = torch.tensor([[[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]])
    expected = torch.tensor([[[[0.0, (0.3 + 0.1) / 2], [0.2 + 0.4, 0.0]]]])
    torch.testing.assert_close(word_weights(weights, members), expected)


def test_a_weight_of_zero_points_nowhere():
    """With all weight on the end of sentence, word 0 is the first of equals, but is not found."""
    weights = torch.zeros(1, 1, 3, 3)
    weights[..., 2] = 1.0
    arcs = Arcs(*(torch.tensor([n]) for n in (0, 1, 0)), relation=["obj"])
    found, weight = found_by(weights, torch.eye(3)[None, :2], arcs)
    assert not found.any()
    assert not weight.any()


@pytest.mark.parametrize("n", [3, 10, 11])
def test_no_weight_is_above_1(n):
    """In float32, n times 1/n is a little more than 1 for 10 pieces and for 11."""
    weights = torch.zeros(1, 1, n + 1, n + 1)
    weights[..., n] = 1.0
    members = torch.zeros(1, 2, n + 1)
    members[0, 0, :n] = members[0, 1, n] = 1.0
    arcs = Arcs(*(torch.tensor([i]) for i in (0, 0, 1)), relation=["obj"])
    found, weight = found_by(weights, members, arcs)
    assert found.tolist() == [[[1, 0]]]
    assert 1 - 1e-6 < weight[0, 0, 0] <= 1


def test_subtypes_are_told_apart_where_asked():
    found = measured(make(SIZE), subtypes=True)
    assert (found["nsubj"].words, found["nsubj:pass"].words) == (1, 1)


def test_batches_and_padding_never_matter():
    model = make(SIZE)
    together = measured(model)
    meter = HeadMeter(model)
    for i in (2, 1, 0):
        meter.add(RECORDS[i : i + 1], side(ROWS[i : i + 1], width=9, fill=1))
    apart = list(meter.relations())
    assert {one.relation for one in apart} == {*together}
    for one in apart:
        other = together[one.relation]
        assert (one.words, one.offset) == (other.words, other.offset)
        for mine, its in zip(one.heads, other.heads, strict=True):
            assert mine.accuracy == its.accuracy
            assert mine.weight == pytest.approx(its.weight)


def test_sentences_without_arcs_have_no_figures():
    alone = record([-1], ["root"], [0])
    found = measured(make(SIZE), [alone], [[4, 3]])
    assert list(found) == ["all"]
    assert (found["all"].words, found["all"].by_offset, found["all"].best) == (0, None, None)
