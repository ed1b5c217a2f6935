"""Probing tasks as SentEval keeps them: `SPLIT<TAB>LABEL<TAB>SENTENCE`, one example a line.

https://github.com/facebookresearch/SentEval, data/probing. SPLIT is tr, va or te. Columns between
label and sentence are not read.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from synmt_cli.errors import DataError, counted, quoted
from synmt_cli.formats.conllu import Sentence
from synmt_cli.io import reading

TRAIN, DEV, TEST = SPLITS = ("tr", "va", "te")


@dataclass(frozen=True, slots=True)
class Example:
    """A labelled sentence. tree: its tree, if it was made from one that still fits it."""

    split: str
    label: str
    text: str
    tree: Sentence | None = None


def read(source: reading.Source) -> Iterator[Example]:
    """Yields the examples of a source. Raises DataError, ReadError."""
    for number, line in reading.text_lines(source):
        columns = line.split("\t")
        problem = None
        if len(columns) < 3:
            problem = (
                f"{counted(len(columns), 'column')}, expected split, label and sentence with TABs"
            )
        elif columns[0] not in SPLITS:
            problem = f"split {quoted(columns[0])} is none of {', '.join(SPLITS)}"
        elif not columns[1]:
            problem = "the label is empty"
        elif "\0" in line:
            problem = "NUL character"
        if problem:
            raise DataError(source.name, number, problem)
        yield Example(columns[0], columns[1], columns[-1])


def to_bytes(example: Example) -> bytes:
    """The line of an example, LF included. A TAB in the sentence becomes a space."""
    text = example.text.replace("\t", " ")
    return f"{example.split}\t{example.label}\t{text}\n".encode()
