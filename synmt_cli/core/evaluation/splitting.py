"""Splits segments over files by bucket: all the files appear, or none."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence

from synmt_cli import streams
from synmt_cli.core.evaluation.buckets import Buckets
from synmt_cli.core.evaluation.segments import Segment
from synmt_cli.errors import UsageError, printable, quoted

PLACEHOLDER = re.compile(r"\{(.*?)\}")


def paths(template: str, buckets: Buckets, sides: Sequence[str]) -> list[list[str]]:
    """A path for each bucket and side. Raises UsageError where two would be the same.

    template: with `{bucket}`, and for several sides `{name}`, the last part of the side's
    path, or `{side}`, its number from 1.

    >>> paths("{name}.{bucket}", Buckets((9,)), ["x/train.de"])
    [['train.de.0-8'], ['train.de.9+']]
    """
    for name in PLACEHOLDER.findall(template):
        if name not in ("bucket", "name", "side"):
            raise UsageError(f"--split-to knows {{bucket}}, {{name}}, {{side}}, not {{{name}}}")
    if "{name}" in template and "" in sides:
        raise UsageError("--split-to {name} is for one file, or for parallel text")
    filled = [
        [
            _filled(template, {"bucket": bucket, "name": _file_name(side), "side": str(number)})
            for number, side in enumerate(sides, 1)
        ]
        for bucket in buckets.names
    ]
    every = [path for of_bucket in filled for path in of_bucket]
    if len(set(every)) < len(every):
        needed = "{bucket}" if len(sides) == 1 else "{bucket} and {side}"
        raise UsageError(f"--split-to {quoted(template)} names a file twice: use {needed}")
    return filled


def _filled(template: str, values: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda found: values[found[1]], template)


def _file_name(side: str) -> str:
    return "stdin" if side == "-" else os.path.basename(side)


def refuse_inputs(outputs: Iterable[Sequence[str]], inputs: Sequence[str]) -> None:
    """Raises UsageError if an output is one of the inputs."""
    for path in (path for of_bucket in outputs for path in of_bucket):
        for one in inputs:
            if one != "-" and os.path.exists(path) and os.path.samefile(path, one):
                raise UsageError(f"--split-to would replace an input: {printable(path)}")


def split(segments: Iterable[Segment], buckets: Buckets, outputs: Sequence[Sequence[str]]) -> None:
    """Writes each segment's parts to its bucket's files. Raises CreateError, WriteError.

    Every file exists afterwards, empty where its bucket is. Nothing appears before all is
    written.
    """
    with contextlib.ExitStack() as stack:
        writers = [
            [stack.enter_context(streams.atomic(path)) for path in of_bucket]
            for of_bucket in outputs
        ]
        for segment in segments:
            of_bucket = writers[buckets.index(segment.length)]
            for writer, part in zip(of_bucket, segment.parts, strict=True):
                writer.write(part)
        for writer in (writer for of_bucket in writers for writer in of_bucket):
            writer.flush()  # a full disk shows before the first file takes its name
