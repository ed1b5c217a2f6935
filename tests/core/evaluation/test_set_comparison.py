"""The sign test over (test set, metric) pairs, on the tables of Choshen and Abend (2021)."""

from dataclasses import replace

import pytest

from synmt_cli.core.evaluation.metrics import registry
from synmt_cli.core.evaluation.set_comparison import compare
from synmt_cli.errors import DataError, UsageError
from synmt_cli.formats.reports.score.sets import LOWER_IS_BETTER, SetScores

# Tables 7a, 7b, 8a, 8b: BLEU and chrF+ of each challenge set in turn.
TABLES = {
    "vanilla": "7.15 27.66 17.79 44.91 6.83 26.84 19.68 45.06"
    " 5.95 25.88 9.96 36.96 5.37 24.69 9.39 39.19 5.32 24.71 16.48 42.04"
    " 6.38 27.30 9.18 38.22 6.53 25.70 10.54 38.28 6.15 25.94 17.2 43.12"
    " 5.4 25.84 16.24 43.22 5.12 24.94 16.47 42.71",
    "bitran": "7.02 27.60 18.58 45.09 6.8 26.90 19.87 45.89"
    " 5.3 26.38 10.56 38.05 6.07 26.08 10.21 39.48 5.77 26.01 13.91 37.74"
    " 6.75 27.44 8.92 37.76 6.29 25.69 10.77 39.15 6.24 25.93 17.22 43.96"
    " 5.81 26.79 15.84 43.25 5.43 25.88 16.33 42.44",
    "gcn": "7.32 27.67 20.13 46.77 7.11 27.16 20.68 47.15"
    " 6.21 27.27 11.31 40.48 5.51 25.53 10.35 39.83 5.46 25.70 16.45 43.03"
    " 6.33 26.60 10.14 41.00 6.69 26.16 10.6 39.81 6.33 25.83 20.16 44.19"
    " 5.6 26.74 15.57 43.23 5.34 25.91 16.44 43.52",
}


def test_one_direction_holds_for_all_sets():
    first, *_, last = sets("vanilla", "gcn")
    last = replace(last, lower=frozenset({"bleu"}))
    with pytest.raises(DataError, match="'bleu' is better in the other direction in the first"):
        compare([first, last])


def sets(*systems):
    rows = [[float(figure) for figure in TABLES[name].split()] for name in systems]
    return [
        SetScores(
            f"set{i}",
            [
                (name, {"bleu": row[i], "chrf+": row[i + 1]})
                for name, row in zip(systems, rows, strict=True)
            ],
        )
        for i in range(0, 40, 2)
    ]


@pytest.mark.parametrize(
    ("systems", "wins", "p"), [(("vanilla", "bitran"), 26, 0.081), (("bitran", "gcn"), 27, 0.038)]
)
def test_the_papers_tables(systems, wins, p):
    """The paper's text says 26 of 40 too; but its p < 0.01 holds for neither pair of systems."""
    (compared,) = compare(sets(*systems)).systems
    assert list(compared.counts.values()) == [wins, 40 - wins, 0]
    assert compared.p == pytest.approx(p, abs=0.0005)


def scored(source="x", **systems):
    return SetScores(source, list(systems.items()))


def test_ties_are_dropped_and_lower_ter_wins():
    one = scored(a={"bleu": 1.0, "ter": 50.0}, b={"bleu": 1.0, "ter": 40.0})
    other = scored(a={"bleu": 2.0, "ter": 50.0}, b={"bleu": 3.0, "ter": 60.0})
    (compared,) = compare([one, other]).systems
    assert [pair.better for pair in compared.pairs] == [0, 1, 1, -1]
    assert compared.p == 1.0


def test_a_system_against_itself_has_no_pair_left():
    same = scored(a={"bleu": 1.0}, b={"bleu": 1.0})
    (compared,) = compare([same] * 9).systems
    assert (compared.counts["ties"], compared.p) == (9, 1.0)


def test_which_metrics_are_lower_is_known_here_too():
    built = registry.build(list(registry.METRICS), [["a b c d"]])
    assert {one.name for one in built if not one.higher_is_better} == LOWER_IS_BETTER


def test_a_report_says_which_metrics_are_lower():
    scores = {"a": {"mine": 1.0}, "b": {"mine": 2.0}}
    higher, lower = (
        SetScores("x", list(scores.items()), frozenset(names)) for names in ((), ("mine",))
    )
    assert [compare([one]).systems[0].pairs[0].better for one in (higher, lower)] == [1, -1]


@pytest.mark.parametrize(
    ("other", "names", "problem"),
    [
        (scored(a={"bleu": 1.0}), None, "1 systems, but 2 in the first file"),
        (scored(a={"bleu": 1.0}, b={}), None, "system 'b' has no score of 'bleu'"),
        (scored(a={"bleu": 1.0, "ter": 1.0}, b={"bleu": 1.0}), None, "name the metrics"),
        (scored(a={"bleu": 1.0}, b={"bleu": 1.0}), ["ter"], "has no score of 'ter'"),
        (scored(b={"bleu": 1.0}, c={"bleu": 1.0}), None, "system 'b' is in another place than in"),
    ],
)
def test_sets_that_do_not_match_are_refused(other, names, problem):
    first = scored(a={"bleu": 1.0}, b={"bleu": 2.0})
    with pytest.raises(DataError, match=problem):
        compare([first, other], names)


def test_one_system_is_compared_with_nothing():
    with pytest.raises(UsageError, match="two or more"):
        compare([scored(a={"bleu": 1.0})])
