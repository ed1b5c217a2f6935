"""The metrics of `synmt score`: statistics of each sentence, and scores of their sums.

BLEU, chrF and TER are sacreBLEU's: its tokenizers, its sentence statistics (ngrams.py counts the
same where there is one reference), its corpus score, its signature. Every metric is linear up to
its last step: sentence statistics are summed, then one formula gives the score of any set of
sentences (a bucket, a bootstrap sample).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from synmt_cli import __version__, pool
from synmt_cli.core.evaluation.metrics import formulas, ngrams
from synmt_cli.core.evaluation.metrics.formulas import Array
from synmt_cli.core.evaluation.metrics.ribes import ALPHA, BETA, ribes
from synmt_cli.core.text import tokenizers
from synmt_cli.errors import UsageError, quoted
from synmt_cli.formats.reports.score.systems import Interval, MetricInfo, Parts

if TYPE_CHECKING:
    from sacrebleu import BLEU, CHRF
    from sacrebleu.metrics.base import Metric as SacrebleuMetric

ORDER, CHARACTER_ORDER = 4, 6  # of BLEU's and chrF's n-grams
PERCENT = (0.0, 100.0)


@dataclass(frozen=True, slots=True)
class TextSettings:
    """Settings of metrics on text, the options of sacreBLEU.

    tokenize: a tokenizer of sacreBLEU, for BLEU and RIBES. lowercase: for BLEU and chrF; TER and
    RIBES always ignore case. smooth, smooth_value, order: of BLEU. char_order: of chrF.
    """

    tokenize: str = tokenizers.DEFAULT
    lowercase: bool = False
    smooth: str = "exp"
    smooth_value: float | None = None
    order: int = ORDER
    char_order: int = CHARACTER_ORDER

    def document(self) -> dict[str, Any]:
        """The settings by name."""
        return asdict(self)


def no_parts(sums: Array) -> Parts:
    """The parts of a metric that has nothing but a score: none."""
    return {}


@dataclass(frozen=True, slots=True)
class Metric(MetricInfo):
    """A metric over fixed references.

    statistics: hypotheses -> (n, k), one row for each of them, which are as many as the lines of a
    reference; raises ValueError otherwise. corpus: sums (k,) -> the score, as
    sacreBLEU computes it. scores: sums (m, k) -> (m,), the same for many sums at once.
    sentences: statistics (n, k) -> (n,), the score of each sentence alone. parts: sums (k,) ->
    what the score is made of, numbers or lists of them by name. bounds: the least and the greatest
    score that there can be.
    """

    statistics: Callable[[Sequence[str]], Array]
    corpus: Callable[[Array], float]
    scores: Callable[[Array], Array]
    sentences: Callable[[Array], Array]
    parts: Callable[[Array], Parts] = no_parts
    bounds: Interval = (-math.inf, math.inf)


References = Sequence[Sequence[str]]  # one sequence of lines for each reference file
Builder = Callable[[str, References, TextSettings, int], Metric]  # the name, ..., processes


def check(names: Sequence[str], tokenize: str) -> None:
    """Raises UsageError for an unknown metric or tokenizer."""
    for name in names:
        if name not in METRICS:
            others = "--segment-scores METRIC=FILE takes the scores of others"
            known = f"there are {', '.join(METRICS)}; {others}"
            hint = f"did you mean {name.lower()}?" if name.lower() in METRICS else known
            raise UsageError(f"no metric {quoted(name)}; {hint}")
    tokenizers.check(tokenize)


def build(
    names: Sequence[str],
    references: References,
    settings: TextSettings | None = None,
    jobs: int = 1,
) -> list[Metric]:
    """The metrics of these names, each with the references' statistics computed once.

    names: keys of METRICS. jobs: processes that count what takes long. Raises Unavailable when a
    tokenizer lacks its package or model; ValueError for an unknown name, no references, or
    references of different length.
    """
    if unknown := [name for name in names if name not in METRICS]:
        raise ValueError(f"no metric {unknown[0]!r}; there are {', '.join(METRICS)}")
    if not names:
        return []
    lengths = sorted(set(map(len, references)))
    if not lengths:
        raise ValueError("no references")
    if len(lengths) > 1:
        raise ValueError(f"references of different length: {lengths[0]} and {lengths[-1]} lines")
    settings = settings or TextSettings()
    built = [METRICS[name](name, references, settings, jobs) for name in names]
    return [replace(one, statistics=_refusing_others(one.statistics, lengths[0])) for one in built]


def _refusing_others(
    statistics: Callable[[Sequence[str]], Array], n: int
) -> Callable[[Sequence[str]], Array]:
    """The same function, which refuses any number of hypotheses but n."""

    def checked(hypotheses: Sequence[str]) -> Array:
        if len(hypotheses) != n:
            raise ValueError(f"{len(hypotheses)} hypotheses for references of {n} lines")
        return statistics(hypotheses)

    return checked


def _bleu(name: str, references: References, settings: TextSettings, jobs: int) -> Metric:
    fast = len(references) == 1
    metric = tokenizers.bleu(
        settings.tokenize,
        lowercase=settings.lowercase,
        smooth_method=settings.smooth,
        smooth_value=settings.smooth_value,
        max_ngram_order=settings.order,
        references=None if fast else references,
    )
    scores = partial(formulas.bleu, smooth=settings.smooth, smooth_value=settings.smooth_value)
    sentences = partial(scores, effective_order=True)
    statistics = _bleu_statistics(metric, references[0]) if fast else None

    def parts(sums: Array) -> Parts:
        score = metric._compute_score_from_stats(sums.tolist())
        lengths = {
            "hypothesis words": _count(score.sys_len),
            "reference words": _count(score.ref_len),
        }
        return {"precision": list(score.precisions), "brevity penalty": score.bp, **lengths}

    order = "" if settings.order == ORDER else f"|order:{settings.order}"
    info = _info(name, "BLEU", metric, order)
    statistics = statistics or _counter(metric, jobs)
    return Metric(*info, statistics, _corpus(metric), scores, sentences, parts, PERCENT)


def _chrf(
    name: str,
    references: References,
    settings: TextSettings,
    jobs: int,
    *,
    word_order: int = 0,
    beta: int = 2,
    eps_smoothing: bool = False,
) -> Metric:
    from sacrebleu import CHRF

    fast = len(references) == 1
    metric = CHRF(
        char_order=settings.char_order,
        word_order=word_order,
        beta=beta,
        lowercase=settings.lowercase,
        eps_smoothing=eps_smoothing,
        references=None if fast else references,
    )
    scores = partial(formulas.chrf, beta=beta, eps_smoothing=eps_smoothing)

    def parts(sums: Array) -> Parts:
        hypothesis, reference, matches = (sums[i::3] for i in range(3))
        ratios = (_percent(matches, whole).tolist() for whole in (hypothesis, reference))
        return dict(zip(("precision", "recall"), ratios, strict=True))

    label = f"chrF{beta}" + "+" * word_order
    statistics = _chrf_statistics(metric, references[0]) if fast else None
    info = _info(name, label, metric)
    statistics = statistics or _counter(metric, jobs)
    return Metric(*info, statistics, _corpus(metric), scores, scores, parts, PERCENT)


def _count(number: float) -> float:
    """A count as an int; the mean length of several references may stay a float."""
    return int(number) if number == int(number) else float(number)


def _percent(part: Array, whole: Array) -> Array:
    return 100 * np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def _ter(name: str, references: References, settings: TextSettings, jobs: int) -> Metric:
    from sacrebleu import TER

    metric = TER(references=references)

    def parts(sums: Array) -> Parts:
        return {"edits": _count(sums[0]), "reference words": _count(sums[1])}

    info = _info(name, "TER", metric)
    counter = _counter(metric, jobs)
    ter, bounds = formulas.ter, (0.0, math.inf)
    return Metric(*info, counter, _corpus(metric), ter, ter, parts, bounds)


def _info(
    name: str, label: str, metric: SacrebleuMetric, further: str = ""
) -> tuple[str, str, str, bool, int]:
    """The fields of MetricInfo. further: what sacreBLEU's signature leaves out."""
    return name, label, f"{metric.get_signature()}{further}", name != "ter", 2


