"""Trees and the line of text that they belong to: from CoNLL-U sentences to a record.

The tokens of the sentences are looked for in the line character by character; only white space
may stand between them or differ inside them. If anything else differs, TokenRange (MISC, written
by `synmt parse`) says where they are. If that does not fit either, the record has no tree and
its status is `failed`. The text of a sentence without `# text` is made from its forms.

Every step is linear in the line.
"""

import operator
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, chain

from synmt_cli.core.segments.comments import LINE, status_of_line
from synmt_cli.errors import quoted
from synmt_cli.formats.conllu import FORM, MISC, Sentence
from synmt_cli.formats.record import EMPTY, FAILED, NO_WORD, OK, Record

LONGEST_GAP = 1000  # characters of white space between two sentences
_RANGE = re.compile(r"(?:^|\|)TokenRange=([0-9]{1,9}):([0-9]{1,9})(?:\||$)")
_SPACES_AFTER = re.compile(r"(?:^|\|)SpacesAfter=([^|]*)")
_ESCAPED = re.compile(r"\\([strn])")
_UNESCAPED = {"s": " ", "t": "\t", "r": " ", "n": " "}  # no line feed inside a line
Span = tuple[int, int]
_BEYOND = [sys.maxsize, sys.maxsize]


class Mismatch(Exception):
    """The reason why tokens are not those of a text."""


@dataclass(slots=True)
class Tokens:
    """The tokens of a line as written: a multiword token is one.

    first_words: the first word of each token, 0-based over all sentences of the line. spans:
    [begin, end) of each in characters of the line.
    """

    rows: list[list[str]]
    first_words: Sequence[int]
    spans: list[list[int]] = field(default_factory=list)


def record_of(sentences: Sequence[Sentence], id: str) -> tuple[Record, Tokens]:
    """The record of one line, and its tokens; no tokens if the record has no tree.

    id: for a line whose comments give none. The reason of a failure names a character. Raises
    ValueError without sentences.
    """
    if not sentences:
        raise ValueError("a line has at least one sentence")
    metadata = sentences[0].metadata()
    id = metadata.get(LINE) or metadata.get("sent_id") or id
    status, reason = status_of_line(sentences)
    if status != OK:
        # The one word of a placeholder is not text; several blocks are a line that was parsed.
        text = metadata.get("text", "") if len(sentences) == 1 else text_of(sentences, metadata)
        if status == EMPTY:
            return Record(id, text, EMPTY, None, [], [], [], [], []), Tokens([], [])
        return Record(id, text, status, reason), Tokens([], [])
    tokens = tokens_of(sentences)
    src = text_of(sentences, metadata)
    try:
        tokens.spans = _aligned(src, [row[FORM] for row in tokens.rows])
    except Mismatch as problem:
        if not (ranges := _ranges(src, tokens.rows)):
            return Record(id, src, FAILED, str(problem)), Tokens([], [])
        tokens.spans = ranges
    return _record(sentences, id, src, tokens), tokens


def _record(sentences: Sequence[Sentence], id: str, src: str, tokens: Tokens) -> Record:
    if len(sentences) == 1:
        (one,) = sentences
        words, deprels, upos = one.forms, one.deprels, one.upos
        heads = [head - 1 for head in one.heads]
        sents = [0]
    else:
        words, deprels, upos = (
            list(chain.from_iterable(columns))
            for columns in zip(*((s.forms, s.deprels, s.upos) for s in sentences), strict=True)
        )
        sents = [0, *accumulate(len(sentence.words) for sentence in sentences)][:-1]
        heads = [
            head - 1 + start if head else -1
            for sentence, start in zip(sentences, sents, strict=True)
            for head in sentence.heads
        ]
    spans = tokens.spans
    if len(spans) < len(words):  # multiword tokens: their words share a span
        ends = [*tokens.first_words[1:], len(words)]
        lengths = map(operator.sub, ends, tokens.first_words)
        spans = [span for span, n in zip(spans, lengths, strict=True) for _ in range(n)]
    return Record(
        id,
        src,
        words=words,
        spans=spans,
        heads=heads,
        deprels=deprels,
        upos=upos,
        sents=sents,
    )


def tokens_of(sentences: Sequence[Sentence]) -> Tokens:
    """The written tokens of a line: multiword tokens in place of their words, no empty nodes."""
    if len(sentences) == 1 and len(sentences[0].rows) == len(sentences[0].words):
        return Tokens(sentences[0].rows, range(len(sentences[0].rows)))
    rows: list[list[str]] = []
    first_words: list[int] = []
    start = 0
    for sentence in sentences:
        n, word = len(sentence.words), 0
        for first, last, row in [*sentence.ranges, (n + 1, n, [])]:
            rows += sentence.words[word : first - 1]
            first_words += range(start + word, start + first - 1)
            if row:
                rows.append(row)
                first_words.append(start + first - 1)
            word = last
        start += n
    return Tokens(rows, first_words)


