"""Whether text is written without spaces between words, as Chinese, Japanese and Thai are.

White space parts such text into clauses or whole lines. Lengths in words then say nothing, nor do
metrics on words. A sample of lines shows it: most of their letters are of a script that has no
spaces, and runs of them between white space are longer than words. So text that was split into
words before is not taken for it, nor is a list of words.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from synmt_cli.core.text.tokenizers import BY_SPACES

LINES, BEGINNING = 1000, 200  # lines of a sample; characters that are looked at in each
FEWEST = 20  # letters, below which nothing can be told
MOST_KANA = 0.1  # of the letters of Chinese: some stand in names; Japanese has half or more

_KANA = r"\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d"
_HAN = r"\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_IDEOGRAPHS = "Han characters"


@dataclass(frozen=True, slots=True)
class Writing:
    """A way to write without spaces. name: its letters. tokenize: the tokenizer for its BLEU.

    is_dense: whether a character stands for about three letters of an alphabet.
    """

    name: str
    tokenize: str
    is_dense: bool = False

    def advice(self, tokenize: str, option: str) -> str:
        """What tokenizer `tokenize` gets wrong, and what to do. option: names another tokenizer."""
        return (
            f"{self.name} without spaces, whose clauses tokenizer {tokenize} takes for words; "
            f"use {option}{self.tokenize}"
        )


CHINESE = Writing(_IDEOGRAPHS, "zh", is_dense=True)
JAPANESE = Writing("kana", "char", is_dense=True)
# name: its letters, with their signs; the mean length from which runs of them are not words. Words
# have 1.7 Han characters, or 4 to 6 letters and signs of the other scripts (PUD treebanks).
_SCRIPTS = {
    _IDEOGRAPHS: (re.compile(f"[{_HAN}{_KANA}]"), 3),
    "Thai letters": (re.compile(r"[\u0e01-\u0e3a\u0e40-\u0e4e]"), 8),
    "Lao letters": (re.compile(r"[\u0e81-\u0ecd\u0edc-\u0edf]"), 8),
    "Tibetan letters": (re.compile(r"[\u0f00\u0f0b\u0f40-\u0fbc]"), 8),
    "Burmese letters": (re.compile(r"[\u1000-\u103f\u1050-\u108f]"), 8),
    "Khmer letters": (re.compile(r"[\u1780-\u17d3]"), 8),
}
_KANA_LETTERS = re.compile(f"[{_KANA}]")


def unspaced(lines: Iterable[str]) -> Writing | None:
    """How these lines are written without spaces; None where words have spaces between them.

    >>> unspaced(["\u4e00\u4e2a\u7537\u4eba\u5728\u8857\u4e0a\u8d70\u3002"] * 9).tokenize
    'zh'
    >>> unspaced(["Ein Mann geht auf der Straße."] * 9)
    """
    n_runs = Counter[str]()
    n_letters = Counter[str]()  # of each script, and of all others
    n_kana = 0
    for run in _runs(lines):
        rest = run
        for name, (letters, _) in _SCRIPTS.items():
            rest, n = letters.subn("", rest)
            n_letters[name] += n
            n_runs[name] += n > 0
        n_letters[""] += sum(map(str.isalpha, rest))
        n_kana += len(_KANA_LETTERS.findall(run)) if len(rest) < len(run) else 0
    (name, n), *_ = n_letters.most_common(1) or [("", 0)]
    if not name or n < FEWEST or 2 * n < n_letters.total() or n < _SCRIPTS[name][1] * n_runs[name]:
        return None
    if name != _IDEOGRAPHS:
        return Writing(name, "char")
    return JAPANESE if n_kana > MOST_KANA * n else CHINESE


def misread(lines: Iterable[str], tokenize: str) -> Writing | None:
    """How lines are written, if a tokenizer takes their clauses for words; else None.

    lines: all lines of the text, of which a sample is looked at.
    """
    if tokenize not in BY_SPACES:
        return None
    sample = Sample()
    for line in lines:
        sample.add(line)
    return sample.unspaced()


class Sample:
    """Some lines of a text: all of a short one, else every second, fourth, eighth ..."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._step, self._n = 1, 0

    def add(self, line: str) -> None:
        """Takes or leaves the next line."""
        if self._n % self._step == 0:
            if len(self.lines) == LINES:
                self.lines = self.lines[::2]
                self._step *= 2
            self.lines.append(line[:BEGINNING])
        self._n += 1

    def unspaced(self) -> Writing | None:
        """How the lines are written without spaces; None where words have spaces between them."""
        return unspaced(self.lines)


def _runs(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield from line[:BEGINNING].split()
