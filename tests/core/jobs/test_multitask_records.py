"""Records for translation and for syntax."""

import io
from dataclasses import replace

import pytest

from synmt_cli.core.data.task_tags import asks_for_parse, refuse_untagged, tagged
from synmt_cli.core.jobs.multitask import MultitaskJob, symbols, with_trees
from synmt_cli.core.text.vocabulary import UNK, Vocabulary
from synmt_cli.core.text.vocabulary_training import VocabularySettings, train
from synmt_cli.core.trees.features import FEATURES, tree_of
from synmt_cli.errors import ConfigError, DataError
from synmt_cli.formats import penn, record
from synmt_cli.formats.record import Record
from synmt_cli.io.reading import Source

TEXT = ["the dog sees a cat . (root", 'der Hund sieht "eine" Katze . (nsubj )'] * 5
LABELS = ["root", "nsubj", "det", "obj", "NP", "S"]
SYMBOLS = symbols([(LABELS, ("f", 1))])
PLACE = ("f", 3)


@pytest.fixture(scope="module")
def vocabulary():
    return Vocabulary(train(TEXT, VocabularySettings(60, symbols=tuple(SYMBOLS))), "v.model")


@pytest.fixture(scope="module")
def other():
    return Vocabulary(train(TEXT, VocabularySettings(55, symbols=tuple(SYMBOLS))), "w.model")


@pytest.fixture
def one(vocabulary):
    return Record(
        "7",
        "a dog sees",
        words=["a", "dog", "sees"],
        spans=[[0, 1], [2, 5], [6, 10]],
        heads=[1, 2, -1],
        deprels=["det", "nsubj", "root"],
        upos=["DET", "NOUN", "VERB"],
        pieces=["▁a", "▁do", "g", "▁sees"],
        piece_word=[0, 1, 1, 2],
        tgt="ein Hund",
        tgt_pieces=["▁e", "in"],
        transitions=["SHIFT"],
        vocab=vocabulary.fingerprint,
        extra={"depth": [2, 1, 1, 0], "x": 1},
    )


def read_back(one):
    """The record as it is read back, which raises unless it is whole."""
    return record.from_bytes(record.to_bytes(one))


def test_tags_stand_at_both_ends_once(one):
    found = tagged(one)
    assert found.pieces == ["<TR>", "▁a", "▁do", "g", "▁sees", "<TR>"]
    assert found.piece_word == [-1, 0, 1, 1, 2, -1]
    assert tagged(found).pieces == found.pieces
    assert one.pieces[0] == "▁a"
    assert not asks_for_parse(found)
    assert asks_for_parse(tagged(one, "<PA>"))


def test_a_part_of_a_tagged_source_gets_its_other_tag():
    parts = [["<PA>", "▁a"], ["▁b"], ["▁c", "<PA>"], ["<TR>"], []]
    found = [tagged(Record("1", "a b c", pieces=part)).pieces for part in parts]
    assert found[0] == ["<PA>", "▁a", "<PA>"]
    assert found[1] == ["<TR>", "▁b", "<TR>"]
    assert found[2] == ["<PA>", "▁c", "<PA>"]
    assert found[3:] == [["<TR>"], []]


@pytest.mark.parametrize("name", FEATURES)
def test_trees_fit_the_pieces_between_the_tags(one, name):
    """Features that are positions grow by 1; all others stay the same."""
    before, found = (
        FEATURES[name].compute(tree_of(one)),
        FEATURES[name].compute(tree_of(tagged(one))),
    )
    shift = 1 if name.startswith("parent") else 0
    inside = [value - shift if shift else value for value in found[1:-1]]
    assert inside == before


def test_each_record_becomes_a_translation_and_a_parse(one, vocabulary):
    translation, parse = map(
        read_back, MultitaskJob(vocabulary, vocabulary).make(one, PLACE).records
    )
    assert (translation.id, parse.id) == ("7:TR", "7:PA")
    assert (translation.tgt, translation.transitions) == ("ein Hund", ["SHIFT"])
    assert (parse.tgt, parse.transitions) == ("(root (nsubj (det ) ) )", None)
    assert parse.tgt_pieces == ["<(root>", "<(nsubj>", "<(det>", "<)>", "<)>", "<)>"]
    assert UNK not in vocabulary.ids([*parse.tgt_pieces, "<TR>", "<PA>"])
    assert parse.extra == {"depth": [0, 2, 1, 1, 0, 0], "x": 1}


@pytest.mark.parametrize(("task", "ids"), [("translate", ["7:TR"]), ("parse", ["7:PA"])])
def test_one_task_may_be_chosen(one, vocabulary, task, ids):
    made = MultitaskJob(vocabulary, vocabulary, task=task).make(one, PLACE)
    assert [r.id for r in made.records] == ids


def test_mixed_encoder_has_the_plain_record_and_its_parsed_source(one, vocabulary):
    plain, parsed = MultitaskJob(vocabulary, vocabulary, "mixed-encoder").make(one, PLACE).records
    assert plain is one
    read_back(parsed)
    assert " ".join(parsed.pieces) == "<(root> <(nsubj> <(det> ▁a <)> ▁do g <)> ▁sees <)>"
    assert parsed.piece_word == [-1, -1, -1, 0, -1, 1, 1, -1, 2, -1]
    assert (parsed.tgt, parsed.tgt_pieces) == (one.tgt, one.tgt_pieces)


