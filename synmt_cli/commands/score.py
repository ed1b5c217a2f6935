"""`synmt score`: metrics, significance over seeds and sentences, and scores in buckets."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from synmt_cli import console
from synmt_cli.commands import Manual, completion, options, score_options
from synmt_cli.commands.options import argument, option
from synmt_cli.commands.score_options import GET_TAKES_NO_FORMAT, METRICS, READ_BY, SEGMENTS
from synmt_cli.core.text import tokenizers
from synmt_cli.errors import NegativeAnswer, UsageError, counted, quoted
from synmt_cli.formats.reports.score import files as score_files
from synmt_cli.formats.reports.score import sets as set_scores
from synmt_cli.formats.reports.score.scores import ScoreReport
from synmt_cli.formats.reports.score.verdicts import FEW_SEEDS
from synmt_cli.formats.reports.table import FORMATS
from synmt_cli.io import reading, writing

if TYPE_CHECKING:
    from synmt_cli.core.evaluation.divisions import Division, Spec
    from synmt_cli.core.evaluation.metrics.formulas import Array
    from synmt_cli.core.evaluation.metrics.outside import Scores
    from synmt_cli.core.evaluation.metrics.registry import Metric, TextSettings
    from synmt_cli.core.evaluation.statistics.significance import SignificanceTest, Statistics
    from synmt_cli.core.evaluation.systems import SystemFiles

MANUAL = Manual(
    input="Plain text, one segment a line, not tokenized. REF, each FILE, each --refs and --src"
    " have the same number of lines. One of them may be `-`, stdin. --segment-scores:"
    " `base.de<TAB>0.7812` for each segment, or the same as JSONL,"
    ' `{"system":"base.de","score":0.7812}`.',
    output="Tables, or with `--format tsv` one line for each bucket, system and metric, or with"
    ' `--format json` one object: `{"n": 500, "systems": [{"name": "base.de", "scores": {"bleu":'
    ' {"score": 26.6, "signature": "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"}},'
    ' "paired": {}}], "buckets": []}`; docs/score-json.md has every field. `--format segments`:'
    " `base.de<TAB>26.61` for each segment.",
    memory="Linear in the test set: its text, and some numbers for each segment and metric.",
    examples=(
        "synmt score ref.de pascal.de",
        "synmt score ref.de base.de pascal.de -M bleu,chrf+,ter,ribes",
        "synmt score ref.de base=base.de base=base.2.de pascal=pascal.de pascal=pascal.2.de",
        "synmt score ref.de base=base.de base=base.2.de published=pascal.de",
        "synmt score ref.de base.de base.2.de pascal.de --all-pairs",
        "synmt score ref.de base.de pascal.de --by length:5,8,12 --src test.en",
        "synmt score ref.de base.de pascal.de --by depth:2,3 --by deprel:obj"
        " --src-trees test.en.conllu",
        "synmt challenge test.en.conllu --phenomenon particle --format labels > particle.labels",
        "synmt score ref.de base.de pascal.de --by labels:particle.labels",
        "synmt score ref.de base.de pascal.de -M chrf --format segments > chrf.seg.score",
        "synmt score ref.de base.de pascal.de -M mine --segment-scores mine=chrf.seg.score",
        "synmt score --segment-scores mine=chrf.seg.score --format markdown",
        "synmt score ref.de base.de pascal.de --paired ar --format json > scores.json",
        "synmt score ref.de base.de pascal.de --paired sign -M chrf+ --format json > chrf.json",
        "synmt score --sign-over chrf.json -M chrf+",
        "synmt score ref.de base.de pascal.de --format json > scores.json &&"
        " synmt score --from-report scores.json --format latex",
        "synmt score ref.de --get bleu < pascal.de",
        "synmt score ref.de pascal.de --fail-under chrf=1",
        "synmt score ref.de base.de pascal.de --format latex > scores.tex",
    ),
    see_also=("translate", "bucket-by-length", "challenge"),
)
FEW_SAMPLES = 100  # below, the ends of a 95 % interval depend on one or two samples
ScoreFormat = Annotated[
    Literal["table", "tsv", "csv", "json", "latex", "markdown", "segments"],
    option("--format", "How to print the results; latex is for booktabs, segments for one metric."),
]


def score(
    context: typer.Context,
    ref: Annotated[
        str | None,
        argument("REF", "The reference translations; not for --segment-scores alone."),
    ] = None,
    systems: Annotated[
        list[str] | None,
        argument(
            "[NAME=]FILE",
            "Outputs of systems, the baseline first; none is stdin. The same NAME again is another"
            " training seed.",
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        option(
            "-M, --metrics LIST",
            "Any of bleu,chrf,chrf+,chrf++,ter,ribes and those of --segment-scores.",
            shown_default=METRICS,
            autocompletion=completion.metrics,
        ),
    ] = None,
    refs: Annotated[
        list[str] | None, option("--refs FILE", "Another reference; repeatable.")
    ] = None,
    segment_scores: Annotated[
        list[str] | None,
        option("--segment-scores METRIC=FILE", "Scores by another program; repeatable."),
    ] = None,
    lower_is_better: Annotated[
        list[str] | None,
        option("--lower-is-better METRIC", "A metric of --segment-scores; repeatable."),
    ] = None,
    tokenize: Annotated[
        str,
        option(
            "--tokenize NAME",
            "A tokenizer of sacreBLEU, for BLEU, RIBES and rare words.",
            autocompletion=completion.tokenizer,
        ),
    ] = tokenizers.DEFAULT,
    lowercase: Annotated[bool, option("--lowercase", "Ignore case in BLEU and chrF.")] = False,
    smooth: Annotated[
        Literal["exp", "floor", "add-k", "none"], option("--smooth", "Smoothing of BLEU.")
    ] = "exp",
    smooth_value: Annotated[
        float | None,
        option("--smooth-value X", "Value for --smooth floor (default 0.1) or add-k (1).", min=0),
    ] = None,
    bleu_order: Annotated[
        int, option("--bleu-order N", "Longest n-gram of BLEU, in words.", min=1, max=9)
    ] = 4,
    chrf_order: Annotated[
        int, option("--chrf-order N", "Longest n-gram of chrF, in characters.", min=1, max=20)
    ] = 6,
    paired: Annotated[
        Literal["bs", "ar", "sign", "none"] | None,
        option("--paired", "Test against the baseline.", shown_default="bs"),
    ] = None,
    p: Annotated[
        Literal["centred", "koehn", "sacrebleu"], option("--p", "Definition of p.")
    ] = "centred",
    matched: Annotated[
        bool, option("--matched", "Output i of every system comes from the same model.")
    ] = False,
    correct: Annotated[
        Literal["holm", "none"], option("--correct", "Correct p for the number of comparisons.")
    ] = "holm",
    all_pairs: Annotated[
        bool, option("--all-pairs", "Compare every pair of systems, and rank clusters.")
    ] = False,
    samples: Annotated[
        int | None,
        option("--samples N", "Number of samples.", "1000 for bs, 10000 for ar", min=1),
    ] = None,
    seed: options.Seed = options.SEED,
    by: Annotated[
        list[str] | None,
        option(
            "--by SPEC",
            "Also score buckets of segments; repeatable.",
            autocompletion=completion.division,
        ),
    ] = None,
    src: Annotated[str | None, option("--src FILE", "The source text, for --by.")] = None,
    src_trees: Annotated[
        str | None, option("--src-trees FILE", "Trees of the source, for --by.")
    ] = None,
    ref_trees: Annotated[
        str | None, option("--ref-trees FILE", "Or trees of the reference.")
    ] = None,
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
            "Exit 1 if a system is worse; METRIC is also shown and tested; repeatable.",
            autocompletion=completion.limit,
        ),
    ] = None,
    sign_over: Annotated[
        bool, option("--sign-over", "Take reports of --format json instead of text; see above.")
    ] = False,
    from_report: Annotated[
        str | None,
        option("--from-report FILE", "Print this report of --format json again; see above."),
    ] = None,
    jobs: options.Jobs = 1,
    form: ScoreFormat = "table",
    output: options.Output = "-",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Score translations, and say whether systems differ by more than chance.

    The default p is calibrated: at 0.05 it calls 6 % of equal systems different, where
    sacreBLEU's definition gives 12 % and Koehn's one-sided share 11 %. Their apparent power is
    false positives. A test of one output for each system cannot know how training runs
    vary: where they vary strongly, the default p called 27-44 % of equal systems different. With
    several outputs of each (NAME=FILE, see below) it is 4 %. With three of each, a p far below
    0.001 may be ten times too small: do not rely on it in tables of hundreds of comparisons.

    BLEU, chrF and TER are sacreBLEU's, with its signatures. `chrf` is chrF2, `chrf+` is Popović's
    chrF++.py with one word order (beta 3, eps smoothing), `chrf++` is chrF2++. RIBES is NKT *
    P^0.25 * BP^0.10, from 0 to 1: the mean over segments, lower-cased, with words aligned as in
    RIBES.py 1.03. TER ignores case; lower is better. The time that it takes grows faster than the
    square of a line's words: 10 ms for 26 of them, seconds for 300, half a minute for 1,000. Lines
    of more than 300 words are named on stderr before they are scored. -j N spreads lines over N
    processes; the scores stay the same. -v shows what scores are made of:
    precisions, brevity penalty, lengths.

    --tokenize takes 13a, none, char, intl, zh, ja-mecab, ko-mecab, flores101, flores200 and
    spBLEU-1K. Nothing is ever downloaded: if a tokenizer needs more, the error says what. 13a is
    for languages with spaces between words: take zh for Chinese, and char for Japanese, Thai and
    others without. TER, chrf+ and chrf++ count words between spaces whatever the tokenizer: chrf is
    for all languages.

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

    A system against itself has p = 1, but 1 / (n + 1) by sacreBLEU's definitions. The samples are
    those that sacreBLEU draws with the same seed. With one output of each system, the 95 % interval
    of d is that of the bootstrap's percentiles, whatever the test. --paired none, --get and
    --format segments make no test; they refuse options of one, such as --seed.

    NAME=FILE with the same NAME several times is one system with several training seeds. (For a
    file named a=b write ./a=b.) A system's score is the mean over its seeds, and p and the interval
    of d include the variance over seeds and over segments, the latter by the bootstrap:

    \b
      --paired bs   P(|t| >= |d| / sqrt V), V = V_seeds + max(0, V_segments - V_both),
        Satterthwaite's degrees of freedom: the quasi F of Clark (1973)
      --paired ar   MultEval's stratified test (Clark et al. 2011), which takes the seeds
        as they are: p is too small where they differ

    For --paired bs systems may have different numbers of seeds. A single output, such as a
    published one, cannot show how its system varies over seeds: against a system with several it is
    assumed to vary as much as that one does, and the definition of p is then `equal-variance`. If
    it varies more, p is too small: 19-29 % of equal systems are called different if it varies three
    times as much. Two single outputs that would be compared while other systems have several are
    refused (2).

    Two seeds may score alike by chance. Where V_seeds comes from two runs alone (two matched
    models, two seeds against a single output, or the score of one system with two seeds), half of
    the interval is therefore sqrt(t^2 V_seeds + z^2 (V - V_seeds)), with t of one degree of freedom
    and z of the normal distribution (Banerjee 1960), and p is by the same rule: at 0.05 it calls at
    most 5 % of equal systems different. The interval of a score ends at the bounds of its metric,
    such as 0 and 100 for BLEU.

    --matched is for the same models with other trees or another search: V is then the variance of
    each model's own difference, and the interval of d leaves out the differences between models.
    Name the outputs of each system in the same order. --matched and --paired ar need as many
    outputs of each system.

    The table ends with the comparisons in words: better, worse, or undecided, which does not mean
    equal, with half the width of the interval (±), and what limits the answer.

    With several comparisons, p is corrected for their number (Holm 1979), those of the whole test
    set (systems, metrics) apart from those of buckets, so that --by does not change the answer.
    Stars follow the corrected p; --correct none leaves p as it is. --all-pairs compares every two
    systems, and ranks them in clusters: all systems of a cluster beat all below it.

    --segment-scores METRIC=FILE adds the scores of another metric, such as COMET, or human
    judgements: a line for each system and segment, segments in order, as in the .seg.score files of
    mt-metrics-eval. A system is named there as on the command line, a seed by its FILE. Its score
    is the mean. --format segments writes such a file for one metric. Where all metrics come from
    elsewhere, REF and FILE may be left out: the systems are then those of the first file, in its
    order.

    --by SPEC scores buckets of segments, each with its difference, interval and p:

    \b
      length[:EDGES]    words of --src, or of the trees; 20,30,40,50 makes 0-19, 20-29,
                        30-39, 40-49, 50+
      chars[:EDGES]     characters of --src, for text without spaces (20,40,60,80)
      depth[:EDGES]     the depth of the tree of --src-trees or --ref-trees, in arcs (3,5,7,9)
      distance[:EDGES]  its longest arc, in words (5,10,20,40)
      nonprojective     whether an arc spans a word that its head does not dominate
      deprel:LABEL      whether it has this label or a subtype of it
      rare:TRAIN        words of --src (without it of REF) that TRAIN has fewer than 5 times,
                        by --tokenize and in any case; TRAIN is text, CoNLL-U or records
      labels:FILE       a label for each segment: the first column of text, the field `bucket`
                        of JSONL, synmt_bucket of CoNLL-U

    Trees are CoNLL-U or records; segments without one are in the bucket `no tree`. The tables leave
    out empty buckets, and name them; one of fewer than 20 segments is not tested.

    --sign-over takes reports that --format json wrote, one for each test set, instead of REF and
    FILE, and does the sign test over their scores: one unit is a (test set, metric) pair, all of
    them or those of -M; ties are dropped. Systems are matched by name, or by their order where a
    report names others (stderr then warns). Scores that share a test set are not independent, which
    makes this p too small.

    --from-report prints a report that --format json wrote, without scoring anything again: as the
    table, TSV or LaTeX that the same command would have given, or by --get and --fail-under.

    An empty output line is scored like any other. An empty reference causes a warning with its
    line; RIBES leaves it out of its mean, but --format segments has to give such a segment a score,
    0, which --segment-scores then counts.
    """
    asked = options.given(context) - {"form", "output", "quiet", "verbose"}
    if sign_over:
        _sign_over(
            [*([] if ref is None else [ref]), *(systems or [])],
            metrics,
            form,
            output,
            unfit=bool(asked - {"sign_over", "ref", "systems", "metrics"}),
        )
        return
    limits = score_options.limits_of(fail_under or [])
    if from_report is not None:
        unfit = bool(asked - {"from_report", "get", "fail_under"})
        _print_again(from_report, get, limits, form, verbose, output, unfit)
        return
    # These load NumPy and sacreBLEU.
    from synmt_cli.core.evaluation import comparison, divisions, doubts, parallel_lines
    from synmt_cli.core.evaluation.metrics import outside, registry
    from synmt_cli.core.evaluation.systems import parse

    settings = registry.TextSettings(
        tokenize, lowercase, smooth, smooth_value, bleu_order, chrf_order
    )
    score_options.refuse_exclusive(
        settings, get, form, by, metrics, limits, score_options.asks_for_test(asked, paired)
    )
    scored = score_options.outside_scores(segment_scores or [], lower_is_better or [])
    specs = [divisions.parse(text) for text in dict.fromkeys(by or [])]
    score_options.refuse_unfit_sources(specs, src, src_trees, ref_trees)
    score_options.refuse_missing_reference(ref, specs, src, bool(scored) and not refs)
    names = score_options.metric_names(
        metrics, get, limits, scored, form, tokenize, ref is not None
    )
    score_options.refuse_unread(asked, names, specs)
    outputs = [] if ref is None else parse(systems or ["-"])
    references = [] if ref is None else [ref, *(refs or [])]
    files = [file for one in outputs for file in one.files]
    paths = [*references, *files, *([] if src is None else [src])]
    score_options.refuse_output_clashes([*paths, src_trees, ref_trees], specs, scored, output)
    given = {name: outside.read(of) for name, of in scored.items()}
    outputs = outputs or outside.systems(given[names[0]])
    test = (
        None
        if get or form == SEGMENTS
        else score_options.significance_test(paired, p, samples, seed, outputs, matched, asked)
    )
    score_options.refuse_unfit_outputs(outputs, test, all_pairs, matched, asked)
    with writing.output(output) as writer:
        texts = parallel_lines.read_parallel(paths) if paths else {}
        for doubt in doubts.of_texts(
            texts, references, files, names, tokenize, READ_BY["tokenize"]
        ):
            console.warn(doubt)
        chosen = _metrics(
            names, scored, lower_is_better or [], [texts[one] for one in references], settings, jobs
        )
        statistics = _statistics(chosen, given, outputs, texts, output)
        if form == SEGMENTS:
            writer.write(_segments(chosen[0], statistics[0], outputs))
            return
        n = len(statistics[0][0][0])
        _warn_of_few(test, n, outputs)
        report = comparison.evaluate(
            chosen,
            statistics,
            outputs,
            references,
            comparison.Questions(
                test=test,
                all_pairs=all_pairs,
                correction=correct,
                divisions=_divided(
                    specs,
                    n,
                    texts.get(src or ""),
                    texts.get(ref or ""),
                    src_trees or ref_trees,
                    tokenize,
                ),
                options=settings.document(),
                command=["synmt", *sys.argv[1:]],
            ),
        )
        writer.write(_shown(report, get, form, verbose))
    _judge(report, limits)


