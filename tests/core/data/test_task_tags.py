"""Tags that are put around sources before they are read, and brackets as translations."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.labels import Labels
from synmt_cli.core.data.task_tags import parse_text, tagged
from synmt_cli.core.decoding.hypothesis import LengthLimit
from synmt_cli.core.decoding.translator import SearchSettings, Translator
from synmt_cli.core.jobs.featurize import Featurizer
from synmt_cli.core.model.size import Size
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.text import vocabulary_training
from synmt_cli.core.text.vocabulary import Vocabulary

TEXT = ["Tom and Mary go to school .", "A dog sleeps .", "The cats see the dogs in school ."]
SYMBOLS = ("<TR>", "<PA>", "<)>", "<(det>", "<(root>")
SIZE = Size(d_model=16, d_ff=32, n_heads=2, encoder_layers=1, decoder_layers=1)


@pytest.fixture(scope="module")
def translator():
    settings = vocabulary_training.VocabularySettings(size=60, symbols=SYMBOLS)
    vocabulary = Vocabulary(vocabulary_training.train(TEXT, settings))
    torch.manual_seed(1)
    model = Transformer(SIZE, vocabulary.size, vocabulary.size).eval()
    return Translator(
        [model],
        vocabulary,
        vocabulary,
        Encoding([], Labels()),
        torch.device("cpu"),
        SearchSettings(beam=1, longest=LengthLimit(0, 8), max_pieces=6),
    )


def scores(found):
    return [[(line.text, line.score) for line in one.lines] for one in found]


def test_untagged_sources_are_read_as_tagged_ones(translator):
    plain = [Featurizer(translator.source).of_text(line, "1") for line in ("A dog", "", "the cats")]
    prepared = replace(translator, prepare=tagged)
    found = prepared.translate(plain)
    assert [one.record for one in found] == plain
    assert scores(found) == scores(translator.translate(list(map(tagged, plain))))
    assert scores(found) == scores(prepared.translate(list(map(tagged, plain))))
    assert scores(found) != scores(translator.translate(plain))


def test_each_part_of_a_long_source_has_its_tags(translator):
    line = Featurizer(translator.source).of_text(TEXT[0], "1")
    seen = []

    def prepare(record):
        seen.append(tagged(record).pieces)
        return tagged(record)

    (found,) = replace(translator, prepare=prepare).translate([line])
    assert found.n_parts == len(seen) > 1
    assert all(pieces[0] == pieces[-1] == "<TR>" for pieces in seen)
    assert [piece for pieces in seen for piece in pieces[1:-1]] == line.pieces


def test_brackets_are_shown_only_where_they_are_asked_for(translator):
    vocabulary = translator.target
    ids = vocabulary.ids(["<(root>", "<(det>", "<)>", *vocabulary.pieces("the dog"), "<)>", "<TR>"])
    assert vocabulary.decode(ids) == "the dog"
    assert parse_text(vocabulary, ids) == "(root (det ) the dog )"
    as_text = vocabulary.ids(vocabulary.pieces("dogs see the cats"))
    assert parse_text(vocabulary, as_text) == vocabulary.decode(as_text)