def test_brackets_may_be_text_as_in_the_paper(one, vocabulary):
    _, parse = MultitaskJob(vocabulary, vocabulary, as_text=True).make(one, PLACE).records
    assert (
        parse.tgt_pieces
        == vocabulary.pieces("(root (nsubj (det ) ) )")
        == vocabulary.pieces(parse.tgt)
    )
    _, parsed = (
        MultitaskJob(vocabulary, vocabulary, "mixed-encoder", as_text=True).make(one, PLACE).records
    )
    assert vocabulary.join(parsed.pieces) == "(root (nsubj (det a ) dog ) sees )"


def test_penn_trees_take_the_place_of_dependencies(one, vocabulary):
    tree = penn.from_text("(S (NP (DT a) (NN dog)) (VBZ sees))")
    _, parse = MultitaskJob(vocabulary, vocabulary, penn=True).make(one, PLACE, tree).records
    assert parse.tgt == "(S (NP ) )"
    own, _ = vocabulary.encode(one.src)
    one = replace(one, pieces=own, piece_word=[0] * len(own), extra={})
    mixed = MultitaskJob(vocabulary, vocabulary, "mixed-encoder", penn=True)
    _, parsed = mixed.make(one, PLACE, tree).records
    assert vocabulary.join(parsed.pieces) == "a dog sees"
    shown = vocabulary.pieces("a dog"), vocabulary.pieces("sees")
    assert parsed.pieces == ["<(S>", "<(NP>", *shown[0], "<)>", *shown[1], "<)>"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"status": "failed", "reason": "why"}, "failed: why"),
        ({"words": None, "heads": None, "deprels": None}, "no tree"),
        ({"heads": [], "deprels": []}, "no tree"),
    ],
)
@pytest.mark.parametrize("scheme", ["multitask", "mixed-encoder"])
def test_without_a_tree_there_is_a_translation_only(one, vocabulary, changes, problem, scheme):
    one = replace(one, extra={}, **changes)
    found, said = MultitaskJob(vocabulary, vocabulary, scheme).make(one, PLACE)
    assert (len(found), said) == (1, problem)


def test_an_empty_line_stays_one_and_is_no_failure(vocabulary):
    empty = Record("1", "", "empty", words=[], spans=[], heads=[], deprels=[], upos=[], pieces=[])
    (found,), problem = MultitaskJob(vocabulary, vocabulary).make(empty, PLACE)
    assert (found.pieces, found.status, problem) == ([], "empty", "")


def test_a_target_vocabulary_of_its_own_has_the_brackets(one, vocabulary, other):
    one.vocab = f"{vocabulary.fingerprint}+{other.fingerprint}"
    _, parse = MultitaskJob(vocabulary, other).make(one, PLACE).records
    assert parse.vocab == one.vocab
    one.vocab, one.tgt_pieces = vocabulary.fingerprint, None
    assert MultitaskJob(vocabulary, other, task="translate").make(one, PLACE).records


def test_records_of_another_vocabulary_or_made_already_are_refused(one, vocabulary, other):
    with pytest.raises(ConfigError, match=f"f:3: pieces of vocabulary {vocabulary.fingerprint}, "):
        MultitaskJob(other, other).make(one, PLACE)
    with pytest.raises(DataError, match="f:3: field pieces has tags or brackets already"):
        MultitaskJob(vocabulary, vocabulary).make(tagged(one), PLACE)
    with pytest.raises(DataError, match="f:3: no pieces; make records with featurize --spm"):
        MultitaskJob(vocabulary, vocabulary).make(replace(one, pieces=None, piece_word=None), PLACE)


def test_a_vocabulary_without_the_symbols_is_refused(one, vocabulary):
    plain = Vocabulary(train(TEXT, VocabularySettings(50)), "plain.model")
    with pytest.raises(ConfigError, match=r"plain\.model has no symbol '<TR>'; synmt multi"):
        MultitaskJob(plain, plain)
    one.deprels = ["det", "nsubj:pass", "root"]
    with pytest.raises(ConfigError, match=r"v.model has no symbol '<\(nsubj:pass>'"):
        MultitaskJob(vocabulary, vocabulary).make(one, PLACE)


def test_training_refuses_sources_without_tags(one):
    refuse_untagged(tagged(one), PLACE)
    refuse_untagged(tagged(one, "<PA>"), PLACE)
    refuse_untagged(Record("1", "", "empty", pieces=[]), PLACE)
    with pytest.raises(ConfigError, match="f:3: no task tags around the pieces; synmt multitask"):
        refuse_untagged(one, PLACE)


def test_symbols_are_tags_and_brackets_sorted():
    found = symbols([(["b", "a"], ("f", 1)), (["a", "c:d"], ("f", 2))])
    assert found == ["<TR>", "<PA>", "<)>", "<(a>", "<(b>", "<(c:d>"]
    with pytest.raises(DataError, match="f:2: label 'a b' cannot be a bracket: it has a space"):
        symbols([(["x"], ("f", 1)), (["a b"], ("f", 2))])


@pytest.mark.parametrize(("n", "lines"), [(1, "1 line"), (3, "3 lines"), (0, "0 lines")])
def test_trees_and_records_must_be_as_many(one, n, lines):
    trees = Source("p", io.BytesIO(b"(S (N a))\n" * n))
    with pytest.raises(DataError, match=f"p: {lines}, but the input has 2"):
        list(with_trees([(one, PLACE)] * 2, trees))


def test_each_record_has_the_tree_of_its_line(one):
    trees = Source("p", io.BytesIO(b"(S (N a))\n\n"))
    found = list(with_trees([(one, PLACE)] * 2, trees))
    assert [tree and tree.words for _, _, tree in found] == [["a"], None]
