"""Labels of trees that a model did not see in training, because its trees had other labels.

Such a label is read as unknown (labels.py). This is right for a rare label, but with trees of
another label scheme the model would silently miss most labels that it has learned to use.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from synmt_cli.core.data.encoding import Encoding, reads_labels
from synmt_cli.core.data.labels import UNKNOWN_LABEL
from synmt_cli.errors import quoted
from synmt_cli.formats.record import OK, Record

Rest = TypeVar("Rest")

# The parser used in training gives a label that training lacks to fewer than one word in a
# thousand: a label that is more frequent occurs in training, too. Universal Dependencies 1 in place
# of 2 changes the labels of one word in twenty, other schemes those of most words. A share alone
# would warn of one rare label in a short text.
SHARE, LEAST = 0.01, 3  # of the words, and words
SHOWN = 5  # labels


class UnseenLabels:
    """Counts the labels of trees that the models of an encoding read."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._counts: Counter[str] = Counter()

    def add(self, record: Record) -> None:
        """Counts the labels of a record; without `ok` it is read without its tree."""
        if record.status == OK:
            self._counts.update(record.deprels or ())  # no loop of Python's own over the words

    def counted(self, records: Iterable[tuple[Record, Rest]]) -> Iterator[tuple[Record, Rest]]:
        """Yields the same records with what belongs to them, and counts their labels."""
        for record, rest in records:
            self.add(record)
            yield record, rest

    def warnings(self) -> Iterator[str]:
        """Yields a warning if many words had labels that the models did not see in training."""
        yield from warnings(self._counts, self._encoding)


def warnings(counts: Mapping[str, int], encoding: Encoding) -> Iterator[str]:
    """Yields a warning if many words have a label that is not among those of the encoding.

    Variants that read no labels get none. counts: label -> words that have it.

    >>> from synmt_cli.core.data.labels import Labels
    >>> encoding = Encoding(["tag"], Labels(["nsubj", "obj", "det"]))
    >>> [line] = warnings({"SBJ": 40, "OBJ": 20, "det": 30, "nsubj:outer": 10}, encoding)
    >>> print(line.partition(":")[0])
    60 of 100 words have labels that did not occur in training ('SBJ', 'OBJ')
    """
    if not reads_labels(encoding.needs):
        return
    labels = encoding.labels
    unseen = Counter({x: n for x, n in counts.items() if labels.id(x) == UNKNOWN_LABEL})
    n, n_words = unseen.total(), sum(counts.values())
    if n >= LEAST and n >= SHARE * n_words:
        names = [quoted(name) for name, _ in unseen.most_common(SHOWN)]
        more = f" and {len(unseen) - SHOWN:,} more" if len(unseen) > SHOWN else ""
        yield (
            f"{n:,} of {n_words:,} words have labels that did not occur in training "
            f"({', '.join(names)}{more}): they are read as unknown; the trees should come from the "
            "parser that made those of training"
        )
