"""`synmt analyze awsl`: how much a model's attention rests on syntax."""

from contextlib import nullcontext
from typing import Annotated

from synmt_cli import console
from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import option
from synmt_cli.core.pictures import awsl, figures
from synmt_cli.io import reading, writing

MANUAL = Manual(
    input="JSONL records of `synmt featurize`, CoNLL-U, or text, one segment a line.",
    output="A table; with `--format tsv` a line for each layer and head, `runs/gps<TAB>0<TAB>all"
    '<TAB>gps<TAB>0.4813<TAB>0.5187<TAB>1000`; with `--format json` one object: `{"runs": '
    '[{"run": "runs/gps", "variant": "gps", "sentences": 1000, "layers": [{"layer": 0, "variants":'
    ' ["gps"], "awsl": 0.4813, "equation_7": 0.5187, "heads": [{"head": 0, …}]}]}], "left_out":'
    " {}}`.",
    memory="The models and a batch of attention scores; nothing grows with the input.",
    examples=(
        "synmt analyze awsl -m runs/pascal test.en.conllu",
        "synmt analyze awsl -m runs/pascal --format json dev.jsonl > awsl.json",
        "synmt analyze awsl -m runs/pascal -m runs/base --format tsv < dev.jsonl",
    ),
    see_also=("analyze heads", "analyze attention", "train"),
)


def analyze_awsl(
    model: options.MeasuredRuns,
    files: options.Files = None,
    kind: options.InputKind = "auto",
    parser: options.RunParser = "",
    form: options.ReportFormat = "table",
    plot: Annotated[
        str, option("--plot FILE", "Draw a figure like Figure 3 of the paper: .png, .svg or .pdf.")
    ] = "",
    max_pieces: options.LongestMeasured = 1000,
    checkpoint: options.Checkpoint = "best",
    device: options.Device = "auto",
    threads: options.Threads = 0,
    output: options.Output = "-",
    strict: options.Strict = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Measure the Average Weight of Syntax Logits (AWSL) by encoder layer. Xie et al. 2021, eq. 7.

    With e the scaled dot product of queries and keys, and e^s what syntax adds to it, a
    pair of tokens has the weight |e^s| / (|e| + |e^s|). It is averaged over the pairs of a
    sentence, then over sentences and heads. Equation 7 as printed is |e| / (|e| + |e^s|), the
    share of the normal logits, though the measure's name and Figure 3 mean that of syntax: both
    are given. Layers and heads count from 0, the bottom layer.

    A pair counts if both tokens have a place in the tree of the same sentence, including a token
    with itself; end of sentence and padding do not count, nor a pair where both terms are 0.
    Scores are taken before the mask and the softmax, without dropout.

    Any run can be measured. For gps, e^s is exactly the second term, for dep and struct-rel the
    term of the relations in the tree; for a variant that scales or replaces scores, it is the
    difference that the variant makes; for sisa, which reads trees in training alone, that of the
    parents that it finds itself. What a variant adds without any tree is a part of e, such as the
    distances of rel in dep+rel. A layer that no other variant changes has AWSL 0.

    Input without trees must be text, which is parsed, even for a run without syntax. Records
    without a tree are left out and counted. Several runs read the same records, parsed by the first
    run's parser if they are text; they must share a vocabulary. --plot draws what synmt plot awsl
    draws of the results. It needs matplotlib: pip install 'synmt-cli[plot]'.
    """
    from synmt_cli.formats.reports.table import FORMATS

    paths = files or ["-"]
    options.refuse_clashes([*paths, parser], output, plot)
    kind_of_plot = figures.kind_of(plot, "--plot") if plot else None
    options.refuse({"--plot and -o need two files": options.is_written_twice((output, plot))})
    with (
        writing.output(output) as writer,
        writing.atomic(plot) if plot else nullcontext() as picture,
        console.progress("measured", files=paths, output=output) as bar,
    ):
        from synmt_cli.core.analysis.awsl import acting, measure
        from synmt_cli.core.analysis.opened_run import warnings
        from synmt_cli.core.analysis.records_with_trees import notes, open_all
        from synmt_cli.core.jobs.translation.job import without_places
        from synmt_cli.core.run import device as devices

        devices.set_threads(threads)
        runs = open_all(model, checkpoint, devices.choose(device), parser)
        encoders = [run.model.encoder for run in runs]
        changed = [acting(one, layer) for one in encoders for layer in range(len(one.layers))]
        options.refuse(
            {"--plot: no variant changes a layer's scores by the tree": plot and not any(changed)}
        )
        records = without_places(runs[0].reader().read(paths, kind), strict)
        records = bar.finished(bar.taken(records))
        report = measure(runs, records, max_pieces, bar.advance)
        left_out = notes(report.left_out, bar.done, reading.source_name(paths[0]))
        for note in (*left_out, *warnings(runs)):
            console.warn(note)
        writer.write(FORMATS[form](report))
        if picture and kind_of_plot:
            picture.write(figures.picture([awsl.chart(report.runs)], kind_of_plot))