def _metrics(
    names: Sequence[str],
    scored: dict[str, list[str]],
    lower_is_better: Sequence[str],
    references: Sequence[Sequence[str]],
    settings: TextSettings,
    jobs: int,
) -> list[Metric]:
    from synmt_cli.core.evaluation.metrics import outside, registry

    own = [name for name in names if name not in scored]
    built = {one.name: one for one in registry.build(own, references, settings, jobs)}
    for name, paths in scored.items():
        built[name] = outside.metric(name, paths, name not in lower_is_better)
    return [built[name] for name in names]


def _statistics(
    metrics: Sequence[Metric],
    given: dict[str, dict[str, Scores]],
    systems: Sequence[SystemFiles],
    texts: dict[str, list[str]],
    written: str,
) -> list[Statistics]:
    """The counts of each metric in each output. Files of scores are checked first.

    Without text, the first output has as many segments as it has scores by the first metric.
    written: where the command writes.
    """
    from synmt_cli.core.evaluation.metrics import outside

    text = next(iter(texts.values()), None)
    n = outside.n_segments(given[metrics[0].name]) if text is None else len(text)
    checked = {name: outside.statistics(scores, systems, n) for name, scores in given.items()}
    n_files = sum(len(one.files) for one in systems)
    n_counted = n_files * (len(metrics) - len(checked))
    with console.progress("counted", n_counted, "outputs", [*texts], written) as bar:

        def counts_of(metric: Metric, file: str) -> Array:
            found = metric.statistics(texts[file])
            bar.advance()
            return found

        return [
            checked[metric.name]
            if metric.name in checked
            else [[counts_of(metric, file) for file in one.files] for one in systems]
            for metric in metrics
        ]


