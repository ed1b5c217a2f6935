"""CoNLL-U: one word a line, ten columns between TABs, a blank line after a sentence.

https://universaldependencies.org/format.html. Only LF ends a line and only TAB separates
columns, so a FORM may hold any other character. Every sentence read is a tree: word ids run
from 1, each HEAD is 0 or a word, exactly one HEAD is 0, no word is above itself. No column is
empty. Comments stand before the first word. HEAD may be anything in sentences that are to be
parsed.

Memory is one sentence and a chunk of the stream. A sentence has at most SENTENCE_LIMIT bytes.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from synmt_cli.errors import DataError, Place, counted, quoted
from synmt_cli.formats.arcs import all_reach_root, node_on_cycle
from synmt_cli.io import reading

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC = range(10)
NO_HEAD = "_"  # the HEAD of a word without a tree
SENTENCE_LIMIT = 32 * 2**20  # bytes
N_CACHED = 2**16  # longer sentences are read row by row

# What a file of something else is, by its first line.
TEXT_ADVICE = "; text has no trees: synmt parse makes them"
JSONL_ADVICE = "; this looks like JSONL: give the CoNLL-U from which synmt featurize made it"
_OBJECT = re.compile(r'\s*\{\s*["}]')  # how a record of JSONL begins

# At most nine digits, ASCII: int() alone would take +1, 1_0, ١ and a million digits.
_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
_WORD_ID = re.compile(r"[1-9][0-9]{0,8}")
_RANGE_ID = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})")
_EMPTY_ID = re.compile(r"(0|[1-9][0-9]{0,8})\.([1-9][0-9]{0,8})")
_NOT_PLAIN = ("\t\t", "\t\n", "\0")  # an empty column, or a character that no column may hold

_BLOCK_END = re.compile(rb"[^\n]\n\n")

_ids: list[str] = []  # "1", "2", … as far as a sentence has needed them
_values: dict[str, int] = {"0": 0}  # the same strings -> numbers


@dataclass(slots=True)
class Sentence:
    """A sentence with its tree, and every line of its block.

    source, line: the file and the physical line (from 1) where the block begins. comments:
    with their `#`. rows: every line below them, split, ranges and empty nodes included.
    words: the rows of syntactic words, the same lists as in `rows`. heads: the 1-based HEAD
    of each word as in the file, 0 is the root; empty where it was not read.
    """

    comments: list[str]
    rows: list[list[str]]
    words: list[list[str]]
    heads: list[int]
    source: str = field(default="", compare=False)
    line: int = field(default=1, compare=False)

    def line_of(self, row: list[str]) -> int:
        """The physical line of one of the rows."""
        at = next(i for i, one in enumerate(self.rows) if one is row)
        return self.line + len(self.comments) + at

    @property
    def forms(self) -> list[str]:
        """FORM of each word."""
        return [row[1] for row in self.words]

    @property
    def upos(self) -> list[str]:
        """UPOS of each word."""
        return [row[3] for row in self.words]

    @property
    def deprels(self) -> list[str]:
        """DEPREL of each word, subtypes included."""
        return [row[7] for row in self.words]

    @property
    def ranges(self) -> list[tuple[int, int, list[str]]]:
        """(first word, last word, row) of each multiword token, 1-based as in the file."""
        if len(self.rows) == len(self.words):
            return []
        matches = ((_RANGE_ID.fullmatch(row[ID]), row) for row in self.rows)
        return [(int(match[1]), int(match[2]), row) for match, row in matches if match]

    def metadata(self) -> dict[str, str]:
        """Every `# key = value` comment; the first of a key counts.

        One space after `=` belongs to the syntax, any other to the value.
        """
        values: dict[str, str] = {}
        for comment in self.comments:
            key, equals, value = comment.partition("=")
            if equals:
                values.setdefault(key[1:].strip(" \t"), value.removeprefix(" "))
        return values

    def comment(self, key: str) -> str | None:
        """The value of `# key = value`, None where there is none."""
        return self.metadata().get(key)


# Makes the sentence that takes the place of a bad block, from what can be read of it and the error.
# There are no rows unless only the tree is wrong.
Instead = Callable[[Sentence, DataError], Sentence]


@dataclass(frozen=True, slots=True)
class RawBlocks:
    """Whole blocks as bytes, each ending with a blank line; `line` is the first one's."""

    source: str
    line: int
    data: bytes

    def __len__(self) -> int:
        """The number of blocks."""
        if self.data.startswith(b"\n") or b"\n\n\n" in self.data:  # extra blank lines
            return len(_BLOCK_END.findall(self.data))
        return self.data.count(b"\n\n")


