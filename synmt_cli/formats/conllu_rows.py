"""The rows of one CoNLL-U block, one by one: what is right, and what is wrong in which line."""

from __future__ import annotations

import re

from synmt_cli.errors import DataError, quoted
from synmt_cli.formats.arcs import all_reach_root, node_on_cycle

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC = range(10)

# At most nine digits, ASCII: int() alone would take +1, 1_0, ١ and a million digits.
_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
_WORD_ID = re.compile(r"[1-9][0-9]{0,8}")
RANGE_ID = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})")
_EMPTY_ID = re.compile(r"(0|[1-9][0-9]{0,8})\.([1-9][0-9]{0,8})")


class Rows:
    """Reads the rows of one block one by one, and knows the line of each."""

    def __init__(self, source: str, line: int) -> None:
        self.rows: list[list[str]] = []
        self._source, self._line = source, line  # the line of the first row
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
            s = "" if len(row) == 1 else "s"
            self._fail(index, f"{len(row)} column{s}, expected {len(COLUMNS)}")
        if "" in row:
            self._fail(index, f"column {row.index('') + 1} ({COLUMNS[row.index('')]}) is empty")
        if _WORD_ID.fullmatch(row[ID]):
            self._add_word(row, index)
        elif match := RANGE_ID.fullmatch(row[ID]):
            self._add_range(int(match[1]), int(match[2]), index)
        elif match := _EMPTY_ID.fullmatch(row[ID]):
            self._add_empty(int(match[1]), int(match[2]), index)
        else:
            self._fail(index, f"ID {quoted(row[ID])} is not a word, range or empty node")

    def _add_word(self, row: list[str], index: int) -> None:
        expected = len(self._words) + 1
        if int(row[ID]) != expected:
            self._fail(index, f"ID {row[ID]}, expected {expected}")
        if not _NUMBER.fullmatch(row[HEAD]):
            self._fail(index, f"HEAD {quoted(row[HEAD])} is not a word's number")
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
        """(words, heads) when they are a tree. Raises DataError."""
        words, n = self._words, len(self._words)
        if not words:
            self._fail(0, "no word in the sentence")
        if self._range is not None and self._range[0] > n:
            row = self.rows[self._range[1]]
            self._fail(self._range[1], f"ID {row[ID]} goes beyond the last word, {n}")
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
        return words, heads

    def _fail(self, index: int, problem: str) -> None:
        raise DataError(self._source, self._line + index, problem)