def _warn_of_few(test: SignificanceTest | None, n: int, systems: Sequence[SystemFiles]) -> None:
    """Warns if there are too few samples, segments or seeds to rely on intervals and tests."""
    from synmt_cli.core.evaluation.statistics.significance import doubt
    from synmt_cli.core.evaluation.systems import like_seeds

    if test is None:
        return
    if test.interval_n < FEW_SAMPLES:
        n_samples = counted(test.interval_n, "sample")
        console.warn(f"an interval of {n_samples} is rough: take the default of --samples")
    if len(systems) < 2:
        return
    if problem := doubt(test, n, "segments"):
        console.warn(problem)
    if files := like_seeds(systems):
        several = f"{', '.join(files)}: compared as {len(files)} systems"
        console.warn(f"{several}; if they are seeds of one, give them one name, NAME=FILE")
    n_seeds = [len(one.files) for one in systems]
    if 2 in n_seeds:
        console.warn(FEW_SEEDS)
    if min(n_seeds) == 1 < max(n_seeds):
        names = ", ".join(one.name for one in systems if len(one.files) == 1)
        console.warn(f"{names}: one output, assumed to vary over seeds as much as the other system")


def _divided(
    specs: Sequence[Spec],
    n: int,
    source: Sequence[str] | None,
    reference: Sequence[str] | None,
    trees: str | None,
    tokenize: str,
) -> list[Division]:
    """The buckets. Rare words are those of the source, or without it of the reference."""
    from synmt_cli.core.evaluation import divisions
    from synmt_cli.core.evaluation.metrics import registry

    read = divisions.read_trees(trees, n) if trees else None
    lines = {"length": source, "chars": source, "rare": reference if source is None else source}
    rare = any(spec.kind == "rare" for spec in specs)
    words = registry.lowercase_words(tokenize)[0] if rare else str.split
    return [divisions.divided(one, n, lines.get(one.kind), read, words) for one in specs]


