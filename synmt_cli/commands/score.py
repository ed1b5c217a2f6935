"""`synmt score`: metrics, significance and scores by length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from synmt_cli import console
from synmt_cli.commands import Manual, completion, options
from synmt_cli.commands.options import argument, option
from synmt_cli.core.segments.buckets import Buckets, length_buckets
from synmt_cli.errors import NegativeAnswer, UsageError, printable, quoted
from synmt_cli.formats.reports import set_scores
from synmt_cli.formats.reports.scores import ScoreReport
from synmt_cli.formats.reports.table import FORMATS
from synmt_cli.io import writing

if TYPE_CHECKING:
    from synmt_cli.core.evaluation.significance import SignificanceTest

MANUAL = Manual(
    input="Plain text, one segment a line, not tokenized. REF, each SYS, each --refs and --src"
    " have the same number of lines. One of them may be `-`, stdin.",
    output="A table, or with `--format tsv` one line for each bucket, system and metric, or with"
    ' `--format json` one object: `{"n": 500, "systems": [{"name": "base.de", "scores": {"bleu":'
    ' {"score": 26.6, "signature": "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"}},'
    ' "paired": {}}], "buckets": []}`.',
    memory="Linear in the test set: its text, and some numbers for each segment and metric.",
    examples=(
        "synmt score ref.de pascal.de",
        "synmt score ref.de base.de pascal.de -M bleu,chrf+,ter,ribes",
        "synmt score ref.de base.de pascal.de --by length:5,8,12 --src test.en",
        "synmt score ref.de base.de pascal.de --paired ar --format json > scores.json",
        "synmt score ref.de base.de pascal.de --paired sign -M chrf+ --format json > chrf.json",
        "synmt score --sign-over chrf.json -M chrf+",
        "synmt score ref.de --get bleu < pascal.de",
        "synmt score ref.de pascal.de --fail-under chrf=1",
        "synmt score ref.de base.de pascal.de --format latex > scores.tex",
    ),
    see_also=("translate", "bucket-by-length"),
)
METRICS, TOKENIZE = "bleu,chrf", "13a"
TOKENIZED = 100  # with so many lines that end in " ." a text looks tokenized, as in sacreBLEU
TER_WORDS = 300  # in a line; of as many shuffled words, sacreBLEU takes several seconds
SHOWN = 5  # line numbers that a warning names


def score(
    ref: Annotated[str, argument("REF", "The reference translations.")],
    systems: Annotated[
        list[str] | None, argument("SYS", "Outputs of systems, the baseline first; none is stdin.")
    ] = None,
    metrics: Annotated[
        str | None,
        option(
            "-M, --metrics LIST",
            "Any of bleu,chrf,chrf+,chrf++,ter,ribes.",
            shown_default=METRICS,
            autocompletion=completion.metrics,
        ),
    ] = None,
    refs: Annotated[
        list[str] | None, option("--refs FILE", "Another reference; repeatable.")
    ] = None,
    tokenize: Annotated[
        str,
        option(
            "--tokenize NAME",
            "A tokenizer of sacreBLEU, for BLEU and RIBES.",
            autocompletion=completion.tokenizer,
        ),
    ] = TOKENIZE,
    lowercase: Annotated[bool, option("--lowercase", "Ignore case in BLEU and chrF.")] = False,
    paired: Annotated[
        Literal["bs", "ar", "sign", "none"] | None,
        option("--paired", "Test against the baseline.", shown_default="bs"),
    ] = None,
    p: Annotated[
        Literal["centred", "koehn", "sacrebleu"], option("--p", "Definition of p.")
    ] = "centred",
    samples: Annotated[
        int | None,
        option("--samples N", "Number of samples.", "1000 for bs, 10000 for ar", min=1),
    ] = None,
    seed: options.Seed = options.SEED,
    by: Annotated[
        str | None,
        option(
            "--by length[:EDGES]",
            "Also score by source length, in words.",
            autocompletion=completion.length,
        ),
    ] = None,
    src: Annotated[str | None, option("--src FILE", "The source text, for --by.")] = None,
    get: Annotated[
        str | None,
        option(
            "--get METRIC",
            "Print only this figure, one line for each system.",
            autocompletion=completion.metric,
        ),
    ] = None,
    fail_under: Annotated[
        list[str] | None,
        option(
            "--fail-under METRIC=X",
            "Exit 1 if a system is worse; repeatable.",
            autocompletion=completion.limit,
        ),
    ] = None,
    sign_over: Annotated[
        bool, option("--sign-over", "Take reports of --format json instead of text; see above.")
    ] = False,
    form: options.ReportFormat = "table",
    output: options.Output = "-",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Score translations, and say whether systems differ by more than chance.

    BLEU, chrF and TER are sacreBLEU's, with its signatures. `chrf` is chrF2, `chrf+` is
    Popović's chrF++.py with one word order (beta 3, eps smoothing), `chrf++` is chrF2++. RIBES
    is NKT * P^0.25 * BP^0.10, from 0 to 1: the mean over segments, lower-cased, with words
    aligned as in RIBES.py 1.03. TER ignores case; lower is better. Its time grows faster than the
    square of a line's words: seconds for 300 of them, half a minute for 1,000. Longer lines than
    300 words are named on stderr before they are scored.

    --tokenize takes 13a, none, char, intl, zh, ja-mecab, ko-mecab, flores101, flores200 and
    spBLEU-1K. Nothing is ever downloaded: if a tokenizer needs more, the error says what.

    With two systems or more, each is compared with the first. d is the difference, d* the
    difference on a sample, n the number of samples:

    \b
      --paired bs, the bootstrap: segments are drawn with replacement
        --p centred     (1 + #{|d* - mean d*| >= |d|}) / (n + 1), two-sided
        --p koehn       the share of samples that the better system does not win
        --p sacrebleu   (1 + #{|d*| - mean |d*| > |d|}) / (n + 1)
      --paired ar, approximate randomization: outputs change sides
        --p centred     (1 + #{|d*| >= |d|}) / (n + 1), two-sided
        --p sacrebleu   the same with >
      --paired sign, the sign test: segments won and lost by their own score, ties
        dropped, exact binomial, two-sided

    A system against itself has p = 1, but 1 / (n + 1) by sacreBLEU's definitions. The samples
    are those that sacreBLEU draws with the same seed. The 95 % interval of d is always given by
    the bootstrap's percentiles, whatever the test.

    --sign-over takes reports that --format json wrote, one for each test set, instead of REF
    and SYS, and does the sign test over their scores: one unit is a (test set, metric) pair,
    all of them or those of -M; ties are dropped. Systems are matched by their order in each
    report. Scores that share a test set are not independent, which makes this p too small.

    --by length:20,30,40,50 scores the buckets 0-19, 20-29, 30-39, 40-49 and 50+ of the source
    length, in words between white space. An empty bucket is `n/a`.

    An empty output line is scored like any other. An empty reference causes a warning with its
    line; RIBES leaves it out of its mean.
    """
    from synmt_cli.core.evaluation import metrics as available  # NumPy, sacreBLEU
    from synmt_cli.core.evaluation.comparison import evaluate
    from synmt_cli.core.evaluation.parallel_lines import read_parallel

    if sign_over:
        unfit = [refs, lowercase, samples, by, src, get, fail_under]
        if any(unfit) or tokenize != TOKENIZE or p != "centred" or paired not in (None, "sign"):
            raise UsageError("--sign-over reads scores from reports: only -M and --format apply")
        _sign_over([ref, *(systems or [])], metrics, form, output)
        return
    limits = _limits(fail_under or [])
    names = list(dict.fromkeys([*([get] if get else (metrics or METRICS).split(",")), *limits]))
    available.check(names, tokenize)
    systems = systems or ["-"]
    test = _test(paired, p, samples, seed, len(systems)) if not get else None
    buckets = _buckets(by, src, get)
    paths = [ref, *(refs or []), *systems, *([src] if src else [])]
    with writing.output(output) as writer:
        options.refuse_two_stdins(paths)
        texts = read_parallel(paths)
        references = [ref, *(refs or [])]
        _warn(texts, references, systems if "bleu" in names and tokenize != "none" else [])
        if "ter" in names:
            _warn_of_slow_lines(texts, systems)
        built = available.build(names, [texts[name] for name in references], tokenize, lowercase)
        report = evaluate(
            built,
            [(name, texts[name]) for name in systems],
            references,
            test,
            (buckets, texts[src]) if buckets and src else None,
        )
        writer.write(_shown(report, get, form))
    _judge(report, limits)


