"""Several parsers against gold: what a unit is, and tests against loops over sentences."""

from __future__ import annotations

import io
import random
from functools import partial

import numpy as np
import pytest

from synmt_cli.core.evaluation.statistics.significance import (
    FORMULAS,
    SignificanceTest,
    bootstrap_counts,
)
from synmt_cli.core.evaluation.trees.attachment import Attachment
from synmt_cli.core.evaluation.trees.tree_comparison import ParserComparison, f1, units
from synmt_cli.formats import conllu
from synmt_cli.formats.reports.tree_comparison import ParserReport
from synmt_cli.io.reading import Source


def read(text, name="x"):
    return conllu.read(Source(name, io.BytesIO(text.encode())))


def chain(*forms):
    """Each word depends on the next one, the last is the root."""
    n = len(forms)
    rows = [
        f"{i}\t{form}\t_\tX\t_\t_\t{(i + 1) % (n + 1)}\t{'dep' if i < n else 'root'}\t_\t_"
        for i, form in enumerate(forms, 1)
    ]
    return "\n".join(rows) + "\n\n"


def test_a_unit_ends_where_gold_and_every_system_end_a_sentence():
    gold = chain("a") + chain("b", "c") + chain("d") + chain("e")
    first = chain("a", "b", "c") + chain("d") + chain("e")
    second = chain("a") + chain("b") + chain("c", "d") + chain("e")
    cut = [*units(read(gold), [read(first), read(second)], ["g", "1", "2"])]
    assert [[len(spans) for spans in unit] for unit in cut] == [[2, 2], [1, 1]]
    assert [sum(len(span.gold) for span in unit[0]) for unit in cut] == [3, 1]


@pytest.mark.parametrize("which", [0, 1])
def test_a_system_that_ends_early_or_late_is_named(which):
    for text in (chain("a"), chain("a") + chain("b") + chain("c")):
        systems = [chain("a") + chain("b")] * 2
        systems[which] = text
        with pytest.raises(conllu.DataError, match="the text goes on, but"):
            list(units(read(chain("a") + chain("b")), [*map(read, systems)], ["g", "1", "2"]))


def noisy(n, share, seed):
    """Sentences of six words, some with another head."""
    random_ = random.Random(seed)
    blocks = []
    for _ in range(n):
        block = chain(*"abcdef").split("\n")
        for i in range(4):
            if random_.random() < share:
                block[i] = block[i].replace(f"\t{i + 2}\tdep", "\t6\tdep")
        blocks.append("\n".join(block))
    return "".join(blocks)


@pytest.fixture(scope="module")
def comparison():
    systems = [noisy(40, share, seed) for seed, share in enumerate((0.2, 0.4, 0.2))]
    made = ParserComparison(3, ["uas", "las"], partial(Attachment, False, None))
    for unit in units(read(noisy(40, 0, 0)), [*map(read, systems)], "gabc"):
        made.add(unit)
    return made


def test_the_parts_add_up_and_p_is_that_of_a_loop(comparison):
    test = SignificanceTest("bs", "centred", 200, 7)
    first, second, third = comparison.compared("abc", test)
    uas = np.array([rows[0] for rows in comparison._rows], dtype=float)  # (3, 40, 3)
    for parser, rows in zip((first, second, third), uas, strict=True):
        assert rows.sum(axis=0).tolist() == [parser.scores["uas"].correct, 240, 240]
    (counts,) = bootstrap_counts(40, 200, 7)
    drawn = np.array([[f1((row @ one)[None])[0] for one in uas] for row in counts])  # (200, 3)
    delta = second.f1("uas") - first.f1("uas")
    d = drawn[:, 1] - drawn[:, 0]
    p = (1 + sum(abs(x - d.mean()) >= abs(delta) - 1e-9 for x in d)) / 201
    pair = second.tested["uas"]
    assert (pair.delta, pair.p) == pytest.approx((delta, p))
    assert first.tested == {}
    raw = [one.tested[name].p for name in ("uas", "las") for one in (second, third)]
    assert second.tested["uas"].corrected == pytest.approx(min(1, min(raw) * 4))


@pytest.mark.parametrize("name", FORMULAS)
def test_every_report_is_whole(comparison, name):
    test = SignificanceTest(name, next(iter(FORMULAS[name])), 50, 1)
    report = ParserReport("g", False, 40, comparison.compared("abc", test), None, test.formula, 50)
    scores, tests, _ = report.sections()
    assert [row[0].value for row in scores.rows][-2:] == ["MLAS", "BLEX"]
    assert len(tests.rows) == 4
    rows = [row for row in report.records() if "p_corrected" in row]
    assert [(row["parser"], row["metric"]) for row in rows] == [
        (parser, metric) for parser in "bc" for metric in ("uas", "las")
    ]
    assert all(row["p_corrected"] >= row["p"] for row in rows)