def read(
    source: reading.Source, *, trees: bool = True, instead: Instead | None = None
) -> Iterator[Sentence]:
    """Yields the sentences of a source as they end.

    trees: whether each must have one; if not, HEAD is not read. instead: makes a sentence for a
    block that is wrong, which raises DataError without it. Raises DataError, ReadError.
    """
    for batch in batches(source):
        yield from sentences(batch, trees=trees, instead=instead)


def batches(source: reading.Source) -> Iterator[RawBlocks]:
    """Yields a source as runs of whole blocks, without BOM and without CR before LF.

    `sentences` reads them, for example in another process. Raises DataError, ReadError.
    """
    pending, searched = bytearray(), 0  # no blank line ends before `searched`
    first, held = 1, b""  # the line where `pending` begins; a CR that may stand before an LF
    for chunk in reading.chunks(source):
        chunk = held + chunk
        held = b"\r" if chunk.endswith(b"\r") else b""
        chunk = chunk.removesuffix(held)
        pending += chunk.replace(b"\r\n", b"\n") if b"\r" in chunk else chunk
        end = pending.rfind(b"\n\n", searched) + 2
        if end > 1:
            data = bytes(pending[:end])
            yield RawBlocks(
                source.name, first, data.removeprefix(reading.BOM) if first == 1 else data
            )
            first += pending.count(b"\n", 0, end)
            del pending[:end]
        elif len(pending) > SENTENCE_LIMIT:
            line = first + pending.count(b"\n")
            limit = SENTENCE_LIMIT // 2**20
            raise DataError(source.name, line, f"sentence longer than {limit} MiB")
        searched = max(len(pending) - 1, 0)
    rest = bytes(pending)
    if rest := rest.removeprefix(reading.BOM) if first == 1 else rest:
        yield RawBlocks(source.name, first, rest + b"\n\n")


def sentences(
    batch: RawBlocks, *, trees: bool = True, instead: Instead | None = None
) -> Iterator[Sentence]:
    """Yields the sentences of a batch, as `read` does. Raises DataError at the first bad line.

    `instead` is not called for NUL characters and bytes that are not UTF-8: those always raise.
    """
    line = batch.line
    text, error = _decoded(batch)
    plain = not any(mark in text for mark in _NOT_PLAIN)
    for block in text.split("\n\n"):
        if block[:1] == "\n":  # extra blank lines
            line += len(block)
            block = block.lstrip("\n")
            line -= len(block)
        if block:
            lines = block.split("\n")
            n_comments = 0
            while n_comments < len(lines) and lines[n_comments][0] == "#":
                n_comments += 1
            sentence = _plain_sentence(lines, n_comments, trees) if plain else None
            if sentence is None:
                _refuse_nul(lines, batch.source, line)
                place = batch.source, line
                sentence = _any_sentence(lines, n_comments, place, trees, instead)
            sentence.source, sentence.line = batch.source, line
            line += len(lines) + 1
            yield sentence
        else:
            line += 2
    if error is not None:
        raise error


def to_bytes(sentence: Sentence) -> bytes:
    """The block of a sentence: its comments, its rows, a blank line."""
    return encoded(to_text(sentence))


def to_text(sentence: Sentence) -> str:
    """The block of a sentence as text."""
    return "\n".join([*sentence.comments, *map("\t".join, sentence.rows)]) + "\n\n"


def encoded(block: str) -> bytes:
    """The bytes that are read back as this text: reading drops one CR before LF.

    >>> encoded("# text = a" + chr(13) + chr(10))
    b'# text = a\\r\\r\\n'
    """
    return block.replace("\r\n", "\r\r\n").encode()