def _sign_over(paths: Sequence[str], metrics: str | None, form: str, output: str) -> None:
    from synmt_cli.core.evaluation import set_comparison

    options.refuse_two_stdins(paths)
    with writing.output(output) as writer:
        names = list(dict.fromkeys(metrics.split(","))) if metrics else None
        report = set_comparison.compare([set_scores.read(path) for path in paths], names)
        writer.write(FORMATS[form](report))


def _limits(bounds: Sequence[str]) -> dict[str, float]:
    """`bleu=30` as {"bleu": 30.0}."""
    limits = {}
    for text in bounds:
        name, _, value = text.partition("=")
        try:
            limits[name] = float(value)
        except ValueError:
            limits[name] = math.nan
        if not math.isfinite(limits[name]):
            raise UsageError(f"--fail-under takes METRIC=NUMBER, not {quoted(text)}")
    return limits


def _test(
    paired: str | None, p: str, samples: int | None, seed: int, n_systems: int
) -> SignificanceTest | None:
    from synmt_cli.core.evaluation.significance import FORMULAS, SAMPLES, SignificanceTest

    if n_systems < 2 and paired not in (None, "none"):
        raise UsageError("--paired compares systems with the first one: give two or more")
    name = paired or "bs"
    if n_systems < 2 or name == "none":
        return None
    definitions = list(FORMULAS[name])
    definition = definitions[0] if p == "centred" else p
    if definition not in definitions:
        raise UsageError(f"--paired {name} has no --p {p}")
    return SignificanceTest(name, definition, samples or SAMPLES[name], seed)


