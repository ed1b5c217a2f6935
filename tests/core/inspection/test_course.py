"""The course of a run by its validations: curve, spread, trend and doubts."""

import json
import random
import statistics

import pytest

from synmt_cli.core.inspection.course import (
    Point,
    apart,
    curve,
    described,
    doubt_of_best,
    point,
    spread,
    still_improves,
    trend,
)


def run(values, perplexities=None):
    perplexities = perplexities or [100 / (1 + i) for i in range(len(values))]
    both = zip(values, perplexities, strict=True)
    return [Point(1000 * i, value, perplexity) for i, (value, perplexity) in enumerate(both, 1)]


def test_a_curve_goes_from_the_lowest_to_the_highest():
    assert curve([5.0] * 3) == "▁▁▁"
    assert curve(range(8)) == "▁▂▃▄▅▆▇█"
    assert len(curve(range(1000))) == 40
    assert curve(range(1000)) == "".join(sorted(curve(range(1000))))


def test_the_spread_is_the_noise_of_one_validation_and_not_the_slope():
    noise = random.Random(1)
    values = [0.05 * i + noise.gauss(0, 0.4) for i in range(4000)]
    assert spread(values) == pytest.approx(0.4, rel=0.05)
    assert spread([float(i) for i in range(10)]) == pytest.approx(0)
    assert statistics.stdev(values) > 10  # a plain deviation includes the slope


@pytest.mark.parametrize(
    ("perplexities", "verdict"),
    [
        ([9, 8, 7, 6, 5, 4], "still improves: perplexity was lowest at step 6,000, 4.00"),
        ([9, 8, 5, 6, 6, 7], "overfits: perplexity was lowest at step 3,000, 5.00, and is 7.00"),
        ([9, 8, 5, 5.1, 5.05, 5.1], "has stagnated for 3 validations: perplexity was lowest"),
        ([9, 8, 5, 6, 7], "overfits: perplexity was lowest at step 3,000, 5.00, and is 7.00 now"),
        ([9, 8, 5, 5.1, 5.05], "still improves"),
    ],
)
def test_the_trend_goes_by_perplexity(perplexities, verdict):
    points = run([0.0] * len(perplexities), perplexities)
    assert trend(points).startswith(verdict)
    improves = still_improves([(point.step, point.perplexity) for point in points])
    assert improves == verdict.startswith("still improves")


def test_checkpoints_between_which_perplexity_falls_by_a_quarter_are_apart():
    points = run([0.0] * 4, [100.0, 9.0, 4.0, 3.0])  # at steps 1,000 to 4,000
    fell = "perplexity on dev fell from {} to {} between these checkpoints"
    assert apart(points, 3000, 4000) == fell.format("4.00", "3.00")
    assert apart(points, 3001, 4000) == ""
    assert apart(points, 2500, 3000) == fell.format("6.00", "4.00")  # the root of 9 times 4
    assert apart(points, 2000, 9000) == fell.format("9.00", "3.00")
    assert apart(points, 999, 4000) == apart([], 1, 2) == ""  # nothing is known of step 999
    assert apart(run([0.0] * 2, [3.0, 4.0]), 1000, 2000) == ""
    assert apart(run([0.0] * 2, [-3.0, 0.0]), 1000, 1500) == ""  # which no training writes


def test_the_best_is_doubted_where_others_are_as_good_or_perplexity_disagrees():
    assert doubt_of_best(run([1, 5, 9, 13, 17, 21])) == ""
    level = doubt_of_best(run([1, 20, 20.5, 20.9, 20, 20.8]))
    assert level.startswith("may be luck: a validation spreads by 0.62, and 4 others are within")
    apart = doubt_of_best(run([1, 5, 30, 13, 14, 15, 16], [9, 8, 7, 6, 5, 4, 3]))
    assert "perplexity is 7.00 there and 3.00 at step 7,000" in apart
    assert doubt_of_best(run([1, 2])) == "of few validations"


def test_only_validations_are_read_and_one_is_no_course():
    event = {"event": "dev", "step": 7, "value": 1, "perplexity": 2.5}
    assert point(event) == Point(7, 1.0, 2.5)
    for other in ({"event": "train"}, {"value": None}, {"perplexity": "2"}):
        assert point(event | other) is None
    assert described([Point(7, 1.0, 2.5)], "bleu") == {}
    facts = described(run([1, 2, 3, 4, 5]), "loss")
    assert json.dumps(facts)
    assert set(facts) == {"validations", "perplexity", "trend"}