def _segments(metric: Metric, statistics: Statistics, systems: Sequence[SystemFiles]) -> bytes:
    """The score of each segment, system after system."""
    from synmt_cli.formats import segment_scores

    labels = [label for one in systems for _, label in one.outputs()]
    twice = next((label for label in labels if labels.count(label) > 1), "")
    odd = next((label for label in labels if segment_scores.NOT_A_NAME.search(label)), "")
    options.refuse(
        {
            f"two outputs are named {quoted(twice)}: name them, NAME=FILE": twice,
            f"{quoted(odd)} is no name for TSV: name it, NAME=FILE": odd,
        }
    )
    return b"".join(
        segment_scores.to_bytes(label, score)
        for one, runs in zip(systems, statistics, strict=True)
        for (_, label), run in zip(one.outputs(), runs, strict=True)
        for score in metric.sentences(run).tolist()
    )


def _sign_over(
    paths: Sequence[str], metrics: str | None, form: str, output: str, *, unfit: bool
) -> None:
    """The sign test over reports. unfit: whether there are options that ask for anything else."""
    from synmt_cli.core.evaluation import set_comparison

    options.refuse_clashes(paths, output)
    options.refuse(
        {
            "--sign-over reads scores from reports: only -M and --format apply": unfit
            or form == SEGMENTS,
            "--sign-over needs reports": not paths,
            "--sign-over: a report is named twice": options.is_named_twice(paths),
        }
    )
    with writing.output(output) as writer:
        names = None if metrics is None else options.names(metrics)
        sets = [set_scores.read(path) for path in paths]
        report = set_comparison.compare(sets, names)
        if problem := set_comparison.doubt(sets):
            console.warn(problem)
        writer.write(FORMATS[form](report))