def _counter(metric: SacrebleuMetric, jobs: int) -> Callable[[Sequence[str]], Array]:
    """A function that counts statistics as sacreBLEU does, line by line, in `jobs` processes."""
    references: Sequence[Any] = metric._ref_cache or ()

    def of_line(numbered: tuple[int, str]) -> list[float]:
        number, hypothesis = numbered
        line = metric._preprocess_segment(hypothesis)
        return list(metric._compute_segment_statistics(line, references[number]))

    return _by_line(of_line, jobs)


def _by_line(
    of_line: Callable[[tuple[int, str]], Sequence[float]], jobs: int
) -> Callable[[Sequence[str]], Array]:
    """A function that computes statistics, (n, k), a row for each line, in `jobs` processes."""

    def statistics(hypotheses: Sequence[str]) -> Array:
        rows = pool.ordered_map(of_line, enumerate(hypotheses), jobs)
        return np.array([*rows], dtype=np.float64)

    return statistics


def _corpus(metric: SacrebleuMetric) -> Callable[[Array], float]:
    def corpus(sums: Array) -> float:
        return float(metric._compute_score_from_stats(sums.tolist()).score)

    return corpus


def _bleu_statistics(metric: BLEU, reference: Sequence[str]) -> Callable[[Sequence[str]], Array]:
    """The statistics that sacreBLEU's BLEU counts with one reference."""
    order = metric.max_ngram_order
    metric.num_refs = 1  # sacreBLEU sets it where it counts the references itself
    known: dict[str, int] = {}

    def symbols(lines: Sequence[str]) -> ngrams.Symbols:
        tokenized = [metric._preprocess_segment(line).split() for line in lines]
        return ngrams.words(tokenized, known)

    theirs = symbols(reference)

    def statistics(hypotheses: Sequence[str]) -> Array:
        ours = symbols(hypotheses)
        lengths = np.stack([ours.lengths, theirs.lengths], axis=1)
        return np.hstack([lengths, ngrams.matches(ours, theirs, order), ours.totals(order)])

    return statistics


