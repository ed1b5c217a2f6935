"""Splits segments over files by bucket, or by another kind: all the files appear, or none."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence

from synmt_cli.core.segments.buckets import Buckets
from synmt_cli.core.segments.measured import Segment
from synmt_cli.errors import UsageError, printable, quoted
from synmt_cli.io import writing

PLACEHOLDER = re.compile(r"\{(.*?)\}")


def paths(template: str, buckets: Buckets, sides: Sequence[str]) -> list[list[str]]:
    """A path for each bucket and side. Raises UsageError where two would be the same.

    template: with `{bucket}`, and for several sides `{name}`, the last part of the side's
    path, or `{side}`, its number from 1.

    >>> paths("{name}.{bucket}", Buckets((9,)), ["x/train.de"])
    [['train.de.0-8'], ['train.de.9+']]
    """
    return filled(template, "bucket", buckets.names, sides, "--split-to")


def filled(
    template: str, kind: str, values: Sequence[str], sides: Sequence[str], option: str
) -> list[list[str]]:
    """A path for each value of {kind} and each side. Raises UsageError that names the option.

    sides: paths, "" for one that is several files.
    """
    for name in PLACEHOLDER.findall(template):
        if name not in (kind, "name", "side"):
            raise UsageError(f"{option} knows {{{kind}}}, {{name}}, {{side}}, not {{{name}}}")
    if "{name}" in template and "" in sides:
        raise UsageError(f"{option} {{name}} is for one file, or for parallel text")
    every = [
        [
            _filled(template, {kind: value, "name": _file_name(side), "side": str(number)})
            for number, side in enumerate(sides, 1)
        ]
        for value in values
    ]
    flat = [path for of_value in every for path in of_value]
    if len(set(flat)) < len(flat):
        needed = f"{{{kind}}}" if len(sides) == 1 else f"{{{kind}}} and {{side}}"
        raise UsageError(f"{option} {quoted(template)} names a file twice: use {needed}")
    return every


def _filled(template: str, values: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda found: values[found[1]], template)


def _file_name(side: str) -> str:
    return "stdin" if side == "-" else os.path.basename(side)


def refuse_inputs(
    outputs: Iterable[Sequence[str]], inputs: Sequence[str], option: str = "--split-to"
) -> None:
    """Raises UsageError if an output is one of the inputs."""
    for path in (path for of_bucket in outputs for path in of_bucket):
        for one in inputs:
            if one != "-" and os.path.exists(path) and os.path.samefile(path, one):
                raise UsageError(f"{option} would replace an input: {printable(path)}")


def split(segments: Iterable[Segment], buckets: Buckets, outputs: Sequence[Sequence[str]]) -> None:
    """Writes each segment's parts to its bucket's files. Raises CreateError, WriteError.

    Every file exists afterwards, empty where its bucket is. Nothing appears before all is
    written.
    """
    with contextlib.ExitStack() as stack:
        writers = [
            [stack.enter_context(writing.atomic(path)) for path in of_bucket]
            for of_bucket in outputs
        ]
        for segment in segments:
            of_bucket = writers[buckets.index(segment.length)]
            for writer, part in zip(of_bucket, segment.parts, strict=True):
                writer.write(part)
        for writer in (writer for of_bucket in writers for writer in of_bucket):
            writer.flush()  # a full disk shows before the first file takes its name
