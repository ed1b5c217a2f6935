"""Typed, bounded options."""

from dataclasses import dataclass
from typing import Annotated, Literal

import pytest

from synmt_cli.core.options import Bounds, Option, options, suggestion, wrong_type


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
    assert wrong_type(value, hint) == ""


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
    assert "expected" in wrong_type(value, hint)


def problem(value, hint):
    return Option(hint, None, "", Bounds(0, 1)).problem(value)


def test_bounds_are_included_and_nan_is_never_within():
    assert problem(0, float) == problem(1, float) == ""
    assert "at most 1" in problem(1.5, float)
    assert "finite" in problem(float("nan"), float)
    assert "at least 0" in problem((0.5, -0.1), tuple[float, float])


@pytest.mark.parametrize(
    ("bounds", "inside", "outside", "words"),
    [
        (Bounds(0, 1), (0, 1), (-0.1, 1.1), "within 0..1"),
        (Bounds(0), (0, 1e9), (-1, float("inf")), "at least 0 and finite"),
    ],
)
def test_bounds_say_what_they_hold(bounds, inside, outside, words):
    assert all(number in bounds for number in inside)
    assert not any(number in bounds for number in (*outside, float("nan")))
    assert str(bounds) == words


def test_functions_and_dataclasses_declare_options_alike():
    @dataclass(kw_only=True)
    class Owner:
        clip: Annotated[int, "the largest distance", Bounds(0)] = 2

    def build(setting, *, clip: Annotated[int, "the largest distance", Bounds(0)] = 2):
        pass

    assert options(build) == options(Owner)
    assert options(build) == {"clip": Option(int, 2, "the largest distance", Bounds(0))}


def test_a_far_key_gets_the_list():
    assert suggestion("zzz", ["a", "b"]) == "known are a, b"
    assert suggestion("zzz", ["a", "b"], shown="a and others") == "known are a and others"
