"""CoNLL-U to lines of transitions, and the symbols that these need."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from synmt_cli.core.jobs.done import Done, do
from synmt_cli.core.jobs.work import Work, lines
from synmt_cli.core.segments.alignment import record_of
from synmt_cli.core.segments.bad_trees import OnBadTree
from synmt_cli.core.text.vocabulary import symbol_problem
from synmt_cli.core.transitions.linearizer import Linearized, Linearizer
from synmt_cli.errors import DataError, quoted
from synmt_cli.formats import record
from synmt_cli.formats.conllu import DEPREL, Sentence
from synmt_cli.formats.record import EMPTY, OK, Record
from synmt_cli.formats.transitions import GLUE, LEFT, RIGHT, arc_tokens, to_line


@dataclass(frozen=True, slots=True)
class LinearizeJob:
    """One line for each line of text: tokens, or with `as_json` a record."""

    linearizer: Linearizer
    as_json: bool = False
    strict: bool = False
    on_bad_tree: OnBadTree = "error"

    def run(self, work: Work) -> Done:
        """The lines of some work. Never raises a SynmtError: the result keeps it."""
        return do(self._lines, work)

    def _lines(self, work: Work, done: Done) -> Iterator[bytes]:
        for number, sentences in lines(work, self.on_bad_tree):
            linear = self.linearizer.linearize(sentences)
            place = sentences[0].source, sentences[0].line
            done.count(linear.status, linear.reason, place, self.strict)
            done.count_lifted(linear.n_lifted)
            yield self._line(linear, sentences, str(number))

    def _line(self, linear: Linearized, sentences: Sequence[Sentence], number: str) -> bytes:
        vocabulary = self.linearizer.vocabulary
        if not self.as_json:
            return to_line(linear.tokens, vocabulary is not None).encode() + b"\n"
        of_tree, _ = record_of(sentences, number)
        one = Record(of_tree.id, of_tree.src, linear.status, linear.reason)
        if linear.status in (OK, EMPTY):
            one.transitions = linear.tokens
        if vocabulary is not None:
            one.vocab = vocabulary.fingerprint
        return record.to_bytes(one)


def symbols(sentences: Iterable[Sentence], split: bool = False, glue: bool = False) -> list[str]:
    """The symbols that transitions of these sentences may need, sorted: one for each token.

    They include both directions of every label of an arc, so that other trees need few more.
    Raises DataError for a label that cannot be part of a symbol's name.
    """
    names = {GLUE} if glue else set()
    known: set[str] = set()
    for sentence in sentences:
        for row, head in zip(sentence.words, sentence.heads, strict=True):
            label = row[DEPREL]
            if head == 0 or label in known:
                continue
            tokens = (*arc_tokens(LEFT, label, split), *arc_tokens(RIGHT, label, split))
            if problem := next(filter(None, map(symbol_problem, tokens)), None):
                place = sentence.source, sentence.line_of(row)
                raise DataError(*place, f"label {quoted(label)} cannot be of a symbol: {problem}")
            known.add(label)
            names.update(tokens)
    return sorted(names)
