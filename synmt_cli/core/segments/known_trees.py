"""The trees that lines of text already have, found by the line."""

from synmt_cli.core.segments import comments
from synmt_cli.core.segments.alignment import text_of
from synmt_cli.errors import quoted
from synmt_cli.formats import conllu
from synmt_cli.io import reading

_OF_LINE = dict.fromkeys(("sent_id", "text", comments.LINE))  # comments that a line has of its own


def missing(path: str, line: str) -> str:
    """What is wrong with a line that has no tree in a file, but needs one."""
    return f"no tree in {path} has this text: {quoted(line)}"


class KnownTrees:
    """The blocks of a file of CoNLL-U, as text in memory. Raises DataError, ReadError.

    A line of text is the comment `text`, or without one the words. The first of several blocks with
    the same text counts; blocks that stand for lines without a tree do not.
    """

    def __init__(self, path: str) -> None:
        self._blocks: dict[str, list[tuple[str, str]]] = {}  # line -> text and block of sentences
        with reading.open_source(path) as source:
            for group in comments.lines(conllu.read(source)):
                line = text_of(group, group[0].metadata())
                if line not in self._blocks and not any(map(comments.is_placeholder, group)):
                    self._blocks[line] = [*map(_text_and_block, group)]

    def __contains__(self, line: str) -> bool:
        """Whether a line has a tree."""
        return line in self._blocks

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
