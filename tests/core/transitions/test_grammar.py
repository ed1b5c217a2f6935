"""The moves of a vocabulary, and the features of a tree that a decoder may know."""

from __future__ import annotations

from dataclasses import replace

import pytest

from synmt_cli.core.data.targets import Targets
from synmt_cli.core.text.vocabulary import EOS, Vocabulary
from synmt_cli.core.text.vocabulary_training import VocabularySettings, train
from synmt_cli.core.transitions.grammar import OTHER, Grammar, move_of, refuse_missing
from synmt_cli.core.trees.arc_standard import NEVER, Move
from synmt_cli.errors import ConfigError, DataError
from synmt_cli.formats.record import Record

ARCS = ("LEFT-ARC:det", "RIGHT-ARC:det", "LEFT-ARC:nsubj", "RIGHT-ARC:obj")
SPLIT = ("LEFT-ARC", "RIGHT-ARC", "ARC:det", "ARC:obj")
TEXT = ["Der Hund schläft .", "ein Hund", "das schläft"] * 9
PLACE = ("f.jsonl", 7)


def vocabulary(*symbols):
    return Vocabulary(train(TEXT, VocabularySettings(40, symbols=symbols)), "v.model")


def test_what_each_token_does():
    one = vocabulary(*ARCS, "<+>", "<TR>")
    grammar = Grammar.of(one)
    for id, token in one.generated():
        expected = OTHER if token == "<TR>" else move_of(token)
        assert grammar.moves[id] == expected, token
        assert bool(grammar.labels[id]) == token.startswith(("LEFT", "RIGHT"))
    assert grammar.moves[:EOS].tolist() == [OTHER] * 3
    assert grammar.moves[EOS] == Move.FINISH
    assert (grammar.names, grammar.split) == (("det", "nsubj", "obj"), False)
    left, right = one.ids(["LEFT-ARC:det", "RIGHT-ARC:det"])
    assert grammar.labels[left] == grammar.labels[right] == 1
    assert [move_of(t) for t in ("▁", "▁Hund", "und", "<+>")] == [
        *(Move.SPACE, Move.BEGIN, Move.CONTINUE, Move.GLUE),
    ]


def test_direction_and_label_apart():
    grammar = Grammar.of(vocabulary(*SPLIT))
    assert grammar.split
    found = grammar.features(["▁a", "▁b", "LEFT-ARC", "ARC:obj"])
    assert found["arc"] == [NEVER, 4, NEVER, NEVER, 4]
    assert found["arc_label"] == [0, 2, 0, 0, 2]


def test_features_of_a_target_count_from_the_beginning_of_sentence():
    # <s> ▁Der ▁H und LEFT-ARC:det ▁schläft LEFT-ARC:nsubj
    found = Grammar.of(vocabulary(*ARCS)).features(
        ["▁Der", "▁H", "und", "LEFT-ARC:det", "▁schläft", "LEFT-ARC:nsubj"]
    )
    assert found["arc"] == [NEVER, 4, 6, 6, 4, NEVER, 6]
    heads = list(zip(found["head_begin"], found["head_end"], strict=True))
    assert [heads[i] for i in (1, 2, 3, 4, 6)] == [(2, 4), (5, 6), (5, 6), (2, 4), (5, 6)]
    assert found["arc_label"] == [0, 1, 2, 2, 1, 0, 2]


@pytest.mark.parametrize(
    ("symbols", "problem"),
    [
        ((), "v.model has no transitions; synmt linearize --format symbols writes"),
        (("<TR>", "<+>"), "has no transitions"),
        ((*ARCS, "ARC:det"), "arcs as one token and as two"),
        (("LEFT-ARC:",), "symbol 'LEFT-ARC:': a label is missing"),
    ],
)
def test_vocabularies_that_cannot_write_trees_are_refused(symbols, problem):
    with pytest.raises(ConfigError, match=problem):
        Grammar.of(vocabulary(*symbols))


def test_targets_are_pieces_or_transitions():
    one = vocabulary(*ARCS)
    record = Record("1", "x", tgt_pieces=["▁ein"], transitions=["▁ein", "▁das", "RIGHT-ARC:obj"])
    plain, trees = Targets(one), Targets(one, Grammar.of(one), ("arc",))
    assert plain.target(plain.tokens(record, PLACE), PLACE) == (one.ids(["▁ein"]), {})
    tokens = trees.tokens(record, PLACE)
    assert trees.n_pieces(record, tokens) == 1  # as for the model without trees
    assert trees.n_pieces(replace(record, tgt_pieces=None), tokens) == 2
    assert trees.target(tokens, PLACE).features == {"arc": [NEVER, NEVER, 3, 3]}


@pytest.mark.parametrize(
    ("tokens", "problem"),
    [
        (["▁ein", "RIGHT-ARC:obj"], "f.jsonl:7: transitions: token 2: the arc 'obj' finds fewer"),
        (["▁ein", "▁das"], "f.jsonl:7: transitions: 2 words are left without a head"),
        (["LEFT-ARC:det"], "f.jsonl:7: transitions: token 1: the arc 'det' finds fewer"),
        (["▁ein", "▁das", "RIGHT-ARC:nmod"], "f.jsonl:7: v.model has no symbol 'RIGHT-ARC:nmod'"),
        (["▁ein", "<+>", "das"], "f.jsonl:7: v.model has no symbol '<\\+>'"),
    ],
)
def test_transitions_that_build_nothing_are_refused(tokens, problem):
    one = vocabulary(*ARCS)
    with pytest.raises((DataError, ConfigError), match=problem):
        Targets(one, Grammar.of(one)).target(tokens, PLACE)


def test_records_without_targets_say_how_to_make_them():
    one = vocabulary(*ARCS)
    with pytest.raises(DataError, match=r"no transitions; make records .* --tgt-conllu FILE"):
        Targets(one, Grammar.of(one)).tokens(Record("1", "x"), PLACE)
    with pytest.raises(DataError, match=r"no tgt_pieces; make records .* --tgt FILE"):
        Targets(one).tokens(Record("1", "x"), PLACE)


def test_only_transitions_are_asked_for():
    refuse_missing(vocabulary(), ["▁ein", "das", "⊕"])
