"""Student's t distribution, with any positive degrees of freedom.

Its tail is half of the regularized incomplete beta function I_x(df / 2, 1 / 2) at
x = df / (df + t^2), which is computed as a continued fraction (Numerical Recipes, section 6.4).
"""

import math

STEPS = 10_000  # of the fraction; it ends after about sqrt(df)
EPSILON = 1e-15
TINY = 1e-300  # in place of 0 in a denominator (Lentz's method)
NORMAL_FROM = 1e7  # degrees of freedom, from which the normal distribution takes over


def two_sided_p(t: float, df: float) -> float:
    """The chance of a value at least as far from 0 as t. df may be infinite.

    >>> round(two_sided_p(2.776445, 4), 6), round(two_sided_p(1.959964, math.inf), 6)
    (0.05, 0.05)
    """
    if df >= NORMAL_FROM:
        return math.erfc(abs(t) / math.sqrt(2))
    return incomplete_beta(df / 2, 0.5, df / (df + t * t))


def quantile(confidence: float, df: float) -> float:
    """The t that is exceeded, on both sides, with the chance 1 - confidence.

    >>> round(quantile(0.95, 4), 6), round(quantile(0.95, math.inf), 6)
    (2.776445, 1.959964)
    """
    low, high = 0.0, 1.0
    while two_sided_p(high, df) > 1 - confidence:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        if two_sided_p(middle, df) > 1 - confidence:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized I_x(a, b), for positive a and b and x from 0 to 1."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # where the fraction would converge slowly
        return 1 - incomplete_beta(b, a, 1 - x)
    logs = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(logs + a * math.log(x) + b * math.log1p(-x))
    return front * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for step in (even, odd):
            d = 1 / _away_from_zero(1 + step * d)
            c = _away_from_zero(1 + step / c)
            value *= c * d
        if abs(c * d - 1) < EPSILON:
            break
    return value


def _away_from_zero(number: float) -> float:
    return number if abs(number) > TINY else TINY
