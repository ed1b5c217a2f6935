"""The learning rate of each update."""


def inverse_square_root(step: int, peak: float, warmup: int, initial: float = 1e-7) -> float:
    """Linear from `initial` to `peak` over `warmup` updates, then peak * sqrt(warmup / step).

    step: the update about to be made, from 1. A warmup of 0 counts as 1. Vaswani et al. (2017),
    eq. 3, with the peak given instead of derived from d_model, as in fairseq.

    >>> inverse_square_root(4000, 0.002, 1000)
    0.001
    """
    if step < warmup:
        return initial + (peak - initial) * step / warmup
    return peak * float(max(warmup, 1) / step) ** 0.5
