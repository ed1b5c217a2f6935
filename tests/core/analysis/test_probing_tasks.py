"""The labels that the probing tasks must give to a few sentences."""

from __future__ import annotations

import io
from random import Random

import pytest
from support.small_runs import sentence

from synmt_cli.core.analysis import tasks
from synmt_cli.core.analysis.tasks import MADE
from synmt_cli.core.segments.alignment import tokens_of
from synmt_cli.formats import conllu, penn
from synmt_cli.io.reading import Source

PAST, PRESENT = "Tense=Past|VerbForm=Fin", "Tense=Pres|VerbForm=Fin"


def labels(make, *sentences):
    return [(case.label, case.target) for case in make(sentences, Random(1))]


DOGS = "dogs NOUN 2 nsubj Number=Plur"
ATE = f"ate VERB 0 root {PAST}"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([DOGS, ATE], [("Past", "ate")]),
        ([DOGS, f"Eat VERB 0 root {PRESENT}"], [("Pres", "eat")]),
        # the participle's own tense is not the clause's
        (
            [f"is AUX 2 aux:pass {PRESENT}", "eaten VERB 0 root Tense=Past|VerbForm=Part"],
            [("Pres", "is")],
        ),
        (
            [f"had AUX 3 aux {PAST}", "been AUX 3 aux Tense=Past|VerbForm=Part", "fed VERB 0 root"],
            [("Past", "had")],
        ),
        ([f"was AUX 2 cop {PAST}", "good ADJ 0 root"], [("Past", "was")]),
        (["will AUX 2 aux VerbForm=Fin", "eat VERB 0 root VerbForm=Inf"], []),
        (["no INTJ 0 root", f"said VERB 1 parataxis {PAST}"], []),
        ([DOGS, f"ate VERB 0 root Mood=Ind|{PAST}"], [("Past", "ate")]),
        # German: a past subjunctive is not about the past
        ([f"würde AUX 2 aux Mood=Sub|{PAST}", "essen VERB 0 root VerbForm=Inf"], []),
    ],
)
def test_tense_is_that_of_the_finite_verb(words, expected):
    assert labels(tasks.tense, sentence(*words)) == expected


def test_number_is_that_of_the_one_common_noun():
    obj = "Bone NOUN 2 obj Number=Sing"
    one = sentence(DOGS, ATE, obj)
    assert labels(MADE["subject-number"], one) == [("Plur", "dogs")]
    assert labels(MADE["object-number"], one) == [("Sing", "bone")]
    passive = sentence("dog NOUN 2 nsubj:pass Number=Sing", ATE)
    assert labels(MADE["subject-number"], passive) == [("Sing", "dog")]
    pronoun = sentence("they PRON 2 nsubj Number=Plur", ATE)
    two = sentence(DOGS, ATE, "cats NOUN 2 nsubj Number=Plur")
    below = sentence("I PRON 2 nsubj", ATE, "bone NOUN 2 obl", "toy NOUN 3 obj Number=Sing")
    assert labels(MADE["subject-number"], pronoun, two) == []
    assert labels(MADE["object-number"], below) == []


def test_depth_counts_arcs():
    chain = sentence("a X 2 x", "b X 3 x", "c X 0 root")
    assert labels(tasks.tree_depth, chain, sentence(DOGS, ATE)) == [("2", ""), ("1", "")]


def test_lengths_are_in_sentevals_classes():
    classes = {4: [], 5: ["0"], 8: ["0"], 9: ["1"], 13: ["2"], 20: ["3"], 21: ["4"], 26: ["5"]}
    for n, expected in {**classes, 28: ["5"], 29: []}.items():
        one = sentence("a X 0 root", *["b X 1 x"] * (n - 1))
        assert [label for label, _ in labels(tasks.sentence_length, one)] == expected


def test_word_content_wants_one_frequent_word_once():
    plain = sentence("horses NOUN 2 nsubj", "run VERB 0 root")
    both = sentence("horses NOUN 2 nsubj", "like VERB 0 root", "Horses NOUN 2 obj")
    rare = sentence("cat NOUN 0 root")
    found = labels(tasks.word_content, *[plain] * 60, *[both] * 10, *[rare] * 30)
    assert found == [("horses", "")] * 60  # 100 sentences have 2 frequent words: horses, like


