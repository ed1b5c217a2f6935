"""Lines of transitions, or records that have them, to text or CoNLL-U."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from synmt_cli.core.segments.comments import LINE, comment, placeholder
from synmt_cli.core.transitions.delinearizer import (
    Broken,
    Delinearized,
    Delinearizer,
    begins_like_pieces,
)
from synmt_cli.errors import ConfigError, DataError
from synmt_cli.formats import conllu, record
from synmt_cli.formats.record import EMPTY, OK, UNPARSED, Record
from synmt_cli.io import reading

Format = Literal["text", "conllu"]
PIECES_HINT = "; if these tokens are pieces (▁), --spm MODEL is needed"


class TransitionLine(NamedTuple):
    """A line of transitions, or a record. number: in its file, from 1. id: if it gives none."""

    source: str
    number: int
    id: str
    data: bytes
    is_json: bool


class Written(NamedTuple):
    """The output of a line. n_repairs: tokens left out, put in, or read as something else.

    status: the status of the record. seems_pieces: whether its words look like pieces.
    """

    data: bytes
    n_repairs: int
    status: str
    seems_pieces: bool


@dataclass(frozen=True, slots=True)
class DelinearizeJob:
    """Turns each line into a line of text or a block of CoNLL-U.

    strict: a failed or skipped record is a DataError.
    """

    delinearizer: Delinearizer
    format: Format = "text"
    strict: bool = False

    def run(self, line: TransitionLine) -> Written:
        """The output of a line. Raises DataError, ConfigError."""
        if line.is_json:
            one = record.from_bytes(line.data, line.source, line.number, line.id)
            self._check(one, line)
            tokens = one.transitions or []
        else:
            text = reading.decode(line.data, line.source, line.number)
            one = Record(line.id, "", OK if text else EMPTY)
            tokens = text.split(" ") if text else []
        seems_pieces = self.delinearizer.vocabulary is None and begins_like_pieces(tokens)
        try:
            sentence = self.delinearizer.sentence(tokens, escaped=not line.is_json)
        except Broken as error:
            problem = f"{error}{PIECES_HINT if seems_pieces else ''}"
            raise DataError(line.source, line.number, problem) from None
        if self.format == "text":
            written = sentence.text + "\n"
        else:
            written = block(sentence, one, has_tree=one.status not in UNPARSED)
        data = conllu.encoded(written)
        return Written(data, sentence.n_repairs, one.status, seems_pieces)

    def _check(self, one: Record, line: TransitionLine) -> None:
        where = f"{line.source}:{line.number}"
        if self.strict and one.status in UNPARSED:
            raise DataError(line.source, line.number, one.reason or one.status)
        if one.transitions is None and one.status == OK:
            raise DataError(line.source, line.number, "field transitions is missing")
        vocabulary = self.delinearizer.vocabulary
        if one.vocab is None or not one.transitions:
            return
        if vocabulary is None:
            problem = f"pieces of the vocabulary {one.vocab}: --spm MODEL is needed"
            raise ConfigError(f"{where}: {problem}")
        needed = one.vocab.split("+")[-1]  # of SOURCE+TARGET: transitions are a target
        if vocabulary.fingerprint != needed:
            problem = f"{needed}, but {vocabulary.name} is {vocabulary.fingerprint}"
            raise ConfigError(f"{where}: transitions of vocabulary {problem}")


def block(sentence: Delinearized, one: Record, part: int = 0, has_tree: bool = True) -> str:
    """The block of a sentence, or a placeholder if it has no words or no tree.

    one: gives the id. part: the number of the sentence, from 1, if its line has several.
    """
    id = f"{one.id}.{part}" if part else one.id
    lines = [comment("sent_id", id)]
    if part:
        lines.append(comment(LINE, one.id))
    lines.append(comment("text", sentence.text))
    if not (sentence.forms and has_tree):
        status = EMPTY if one.status == OK else one.status
        return placeholder("".join(f"{line}\n" for line in lines), status, one.reason)
    glued = [*sentence.glued, False][1:]
    rows = zip(sentence.forms, sentence.heads, sentence.deprels, glued, strict=True)
    for word, (form, head, deprel, is_glued) in enumerate(rows, 1):
        misc = "SpaceAfter=No" if is_glued else "_"
        lines.append(f"{word}\t{form}\t_\t_\t_\t_\t{head + 1}\t{deprel}\t_\t{misc}")
    return "\n".join(lines) + "\n\n"
