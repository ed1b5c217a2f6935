"""CTranslate2 finds what our own search finds, whatever changes the encoder."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.models import make, small
from support.parsed_sources import IDS, OTHERS, TREES, source

from synmt_cli.core.data.ragged import Ragged
from synmt_cli.core.decoding.hypothesis import LengthLimit
from synmt_cli.core.decoding.sampling import Sampling
from synmt_cli.core.decoding.search import search
from synmt_cli.core.decoding.translator import SearchSettings
from synmt_cli.core.run.exported import ctranslate2_file, ctranslate2_model
from synmt_cli.core.text.vocabulary import BOS, EOS, PAD, UNK, Vocabularies
from synmt_cli.core.variants import plan
from synmt_cli.core.variants.stack import StackSpec
from synmt_cli.errors import ConfigError, DataError

pytest.importorskip("ctranslate2")
from synmt_cli.core.decoding import ctranslate2_search

CPU = torch.device("cpu")
N = 40
PAIRS = [*zip(IDS, TREES, strict=True), *OTHERS]
# Variant -> options other than the defaults. The size has three layers.
MODELS = {
    "vanilla": {},
    "pascal": {},  # torch computes half of the first layer
    "gps": {"gps": {"layer": "all"}},  # torch computes all but half of the last layer
    "struct-abs": {},  # torch computes embeddings alone
    "struct-rel": {},
    "rel": {"rel": {"stack": "encoder"}},
    "dep": {},
    "tags": {},
    "sisa": {"sisa": {"layer": 1}},
    "pascal+rel+tags": {"rel": {"stack": "encoder", "clip": 2}},
}
GREEDY = SearchSettings(longest=LengthLimit(1.5, 3), beam=1)
BEAM = SearchSettings(longest=LengthLimit(1.5, 3), beam=3, nbest=2, patience=1, lenpen=0.6)


class Letters:
    """A vocabulary of N pieces that are named by their numbers."""

    size = N

    def names(self, ids):
        return [("<unk>", "<pad>", "<s>", "</s>")[id] if id < 4 else f"p{id}" for id in ids]


VOCABULARIES = Vocabularies(Letters(), Letters())


def build(name, norm="post", **sizes):
    """A model in which pieces that are never written have no probability."""
    size = small(norm, encoder_layers=3, tied="decoder", **sizes)
    one, spec = plan(name), StackSpec(size, 3, 8)
    model = make(size, one.encoder(spec, MODELS[name]), one.decoder(spec, MODELS[name]), N).float()
    last = model.decoder.norm if norm == "pre" else model.decoder.layers[-1].norms[-1]
    with torch.no_grad():
        last.weight.fill_(1)
        last.bias.fill_(1)
        model.output.weight.sub_(model.output.weight.mean(1, keepdim=True))  # the bias adds nothing
        model.output.weight[EOS] *= 0.1  # else some models write nothing
        model.output.weight[[UNK, PAD, BOS]] = -5.0
    return model


def side(rows):
    ids, trees = zip(*(PAIRS[row] for row in rows), strict=True)
    one = source(list(ids), list(trees))
    one.features.update({n: v.float() for n, v in one.features.items() if v.is_floating_point()})
    return one


def found(model, rules, precision="fp32", batches=((4, 0, 1), (5, 2, 3)), threads=1):
    """The n-best lists of all pairs by CTranslate2."""
    ids = Ragged.of([ids for ids, _ in PAIRS], np.int64)
    plain = ctranslate2_model.of(model, VOCABULARIES, precision, CPU)
    searching = ctranslate2_search.CTranslate2Search(plain, rules, CPU, threads)
    nbests = {}
    for rows, some in searching(ids, side, map(np.array, batches)):
        nbests |= zip(rows.tolist(), some, strict=True)
    return [nbests[i] for i in range(len(PAIRS))]


def expected(model, rules):
    return search([model], side(range(len(PAIRS))), rules)


def agree(one, other):
    for a, b in zip(one, other, strict=True):
        assert [(h.ids, h.cut, h.length) for h in a] == [(h.ids, h.cut, h.length) for h in b]
        assert [h.score for h in a] == pytest.approx([h.score for h in b], abs=1e-3)
        assert [h.log_prob for h in a] == pytest.approx([h.log_prob for h in b], abs=1e-2)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("name", MODELS)
def test_every_variant_of_the_source_gives_the_same(name, norm):
    model = build(name, norm)
    wanted = expected(model, BEAM)
    assert len({tuple(nbest[0].ids) for nbest in wanted}) > 1
    agree(found(model, BEAM), wanted)


@pytest.mark.parametrize(
    "rules",
    [
        GREEDY,
        SearchSettings(longest=LengthLimit(0, 1), beam=2, patience=1),
        SearchSettings(longest=LengthLimit(0, 30), beam=4, nbest=4, patience=2, lenpen=1),
        SearchSettings(longest=LengthLimit(0, 30), beam=5, patience=0.3, lenpen=0),
        SearchSettings(longest=LengthLimit(0, 30), beam=4, patience=math.inf, lenpen=0),
    ],
)
def test_every_rule_gives_the_same(rules):
    model = build("pascal", "pre")
    wanted = expected(model, rules)
    agree(found(model, rules), wanted)


def test_a_complete_translation_goes_before_better_ones_that_are_cut():
    rules = SearchSettings(longest=LengthLimit(0, 4), beam=3, patience=1, lenpen=2)
    model = build("vanilla", "pre")
    with torch.no_grad():
        table = model.output.weight
        table[4:] *= 6
        table[EOS] = torch.randn(table.size(1), generator=torch.Generator().manual_seed(112))
        table[EOS] *= table[4:].std()
    wanted = expected(copy.deepcopy(model), rules)
    assert not any(h.cut for nbest in wanted for h in nbest)
    agree(found(model, rules), wanted)


def test_greedy_search_without_scores_gives_the_same():
    model = build("pascal", "pre")
    wanted = [[(h.ids, h.cut) for h in nbest] for nbest in expected(model, GREEDY)]
    nbests = found(model, replace(GREEDY, scores=False))
    assert [[(h.ids, h.cut) for h in nbest] for nbest in nbests] == wanted


@pytest.mark.parametrize("threads", [1, 2])
def test_batches_and_tables_change_nothing(threads, monkeypatch):
    wanted = found(build("pascal"), BEAM)
    monkeypatch.setattr(ctranslate2_search, "TABLE_NUMBERS", 60)
    agree(found(build("pascal"), BEAM, batches=[[i] for i in range(6)], threads=threads), wanted)


@pytest.mark.parametrize("name", ["vanilla", "pascal", "gps"])
def test_8_bits_are_near(name):
    model = build(name, "pre")
    wanted = expected(model, GREEDY)
    nbests = found(model, GREEDY, "int8")
    scores = [[one[0].score for one in many] for many in (nbests, wanted)]
    assert scores[0] == pytest.approx(scores[1], rel=0.2, abs=0.2)


class AlikeOnALine(Letters):
    """A vocabulary with two pieces that are the same once white space is written as an escape."""

    def names(self, ids):
        return [{7: "a\u2028", 8: "a\\u2028"}.get(id, f"p{id}") for id in ids]


@pytest.mark.parametrize("side", ["source", "target"])
def test_pieces_without_a_name_of_their_own_are_refused(side):
    both = [AlikeOnALine() if side == name else Letters() for name in ("source", "target")]
    with pytest.raises(ConfigError, match=f"two {side} pieces have one name"):
        ctranslate2_model.spec(build("vanilla"), Vocabularies(*both), None)


def test_quantization_leaves_the_model_as_it_is():
    """torch goes on computing with the model."""
    model, same = build("gps"), build("gps")
    ctranslate2_model.spec(model, VOCABULARIES, "int8")
    for one, other in zip(model.parameters(), same.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"beam": 4}, "exact search"),
        ({"beam": 4, "patience": 0.5, "nbest": 3}, "--nbest 3"),
        ({"beam": 30, "patience": 1}, "--beam 30"),
        ({"beam": 1, "sampling": Sampling()}, "leave --sample out"),
        ({"beam": 1, "max_pieces": 1020}, "2,048 pieces"),
        ({"beam": 1, "longest": LengthLimit(0, 3000)}, "2,048 pieces"),
        ({"beam": 1, "max_pieces": 2046, "longest": LengthLimit(0, 5)}, "2,048 pieces"),  # tags
        ({"beam": 1, "max_pieces": 2045, "longest": LengthLimit(0, 5)}, ""),
        ({"beam": 4, "patience": 1}, ""),
        ({"beam": 4, "lenpen": 0}, ""),
        ({"beam": 1, "max_pieces": 1000}, ""),
    ],
)
def test_what_a_search_cannot_do_has_a_reason(settings, reason):
    told = ctranslate2_search.misfit(SearchSettings(**settings), N)
    assert reason in told
    assert bool(told) == bool(reason)


# The file.


@pytest.mark.parametrize("quantization", [None, "int8", "bfloat16", "float16"])
def test_the_file_is_the_one_that_the_library_writes(quantization, tmp_path):
    spec = ctranslate2_model.spec(build("pascal"), VOCABULARIES, quantization)
    spec.save(str(tmp_path))
    written = ctranslate2_file.written(spec)
    assert (tmp_path / "model.bin").read_bytes() == written
    table = np.arange(1, 13, dtype=np.float32)[None]
    cut = ctranslate2_file.cut(written, "x")
    # The same variables in another order: those of the table come first.
    assert sorted(cut.with_table(table)) == sorted(written)


def test_damage_is_named():
    written = ctranslate2_file.written(ctranslate2_model.spec(build("pascal"), VOCABULARIES, None))
    for damaged in (b"", written[:3], written[:30], written[:-9000]):
        with pytest.raises(DataError, match="not a whole model"):
            ctranslate2_file.cut(damaged, "m.bin")
    with pytest.raises(ConfigError, match="binary version 7, expected 6"):
        ctranslate2_file.cut(b"\7\0\0\0" + written[4:], "m.bin")


def test_a_device_that_ctranslate2_cannot_use_is_a_reason():
    assert ctranslate2_search.incapable("fp32", torch.device("cpu")) == ""
    assert ctranslate2_search.incapable("fp32", torch.device("mps")).startswith("mps: ")