def _print_again(
    path: str,
    get: str | None,
    limits: dict[str, float],
    form: str,
    verbose: bool,
    output: str,
    unfit: bool,
) -> None:
    """Prints a report in another form. unfit: whether there are options that ask for scores."""
    options.refuse_clashes([path], output)
    options.refuse(
        {
            "--from-report scores nothing: only --get, --fail-under, --format, -o and -v apply; for"
            " all else score the outputs again": unfit,
            f"--format {SEGMENTS} needs the outputs: a report does not have them": form == SEGMENTS,
            GET_TAKES_NO_FORMAT: get is not None and form != "table",
        }
    )
    with writing.output(output) as writer:
        report = score_files.read(path)
        names = [metric.name for metric in report.metrics]
        absent = next((name for name in [get, *limits] if name not in (None, *names)), None)
        if absent is not None:
            known = ", ".join(names)
            name = reading.source_name(path)
            raise UsageError(f"{name}: no metric {quoted(absent)}; there are {known}")
        writer.write(_shown(report, get, form, verbose))
    _judge(report, limits)


def _shown(report: ScoreReport, get: str | None, form: str, verbose: bool) -> bytes:
    if get is None:
        return FORMATS[form](replace(report, detailed=verbose))
    metric = next(metric for metric in report.metrics if metric.name == get)
    return "".join(f"{metric.cell(one.scores[get]).text}\n" for one in report.systems).encode()


def _judge(report: ScoreReport, limits: dict[str, float]) -> None:
    """Raises NegativeAnswer if a system is worse than a limit."""
    for metric in report.metrics:
        no_limit = -math.inf if metric.higher_is_better else math.inf
        limit = limits.get(metric.name, no_limit)
        side = "under" if metric.higher_is_better else "over"
        is_worse = operator.lt if metric.higher_is_better else operator.gt
        for system in report.systems:
            value = system.scores[metric.name]
            if is_worse(value, limit):
                rounded = metric.cell(value).text
                shown = rounded if is_worse(float(rounded), limit) else repr(value)
                problem = f"{metric.name} {shown} is {side} {limit:.15g}"
                raise NegativeAnswer(f"{system.name}: {problem}")
