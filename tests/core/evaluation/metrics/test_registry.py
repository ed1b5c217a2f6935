"""Scores from summed sentence statistics are sacreBLEU's corpus scores, to the last bit."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu import BLEU, CHRF, TER

from synmt_cli.core.evaluation.metrics.registry import METRICS, TextSettings, build, check
from synmt_cli.core.evaluation.metrics.ribes import ribes
from synmt_cli.errors import Unavailable, UsageError

SACREBLEU = {
    "bleu": lambda: BLEU(),
    "chrf": lambda: CHRF(),
    "chrf+": lambda: CHRF(word_order=1, beta=3, eps_smoothing=True),
    "chrf++": lambda: CHRF(word_order=2),
    "ter": lambda: TER(),
}
LINES = st.lists(st.text(st.sampled_from("ab c.,'’ÜΣ1"), max_size=30), min_size=1, max_size=6)


def noisy_lines(seed, n=60):
    """Lines and a worse copy of them."""
    dice, words = random.Random(seed), ["the", "a", "cat", "dog", "sees", "of", ".", ",", "10"]
    good = [" ".join(dice.choices(words, k=9)) for _ in range(n)]
    return good, [" ".join(dice.sample(line.split(), 8)) for line in good]


@pytest.mark.parametrize("name", SACREBLEU)
@given(LINES, LINES)
@settings(max_examples=30)
def test_corpus_score_is_sacrebleus(name, references, hypotheses):
    hypotheses = (hypotheses * len(references))[: len(references)]
    [metric] = build([name], [references])
    theirs = SACREBLEU[name]()
    expected = theirs.corpus_score(hypotheses, [references]).score
    sums = metric.statistics(hypotheses).sum(axis=0)
    assert metric.corpus(sums) == expected
    assert metric.scores(sums[None])[0] == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert metric.signature == str(theirs.get_signature())


@pytest.mark.parametrize("name", SACREBLEU)
def test_several_references(name):
    references, hypotheses = noisy_lines(1)
    further, _ = noisy_lines(2)
    [metric] = build([name], [references, further])
    expected = SACREBLEU[name]().corpus_score(hypotheses, [references, further]).score
    assert metric.corpus(metric.statistics(hypotheses).sum(axis=0)) == pytest.approx(expected)
    assert metric.signature.startswith("nrefs:2|")


@pytest.mark.parametrize("name", SACREBLEU)
def test_sentence_scores_are_sacrebleus(name):
    references, hypotheses = noisy_lines(3)
    [metric] = build([name], [references])
    theirs = BLEU(effective_order=True) if name == "bleu" else SACREBLEU[name]()
    expected = [
        theirs.sentence_score(hypothesis, [reference]).score
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    assert metric.sentences(metric.statistics(hypotheses)).tolist() == pytest.approx(expected)


def test_options_reach_sacrebleu():
    references, hypotheses = noisy_lines(4)
    hypotheses = [line.upper() for line in hypotheses]
    settings = TextSettings(tokenize="char", lowercase=True)
    bleu, chrf = build(["bleu", "chrf"], [references], settings)
    expected = BLEU(tokenize="char", lowercase=True).corpus_score(hypotheses, [references])
    assert bleu.corpus(bleu.statistics(hypotheses).sum(axis=0)) == expected.score
    assert "case:lc|eff:no|tok:char" in bleu.signature
    assert "case:lc" in chrf.signature


@pytest.mark.parametrize("smooth", [("exp", None), ("floor", 0.4), ("add-k", None), ("none", None)])
@pytest.mark.parametrize("order", [2, 4, 6])
def test_smoothing_and_orders_are_sacrebleus(smooth, order):
    references, hypotheses = noisy_lines(5)
    settings = TextSettings(smooth=smooth[0], smooth_value=smooth[1], order=order, char_order=order)
    bleu, chrf = build(["bleu", "chrf"], [references], settings)
    given = {"smooth_method": smooth[0], "smooth_value": smooth[1], "max_ngram_order": order}
    theirs = BLEU(**given)
    for lines, truth in ((hypotheses, references), (["a b c"], ["a b c"]), (["x y"], ["y z"])):
        rows = build(["bleu"], [truth], settings)[0].statistics(lines)
        expected = theirs.corpus_score(lines, [truth])
        sums = rows.sum(axis=0)
        assert bleu.corpus(sums) == expected.score
        assert bleu.scores(sums[None])[0] == pytest.approx(expected.score, rel=1e-12, abs=1e-12)
    parts = bleu.parts(bleu.statistics(hypotheses).sum(axis=0))
    expected = theirs.corpus_score(hypotheses, [references])
    assert parts["precision"] == expected.precisions
    lengths = (parts["brevity penalty"], parts["hypothesis words"], parts["reference words"])
    assert lengths == (expected.bp, expected.sys_len, expected.ref_len)
    assert all(isinstance(length, int) for length in lengths[1:])  # shown without decimals
    found = chrf.corpus(chrf.statistics(hypotheses).sum(axis=0))
    assert found == CHRF(char_order=order).corpus_score(hypotheses, [references]).score
    assert f"smooth:{smooth[0]}" in bleu.signature
    assert ("order:" in bleu.signature) == (order != 4)


def test_ribes_is_the_mean_of_lower_cased_tokenized_sentences():
    [metric] = build(["ribes"], [["A cat, it is.", "the dog", "a b"]])
    hypotheses = ["a cat it is .", "", "a b"]
    first = ribes(["a", "cat", ",", "it", "is", "."], ["a", "cat", "it", "is", "."])
    assert metric.corpus(metric.statistics(hypotheses).sum(axis=0)) == (first + 0 + 1) / 3
    assert metric.signature.startswith("nrefs:1|case:lc|tok:13a|alpha:0.25|beta:0.10|version:synmt")


def test_ribes_takes_the_best_reference_and_counts_no_sentence_without_one():
    [metric] = build(["ribes"], [["b a", "", "x y"], ["a b", "", ""]])
    assert metric.statistics(["a b", "a b", "y x"]).tolist() == [[1, 1], [0, 0], [0, 1]]


@pytest.mark.parametrize("name", METRICS)
def test_empty_texts_have_scores(name):
    [metric] = build([name], [["a b c", ""]])
    for hypotheses in (["", ""], ["", "x"], ["a", "\u2028"]):
        statistics = metric.statistics(hypotheses)
        scores = [metric.corpus(statistics.sum(axis=0)), *metric.sentences(statistics)]
        assert all(0 <= score < float("inf") for score in scores)


@pytest.mark.parametrize("name", ["ja-mecab", "flores200"])
def test_a_tokenizer_that_is_not_here_says_what_to_install(name, monkeypatch, tmp_path):
    monkeypatch.setattr("sacrebleu.utils.SACREBLEU_DIR", str(tmp_path))
    if name == "ja-mecab":
        monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    with pytest.raises(Unavailable, match=r"sacrebleu\[ja\]|download https"):
        build(["bleu"], [["a"]], TextSettings(tokenize=name))
    assert not list(tmp_path.iterdir())


def test_unknown_names_are_usage_errors():
    with pytest.raises(UsageError, match="chrf"):
        check(["bleurt"], "13a")
    with pytest.raises(UsageError, match="intl"):
        check(["bleu"], "moses")


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("n", [0, 2, 4])
def test_there_are_as_many_hypotheses_as_reference_lines(name, n):
    for references in ([["a b"] * 3], [["a b"] * 3, ["b a"] * 3]):
        [metric] = build([name], references)
        assert len(metric.statistics(["a b"] * 3)) == 3
        with pytest.raises(ValueError, match=f"^{n} hypotheses for references of 3 lines$"):
            metric.statistics(["a b"] * n)


def test_a_mistake_in_a_call_is_a_value_error():
    with pytest.raises(ValueError, match="no metric 'foo'; there are bleu, chrf"):
        build(["foo"], [["a"]])
    with pytest.raises(ValueError, match="different length: 2 and 3 lines"):
        build(["ter"], [["a"] * 3, ["a"] * 2])
    with pytest.raises(ValueError, match="no references"):
        build(["bleu"], [])
    assert build([], []) == []
