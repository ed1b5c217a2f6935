import contextlib
import multiprocessing
import multiprocessing.connection
import os
import re
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
from synmt_cli.pool import (
    IN_FLIGHT,
    Care,
    Local,
    Recipe,
    ahead,
    executing,
    mapped,
    n_processes,
    ordered_map,
)
from synmt_cli.pool.dispatch import Dispatcher, Lost


def uneven(number):
    time.sleep(0.002 * (number % 3))
    return number * number


def picky(number):
    if number == 20:
        raise DataError("x.txt", 21, "no")
    return number


@settings(max_examples=5)
@given(st.lists(st.integers(), max_size=60), st.integers(1, 7))
def test_order_and_results_do_not_depend_on_the_processes(numbers, chunk):
    expected = [uneven(number) for number in numbers]
    assert list(ordered_map(uneven, numbers, 1)) == expected
    assert list(ordered_map(uneven, numbers, 2, chunk)) == expected


def test_a_thread_reads_ahead_as_far_as_it_may_and_no_farther():
    taken, enough = [], threading.Event()

    def items():
        for n in range(9):
            taken.append(n)
            if n == 4:
                enough.set()
            yield n

    results = ahead(items(), 3)
    assert next(results) == 0
    assert enough.wait(10)  # one was yielded, three wait, the next is at hand
    assert taken == [0, 1, 2, 3, 4]
    assert list(results) == list(range(1, 9))


def test_an_error_of_input_read_ahead_comes_after_the_items_before_it():
    seen = []
    with pytest.raises(DataError, match=r"x\.txt:21: no"):
        seen.extend(ahead(map(picky, range(100)), 50))
    assert seen == list(range(20))


def test_whoever_takes_what_is_read_ahead_hears_how_long_it_was_not_there():
    def items():
        yield 0
        time.sleep(0.2)
        yield 1

    waits = []
    assert list(ahead(items(), 3, waits.append)) == [0, 1]
    assert len(waits) == 3  # the last one for the end
    assert waits[1] > 0.1


def test_a_thread_that_reads_ahead_ends_with_the_generator():
    before = threading.active_count()
    results = ahead(iter(range(1000)), 3)
    assert next(results) == 0
    results.close()
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before


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


def dies_at(number, fatal=signal.SIGKILL, times=99, folder=None):
    """A function that kills its process at `number`, up to `times` times, counted in `folder`."""

    def die(one):
        if one == number:
            for n in range(times):
                with contextlib.suppress(FileExistsError):
                    if folder is not None:
                        (folder / str(n)).touch(exist_ok=False)
                    os.kill(os.getpid(), fatal)
                    time.sleep(10)
        return one

    return die


@pytest.mark.parametrize("fatal", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("jobs", [2, 3, 5])
def test_what_kills_every_worker_is_an_error_and_never_a_short_result(fatal, jobs):
    seen = []
    with pytest.raises(WorkerLost, match="none is left" if jobs == 2 else "3 workers were lost"):
        seen.extend(ordered_map(dies_at(50, fatal), range(200), jobs, chunk=4))
    assert seen == list(range(len(seen)))
    assert len(seen) <= 50
    assert not multiprocessing.active_children()


def test_the_work_of_a_killed_worker_is_done_by_another(tmp_path):
    said = []
    die = dies_at(50, times=2, folder=tmp_path)
    care = Care(warn=said.append)
    assert list(ordered_map(die, range(200), 3, chunk=4, care=care)) == list(range(200))
    assert said == ["a worker process was killed (out of memory?); its work is done again"] * 2


def test_the_last_chunk_is_done_again_by_workers_that_had_nothing_left_to_do(tmp_path):
    die = dies_at(7, times=1, folder=tmp_path)
    assert list(ordered_map(die, range(8), 2, chunk=1)) == list(range(8))


def test_work_that_must_not_be_done_twice_is_not(tmp_path):
    with pytest.raises(WorkerLost, match=r"^a worker process was killed"):
        list(ordered_map(dies_at(3, times=1, folder=tmp_path), range(8), 3, care=Care(tries=1)))


def test_an_error_names_the_lines_that_killed():
    care = Care(where=lambda chunk: f"x:{chunk[0]}-{chunk[-1]}")
    with pytest.raises(WorkerLost, match="3 workers were lost over these lines; ") as caught:
        list(ordered_map(dies_at(50), range(52), 4, chunk=4, care=care))
    first, last = map(int, re.match(r"x:(\d+)-(\d+): ", str(caught.value)).groups())
    assert first <= 50 <= last < first + 4


class LostWhenIdle:
    """A slot whose worker is lost after its first chunk."""

    def __init__(self):
        self.has_worked = False

    def ready(self):
        return not self.has_worked

    def run(self, chunk):
        self.has_worked = True
        return chunk, None

    def close(self):
        pass


class LostAtWork(LostWhenIdle):
    """A slot whose worker is lost in its first chunk."""

    def run(self, chunk):
        self.has_worked = True
        raise Lost


def test_slots_that_cannot_start_are_not_waited_for(monkeypatch):
    """The system refuses a thread, and the workers that there are get lost."""
    here, start, n_refused = threading.current_thread(), threading.Thread.start, 0
    dispatcher = Dispatcher(1, 4, Care())

    def refuse_all_but_the_first_slot(thread):
        nonlocal n_refused
        if threading.current_thread() is not here:  # a slot starts another
            n_refused += 1
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_all_but_the_first_slot)
    dispatcher.start(range(9), [LostAtWork() for _ in range(4)], 1)
    ended = []

    def end():
        with pytest.raises(WorkerLost, match="none is left"):
            list(dispatcher.results())
        ended.append(True)

    waiting = threading.Thread(target=end, daemon=True)
    waiting.start()
    waiting.join(20)
    assert ended
    assert n_refused


