"""Symbols: pieces with ids of their own that no text ever becomes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sentencepiece_models import OUR_IDS, sentencepiece_model

from synmt_cli.core.text.vocabulary import (
    BOS,
    EOS,
    PAD,
    UNK,
    Vocabulary,
    symbol_problem,
)
from synmt_cli.core.text.vocabulary_training import VocabularySettings, train
from synmt_cli.errors import ConfigError, UsageError

TEXT = [
    *("the dog sees the cat .", "<TR> the cats (det LEFT-ARC:det )", "a cat sees the dogs ."),
    *("nobody knows the trouble I have seen", "she reads books about birds and fishes"),
    *("my father bought a red car .", "reading is learning , learning is living"),
] * 9
SYMBOLS = ("<TR>", "<PA>", "<(det>", "<)>", "(det", "LEFT-ARC:det", 'a,"b', "語語")
CHARACTERS = st.sampled_from([*SYMBOLS, *"<>()TRPA ▁", "語", "the dog", "Ä", "</s>", "<0x41>"])
LOOKALIKES = st.lists(CHARACTERS | st.text("<(語TRdet", max_size=4), max_size=12).map("".join)
KINDS = {
    "bpe": VocabularySettings(60, symbols=SYMBOLS),
    "unigram": VocabularySettings(50, "unigram", symbols=SYMBOLS),
    "bytes": VocabularySettings(320, byte_fallback=True, symbols=SYMBOLS),
    "nfkc": VocabularySettings(60, symbols=SYMBOLS, normalization="nfkc"),
}


@pytest.fixture(scope="module", params=list(KINDS))
def vocabulary(request):
    return Vocabulary(train(TEXT, KINDS[request.param]))


def test_symbols_have_the_ids_behind_the_special_ones(vocabulary):
    assert vocabulary.symbols == SYMBOLS
    assert vocabulary.ids(SYMBOLS) == list(range(EOS + 1, EOS + 1 + len(SYMBOLS)))


@given(text=LOOKALIKES)
@settings(max_examples=200)
def test_no_text_has_a_piece_with_the_name_of_a_symbol(vocabulary, text):
    pieces, offsets = vocabulary.encode(text)
    assert pieces == vocabulary.pieces(text)
    assert len(pieces) == len(offsets)
    assert not set(SYMBOLS) & set(pieces)
    special = {PAD, BOS, EOS, *vocabulary.ids(SYMBOLS)}
    assert not special & set(vocabulary.ids(pieces))


@given(text=LOOKALIKES)
@settings(max_examples=200)
def test_look_alikes_stay_text_at_their_place(vocabulary, text):
    pieces, offsets = vocabulary.encode(text)
    assert vocabulary.join(pieces).split() == text.replace("▁", " ").split()
    for piece, (begin, end) in zip(pieces, offsets, strict=True):
        if piece.strip("▁") and piece not in vocabulary._bytes:
            assert piece.strip("▁") in text[begin:end]


@pytest.mark.parametrize("text", ["語語", "a語語", "b 語語 a"])
def test_a_run_of_unknown_characters_may_look_like_a_symbol(text):
    vocabulary = Vocabulary(train(["a b"], VocabularySettings(8, symbols=("語語",))))
    theirs = vocabulary._processor.encode(text, out_type=str)
    assert "語語" in theirs
    ours, offsets = vocabulary.encode(text)
    at = text.index("語")
    assert ours[theirs.index("語語") :][:2] == ["語", "語"]
    assert offsets[theirs.index("語語") :][:2] == [(at, at + 1), (at + 1, at + 2)]
    assert vocabulary.ids(ours).count(UNK) == 2


def test_texts_do_not_show_symbols(vocabulary):
    pieces = ["<TR>", *vocabulary.pieces("the dog"), "<)>", *vocabulary.pieces("sees"), "<TR>"]
    assert vocabulary.join(pieces) == "the dog sees"
    assert vocabulary.decode(vocabulary.ids(pieces)) == "the dog sees"


@pytest.mark.parametrize("text", ["the dog sees the cat", "ÄÖ the cat"])
def test_symbols_leave_the_other_pieces_as_they_are(text):
    """This holds where the training text does not contain their names."""
    plain = Vocabulary(train(TEXT[:1] * 9, VocabularySettings(24)))
    more = Vocabulary(train(TEXT[:1] * 9, VocabularySettings(26, symbols=SYMBOLS[:2])))
    assert more.pieces(text) == plain.pieces(text)
    assert more.size == plain.size + 2


@pytest.mark.parametrize(
    ("symbols", "problem"),
    [
        (["<)>", ")"], r"'\)' cannot be a symbol: it is a single character"),
        ([""], "cannot be a symbol: it is empty"),
        (["a b"], "cannot be a symbol: it has a space"),
        (["a▁b"], "cannot be a symbol: it has a space"),
        (["a\nb"], r"'a\\nb' cannot be a symbol: it has a space or a character that does not"),
        (["<s>"], "'<s>' cannot be a symbol: it is a piece already"),
        (["the"], "'the' cannot be a symbol: it is a piece already"),
    ],
)
def test_what_text_could_become_is_no_symbol(symbols, problem):
    with pytest.raises(UsageError, match=problem):
        train(TEXT, VocabularySettings(60, user_symbols=("the",), symbols=tuple(symbols)))


def test_a_missing_symbol_is_named(vocabulary):
    vocabulary.refuse_missing(SYMBOLS, "synmt x")
    for missing in ("<XX>", "the", "<s>"):
        with pytest.raises(ConfigError, match=f"<bytes> has no symbol '{missing}'; synmt x writes"):
            vocabulary.refuse_missing(["<TR>", missing], "synmt x")


def test_a_single_character_of_another_tools_model_is_no_symbol():
    vocabulary = Vocabulary(sentencepiece_model(TEXT, 50, control_symbols=["#", "##"], **OUR_IDS))
    assert vocabulary.symbols == ("##",)
    assert vocabulary.ids(["#"]) == [UNK]
    assert symbol_problem("#")
