"""The ten probing tasks of Conneau et al. (2018); most of them can be made from a treebank.

As in SentEval's data, each sentence occurs once, the classes are balanced, and a word that a
label is about is in one split only. Some tasks differ, because they come from dependency trees:

    sentence-length   words, punctuation counted, in SentEval's classes: 0: 5-8, 1: 9-12,
                      2: 13-16, 3: 17-20, 4: 21-25, 5: 26-28
    word-content      which one of the most frequent nouns, verbs and adjectives of at least
                      four letters is in the sentence, once; one such word for each 50
                      sentences, at most 1,000; SentEval takes 1,000 words of middle rank
    tree-depth        arcs from the root to the deepest word; SentEval's is of constituents,
                      and freed of its correlation with length
    bigram-shift      whether two neighbours were exchanged (I) or not (O): neither of them
                      punctuation or the first word, a space between them, in half the
                      sentences
    tense             Past or Pres of the finite verb of the main clause: the root, or else
                      its first auxiliary or copula
    subject-number    Sing or Plur of the root's one nsubj, if it is a common noun
    object-number     the same of the root's obj
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from synmt_cli.core.trees.heads import depths
from synmt_cli.formats.conllu import FEATS, FORM, ID, MISC, UPOS, Sentence

BEGINS = (5, 9, 13, 17, 21, 26, 29)  # first length of each class; the last is too long
SENTENCES_A_WORD, MOST_WORDS, SHORTEST_WORD = 50, 1000, 4


@dataclass(frozen=True, slots=True)
class Case:
    """A sentence with its label. target: the word that the label is about, "" for none.

    text: the sentence, if it is no longer that of the tree.
    """

    label: str
    sentence: Sentence
    target: str = ""
    text: str | None = None


Make = Callable[[Sequence[Sentence], Random], Iterator[Case]]


@dataclass(frozen=True, slots=True)
class Task:
    """group: surface, syntactic, semantic. file: SentEval's name for it. make: from trees."""

    group: str
    file: str
    make: Make | None = None


def sentence_length(sentences: Sequence[Sentence], random: Random) -> Iterator[Case]:
    """Classes of the number of words."""
    for sentence in sentences:
        label = bisect_right(BEGINS, len(sentence.words)) - 1
        if 0 <= label < len(BEGINS) - 1:
            yield Case(str(label), sentence)


def word_content(sentences: Sequence[Sentence], random: Random) -> Iterator[Case]:
    """Which of the most frequent words the sentence has."""
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(_content_words(sentence))
    n_words = min(len(sentences) // SENTENCES_A_WORD, MOST_WORDS)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    wanted = set(ranked[:n_words])
    for sentence in sentences:
        words = [word for word in _content_words(sentence) if word in wanted]
        if len(words) == 1:
            yield Case(words[0], sentence)


def _content_words(sentence: Sentence) -> Iterator[str]:
    for row in sentence.words:
        word = row[FORM].lower()
        if row[UPOS] in ("NOUN", "VERB", "ADJ") and len(word) >= SHORTEST_WORD:
            yield word


def tree_depth(sentences: Sequence[Sentence], random: Random) -> Iterator[Case]:
    """Arcs down to the deepest word."""
    for sentence in sentences:
        yield Case(str(max(depths([head - 1 for head in sentence.heads]))), sentence)


def bigram_shift(sentences: Sequence[Sentence], random: Random) -> Iterator[Case]:
    """Half the sentences, by chance, with two neighbours exchanged. No tree fits these."""
    for sentence in sentences:
        rows = surface(sentence)
        pairs = [i for i in range(1, len(rows) - 1) if _exchangeable(rows[i], rows[i + 1])]
        if not pairs:
            continue
        i, label = random.choice(pairs), random.choice("IO")
        forms = [row[FORM] for row in rows]
        if label == "I":
            forms[i], forms[i + 1] = forms[i + 1], forms[i]
        yield Case(label, sentence, text=written(rows, forms))


def _exchangeable(row: Sequence[str], following: Sequence[str]) -> bool:
    punctuation = "PUNCT" in (row[UPOS], following[UPOS])
    return not punctuation and _space_after(row) and row[FORM].lower() != following[FORM].lower()


def surface(sentence: Sentence) -> list[list[str]]:
    """The rows of the written tokens: a multiword token for its words, and no empty node."""
    rows, covered = [], 0
    for row in sentence.rows:
        first, dash, last = row[ID].partition("-")
        if dash:
            covered = int(last)
            rows.append(row)
        elif "." not in first and int(first) > covered:
            rows.append(row)
    return rows


def written(rows: Sequence[Sequence[str]], forms: Sequence[str]) -> str:
    """A line of text with spaces as in the rows."""
    parts = [form + " " * _space_after(row) for row, form in zip(rows, forms, strict=True)]
    return "".join(parts).rstrip(" ")


def _space_after(row: Sequence[str]) -> bool:
    return "SpaceAfter=No" not in row[MISC].split("|")


def tense(sentences: Sequence[Sentence], random: Random) -> Iterator[Case]:
    """Tense of the main clause's finite verb."""
    for sentence in sentences:
        root = sentence.heads.index(0)
        helpers = [*_dependents(sentence, root, "aux"), *_dependents(sentence, root, "cop")]
        for row in (sentence.words[root], *helpers):
            features = _features(row)
            if features.get("VerbForm") == "Fin":
                if features.get("Tense") in ("Past", "Pres"):
                    yield Case(features["Tense"], sentence, row[FORM].lower())
                break


def number(sentences: Sequence[Sentence], random: Random, relation: str) -> Iterator[Case]:
    """Number of the main clause's one dependent by a relation, if it is a common noun."""
    for sentence in sentences:
        rows = _dependents(sentence, sentence.heads.index(0), relation)
        if len(rows) == 1 and rows[0][UPOS] == "NOUN":
            label = _features(rows[0]).get("Number")
            if label in ("Sing", "Plur"):
                yield Case(label, sentence, rows[0][FORM].lower())


def _dependents(sentence: Sentence, head: int, relation: str) -> list[list[str]]:
    """The rows of a word's dependents by a relation, its subtypes included. head: from 0."""
    return [
        row
        for row, above, deprel in zip(sentence.words, sentence.heads, sentence.deprels, strict=True)
        if above == head + 1 and deprel.partition(":")[0] == relation
    ]


def _features(row: Sequence[str]) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in row[FEATS].split("|"))
    return {name: value for name, _, value in pairs}


TASKS = {
    "sentence-length": Task("surface", "sentence_length", sentence_length),
    "word-content": Task("surface", "word_content", word_content),
    "tree-depth": Task("syntactic", "tree_depth", tree_depth),
    "top-constituents": Task("syntactic", "top_constituents"),
    "bigram-shift": Task("syntactic", "bigram_shift", bigram_shift),
    "tense": Task("semantic", "past_present", tense),
    "subject-number": Task("semantic", "subj_number", partial(number, relation="nsubj")),
    "object-number": Task("semantic", "obj_number", partial(number, relation="obj")),
    "odd-man-out": Task("semantic", "odd_man_out"),
    "coordination-inversion": Task("semantic", "coordination_inversion"),
}
MADE = {name: task.make for name, task in TASKS.items() if task.make is not None}
