"""UAS, LAS, LA and CLAS against counting by hand."""

import collections
import gzip
import io
import random
import re

import pytest

from synmt_cli.core.evaluation.trees.attachment import Attachment
from synmt_cli.core.evaluation.trees.grouping import grouping
from synmt_cli.core.evaluation.trees.word_alignment import aligned_spans
from synmt_cli.formats import conllu
from synmt_cli.formats.reports.tree_scores import MatchCount
from synmt_cli.io.reading import Source

BINS = (("1", 1), ("2", 2), ("3-6", 6), ("7+", 10_000))


def sentence(*words):
    """Rows from "form head label", optionally after "first-last form"."""
    rows, n = [], 0
    for word in words:
        if "-" in word.split()[0]:
            rows.append(word.replace(" ", "\t") + "\t_" * 8)
            continue
        n += 1
        form, head, label = word.split()
        upos = form[0].upper()
        rows.append(f"{n}\t{form}\t_\t{upos}\t_\t_\t{head}\t{label}\t_\t_")
    return "\n".join(rows) + "\n\n"


def evaluated(gold, system, **options):
    sides = [conllu.read(Source(name, io.BytesIO(name.encode()))) for name in (gold, system)]
    found = Attachment(**options)
    for part in aligned_spans(*sides, ("gold", "system")):
        found.add(part)
    return found


GOLD = sentence("the 2 det", "dog 3 nsubj:pass", "seen 0 root", ". 3 punct")
WRONG = sentence("the 2 det", "dog 3 nsubj", "seen 0 root", ". 2 punct")


def test_word_by_word():
    scores = evaluated(GOLD, WRONG).scores()
    assert scores["words"] == MatchCount(4, 4, 4)
    assert scores["uas"] == MatchCount(3, 4, 4, 4)
    assert scores["la"] == MatchCount(4, 4, 4, 4)
    assert scores["las"] == MatchCount(3, 4, 4, 4)
    assert scores["clas"] == MatchCount(2, 2, 2, 2)  # dog, seen
    assert scores["sentences"] == MatchCount(1, 1, 1)


def test_subtypes_count_when_asked_for():
    scores = evaluated(GOLD, WRONG, subtypes=True).scores()
    assert (scores["la"].correct, scores["las"].correct, scores["clas"].correct) == (3, 2, 1)


def test_a_head_is_right_only_if_it_is_aligned():
    gold = sentence("a 2 det", "bc 3 nsubj", "d 0 root")
    system = sentence("a 3 det", "b 3 case", "c 4 nsubj", "d 0 root")
    scores = evaluated(gold, system).scores()
    assert scores["words"] == MatchCount(2, 3, 4)
    assert scores["uas"] == MatchCount(1, 3, 4, 2)  # d; the head of a has no partner
    assert scores["la"] == MatchCount(2, 3, 4, 2)
    assert scores["tokens"] == MatchCount(2, 3, 4)
    uas = scores["uas"]
    figures = [uas.figure(name) for name in ("precision", "recall", "f1", "aligned_accuracy")]
    assert figures == pytest.approx([25, 100 / 3, 200 / 7, 50])


def test_sentences_cut_elsewhere():
    gold = sentence("a 2 det", "b 0 root") + sentence("c 0 root")
    system = sentence("a 2 det", "b 0 root", "c 2 obj")
    scores = evaluated(gold, system).scores()
    assert scores["sentences"] == MatchCount(0, 2, 1)
    assert scores["uas"] == MatchCount(2, 3, 3, 3)


def test_groups_add_up_to_the_whole():
    gold = GOLD + sentence("a 2 det", "b 0 root") + sentence("c 0 root")
    system = WRONG + sentence("a 2 det", "b 0 root", "c 2 obj")
    whole = evaluated(gold, system).scores()
    by_length = evaluated(gold, system, by=grouping("length:2,4,9")).groups()
    assert [(one.name, one.sentences) for one in by_length] == [
        ("0-1", 1),
        ("2-3", 1),
        ("4-8", 1),
        ("9+", 0),
    ]
    for metric in ("words", "upos", "uas", "las", "la", "clas"):
        for field in ("correct", "gold", "system"):
            parts = [getattr(one.scores[metric], field) for one in by_length]
            assert sum(parts) == getattr(whole[metric], field)
    assert by_length[3].scores["las"].figure("f1") is None


