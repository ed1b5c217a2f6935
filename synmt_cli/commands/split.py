"""`synmt split`: a parallel text into training, development and test sets."""

import os
import re
from typing import Annotated

from synmt_cli import console
from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import argument, option
from synmt_cli.errors import UsageError, counted, quoted
from synmt_cli.formats.detect import detect
from synmt_cli.io import reading

MANUAL = Manual(
    input="Parallel text, one segment a line in each FILE.",
    output="A file for each part and each FILE, named by --out-template.",
    memory="About 300 bytes a pair.",
    examples=(
        "synmt split --part dev=20 --part test=20 --out-template '{part}.{name}' all.en all.de",
        "synmt split --part heldout=15 --rest kept --seed 7 --out-template '{part}.{side}'"
        " train.en train.de",
    ),
    see_also=("init", "filter", "check"),
)


def split(
    files: Annotated[list[str], argument("FILE", "Parallel files.")],
    part: Annotated[
        list[str], option("--part NAME=N", "A part of N pairs, such as dev=1000; repeatable.")
    ],
    template: Annotated[
        str, option("--out-template TEMPLATE", "Names of the files, with {part} and {name}.")
    ],
    rest: Annotated[str, option("--rest NAME", "The part that gets all other pairs.")] = "train",
    seed: options.Seed = options.SEED,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Split a parallel text at random into parts that share no line.

    Each --part gets exactly N pairs, and --rest the others, all in the order of the text. Pairs
    that share a line on either side, directly or through other pairs, stay in the same part, so
    that nothing that is tested has been trained on. Lines are the same if they differ only in white
    space or Unicode composition (NFC). A pair with an empty or blank side goes to the rest, and so
    do those that share a line with it. The pairs are chosen by a hash of their lines and --seed,
    not by their place; of pairs that share a line, the hash of the first one counts.

    --out-template puts {part} into the names, and {name}, the last part of each FILE, or {side},
    its number from 1. The files appear when all of them are complete. Files are read twice, so
    none can be a pipe.
    """
    from synmt_cli.core.filtering import partition
    from synmt_cli.core.segments import reader, splitting
    from synmt_cli.core.segments.segment import line

    sizes = _sizes(part)
    options.refuse({"--rest is the name of a part, not empty": not rest})
    names = [*sizes, rest]
    if len(set(names)) < len(names):
        raise UsageError(f"--part and --rest name {quoted(names[-1])} twice")
    for path in files:
        _check(path)
    outputs = splitting.filled(template, "part", names, files)
    splitting.refuse_inputs(outputs, files)
    before = [reading.file_identity(path) for path in files]
    parts = partition.grouped(reader.text_rows(files)).parts([*sizes.values()], seed)
    with splitting.written_together(outputs) as writers:
        # If a file has more or fewer lines than before, it has changed: that is found afterwards.
        for sides, number in zip(reader.text_rows(files), parts, strict=False):
            for writer, text in zip(writers[number], sides, strict=True):
                writer.write(line(text))
        for path, state in zip(files, before, strict=True):
            reading.refuse_changed(path, state)
    counts = [f"{name} {parts.count(number):,}" for number, name in enumerate(names[:-1])]
    counts.append(f"{rest} {parts.count(partition.REST):,}")
    n = counted(len(parts), "pair")
    console.info(f"split {n} by a hash of their lines: {', '.join(counts)}")


def _check(path: str) -> None:
    """Warns of CoNLL-U and JSONL, whose lines are not sentences. Raises UsageError for a pipe."""
    if path == "-" or (os.path.exists(path) and not os.path.isfile(path)):
        raise UsageError(f"{path} is not a regular file, and files are read twice")
    with reading.open_source(path) as source:
        kind, _ = detect(source)
    if kind != "text":
        name = {"conllu": "CoNLL-U", "jsonl": "JSONL"}[kind]
        console.warn(f"{path} begins like {name}, and is split line by line")


def _sizes(parts: list[str]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for one in parts:
        name, _, size = one.partition("=")
        if not name or not re.fullmatch("[1-9][0-9]{0,8}", size):
            raise UsageError(f"--part is NAME=N, such as dev=1000, not {quoted(one)}")
        if name in sizes:
            raise UsageError(f"--part names {quoted(name)} twice")
        sizes[name] = int(size)
    return sizes
