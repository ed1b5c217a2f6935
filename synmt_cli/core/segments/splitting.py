"""Files that segments are split over: a template names them, and all appear or none."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain

from synmt_cli.errors import UsageError, quoted
from synmt_cli.io import reading, writing
from synmt_cli.io.writing import Writer

PLACEHOLDER = re.compile(r"\{(.*?)\}")


def filled(
    template: str, kind: str, values: Sequence[str], sides: Sequence[str]
) -> list[list[str]]:
    """A path for each value of {kind} and each side, from --out-template. Raises UsageError.

    template: with `{kind}`, and for several sides `{name}`, the last part of the side's path, or
    `{side}`, its number from 1. sides: paths, "" for a side of several files; no sides if the
    template knows only {kind}.

    >>> filled("{name}.{bucket}", "bucket", ["0-8", "9+"], ["x/train.de"])
    [['train.de.0-8'], ['train.de.9+']]
    """
    fields = [kind, "name", "side"] if sides else [kind]
    for name in PLACEHOLDER.findall(template):
        if name not in fields:
            known = ", ".join(f"{{{one}}}" for one in fields)
            raise UsageError(f"--out-template knows {known}, not {{{name}}}")
    if "{name}" in template and "" in sides:
        raise UsageError("--out-template {name} is for one file, or for parallel text")
    every = [
        [
            _filled(template, {kind: value, "name": _file_name(side), "side": str(number)})
            for number, side in enumerate(sides or [""], 1)
        ]
        for value in values
    ]
    flat = list(chain.from_iterable(every))
    if len({*map(os.path.realpath, flat)}) < len(flat):
        needed = f"{{{kind}}}" if len(sides) < 2 else f"{{{kind}}} and {{side}}"
        raise UsageError(f"--out-template {quoted(template)} names a file twice: use {needed}")
    return every


def _filled(template: str, values: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda name: values[name[1]], template)


def _file_name(side: str) -> str:
    return "stdin" if side == "-" else os.path.basename(side)


def refuse_inputs(outputs: Iterable[Sequence[str]], inputs: Sequence[str]) -> None:
    """Raises UsageError if an output is one of the inputs."""
    for path in chain.from_iterable(outputs):
        if reading.is_among(path, inputs):
            raise UsageError(f"--out-template would replace an input: {path}")


@contextmanager
def written_together(outputs: Iterable[Sequence[str]]) -> Iterator[list[list[Writer]]]:
    """A writer for each path. Every file appears at the end, even an empty one, or none does.

    Raises CreateError, WriteError.
    """
    rows = [list(row) for row in outputs]
    with writing.together(chain.from_iterable(rows)) as writers:
        each = iter(writers)
        yield [[next(each) for _ in row] for row in rows]