def test_a_word_is_counted_where_the_gold_word_is_that_it_is_aligned_to():
    """The system's token xIm begins in gold's first sentence; its word Im is in gold's second."""
    gold = sentence("Ja 0 root", "so 1 advmod", "x 1 advmod") + sentence("Im 0 root")
    system = sentence("Ja 0 root", "so 1 advmod") + sentence("1-2 xIm", "x 2 advmod", "Im 0 root")
    short, long = evaluated(gold, system, by=grouping("length:2")).groups()
    assert short.scores["las"] == MatchCount(1, 1, 1, 1)
    assert long.scores["words"] == MatchCount(3, 3, 3)


def by_name(gold, system, spec):
    return {one.name: one.scores for one in evaluated(gold, system, by=grouping(spec)).groups()}


def test_by_label():
    groups = by_name(GOLD, WRONG, "deprel")
    assert list(groups) == ["det", "nsubj", "punct", "root"]
    assert groups["punct"]["las"] == MatchCount(0, 1, 1, 1)
    assert groups["punct"]["uas"].figure("precision") is None
    swapped = sentence("the 2 det", "dog 3 det", "seen 0 root", ". 3 punct")
    groups = by_name(GOLD, swapped, "deprel")
    assert groups["det"]["las"] == MatchCount(1, 1, 2, 1)
    assert groups["nsubj"]["las"] == MatchCount(0, 1, 0, 1)
    assert groups["nsubj"]["uas"].figure("recall") == 100


def test_by_distance():
    """Distances: the-dog 1, dog-seen 1, seen the root, the full stop 1 from seen and 2 from dog."""
    groups = by_name(GOLD, WRONG, "distance")
    assert [*groups] == ["root", "1", "2", "3-6", "7+"]
    assert groups["root"]["las"] == MatchCount(1, 1, 1, 1)
    assert groups["1"]["uas"] == MatchCount(2, 3, 2, 3)
    assert groups["2"]["uas"] == MatchCount(0, 0, 1, 0)
    assert groups["1"]["la"] == MatchCount(3, 3, None, 3)
    assert [*by_name(GOLD, WRONG, "distance:1,2,5")] == ["root", "1", "2-4", "5+"]
    assert [*by_name(GOLD, WRONG, "distance:2")] == ["root", "1", "2+"]
    assert [*by_name(GOLD, WRONG, "distance:4,9")] == ["root", "1-3", "4-8", "9+"]


def test_a_right_arc_over_words_that_are_split_differently_has_one_distance():
    gold = sentence("a 4 nsubj", "b 4 aux", "c 4 aux", "d 0 root")
    system = sentence("a 3 nsubj", "bc 3 aux", "d 0 root")
    groups = by_name(gold, system, "distance:2,3")
    assert groups["3+"]["uas"] == MatchCount(1, 1, 1, 1)  # a: two words away in the system's tree
    assert groups["2"]["uas"] == MatchCount(0, 1, 0, 0)
    assert groups["1"]["uas"] == MatchCount(0, 1, 1, 0)  # bc: as far from d as in the system's tree


def test_by_tag():
    """The tag is gold's; a word that gold does not have counts for its own tag."""
    gold = sentence("a 2 det", "bc 0 root", "n 2 obj", "n 2 obj")
    system = sentence("a 2 det", "b 0 root", "c 2 obj", "n 2 obj", "n 3 obj").replace(
        "\tA\t", "\tN\t"
    )
    groups = by_name(gold, system, "upos")
    assert [*groups] == ["N", "A", "B", "C"]
    assert groups["N"]["uas"] == MatchCount(0, 2, 2, 2)  # their head in gold is bc
    assert groups["N"]["upos"] == MatchCount(2, 2, 2, 2)
    assert groups["A"]["upos"] == MatchCount(0, 1, 1, 1)
    assert groups["B"]["words"] == MatchCount(0, 1, 1)
    assert groups["C"]["words"] == MatchCount(0, 0, 1)


