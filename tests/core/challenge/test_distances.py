"""Which words are far from their heads: against the definition, loop by loop."""

import io

import pytest

from synmt_cli.core.challenge.phenomena import PHENOMENA, Condition, Finder
from synmt_cli.errors import UsageError
from synmt_cli.formats import conllu
from synmt_cli.io import reading

# "Look it quickly up , myself": ids 1 to 6; up depends on Look at a distance of 3.
ROWS = [
    ("Look", "VERB", "_", 0, "root"),
    ("it", "PRON", "Case=Acc", 1, "obj"),
    ("quickly", "ADV", "_", 1, "advmod"),
    ("up", "ADP", "_", 1, "compound:prt"),
    (",", "PUNCT", "_", 1, "punct"),
    ("myself", "PRON", "Case=Acc|Reflex=Yes", 1, "obl:npmod"),
]


def parsed(rows, extra=()):
    lines = [
        f"{i}\t{w}\t_\t{u}\t_\t{f}\t{h}\t{d}\t_\t_" for i, (w, u, f, h, d) in enumerate(rows, 1)
    ]
    for at, line in extra:
        lines.insert(at, line)
    text = "\n".join([*lines, "", ""]).encode()
    (sentence,) = conllu.read(reading.Source("x", io.BufferedReader(io.BytesIO(text))))
    return sentence


def found(sentence, *conditions, **limits):
    return list(Finder(conditions, **limits).matches(sentence))


def test_each_phenomenon_is_found_where_it_is():
    sentence = parsed(ROWS)
    assert found(sentence, *PHENOMENA["particle"]) == [("particle", 4, 1)]
    assert found(sentence, *PHENOMENA["reflexive"]) == [("reflexive", 6, 1)]
    assert found(sentence, *PHENOMENA["preposition-stranding"]) == []
    rows = [*ROWS[:3], ("up", "ADP", "_", 1, "obl"), *ROWS[4:]]
    stranded = found(parsed(rows), *PHENOMENA["preposition-stranding"])
    assert stranded == [("preposition-stranding", 4, 1)]


def test_a_stranded_preposition_follows_the_fronted_word_whose_case_it_is():
    """As treebanks label it: it is found in `What did they look at`, but not in `at what time`."""
    fronted = [
        ("What", "PRON", "_", 4, "obl"),
        ("did", "AUX", "_", 4, "aux"),
        ("they", "PRON", "_", 4, "nsubj"),
        ("look", "VERB", "_", 0, "root"),
        ("at", "ADP", "_", 1, "case"),
    ]
    conditions = PHENOMENA["preposition-stranding"]
    assert found(parsed(fronted), *conditions) == [("preposition-stranding", 5, 1)]
    before = [
        ("At", "ADP", "_", 3, "case"),
        ("what", "DET", "_", 3, "det"),
        ("time", "NOUN", "_", 0, "root"),
    ]
    assert found(parsed(before), *conditions) == []
    beside = [("two", "NUM", "_", 0, "root"), ("over", "ADP", "_", 1, "case")]
    assert found(parsed(beside), *conditions) == []


@pytest.mark.parametrize("least", range(1, 7))
@pytest.mark.parametrize("most", [None, 1, 3, 5])
def test_distances_are_those_of_a_loop_over_words(least, most):
    expected = [
        ("any", word, head)
        for word, (*_, head, _) in enumerate(ROWS, 1)
        if head and abs(word - head) >= least and (most is None or abs(word - head) <= most)
    ]
    assert found(parsed(ROWS), Condition("any"), least=least, most=most) == expected


def test_a_root_has_no_distance():
    rows = [("a", "X", "_", 3, "dep"), ("b", "X", "_", 3, "dep"), ("up", "X", "_", 0, "prt")]
    assert found(parsed(rows), *PHENOMENA["particle"]) == []


def test_ranges_and_empty_nodes_are_no_words():
    beside = [("up", "ADP", "_", 2, "prt"), ("look", "VERB", "_", 0, "root")]
    between = [
        (1, "1.1\tx\t_\t_\t_\t_\t_\t_\t_\t_"),
        (2, "1.2\tx\t_\t_\t_\t_\t_\t_\t_\t_"),
    ]
    assert found(parsed(beside, between), *PHENOMENA["particle"]) == []
    token = [(1, "2-3\tituickly\t_\t_\t_\t_\t_\t_\t_\t_")]
    assert found(parsed(ROWS, token), *PHENOMENA["particle"]) == [("particle", 4, 1)]


def test_all_columns_of_an_own_condition_have_to_meet():
    sentence = parsed(ROWS)
    assert found(sentence, Condition("own", upos="^PRON$", feats="Case=Acc")) == [("own", 6, 1)]
    assert found(sentence, Condition("own", upos="^PRON$", feats="Case=Nom")) == []
    assert found(sentence, Condition("own", deprel="^obl$")) == []
    assert found(sentence, Condition("own", deprel="obl|prt")) == [("own", 4, 1), ("own", 6, 1)]


def test_a_pattern_that_is_none_is_refused():
    with pytest.raises(UsageError, match=r"--deprel takes a regular expression, not '\('"):
        Condition("own", deprel="(")
