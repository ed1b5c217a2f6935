import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sentencepiece_models import sentencepiece_model

from synmt_cli.core.text.vocabulary import BOS, EOS, PAD, UNK, Vocabulary
from synmt_cli.core.text.vocabulary_training import VocabularySettings, train
from synmt_cli.errors import ConfigError, DataError, Unavailable, UsageError
from synmt_cli.formats.spm import without_prefix

TEXT = [
    *("the dog sees the cat .", "a cat sees the dogs .", "the dogs sleep in the garden"),
    *("my father bought a red car .", "nobody knows the trouble I have seen"),
    *("she reads books about birds and fishes", "reading is learning , learning is living"),
] * 5
LINE = st.text(st.characters(codec="utf-8", exclude_characters="\n"))


@pytest.fixture(scope="module", params=["bpe", "unigram", "bytes"])
def vocabulary(request):
    small = VocabularySettings(40)
    by_name = {
        "bpe": small,
        "unigram": VocabularySettings(30, "unigram"),
        "bytes": VocabularySettings(300, byte_fallback=True),
    }
    return Vocabulary(train(TEXT, by_name[request.param]))


def test_words_are_whole_and_others_unknown():
    lines = ["the dog sees the cat .", "the cat sleeps ."] * 3
    settings = VocabularySettings(size=8, type="word")
    vocabulary = Vocabulary(train(lines, settings))
    pieces, places = vocabulary.encode("the cat barks .")
    assert pieces == ["▁the", "▁cat", "▁barks", "▁."]
    assert places == [(0, 3), (3, 7), (7, 13), (13, 15)]
    assert [id == UNK for id in vocabulary.ids(pieces)] == [False, False, True, False]
    assert vocabulary.decode(vocabulary.ids(["▁the", "▁cat", "▁."])) == "the cat ."


def test_words_spelled_in_bytes_have_spaces_between_them():
    settings = VocabularySettings(size=290, type="word", byte_fallback=True)
    vocabulary = Vocabulary(train(TEXT, settings))
    pieces = vocabulary.pieces("Zürich sees the Åland")
    assert vocabulary.decode(vocabulary.ids(pieces)) == "Zürich sees the Åland"
    assert vocabulary.join(pieces) == "Zürich sees the Åland"


def test_a_symbol_that_is_given_twice_counts_once():
    one, three = (train(TEXT, VocabularySettings(symbols=("<A>",) * n)) for n in (1, 3))
    assert one == three


def test_special_ids_are_fixed(vocabulary):
    assert (UNK, PAD, BOS, EOS) == (0, 1, 2, 3)
    assert vocabulary.decode([PAD, BOS, *vocabulary.ids(vocabulary.pieces("the dog")), EOS]) == (
        "the dog"
    )


@given(LINE)
@settings(max_examples=100)
def test_offsets_cut_the_text_into_its_pieces(vocabulary, text):
    pieces, offsets = vocabulary.encode(text)
    ends, previous = 0, None
    for piece, (begin, end) in zip(pieces, offsets, strict=True):
        assert begin <= end <= len(text)
        assert begin >= ends or (begin, end) == previous  # the bytes of one character
        ends, previous = end, (begin, end)
        if piece not in vocabulary._bytes and piece.strip("▁"):
            assert text[begin:end].strip(" ▁") == piece.strip("▁")
    assert all(text[i] in " ▁" for i in set(range(len(text))) - covered(offsets))


def covered(offsets):
    return {i for begin, end in offsets for i in range(begin, end)}


@given(LINE)
@settings(max_examples=100)
def test_offsets_are_those_of_sentencepiece(vocabulary, text):
    pieces, offsets = vocabulary.encode(text)
    theirs = vocabulary._processor.encode_as_offset_mapping(text)
    assert pieces == theirs["pieces"]
    for piece, ours, other in zip(pieces, offsets, theirs["offsets"], strict=True):
        assert ours == other or (piece in vocabulary._bytes and other[0] == other[1])


@given(LINE)
@settings(max_examples=100)
def test_pieces_join_to_the_text_but_for_spaces(vocabulary, text):
    spaces = text.replace("▁", " ")
    assert vocabulary.join(vocabulary.pieces(text)) == " ".join(filter(None, spaces.split(" ")))


@pytest.mark.parametrize("text", ["<s>", "</s> <pad>", "a<s>", "<unk>", "<0x41>", "中<s>文"])
def test_no_text_becomes_a_control_id(vocabulary, text):
    pieces = vocabulary.pieces(text)
    assert not {PAD, BOS, EOS} & set(vocabulary.ids(pieces))
    assert vocabulary.join(pieces) == text
    assert not {PAD, BOS, EOS} & set(vocabulary.ids(["<s>", "</s>", "<pad>"]))


