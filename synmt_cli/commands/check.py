"""`synmt check`: everything that is wrong with files."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from synmt_cli import console
from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import option
from synmt_cli.core.inspection.inputs import InspectedInput, opened
from synmt_cli.core.inspection.problems import ProblemFinder
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.errors import (
    DataError,
    NegativeAnswer,
    SynmtError,
    UsageError,
    counted,
    other_number,
)
from synmt_cli.formats.conllu import SENTENCE_LIMIT
from synmt_cli.formats.detect import FileKind, TreeKind
from synmt_cli.io import writing

MANUAL = Manual(
    input="Every file and folder that synmt reads or writes.",
    output="A problem a line: `dev.conllu:1834: 9 columns, expected 10`; nothing if all is well.",
    memory=f"A line, a sentence (at most {SENTENCE_LIMIT // 2**20} MiB), or the weights of one"
    " checkpoint.",
    examples=(
        "synmt check train.en.conllu train.jsonl runs/pascal",
        "synmt check --parallel train.en train.de train.en.conllu train.jsonl",
        "sed 's/nsubj\\t//' dev.en.conllu | synmt check --max 20 || echo broken",
        "sed '5s/\\t_//' dev.en.conllu | synmt check -o problems || wc -l problems",
    ),
    see_also=("info", "view", "featurize", "train"),
)


def check(
    files: options.Files = None,
    kind: Annotated[
        Literal["auto", "text", "conllu", "jsonl", "transitions"],
        option("--from", "What the input is; auto looks at its name and beginning."),
    ] = "auto",
    parallel: Annotated[
        bool, option("--parallel", "Also check that all files have the same number of segments.")
    ] = False,
    most: Annotated[int | None, option("--max N", "Stop after N problems.", min=1)] = None,
    spm: options.TransitionVocabulary = None,
    output: options.Output = "-",
    line_buffered: options.LineBuffered = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Report what is wrong with files, one problem per line. Exits 1 if there is any.

    The checks are those of the other commands, in their words: CoNLL-U (columns, ids, one tree in
    each sentence), records (fields, types, lengths, trees, and whether transitions build one),
    transitions (each line builds a tree), text (UTF-8), run directories and checkpoints (every
    digest of weights, whether configuration, vocabulary and labels can be read and the weights fit
    them; not the cache of training records, which train makes anew), vocabularies and parsers
    (whether they load), experiments of init (input, settings, all runs), caches (every digest),
    metrics.jsonl, attention weights, segment scores, tables, reports and other JSON, and files of
    settings. The first problem of a sentence or line is reported, and the check goes on after it.
    Where the end of a line cannot be found, or compressed data is damaged, the rest of that file is
    not checked, which is reported.

    auto trusts a name that ends in .conllu, .conll, .jsonl, .json or .toml; otherwise it looks at
    the beginning, and takes anything else for text. --parallel counts segments: lines, records, and
    in CoNLL-U sentences, those of one line (synmt_line) as one. A file that cannot be read is
    named, and the others are checked (66).
    """
    if parallel and len(files or ()) < 2:
        raise UsageError("--parallel compares files: name two or more")
    options.refuse_clashes(files or (), output)
    vocabulary = None if spm is None else Vocabulary.load(spm)
    checker = _Checker(parallel, vocabulary, None if kind == "auto" else kind)
    n = 0
    with writing.output(output, line_buffered) as writer:
        for problem in checker.problems(files or ("-",)):
            writer.write(f"{problem}\n".encode())
            n += 1
            if n == most:
                console.info(f"stopped after {counted(n, 'problem')}")
                break
    if checker.failure:
        raise checker.failure
    if n:
        raise NegativeAnswer(counted(n, "problem"))


class _Checker:
    """Checks one input after another. failure: why the last one that failed was not checked."""

    def __init__(
        self, parallel: bool, vocabulary: Vocabulary | None, kind: TreeKind | None
    ) -> None:
        self._parallel, self._vocabulary, self._kind = parallel, vocabulary, kind
        self._counts: list[tuple[str, int]] = []  # name, segments
        self.failure: SynmtError | None = None

    def problems(self, paths: Sequence[str]) -> Iterator[SynmtError]:
        """Yields the problems of every input, then the differences of their lengths."""
        for path in paths:
            try:
                with opened(path, self._kind, by_suffix=True) as one:
                    yield from self._of(one)
            except DataError as error:  # damaged from its first byte on
                yield error
            except SynmtError as error:
                if self.failure:
                    console.error(str(self.failure))
                self.failure = error
        if self._parallel:
            yield from self._differences()

    def _of(self, one: InspectedInput) -> Iterator[SynmtError]:
        match one.kind:
            case "experiment" | "cache":
                yield from self._of_folder(one)
            case "metrics" | "attention" | "segment-scores" | "table" | "json" | "config":
                self._refuse_parallel(one)
                yield from _of_document(one, one.kind)
            case "run" | "checkpoint" | "weights" | "export":
                yield from self._of_training(one)
            case "sentencepiece" | "udpipe":
                yield from _of_model(one)
            case kind:
                assert one.source is not None
                search = ProblemFinder(self._parallel, self._vocabulary)
                yield from search.problems(one.source, kind)
                if search.is_whole:
                    self._counts.append((one.name, search.n_segments))

    def _refuse_parallel(self, one: InspectedInput) -> None:
        if self._parallel:
            raise UsageError(f"{one.name} has no segments for --parallel")

    def _of_folder(self, one: InspectedInput) -> Iterator[SynmtError]:
        from synmt_cli.core.inspection import folders

        self._refuse_parallel(one)
        if one.kind == "cache":
            yield from folders.problems_of_cache(Path(one.path))
        else:
            yield from folders.problems_of_experiment(Path(one.path))

    def _of_training(self, one: InspectedInput) -> Iterator[SynmtError]:
        from synmt_cli.core.inspection import model_problems
        from synmt_cli.core.run.directory import Run

        self._refuse_parallel(one)
        one.refuse_unnamed()
        if one.kind == "weights":
            yield from model_problems.of_weights(Path(one.path))
        elif one.kind == "checkpoint":
            yield from model_problems.of_checkpoint(Path(one.path))
        else:
            yield from model_problems.of_run(Run(Path(one.path)))

    def _differences(self) -> Iterator[SynmtError]:
        for name, n in self._counts[1:]:
            first, expected = self._counts[0]
            if n != expected:
                yield other_number(name, n, "segment", first, expected)


def _of_document(one: InspectedInput, kind: FileKind) -> Iterator[SynmtError]:
    from synmt_cli.core.inspection import documents

    assert one.source is not None
    yield from documents.problems(one.source, kind)


def _of_model(one: InspectedInput) -> Iterator[SynmtError]:
    """Whether a vocabulary or a parser loads."""
    from synmt_cli.core.text import udpipe

    one.refuse_unnamed()
    try:
        if one.kind == "udpipe":
            udpipe.load(one.path, tried=True)
        else:
            Vocabulary.load(one.path)
    except SynmtError as error:
        yield error
