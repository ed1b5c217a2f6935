"""Noise from confusions: what was learned comes back, and trees stay trees."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from support.work import lines_run

from synmt_cli.core.trees.confusions import Confusions, Tree, _candidates
from synmt_cli.core.trees.heads import ROOT, children, depths, is_projective
from synmt_cli.core.trees.shapes import random_projective_tree, random_tree

# the dog barks at the cat in town: `town` depends on barks, but some parses attach it to cat
HEADS = [1, 2, ROOT, 5, 5, 2, 7, 2]
LABELS = ["det", "nsubj", "root", "case", "det", "obl", "case", "obl"]
UPOS = ["DET", "NOUN", "VERB", "ADP", "DET", "NOUN", "ADP", "NOUN"]
GOLD = Tree(HEADS, LABELS, UPOS)


def learned(n_right, n_wrong):
    """Confusions of a parser that attaches `town` to `cat`, as nmod, in n_wrong sentences."""
    confusions = Confusions()
    for i in range(n_right + n_wrong):
        wrong = i < n_wrong
        heads, labels = list(HEADS), list(LABELS)
        if wrong:
            heads[7], labels[7] = 5, "nmod"
        confusions.learn(GOLD, heads, labels)
    return confusions


def test_the_same_errors_come_back_as_often():
    confusions, draw = learned(60, 40), Random(1).random
    assert confusions.head_share == confusions.label_share == 40 / 800
    found = Counter()
    for _ in range(2000):
        heads = confusions.other_heads(GOLD, confusions.head_share, False, draw)
        labels = confusions.other_labels(GOLD, heads, (1 / 20, 1 / 20), draw)
        found[heads[7], labels[7]] += 1
        assert (heads[0], heads[6]) == (1, 7)  # no determiner or preposition was ever wrong
    # Both words labelled obl share their chance, 40 of 200; cat is the likeliest wrong head.
    assert 1 - found[2, "obl"] / 2000 == pytest.approx(0.2, abs=0.04)
    assert found[5, "nmod"] > 0.8 * (2000 - found[2, "obl"])
    assert set(found) >= {(5, "nmod"), (2, "obl")}


@pytest.mark.parametrize("share", [0.02, 0.05, 0.1])
def test_the_share_is_about_that_asked_for(share):
    confusions, draw = learned(60, 40), Random(2).random
    changed = other = 0
    for _ in range(2000):
        heads = confusions.other_heads(GOLD, share, False, draw)
        labels = confusions.other_labels(GOLD, heads, (share, share), draw)
        changed += sum(old != new for old, new in zip(HEADS, heads, strict=True))
        other += sum(old != new for old, new in zip(LABELS, labels, strict=True))
    assert changed / 16000 == pytest.approx(share, rel=0.15)
    assert other / 16000 == pytest.approx(share, rel=0.15)


@pytest.mark.parametrize("heads", [0.0, 0.02, 0.1])
def test_the_share_of_labels_is_met_where_labels_that_lose_their_head_are_confused_more(heads):
    """Averages over the words of the parse with the right head would give twice as many labels."""
    chance = {"case": (0.02, 0.01), "obl": (0.7, 0.6)}  # of a wrong head, and of a wrong label
    confusions, dice = Confusions(), Random(4)
    for _ in range(3000):
        predicted, labels = list(HEADS), list(LABELS)
        for word in (3, 5, 6, 7):
            of_head, of_label = chance[LABELS[word]]
            if dice.random() < of_head:
                predicted[word] = 4
            if dice.random() < of_label:
                labels[word] = "dep"
        confusions.learn(GOLD, predicted, labels)
    changed = 0
    for _ in range(4000):
        other = confusions.other_heads(GOLD, heads, False, dice.random)
        given = confusions.other_labels(GOLD, other, (heads, 0.05), dice.random)
        changed += sum(old != new for old, new in zip(LABELS, given, strict=True))
    assert changed / (4000 * len(LABELS)) == pytest.approx(0.05, rel=0.08)


@pytest.mark.parametrize("projective", [False, True])
def test_every_result_is_a_tree_with_one_root(projective):
    random = Random(3)
    confusions = Confusions()
    trees = []
    for _ in range(60):
        n = random.randrange(1, 12)
        labels, upos = ([random.choice(s) for _ in range(n)] for s in ("abc", "XYZ"))
        gold = random_projective_tree(n, random.random)
        trees.append(
            Tree(
                gold, ["root" if h == ROOT else x for h, x in zip(gold, labels, strict=True)], upos
            )
        )
        confusions.learn(trees[-1], random_tree(n, random.random), labels)
    for tree in trees * 5:
        heads = confusions.other_heads(tree, 0.7, projective, random.random)
        labels = confusions.other_labels(tree, heads, (0.7, 0.5), random.random)
        depths(heads)  # raises on a cycle
        assert heads.count(ROOT) == 1
        assert [i for i, x in enumerate(labels) if x == "root"] == [heads.index(ROOT)]
        assert is_projective(heads) or not projective


def test_a_root_error_exchanges_two_heads():
    confusions = Confusions()
    other = [1, ROOT, 1, 5, 5, 2, 7, 2]
    for _ in range(5):
        confusions.learn(GOLD, other, ["det", "root", "acl", *LABELS[3:]])
    assert (confusions.wrong_heads, confusions.wrong.total()) == (10, 5)
    draw = Random(4).random
    heads = confusions.other_heads(GOLD, confusions.head_share, True, draw)
    assert heads == other
    assert confusions.other_labels(GOLD, heads, (0.25, 0.25), draw)[1:3] == ["root", "acl"]


def test_the_kind_of_a_head():
    def kind(word, head):
        return GOLD.kind(int(GOLD.codes(word)[head]))

    assert kind(7, 5) == ("NOUN", -2, "beside")
    assert kind(6, 2) == ("VERB", -4, "over")
    assert kind(2, 7) == ("NOUN", 4, "below")
    assert kind(0, 3) == ("ADP", 3, "")
    for word in range(8):
        below = {word}
        for _ in HEADS:
            below |= {one for one, head in enumerate(HEADS) if head in below}
        below.remove(word)
        assert below == {one for one in range(8) if one != word and kind(word, one)[2] == "below"}


def test_every_root_that_keeps_a_tree_projective_can_be_drawn():
    draw = Random(5).random
    for n in (1, 2, 5, 9) * 20:
        heads = random_projective_tree(n, draw)
        old, possible = heads.index(ROOT), []
        for root in range(n):
            other = list(heads)
            other[old], other[root] = root, ROOT
            possible += [root] if root != old and is_projective(other) else []
        assert _candidates(heads, children(heads), old, True).tolist() == possible


def test_long_sentences_take_no_loop_over_their_words():
    n = 5_000
    chain = Tree([*range(ROOT, n - 1)], ["root", *["dep"] * (n - 1)], ["X"] * n)
    confusions = Confusions()
    confusions.learn(GOLD, [1, 2, ROOT, 5, 5, 2, 7, 5], ["dep"] * 8)
    confusions.wrong["dep"] = confusions.words["dep"] = 1
    found = []
    n_lines = lines_run(
        lambda: found.extend(confusions.other_heads(chain, 0.02, False, Random(6).random))
    )
    n_changed = sum(a != b for a, b in zip(found, chain.heads, strict=True))
    assert n_changed > 50
    assert n_lines < n * n_changed / 2  # some walk what is below a word; a loop takes 20 lines
