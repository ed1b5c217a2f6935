"""The trees that lines of text already have, found by the line."""

from typing import NamedTuple

from synmt_cli.core.segments import comments
from synmt_cli.core.segments.alignment import text_of
from synmt_cli.core.segments.bad_trees import INSTEAD, OnBadTree
from synmt_cli.errors import quoted
from synmt_cli.formats import conllu
from synmt_cli.formats.record import FAILED
from synmt_cli.io import reading

_OF_LINE = dict.fromkeys(("sent_id", "text", comments.LINE))  # comments that a line has of its own


def missing(path: str, line: str) -> str:
    """The message about a line that needs a tree in a file but has none there."""
    # Most parsers split lines into sentences, and then no tree has the text of the whole line.
    same = "give all their trees the same comment, such as # synmt_line = 7"
    advice = f"if it has several sentences, {same}"
    return f"no tree in {path} has this text: {quoted(line)}; {advice}"


class KnownFile(NamedTuple):
    """A file of CoNLL-U with trees of lines, and what to do about a bad tree in it."""

    path: str
    on_bad_tree: OnBadTree = "error"


NO_FILE = KnownFile("")


class KnownTrees:
    """The blocks of a file of CoNLL-U, as text in memory. Raises DataError, ReadError.

    The line of a block is its comment `text`, or its words if it has none. The first of several
    blocks with the same text counts; blocks that stand for lines without a tree do not, nor do
    bad trees that `on_bad_tree` lets fail.
    """

    def __init__(self, path: str, on_bad_tree: OnBadTree = "error") -> None:
        self._blocks: dict[str, list[tuple[str, str]]] = {}  # line -> text and block of sentences
        self._failures: dict[str, str] = {}  # line -> what is wrong with its tree
        with reading.open_source(path) as source:
            for group in comments.lines(conllu.read(source, instead=INSTEAD[on_bad_tree])):
                line = text_of(group, group[0].metadata())
                if not any(map(comments.is_placeholder, group)):
                    if line.strip() and line not in self._blocks:
                        self._blocks[line] = [*map(_text_and_block, group)]
                elif on_bad_tree == FAILED and line.strip():
                    self._failures.setdefault(line, comments.status_of_line(group)[1] or FAILED)

    def __contains__(self, line: str) -> bool:
        """Whether a line has a tree."""
        return line in self._blocks

    def failure(self, line: str) -> str:
        """What is wrong with the tree of a line; "" unless `on_bad_tree` lets bad trees fail."""
        return self._failures.get(line, "")

    def block(self, line: str, segment: str) -> str | None:
        """The CoNLL-U of a line, as `synmt parse` numbers it; None for a line without a tree."""
        blocks = self._blocks.get(line)
        if blocks is None:
            return None
        if len(blocks) == 1:
            return comments.of_line(segment, line) + blocks[0][1]
        number = comments.comment(comments.LINE, segment) + "\n"
        return "".join(
            comments.of_line(f"{segment}.{k}", text) + number + block
            for k, (text, block) in enumerate(blocks, 1)
        )


def _text_and_block(sentence: conllu.Sentence) -> tuple[str, str]:
    """The text of a sentence, and its block without the comments that a line has of its own."""
    kept = comments.commented(sentence, _OF_LINE)
    return text_of([sentence], sentence.metadata()), conllu.to_text(kept)
