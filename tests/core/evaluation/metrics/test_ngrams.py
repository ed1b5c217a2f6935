"""n-grams counted at once against sacreBLEU's Counters."""

import random

import numpy as np
import pytest
from sacrebleu import BLEU, CHRF

from synmt_cli.core.evaluation.metrics.registry import TextSettings, build, ngrams

LATIN = "aab cde.,-"
WIDE = [chr(0x4E00 + i) for i in range(3000)]


def text(dice, alphabet, longest):
    return "".join(dice.choices(alphabet, k=dice.randrange(longest)))


def changed(dice, line, alphabet):
    return "".join(dice.choice(alphabet) if dice.random() < 0.2 else char for char in line)


@pytest.mark.parametrize("alphabet", [LATIN, WIDE], ids=["latin", "wide"])
@pytest.mark.parametrize("order", [1, 4, 9])
def test_statistics_are_sacrebleus(alphabet, order):
    dice = random.Random(order)
    references = [text(dice, alphabet, 40) for _ in range(60)] + ["", "a", "a b", "b", " "]
    hypotheses = [changed(dice, line, alphabet) for line in references[:60]]
    hypotheses += ["a", "", "a b c", " ", "\u2028"]
    settings = TextSettings("zh", order=order, char_order=order)
    theirs = {
        "bleu": BLEU(tokenize="zh", max_ngram_order=order, references=[references]),
        "chrf": CHRF(char_order=order, references=[references]),
        "chrf++": CHRF(char_order=order, word_order=2, references=[references]),
    }
    for name, metric in theirs.items():
        [ours] = build([name], [references], settings)
        expected = np.array(metric._extract_corpus_statistics(hypotheses, None), dtype=float)
        np.testing.assert_array_equal(ours.statistics(hypotheses), expected)


def test_a_segment_with_too_many_symbols_for_a_window_is_counted_one_by_one():
    line = "".join(WIDE)
    sides = [ngrams.characters([one, "ab"]) for one in (line, line[::-1] + line[7:12])]
    found = ngrams.matches(*sides, 6)
    assert found.tolist() == [[3000, 4, 3, 2, 1, 0], [2, 1, 0, 0, 0, 0]]
