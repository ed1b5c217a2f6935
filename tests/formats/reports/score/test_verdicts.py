"""Verdicts on comparisons, against the stars of the table."""

import pytest

from synmt_cli.formats.reports.score.systems import MetricInfo, PairedComparison, ScoredSystem
from synmt_cli.formats.reports.score.verdicts import (
    FEW_SEEDS,
    ONE_OF_TWO,
    ONE_OUTPUT,
    SEEDS_AS_THEY_ARE,
    UNREADABLE,
    sentences,
)

BLEU = MetricInfo("bleu", "BLEU", "", higher_is_better=True, digits=2)
TER = MetricInfo("ter", "TER", "", higher_is_better=False, digits=1)
UNDECIDED = (
    'undecided is not "equal": a difference smaller than what follows ± could not be significant '
    "here"
)


def compared(delta, p, half=1.0, definition="seeds", test="bs", **further):
    ci95 = delta - half, delta + half
    return PairedComparison(test, definition, 1000, 1, delta, ci95, p, **further)


def system(name, bleu=None, ter=None, n_seeds=3):
    paired = {"bleu": bleu, "ter": ter}
    return ScoredSystem(
        name,
        {"bleu": 20.0, "ter": 60.0},
        {metric: result for metric, result in paired.items() if result},
        files=[name] * n_seeds,
    )


FIRST = system("rel")


def test_better_is_lower_where_the_metric_says_so():
    both = system("dep", compared(2.0, 0.001), compared(-3.0, 0.02))
    assert sentences([BLEU, TER], [FIRST, both]) == ["dep: better by BLEU (+2.00) and TER (-3.0)"]
    mixed = system("dep", compared(-2.0, 0.001), compared(-3.0, 0.02))
    assert sentences([BLEU, TER], [FIRST, mixed]) == [
        "dep: better by TER (-3.0); worse by BLEU (-2.00)"
    ]


def test_what_has_no_star_is_undecided_within_half_of_its_interval():
    near = system("dep", compared(0.3, 0.4, half=0.5), compared(-3.0, 0.02, corrected=0.06))
    wide = system("gps", compared(0.9, 0.001, half=0.25), compared(0.1, 1.0, half=4.0))
    said = sentences([BLEU, TER], [FIRST, near, wide])
    assert said == [
        "dep: undecided by BLEU (+0.30 ± 0.50) and TER (-3.0 ± 1.0, but corrected p = 0.06)",
        "gps: better by BLEU (+0.90); undecided by TER (+0.1 ± 4.0)",
        UNDECIDED,
    ]
    *_, last = sentences([BLEU, TER], [FIRST, near, wide], n_corrected=4)
    assert last == f"{UNDECIDED}; as p is corrected for 4, some larger ones could not either"


def test_without_an_interval_there_is_no_limit():
    """One segment has none, for example: its samples are all the same."""
    one = system("dep", compared(4.4, 1.0, half=0.0))
    assert sentences([BLEU], [FIRST, one])[:2] == [
        "dep: undecided by BLEU (+4.40)",
        'undecided is not "equal"',
    ]


def test_a_test_that_contradicts_the_difference_decides_nothing():
    one = compared(2.0, 0.001, test="sign", definition="binomial", contradicts=True)
    verdict, *_ = sentences([BLEU], [FIRST, system("dep", one)])
    assert verdict == "dep: undecided by BLEU (+2.00 ± 1.00)"


@pytest.mark.parametrize("definition", ["koehn", "sacrebleu", "stratified"])
def test_intervals_that_do_not_go_with_p_are_no_limit(definition):
    one = system("dep", compared(0.1, 0.9, definition=definition))
    assert sentences([BLEU], [FIRST, one])[1] == 'undecided is not "equal"'


def test_the_same_output_is_said_to_be_the_same():
    same = system("copy", compared(0.0, 1.0, half=0.0))
    assert sentences([BLEU], [FIRST, same])[0] == (
        "copy: no difference in any sample; is it the same output?"
    )


@pytest.mark.parametrize(
    ("n_seeds", "further", "caveats"),
    [
        ((3, 3), {}, []),
        ((3, 3), {"definition": "matched"}, []),
        ((1, 1), {"definition": "centred"}, [ONE_OUTPUT]),
        ((1, 1), {"definition": "binomial", "test": "sign"}, [ONE_OUTPUT]),
        ((3, 1), {"definition": "equal-variance"}, [ONE_OF_TWO]),
        ((3, 3), {"definition": "stratified", "test": "ar"}, [SEEDS_AS_THEY_ARE]),
        ((2, 2), {}, [FEW_SEEDS]),
        ((1, 2), {"definition": "equal-variance"}, [ONE_OF_TWO, FEW_SEEDS]),
    ],
)
def test_what_limits_the_answer(n_seeds, further, caveats):
    first, second = n_seeds
    systems = [
        system("rel", n_seeds=first),
        system("dep", compared(2.0, 0.001, **further), n_seeds=second),
    ]
    assert sentences([BLEU], systems) == ["dep: better by BLEU (+2.00)", *caveats]


@pytest.mark.parametrize(
    ("first", "second", "caveats"), [(1.99, 0.1, [UNREADABLE]), (0.1, 2.0, []), (2.0, 0.1, [])]
)
def test_models_that_do_not_translate_decide_nothing(first, second, caveats):
    systems = [system("rel"), system("dep", compared(1.0, 0.001))]
    for one, bleu in zip(systems, (first, second), strict=True):
        one.scores["bleu"] = bleu
    assert sentences([BLEU], systems)[1:] == caveats


def test_without_a_test_nothing_is_said():
    assert sentences([BLEU, TER], [FIRST]) == []
    assert sentences([BLEU], [FIRST, system("dep")]) == []
