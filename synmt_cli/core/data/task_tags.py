"""Task tags around the pieces of a source: a translation, or a parse, is asked for.

`synmt multitask` writes records with them, training refuses records without them, and
translating adds them to sources that have none (Currey and Heafield 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from synmt_cli.core.text.vocabulary import SPACE, Vocabulary
from synmt_cli.core.transitions.brackets import shown
from synmt_cli.core.trees.features import EMITTED, tree_of
from synmt_cli.errors import ConfigError, Place, printable
from synmt_cli.formats.record import Record

TRANSLATE, PARSE = "<TR>", "<PA>"
TAGS = (TRANSLATE, PARSE)


def tagged(record: Record, tag: str = TRANSLATE) -> Record:
    """The record with a task tag at both ends of its pieces, unless there are tags already.

    A tag at one end alone, as where a long source was cut, is put at the other end, too. A
    record without pieces is returned unchanged.
    """
    if not record.pieces:
        return record
    begins, ends = record.pieces[0] in TAGS, record.pieces[-1] in TAGS
    if begins or ends:
        tag = record.pieces[0] if begins else record.pieces[-1]
    before, after = [] if begins else [tag], [] if ends else [tag]
    piece_word = record.piece_word
    if piece_word is not None:
        piece_word = [*(-1 for _ in before), *piece_word, *(-1 for _ in after)]
    return changed(record, pieces=[*before, *record.pieces, *after], piece_word=piece_word)


def asks_for_parse(record: Record) -> bool:
    """Whether the pieces of a record ask for brackets instead of a translation."""
    return (record.pieces or [""])[0] == PARSE


def parse_text(vocabulary: Vocabulary, ids: Sequence[int]) -> str:
    """The text of a model's output for a record that asks for a parse, written as its `tgt` is."""
    texts = {symbol: SPACE + shown(symbol) for symbol in vocabulary.symbols if symbol not in TAGS}
    return vocabulary.join([texts.get(name, name) for name in vocabulary.names(ids)])


def refuse_untagged(record: Record, place: Place) -> None:
    """Raises ConfigError if a record has pieces without a task tag at both ends."""
    pieces = record.pieces
    if pieces and not (pieces[0] in TAGS and pieces[-1] in TAGS):
        raise ConfigError(
            f"{printable(place[0])}:{place[1]}: no task tags around the pieces; "
            "synmt multitask --spm MODEL makes such records"
        )


def changed(record: Record, **changes: Any) -> Record:
    """A copy with some fields changed; features of `featurize --emit` are computed again."""
    new = replace(record, extra=dict(record.extra), **changes)
    for name in EMITTED:
        if name in new.extra:
            new.extra[name] = EMITTED[name](tree_of(new))
    return new