def _decoded(batch: RawBlocks) -> tuple[str, DataError | None]:
    """The text of whole blocks; or the blocks before the first bad byte, and the error."""
    data = batch.data
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError as error:
        begin = data.rfind(b"\n", 0, error.start) + 1  # where the line at fault begins
        line = batch.line + data.count(b"\n", 0, begin)
        whole = data.rfind(b"\n\n", 0, error.start) + 2
        good = data[:whole].decode("utf-8") if whole > 1 else ""
        bad = data[begin : data.find(b"\n", error.start)]
        problem = reading.not_utf8(error.start - begin + 1, bad, line)
        return good, DataError(batch.source, line, problem)


def _plain_sentence(lines: list[str], n_comments: int, trees: bool) -> Sentence | None:
    """The sentence, if it is valid and has no empty nodes; else None.

    Decides by whole-list operations, several times faster than a loop over the rows.
    """
    rows = [line.split("\t") for line in lines[n_comments:]]
    if set(map(len, rows)) != {len(COLUMNS)} or (words := _words(rows)) is None:
        return None
    if not trees:
        return Sentence(lines[:n_comments], rows, words, [])
    try:
        heads = [_values[row[6]] for row in words]
    except KeyError:
        return None
    if heads.count(0) != 1 or max(heads) > len(words) or not all_reach_root([0, *heads]):
        return None
    return Sentence(lines[:n_comments], rows, words, heads)


def _words(rows: list[list[str]]) -> list[list[str]] | None:
    """The rows of words, if every ID is right and none is an empty node; else None."""
    n = len(rows)
    if n > N_CACHED:
        return None
    if n > len(_ids):
        _values.update((str(number), number) for number in range(len(_ids) + 1, n + 1))
        _ids[:] = [*_values][1:]
    if [row[0] for row in rows] == _ids[:n]:
        return rows
    words = [row for row in rows if row[0] in _values]
    right = [row[0] for row in words] == _ids[: len(words)]
    return words if right and _ranges_in_place(rows, len(words)) else None


def _ranges_in_place(rows: list[list[str]], n_words: int) -> bool:
    """Whether every row that is not a word is a range right before its first word."""
    n_ranges = last = 0
    for index, row in enumerate(rows):
        if row[0] not in _values:
            match = _RANGE_ID.fullmatch(row[0])
            if not match or not last < int(match[1]) == index + 1 - n_ranges <= int(match[2]):
                return False
            n_ranges += 1
            last = int(match[2])
    return last <= n_words


def _refuse_nul(lines: list[str], source: str, line: int) -> None:
    for number, text in enumerate(lines, line):
        reading.refuse_nul(text, source, number)


def _any_sentence(
    lines: list[str], n_comments: int, place: Place, trees: bool, instead: Instead | None
) -> Sentence:
    """The sentence of a block that begins at `place`. Raises DataError."""
    try:
        return _checked_sentence(lines, n_comments, place, trees)
    except DataError as error:
        if instead is None:
            raise
        return instead(_legible_part(lines, n_comments, place), error)


def _checked_sentence(lines: list[str], n_comments: int, place: Place, trees: bool) -> Sentence:
    source, line = place
    if n_comments == len(lines):
        raise DataError(source, line, "comments without a sentence")
    reader = _Rows(source, line + n_comments, trees)
    for text in lines[n_comments:]:
        reader.add(text)
    words, heads = reader.finish()
    return Sentence(lines[:n_comments], reader.rows, words, heads)


def _legible_part(lines: list[str], n_comments: int, place: Place) -> Sentence:
    """The sentence of a block that is wrong, without heads; without rows unless all are right."""
    try:
        return _checked_sentence(lines, n_comments, place, trees=False)
    except DataError:
        return Sentence(lines[:n_comments], [], [], [])