def test_decoded_text_is_one_line():
    vocabulary = Vocabulary(train(TEXT, VocabularySettings(300, byte_fallback=True)))
    assert vocabulary.join(["▁a", "<0x0A>", "b"]) == "a b"
    assert vocabulary.decode(vocabulary.ids(["▁a", "<0x0A>", "b"])) == "a b"
    assert vocabulary.join(["<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "<0xFF>"]) == "😀\ufffd"


def test_text_is_read_whole_if_all_its_pieces_are_there(vocabulary):
    known, unknown = vocabulary.pieces("the cat"), vocabulary.pieces("the 中")
    assert vocabulary.has_all(known)
    assert vocabulary.has_all(unknown) == (UNK not in vocabulary.ids(unknown))
    assert vocabulary.has_all([])
    assert not vocabulary.has_all(["the cat"])


def test_the_bytes_of_a_character_share_its_place():
    vocabulary = Vocabulary(train(TEXT, VocabularySettings(300, byte_fallback=True)))
    pieces, offsets = vocabulary.encode("a 😀")
    assert pieces[-4:] == ["<0xF0>", "<0x9F>", "<0x98>", "<0x80>"]
    assert offsets[-4:] == [(2, 3)] * 4


@pytest.mark.parametrize("type", ["bpe", "unigram"])
def test_the_same_text_gives_the_same_bytes(type):
    assert train(TEXT, VocabularySettings(30, type)) == train(
        iter(TEXT), VocabularySettings(30, type)
    )


def test_user_symbols_stay_whole():
    symbols = ("LEFT-ARC:det", "a,b", "<2de>")
    vocabulary = Vocabulary(train(TEXT, VocabularySettings(40, user_symbols=symbols)))
    for symbol in symbols:
        assert symbol in vocabulary.pieces(f"the {symbol} dog{symbol}.")


def test_what_a_model_says_of_its_making(vocabulary):
    assert vocabulary.making.type in ("bpe", "unigram")
    assert vocabulary.making.normalization == "identity"
    assert vocabulary.making.byte_fallback == bool(vocabulary._bytes)
    assert vocabulary.size in (30, 40, 300)


@pytest.mark.parametrize(
    ("size", "symbols", "problem"),
    [
        (100_000, (), r"size 100000 is too large for this text: at most \d+$"),
        (6, (), r"size 6 is too small: single characters alone need \d+"),
        (40, ("<s>",), "'<s>' cannot be a user symbol"),
        (40, ("a b",), "'a b' cannot be a user symbol"),
    ],
)
def test_impossible_settings_are_explained(size, symbols, problem):
    with pytest.raises(UsageError, match=problem):
        train(TEXT, VocabularySettings(size, user_symbols=symbols))


@pytest.mark.parametrize("text", [[], [""], ["  "]])
def test_no_text_is_bad_data(text):
    with pytest.raises(DataError, match="no text to learn from"):
        train(text, VocabularySettings(40))


def test_an_error_of_the_text_is_kept():
    def text():
        yield "a"
        raise DataError("f", 2, "invalid UTF-8 at byte 1")

    with pytest.raises(DataError, match="f:2: invalid UTF-8 at byte 1"):
        train(text(), VocabularySettings(40))


def test_damaged_and_missing_models_are_named(tmp_path):
    model = train(TEXT, VocabularySettings(40))
    for number, bad in enumerate([b"", b"x" * 99, model[:-9], model[: len(model) // 2]]):
        path = tmp_path / f"{number}.model"
        path.write_bytes(bad)
        with pytest.raises(Unavailable, match=f"{number}.model is not a sentencepiece model"):
            Vocabulary.load(str(path))
    for path in (tmp_path / "none", tmp_path, "a\0b"):
        with pytest.raises(Unavailable, match="cannot read the vocabulary"):
            Vocabulary.load(str(path))


def test_other_special_ids_are_refused(tmp_path):
    (tmp_path / "m.model").write_bytes(sentencepiece_model(TEXT, 40))
    with pytest.raises(ConfigError, match=r"has unk 0, pad -1, bos 1, eos 2; needed are unk 0"):
        Vocabulary.load(str(tmp_path / "m.model"))


def test_real_text_keeps_its_characters(data):
    raw = gzip.decompress((data / "news" / "newstest2015.de.gz").read_bytes()).decode()
    lines = raw.split("\n")[:500]
    vocabulary = Vocabulary(train(lines, VocabularySettings(1500)))
    for line in lines:
        pieces = vocabulary.pieces(line)
        assert vocabulary.decode(vocabulary.ids(pieces)) == " ".join(filter(None, line.split(" ")))


@pytest.mark.parametrize("normalization", ["identity", "nfkc"])
def test_each_unknown_word_of_a_vocabulary_of_words_is_a_piece(normalization):
    settings = VocabularySettings(size=8, type="word", normalization=normalization)
    vocabulary = Vocabulary(train(["the dog sees the cat", "the cat sees"] * 2, settings))
    for text in ("the old lazy dog sees red fat cats", "the  ｏld lazy  ＡＢ dog", "a b", "dog"):
        pieces, offsets = vocabulary.encode(text)
        assert len(pieces) == len(text.split()) == len(vocabulary.ids(pieces))
        assert [text[begin:end].strip() for begin, end in offsets] == text.split()
        assert vocabulary.pieces(text) == pieces


@pytest.mark.parametrize("normalization", ["identity", "nfkc"])
def test_a_no_break_space_ends_a_word_where_normalization_says_so(normalization):
    settings = VocabularySettings(size=8, type="word", normalization=normalization)
    vocabulary = Vocabulary(train(["the dog sees the cat", "the cat sees"] * 2, settings))
    text = "the  old 10\u00a0000 souls dog"
    words = text.split() if normalization == "nfkc" else text.replace("  ", " ").split(" ")
    pieces, offsets = vocabulary.encode(text)
    assert len(pieces) == len(words)
    assert [text[begin:end].strip() for begin, end in offsets] == words


def test_the_pieces_of_what_a_character_is_normalized_to_share_its_place():
    text = "Wait… ½ cup"
    made = train([*TEXT, "... 1⁄2 a b c W"], VocabularySettings(60, normalization="nfkc"))
    pieces, offsets = Vocabulary(made).encode(text)
    of = dict.fromkeys("…½", "")
    for piece, (begin, end) in zip(pieces, offsets, strict=True):
        if (character := text[begin:end].strip()) in of:
            of[character] += piece
    assert of["…"] == "..."
    assert of["½"].removeprefix("▁") == "1⁄2"


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("a ½ cup", {"½": "▁1⁄2", "cup": "▁cup"}),
        ("½ ²a", {"½": "▁1⁄2", "²": "▁2", "a": "a"}),
        ("xﬁ №5", {"ﬁ": "fi", "№": "▁No", "5": "5"}),
        ("by ﷺ said", {"ﷺ": "▁صلى▁الله▁عليه▁وسلم", "said": "▁said"}),
    ],
)
@pytest.mark.parametrize(
    ("type", "byte_fallback"), [("bpe", False), ("bpe", True), ("char", False)]
)
def test_every_piece_of_an_expansion_has_the_place_of_its_character(
    text, places, type, byte_fallback
):
    size = 350 if byte_fallback else 45 if type == "char" else 80
    settings = VocabularySettings(size, type, normalization="nfkc", byte_fallback=byte_fallback)
    vocabulary = Vocabulary(train([*TEXT, "5 fo", "⁄2", *["1 N a2 xi y"] * 20], settings))
    pieces, offsets = vocabulary.encode(text)
    for word, expected in places.items():
        begin, end = text.index(word), text.index(word) + len(word)
        inside = [p for p, (b, e) in zip(pieces, offsets, strict=True) if b < end and e > begin]
        assert vocabulary.join(inside) == vocabulary.join([expected])


def test_the_mark_before_a_text_stands_for_nothing_only_where_the_model_puts_one():
    text = "´a"  # NFKC: a space and an accent
    settings = VocabularySettings(40, "char", normalization="nfkc")
    model = train([*TEXT, "\u0301 \u0301a"], settings)
    pieces, offsets = Vocabulary(model).encode(text)
    assert (pieces[0], offsets[0]) == ("▁", (0, 0))
    assert offsets[1:] == [(0, 1), (1, 2)]
    assert Vocabulary(without_prefix(model)).encode(text)[1] == offsets[1:]


def test_unknown_words_of_a_vocabulary_of_words_have_their_own_places():
    settings = VocabularySettings(size=8, type="word", normalization="nfkc")
    vocabulary = Vocabulary(train(["the dog sees the cat", "the cat sees"] * 2, settings))
    text = "Qwertz Asdf´s Yxcvb"  # the accent begins a word
    pieces, offsets = vocabulary.encode(text)
    assert pieces == ["▁Qwertz", "▁Asdf", "▁\u0301s", "▁Yxcvb"]
    assert offsets == [(0, 6), (6, 11), (11, 13), (13, 19)]
