"""Task tags around the pieces of a source: <TR> asks for a translation, <PA> for a parse."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from synmt_cli.core.text.vocabulary import SPACE, Vocabulary
from synmt_cli.core.transitions.brackets import shown
from synmt_cli.core.trees.features import EMITTED, tree_of
from synmt_cli.errors import ConfigError, Place
from synmt_cli.formats.record import NO_WORD, Record

TRANSLATE, PARSE = TAGS = ("<TR>", "<PA>")


def tagged(record: Record, tag: str = TRANSLATE) -> Record:
    """The record with a task tag at both ends of its pieces; tags that are there stay.

    A tag at one end alone, as in a long source that was cut, is repeated at the other. A record
    without pieces is returned unchanged.
    """
    if not record.pieces:
        return record
    begins, ends = record.pieces[0] in TAGS, record.pieces[-1] in TAGS
    if begins or ends:
        tag = record.pieces[0] if begins else record.pieces[-1]
    before, after = [] if begins else [tag], [] if ends else [tag]
    piece_word = record.piece_word
    if piece_word is not None:
        piece_word = [*(NO_WORD for _ in before), *piece_word, *(NO_WORD for _ in after)]
    return changed(record, pieces=[*before, *record.pieces, *after], piece_word=piece_word)


def untagged(pieces: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The task tag of a source, "" where it has none, and the pieces without tags."""
    if not pieces or pieces[0] not in TAGS:
        return "", pieces
    return pieces[0], pieces[1:-1] if pieces[-1] in TAGS else pieces[1:]


def asks_for_parse(record: Record) -> bool:
    """Whether a record's pieces ask for brackets instead of a translation."""
    return bool(record.pieces) and (record.pieces or [""])[0] == PARSE


def parse_text(vocabulary: Vocabulary, ids: Sequence[int]) -> str:
    """The text of a model's answer to a record that asks for a parse, in the form of its `tgt`."""
    texts = {symbol: SPACE + shown(symbol) for symbol in vocabulary.symbols if symbol not in TAGS}
    return vocabulary.join([texts.get(name, name) for name in vocabulary.names(ids)])


def refuse_untagged(record: Record, place: Place) -> None:
    """Raises ConfigError if a record has pieces without a task tag at both ends."""
    pieces = record.pieces
    if pieces and not (pieces[0] in TAGS and pieces[-1] in TAGS):
        raise ConfigError(
            f"{place[0]}:{place[1]}: no task tags around the pieces; "
            "synmt multitask --spm MODEL makes such records"
        )


def refuse_parse(record: Record, place: Place) -> None:
    """Raises ConfigError if a record of dev asks for a parse, or is untagged."""
    refuse_untagged(record, place)
    if asks_for_parse(record):
        raise ConfigError(
            f"{place[0]}:{place[1]}: asks for a parse, but training.metric, bleu, is of "
            "translations; synmt multitask --task translate makes records for dev"
        )


def changed(record: Record, **changes: Any) -> Record:
    """A copy with other fields. Features that `featurize --emit` wrote are computed anew."""
    new = replace(record, extra=dict(record.extra), **changes)
    for name in EMITTED:
        if name in new.extra:
            new.extra[name] = EMITTED[name](tree_of(new))
    return new
