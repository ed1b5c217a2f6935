"""Balanced classes, words in one split only, the same by the same seed."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from support.small_runs import sentence

from synmt_cli.core.analysis.datasets import Dataset, TooFew, balanced, gather, trees
from synmt_cli.core.analysis.tasks import Case
from synmt_cli.errors import DataError, UsageError
from synmt_cli.formats.senteval import Example

ONE = sentence("a X 0 root")


def cases(counts, target=lambda label, i: ""):
    return [
        Case(label, ONE, target(label, i), f"{label}{i}")
        for label, n in counts.items()
        for i in range(n)
    ]


def sizes(examples):
    return Counter((example.split, example.label) for example in examples)


def test_classes_are_balanced_in_each_split():
    found = sizes(balanced(cases({"a": 100, "b": 130}), Random(1)))
    assert found == {(split, label): n for split, n in TENTHS for label in "ab"}


TENTHS = (("tr", 80), ("va", 10), ("te", 10))


def test_the_classes_that_keep_most_sentences_are_taken():
    """Classes a and b keep 2 * 90 sentences, all three classes 3 * 50 or 3 * 70."""
    assert {e.label for e in balanced(cases({"a": 100, "b": 90, "c": 50}), Random(1))} == {"a", "b"}
    found = balanced(cases({"a": 100, "b": 90, "c": 70}), Random(1))
    assert {e.label for e in found} == {"a", "b", "c"}


def test_a_sentence_is_there_once_and_a_target_in_one_split():
    found = balanced(cases({"a": 200, "b": 200}, lambda label, i: f"w{i % 40}"), Random(1))
    assert len({example.text for example in found}) == len(found)
    split_of = {}
    for example in found:
        word = int(example.text[1:]) % 40
        assert split_of.setdefault(word, example.split) == example.split
    assert set(split_of.values()) == {"tr", "va", "te"}
    assert all(sizes(found)[split, "a"] == sizes(found)[split, "b"] for split in ("tr", "va", "te"))


def test_a_frequent_target_is_for_training():
    mostly = balanced(cases({"a": 100, "b": 100}, lambda _, i: "is" if i < 60 else ""), Random(2))
    held_out = [example for example in mostly if example.split != "tr"]
    assert len(held_out) == 40
    assert all(int(example.text[1:]) >= 60 for example in held_out)


def test_the_seed_decides():
    given = cases({"a": 50, "b": 60})
    assert balanced(given, Random("1 x")) == balanced(given, Random("1 x"))
    assert balanced(given, Random("1 x")) != balanced(given, Random("2 x"))


@pytest.mark.parametrize("counts", [{}, {"a": 50}, {"a": 50, "b": 9}])
def test_too_few_is_said(counts):
    with pytest.raises(TooFew, match="needs two classes of 10 sentences"):
        balanced(cases(counts), Random(1))
    with pytest.raises(TooFew, match="too few different words"):
        balanced(cases({"a": 20, "b": 20}, lambda label, i: label), Random(1))


def examples(*rows):
    return [Example(*row.split()) for row in rows]


def test_a_dataset_is_something_to_learn():
    good = Dataset("x", examples("tr b s", "tr a s", "tr b s", "va b s", "te a s", "te b s"))
    assert (good.labels, good.majority, good.group) == (["a", "b"], 50.0, "other")
    for rows, problem in (
        (["tr a s", "tr b s", "va a s"], "no examples of split te"),
        (["tr a s", "va a s", "te a s"], "one label"),
        (["tr a s", "tr b s", "va c s", "te a s"], "label 'c' is not in split tr"),
    ):
        with pytest.raises(ValueError, match=problem):
            Dataset("x", examples(*rows))


def test_files_are_tasks_by_their_names(tmp_path):
    rows = b"tr\tPAST\tHe slept .\ntr\tPRES\tx\nva\tPAST\ty\nte\tPAST\textra\tz\n"
    for name in ("past_present.txt", "bigram_shift.txt", "mine.tsv"):
        (tmp_path / name).write_bytes(rows)
    paths = [str(tmp_path / name) for name in ("mine.tsv", "past_present.txt", "bigram_shift.txt")]
    found = gather(paths, "auto", [], 1).datasets
    assert [(one.task, one.group) for one in found] == [
        ("bigram-shift", "syntactic"),
        ("tense", "semantic"),
        ("mine", "other"),
    ]
    assert found[1].examples[3] == Example("te", "PAST", "z")
    with pytest.raises(UsageError, match=r"two data sets for mine: .*mine.tsv and .*mine.tsv"):
        gather([paths[0], paths[0]], "auto", [], 1)
    with pytest.raises(UsageError, match="--task tense is made of CoNLL-U, which is not in"):
        gather(paths, "auto", ["tense"], 1)


def test_trees_make_the_tasks_that_no_file_gives(tmp_path, example_folder):
    rows = b"tr\tPAST\tHe slept .\ntr\tPRES\tx\nva\tPAST\ty\nte\tPAST\tz\n"
    (tmp_path / "probe.tense.txt").write_bytes(rows)
    paths = [str(tmp_path / "probe.tense.txt"), str(example_folder / "train.en.conllu")]
    found = {one.task: one for one in gather(paths, "auto", [], 1).datasets}
    assert len(found) > 3
    assert len(found["tense"].examples) == 4  # those of the file
    with pytest.raises(UsageError, match=r"two data sets for tense: .*probe.tense.txt and <trees>"):
        gather(paths, "auto", ["tense"], 1)


def test_a_sentence_that_comes_again_is_not_taken_again(tmp_path, example_folder):
    """Otherwise it could be in training and in test."""
    path = str(example_folder / "train.en.conllu")
    once = gather([path], "auto", [], 1).datasets
    assert len(once) > 3
    assert gather([path, path], "auto", [], 1).datasets == once
    forms = [tuple(one.forms) for one in trees([path, path], "auto")]
    assert len({*forms}) == len(forms) == len(trees([path], "auto")) > 100
    lines = [*["(S (VP Run) (. .))\n"] * 20, *(f"(S (NP w{i}) (VP v) (. .))\n" for i in range(20))]
    (tmp_path / "brackets").write_text("".join(lines))
    with pytest.raises(UsageError, match=r"found NP_VP_\. 20, VP_\. 1$"):
        gather([str(tmp_path / "brackets")], "penn", ["top-constituents"], 1)


def test_a_changed_sentence_is_no_other_one(tmp_path):
    """Every noun fits both places: most changes give a sentence of the file, or the same text."""
    rows = "1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\t{0}\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_\n"
    rows += "3\tsees\t_\tVERB\t_\t_\t0\troot\t_\t_\n4\t{1}\t_\tNOUN\t_\t_\t3\tobj\t_\t_\n"
    rows += "5\tnow\t_\tADV\t_\t_\t3\tadvmod\t_\t_\n"
    nouns = [f"n{i}" for i in range(60)]
    pairs = [
        (a, b) for i, a in enumerate(nouns) for j, b in enumerate(nouns) if (i + 3 * j) % 5 < 3
    ]
    path = tmp_path / "closed.conllu"
    path.write_text("".join(f"{rows.format(*pair)}\n" for pair in pairs))
    [found] = gather([str(path)], "auto", ["odd-man-out"], 1).datasets
    texts = [example.text for example in found.examples]
    assert len({*texts}) == len(texts) > 20
    there = {f"the {a} sees {b} now" for a, b in pairs}
    assert {e.label for e in found.examples if e.text in there} == {"O"}
    assert {e.label for e in found.examples if e.text not in there} == {"C"}


def test_files_of_one_template_are_different_tasks(tmp_path):
    rows = b"tr\tPAST\tHe slept .\ntr\tPRES\tx\nva\tPAST\ty\nte\tPAST\textra\tz\n"
    paths = [tmp_path / f"probe.{task}.txt" for task in ("tense", "a", "b")]
    for path in paths:
        path.write_bytes(rows)
    found = gather([*map(str, paths)], "auto", [], 1).datasets
    assert [one.task for one in found] == ["tense", "probe.a", "probe.b"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("tr\tx", "2 columns"),
        ("dev\tx\ty", "split 'dev' is none of tr, va, te"),
        ("tr\t\ty", "label is empty"),
        ("tr\ta\ty\0", "NUL"),
    ],
)
def test_bad_lines_are_named(tmp_path, line, problem):
    (tmp_path / "x").write_bytes(f"tr\ta\tb\n{line}\n".encode())
    with pytest.raises(DataError, match=rf"x:2: .*{problem}"):
        gather([str(tmp_path / "x")], "senteval", [], 1)


def test_top_constituents_come_from_brackets(tmp_path):
    plain = "(ROOT (S (NP-SBJ (NN w{i})) (VP (VBD ran)) (. .)))\n"
    other = "( (S (VP (VB Run) (NP (NN w{i}))) (. .)))\n"
    lines = "".join(text.format(i=i) for i in range(30) for text in (plain, other, "()\n", plain))
    (tmp_path / "trees").write_text("\n" + lines)
    found = gather([str(tmp_path / "trees")], "auto", [], 1)
    (made,) = found.datasets
    assert (made.task, made.group, made.labels) == (
        "top-constituents",
        "syntactic",
        ["NP_VP_.", "VP_."],
    )
    assert sizes(made.examples) == {
        (split, label): n
        for split, n in (("tr", 24), ("va", 3), ("te", 3))
        for label in made.labels
    }
    texts = {one.text: one.label for one in made.examples}
    assert (texts["w3 ran ."], texts["Run w3 ."]) == ("NP_VP_.", "VP_.")
    with pytest.raises(UsageError, match="--task tense is made of CoNLL-U, which is not in"):
        gather([str(tmp_path / "trees")], "auto", ["tense"], 1)