def _buckets(by: str | None, src: str | None, get: str | None) -> Buckets | None:
    if by is None:
        if src is not None:
            raise UsageError("--src is for --by length")
        return None
    if get is not None:
        raise UsageError("--get prints one figure for each system: it cannot be split --by length")
    buckets = length_buckets(by)
    if src is None:
        raise UsageError("--by length needs --src, the source text")
    return buckets


def _warn(texts: dict[str, list[str]], references: Sequence[str], systems: Sequence[str]) -> None:
    """Warns of what makes scores doubtful: empty references, tokenized outputs."""
    for name in references:
        blank = [number for number, line in enumerate(texts[name], 1) if not line.strip()]
        for number in blank[:SHOWN]:
            console.warn(f"{printable(name)}:{number}: empty reference")
        if len(blank) > SHOWN:
            console.warn(f"{printable(name)}: {len(blank):,} empty references in all")
    for name in dict.fromkeys(systems):
        n = sum(line.endswith(" .") for line in texts[name])
        if n >= TOKENIZED:
            console.warn(f"{printable(name)}: {n:,} lines end in ' .': is the text tokenized?")


def _warn_of_slow_lines(texts: dict[str, list[str]], systems: Sequence[str]) -> None:
    """Says for which lines TER will take long: it tries to move every part everywhere."""
    for name in dict.fromkeys(systems):
        long = [(n, len(line.split())) for n, line in enumerate(texts[name], 1)]
        long = [(number, n_words) for number, n_words in long if n_words > TER_WORDS]
        for number, n_words in long[:SHOWN]:
            problem = f"{n_words:,} words: TER may take minutes for more than {TER_WORDS:,}"
            console.warn(f"{printable(name)}:{number}: {problem}")
        if len(long) > SHOWN:
            problem = f"{len(long):,} lines of more than {TER_WORDS:,} words in all"
            console.warn(f"{printable(name)}: {problem}")


def _shown(report: ScoreReport, get: str | None, form: str) -> bytes:
    if get is None:
        return FORMATS[form](report)
    metric = next(metric for metric in report.metrics if metric.name == get)
    return "".join(f"{metric.cell(one.scores[get]).text}\n" for one in report.systems).encode()


def _judge(report: ScoreReport, limits: dict[str, float]) -> None:
    """Raises NegativeAnswer if a system is worse than a limit."""
    for metric in report.metrics:
        no_limit = -math.inf if metric.higher_is_better else math.inf
        limit = limits.get(metric.name, no_limit)
        for system in report.systems:
            value = system.scores[metric.name]
            if value < limit if metric.higher_is_better else value > limit:
                side = "under" if metric.higher_is_better else "over"
                shown = f"{metric.name} {metric.cell(value).text} is {side} {limit:g}"
                raise NegativeAnswer(f"{printable(system.name)}: {shown}")
