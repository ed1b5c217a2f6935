"""The metrics of `synmt score`: statistics of each sentence, and scores of their sums.

BLEU, chrF and TER are sacreBLEU's: its tokenizers, its sentence statistics, its corpus score,
its signature. Every metric is linear up to its last step: sentence statistics are summed,
then one formula gives the score of any set of sentences (a bucket, a bootstrap sample).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from synmt_cli import __version__
from synmt_cli.core.evaluation import formulas
from synmt_cli.core.evaluation.formulas import Array
from synmt_cli.core.evaluation.ribes import ALPHA, BETA, ribes
from synmt_cli.errors import Unavailable, UsageError, printable, quoted
from synmt_cli.formats.reports.scores import MetricInfo

if TYPE_CHECKING:
    from sacrebleu import BLEU
    from sacrebleu.metrics.base import Metric as SacrebleuMetric

# What `--tokenize` takes, for BLEU and RIBES. sacreBLEU's `spm` is flores101 by an older name.
TOKENIZERS = (
    "13a",
    "none",
    "char",
    "intl",
    "zh",
    "ja-mecab",
    "ko-mecab",
    "flores101",
    "flores200",
    "spBLEU-1K",
)
EXTRAS = {"ja-mecab": "ja", "ko-mecab": "ko"}  # tokenizer: extra of the package sacrebleu


@dataclass(frozen=True, slots=True)
class Metric(MetricInfo):
    """A metric over fixed references.

    statistics: hypotheses -> (n, k), one row for each. corpus: sums (k,) -> the score, as
    sacreBLEU computes it. scores: sums (m, k) -> (m,), the same for many sums at once.
    sentences: statistics (n, k) -> (n,), the score of each sentence alone.
    """

    statistics: Callable[[Sequence[str]], Array]
    corpus: Callable[[Array], float]
    scores: Callable[[Array], Array]
    sentences: Callable[[Array], Array]


References = Sequence[Sequence[str]]  # one sequence of lines for each reference file
Builder = Callable[[str, References, str, bool], Metric]  # name, references, tokenize, lowercase


def check(names: Sequence[str], tokenize: str) -> None:
    """Raises UsageError for an unknown metric or tokenizer."""
    for name in names:
        if name not in METRICS:
            raise UsageError(f"no metric {quoted(name)}; there are {', '.join(METRICS)}")
    if tokenize not in TOKENIZERS:
        raise UsageError(f"no tokenizer {quoted(tokenize)}; there are {', '.join(TOKENIZERS)}")


def build(
    names: Sequence[str], references: References, tokenize: str = "13a", lowercase: bool = False
) -> list[Metric]:
    """The metrics of these names, each with the references' statistics computed once.

    names: keys of METRICS. tokenize: one of TOKENIZERS, for BLEU and RIBES. lowercase: for
    BLEU and chrF; TER and RIBES always ignore case. Raises Unavailable when a tokenizer lacks
    its package or model.
    """
    return [METRICS[name](name, references, tokenize, lowercase) for name in names]


def _bleu(name: str, references: References, tokenize: str, lowercase: bool) -> Metric:
    metric = _with_tokenizer(tokenize, lowercase=lowercase, references=references)
    sentences = partial(formulas.bleu, effective_order=True)
    return _from_sacrebleu(name, "BLEU", metric, formulas.bleu, sentences)


def _chrf(
    name: str,
    references: References,
    tokenize: str,
    lowercase: bool,
    *,
    word_order: int = 0,
    beta: int = 2,
    eps_smoothing: bool = False,
) -> Metric:
    from sacrebleu import CHRF

    metric = CHRF(
        word_order=word_order,
        beta=beta,
        lowercase=lowercase,
        eps_smoothing=eps_smoothing,
        references=references,
    )
    scores = partial(formulas.chrf, beta=beta, eps_smoothing=eps_smoothing)
    return _from_sacrebleu(name, f"chrF{beta}" + "+" * word_order, metric, scores, scores)


def _ter(name: str, references: References, tokenize: str, lowercase: bool) -> Metric:
    from sacrebleu import TER

    metric = TER(references=references)
    return _from_sacrebleu(name, "TER", metric, formulas.ter, formulas.ter, False)


def _from_sacrebleu(
    name: str,
    label: str,
    metric: SacrebleuMetric,
    scores: Callable[[Array], Array],
    sentences: Callable[[Array], Array],
    higher_is_better: bool = True,
) -> Metric:
    def statistics(hypotheses: Sequence[str]) -> Array:
        rows = metric._extract_corpus_statistics(hypotheses, None)
        return np.array(rows, dtype=np.float64)  # (n, k)

    def corpus(sums: Array) -> float:
        return float(metric._compute_score_from_stats(sums.tolist()).score)

    info = (name, label, str(metric.get_signature()), higher_is_better, 2)
    return Metric(*info, statistics, corpus, scores, sentences)


def _ribes(name: str, references: References, tokenize: str, lowercase: bool) -> Metric:
    tokenizer = _with_tokenizer(tokenize).tokenizer

    def words(line: str) -> list[str]:
        return str(tokenizer(line.lower().rstrip())).split()

    tokenized = [[words(line) for line in reference] for reference in references]

    def statistics(hypotheses: Sequence[str]) -> Array:
        rows = [
            _best_ribes(words(hypothesis), [words_of[i] for words_of in tokenized])
            for i, hypothesis in enumerate(hypotheses)
        ]
        return np.array(rows, dtype=np.float64)  # (n, 2)

    def corpus(sums: Array) -> float:
        return float(formulas.mean(sums[None])[0])

    signature = (
        f"nrefs:{len(references)}|case:lc|tok:{tokenizer.signature()}|alpha:{ALPHA:.2f}|beta:{BETA:.2f}"
        f"|version:synmt-{__version__}"
    )
    info = (name, "RIBES", signature, True, 4)
    return Metric(*info, statistics, corpus, formulas.mean, formulas.mean)


def _best_ribes(hypothesis: list[str], references: list[list[str]]) -> tuple[float, float]:
    """(score, 1) with the reference that fits best; (0, 0) where there is no reference.

    Such a sentence does not count, as in RIBES.py 1.03 with `--emptyref`.
    """
    scores = [ribes(reference, hypothesis) for reference in references if reference]
    return (max(scores), 1.0) if scores else (0.0, 0.0)


def _with_tokenizer(name: str, **options: Any) -> BLEU:
    """A BLEU with that tokenizer. Raises Unavailable if its package or model is missing."""
    from sacrebleu import BLEU
    from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
    from sacrebleu.utils import SACREBLEU_DIR

    if name in SPM_MODELS:
        url = SPM_MODELS[name]["url"]
        path = os.path.join(SACREBLEU_DIR, "models", os.path.basename(url))
        if not os.path.exists(path):  # sacreBLEU would download it; synmt uses no network
            raise Unavailable(f"tokenizer {name} needs a model: download {url} to {path}")
    try:
        # force: the command warns of text that looks tokenized, not the library.
        return BLEU(tokenize=name, force=True, **options)
    except (ImportError, RuntimeError, OSError) as error:
        if name in EXTRAS:
            install = f"pip install 'sacrebleu[{EXTRAS[name]}]'"
            raise Unavailable(f"tokenizer {name} needs a package: {install}") from error
        raise Unavailable(f"tokenizer {name}: {printable(str(error))}") from error


METRICS: Mapping[str, Builder] = {
    "bleu": _bleu,
    "chrf": _chrf,
    "chrf+": partial(_chrf, word_order=1, beta=3, eps_smoothing=True),  # Popović's chrF++.py
    "chrf++": partial(_chrf, word_order=2),
    "ter": _ter,
    "ribes": _ribes,
}
