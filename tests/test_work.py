"""The measures of work that other tests use tell linear from quadratic functions."""

from __future__ import annotations

from support.work import lines_run, takes_linear_time


def words_of(n):
    return [str(i) for i in range(n)]


def test_a_quadratic_function_is_not_taken_for_a_linear_one():
    assert takes_linear_time(set, words_of, 8_000)
    assert takes_linear_time(sorted, words_of, 8_000)
    assert not takes_linear_time(lambda w: [one in w for one in w], words_of, 2_000, rounds=2)


def test_lines_are_counted_as_often_as_they_run():
    def work(n):
        for i in range(n):
            i += 1
            i += 1

    assert lines_run(lambda: work(10)) == 1 + 11 + 20  # the lambda, the `for` line, its body
    assert lines_run(lambda: work(11)) - lines_run(lambda: work(10)) == 3
