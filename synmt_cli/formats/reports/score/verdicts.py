"""The outcome of the comparisons with the first system, in words."""

from collections.abc import Iterator, Sequence

from synmt_cli.formats.reports.score.systems import (
    EQUAL_VARIANCE,
    OVER_SEEDS,
    MetricInfo,
    PairedComparison,
    ScoredSystem,
    stars,
)

ONE_OUTPUT = (
    "each system is one output: that says nothing of how training runs vary, and another seed may "
    "turn it around"
)
ONE_OF_TWO = (
    "one output among several seeds is assumed to vary as much as these; if it varies more, "
    '"better" and "worse" are said too often'
)
SEEDS_AS_THEY_ARE = (
    'the test takes the seeds as they are: where they vary, "better" and "worse" are said too '
    "often (--paired bs accounts for it)"
)
READABLE = 2.0  # BLEU; below it, translations have little to do with their source
UNREADABLE = (
    f"no system reaches {READABLE:g} BLEU: they hardly translate yet, and differences may vanish "
    "or turn around once they do"
)
FEW_SEEDS = "two seeds often leave intervals too wide to decide anything: take more"


def sentences(
    metrics: Sequence[MetricInfo], systems: Sequence[ScoredSystem], n_corrected: int = 0
) -> list[str]:
    """A line for each system that was compared with the first, by the p that stars follow.

    Then lines on what limits the answer. n_corrected: how many comparisons p is corrected for.
    """
    compared = [system for system in systems[1:] if system.paired]
    said = [f"{one.name}: {_verdict(metrics, one)}" for one in compared]
    results = [result for system in compared for result in system.paired.values()]
    return [*said, *_undecided(results, n_corrected), *_caveats(results, systems)]


def _verdict(metrics: Sequence[MetricInfo], system: ScoredSystem) -> str:
    if all(one.delta == 0 and one.ci95 == (0, 0) for one in system.paired.values()):
        return "no difference in any sample; is it the same output?"
    by: dict[str, list[str]] = {"better": [], "worse": [], "undecided": []}
    for metric in metrics:
        paired = system.paired[metric.name]
        delta = metric.difference(paired.delta)
        if paired.mark():
            is_better = (paired.delta > 0) == metric.higher_is_better
            by["better" if is_better else "worse"].append(f"{metric.label} ({delta})")
        else:
            half = (paired.ci95[1] - paired.ci95[0]) / 2
            but = ""
            if stars(paired.p) and paired.corrected is not None:
                but = f", but corrected p = {paired.corrected:.2g}"
            # One segment has no interval.
            within = f" ± {half:.{metric.digits}f}" if half else ""
            by["undecided"].append(f"{metric.label} ({delta}{within}{but})")
    return "; ".join(f"{what} by {_listed(names)}" for what, names in by.items() if names)


def _undecided(results: Sequence[PairedComparison], n_corrected: int) -> Iterator[str]:
    """Explains the word `undecided`: what follows ± is half of the interval."""
    if all(one.mark() for one in results):
        return
    if all(
        one.test == "bs"
        and one.definition in (*OVER_SEEDS, "centred")
        and one.ci95[0] < one.ci95[1]
        for one in results
    ):
        further = ""
        if n_corrected > 1:
            further = f"; as p is corrected for {n_corrected:,}, some larger ones could not either"
        yield (
            'undecided is not "equal": a difference smaller than what follows ± could not be '
            f"significant here{further}"
        )
    else:
        yield 'undecided is not "equal"'


def _caveats(results: Sequence[PairedComparison], systems: Sequence[ScoredSystem]) -> Iterator[str]:
    n_seeds = [len(system.files) for system in systems]
    definitions = {one.definition for one in results}
    if not results:
        return
    if max(n_seeds) < 2:
        yield ONE_OUTPUT
    elif EQUAL_VARIANCE in definitions:
        yield ONE_OF_TWO
    elif not definitions <= {*OVER_SEEDS}:
        yield SEEDS_AS_THEY_ARE
    if 2 in n_seeds:
        yield FEW_SEEDS
    if max(system.scores.get("bleu", READABLE) for system in systems) < READABLE:
        yield UNREADABLE


def _listed(words: Sequence[str]) -> str:
    """Words as a list in a sentence: `a, b and c`."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
