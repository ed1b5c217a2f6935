"""UAS, LAS, LA and CLAS against counting by hand."""

import io

import pytest

from synmt_cli.core.evaluation.trees.attachment import Attachment
from synmt_cli.core.evaluation.trees.word_alignment import aligned_spans
from synmt_cli.core.segments.buckets import Buckets
from synmt_cli.formats import conllu
from synmt_cli.formats.reports.tree_scores import MatchCount
from synmt_cli.io.reading import Source


def sentence(*words):
    """Rows from "form head label", optionally after "first-last form"."""
    rows, n = [], 0
    for word in words:
        if "-" in word.split()[0]:
            rows.append(word.replace(" ", "\t") + "\t_" * 8)
            continue
        n += 1
        form, head, label = word.split()
        upos = form[0].upper()
        rows.append(f"{n}\t{form}\t_\t{upos}\t_\t_\t{head}\t{label}\t_\t_")
    return "\n".join(rows) + "\n\n"


def evaluated(gold, system, **options):
    sides = [conllu.read(Source(name, io.BytesIO(name.encode()))) for name in (gold, system)]
    found = Attachment(**options)
    for part in aligned_spans(*sides, ("gold", "system")):
        found.add(part)
    return found


GOLD = sentence("the 2 det", "dog 3 nsubj:pass", "seen 0 root", ". 3 punct")
WRONG = sentence("the 2 det", "dog 3 nsubj", "seen 0 root", ". 2 punct")


def test_word_by_word():
    scores = evaluated(GOLD, WRONG).scores()
    assert scores["words"] == MatchCount(4, 4, 4)
    assert scores["uas"] == MatchCount(3, 4, 4, 4)
    assert scores["la"] == MatchCount(4, 4, 4, 4)
    assert scores["las"] == MatchCount(3, 4, 4, 4)
    assert scores["clas"] == MatchCount(2, 2, 2, 2)  # dog, seen
    assert scores["sentences"] == MatchCount(1, 1, 1)


def test_subtypes_count_when_asked_for():
    scores = evaluated(GOLD, WRONG, subtypes=True).scores()
    assert (scores["la"].correct, scores["las"].correct, scores["clas"].correct) == (3, 2, 1)


def test_a_head_is_right_only_if_it_is_aligned():
    gold = sentence("a 2 det", "bc 3 nsubj", "d 0 root")
    system = sentence("a 3 det", "b 3 case", "c 4 nsubj", "d 0 root")
    scores = evaluated(gold, system).scores()
    assert scores["words"] == MatchCount(2, 3, 4)
    assert scores["uas"] == MatchCount(1, 3, 4, 2)  # d; the head of a has no partner
    assert scores["la"] == MatchCount(2, 3, 4, 2)
    assert scores["tokens"] == MatchCount(2, 3, 4)
    uas = scores["uas"]
    figures = [uas.figure(name) for name in ("precision", "recall", "f1", "aligned_accuracy")]
    assert figures == pytest.approx([25, 100 / 3, 200 / 7, 50])


def test_sentences_cut_elsewhere():
    gold = sentence("a 2 det", "b 0 root") + sentence("c 0 root")
    system = sentence("a 2 det", "b 0 root", "c 2 obj")
    scores = evaluated(gold, system).scores()
    assert scores["sentences"] == MatchCount(0, 2, 1)
    assert scores["uas"] == MatchCount(2, 3, 3, 3)


def test_groups_add_up_to_the_whole():
    gold = GOLD + sentence("a 2 det", "b 0 root") + sentence("c 0 root")
    system = WRONG + sentence("a 2 det", "b 0 root", "c 2 obj")
    whole = evaluated(gold, system).scores()
    by_length = evaluated(gold, system, by=Buckets((2, 4, 9))).groups()
    assert [(one.name, one.sentences) for one in by_length] == [
        ("0-1", 1),
        ("2-3", 1),
        ("4-8", 1),
        ("9+", 0),
    ]
    for metric in ("words", "upos", "uas", "las", "la", "clas"):
        for field in ("correct", "gold", "system"):
            parts = [getattr(one.scores[metric], field) for one in by_length]
            assert sum(parts) == getattr(whole[metric], field)
    assert by_length[3].scores["las"].figure("f1") is None


def test_by_label():
    groups = {one.name: one.scores for one in evaluated(GOLD, WRONG, by="deprel").groups()}
    assert list(groups) == ["det", "nsubj", "punct", "root"]
    assert groups["punct"]["las"] == MatchCount(0, 1, 1, 1)
    assert groups["punct"]["uas"].figure("precision") is None
    swapped = sentence("the 2 det", "dog 3 det", "seen 0 root", ". 3 punct")
    groups = {one.name: one.scores for one in evaluated(GOLD, swapped, by="deprel").groups()}
    assert groups["det"]["las"] == MatchCount(1, 1, 2, 1)
    assert groups["nsubj"]["las"] == MatchCount(0, 1, 0, 1)
    assert groups["nsubj"]["uas"].figure("recall") == 100


def tagged(*words):
    """Rows from "form lemma upos xpos feats head label"."""
    rows = []
    for n, word in enumerate(words, 1):
        form, lemma, upos, xpos, feats, head, label = word.split()
        rows.append("\t".join((str(n), form, lemma, upos, xpos, feats, head, label, "_", "_")))
    return "\n".join(rows) + "\n\n"


TAGGED = (
    "The the DET DT Definite=Def 2 det",
    "dogs dog NOUN NNS Number=Plur 4 nsubj:pass",
    "are be AUX VBP Mood=Ind 4 aux:pass",
    "seen see VERB VBN VerbForm=Part|Tense=Past 0 root",
    ". . PUNCT . _ 4 punct",
)


def changed(word, old, new):
    return tagged(*(row.replace(old, new) if i == word else row for i, row in enumerate(TAGGED)))


@pytest.mark.parametrize(
    ("word", "old", "new", "wrong"),
    [
        (0, "Definite=Def", "Definite=Ind", ["ufeats", "alltags", "mlas"]),  # below dogs
        (0, "Definite=Def", "Definite=Def|Style=Arch", []),  # a feature of the language
        (0, "DT", "AT", ["xpos", "alltags"]),
        (1, "Number=Plur", "Number=Sing", ["ufeats", "alltags", "mlas"]),
        (1, " dog ", " dogs ", ["lemmas", "blex"]),
        (2, " be ", " are ", ["lemmas"]),  # not a content word
        (2, "AUX", "VERB", ["upos", "alltags", "mlas"]),
        (2, "aux:pass", "cop", ["las", "la", "mlas"]),
        (2, "aux:pass", "aux", []),
        (3, "VerbForm=Part|Tense=Past", "Tense=Past|VerbForm=Part", []),  # only the order
        (4, "_ 4", "_ 2", ["uas", "las"]),
        (1, "4 nsubj:pass", "4 obj", ["las", "la", "clas", "mlas", "blex"]),
        (0, "2 det", "4 det", ["uas", "las", "mlas"]),  # dogs has lost its article
    ],
)
def test_tags_lemmas_and_function_words(word, old, new, wrong):
    scores = evaluated(tagged(*TAGGED), changed(word, old, new)).scores()
    found = [name for name, one in scores.items() if one.correct < one.gold]
    assert found == wrong


def test_a_gold_lemma_that_is_not_given_is_right_whatever_it_is():
    gold = changed(1, " dog ", " _ ")
    assert evaluated(gold, tagged(*TAGGED)).scores()["blex"] == MatchCount(2, 2, 2, 2)
    assert evaluated(tagged(*TAGGED), gold).scores()["blex"] == MatchCount(1, 2, 2, 2)
