"""`synmt analyze heads`: which attention heads find the parents of words."""

from typing import Annotated

from synmt_cli import console
from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import option
from synmt_cli.io import reading, writing

MANUAL = Manual(
    input="JSONL records of `synmt featurize`, CoNLL-U, or text, one segment a line.",
    output="Tables; with `--format tsv` a line for each relation, layer, head and direction, "
    "`runs/base<TAB>nsubj<TAB>1<TAB>3<TAB>up<TAB>0.5821<TAB>0.3312<TAB>1204<TAB>1<TAB>0.4551<TAB>"
    '1000`; with `--format json` one object: `{"runs": [{"run": "runs/base", "variant": "vanilla", '
    '"sentences": 1000, "relations": [{"relation": "all", "words": 11302, "offset": 1, "by_offset":'
    ' 0.2673, "heads": [{"layer": 0, "head": 0, "looks": "up", "accuracy": 0.1204, "weight": 0.0813'
    '}, …]}, …]}], "subtypes": false, "least": 20, "left_out": {}}`.',
    memory="The models and a batch of attention weights; nothing grows with the input.",
    examples=(
        "synmt analyze heads -m runs/base -m runs/pascal dev.jsonl",
        "synmt analyze heads -m runs/base --format tsv test.en.conllu > heads.tsv",
    ),
    see_also=("analyze attention", "analyze awsl", "analyze probe"),
)


def analyze_heads(
    model: options.MeasuredRuns,
    files: options.Files = None,
    kind: options.InputKind = "auto",
    parser: options.RunParser = "",
    subtypes: Annotated[
        bool, option("--subtypes", "Tell subtypes of relations apart: nsubj:pass is not nsubj.")
    ] = False,
    least: Annotated[
        int, option("--least N", "Words of a relation that the tables show.", min=1)
    ] = 20,
    form: options.ReportFormat = "table",
    max_pieces: options.LongestMeasured = 1000,
    checkpoint: options.Checkpoint = "best",
    device: options.Device = "auto",
    threads: options.Threads = 0,
    output: options.Output = "-",
    strict: options.Strict = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Find the attention heads of the encoder that see dependencies. Clark et al. 2019, 4.2.

    For each head: how often its weights lead from a word to its parent in the tree. The weight of
    a word is the sum over its pieces; a word of several pieces gives the mean of theirs. The word
    itself and the end of sentence are left out.

    \b
    up    a word gives its greatest weight to its parent
    down  a word gets its greatest weight from its parent

    For each relation, the most accurate head in either direction is shown next to the best fixed
    offset, such as the next word: a head that does no better may attend by position alone. The best
    of many heads is chosen on the same sentences, so its accuracy is an optimistic estimate.

    A vanilla run shows what a model learns about syntax from translation alone. A run that reads
    trees gets those of the input, so it shows where the model uses them. Punctuation counts. Roots
    do not, nor do words without a piece of their own, such as the second of a multiword token.

    Input without trees must be text, which is parsed, even for a run without syntax. Records
    without a tree are left out and counted. Several runs read the same records, parsed by the first
    run's parser if they are text; they must share a vocabulary.
    """
    from synmt_cli.formats.reports.table import FORMATS

    paths = files or ["-"]
    options.refuse_clashes([*paths, parser], output)
    with (
        writing.output(output) as writer,
        console.progress("measured", files=paths, output=output) as bar,
    ):
        from synmt_cli.core.analysis.attention_heads import measure
        from synmt_cli.core.analysis.opened_run import warnings
        from synmt_cli.core.analysis.records_with_trees import notes, open_all
        from synmt_cli.core.jobs.translation.job import without_places
        from synmt_cli.core.run import device as devices

        devices.set_threads(threads)
        runs = open_all(model, checkpoint, devices.choose(device), parser)
        records = without_places(runs[0].reader().read(paths, kind), strict)
        records = bar.finished(bar.taken(records))
        report = measure(runs, records, max_pieces, bar.advance, subtypes=subtypes, least=least)
        left_out = notes(report.left_out, bar.done, reading.source_name(paths[0]))
        for note in (*left_out, *warnings(runs)):
            console.warn(note)
        writer.write(FORMATS[form](report))
