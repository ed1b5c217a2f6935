"""Stratified approximate randomization with loops, from the papers alone.

Clark, Dyer, Lavie and Smith (2011), section 4, extend the test of Riezler and Maxwell (2005) to
several optimizer runs: all runs of a system are one sample of its outputs, and an output may only
change sides with the output of the other system for the same segment and the same run (that is a
stratum). The score of a side is the metric on all its outputs together.
"""

import random


def stratified_p(score, baseline, system, n, seed):
    """The p-value (1 + #{|d*| >= |d|}) / (n + 1).

    baseline, system: the runs of each; a run is a list of its segments' statistics, tuples of
    numbers. score: a function of summed statistics.
    """
    dice = random.Random(seed)
    strata = [
        (ours, theirs)
        for run, other in zip(baseline, system, strict=True)
        for ours, theirs in zip(run, other, strict=True)
    ]

    def difference(pairs):
        left = [sum(column) for column in zip(*(one for one, _ in pairs), strict=True)]
        right = [sum(column) for column in zip(*(other for _, other in pairs), strict=True)]
        return abs(score(left) - score(right))

    observed, as_far = difference(strata), 0
    for _ in range(n):
        shuffled = [(b, a) if dice.random() < 0.5 else (a, b) for a, b in strata]
        as_far += difference(shuffled) >= observed - 1e-9
    return (1 + as_far) / (n + 1)
