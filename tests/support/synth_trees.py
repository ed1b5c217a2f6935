"""Trees of `synmt synth` read from its bytes, as words with features."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from functools import cached_property

from synmt_cli.formats import conllu
from synmt_cli.io.reading import Source
from synmt_cli.synth.pairs import pairs
from synmt_cli.synth.settings import SynthSettings, phenomena


@dataclass(eq=False)
class Word:
    """A word of a tree. head: the Word above it, None at the root."""

    index: int
    form: str
    lemma: str
    upos: str
    feats: dict
    deprel: str
    head: Word | None = None
    children: list[Word] = field(default_factory=list)

    def subtree(self):
        return sorted(
            [self, *(word for child in self.children for word in child.subtree())],
            key=lambda word: word.index,
        )

    def child(self, *deprels):
        return next((word for word in self.children if word.deprel in deprels), None)


class Tree:
    """One sentence of one side. `words` are in order, `sentence` is what the reader gave."""

    def __init__(self, sentence):
        self.sentence = sentence
        self.text = sentence.comment("text")
        self.phenomena = set(sentence.comment("synth_phenomena").split(","))
        self.depth = int(sentence.comment("synth_depth"))
        self.cue = sentence.comment("synth_cue")
        self.ambiguous = set((sentence.comment("synth_ambiguous") or "").split(",")) - {""}
        self.words = [_word(row) for row in sentence.words]
        for word, head in zip(self.words, sentence.heads, strict=True):
            if head:
                word.head = self.words[head - 1]
                word.head.children.append(word)

    @cached_property
    def root(self):
        return next(word for word in self.words if word.head is None)

    def finite(self, top):
        """The finite verb of the clause whose head is `top`."""
        own = [top, *(word for word in top.children if word.deprel in ("aux", "cop"))]
        return next(word for word in own if word.feats.get("VerbForm") == "Fin")

    def clauses(self, *deprels):
        return [word for word in self.words if word.deprel in deprels]


def _word(row):
    feats = {} if row[5] == "_" else dict(item.split("=") for item in row[5].split("|"))
    return Word(int(row[0]), row[1], row[2], row[3], feats, row[7])


def read(data):
    """The trees of CoNLL-U bytes, checked by the reader."""
    return [Tree(sentence) for sentence in conllu.read(Source("made", io.BytesIO(data)))]


def made(n, seed=1, names="all", **options):
    """(English tree, German tree) of n pairs."""
    drawn = list(pairs(SynthSettings(phenomena(names), **options), seed, n))
    english, german = (read(b"".join(p.conllu(side) for p in drawn)) for side in ("en", "de"))
    return list(zip(english, german, strict=True))


def crossing(tree):
    """The deprels of arcs that span a word not below their head: none if the tree is projective."""
    found = set()
    for word in tree.words:
        if word.head is not None:
            low, high = sorted((word.index, word.head.index))
            below = {other.index for other in word.head.subtree()}
            if not set(range(low, high + 1)) <= below:
                found.add(word.deprel)
    return found
