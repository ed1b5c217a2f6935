"""`Translator` and `TeacherForcing` from Python: labels of training alone, evaluation mode."""

from __future__ import annotations

import pytest
import torch

from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.labels import Labels
from synmt_cli.core.data.targets import Targets
from synmt_cli.core.decoding.likelihood import TeacherForcing
from synmt_cli.core.decoding.translator import SearchSettings, Translator
from synmt_cli.core.model.size import Size
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.variants.tags import Tags
from synmt_cli.formats.record import Record

SIZE = Size(d_model=16, d_ff=32, n_heads=2, encoder_layers=1, decoder_layers=1, dropout=0.5)


@pytest.fixture(scope="module")
def parts(vocabulary):
    """The first arguments of both classes; the labels grow, as when a corpus is read."""
    torch.manual_seed(1)
    model = Transformer(SIZE, vocabulary.size, vocabulary.size, encoder=[Tags(2, 8)])
    return [model.eval()], vocabulary, Encoding(["tag"], Labels(["root", "nsubj"], growing=True))


@pytest.fixture(scope="module")
def forcing(parts, vocabulary):
    models, source, encoding = parts
    settings = SearchSettings(beam=2)
    return TeacherForcing(
        models, source, Targets(vocabulary), encoding, torch.device("cpu"), settings
    )


@pytest.fixture(scope="module")
def record(vocabulary):
    def with_label(deprel):
        one = Record("1", "dog", words=["dog"], spans=[[0, 3]], heads=[-1], deprels=[deprel])
        one.pieces = one.tgt_pieces = vocabulary.pieces("dog")
        one.piece_word = [0] * len(one.pieces)
        return one

    return with_label


def scores(forcing, *records):
    return [one.log_prob for one in forcing.score([(one, ("f", 1)) for one in records])]


def test_labels_that_training_lacked_are_unknown_or_what_they_are_a_subtype_of(
    parts, forcing, record, vocabulary
):
    models, source, encoding = parts
    new, subtype, known, none = map(record, ("obj", "nsubj:outer", "nsubj", ""))
    of_new, of_subtype, of_known, of_none = scores(forcing, new, subtype, known, none)
    assert (of_new, of_subtype) == (of_none, of_known)
    assert of_known != of_none
    translator = Translator(
        models, source, vocabulary, encoding, torch.device("cpu"), SearchSettings()
    )
    found = translator.translate([new, subtype, known, none])
    lines = [one.lines for one in found]
    assert (lines[0], lines[1]) == (lines[3], lines[2])
    assert encoding.labels.names == ["root", "nsubj"]


def test_scores_are_those_of_evaluation_mode(forcing, record):
    expected = scores(forcing, record("root"))
    (model,) = forcing.models
    model.train()
    assert scores(forcing, record("root")) == expected
    assert model.training
    model.eval()
