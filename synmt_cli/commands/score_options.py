"""What the options of `synmt score` ask for, and which of them exclude or need each other.

All functions but `asks_for_test` raise UsageError for options that do not fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from synmt_cli.commands import options
from synmt_cli.errors import UsageError, quoted

if TYPE_CHECKING:
    from synmt_cli.core.evaluation.divisions import Spec
    from synmt_cli.core.evaluation.metrics.registry import TextSettings
    from synmt_cli.core.evaluation.statistics.significance import SignificanceTest
    from synmt_cli.core.evaluation.systems import SystemFiles

METRICS = "bleu,chrf"
SEGMENTS = "segments"
GET_TAKES_NO_FORMAT = "--get prints bare figures: it takes no --format"
READ_BY = {  # the metrics that read an option
    "tokenize": ("bleu", "ribes"),
    "lowercase": ("bleu", "chrf", "chrf+", "chrf++"),
    "smooth": ("bleu",),
    "bleu_order": ("bleu",),
    "chrf_order": ("chrf", "chrf+", "chrf++"),
}
OF_TESTS = ("p", "samples", "correct", "seed")  # and paired, unless it is none


def asks_for_test(asked: set[str], paired: str | None) -> bool:
    """Whether an option of a test was given; `--paired none` does not count."""
    return paired not in (None, "none") or not asked.isdisjoint(OF_TESTS)


def refuse_exclusive(
    settings: TextSettings,
    get: str | None,
    form: str,
    by: list[str] | None,
    metrics: str | None,
    limits: dict[str, float],
    tests: object,
) -> None:
    """Refuses options that exclude each other."""
    value, smooth = settings.smooth_value, settings.smooth
    options.refuse(
        {
            GET_TAKES_NO_FORMAT: get is not None and form != "table",
            "--get prints bare figures: it takes no options of a test": get and tests,
            "--get prints one figure for each system: it cannot be split --by": get and by,
            "--get names the metric: it excludes -M": get and metrics,
            f"--format {SEGMENTS} has no buckets": form == SEGMENTS and by,
            f"--format {SEGMENTS} makes no test": form == SEGMENTS and tests,
            f"--format {SEGMENTS} has no --fail-under": form == SEGMENTS and limits,
            f"--smooth {smooth} has no --smooth-value": value is not None
            and smooth in ("exp", "none"),
            "--smooth-value is a finite number": value is not None and math.isinf(value),
        }
    )


def refuse_missing_reference(
    ref: str | None, specs: Sequence[Spec], src: str | None, dispensable: bool
) -> None:
    """Refuses to go on without a REF that is needed.

    dispensable: whether there are scores by other programs, and no further reference.
    """
    of_words = any(spec.kind == "rare" for spec in specs)
    options.refuse(
        {
            "REF is missing: it is optional only if all metrics come from --segment-scores": ref
            is None
            and not dispensable,
            "--by rare needs --src, or REF": ref is None and of_words and not src,
        }
    )


def refuse_output_clashes(
    paths: Sequence[str | None], specs: Sequence[Spec], scored: dict[str, list[str]], output: str
) -> None:
    """Refuses an output that is also read."""
    named = [spec.detail for spec in specs if spec.kind in ("rare", "labels")]
    of_metrics = [one for files in scored.values() for one in files]
    options.refuse_clashes([*paths, *named, *of_metrics], output)


def refuse_unfit_sources(
    specs: Sequence[Spec], src: str | None, src_trees: str | None, ref_trees: str | None
) -> None:
    """Refuses --by without the source or trees that it needs, and those that nothing reads."""
    from synmt_cli.core.evaluation.divisions import OF_TREES

    kinds = {spec.kind: spec.text for spec in specs}
    need = next((text for kind, text in kinds.items() if kind in OF_TREES), None)
    trees = src_trees or ref_trees
    options.refuse(
        {
            "give --src-trees or --ref-trees, not both": src_trees and ref_trees,
            "--by chars needs --src, the source text": "chars" in kinds and not src,
            f"--by {need} needs --src-trees or --ref-trees": need and not trees,
            "--by length needs --src, the source text, or trees": "length" in kinds
            and not (src or trees),
            "--src is for --by length, chars and rare": src
            and not kinds.keys() & {"length", "chars", "rare"},
            "--src-trees and --ref-trees are for --by depth, distance, nonprojective, deprel,"
            " and length without --src": trees and not need and not ("length" in kinds and not src),
        }
    )


def metric_names(
    metrics: str | None,
    get: str | None,
    limits: dict[str, float],
    scored: dict[str, list[str]],
    form: str,
    tokenize: str,
    with_text: bool,
) -> list[str]:
    """The metrics to compute, in order. Refuses unknown and unused ones.

    with_text: whether there are a reference and outputs, for metrics of our own.
    """
    from synmt_cli.core.evaluation.metrics import registry

    default = [*(METRICS.split(",") if with_text else ()), *scored]
    asked = default if metrics is None else options.names(metrics)
    if get is not None:
        asked = [get]
    names = list(dict.fromkeys([*asked, *limits]))
    own = [name for name in names if name not in scored]
    registry.check(own, tokenize)
    several = form == SEGMENTS and len(names) > 1
    options.refuse(
        {
            f"--segment-scores {quoted(name)} is not used: name it in --metrics": name not in names
            for name in scored
        }
        | {f"--format {SEGMENTS} writes one metric: name it in --metrics": several}
        | {f"{name} needs REF and the outputs": not with_text for name in own}
    )
    return names


def refuse_unread(asked: set[str], names: Sequence[str], specs: Sequence[Spec]) -> None:
    """Refuses an option that none of these metrics reads."""
    rare = {"tokenize"} if any(spec.kind == "rare" for spec in specs) else set()
    options.refuse(
        {
            f"--{option.replace('_', '-')} is for {', '.join(of)}, not {', '.join(names)}": True
            for option, of in READ_BY.items()
            if option in asked - rare and not {*of} & {*names}
        }
    )


def outside_scores(
    arguments: Sequence[str], lower_is_better: Sequence[str]
) -> dict[str, list[str]]:
    """`comet=a.tsv` as {"comet": ["a.tsv"]}; a metric may have several files."""
    from synmt_cli.core.evaluation.metrics.registry import METRICS as OWN

    files: dict[str, list[str]] = {}
    for text in arguments:
        name, _, path = text.partition("=")
        if not name or not path or "," in name:
            raise UsageError(f"--segment-scores takes METRIC=FILE, not {quoted(text)}")
        if name in OWN:
            raise UsageError(f"--segment-scores: {name} is a metric of synmt; choose another name")
        files.setdefault(name, []).append(path)
    for name in lower_is_better:
        if name not in files:
            raise UsageError(f"--lower-is-better {quoted(name)} is not in --segment-scores")
    return files


def limits_of(bounds: Sequence[str]) -> dict[str, float]:
    """`bleu=30` as {"bleu": 30.0}."""
    limits = {}
    for text in bounds:
        name, _, value = text.partition("=")
        if name in limits:
            raise UsageError(f"--fail-under names {quoted(name)} twice")
        try:
            limits[name] = float(value)
        except ValueError:
            limits[name] = math.nan
        if not math.isfinite(limits[name]):
            raise UsageError(f"--fail-under takes METRIC=NUMBER, not {quoted(text)}")
    return limits


def significance_test(
    paired: str | None,
    p: str,
    samples: int | None,
    seed: int,
    systems: Sequence[SystemFiles],
    matched: bool,
    asked: set[str],
) -> SignificanceTest | None:
    """The test; for one system, the bootstrap that gives the interval of its score.

    asked: the options that were given.
    """
    from synmt_cli.core.evaluation.statistics import significance
    from synmt_cli.core.evaluation.statistics.significance import (
        SAMPLES,
        SEED_FORMULAS,
        SignificanceTest,
    )

    if len(systems) < 2:
        options.refuse(
            {
                f"{option} compares systems with the first one: give two or more": given
                for option, given in {
                    "--paired": paired not in (None, "none"),
                    "--p": p != "centred",
                    "--matched": matched,
                }.items()
            }
        )
    name = paired or "bs"
    several = any(len(one.files) > 1 for one in systems)
    if matched and not (several and name == "bs"):
        raise UsageError("--matched is for the bootstrap of several seeds")
    if name == "none":
        options.refuse(
            {f"--{one} needs a test: it excludes --paired none": one in asked for one in OF_TESTS}
        )
        return None
    if several and (name not in SEED_FORMULAS or "p" in asked):
        option = "--paired sign" if name == "sign" else f"--p {p}"
        raise UsageError(f"{option} cannot use seeds: give one output of each system")
    if several and samples == 1:
        raise UsageError("--samples: seeds need two or more")
    definitions = list((SEED_FORMULAS if several else significance.FORMULAS)[name])
    definition = "matched" if matched else p if "p" in asked else definitions[0]
    if (name, definition) == ("ar", "centred"):
        definition = "two-sided"  # its distribution is centred already
    if definition not in definitions:
        raise UsageError(f"--paired {name} has no --p {p}")
    return SignificanceTest(name, definition, samples or SAMPLES[name], seed)


def refuse_unfit_outputs(
    systems: Sequence[SystemFiles],
    test: SignificanceTest | None,
    all_pairs: bool,
    matched: bool,
    asked: set[str],
) -> None:
    """Refuses a test, or an option of one, that needs other numbers of outputs.

    asked: the options that were given.
    """
    from synmt_cli.core.evaluation.statistics import significance
    from synmt_cli.core.evaluation.systems import refuse_two_single, refuse_unequal

    if test is not None:
        if test.name == "ar" or test.definition == "matched":
            refuse_unequal(systems, "--matched" if test.name == "bs" else "--paired ar")
        pairs_of = significance.all_pairs if all_pairs else significance.against_first
        refuse_two_single(systems, pairs_of(len(systems)))
    options.refuse(
        {
            "--all-pairs needs two systems and a test": all_pairs and not (test and systems[1:]),
            "--matched needs a test": matched and not test,
            "--correct compares systems with the first one: give two or more": "correct" in asked
            and not systems[1:],
        }
    )