QUICK = (
    "The DET 2 det _",
    "quick ADJ 3 amod _",
    "fox NOUN 4 nsubj Number=Sing",
    f"jumps VERB 0 root {PRESENT} SpaceAfter=No",
    "! PUNCT 4 punct _",
)


def test_bigram_shift_exchanges_two_words_or_none():
    """Neither the first word nor punctuation moves, so that two places are left."""
    cases = list(tasks.bigram_shift([sentence(*QUICK)] * 200, Random(3)))
    texts = {(case.label, case.text) for case in cases}
    assert texts == {
        ("O", "The quick fox jumps!"),
        ("I", "The fox quick jumps!"),
        ("I", "The quick jumps fox!"),
    }
    assert 70 < sum(case.label == "I" for case in cases) < 130


def test_bigram_shift_needs_two_words_that_differ_and_a_space():
    same = sentence("a X 0 root", "Very X 1 x", "very X 1 x")
    joined = sentence("a X 0 root", "b X 1 x _ SpaceAfter=No", "c X 1 x")
    assert list(tasks.bigram_shift([same, joined], Random(1))) == []


ELIDED = ["Il PRON 2 nsubj", "voit VERB 0 root", "l' DET 4 det _ SpaceAfter=No"]


def test_words_that_are_glued_to_others_are_not_exchanged():
    """Words in their places would run together with the neighbours, as in `l' lavoit`."""
    glued = sentence(*ELIDED, "eau NOUN 2 obj", "ici ADV 2 advmod")
    assert list(tasks.bigram_shift([glued] * 20, Random(1))) == []
    bracket, word = "( PUNCT 4 punct _ SpaceAfter=No", "fox NOUN 5 nsubj _ SpaceAfter=No"
    marks = sentence("The DET 4 det", bracket, "red ADJ 4 amod", word, ") PUNCT 0 root")
    found = {case.text for case in tasks.bigram_shift([marks] * 20, Random(1))}
    assert found == {"The (red fox)", "The (fox red)"}


def test_words_that_are_glued_to_others_are_not_replaced():
    nouns = [sentence(*ELIDED, f"{noun} NOUN 2 obj", "ici ADV 2 advmod") for noun in ("eau", "air")]
    assert list(tasks.odd_man_out(nouns * 4, Random(1))) == []


def test_multiword_tokens_are_written_as_they_are():
    block = (
        "1-2\tdu\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n"
        "1\tde\t_\tADP\t_\t_\t3\tcase\t_\t_\n"
        "2\tle\t_\tDET\t_\t_\t3\tdet\t_\t_\n"
        "2.1\tx\t_\tX\t_\t_\t_\t_\t_\t_\n"
        "3\t,\t_\tPUNCT\t_\t_\t0\troot\t_\t_\n"
    )
    (one,) = conllu.read(Source("x", io.BytesIO(block.encode())))
    rows = tokens_of([one]).rows
    assert [row[1] for row in rows] == ["du", ","]
    assert tasks.written(rows, ["du", ","]) == "du,"


AND = "and CCONJ 5 cc"
CLAUSES = ["Dogs NOUN 2 nsubj", "bark VERB 0 root", AND, "cats NOUN 5 nsubj", "sleep VERB 2 conj"]
LONG = [*CLAUSES, "here ADV 5 advmod"]
MIRROR = ["We PRON 2 nsubj", "go VERB 0 root", "now ADV 2 advmod", "or CCONJ 6 cc"]
MIRROR += ["you PRON 6 nsubj", "stay VERB 2 conj"]


def texts(make, *sentences, seed):
    return [(case.label, case.text) for case in make(sentences, Random(seed))]


def test_clauses_are_exchanged_in_pairs_of_mirrored_lengths():
    make = tasks.coordination_inversion
    assert texts(make, sentence(*LONG), seed=1) == []  # no sentence has a longer first clause
    found = {tuple(texts(make, sentence(*LONG), sentence(*MIRROR), seed=seed)) for seed in range(9)}
    assert found == {
        (("O", "Dogs bark and cats sleep here"), ("O", "We go now or you stay")),
        (("I", "Cats sleep here and dogs bark"), ("I", "You stay or we go now")),
    }