class _Rows:
    """Reads the rows of a block one by one, and names the line of the first that is wrong."""

    def __init__(self, source: str, line: int, trees: bool) -> None:
        self.rows: list[list[str]] = []
        self._source = source
        self._line = line  # where the first row is
        self._trees = trees  # whether words must have a head
        self._words: list[list[str]] = []
        self._word_rows: list[int] = []  # index into rows
        self._range: tuple[int, int] | None = None  # last word, row index
        self._n_empty = 0  # empty nodes after the last word

    def add(self, text: str) -> None:
        """Takes the next line. Raises DataError."""
        row = text.split("\t")
        index = len(self.rows)
        self.rows.append(row)
        if text[0] == "#":
            self._fail(index, "comment inside a sentence")
        if len(row) != len(COLUMNS):
            problem = f"{counted(len(row), 'column')}, expected {len(COLUMNS)}"
            if len(row) == self._line + index == 1:
                problem += JSONL_ADVICE if _OBJECT.match(text) else TEXT_ADVICE
            self._fail(index, problem)
        if "" in row:
            self._fail(index, f"column {row.index('') + 1} ({COLUMNS[row.index('')]}) is empty")
        if _WORD_ID.fullmatch(row[ID]):
            self._add_word(row, index)
        elif match := _RANGE_ID.fullmatch(row[ID]):
            self._add_range(int(match[1]), int(match[2]), index)
        elif match := _EMPTY_ID.fullmatch(row[ID]):
            self._add_empty(int(match[1]), int(match[2]), index)
        else:
            self._fail(index, f"ID {quoted(row[ID])} is not a word, range or empty node")

    def _add_word(self, row: list[str], index: int) -> None:
        expected = len(self._words) + 1
        if int(row[ID]) != expected:
            self._fail(index, f"ID {row[ID]}, expected {expected}")
        if self._trees:
            if not _NUMBER.fullmatch(row[HEAD]):
                hint = "; synmt parse --from conllu makes trees" if row[HEAD] == NO_HEAD else ""
                self._fail(index, f"HEAD {quoted(row[HEAD])} is not a word's number{hint}")
            if int(row[HEAD]) == expected:
                self._fail(index, f"HEAD {row[HEAD]} is the word itself")
        self._words.append(row)
        self._word_rows.append(index)
        self._n_empty = 0

    def _add_range(self, first: int, last: int, index: int) -> None:
        name = f"ID {first}-{last}"
        if last < first:
            self._fail(index, f"{name} ends before it begins")
        if self._range is not None and first <= self._range[0]:
            self._fail(index, f"{name} overlaps the range before it")
        if first != len(self._words) + 1:
            self._fail(index, f"{name} must stand right before word {first}")
        self._range = last, index

    def _add_empty(self, word: int, number: int, index: int) -> None:
        name = f"ID {word}.{number}"
        if word != len(self._words):
            self._fail(index, f"{name} must stand right after word {word}")
        if self._range is not None and self._range[1] == index - 1:
            self._fail(index, f"{name} must stand before the range")
        self._n_empty += 1
        if number != self._n_empty:
            self._fail(index, f"{name}, expected {word}.{self._n_empty}")

    def finish(self) -> tuple[list[list[str]], list[int]]:
        """(words, heads); no heads where no tree is asked for. Raises DataError."""
        words, n = self._words, len(self._words)
        if not words:
            self._fail(0, "no word in the sentence")
        if self._range is not None and self._range[0] > n:
            row = self.rows[self._range[1]]
            self._fail(self._range[1], f"ID {row[ID]} goes beyond the last word, {n}")
        return words, self._heads() if self._trees else []

    def _heads(self) -> list[int]:
        words, n = self._words, len(self._words)
        heads = [int(row[HEAD]) for row in words]
        for head, index in zip(heads, self._word_rows, strict=True):
            if head > n:
                self._fail(index, f"HEAD {head} is beyond the last word, {n}")
        if heads.count(0) != 1:
            roots = [index for head, index in zip(heads, self._word_rows, strict=True) if not head]
            index = roots[1] if roots else self._word_rows[0]
            self._fail(index, f"{len(roots)} words with HEAD 0 (root), expected 1")
        if not all_reach_root([0, *heads]):
            word = node_on_cycle([0, *heads])
            self._fail(self._word_rows[word - 1], f"HEAD of word {word} is below it: a cycle")
        return heads

    def _fail(self, index: int, problem: str) -> None:
        raise DataError(self._source, self._line + index, problem)
