"""How well the trees of one stream match those of another: UAS, LAS and related metrics.

Where a gold and a system word are aligned (word_alignment.py), the head is right if the words
above them are aligned too, or both are roots (UAS), and the label if it is the same (LA); LAS
takes both. CLAS (Nivre and Fang 2017) is LAS of content words; among aligned words the gold
relation decides which these are. MLAS is CLAS with the right UPOS and features, and with the
same function words below, each with the right label, UPOS and features; BLEX is CLAS with the
right lemma. A lemma is right, whatever it is, where gold has `_`. Features are the universal ones
of UNIVERSAL_FEATURES alone. Labels are universal relations without subtypes, as in CoNLL 2018,
unless `subtypes` is set.

Without `punct`, words that are punctuation are not counted, as dependents: those with UPOS PUNCT in
gold, whatever the system says, and system words without a gold word by the system's own UPOS. They
still are heads of other words, and count for tokens, sentences, and the length of a sentence.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import compress

from synmt_cli.core.evaluation.trees.grouping import Grouping
from synmt_cli.core.evaluation.trees.word_alignment import (
    UNALIGNED,
    AlignedSpan,
    Words,
    align,
    words,
)
from synmt_cli.core.trees.heads import ROOT
from synmt_cli.core.trees.relations import CONTENT, FUNCTION, universal
from synmt_cli.errors import DataError
from synmt_cli.formats.reports.tree_scores import MatchCount, TreeGroup

GOLD, SYSTEM, ALIGNED, CORRECT = "gold", "system", "aligned", "correct"
PUNCT = "PUNCT"  # the tag
OF_ALL = ("upos", "xpos", "ufeats", "alltags", "lemmas", "uas", "las", "la")  # of all words
OF_CONTENT = ("clas", "mlas", "blex")  # of content words
# The metrics of a group, and the one that has only a recall: a word that is right by it may be in
# another group of the system. Groups of lengths have all metrics.
OF_GROUP = {
    "deprel": ("uas", "las", "la"),
    "upos": ("words", "upos", "uas", "las", "la"),
    "distance": ("uas", "las", "la"),
}
RECALL_ONLY = {"deprel": "uas", "distance": "la"}
UNIVERSAL_FEATURES = frozenset(
    """
    PronType NumType Poss Reflex Foreign Abbr Gender Animacy Number Case Definite Degree VerbForm
    Mood Tense Aspect Voice Evident Polarity Person Polite
    """.split()  # noqa: SIM905  as a list it would take twenty lines
)


class Attachment:
    """Counts what is right, span by span, for all words and, with `by`, for groups of them."""

    def __init__(
        self, subtypes: bool = False, by: Grouping | None = None, punct: bool = True
    ) -> None:
        self._subtypes = subtypes
        self._by = by
        self._punct = punct
        self._totals: Counter[tuple[str, str]] = Counter()  # of tokens and sentences
        self._groups: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(self, span: AlignedSpan) -> None:
        """Counts a span. Raises DataError if its words cannot be aligned."""
        gold, system = words(span.gold), words(span.system)
        try:
            aligned = align(gold, system)
        except ValueError as error:
            first = span.system[0]
            raise DataError(first.source, first.line, f"cannot align {error}") from None
        alone = len(span.gold) == len(span.system) == 1  # no smaller span holds a sentence of both
        same_tokens = set(gold.tokens) & set(system.tokens)
        for name, counts in (
            ("tokens", (len(gold.tokens), len(system.tokens), len(same_tokens))),
            ("sentences", (len(span.gold), len(span.system), int(alone))),
        ):
            for kind, n in zip((GOLD, SYSTEM, CORRECT), counts, strict=True):
                self._totals[name, kind] += n
        if self._by is not None and self._by.kind == "length":
            for _, length in gold.sentences:
                self._groups[self._by.in_length(length)]["sentences"] += 1
        self._count_words(gold, system, aligned)

    def _count_words(self, gold: Words, system: Words, aligned: Sequence[int]) -> None:
        gold_labels, system_labels = self._labels(gold), self._labels(system)
        labels = gold_labels, system_labels
        ungrouped = [""] * len(gold_labels), [""] * len(system_labels)
        gold_groups, system_groups = (
            self._by.of(gold, system, labels, aligned) if self._by else ungrouped
        )
        gold_counts, system_counts = self._counting(gold, system, aligned)
        self._count_side(GOLD, compress(zip(gold_groups, gold_labels, strict=True), gold_counts))
        self._count_side(
            SYSTEM, compress(zip(system_groups, system_labels, strict=True), system_counts)
        )
        gold_feats, system_feats = ([*map(_universal_features, x.feats)] for x in (gold, system))
        gold_below, system_below = (
            _function_words(gold, gold_labels),
            _function_words(system, system_labels),
        )

        def same_below(golds: Sequence[int], systems: Sequence[int]) -> bool:
            return len(golds) == len(systems) and all(
                aligned[s] == g
                and gold_labels[g] == system_labels[s]
                and gold.upos[g] == system.upos[s]
                and gold_feats[g] == system_feats[s]
                for g, s in zip(golds, systems, strict=True)
            )

        for s, g in enumerate(aligned):
            if g == UNALIGNED or not gold_counts[g]:
                continue
            head = system.heads[s]
            right_head = (ROOT if head == ROOT else aligned[head]) == gold.heads[g]
            right_label = gold_labels[g] == system_labels[s]
            upos, xpos = gold.upos[g] == system.upos[s], gold.xpos[g] == system.xpos[s]
            feats = gold_feats[g] == system_feats[s]
            lemma = gold.lemmas[g] in ("_", system.lemmas[s])
            counts = self._groups[gold_groups[g]]
            counts[ALIGNED] += 1
            counts["upos"] += upos
            counts["xpos"] += xpos
            counts["ufeats"] += feats
            counts["alltags"] += upos and xpos and feats
            counts["lemmas"] += lemma
            counts["uas"] += right_head
            counts["la"] += right_label
            counts["las"] += right_head and right_label
            if universal(gold_labels[g]) in CONTENT:
                counts[f"{ALIGNED} content"] += 1
                if right_head and right_label:
                    counts["clas"] += 1
                    counts["blex"] += lemma
                    below = gold_below.get(g, []), system_below.get(s, [])
                    counts["mlas"] += upos and feats and same_below(*below)

    def _counting(
        self, gold: Words, system: Words, aligned: Sequence[int]
    ) -> tuple[list[bool], list[bool]]:
        """Whether each word counts: gold's, then the system's."""
        of_gold = [self._punct or upos != PUNCT for upos in gold.upos]
        of_system = [
            (self._punct or system.upos[s] != PUNCT) if g == UNALIGNED else of_gold[g]
            for s, g in enumerate(aligned)
        ]
        return of_gold, of_system

    def _count_side(self, side: str, words: Iterable[tuple[str, str]]) -> None:
        """Counts the words of one side. words: the group and the label of each."""
        for group, label in words:
            counts = self._groups[group]
            counts[side] += 1
            counts[f"{side} content"] += universal(label) in CONTENT

    def _labels(self, side: Words) -> Sequence[str]:
        return side.deprels if self._subtypes else [universal(label) for label in side.deprels]

    def include(self, other: "Attachment") -> None:
        """Adds the counts of `other`, which has the same settings."""
        self._totals.update(other._totals)
        for group, counts in other._groups.items():
            self._groups[group].update(counts)

    def scores(self) -> dict[str, MatchCount]:
        """Every metric over all spans, in the order of the CoNLL 2018 script, with LA added."""
        totals = {
            name: MatchCount(*(self._totals[name, kind] for kind in (CORRECT, GOLD, SYSTEM)))
            for name in ("tokens", "sentences")
        }
        return totals | _scores(sum(self._groups.values(), Counter()))

    def groups(self) -> list[TreeGroup]:
        """The scores by group: buckets in their order, labels and tags from frequent to rare."""
        if self._by is None:
            return []
        found = [self._group(self._by.kind, name) for name in self._by.names or self._groups]
        if self._by.names is None:
            found.sort(key=lambda group: (-group.scores["las"].gold, group.name))
        return found

    def _group(self, kind: str, name: str) -> TreeGroup:
        counts = self._groups[name]
        scores = _scores(counts)
        scores = {metric: scores[metric] for metric in OF_GROUP.get(kind, scores)}
        if metric := RECALL_ONLY.get(kind):
            scores[metric] = MatchCount(counts[metric], counts[GOLD], None, counts[ALIGNED])
        return TreeGroup(name, counts["sentences"] if kind == "length" else None, scores)


@lru_cache(maxsize=2**16)
def _universal_features(feats: str) -> str:
    """FEATS without the features of a language, sorted.

    >>> _universal_features("Style=Arch|Number=Sing|Case=Nom")
    'Case=Nom|Number=Sing'
    """
    kept = (one for one in feats.split("|") if one.partition("=")[0] in UNIVERSAL_FEATURES)
    return "|".join(sorted(kept))


def _function_words(side: Words, labels: Sequence[str]) -> dict[int, list[int]]:
    """The function words among the dependents of each word that has any."""
    below: dict[int, list[int]] = {}
    for word, (head, label) in enumerate(zip(side.heads, labels, strict=True)):
        if head != ROOT and universal(label) in FUNCTION:
            below.setdefault(head, []).append(word)
    return below


def _scores(counts: Counter[str]) -> dict[str, MatchCount]:
    whole = counts[GOLD], counts[SYSTEM]
    content = [counts[f"{side} content"] for side in (GOLD, SYSTEM, ALIGNED)]
    return {
        "words": MatchCount(counts[ALIGNED], *whole),
        **{name: MatchCount(counts[name], *whole, counts[ALIGNED]) for name in OF_ALL},
        **{name: MatchCount(counts[name], *content) for name in OF_CONTENT},
    }