def text_of(sentences: Sequence[Sentence], metadata: dict[str, str]) -> str:
    """The line: the texts of its sentences, with what was between them.

    TokenRange may count from the start of the line, as in `synmt parse`, or of the document.
    """
    if len(sentences) == 1 and "text" in metadata:
        return metadata["text"]
    line = after = ""
    begin = 0  # of the line, as TokenRange counts
    for sentence in sentences:
        tokens = tokens_of([sentence])
        parts = [part for row in tokens.rows for part in (row[FORM], _space_after(row[MISC]))]
        text = sentence.comment("text")
        if text is None:
            text = "".join(parts[:-1])
        match = _RANGE.search(tokens.rows[0][MISC])
        if match and not line:
            begin = int(match[1]) - len(text) + len(text.lstrip())
        gap = int(match[1]) - begin - len(line) if match else -1  # some tools trim the text
        if line and 0 <= gap <= LONGEST_GAP:
            line += " " * gap
        elif line[-1:].strip() and text[:1].strip():
            line += after
        line += text
        after = parts[-1]
    return line


def _space_after(misc: str) -> str:
    if misc == "_":
        return " "
    if "SpaceAfter=No" in misc.split("|"):
        return ""
    if match := _SPACES_AFTER.search(misc):
        spaces = _ESCAPED.sub(lambda escape: _UNESCAPED[escape[1]], match[1])
        return spaces if not spaces.strip() else " "
    return " "


def _aligned(src: str, forms: Sequence[str]) -> list[list[int]]:
    """[begin, end) of each form in `src`. Raises Mismatch."""
    spans = []
    at, n = 0, len(src)
    for form in forms:
        if at < n and src[at] == " ":
            at += 1
        if src.startswith(form, at):
            end = at + len(form)
        else:
            at, end = _loosely_at(src, at, form)
        spans.append([at, end])
        at = end
    if src[at:].strip():
        raise Mismatch(f"no token for {quoted(src[at:].strip())} at character {at + 1} of the text")
    return spans


def _loosely_at(src: str, at: int, form: str) -> Span:
    """The span of `form` if only white space differs. Raises Mismatch."""
    begin: int | None = None
    for character in form:
        if character.isspace():
            continue
        while at < len(src) and src[at].isspace():
            at += 1
        begin = at if begin is None else begin
        if not src.startswith(character, at):
            raise Mismatch(_mismatch(src[begin:], begin, form))
        at += 1
    return (at, at) if begin is None else (begin, at)


def _mismatch(rest: str, begin: int, form: str) -> str:
    """Why `rest`, the text from character `begin` on, does not begin with `form`."""
    problem = f"token {quoted(form)} is not at character {begin + 1} of the text"
    for difference, same in _LOOKALIKES.items():
        of_text, of_token = (same(" ".join(text.split())) for text in (rest, form))
        # `a` is not `As` in another case, but Japanese has no space after a word.
        is_whole = difference != CASE or not of_text[len(of_token) :][:1].isalnum()
        if of_text.startswith(of_token) and is_whole:
            return f"{problem}, which differs in {difference}: normalise one of them"
    return problem


def _visible(text: str) -> str:
    return "".join(one for one in text if unicodedata.category(one) != "Cf")


CASE = "case"
# Differences between two spellings, and functions that make both the same.
_LOOKALIKES: dict[str, Callable[[str], str]] = {
    "Unicode composition (NFC, NFD)": partial(unicodedata.normalize, "NFC"),
    "invisible characters": _visible,
    "compatibility characters (NFKC)": partial(unicodedata.normalize, "NFKC"),
    CASE: lambda text: unicodedata.normalize("NFC", text).casefold(),
}


def _ranges(src: str, rows: Sequence[Sequence[str]]) -> list[list[int]] | None:
    """TokenRange of every token; None unless each has one, they rise, and each holds its token."""
    spans: list[list[int]] = []
    before = 0
    for row in rows:
        match = _RANGE.search(row[MISC])
        if match is None:
            return None
        begin, end = int(match[1]), int(match[2])
        if not before <= begin <= end <= len(src):
            return None
        if "".join(src[begin:end].split()) != "".join(row[FORM].split()):
            return None
        spans.append([begin, end])
        before = end
    return spans


def piece_words(
    offsets: Iterable[Span], spans: Sequence[Sequence[int]], first_words: Sequence[int]
) -> list[int]:
    """The word of each piece: that of the token it overlaps most, or of the first in a tie.

    offsets: [begin, end) of each piece, begins rising. spans: [begin, end) of each token,
    rising. first_words: the word of each token. NO_WORD for a piece that overlaps no token.

    >>> piece_words([(0, 2), (2, 5), (5, 6)], [[0, 3], [3, 5]], [0, 1])
    [0, 1, -1]
    """
    indices = []
    spans = [*spans, _BEYOND]
    at = 0
    token_begin, token_end = spans[0]
    for begin, end in offsets:
        while token_end <= begin:
            at += 1
            token_begin, token_end = spans[at]
        if end <= token_begin or begin == end:
            indices.append(NO_WORD)
        elif end <= token_end:
            indices.append(first_words[at])
        else:
            token = _most_overlapped(begin, end, spans, at)
            indices.append(NO_WORD if token is None else first_words[token])
    return indices


def _most_overlapped(begin: int, end: int, spans: Sequence[Sequence[int]], at: int) -> int | None:
    """The token from `at` on that [begin, end) overlaps most; None if all of them are empty."""
    token, most = None, 0
    while spans[at][0] < end:
        overlap = min(end, spans[at][1]) - max(begin, spans[at][0])
        if overlap > most:
            token, most = at, overlap
        at += 1
    return token
