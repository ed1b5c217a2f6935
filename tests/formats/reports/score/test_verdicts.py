"""What is said of comparisons, against the stars of the table."""

import pytest

from synmt_cli.formats.reports.score.systems import MetricInfo, PairedComparison, ScoredSystem
from synmt_cli.formats.reports.score.verdicts import sentences

BLEU = MetricInfo("bleu", "BLEU", "", higher_is_better=True, digits=2)
TER = MetricInfo("ter", "TER", "", higher_is_better=False, digits=1)
FIRST = ScoredSystem("rel", {"bleu": 20.0, "ter": 60.0})


def compared(delta, p, half=1.0, **further):
    facts = {"definition": "seeds", **further}
    test = facts.pop("test", "bs")
    ci95 = delta - half, delta + half
    return PairedComparison(test, facts.pop("definition"), 1000, 1, delta, ci95, p, **facts)


def system(name, bleu, ter):
    return ScoredSystem(name, {"bleu": 20.0, "ter": 60.0}, {"bleu": bleu, "ter": ter})


def test_better_is_lower_where_the_metric_says_so():
    both = system("dep", compared(2.0, 0.001), compared(-3.0, 0.02))
    assert sentences([BLEU, TER], [FIRST, both]) == [
        "dep: better than rel by BLEU (+2.00) and TER (-3.0)"
    ]
    mixed = system("dep", compared(-2.0, 0.001), compared(-3.0, 0.02))
    assert sentences([BLEU, TER], [FIRST, mixed]) == [
        "dep: better than rel by TER (-3.0); worse than rel by BLEU (-2.00)"
    ]


def test_what_has_no_star_is_undecided_with_the_difference_that_would_be_needed():
    near = system("dep", compared(0.3, 0.4, half=0.5), compared(-3.0, 0.02, corrected=0.06))
    wide = system("gps", compared(0.9, 0.1, half=1.25), compared(0.0, 1.0, half=4.0))
    assert sentences([BLEU, TER], [FIRST, near, wide]) == [
        "dep: undecided by BLEU (+0.30) and TER (-3.0)",
        "gps: undecided by BLEU (+0.90) and TER (+0.0)",
        'undecided is not "equal": to be significant here, a difference has to be at least about '
        "0.50 to 1.25 BLEU or 1.0 to 4.0 TER",
    ]


def test_a_test_that_contradicts_the_difference_decides_nothing():
    one = compared(2.0, 0.001, test="sign", definition="binomial", contradicts=True)
    assert sentences([BLEU], [FIRST, ScoredSystem("dep", {"bleu": 22.0}, {"bleu": one})]) == [
        "dep: undecided by BLEU (+2.00)"
    ]


@pytest.mark.parametrize("definition", ["koehn", "sacrebleu", "stratified"])
def test_intervals_that_do_not_go_with_p_give_no_least_difference(definition):
    one = ScoredSystem("dep", {"bleu": 20.1}, {"bleu": compared(0.1, 0.9, definition=definition)})
    assert sentences([BLEU], [FIRST, one]) == ["dep: undecided by BLEU (+0.10)"]


def test_the_same_outputs_say_nothing_of_differences():
    same = ScoredSystem("copy", {"bleu": 20.0}, {"bleu": compared(0.0, 1.0, half=0.0)})
    assert sentences([BLEU], [FIRST, same]) == ["copy: undecided by BLEU (+0.00)"]
    other = ScoredSystem("dep", {"bleu": 20.1}, {"bleu": compared(0.1, 0.8, half=0.6)})
    assert sentences([BLEU], [FIRST, same, other])[2].endswith(" at least about 0.60 BLEU")


def test_without_a_test_nothing_is_said():
    assert sentences([BLEU, TER], [FIRST]) == []
    assert sentences([BLEU], [FIRST, ScoredSystem("dep", {"bleu": 21.0})]) == []
