"""Trees and the line of text that they belong to: from CoNLL-U sentences to a record.

The tokens of the sentences are found in the line character by character; only white space
may stand between them or differ inside them. Where more differs, TokenRange (MISC, written
by `synmt parse`) says where they are. Where neither fits, the record has no tree and its
status is `failed`. A sentence without `# text` is put together from its forms.

Every step is linear in the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

from synmt_cli.errors import quoted
from synmt_cli.formats.conllu import Sentence
from synmt_cli.formats.conllu_rows import FORM, MISC
from synmt_cli.formats.record import STATUSES, Record

NONE = -1  # the word of a piece that belongs to no word
LONGEST_GAP = 1000  # characters of white space between two sentences
_RANGE = re.compile(r"(?:^|\|)TokenRange=([0-9]{1,9}):([0-9]{1,9})(?:\||$)")
_SPACES_AFTER = re.compile(r"(?:^|\|)SpacesAfter=([^|]*)")
_ESCAPED = re.compile(r"\\([strnp\\])")
_UNESCAPED = {"s": " ", "t": "\t", "r": " ", "n": " ", "p": "|", "\\": "\\"}
Span = tuple[int, int]


class Mismatch(Exception):
    """Why tokens are not those of a text."""


@dataclass(slots=True)
class Surface:
    """The tokens of a line as they are written: a multiword token is one.

    first_words: the first word of each token, 0-based over all sentences of the line.
    """

    forms: list[str]
    miscs: list[str]
    first_words: list[int]


def segments(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """The sentences of each line: those of one `# synmt_line`, else one at a time."""
    group: list[Sentence] = []
    before: str | None = None
    for sentence in sentences:
        metadata = sentence.metadata()
        line = metadata.get("synmt_line")
        if group and begins_segment(before, line, metadata.get("sent_id")):
            yield group
            group = []
        group.append(sentence)
        before = line
    if group:
        yield group


def begins_segment(before: str | None, line: str | None, sent_id: str | None) -> bool:
    """Whether a sentence of `# synmt_line = line` begins a new line of text.

    before: synmt_line of the sentence before it. A `.1` begins one even if the number is the
    same, as where two files follow one another.
    """
    return line is None or line != before or sent_id == f"{line}.1"


def record_of(sentences: Sequence[Sentence], id: str) -> tuple[Record, list[tuple[int, int, int]]]:
    """The record of one line, and (begin, end, first word) of each of its tokens.

    id: for a line whose comments give none. The reason of a failure names a character.
    """
    metadata = sentences[0].metadata()
    id = metadata.get("synmt_line") or metadata.get("sent_id") or id
    status = metadata.get("synmt_status", "ok")
    if status != "ok":
        return _treeless(id, metadata.get("text", ""), status, metadata.get("synmt_reason")), []
    surface = _surface(sentences)
    src = _text(sentences, metadata)
    try:
        spans = _spans(src, surface)
    except Mismatch as reason:
        return _treeless(id, src, "failed", str(reason)), []
    return _record(sentences, id, src, surface, spans)


def _treeless(id: str, src: str, status: str, reason: str | None) -> Record:
    if status == "empty":
        return Record(id, src, status, None, [], [], [], [], [])
    if status not in STATUSES:
        status, reason = "failed", f"synmt_status = {status}"
    return Record(id, src, status, reason or f"synmt_status = {status}")


def _record(
    sentences: Sequence[Sentence], id: str, src: str, surface: Surface, spans: list[Span]
) -> tuple[Record, list[tuple[int, int, int]]]:
    starts = [0, *accumulate(len(sentence.words) for sentence in sentences)]
    n_words = starts.pop()
    ends = [*surface.first_words[1:], n_words]
    record = Record(
        id,
        src,
        words=list(chain.from_iterable(sentence.forms for sentence in sentences)),
        spans=[
            [begin, end]
            for (begin, end), first, after in zip(spans, surface.first_words, ends, strict=True)
            for _ in range(first, after)
        ],
        heads=[
            head - 1 + start if head else -1
            for sentence, start in zip(sentences, starts, strict=True)
            for head in sentence.heads
        ],
        deprels=list(chain.from_iterable(sentence.deprels for sentence in sentences)),
        upos=list(chain.from_iterable(sentence.upos for sentence in sentences)),
        sents=starts,
    )
    tokens = [(b, e, first) for (b, e), first in zip(spans, surface.first_words, strict=True)]
    return record, tokens


def _surface(sentences: Sequence[Sentence]) -> Surface:
    rows: list[list[str]] = []
    first_words: list[int] = []
    start = 0
    for sentence in sentences:
        n = len(sentence.words)
        if n == len(sentence.rows):
            rows += sentence.words
            first_words += range(start, start + n)
        else:
            word = 0
            for first, last, row in [*sentence.ranges, (n + 1, n, [])]:
                rows += sentence.words[word : first - 1]
                first_words += range(start + word, start + first - 1)
                if row:
                    rows.append(row)
                    first_words.append(start + first - 1)
                word = last
        start += n
    return Surface([row[FORM] for row in rows], [row[MISC] for row in rows], first_words)


def _text(sentences: Sequence[Sentence], metadata: dict[str, str]) -> str:
    """The line: the texts of its sentences, one behind the other as `synmt parse` cut it."""
    if len(sentences) == 1 and "text" in metadata:
        return metadata["text"]
    line = ""
    for sentence in sentences:
        surface = _surface([sentence])
        text = sentence.comment("text")
        if line and (match := _RANGE.search(surface.miscs[0])):
            gap = int(match[1]) - len(line)  # some tools trim the text
            line += " " * gap if gap <= LONGEST_GAP else ""
        line += _rebuilt(surface) if text is None else text
    return line


def _rebuilt(surface: Surface) -> str:
    parts: list[str] = []
    for form, misc in zip(surface.forms, surface.miscs, strict=True):
        parts += form, _space_after(misc)
    return "".join(parts[:-1])


def _space_after(misc: str) -> str:
    if misc == "_":
        return " "
    if "SpaceAfter=No" in misc.split("|"):
        return ""
    if match := _SPACES_AFTER.search(misc):
        return _ESCAPED.sub(lambda escape: _UNESCAPED[escape[1]], match[1])
    return " "


def _spans(src: str, surface: Surface) -> list[Span]:
    """[begin, end) of each token in `src`. Raises Mismatch."""
    try:
        return _aligned(src, surface.forms)
    except Mismatch:
        if ranges := _ranges(src, surface):
            return ranges
        raise


def _aligned(src: str, forms: Sequence[str]) -> list[Span]:
    spans = []
    at, n = 0, len(src)
    for form in forms:
        if at < n and src[at] == " ":
            at += 1
        if src.startswith(form, at):
            end = at + len(form)
        else:
            at, end = _loosely_at(src, at, form)
        spans.append((at, end))
        at = end
    if src[at:].strip():
        raise Mismatch(f"no token for {quoted(src[at:].strip())} at character {at + 1} of the text")
    return spans


def _loosely_at(src: str, at: int, form: str) -> Span:
    """Where `form` is, when only white space differs. Raises Mismatch."""
    begin: int | None = None
    for character in form:
        if character.isspace():
            continue
        while at < len(src) and src[at].isspace():
            at += 1
        if not src.startswith(character, at):
            problem = f"token {quoted(form)} is not at character {at + 1} of the text"
            raise Mismatch(problem)
        begin = at if begin is None else begin
        at += 1
    return (at, at) if begin is None else (begin, at)


def _ranges(src: str, surface: Surface) -> list[Span] | None:
    """TokenRange of every token, if each has one that rises and holds the token; else None."""
    spans: list[Span] = []
    before = 0
    for form, misc in zip(surface.forms, surface.miscs, strict=True):
        match = _RANGE.search(misc)
        if match is None:
            return None
        begin, end = int(match[1]), int(match[2])
        if not before <= begin <= end <= len(src):
            return None
        if "".join(src[begin:end].split()) != "".join(form.split()):
            return None
        spans.append((begin, end))
        before = end
    return spans


def piece_words(offsets: Iterable[Span], tokens: Sequence[tuple[int, int, int]]) -> list[int]:
    """The word of each piece: that of the token it overlaps most, the first of equals.

    offsets: [begin, end) of each piece, begins rising. tokens: (begin, end, first word),
    rising. NONE for a piece that overlaps no token.

    >>> piece_words([(0, 2), (2, 5), (5, 6)], [(0, 3, 0), (3, 5, 1)])
    [0, 1, -1]
    """
    found = []
    first, n = 0, len(tokens)
    for begin, end in offsets:
        while first < n and tokens[first][1] <= begin:
            first += 1
        word, most, at = NONE, 0, first
        while at < n and tokens[at][0] < end:
            token_begin, token_end, token_word = tokens[at]
            overlap = min(end, token_end) - max(begin, token_begin)
            if overlap > most:
                word, most = token_word, overlap
            at += 1
        found.append(word)
    return found