@pytest.mark.parametrize(
    ("place", "row"),
    [
        (0, "Dogs NOUN 2 obj"),  # one clause has no subject
        (3, "cats NOUN 5 obj"),
        (2, "and CCONJ 2 cc"),  # the conjunction is outside the second clause
        (4, "sleep VERB 2 advcl"),
    ],
)
def test_only_two_clauses_with_subjects_are_exchanged(place, row):
    words = [row if i == place else word for i, word in enumerate(CLAUSES)]
    assert texts(tasks.coordination_inversion, sentence(*words), sentence(*words), seed=1) == []


@pytest.mark.parametrize(("place", "mirror"), [(0, LONG), (3, MIRROR)])
def test_a_clause_that_begins_with_a_bracket_is_not_exchanged(place, mirror):
    """The bracket would leave its partner, and the word after it would keep its capital."""

    def found(word):
        words = [row.split() for row in CLAUSES]
        words.insert(place, [*word.split(), str(place + 1), "dep"])
        for row in words:  # heads after the new word move by one; it depends on the next word
            row[2] = str(int(row[2]) + (int(row[2]) > place))
        one = sentence(*map(" ".join, words))
        return texts(tasks.coordination_inversion, one, sentence(*mirror), seed=1)

    assert len(found("So ADV")) == 2
    assert found("( PUNCT") == []


def test_the_odd_one_is_of_the_same_kind_and_as_frequent():
    plural, singular = "Number=Plur", "Number=Sing"
    bank = [
        sentence("the DET 2 det", f"{noun} NOUN 3 nsubj {number}", "came VERB 0 root")
        for noun, number in [("cats", plural), ("dogs", plural), ("cat", singular)] * 4
    ]
    cases = list(tasks.odd_man_out(bank, Random(3)))
    assert {case.label for case in cases} == {"O", "C"}
    for case in cases:
        noun = case.sentence.forms[1]
        assert noun in ("cats", "dogs")  # no other singular could stand for `cat`
        other = {"cats": "dogs", "dogs": "cats"}[noun]
        shown = noun if case.label == "O" else other
        assert (case.text, case.target) == (f"the {shown} came", shown)


@pytest.mark.parametrize(
    ("line", "labels"),
    [
        ("(ROOT (S (NP (DT The) (NN dog)) (VP (VBD ran)) (. .)))", "NP VP ."),
        ("( (S (NP-SBJ-1 (NN dog)) (VP=2 (VBD ran)) (. .)))", "NP VP ."),
        ("(S (CC But) (NP (NN dog)) (VP (VBD ran)) (. .))", "CC NP VP ."),
        ("(ROOT (SBARQ (WHADVP (WRB Why)) (SQ (VBZ is) (NP (NN it))) (. ?)))", "WHADVP SQ ."),
        ("(TOP (SQ (VBD Did) (NP (PRP it)) (VP (VB run)) (. ?)))", "VBD NP VP ."),
        ("(ROOT (NP (NP (DT A) (NN day)) (PP (IN at) (NP (NN sea))) (. .)))", "NP PP ."),
        ("(ROOT (S (NP (NN a)) (VP (VB b)) (. .)) (S (VP (VB c)) (. .)))", "S S"),
        ("(S (VP (VB a))) (S (VP (VB b)))", ""),
        ("(S (NP (-NONE- *)) (VP (VB Go)) (-RRB- -RRB-))", "VP -RRB-"),
    ],
)
def test_top_labels(line, labels):
    assert tasks.top_labels(penn.from_text(line)) == labels.split()


def test_sequences_with_punctuation_inside_or_without_a_full_stop_are_left_out():
    def tree(*labels):
        marks = [f"({label} x)" if label in ",.:``" else f"({label} (X x))" for label in labels]
        return penn.from_text(f"(S {' '.join(marks)})")

    plain, quoted = tree("NP", "VP", "."), tree("``", "NP", "VP", ".")
    comma, open_, only = tree("PP", ",", "VP", "."), tree("NP", "VP"), tree("VP", ".", ".")
    others = [tree("NP", *["PP"] * n, "VP", ".") for n in range(1, 25)]
    found = [case.label for case in tasks.top_constituents([plain, quoted, comma, open_, only])]
    assert found == ["NP_VP_."]
    found = [case.label for case in tasks.top_constituents([plain] * 3 + others)]
    assert len({*found}) == 20
    assert (found[:3], found.count("OTHER")) == (["NP_VP_."] * 3, 25 - 19)