def _chrf_statistics(metric: CHRF, reference: Sequence[str]) -> Callable[[Sequence[str]], Array]:
    """The statistics that sacreBLEU's chrF counts with one reference."""
    orders = (metric.char_order, metric.word_order)
    metric.num_refs = 1
    known: dict[str, int] = {}

    def symbols(lines: Sequence[str]) -> tuple[ngrams.Symbols, ngrams.Symbols | None]:
        segments = [metric._preprocess_segment(line) for line in lines]
        characters = ngrams.characters(["".join(one.split()) for one in segments])
        if not metric.word_order:
            return characters, None
        separated = [metric._remove_punctuation(one) for one in segments]
        return characters, ngrams.words(separated, known)

    theirs = symbols(reference)

    def statistics(hypotheses: Sequence[str]) -> Array:
        columns = []
        for ours, other, order in zip(symbols(hypotheses), theirs, orders, strict=True):
            if ours is not None and other is not None:
                totals = other.totals(order)
                # As in sacreBLEU, n-grams do not count where the reference is too short for any.
                counts = np.where(totals > 0, ours.totals(order), 0)
                columns.append(np.stack([counts, totals, ngrams.matches(ours, other, order)], 2))
        joined = np.concatenate(columns, axis=1)  # (n, orders, 3)
        return joined.reshape(len(joined), -1)

    return statistics


def _ribes(name: str, references: References, settings: TextSettings, jobs: int) -> Metric:
    words, tokenizer = lowercase_words(settings.tokenize)
    tokenized = [[words(line) for line in reference] for reference in references]

    def of_line(numbered: tuple[int, str]) -> tuple[float, float]:
        number, hypothesis = numbered
        return _best_ribes(words(hypothesis), [words_of[number] for words_of in tokenized])

    signature = (
        f"nrefs:{len(references)}|case:lc|tok:{tokenizer}|alpha:{ALPHA:.2f}|beta:{BETA:.2f}"
        f"|version:synmt-{__version__}"
    )
    info = (name, "RIBES", signature, True, 4)
    return Metric(
        *info,
        _by_line(of_line, jobs),
        formulas.mean_of_corpus,
        formulas.mean,
        formulas.mean,
        bounds=(0.0, 1.0),
    )


def _best_ribes(hypothesis: list[str], references: list[list[str]]) -> tuple[float, float]:
    """(score, 1) with the reference that fits best; (0, 0) where there is no reference.

    Such a sentence does not count, as in RIBES.py 1.03 with `--emptyref`.
    """
    scores = [ribes(reference, hypothesis) for reference in references if reference]
    return (max(scores), 1.0) if scores else (0.0, 0.0)


def lowercase_words(name: str) -> tuple[Callable[[str], list[str]], str]:
    """The words of a line, in lower case, by a tokenizer of sacreBLEU; and its signature.

    Raises Unavailable if its package or model is missing.
    """
    tokenizer = tokenizers.bleu(name).tokenizer

    def words(line: str) -> list[str]:
        return str(tokenizer(line.lower().rstrip())).split()

    return words, str(tokenizer.signature())


METRICS: Mapping[str, Builder] = {
    "bleu": _bleu,
    "chrf": _chrf,
    "chrf+": partial(_chrf, word_order=1, beta=3, eps_smoothing=True),  # Popović's chrF++.py
    "chrf++": partial(_chrf, word_order=2),
    "ter": _ter,
    "ribes": _ribes,
}
