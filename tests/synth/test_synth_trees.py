"""Every tree of the synthetic grammar is a correct UD tree of its line of text."""

import re

import conllu
import pytest
from support.synth_trees import crossing, made

from synmt_cli.synth.pairs import pairs
from synmt_cli.synth.settings import SynthSettings

DEPRELS = {
    *("root", "nsubj", "obj", "iobj", "obl", "obl:arg", "obl:unmarked", "expl:pv"),
    *("aux", "cop", "case", "mark", "compound:prt", "punct", "advmod"),
    *("det", "det:poss", "nummod", "amod", "nmod", "nmod:poss"),
    *("acl:relcl", "ccomp", "advcl"),
}


@pytest.fixture(scope="module")
def samples():
    """Pairs of trees, shallow and deep."""
    return made(1500) + made(500, seed=2, min_depth=2, max_depth=4, mix=0.4)


@pytest.fixture(scope="module")
def trees(samples):
    return [tree for pair in samples for tree in pair]


def test_forms_and_spaces_make_the_text(trees):
    for tree in trees:
        text, covered = "", 0
        for row in tree.sentence.rows:
            first, _, last = row[0].partition("-")
            covered = int(last) if last else covered
            if last or int(first) > covered:
                text += row[1] + ("" if "SpaceAfter=No" in row[9] else " ")
        assert text == tree.text + " "


def test_lines_look_like_sentences(trees):
    for tree in trees:
        assert re.fullmatch(r"[A-ZÄÖÜ][\wäöüß]*(,? [\wäöüß]+)*[.?]", tree.text), tree.text


def test_rows_are_ud(trees):
    for tree in trees:
        assert {word.deprel for word in tree.words} <= DEPRELS
        for row in tree.sentence.words:
            feats = row[5].split("|")
            assert feats == sorted(feats, key=str.lower)
            assert row[4] == row[8] == "_"
        for word in tree.words:
            if word.upos == "PUNCT" or word.deprel in ("case", "mark", "aux", "cop"):
                assert not word.children, tree.text  # function words have no dependents


def test_trees_are_projective_but_for_stranded_prepositions(samples):
    for english, german in samples:
        assert not crossing(german), german.text
        stranded = {"case"} if "stranding" in english.phenomena else set()
        assert crossing(english) == stranded, english.text


def test_only_extraposed_clauses_cross_in_german():
    found = [crossing(german) for _, german in made(600, extrapose=True, min_depth=1)]
    assert all(deprels <= {"acl:relcl"} for deprels in found)
    assert sum(map(bool, found)) > 100


def test_another_library_reads_the_same(samples):
    made_pairs = list(pairs(SynthSettings(), 1, 300))
    blocks = conllu.parse(b"".join(pair.conllu("de") for pair in made_pairs).decode())
    assert len(blocks) == 300
    for block, (_, german), number in zip(blocks, samples, range(1, 301), strict=False):
        words = [token for token in block if isinstance(token["id"], int)]
        assert block.metadata["sent_id"] == str(number)
        assert [token["head"] for token in words] == german.sentence.heads
        assert [token["feats"] or {} for token in words] == [word.feats for word in german.words]
        assert block.to_tree().token["head"] == 0


def test_depth_is_the_nesting_of_relative_clauses(samples):
    def nesting(word):
        below = max(map(nesting, word.children), default=0)
        return below + (word.deprel == "acl:relcl")

    for pair in samples:
        for tree in pair:
            assert nesting(tree.root) == tree.depth, tree.text


def test_contractions_are_multiword_tokens(trees):
    forms = {}
    for tree in trees:
        for first, last, row in tree.sentence.ranges:
            parts = [tree.words[i - 1].form.lower() for i in range(first, last + 1)]
            forms.setdefault(row[1].lower(), set()).add(" ".join(parts))
    assert forms == {"im": {"in dem"}, "am": {"an dem"}, "vom": {"von dem"}}