@pytest.mark.parametrize("more", [[], [1, 2]])
def test_workers_lost_when_idle_are_an_error_only_if_work_comes_which_it_names(more):
    taken = threading.Event()

    def items():
        yield 0
        assert taken.wait(20)
        yield from more

    dispatcher = Dispatcher(1, 4, Care(where=lambda chunk: f"x:{chunk[0]}"))
    (thread,) = dispatcher.start(items(), [LostWhenIdle()], 1)
    results = dispatcher.results()
    assert next(results) == 0
    taken.set()
    if more:
        with pytest.raises(WorkerLost, match=r"^x:1: a worker was lost, and none is left$"):
            next(results)
    else:
        assert list(results) == []
    dispatcher.stop()
    thread.join(20)
    assert not thread.is_alive()


def test_a_result_that_cannot_travel_is_a_bug_and_names_it():
    with pytest.raises(TypeError, match="cannot travel"):
        list(ordered_map(lambda _: threading.Lock(), range(4), 2))


def test_a_recipe_is_made_at_once_and_called_later():
    made = []

    def make():
        made.append(os.getpid())
        return abs

    results = mapped(Recipe(make), [-1, -2], jobs=2)
    assert made == [os.getpid()]
    assert list(results) == [1, 2]


def test_another_executor_does_the_work():
    class Backwards(Local):
        def map(self, recipe, items, jobs, chunk):
            return map(recipe.make(), reversed(list(items)))

    with executing(Backwards()):
        assert list(mapped(Recipe(lambda: abs), [-1, -2])) == [2, 1]
    assert list(mapped(Recipe(lambda: abs), [-1, -2])) == [1, 2]


def test_a_worker_killed_within_a_result_is_lost():
    """The parent has read half of a message, and waits for the rest."""

    def half(number):
        if number == 1:
            multiprocessing.connection.Connection._send = send_half
        return bytes(2**20)

    def send_half(connection, message, *_):
        is_length = len(message) < 9
        os.write(connection.fileno(), bytes(message)[: None if is_length else len(message) // 2])
        if not is_length:
            os.kill(os.getpid(), signal.SIGKILL)

    before = time.monotonic()
    with pytest.raises(WorkerLost):
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


def test_a_thousand_jobs_start_no_more_workers_than_there_are_chunks():
    began = time.monotonic()
    pids = list(ordered_map(lambda _: os.getpid(), range(20), 1_000, chunk=4))
    assert len(pids) == 20
    assert len(set(pids)) <= 20
    assert os.getpid() not in pids
    assert time.monotonic() - began < 5
    assert threading.active_count() < 100


def busy_until(n_workers, folder):
    """A function that returns its number and process, once n_workers are at work."""

    def work(number):
        (folder / str(os.getpid())).touch()
        deadline = time.monotonic() + 60
        while len(os.listdir(folder)) < n_workers and time.monotonic() < deadline:
            time.sleep(0.01)
        return number, os.getpid()

    return work


def test_busy_workers_let_others_start(tmp_path):
    results = list(ordered_map(busy_until(4, tmp_path), range(12), 4, chunk=1))
    assert len({worker for _, worker in results}) == 4


def test_workers_that_cannot_start_are_an_error(monkeypatch):
    def refuse():
        raise OSError(11, "Resource temporarily unavailable")

    real = os.fork
    pid = os.getpid()
    monkeypatch.setattr(os, "fork", lambda: real() if os.getpid() == pid else refuse())
    with pytest.raises(WorkerLost, match="cannot start a worker process: Resource temporarily"):
        list(ordered_map(abs, [1, 2], 2))
    assert not multiprocessing.active_children()


def test_no_line_is_blamed_for_the_death_of_the_process_that_starts_workers():
    def items():
        (forker,) = multiprocessing.active_children()
        forker.kill()
        forker.join()
        yield from (1, 2)

    told = []
    care = Care(where=lambda chunk: "x:1", warn=told.append)
    lost = r"^x:1: the process that starts workers was killed .*, and none is left$"
    with pytest.raises(WorkerLost, match=lost):
        list(ordered_map(abs, items(), 2, care=care))
    assert told == []


@pytest.mark.parametrize("n_started", [1, 2])
def test_where_some_workers_cannot_start_the_others_do_the_work(monkeypatch, tmp_path, n_started):
    real = os.fork
    pid = os.getpid()
    left = n_started  # counted in the forker, whose copy this is

    def fork():
        nonlocal left
        if os.getpid() == pid:
            return real()
        left -= 1
        if left < 0:
            raise OSError(11, "Resource temporarily unavailable")
        return real()

    told = []
    monkeypatch.setattr(os, "fork", fork)
    care = Care(tries=1, where=lambda chunk: f"line {chunk[0]}", warn=told.append)
    results = list(ordered_map(busy_until(n_started, tmp_path), range(12), 5, chunk=1, care=care))
    assert [number for number, _ in results] == list(range(12))
    assert len({worker for _, worker in results}) == n_started
    reason = "cannot start a worker process: Resource temporarily unavailable"
    assert told == [f"{reason}; fewer do the work"]


def test_closing_ends_busy_workers(tmp_path):
    def slow(number):
        time.sleep(60 * number)
        (tmp_path / str(number)).touch()

    results = ordered_map(slow, range(8), 2, chunk=1)
    next(results)
    before = time.monotonic()
    results.close()
    assert time.monotonic() - before < 2
    assert not multiprocessing.active_children()
    assert os.listdir(tmp_path) == ["0"]  # nobody waited for their work


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
