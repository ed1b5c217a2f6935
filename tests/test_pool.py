import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synmt_cli.errors import DataError, WorkerLost
from synmt_cli.pool import IN_FLIGHT, n_processes, ordered_map


def uneven(number):
    time.sleep(0.002 * (number % 3))
    return number * number


def picky(number):
    if number == 20:
        raise DataError("x.txt", 21, "no")
    return number


@settings(max_examples=5, deadline=None)
@given(st.lists(st.integers(), max_size=60), st.integers(1, 7))
def test_order_and_results_do_not_depend_on_the_processes(numbers, chunk):
    expected = [uneven(number) for number in numbers]
    assert list(ordered_map(uneven, numbers, 1)) == expected
    assert list(ordered_map(uneven, numbers, 2, chunk)) == expected


def test_a_function_need_not_be_picklable():
    offset = 3
    assert list(ordered_map(lambda x: x + offset, range(5), 2)) == [3, 4, 5, 6, 7]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_the_function_comes_after_the_results_before_it(jobs):
    seen = []
    with pytest.raises(DataError, match=r"x\.txt:21: no"):
        seen.extend(ordered_map(picky, range(100), jobs, chunk=8))
    assert seen == list(range(20))
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_the_input_comes_after_the_results_before_it(jobs):
    def items():
        yield from range(20)
        raise DataError("x.txt", 21, "no")

    seen = []
    with pytest.raises(DataError):
        seen.extend(ordered_map(uneven, items(), jobs, chunk=8))
    assert seen == [x * x for x in range(20)]


def test_a_bug_in_a_worker_names_its_place():
    with pytest.raises(ZeroDivisionError) as caught:
        list(ordered_map(lambda x: 1 // x, [1, 0], 2))
    assert "test_pool.py" in caught.value.__notes__[0]


@pytest.mark.parametrize("fatal", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_worker_is_an_error_and_never_a_short_result(fatal):
    def die(number):
        if number == 50:
            os.kill(os.getpid(), fatal)
        return number

    seen = []
    with pytest.raises(WorkerLost):
        seen.extend(ordered_map(die, range(200), 2, chunk=4))
    assert seen == list(range(len(seen)))
    assert len(seen) <= 50


def test_a_worker_killed_within_a_large_result_does_not_hang():
    def half(number):
        if number == 1:
            pid = os.getpid()
            threading.Timer(0.3, os.kill, (pid, signal.SIGSTOP)).start()
            subprocess.Popen(["sh", "-c", f"sleep 0.6; kill -9 {pid}"])
        return bytes(64 * 2**20) if number == 1 else None

    # The parent takes results in its own threads, so the kill may come after the message.
    before = time.monotonic()
    with contextlib.suppress(WorkerLost):
        list(ordered_map(half, range(4), 2, chunk=1))
    assert time.monotonic() - before < 10


def test_results_come_while_the_input_waits():
    gate = threading.Event()

    def items():
        yield 1
        yield 2
        assert gate.wait(10)
        yield 3

    results = ordered_map(uneven, items(), 2, chunk=16)
    assert [next(results), next(results)] == [1, 4]
    gate.set()
    assert list(results) == [9]


def test_the_input_is_read_no_further_than_the_bound():
    taken = 0

    def items():
        nonlocal taken
        for taken in range(10_000):  # noqa: UP028  (the test reads how far it came)
            yield taken

    results = ordered_map(uneven, items(), 2, chunk=4)
    next(results)
    time.sleep(0.3)
    assert taken <= (IN_FLIGHT * 2 + 2) * 4
    results.close()
    assert not multiprocessing.active_children()


def test_closing_ends_busy_workers():
    results = ordered_map(lambda x: time.sleep(60 * x), range(8), 2, chunk=1)
    next(results)
    before = time.monotonic()
    results.close()
    assert time.monotonic() - before < 2
    assert not multiprocessing.active_children()


def test_workers_end_when_the_parent_is_killed(tmp_path):
    program = textwrap.dedent("""
        import os, sys, time
        from synmt_cli.pool import ordered_map
        def items():
            while True:
                time.sleep(0.01)
                yield 1
        def pid(_):
            return os.getpid()
        for n, worker in enumerate(ordered_map(pid, items(), 2, chunk=1)):
            print(worker, flush=True)
    """)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        workers = {int(parent.stdout.readline()) for _ in range(20)}
        parent.kill()
        deadline = time.monotonic() + 5
        while any(map(alive, workers)) and time.monotonic() < deadline:
            time.sleep(0.05)
    assert not any(map(alive, workers))


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_zero_jobs_are_all_the_cores_that_may_be_used():
    assert n_processes(0) == len(os.sched_getaffinity(0))
    assert n_processes(3) == 3
