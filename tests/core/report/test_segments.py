"""The segments that a page shows, and the words that it marks."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from synmt_cli.core.pictures.curves import Curve
from synmt_cli.core.pictures.sentences import Arc, Column, Picture
from synmt_cli.core.report import page, segments
from synmt_cli.core.report.runs import RunFacts
from synmt_cli.core.report.segments import Texts, chosen, marked
from synmt_cli.errors import DataError, UsageError


def test_marks_keep_every_word_in_order():
    first = ["the", "old", "dog", "sees", "a", "cat"]
    other = ["the", "dog", "now", "sees", "the", "black", "cat"]
    marks = marked(first, other)
    assert " ".join(text for text, _ in marks).split() == other
    differing = [word for text, differs in marks if differs for word in text.split()]
    assert differing == ["now", "the", "black"]
    assert marked([], []) == []
    long = ["w"] * 1000
    assert sum(len(text.split()) for text, _ in marked(long, [*long, "x"])) == 1001


def test_marks_show_where_words_are_missing():
    first = ["the", "old", "dog", "sees", "a", "cat", "now"]
    missing = [
        ("the dog sees a cat now", ["the", None, "dog sees a cat now"]),
        ("dog sees a cat", [None, "dog sees a cat", None]),
        ("the dog sees the black cat", ["the", None, "dog sees", "the black", "cat", None]),
        ("", [None]),
    ]
    for other, expected in missing:
        assert [text or None for text, _ in marked(first, other.split())] == expected
        assert all(differs for text, differs in marked(first, other.split()) if not text)
    long = [f"w{i}" for i in range(800)]
    assert ("", True) not in marked(["x", *long], ["y", *long])  # both are cut at the same place


def test_segments_are_in_order_of_difference():
    texts = Texts(
        {"a": ["same here", "good words", "x"], "b": ["same here", "bad thing", "x"]},
        references=[["same here", "good words", "y"]],
    )
    found = list(segments.shown(texts))
    assert [one.number for one in found] == [2, 1, 3]
    assert found[0].outputs[0][2] == pytest.approx(100)
    assert found[0].difference == pytest.approx(100 - found[0].outputs[1][2])


def test_of_several_references_the_nearest_counts_and_the_first_is_shown():
    texts = Texts({"a": ["good words"]}, references=[["nothing like it"], ["good words"]])
    (found,) = segments.shown(texts)
    assert found.outputs[0][2] == pytest.approx(100)
    assert found.reference == "nothing like it"


def test_without_a_reference_outputs_are_compared_with_each_other():
    texts = Texts({"a": ["x", "x"], "b": ["x", "y"], "c": ["x", "y"]})
    assert [(one.number, one.difference) for one in segments.shown(texts)] == [(2, 50), (1, 0)]
    assert not list(segments.shown(Texts({"a": []})))


def test_of_many_segments_most_are_those_that_differ_most():
    differing = [i % 100 for i in range(10_000)]
    picked = chosen(differing, 300)
    assert len(set(picked)) == 300
    assert picked == chosen(differing, 300)
    for n in (30, 150, 300):  # any first part has the same mixture
        of_most = [i for i in picked[:n] if differing[i] >= 98]
        assert 2 * n // 3 <= len(of_most) < 0.72 * n
        assert min(differing[i] for i in picked[:n]) < 30
    assert sorted(chosen([3, 1, 2, 1])) == [0, 1, 2, 3]


def test_a_page_without_room_still_has_some_that_were_drawn(monkeypatch):
    """The outputs differ only in the first 60 lines, so drawn segments have equal outputs."""
    lines = [f"w{i}" for i in range(600)]
    other = [f"v{i}" if i < 60 else line for i, line in enumerate(lines)]
    monkeypatch.setattr(page, "LIMIT", len(page.page(page.Content("t")).encode()) + 10_000)
    text = page.page(page.Content("t", texts=Texts({"a": lines, "b": other})))
    numbers = [int(n) for n in re.findall(r'class="seg" data-i="([0-9]+)"', text)]
    assert 20 < len(numbers) < 90
    drawn = [n for n in numbers if n > 60]
    assert 0.25 * len(numbers) < len(drawn) < 0.4 * len(numbers)
    assert numbers == [*sorted(n for n in numbers if n <= 60), *sorted(drawn)]


@pytest.mark.parametrize(("n", "is_cut"), [(3999, False), (4000, False), (4001, True)])
def test_a_long_text_is_cut_and_says_so(n, is_cut):
    lines = ["x" * n]
    (found,) = segments.shown(Texts({"a": lines}, source=lines))
    assert found.source == "x" * min(n, 4000) + "…" * is_cut


def test_a_page_of_long_texts_has_room_for_trees():
    lines = ["<&>  wort " * 400] * 900
    chain = [Arc(word - 1, word, "x") for word in range(60)]
    picture = Picture("1", "a", [Column("a", "X")] * 60, chain)
    content = page.Content(
        "t", texts=Texts({"a": lines, "caf\udce9": lines}, source=lines), trees=[[picture]] * 900
    )
    text = page.page(content)
    assert 4_500_000 < len(text.encode()) < page.LIMIT
    n_segments, n_trees = text.count('class="seg"'), text.count('class="drawn"')
    assert 10 < n_trees < n_segments < 900
    assert f"Trees are drawn of the first {n_trees} segments." in text
    assert f"{n_segments} of 900 segments" in text
    assert page.page(replace(content, trees=())).count('class="seg"') > n_segments


def test_a_page_of_many_long_runs_is_below_its_limit_and_keeps_the_best():
    """21 runs have 12,000 validations each; the best value of the first run stands out alone."""
    facts = []
    for name in map(str, range(21)):
        values = [(float(i), math.sin(i * 0.7 + len(facts)) * 9 + i / 600) for i in range(12_000)]
        facts.append(RunFacts(name, Curve(name, {"bleu": values}, values), {}))
    facts[0].curve.metrics["bleu"][5000] = (5000.0, 1234.0)
    text = page.page(page.Content("t", facts))
    assert len(text.encode()) < 1_500_000
    assert "1200" in text  # a tick of the axis, which reaches the best


def test_a_page_whose_tables_alone_are_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(page, "LIMIT", 1000)
    with pytest.raises(UsageError, match=r"figures and tables have [0-9,]+ bytes, and a page at m"):
        page.page(page.Content("t"))


def test_other_lengths_are_refused_with_both_numbers():
    with pytest.raises(DataError, match="f: 1 line, but the scored test set has 2"):
        segments.refuse_other_lengths({"f": ["a"]}, 2, "the scored test set")
