"""`synmt report`: a comparison as one page."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, product
from typing import TYPE_CHECKING, Annotated

from synmt_cli import console
from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import argument, option
from synmt_cli.errors import DataError, UsageError, counted, quoted
from synmt_cli.formats.reports.score.scores import ScoreReport
from synmt_cli.io import reading, writing

if TYPE_CHECKING:
    from synmt_cli.core.evaluation.systems import SystemFiles
    from synmt_cli.core.pictures.sentences import Picture
    from synmt_cli.core.report.page import AttentionMaps
    from synmt_cli.core.report.segments import Texts
    from synmt_cli.formats.attention import Attention

    Trees = list[list[Picture]]

MANUAL = Manual(
    input="Run directories, the report of `synmt score --format json`, and the lines and trees of"
    " a test set.",
    output="One HTML page below 5 MB, which fetches nothing: `<!doctype html>`.",
    memory="The test set, and the page several times.",
    examples=(
        "synmt score --by length:10,20 --src test.en --format json -o score.json"
        " ref.de base.de pascal.de && synmt report --score score.json --src test.en"
        " --src-trees test.en.conllu -o report.html runs/base runs/pascal",
        "synmt report --ref ref.de --segments base.de --segments pascal.de -o segments.html",
        "synmt report runs/base runs/pascal > training.html",
    ),
    see_also=("score", "plot scores", "plot curves", "view", "init"),
)
ATTENTION_SEGMENTS, ATTENTION_MAPS, ATTENTION_TOKENS = 3, 8, 60
NOT_IN_NAMES = r"[^\w.+-]+"  # characters that the names of suggested files must not have


def report(
    runs: Annotated[list[str] | None, argument("RUN", "Run directories.")] = None,
    score: Annotated[
        str, option("--score FILE", "Report of synmt score --format json; - is stdin.")
    ] = "",
    segments: Annotated[
        list[str] | None,
        option(
            "--segments [NAME=]FILE",
            "Output of a system, one for each; repeatable, the first is the baseline.",
            shown_default="the files that --score names, the first of each system",
        ),
    ] = None,
    src: Annotated[str, option("--src FILE", "Source lines.")] = "",
    ref: Annotated[
        str,
        option("--ref FILE", "Reference lines.", shown_default="the files that --score names"),
    ] = "",
    refs: Annotated[
        list[str] | None, option("--refs FILE", "Another reference; repeatable.")
    ] = None,
    trees: Annotated[
        str, option("--src-trees FILE", "CoNLL-U or records: the trees of the source.")
    ] = "",
    tgt_trees: Annotated[
        str,
        option(
            "--tgt-trees FILE",
            "CoNLL-U or records: the trees that a model wrote, drawn next to the source's.",
        ),
    ] = "",
    tuned: Annotated[
        list[str] | None,
        option(
            "--tuned [NAME=]FILE",
            "Report of synmt tune --format json; the same NAME again is another seed.",
        ),
    ] = None,
    awsl: Annotated[str, option("--awsl FILE", "Report of synmt analyze awsl --format json.")] = "",
    attention: Annotated[
        str,
        option(
            "--attention FILE",
            "Weights of synmt analyze attention, of which the first segments are shown.",
        ),
    ] = "",
    title: Annotated[str, option("--title TEXT", "Title of the page.")] = "Comparison",
    output: options.Output = "-",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Write a comparison as one page that needs no network and is easy to share.

    It shows, as far as files are given: the table of systems with intervals, standard deviations
    over seeds and corrected p; scores in buckets, as figures with intervals and as tables; the
    training curves of all runs; the length penalties that were tuned; the weight of syntax and
    attention next to the tree's edges; the segments, to sort and to search, with the words marked
    that differ from the first system's, and with the trees of their sources; settings and versions
    of the runs; and the commands that make each part again. A part with missing files is named on
    the page and in a warning. Runs whose names differ in a number at the end, as runs/pascal.1 and
    runs/pascal.2, are drawn as seeds of one.

    Segments are in order of the difference between the best and the worst system by chrF. The page
    stays below 5 MB: of more than 3,000 segments it shows 3,000, two thirds of them those that
    differ most and one third drawn from the rest. Long segments, and trees that do not fit, are
    left out, and the page says so. A curve of more than 400 validations is drawn through 400
    points, the least and the greatest of each stretch. If the figures and tables alone are larger,
    no page is written (2).

    The page works with a keyboard, on a phone, in dark mode, in print and without JavaScript. Text
    in the data cannot become markup. It needs Jinja2 and matplotlib: pip install
    'synmt-cli[report]'.
    """
    from synmt_cli.core.evaluation import systems
    from synmt_cli.core.report import page

    outputs, penalties = systems.parse(segments or ()), systems.parse(tuned or ())
    named = [file for one in (*outputs, *penalties) for file in one.files]
    shown = [score, awsl, attention, *named]
    references = [ref, *(refs or [])] if ref else []
    options.refuse_clashes([*shown, src, *references, trees, tgt_trees], output)
    twice = next((one.name for one in outputs if len(one.files) > 1), "")
    options.refuse(
        {
            "there is nothing to report: name runs, --score or --segments": not (
                runs or any(shown)
            ),
            f"--segments names {quoted(twice)} twice; the page shows one output of a system": twice,
            "--refs adds to --ref: name that one, too": refs and not ref,
        }
    )
    page.require()
    from synmt_cli.core.pictures import awsl as awsl_charts
    from synmt_cli.core.report import runs as run_facts
    from synmt_cli.core.report import trees as tree_files
    from synmt_cli.formats.reports import tuning
    from synmt_cli.formats.reports.analysis import awsl as awsl_reports
    from synmt_cli.formats.reports.score import files as score_files

    with writing.output(output) as writer:
        scored = score_files.read(score) if score else None
        hypotheses, references, missing = _segments(outputs, references, scored)
        texts = _texts(hypotheses, src, references, scored) if hypotheses else None
        if texts is None and (src or ref or tgt_trees or (trees and not attention)) and not missing:
            missing.append("Segments are not shown: name outputs by --segments or --score.")
        of_source = tree_files.read(trees) if trees else []
        of_target = tree_files.read(tgt_trees) if tgt_trees else []
        facts = [run_facts.read(run) for run in runs or ()]
        missing += [f"{one.name} has no curve." for one in facts if one.curve.is_empty]
        drawn = [one.name for one in facts if not one.curve.is_empty]
        if texts:
            _refuse_other_length({trees: of_source, tgt_trees: of_target}, texts.n)
            if trees and texts.source:
                tree_files.refuse_other_text(of_source, texts.source, reading.source_name(trees))
        heat_maps, plots, notes = (
            _attention(attention, trees, of_source) if attention else ([], [], [])
        )
        missing += notes
        of_awsl = awsl_charts.chart(awsl_reports.read(awsl).runs) if awsl else None
        if of_awsl and not of_awsl.series:
            missing.append(
                "The weight of syntax is not shown: no variant changes scores by the tree."
            )
        content = page.Content(
            title,
            facts,
            scored,
            texts,
            of_source,
            of_target,
            of_awsl,
            heat_maps,
            {one.name: tuning.read_all(one.files) for one in penalties},
            missing,
            _commands(drawn, score, scored, (hypotheses, references), awsl, trees, plots),
            first_seeds=bool(scored and scored.several and not outputs),
        )
        for one in (*missing, *content.doubts()):
            console.warn(one)
        writer.write(page.page(content).encode())


