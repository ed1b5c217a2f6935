"""The code of a variant of one's own: changes that count, and changes that do not."""

from __future__ import annotations

import pytest

from synmt_cli.core.run.own_code import code

MODULE = b'''
"""About."""
import math
import string
from os import path as p, sep
from typing import Annotated
from synmt_cli.core.options import Bounds
if math.pi > 4:
    SCALE = 9
SCALE: float = 2
OTHER = [1]
first, second = 3, 4


def helper(x):
    """Docstring."""
    return x * SCALE + first


class Part:
    """Docstring."""

    def run(self):
        return helper(1)  # comment


def build(spec, *, width: Annotated[int, "meaning", Bounds(0)] = 4):
    return Part()


if __name__ == "__main__":
    helper(3)


def unused(spec):
    return OTHER, sep
'''


def test_the_code_of_a_function_is_what_it_uses():
    assert code(MODULE, ["build"]).split("\n")[:4] == [
        "import math",
        "if math.pi > 4:",
        "    SCALE = 9",
        "SCALE: float = 2",
    ]
    assert "OTHER" not in code(MODULE, ["build"])
    assert "helper" not in code(MODULE, ["unused"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"""About."""', b""),
        (b'"""Docstring."""', b'"""Another\n    one."""'),
        (b"  # comment", b""),
        (b'"meaning", Bounds(0)]', b'"what it means", Bounds(1)]'),
        (b"Bounds(0)] = 4", b"Bounds(0)] = 5"),
        (b"import math\nimport string", b"import string\nimport math"),
        (b"import path as p, sep", b"import sep, path as p, name"),
        (b"import math", b"import math, json"),
        (b"def helper(x)", b"def helper(x: int) -> int"),
        (b"if math.pi", b"if TYPE_CHECKING:\n    import json\nif math.pi"),
        (b"def unused", b"VARIANTS.append(unused)\n\n\ndef unused"),
        (b"    helper(3)", b"    helper(4)"),
        (b"x * SCALE + first", b"(x*SCALE) + first"),
        (b"OTHER = [1]", b"OTHER = [1, 2]\nOTHER[0] = 4"),
        (b"return OTHER, sep", b"return p"),
        (b"def unused", b"def unusual"),
        (b"class Part", b"def third(spec):\n    return ()\n\n\nclass Part"),
    ],
)
def test_what_a_function_does_not_use_is_no_change(old, new):
    assert MODULE.count(old) >= 1
    assert code(MODULE.replace(old, new), ["build"]) == code(MODULE, ["build"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"SCALE: float = 2", b"SCALE: float = 3"),
        (b"SCALE = 9", b"SCALE = 8"),
        (b"math.pi > 4", b"math.pi > 3"),
        (b"first, second = 3, 4", b"first, second = 5, 4"),
        (b"import math", b"import cmath as math"),
        (b"    return Part()", b"    return Part() or build"),
        (b"import string", b"from string import *"),
        (b"width: Annotated[int", b"width: Annotated[float"),
        (b"+ first", b"- first"),
        (b"helper(1)", b"helper(2)"),
        (b"def build", b"@unused\ndef build"),
        (b"def unused", b"Part.run = None\n\n\ndef unused"),
        (b"def unused", b"print(SCALE)\n\n\ndef unused"),
        (b"def unused", b"SCALE += 1\n\n\ndef unused"),
    ],
)
def test_a_change_of_what_a_function_uses_is_one(old, new):
    assert MODULE.count(old) == 1
    assert code(MODULE.replace(old, new), ["build"]) != code(MODULE, ["build"])


@pytest.mark.parametrize("where", ["class Part:\n    def build", "def helper(x):\n    def build"])
def test_the_default_of_a_method_counts_though_a_builder_has_its_name(where):
    text = f"{where}(self, *, power=1):\n        return power\n\n\ndef build(spec, *, width=4):\n"
    text = f"{text}    return {'Part()' if 'class' in where else 'helper(spec)'}\n"
    before = code(text.encode(), ["build"])
    assert code(text.replace("power=1", "power=3").encode(), ["build"]) != before
    assert code(text.replace("width=4", "width=5").encode(), ["build"]) == before


def test_the_default_of_a_builder_counts_where_another_calls_it():
    """A run records only the options of the variant's own builder, not of one that it calls."""
    calling = MODULE + b"\n\ndef other(spec):\n    return build(spec)\n"
    changed = calling.replace(b"Bounds(0)] = 4", b"Bounds(0)] = 5")
    assert changed != calling
    assert code(changed, ["build", "other"]) != code(calling, ["build", "other"])
