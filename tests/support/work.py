"""How much work a function does: for tests of what must not take long, on any machine."""

import gc
import sys
import time

STEP = 8  # the larger of two inputs is this many times the smaller
# A linear function takes 8 times as long, a quadratic one 64 times. This is the geometric mean.
BETWEEN = STEP**1.5


def takes_linear_time(work, make, n, rounds=5):
    """Whether work(make(n)) takes about 8 times as long as work(make(n // 8)), not 64 times.

    The shortest CPU time of each counts. If the ratio is too large, both are measured again, since
    another process may have slowed one of them down.
    """
    inputs = make(n // STEP), make(n)
    work(inputs[0])  # what only a first call does is not measured
    least = [float("inf")] * 2
    for _ in range(rounds):
        for i, one in enumerate(inputs):
            least[i] = min(least[i], _seconds(work, one))
        if least[1] < BETWEEN * least[0]:
            return True
    return False


def _seconds(work, given):
    gc.disable()  # a collection takes longer the more objects earlier tests left
    try:
        start = time.process_time()
        work(given)
        return time.process_time() - start
    finally:
        gc.enable()


def lines_run(work):
    """How many lines of Python work() runs, each as often as it is run."""
    n_lines = 0

    def count(frame, event, argument):
        nonlocal n_lines
        n_lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        work()
    finally:
        sys.settrace(before)
    return n_lines