def _segments(
    outputs: Sequence[SystemFiles], references: list[str], scored: ScoreReport | None
) -> tuple[dict[str, str], list[str], list[str]]:
    """The files of each system's output, those of the references, and what is missing, in words.

    There are no files of outputs, or of references, if one of them is missing.
    """
    if outputs:
        named = {one.name: one.files[0] for one in outputs}
    else:
        named = {one.name: one.files[0] for one in scored.systems if one.files} if scored else {}
        absent = [file for file in named.values() if not os.path.exists(file)]
        if absent:
            note = (
                f"Segments are not shown: {absent[0]}, which was scored, is missing. "
                "Name outputs by --segments."
            )
            return {}, references, [note]
    if named and not references and scored:
        absent = [file for file in scored.references if not os.path.exists(file)]
        if absent:
            note = f"The reference {absent[0]} is missing: name all by --ref and --refs."
            return named, [], [note]
        references = scored.references
    return named, references, []


def _texts(
    named: dict[str, str], src: str, references: Sequence[str], scored: ScoreReport | None
) -> Texts:
    """The lines of the test set. Raises DataError for files of other lengths, ReadError."""
    from synmt_cli.core.evaluation import parallel_lines
    from synmt_cli.core.report.segments import Texts, refuse_other_lengths

    paths = [*named.values(), src, *references]
    lines = {file: parallel_lines.read(file) for file in paths if file}
    if scored:
        refuse_other_lengths(lines, scored.n, "the scored test set")
    else:
        first = next(iter(lines))
        refuse_other_lengths(lines, len(lines[first]), reading.source_name(first))
    written = {name: lines[file] for name, file in named.items()}
    return Texts(written, lines.get(src), [lines[file] for file in references])


def _refuse_other_length(files: dict[str, Trees], n: int) -> None:
    for name, trees in files.items():
        if name and len(trees) != n:
            problem = f"trees of {counted(len(trees), 'line')}, but {counted(n, 'segment')}"
            raise DataError(reading.source_name(name), None, problem)


