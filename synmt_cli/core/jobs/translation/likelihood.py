"""How probable given targets are: the job that scores them, and the output for a segment."""

import math
from collections.abc import Callable, Iterator
from functools import cache, partial

import torch

from synmt_cli.core.data.record_reader import check_vocabulary
from synmt_cli.core.data.targets import Targets
from synmt_cli.core.data.task_tags import asks_for_parse
from synmt_cli.core.decoding.likelihood import Likelihood, TeacherForcing
from synmt_cli.core.decoding.search import read_trees
from synmt_cli.core.decoding.translator import SearchSettings, Watch
from synmt_cli.core.jobs.translation.input import UNKNOWN, Placed
from synmt_cli.core.jobs.translation.job import ModelJob, Models, Progress, Window, opened
from synmt_cli.core.run import device as devices
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.core.transitions.grammar import FEATURES
from synmt_cli.errors import ConfigError, DataError, Place
from synmt_cli.formats import record as records
from synmt_cli.formats.record import OK, UNPARSED, Record

Scored = tuple[Record, Likelihood]


@cache
def teacher_forcing(models: Models, settings: SearchSettings) -> TeacherForcing:
    """The TeacherForcing of these models. Raises SynmtError."""
    loaded = opened(models)
    needs = FEATURES if read_trees(loaded.models) else ()
    return TeacherForcing(
        loaded.models,
        loaded.vocabularies.source,
        Targets(loaded.vocabularies.target, loaded.models[0].grammar, needs),
        loaded.encoding,
        torch.device(models.device),
        settings,
        loaded.prepare,
    )


class LikelihoodJob(ModelJob):
    """Run directories that score targets together. wanted: has torch as its engine."""

    @property
    def _ready(self) -> TeacherForcing:
        return teacher_forcing(self._models, self._settings)

    def refuse_text(self) -> None:
        """Raises ConfigError if targets are trees, which lines of text cannot be."""
        if self.writes_trees:
            raise ConfigError(
                f"{self._models.folders[0]} writes trees, and --tgt is text; give records of "
                "synmt featurize --tgt-conllu FILE instead"
            )

    def in_pieces(self, records: Placed) -> Placed:
        """Yields the records, each with its target in the tokens of the models.

        Empty sources, and failed or skipped records, may lack one. Raises DataError, ConfigError.
        """
        for record, place in records:
            if self.writes_trees:
                self._check_tree(record, place)
            else:
                self._add_pieces(record, place)
            yield record, place

    def _add_pieces(self, record: Record, place: Place) -> None:
        vocabularies = self.members.vocabularies
        if record.tgt_pieces is not None:
            check_vocabulary(record, vocabularies.fingerprint, place)
        elif record.tgt is not None:
            if asks_for_parse(record):
                raise DataError(*place, "asks for a parse; its target has to be in tgt_pieces")
            record.tgt_pieces = vocabularies.target.pieces(record.tgt)
            record.vocab = record.vocab and vocabularies.fingerprint
        elif record.status == OK:
            raise DataError(*place, "no target; give --tgt FILE, or records with tgt")

    def _check_tree(self, record: Record, place: Place) -> None:
        if record.transitions:
            check_vocabulary(record, self.members.vocabularies.fingerprint, place)
            self._ready.targets.target(record.transitions, place)
        elif record.status == OK:
            self._ready.targets.tokens(record, place)

    def scored(
        self,
        records: Placed,
        window: int,
        warn: Callable[[str], None],
        progress: Progress,
        waited: Callable[[], float] | None = None,
    ) -> Iterator[list[Scored]]:
        """Yields the records `in_pieces` and their likelihoods, a list for each window.

        Arguments: as in TranslateJob.translated.
        """
        work = partial(scoring, self._models, self._settings)
        placed = self.in_pieces(records)
        for (scored,) in self._in_windows(work, placed, window, warn, progress, waited):
            yield scored


def scoring(
    models: Models, settings: SearchSettings, threads: int, watch: Watch
) -> Callable[[Window], list[list[Likelihood]]]:
    """The function that scores records and returns one list of results. Raises SynmtError.

    Arguments: as in `translating`.
    """
    ready = teacher_forcing(models, settings)

    def scored(window: Window) -> list[list[Likelihood]]:
        devices.set_threads(threads)
        return [ready.score(window, watch)]

    return scored


def remarks(
    record: Record, found: Likelihood, source: Vocabulary, needs_trees: bool
) -> Iterator[str]:
    """Yields the remarks about a segment that stderr counts."""
    if found.unscored:
        yield f"{found.unscored}: not scored"
    elif record.status in UNPARSED:
        yield f"{record.status}: scored without a tree"
    elif needs_trees and record.status == OK and not record.heads:
        yield "without a tree: scored as pieces that stand for themselves"
    if not found.unscored and not source.has_all(record.pieces or ()):
        yield UNKNOWN
    if found.has_unknown:
        yield "with target pieces that the vocabulary lacks: scored as <unk>"


def as_tsv(record: Record, found: Likelihood) -> bytes:
    """`LOG_PROB<TAB>LENGTH`; log_prob is `nan` where nothing was scored."""
    return f"{found.log_prob:.4f}\t{found.length}\n".encode()


def as_jsonl(record: Record, found: Likelihood) -> bytes:
    """The record with log_prob, null where nothing was scored, and length."""
    log_prob = None if math.isnan(found.log_prob) else round(found.log_prob, 4)
    record.extra |= {"log_prob": log_prob, "length": found.length}
    return records.to_bytes(record)


FORMATS = {"tsv": as_tsv, "jsonl": as_jsonl}
