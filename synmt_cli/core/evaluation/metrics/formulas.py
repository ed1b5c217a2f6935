"""Metrics as functions of summed sentence statistics, for many sums at once.

Each takes sums (m, k), a row for each set of sentences, and returns m scores. They repeat
sacreBLEU's own formulas on rows, so that a bootstrap costs one matrix product and one call.
"""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# The values of `--smooth`: sacreBLEU's methods (Chen and Cherry, 2014), each with its usual value.
SMOOTHING = {"exp": 0.0, "floor": 0.1, "add-k": 1.0, "none": 0.0}


def bleu(
    sums: Array,
    effective_order: bool = False,
    smooth: str = "exp",
    smooth_value: float | None = None,
) -> Array:
    """BLEU, 0 to 100, smoothed as sacreBLEU does.

    sums: (m, 2 + 2 * orders), the columns [hypothesis length, reference length, matches of each
    order, totals of each order]. effective_order: leave out orders that the hypothesis is too
    short for (sentences). smooth: a key of SMOOTHING; smooth_value: None for its usual one.
    """
    n_orders = (sums.shape[1] - 2) // 2
    hypothesis, reference = sums[:, 0], sums[:, 1]  # (m,)
    matches, totals = sums[:, 2 : 2 + n_orders], sums[:, 2 + n_orders :]  # (m, orders)
    any_match = matches.any(axis=1)  # (m,)
    value = SMOOTHING[smooth] if smooth_value is None else smooth_value
    if smooth == "add-k":
        added = np.array([0.0] + [value] * (n_orders - 1))
        matches, totals = matches + added, totals + added
    there = totals > 0  # (m, orders)
    unmatched = there & (matches == 0)
    if smooth == "exp":
        smoothed = np.where(unmatched, 0.5 ** np.cumsum(unmatched, axis=1), matches)
    else:
        smoothed = np.where(unmatched, value if smooth == "floor" else 0.0, matches)
    missing = 0.0 if effective_order else -np.inf
    precision = np.divide(100 * smoothed, totals, out=np.ones_like(totals), where=there)
    with np.errstate(divide="ignore"):  # unsmoothed: log 0 makes the score 0
        logs = np.where(there, np.log(precision), missing)
    order = there.sum(axis=1).clip(1) if effective_order else n_orders  # (m,)
    ratio = np.divide(reference, hypothesis, out=np.ones_like(reference), where=hypothesis > 0)
    penalty = np.exp(np.minimum(0, 1 - ratio))
    score = penalty * np.exp(logs.sum(axis=1) / order)
    return np.where(any_match, score, 0.0)


def chrf(sums: Array, beta: int, eps_smoothing: bool) -> Array:
    """chrF, 0 to 100. sums: (m, 3 * orders), [hypothesis, reference, matches] for each order.

    eps_smoothing: the mean of each order's F, as chrF++.py has it; else the F of mean
    precision and mean recall over the orders that both sides have.
    """
    hypothesis, reference, matches = (sums[:, i::3] for i in range(3))  # (m, orders)
    eps, factor = 1e-16, beta**2
    precision, recall = (
        np.divide(matches, total, out=np.full_like(total, eps), where=total > 0)
        for total in (hypothesis, reference)
    )
    if eps_smoothing:
        f_scores = _f_score(precision, recall, factor, eps)
        return np.asarray(100 * f_scores.mean(axis=1))
    both = (hypothesis > 0) & (reference > 0)
    orders = both.sum(axis=1).clip(1)  # (m,)
    mean_precision = np.where(both, precision, 0).sum(axis=1) / orders
    mean_recall = np.where(both, recall, 0).sum(axis=1) / orders
    return 100 * _f_score(mean_precision, mean_recall, factor, 0.0)


def _f_score(precision: Array, recall: Array, factor: int, otherwise: float) -> Array:
    below = factor * precision + recall
    above = (1 + factor) * precision * recall
    return np.divide(above, below, out=np.full_like(below, otherwise), where=below > 0)


def ter(sums: Array) -> Array:
    """TER in percent; lower is better. sums: (m, 2), [edits, mean reference length]."""
    edits, length = sums[:, 0], sums[:, 1]  # (m,)
    nothing_to_match = np.where(edits > 0, 1.0, 0.0)
    return 100 * np.divide(edits, length, out=nothing_to_match, where=length > 0)


def mean(sums: Array) -> Array:
    """The mean of a sentence score, 0 if there is none. sums: (m, 2), [total, sentences]."""
    total, n = sums[:, 0], sums[:, 1]  # (m,)
    return np.divide(total, n, out=np.zeros_like(total), where=n > 0)


def mean_of_corpus(sums: Array) -> float:
    """The mean of a whole test set. sums: (2,), [total, sentences]."""
    return float(mean(sums[None])[0])