def _attention(
    path: str, trees_path: str, trees: Trees
) -> tuple[list[AttentionMaps], list[list[str]], list[str]]:
    """Maps of the first segments with weights, commands that draw them, and notes on gaps.

    The maps have the edges of the segments' trees.
    """
    from synmt_cli.formats.attention import read

    by_id = {line[0].id: line[0] for line in trees if len(line) == 1}
    found: list[AttentionMaps] = []
    commands, notes = [], []
    with reading.open_source(path) as source:
        few = (one for one in read(source) if one.weights and _size(one) <= ATTENTION_TOKENS)
        for one in islice(few, ATTENTION_SEGMENTS):
            tree = by_id.get(one.id) if one.stack == "encoder" else None
            maps, without = _maps(one, tree)
            if trees and tree is None and one.stack == "encoder":
                name = reading.source_name(trees_path)
                without = f"a tree: {name} has no single one with its id"
            if without:
                notes.append(
                    f"The attention in segment {one.id} is without the edges of {without}."
                )
            found.append(maps)
            commands.append(_plot_command(path, trees_path, one, maps))
    if not found:
        name = reading.source_name(path)
        notes.append(
            f"Attention is not shown: {name} has no segment of {ATTENTION_TOKENS} tokens or fewer."
        )
    return found, commands, notes


def _maps(one: Attention, tree: Picture | None) -> tuple[AttentionMaps, str]:
    """The first maps of a segment; and the tree whose edges they lack, in words, or ""."""
    from synmt_cli.core.pictures import attention
    from synmt_cli.core.report.page import AttentionMaps

    first = {at: one.weights[at] for at in product(*_first(one)) if at in one.weights}
    shown = replace(one, weights=first)
    without = ""
    try:
        maps = attention.maps(shown, tree=tree)
    except UsageError:
        maps = attention.maps(shown)
        without = "its tree, whose words its pieces do not spell"
    return AttentionMaps(one.id, maps, len(one.weights) - len(maps)), without


def _plot_command(path: str, trees_path: str, one: Attention, maps: AttentionMaps) -> list[str]:
    """The command that draws the maps of a segment again."""
    command = ["synmt", "plot", "attention", "--id", one.id]
    if maps.n_left_out:
        layers, heads = _first(one)
        command += ["--layers", ",".join(map(str, layers))]
        command += ["--heads", ",".join(map(str, heads))]
    if maps.has_edges:
        command += ["--trees", trees_path]
    name = re.sub(NOT_IN_NAMES, "-", one.id)
    return [*command, "-o", f"heads.{name}.pdf", path]


def _size(one: Attention) -> int:
    """The rows or columns of its maps, whichever are more."""
    return max(len(one.tokens), len(one.keys))


def _first(one: Attention) -> tuple[list[int], list[int]]:
    """The first layers and heads, of which there are at most ATTENTION_MAPS maps."""
    layers, heads = (sorted({at[i] for at in one.weights}) for i in (0, 1))
    heads = heads[:ATTENTION_MAPS]
    return layers[: ATTENTION_MAPS // len(heads)], heads


def _commands(
    runs: Sequence[str],
    score: str,
    scored: ScoreReport | None,
    segments: tuple[dict[str, str], list[str]],
    awsl: str,
    trees: str,
    plots: list[list[str]],
) -> dict[str, list[list[str]]]:
    """The commands that make the parts of the page again.

    segments: the files of the outputs that are shown, by system, and of the references. plots: the
    commands of attention.
    """
    made: dict[str, list[list[str]]] = {"report": [["synmt", *sys.argv[1:]]]}
    if scored:
        made["scores"] = [scored.settings.command] if scored.settings.command else []
        made["buckets"] = []
        for metric in scored.metrics:
            plot = ["synmt", "plot", "scores", "--metric", metric.name, "--by"]
            made["scores"].append([*plot, "systems", "-o", f"{metric.name}.pdf", score])
            made["buckets"] += [
                [*plot, spec, "-o", f"{metric.name}.{re.sub(NOT_IN_NAMES, '-', spec)}.pdf", score]
                for spec in scored.divisions
            ]
    named, references = segments
    if named and references:
        others = [word for file in references[1:] for word in ("--refs", file)]
        outputs = [f"{name}={file}" if name != file else file for name, file in named.items()]
        command = ["synmt", "score", "-M", "chrf", "--format", "segments", *others]
        made["segments"] = [[*command, references[0], *outputs]]
    if runs:
        made["curves"] = [["synmt", "plot", "curves", "-o", "curves.pdf", *runs]]
    if awsl:
        made["awsl"] = [["synmt", "plot", "awsl", "-o", "awsl.pdf", awsl]]
    if plots:
        made["attention"] = plots
    if trees:
        made.setdefault("segments", []).append(["synmt", "view", "--format", "html", trees])
    return made
