"""Other programs' sentencepiece models with our special ids."""

import random

import pytest
import sentencepiece
from support.sentencepiece_models import sentencepiece_model

from synmt_cli.core.text.vocabulary import BOS, EOS, PAD, UNK, Vocabulary, with_special_ids
from synmt_cli.errors import ConfigError, Unavailable

WORDS = [
    *("the", "dog", "sees", "a", "cat", "that", "barked", "and", "sleeps", "with"),
    *("naïve", "Äpfel", "日本", "x1", "!"),
]
LAYOUTS = {
    "spm_train": {},
    "fairseq": {"unk_id": 3, "bos_id": 0, "pad_id": 1, "eos_id": 2},
    "Marian": {"unk_id": 1, "bos_id": -1, "eos_id": 0},
    "T5": {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1, "byte_fallback": True},
    "other names": {"unk_piece": "[UNK]", "bos_piece": "[CLS]", "eos_piece": "[SEP]"},
    "symbols": {"control_symbols": ["<mask>", "<pad>"], "user_defined_symbols": ["barked"]},
}


@pytest.mark.parametrize("ids", [{}, {"unk_id": UNK, "pad_id": PAD, "bos_id": BOS, "eos_id": EOS}])
@pytest.mark.parametrize("taken", [with_special_ids, Vocabulary])
def test_pieces_that_end_with_spaces_are_refused(taken, ids):
    """Converting does not help, so that is not the advice, whatever the ids."""
    with pytest.raises(ConfigError, match="f was trained with --treat_whitespace_as_suffix"):
        taken(model_of_texts(treat_whitespace_as_suffix=True, **ids), "f")


def texts(seed=1, n=300):
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 12))) for _ in range(n)]


def model_of_texts(**options):
    return sentencepiece_model(texts(), 340 if "byte_fallback" in options else 70, **options)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_text_is_split_as_before_and_ids_are_ours(layout, kind):
    model = model_of_texts(model_type=kind, **LAYOUTS[layout])
    with pytest.raises(ConfigError, match="needed are unk 0, pad 1, bos 2, eos 3: see synmt vocab"):
        Vocabulary(model)
    old = sentencepiece.SentencePieceProcessor(model_proto=model)
    converted = with_special_ids(model, "other.model")
    new = Vocabulary(converted)
    library = sentencepiece.SentencePieceProcessor(model_proto=converted)
    assert [library.unk_id(), library.pad_id(), library.bos_id(), library.eos_id()] == [
        *(UNK, PAD, BOS, EOS)
    ]
    assert library.vocab_size() == len({library.id_to_piece(i) for i in range(new.size)})
    names = [[p.id_to_piece(i) for i in range(p.vocab_size())] for p in (old, library)]
    first = set(names[1][:4])
    assert [n for n in names[0] if n not in first] == names[1][4:]  # the others in their order
    scores = {p.id_to_piece(i): p.get_score(i) for p in (old,) for i in range(p.vocab_size())}
    assert all(library.get_score(i) == scores[n] for i, n in enumerate(names[1]) if n in scores)
    for text in [*texts(2, 50), "unseen ∀ words", ""]:
        pieces = old.encode(text, out_type=str)
        assert library.encode(text, out_type=str) == pieces
        assert library.decode(library.encode(text)) == old.decode(old.encode(text))
        assert new.making.type == kind
    assert with_special_ids(converted, "new.model") == converted


def test_text_that_looks_like_a_special_piece_stays_text():
    model = model_of_texts(model_type="bpe", user_defined_symbols=["<pad>"])
    new = Vocabulary(with_special_ids(model, "m"))
    assert PAD not in new.ids(new.pieces("the <pad> dog"))
    assert new.decode(new.ids(new.pieces("the dog"))) == "the dog"


@pytest.mark.parametrize("data", [b"", b"no model", model_of_texts(model_type="bpe")[:50]])
def test_what_is_no_model_is_refused(data):
    with pytest.raises(Unavailable, match="m is not a sentencepiece model"):
        with_special_ids(data, "m")
