"""Penn brackets: constituency trees, a line each.

    (ROOT (S (NP (DT The) (NN dog)) (VP (VBZ sleeps)) (. .)))

A word stands in a bracket of its own, labelled by its part of speech; these brackets are not
constituents. A constituent may be empty, `(NP )`, as where the words were taken out. A line may
hold several trees. An outermost bracket without a label, as in the Penn Treebank's own files,
is `ROOT`. An empty line, `()` and `(())`, which parsers write where they fail, are no tree.

A tree is read into a flat list, so that no depth is too deep.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from synmt_cli.errors import DataError, counted, quoted
from synmt_cli.io import reading

Item = str | int | None  # a label opens a bracket, a number is a word, None closes
NO_TREE = ("", "()", "(())")
TRACE = "-NONE-"  # part of speech of what is not in the text
_TOKEN = re.compile(r"[()]|[^() \t]+")
BRACKETS = {  # how the treebank spells them
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
}


@dataclass(slots=True)
class Constituent:
    """The trees of a line. items: constituents and words, no parts of speech, in their order.

    words: as in the text, `(` for `-LRB-`; an item's number is the place of its word here. tags:
    the part of speech of each word.
    """

    items: list[Item] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)


def read(source: reading.Source) -> Iterator[Constituent | None]:
    """Yields the trees of each line, None if it has none. Raises DataError, ReadError."""
    for number, text in reading.text_lines(source):
        yield from_text(text, source.name, number)


def from_text(text: str, source: str = "<stdin>", number: int = 1) -> Constituent | None:
    """The trees of a line, None if it has none. Raises DataError.

    >>> from_text("(S (NP (DT The) (NN dog)) (VP (VBZ sleeps)))").items
    ['S', 'NP', 0, 1, None, 'VP', 2, None, None]
    """
    if text.replace(" ", "").replace("\t", "") in NO_TREE:
        return None
    reader = _Reader()
    for match in _TOKEN.finditer(text):
        if problem := reader.add(match[0]):
            raise DataError(source, number, f"{problem} at character {match.start() + 1}")
    if n := len(reader.open):
        raise DataError(source, number, f"{counted(n, 'bracket')} not closed")
    return reader.tree


class _Reader:
    """Reads one token after another.

    open: where in the items each open bracket begins. before: what the last token was.
    """

    def __init__(self) -> None:
        self.tree = Constituent()
        self.open: list[int] = []
        self.before = "close"

    def add(self, token: str) -> str | None:
        """Takes the next token. Returns what is wrong with it, None if nothing is."""
        if token == "(":
            return self._open()
        if not self.open:
            return f"{quoted(token)} outside all brackets"
        if token == ")":
            return self._close()
        if self.before == "open":
            self.tree.items[-1] = token
            self.before = "label"
        elif self.before == "label":
            word = BRACKETS.get(token, token).replace("\\/", "/").replace("\\*", "*")
            self.tree.items.append(len(self.tree.words))
            self.tree.words.append(word)
            self.before = "word"
        else:
            return f"the word {quoted(token)} without a bracket of its own"
        return None

    def _open(self) -> str | None:
        if self.before == "word":
            return "a bracket after a word"
        if self.before == "open" and len(self.open) > 1:
            return "a bracket without a label"
        self.open.append(len(self.tree.items))
        self.tree.items.append("ROOT")
        self.before = "open"
        return None

    def _close(self) -> str | None:
        if self.before == "open":
            return "an empty bracket"
        begin, items = self.open.pop(), self.tree.items
        if self.before != "word":
            items.append(None)
        elif items[begin] == TRACE:
            self.tree.words.pop()
            del items[begin:]
        else:
            self.tree.tags.append(str(items.pop(begin)))
        self.before = "close"
        return None
