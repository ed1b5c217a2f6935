"""Batches of CoNLL-U as lines of transitions, and the symbols that these need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from synmt_cli.core.segments.alignment import record_of
from synmt_cli.core.segments.work import Done, Work, groups
from synmt_cli.core.text.vocabulary import symbol_problem
from synmt_cli.core.transitions.linearizer import Linearized, Linearizer
from synmt_cli.errors import DataError, SynmtError, quoted
from synmt_cli.formats import conllu, record
from synmt_cli.formats.conllu import Sentence
from synmt_cli.formats.record import Record
from synmt_cli.formats.transitions import GLUE, LEFT, RIGHT, arc_tokens, to_line


@dataclass(frozen=True, slots=True)
class LinearizeJob:
    """One line for each line of text: tokens, or with `as_json` a record."""

    linearizer: Linearizer
    as_json: bool = False
    strict: bool = False

    def run(self, work: Work) -> Done:
        """The lines of a batch. Never raises a SynmtError: what was done before it counts."""
        done = Done()
        try:
            lines = groups(conllu.sentences(work.batch), work.sizes)
            for number, sentences in enumerate(lines, work.first):
                linear = self.linearizer.linearize(sentences)
                place = sentences[0].source, sentences[0].line
                done.count(linear.status, linear.reason, place, self.strict)
                done.count_lifted(linear.n_lifted)
                done.lines.append(self._line(linear, sentences, str(number)))
        except SynmtError as error:
            done.error = error
        return done

    def _line(self, linear: Linearized, sentences: Sequence[Sentence], number: str) -> bytes:
        of_pieces = self.linearizer.vocabulary is not None
        if not self.as_json:
            return to_line(linear.tokens, of_pieces).encode() + b"\n"
        found, _ = record_of(sentences, number)
        one = Record(found.id, found.src, linear.status, linear.reason)
        if linear.status in ("ok", "empty"):
            one.transitions = linear.tokens
        if self.linearizer.vocabulary is not None:
            one.vocab = self.linearizer.vocabulary.fingerprint
        return record.to_bytes(one)


def symbols(sentences: Iterable[Sentence], split: bool = False, glue: bool = False) -> list[str]:
    """The symbols that the transitions of these sentences may be, sorted: one a token.

    Both directions of every label that an arc has, so that other trees need few that are not
    here. Raises DataError for a label that cannot be part of a symbol's name.
    """
    found = {GLUE} if glue else set()
    known: set[str] = set()
    for sentence in sentences:
        for label, head in zip(sentence.deprels, sentence.heads, strict=True):
            if head == 0 or label in known:
                continue
            tokens = (*arc_tokens(LEFT, label, split), *arc_tokens(RIGHT, label, split))
            if problem := next(filter(None, map(symbol_problem, tokens)), None):
                place = sentence.source, sentence.line
                raise DataError(*place, f"label {quoted(label)} cannot be of a symbol: {problem}")
            known.add(label)
            found.update(tokens)
    return sorted(found)
