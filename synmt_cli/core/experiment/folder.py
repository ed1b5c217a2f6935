"""Writes the folder of an experiment: a Makefile, settings, and links to the text and the parsers.

Everything is checked before anything is written, and the folder appears whole or not at all.
"""

import itertools
import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from synmt_cli.core.experiment.design import Design, TreesFrom
from synmt_cli.core.experiment.makefile import makefile
from synmt_cli.core.run.config import Precision
from synmt_cli.core.run.directory import Run
from synmt_cli.core.run.resuming import CHANGEABLE_IN_TRAINING
from synmt_cli.core.segments import reader
from synmt_cli.core.segments.known_trees import KnownTrees, missing
from synmt_cli.core.text.parser_language import familiarity_with_lines
from synmt_cli.core.text.scripts import Sample, Writing
from synmt_cli.core.text.udpipe import Parser
from synmt_cli.core.variants import own_file
from synmt_cli.errors import (
    CreateError,
    DataError,
    ReadError,
    UsageError,
    cannot_read,
)
from synmt_cli.formats.detect import detect
from synmt_cli.io import reading, writing

BYTES_OF_A_PIECE = 4  # about, whatever the script: an ideograph has three
ABOUT_SETTINGS = """\
Settings of every training; they override the preset's. `synmt settings` and `synmt variants` say
what there is. A training goes on after a change of {} (but a lower max_steps takes no updates
back); any other change begins it anew: its model moves to runs/old, and comes back when the old
settings do.
"""
SETTINGS = """\
{about}

[training]
{rates}validate_every = {every}  # updates
save_every = {every}
keep = 5              # checkpoints, which are averaged for translating
patience = 8          # validations in a row; if none improves BLEU or perplexity, training ends
tokenize = {tokenize:<11}# of that BLEU; TOKENIZE in the Makefile is for tuning and scores
precision = "{precision}"    # the same for all, so that they compare; {why}
"""
RATES = """\
lr = {lr:<8.2g}         # a third of the preset's, so that less is forgotten; choose it on dev
warmup = 50           # updates
"""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in config.toml. precision: the same for all trainings. why: the reason for it.

    lr: for models that are trained further; None, for new models, leaves the preset's.
    """

    precision: Precision
    why: str
    lr: float | None = None

    def toml(self, tokenize: str) -> str:
        """The text of config.toml. tokenize: the tokenizer of BLEU."""
        about = ABOUT_SETTINGS.format(", ".join(CHANGEABLE_IN_TRAINING))
        return SETTINGS.format(
            about=textwrap.fill(about, initial_indent="# ", subsequent_indent="# ", width=98),
            rates="" if self.lr is None else RATES.format(lr=self.lr),
            every=250 if self.lr is None else 100,
            tokenize=f'"{tokenize}"',
            precision=self.precision,
            why=self.why,
        )


@dataclass(frozen=True, slots=True)
class TextSizes:
    """The size of the given text. n_pairs: of each set. n_tokens: about how many to train on.

    n_tokens counts the target. samples: lines of the two sides to train on. src, tgt: how a side
    without spaces between words is written; None for a side with spaces.
    """

    n_pairs: dict[str, int]
    n_tokens: int
    samples: tuple[Sample, Sample]
    src: Writing | None
    tgt: Writing | None


@dataclass(frozen=True)
class Texts:
    """The given files. dev, test: both sides, or None where they are to be split off."""

    train: tuple[str, str]
    dev: tuple[str, str] | None = None
    test: tuple[str, str] | None = None

    @property
    def sets(self) -> dict[str, tuple[str, str]]:
        """Both sides of each set that is there."""
        sets = {"train": self.train, "dev": self.dev, "test": self.test}
        return {name: sides for name, sides in sets.items() if sides is not None}

    def sizes(self) -> TextSizes:
        """How much there is, and how the text to train on is written.

        Reads all files. Raises UsageError for a source that is its target, and DataError or
        ReadError for files that are empty, not parallel, not text, or not there.
        """
        self._refuse_same()
        n_pairs: dict[str, int] = {}
        n_tokens = 0
        samples = Sample(), Sample()
        for name, (src, tgt) in self.sets.items():
            n_lines = n_bytes = 0
            for lines in reader.text_rows([src, tgt]):
                n_lines += 1
                for path, line in zip((src, tgt), lines, strict=True):
                    reading.refuse_nul(line, path, n_lines)
                n_bytes += len(lines[1].encode())
                if name == "train":
                    for sample, line in zip(samples, lines, strict=True):
                        sample.add(line)
            if not n_lines:
                raise DataError(src, None, "no lines")
            n_pairs[name] = n_lines
            if name == "train":
                n_tokens = n_lines + n_bytes // BYTES_OF_A_PIECE
        return TextSizes(n_pairs, n_tokens, samples, *(sample.unspaced() for sample in samples))

    @property
    def tunes_on_test(self) -> bool:
        """Whether the dev set and the test set share a file."""
        return _shared(self.dev or (), self.test or ()) is not None

    def unlike_text(self) -> Iterator[str]:
        """Yields a warning for each file that begins unlike text. Raises DataError, ReadError."""
        for path in dict.fromkeys(itertools.chain(*self.sets.values())):
            with reading.open_source(path) as source:
                kind, _ = detect(source)
            if kind != "text":
                what = "JSON" if kind == "jsonl" else "CoNLL-U"
                yield f"{path} looks like {what}; here each line is text to translate"

    def _refuse_same(self) -> None:
        """Raises UsageError if both sides of a set, or training and evaluation, share a file."""
        for name, sides in self.sets.items():
            for path in sides:
                _check_regular(path)
            if os.path.samefile(*sides):
                raise UsageError(f"{sides[0]} is both sides of the {name} set")
            if name != "train" and (taken := _shared(sides, self.train)):
                where = f"in the {name} set and in the text to train on"
                raise UsageError(f"{taken} is {where}")


def _shared(these: Sequence[str], those: Sequence[str]) -> str | None:
    """The first of `these` files that is also one of `those`, under whatever name."""
    pairs = itertools.product(these, those)
    return next((one for one, other in pairs if os.path.samefile(one, other)), None)


def _check_regular(path: str) -> None:
    try:
        if not os.path.isfile(path):
            os.stat(path)
            raise ReadError(f"cannot read {path}: not a regular file, which make needs")
    except OSError as error:
        raise cannot_read(path, error) from error


@dataclass(frozen=True)
class Trees:
    """The files that give trees to the source and the target."""

    src: TreesFrom
    tgt: TreesFrom

    @property
    def links(self) -> dict[str, str]:
        """Names in the folder, and what they link to."""
        named: dict[str, str | None] = {}
        for end, side in (("src", self.src), ("tgt", self.tgt)):
            named |= {f"{end}.udpipe": side.parser, f"given/{end}.conllu": side.known}
        return {name: path for name, path in named.items() if path is not None}

    @cached_property
    def parsers(self) -> tuple[Parser | None, Parser | None]:
        """The models of both sides. Raises Unavailable, ReadError."""
        paths = self.src.parser, self.tgt.parser
        src, tgt = (None if path is None else Parser(path) for path in paths)
        return src, tgt

    def language_problems(self, sizes: TextSizes) -> Iterator[str]:
        """Yields a warning for each parser that may be for another language than its side.

        A side with known trees is not checked. Raises Unavailable, ReadError.
        """
        lines = [sample.lines for sample in sizes.samples]
        sides = zip((self.src, self.tgt), self.parsers, lines, reversed(lines), strict=True)
        for side, parser, own, other in sides:
            if parser is None or side.known is not None:
                continue
            found = familiarity_with_lines(parser, own)
            if found and (problem := found.problem()):
                with_other = familiarity_with_lines(parser, other)
                fits = with_other and with_other.is_enough
                yield problem + (" It fits the other side of the text." if fits else "")

    def check_known(self, texts: Texts) -> Iterator[str]:
        """Yields how many lines of a side have a known tree, if some have none.

        Targets of the test set need none. Raises DataError, ReadError; a line without a tree is a
        DataError if its side has no parser.
        """
        trained = [sides for name, sides in texts.sets.items() if name != "test"]
        yield from _about_known(self.src, "source", [src for src, _ in texts.sets.values()])
        yield from _about_known(self.tgt, "target", [tgt for _, tgt in trained])


def _about_known(side: TreesFrom, name: str, paths: Sequence[str]) -> Iterator[str]:
    if side.known is None:
        return
    _check_regular(side.known)
    trees = KnownTrees(side.known)
    n_lines = n_known = 0
    for path in paths:
        with reading.open_source(path) as source:
            for number, line in reading.text_lines(source):
                if line.strip():
                    n_lines += 1
                    n_known += line in trees
                    if side.parser is None and line not in trees:
                        raise DataError(path, number, missing(side.known, line))
    if n_known < n_lines:
        known = f"{n_known:,} of {n_lines:,} {name} lines"
        yield f"{known} have a tree in {side.known}; others are parsed"


def write(
    folder: Path,
    design: Design,
    n_pairs: int,
    texts: Texts,
    others: Mapping[str, str],
    settings: Settings,
) -> None:
    """Writes the folder, and missing ones above it. n_pairs: how many the training text has.

    others: names of further links, and what they link to.

    Raises CreateError if the folder exists or cannot be made, and WriteError.
    """
    rules = makefile(design, n_pairs)
    links = {"given/src": texts.train[0], "given/tgt": texts.train[1]}
    for name, sides in texts.sets.items():
        if name != "train":
            links |= {f"text/{name}.src": sides[0], f"text/{name}.tgt": sides[1]}
    links |= others
    with writing.atomic_folder(folder) as new:
        for name in ("given", "text", "data", "runs", "output"):
            (new / name).mkdir()
        for link, path in links.items():
            (new / link).parent.mkdir(exist_ok=True)
            _link(new / link, path)
        for file, content in (
            ("Makefile", rules),
            ("config.toml", settings.toml(design.tokenize)),
        ):
            with writing.atomic(new / file) as writer:
                writer.write(content.encode())
        if any(map(design.has_own, design.variants)):
            Run(new).write_own_variants(own_file.text())


def _link(link: Path, path: str) -> None:
    try:
        link.symlink_to(reading.absolute(path))
    except OSError as error:
        raise CreateError(f"cannot create {link}: {error.strerror}") from error
