"""The output of `synmt translate` for a segment, and the remarks that it counts."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

from synmt_cli.core.decoding.translator import SearchSettings, Translated
from synmt_cli.core.jobs.delinearize import block
from synmt_cli.core.jobs.translation.input import UNKNOWN
from synmt_cli.core.segments import segment
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.core.transitions.delinearizer import Delinearizer
from synmt_cli.errors import printable
from synmt_cli.formats import record
from synmt_cli.formats.conllu import encoded
from synmt_cli.formats.record import UNPARSED


def remarks(
    one: Translated, settings: SearchSettings, source: Vocabulary, needs_trees: bool
) -> Iterator[str]:
    """Yields the remarks about a segment that stderr counts."""
    if one.record.status in UNPARSED:
        yield f"{one.record.status}: translated without a tree"
    elif needs_trees and one.lines and not one.record.heads:
        yield "without a tree: translated as pieces that stand for themselves"
    if not source.has_all(one.record.pieces or ()):
        yield UNKNOWN
    if one.n_parts > 1:
        once = ", with one translation each" if settings.nbest > 1 else ""
        yield f"of more than {settings.max_pieces:,} pieces: translated in parts{once}"
    if any(line.cut for line in one.lines):
        yield "reached the length limit: their translation is cut"
    if any(line.n_closing for line in one.lines):
        yield "ended before their tree was complete: arcs were added"


def as_text(one: Translated) -> bytes:
    """`TRANSLATION`."""
    return segment.line(one.lines[0].text if one.lines else "")


def as_tsv(one: Translated) -> bytes:
    """`ID<TAB>SCORE<TAB>TRANSLATION` for each translation, in order.

    A segment without translations has one row, with an empty one.
    """
    id = printable(one.record.id)
    rows = [f"{id}\t{line.score:.4f}\t{line.text.replace(chr(9), ' ')}" for line in one.lines]
    return b"".join(map(segment.line, rows or [f"{id}\t0.0000\t"]))


def as_jsonl(one: Translated, nbest: int) -> bytes:
    """The record with hyp and score, further fields that are set, and nbest if that is over 1."""
    fields = [
        {"hyp": line.text, "score": round(line.score, 4)}
        | ({"cut": True} if line.cut else {})
        | ({"hyp_transitions": [*chain(*line.transitions)]} if line.transitions else {})
        | ({"closing": line.n_closing} if line.n_closing else {})
        for line in one.lines
    ]
    for name in ("hyp", "score", "cut", "hyp_transitions", "closing", "nbest"):  # of an earlier run
        one.record.extra.pop(name, None)
    one.record.extra |= fields[0] if fields else {"hyp": "", "score": 0.0}
    if nbest > 1:
        one.record.extra["nbest"] = fields
    return record.to_bytes(one.record)


def written(
    format: str, target: Vocabulary, counts: Counter[str], nbest: int
) -> Callable[[Translated], bytes]:
    """The function from a segment to bytes.

    format: text, tsv, jsonl or conllu. counts: how often each remark was made; the function may
    add to them. nbest: how many translations were asked for.
    """
    delinearizer = Delinearizer(target, repair=True)

    def as_conllu(one: Translated) -> bytes:
        """The block of the first translation, or the blocks of its parts if it has several."""
        parts = one.lines[0].transitions if one.lines else ([],)
        sentences = [delinearizer.sentence(tokens, escaped=False) for tokens in parts]
        if any(sentence.n_repairs for sentence in sentences):
            counts["made no tree: it was repaired"] += 1
        numbers = range(1, len(parts) + 1) if len(parts) > 1 else [0]
        blocks = (block(s, one.record, n) for s, n in zip(sentences, numbers, strict=True))
        return encoded("".join(blocks))

    forms: dict[str, Callable[[Translated], bytes]] = {
        "text": as_text,
        "tsv": as_tsv,
        "jsonl": partial(as_jsonl, nbest=nbest),
        "conllu": as_conllu,
    }
    return forms[format]
