"""Comments of CoNLL-U that say which line of text a block belongs to and whether it has a tree.

    # sent_id = 7.2              the sentence
    # synmt_line = 7             its line, where one line is several sentences
    # synmt_status = failed      the line has no tree: a value of STATUSES other than ok
    # synmt_reason = 2 roots     why

A line without a tree is a block of one word `_`, so that no line is lost.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from synmt_cli.formats.conllu import Sentence
from synmt_cli.formats.record import EMPTY, FAILED, OK, SKIPPED, STATUSES

LINE, STATUS, REASON = "synmt_line", "synmt_status", "synmt_reason"
ROW = "1\t_\t_\tX\t_\t_\t0\troot\t_\t_"  # stands for a line without a tree


def status_of(sentence: Sentence) -> tuple[str, str | None]:
    """The status of a block, and the reason that its comments give."""
    metadata = _metadata_with(STATUS, sentence)
    return metadata.get(STATUS, OK), metadata.get(REASON)


def _metadata_with(key: str, sentence: Sentence) -> dict[str, str]:
    """The comments of a block, or none if `key` is not in them, which is nearly always so."""
    for comment in sentence.comments:
        if key in comment:
            return sentence.metadata()
    return {}


def recorded_status(sentence: Sentence) -> tuple[str, str | None]:
    """The status and the reason of a block's record. An unknown status becomes failed."""
    status, reason = status_of(sentence)
    if status in (OK, EMPTY):
        return status, None
    stated = f"{STATUS} = {status}"
    return (status, reason or stated) if status in STATUSES else (FAILED, stated)


def status_of_line(sentences: Sequence[Sentence]) -> tuple[str, str | None]:
    """The status and the reason of the first sentence of a line, or of one after it that failed."""
    first = recorded_status(sentences[0])
    if first[0] != OK or len(sentences) == 1:
        return first
    return next((one for one in map(recorded_status, sentences) if one[0] == FAILED), first)


def is_placeholder(sentence: Sentence) -> bool:
    """Whether the one word of a block only stands for a line without a tree.

    A line that was skipped still has its tree where `filter` marked it.
    """
    status, _ = status_of(sentence)
    if status == SKIPPED:
        return ["\t".join(row) for row in sentence.rows] == [ROW]
    return status in (EMPTY, FAILED)


def comment(key: str, value: str) -> str:
    """The comment, without its LF. LF and NUL in the value are escaped, so that it is one line.

    >>> print(comment("sent_id", "7" + chr(10) + "# x"))
    # sent_id = 7\\n# x
    """
    if "\n" in value or "\0" in value:
        value = value.replace("\n", "\\n").replace("\0", "\\x00")
    return f"# {key} = {value}"


def of_line(segment: str, text: str) -> str:
    """The first comments of a block, each with its LF: the id of the segment, and its text."""
    return comment("sent_id", segment) + "\n" + comment("text", text) + "\n"


def placeholder(comments: str, status: str, reason: str | None = None) -> str:
    """The block of a line without a tree. comments: its first lines, each with its LF."""
    comments += comment(STATUS, status) + "\n"
    if reason:
        comments += comment(REASON, reason) + "\n"
    return f"{comments}{ROW}\n\n"


def commented(sentence: Sentence, values: Mapping[str, str | None]) -> Sentence:
    """The sentence with other values of some comments, added at the end; None removes one."""
    kept = [
        one for one in sentence.comments if one[1:].partition("=")[0].strip(" \t") not in values
    ]
    added = [comment(key, value) for key, value in values.items() if value is not None]
    return Sentence([*kept, *added], sentence.rows, sentence.words, sentence.heads)


@dataclass(slots=True)
class LineStarts:
    """Tells where lines of text begin in a stream of sentences.

    line: synmt_line of the last sentence.
    """

    line: str | None = None

    def begins(self, line: str | None, sent_id: str | None) -> bool:
        """Whether the next sentence, with these comments, begins a line.

        A sentence without synmt_line is a line. sent_id `N.1` begins a line N even after another
        line N, as when one file follows another.
        """
        begins = line is None or line != self.line or sent_id == f"{line}.1"
        self.line = line
        return begins

    def begins_with(self, sentence: Sentence) -> bool:
        """Whether the next sentence begins a line."""
        metadata = _metadata_with(LINE, sentence)
        return self.begins(metadata.get(LINE), metadata.get("sent_id"))


def lines(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """The sentences of each line of text: those of one synmt_line, else one at a time.

    A sentence without synmt_line comes at once, without waiting for the next one.
    """
    starts = LineStarts()
    group: list[Sentence] = []
    for sentence in sentences:
        if starts.begins_with(sentence) and group:
            yield group
            group = []
        group.append(sentence)
        if starts.line is None:
            yield group
            group = []
    if group:
        yield group
