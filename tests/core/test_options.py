"""Typed, bounded options."""

from typing import Literal

import pytest

from synmt_cli.core.options import problem, suggestion


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (1, int),
        (1, float),
        (0.5, float),
        (True, bool),
        ("x", str),
        ([1, 2], int | list[int]),
        ((0.9, 0.98), tuple[float, float]),
        ([0, 1], tuple[float, float]),
        ("a", Literal["a"]),
    ],
)
def test_a_value_of_the_type_has_no_problem(value, hint):
    assert problem(value, hint) == ""


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (True, int),
        (True, float),
        (1.0, int),
        ("1", int),
        (1, bool),
        (None, str),
        ([1.5], list[int]),
        ([0.9], tuple[float, float]),
        ("b", Literal["a"]),
        (float("nan"), str),
    ],
)
def test_another_value_has(value, hint):
    assert "expected" in problem(value, hint)


def test_bounds_are_included_and_nan_is_never_within():
    assert problem(0, float, 0, 1) == problem(1, float, 0, 1) == ""
    assert "at most 1" in problem(1.5, float, 0, 1)
    assert "finite" in problem(float("nan"), float, 0, 1)
    assert "at least 0" in problem((0.5, -0.1), tuple[float, float], 0, 1)


def test_a_far_key_gets_the_list():
    assert suggestion("zzz", ["a", "b"]) == "known are a, b"