def test_groups_of_real_trees_are_those_of_a_count_of_rows(data):
    """The system's trees have the same words, but every third leaf is attached to the root."""
    text = gzip.decompress((data / "ud" / "en_ewt-dev.conllu.gz").read_bytes()).decode()
    blocks = text.split("\n\n")[:300]
    right, wrong = [], []
    for block in blocks:
        rows = [row.split("\t") for row in block.split("\n") if re.match("[0-9]+\t", row)]
        others = [[*row[:3], "X", *row[4:]] for row in rows]
        (root,) = (row[0] for row in rows if row[6] == "0")
        heads = {row[6] for row in rows}
        for row in [row for row in others if row[0] not in heads and row[6] != "0"][::3]:
            row[6:8] = root, "punct"
        right.append(rows)
        wrong.append(others)
    gold, system = (
        "".join("\n".join(map("\t".join, rows)) + "\n\n" for rows in side)
        for side in (right, wrong)
    )
    counts = collections.Counter()
    for rows, others in zip(right, wrong, strict=True):
        for i, (row, other) in enumerate(zip(rows, others, strict=True), 1):
            same = row[6] == other[6], row[7].split(":")[0] == other[7].split(":")[0]
            bins = [
                "root" if head == 0 else next(name for name, most in BINS if abs(i - head) <= most)
                for head in (int(row[6]), int(other[6]))
            ]
            counts[bins[0], "gold"] += 1
            counts[bins[1], "system"] += 1
            counts[bins[0], "uas"] += same[0]
            counts[bins[0], "las"] += all(same)
            counts[row[3], "gold"] += 1
            counts[row[3], "uas"] += same[0]
            counts[row[3], "las"] += all(same)
    for spec in ("distance", "upos"):
        for name, scores in by_name(gold, system, spec).items():
            for metric in ("uas", "las"):
                found = scores[metric]
                assert (found.correct, found.gold) == (counts[name, metric], counts[name, "gold"])
                of_system = counts[name, "system" if spec == "distance" else "gold"]
                assert found.system == of_system
    assert counts["7+", "system"] != counts["7+", "gold"] > counts["7+", "uas"] > 0


def tagged(*words):
    """Rows from "form lemma upos xpos feats head label"."""
    rows = []
    for n, word in enumerate(words, 1):
        form, lemma, upos, xpos, feats, head, label = word.split()
        rows.append("\t".join((str(n), form, lemma, upos, xpos, feats, head, label, "_", "_")))
    return "\n".join(rows) + "\n\n"


TAGGED = (
    "The the DET DT Definite=Def 2 det",
    "dogs dog NOUN NNS Number=Plur 4 nsubj:pass",
    "are be AUX VBP Mood=Ind 4 aux:pass",
    "seen see VERB VBN VerbForm=Part|Tense=Past 0 root",
    ". . PUNCT . _ 4 punct",
)


def changed(word, old, new):
    return tagged(*(row.replace(old, new) if i == word else row for i, row in enumerate(TAGGED)))


@pytest.mark.parametrize(
    ("word", "old", "new", "wrong"),
    [
        (0, "Definite=Def", "Definite=Ind", ["ufeats", "alltags", "mlas"]),  # a dependent of dogs
        (0, "Definite=Def", "Definite=Def|Style=Arch", []),  # a language-specific feature
        (0, "DT", "AT", ["xpos", "alltags"]),
        (1, "Number=Plur", "Number=Sing", ["ufeats", "alltags", "mlas"]),
        (1, " dog ", " dogs ", ["lemmas", "blex"]),
        (2, " be ", " are ", ["lemmas"]),  # not a content word
        (2, "AUX", "VERB", ["upos", "alltags", "mlas"]),
        (2, "aux:pass", "cop", ["las", "la", "mlas"]),
        (2, "aux:pass", "aux", []),
        (3, "VerbForm=Part|Tense=Past", "Tense=Past|VerbForm=Part", []),  # only the order
        (4, "_ 4", "_ 2", ["uas", "las"]),
        (1, "4 nsubj:pass", "4 obj", ["las", "la", "clas", "mlas", "blex"]),
        (0, "2 det", "4 det", ["uas", "las", "mlas"]),  # dogs has lost its article
    ],
)
def test_tags_lemmas_and_function_words(word, old, new, wrong):
    scores = evaluated(tagged(*TAGGED), changed(word, old, new)).scores()
    found = [name for name, one in scores.items() if one.correct < one.gold]
    assert found == wrong


def test_a_gold_lemma_that_is_not_given_is_right_whatever_it_is():
    gold = changed(1, " dog ", " _ ")
    assert evaluated(gold, tagged(*TAGGED)).scores()["blex"] == MatchCount(2, 2, 2, 2)
    assert evaluated(tagged(*TAGGED), gold).scores()["blex"] == MatchCount(1, 2, 2, 2)


def counted_by_hand(gold, system, subtypes):
    """(correct, words) of UAS, LAS and LA in two files with the same words; PUNCT is left out."""
    golds, systems = (
        [line.split("\t") for line in text.split("\n") if line[:1].isdigit()]
        for text in (gold, system)
    )
    correct, n = collections.Counter(), 0
    for right, found in zip(golds, systems, strict=True):
        if right[3] != "PUNCT":
            label = (lambda row: row[7]) if subtypes else (lambda row: row[7].split(":")[0])
            heads, labels = right[6] == found[6], label(right) == label(found)
            n += 1
            correct.update({"uas": heads, "la": labels, "las": heads and labels})
    return correct, n


@pytest.mark.parametrize("subtypes", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_without_punctuation_its_words_count_for_nothing(seed, subtypes):
    def text(seed):
        rng = random.Random(seed)
        blocks = []
        for size in sizes:
            tree = [0, *(rng.randint(1, word - 1) for word in range(2, size + 1))]  # heads first
            words = [f"{'xyz'[i % 3]} {head} {rng.choice(labels)}" for i, head in enumerate(tree)]
            rows = sentence(*words).split("\n")
            tags = (rng.choice(("NOUN", "PUNCT", "SYM")) for _ in rows)
            split = [row.split("\t") for row in rows if row]
            tagged = ("\t".join([*r[:3], tag, *r[4:]]) for r, tag in zip(split, tags, strict=False))
            blocks.append("\n".join(tagged) + "\n\n")
        return "".join(blocks)

    sizes = random.Random(seed).choices(range(1, 9), k=30)
    labels = ("nsubj", "nsubj:pass", "punct", "det")
    gold, system = text(seed), text(seed + 100)
    scores = evaluated(gold, system, subtypes=subtypes, punct=False).scores()
    correct, n = counted_by_hand(gold, system, subtypes)
    for metric in ("uas", "las", "la"):
        assert scores[metric] == MatchCount(correct[metric], n, n, n)
        assert 0 < correct[metric] < n
    assert scores["words"] == MatchCount(n, n, n)
    both = evaluated(gold, system, subtypes=subtypes, by=grouping("upos"))
    rest = [group.scores["las"] for group in both.groups() if group.name != "PUNCT"]
    assert sum(one.correct for one in rest) == correct["las"]  # --by upos isolates PUNCT
    by = evaluated(gold, system, subtypes=subtypes, by=grouping("deprel"), punct=False)
    assert sum(one.scores["las"].correct for one in by.groups()) == correct["las"]
    assert sum(one.scores["las"].gold for one in by.groups()) == n


def retagged(text, *tags):
    rows = [row.split("\t") for row in text.split("\n") if row]
    return (
        "".join("\t".join([*r[:3], t, *r[4:]]) + "\n" for r, t in zip(rows, tags, strict=True))
        + "\n"
    )


def test_punctuation_is_gold_s_and_else_the_systems_own():
    gold = retagged(sentence("a 0 root", "b 1 obj", ".. 1 punct"), "X", "X", "PUNCT")
    same = retagged(sentence("a 0 root", "b 3 obj", ".. 1 punct"), "PUNCT", "X", "X")
    scores = evaluated(gold, same, punct=False).scores()
    assert scores["uas"] == MatchCount(1, 2, 2, 2)  # a, though the system calls it PUNCT
    assert scores["tokens"] == MatchCount(3, 3, 3)
    split = retagged(
        sentence("a 0 root", "b 3 obj", ". 1 punct", ". 1 dep"), "X", "X", "PUNCT", "X"
    )
    assert evaluated(gold, split, punct=False).scores()["uas"] == MatchCount(1, 2, 3, 2)


def test_a_head_that_is_punctuation_is_still_a_head():
    gold = retagged(sentence("a 2 nsubj", "= 0 root", "b 2 obj"), "X", "PUNCT", "X")
    wrong = retagged(sentence("a 3 nsubj", "= 3 root", "b 0 obj"), "X", "PUNCT", "X")
    assert evaluated(gold, gold, punct=False).scores()["uas"] == MatchCount(2, 2, 2, 2)
    assert evaluated(gold, wrong, punct=False).scores()["uas"] == MatchCount(0, 2, 2, 2)
