"""`synmt analyze attention`: attention weights as JSONL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from synmt_cli import console
from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import option
from synmt_cli.errors import DataError
from synmt_cli.formats.record import OK
from synmt_cli.io import writing

if TYPE_CHECKING:
    from synmt_cli.core.analysis.attention import AttentionExtractor
    from synmt_cli.core.jobs.translation.input import Placed

MANUAL = Manual(
    input="JSONL records of `synmt featurize`, CoNLL-U, or text, one segment a line; --stack "
    "decoder and cross need records with targets, which are trees for a model that writes trees.",
    output='One object for each segment: `{"id":"1","status":"ok","stack":"encoder","tokens":["▁A"'
    ',"▁dog","</s>"],"keys":["▁A","▁dog","</s>"],"weights":[{"layer":0,"head":0,"rows":[[0.5012,'
    "0.2488,0.25],[…],[…]]}]}`: row i is how token i weighs each of keys.",
    memory="The model and the weights of 16 segments: layers x heads x tokens x keys numbers each.",
    examples=(
        "head -1 test.jsonl | synmt analyze attention -m runs/pascal --layers 0 --heads 0,1",
        "synmt analyze attention -m runs/base --stack cross --layers 3 dev.jsonl > cross.jsonl",
        "head -2 test.en | synmt analyze attention -m runs/pascal --decimals 2",
    ),
    see_also=("analyze heads", "analyze awsl", "translate"),
)
WINDOW = 16  # segments encoded together


def analyze_attention(
    model: options.RunModel,
    files: options.Files = None,
    kind: options.InputKind = "auto",
    parser: options.RunParser = "",
    stack: Annotated[
        Literal["encoder", "decoder", "cross"], option("--stack", "The attention to show.")
    ] = "encoder",
    layers: Annotated[
        str, option("--layers LIST", "Layers, from 0, the bottom one; the default is all.")
    ] = "",
    heads: Annotated[str, option("--heads LIST", "Heads, from 0; the default is all.")] = "",
    decimals: Annotated[
        int, option("--decimals N", "Digits after the decimal point.", min=1, max=9)
    ] = 4,
    max_pieces: Annotated[
        int, option("--max-pieces N", "Give no weights for longer segments.", min=1)
    ] = 256,
    checkpoint: options.Checkpoint = "best",
    device: options.Device = "auto",
    threads: options.Threads = 0,
    output: options.Output = "-",
    line_buffered: options.LineBuffered = False,
    strict: options.Strict = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Show attention weights of a trained model, one JSON object for each segment, in order.

    --stack encoder: each source token over the source. decoder: each target token over the
    target up to itself. cross: each target token over the source. The last two read the given
    target (teacher forcing), after <s>: the row of a token is what the model attends to when it
    is about to predict the next one. Weights are those after mask and softmax, without dropout,
    with everything that the variant does to them; a row sums to 1 before rounding.

    `tokens` names the rows, `keys` the columns: pieces, and </s> after the source. Layers and
    heads count from 0. A segment that is empty, failed or skipped, or that has more than
    --max-pieces pieces (then skipped), has its status and no weights; these are counted at the
    end.
    """
    chosen_layers = options.numbers("--layers", layers)
    chosen_heads = options.numbers("--heads", heads)
    paths = files or ["-"]
    options.refuse_clashes([*paths, parser], output)
    window = 1 if options.is_watched(paths, line_buffered) else WINDOW
    with (
        writing.output(output, line_buffered) as writer,
        console.progress("shown", files=paths, output=output) as bar,
    ):
        from synmt_cli.core.analysis.attention import AttentionExtractor
        from synmt_cli.core.analysis.opened_run import open_run, warnings
        from synmt_cli.core.decoding.translator import windows
        from synmt_cli.core.jobs.translation.job import without_places
        from synmt_cli.core.run import device as devices
        from synmt_cli.formats import attention

        devices.set_threads(threads)
        run = open_run(model, checkpoint, devices.choose(device), parser)
        extractor = AttentionExtractor(run, stack, chosen_layers, chosen_heads)
        placed = run.reader().read(paths, kind)
        if stack != "encoder":
            placed = requiring_targets(placed, writes_trees=run.model.grammar is not None)
        if strict:
            placed = ending_at_long(placed, extractor, max_pieces)
        n_without = 0
        for records in bar.finished(bar.taken(windows(without_places(placed, strict), window))):
            for one in extractor.extract(records, max_pieces):
                writer.write(attention.to_bytes(one, decimals))
                n_without += one.status != OK
            bar.advance(len(records))
        for line in warnings([run]):
            console.warn(line)
    if n_without:
        console.warn(f"{n_without:,} of {bar.done:,} segments have no weights: see their status")


def ending_at_long(placed: Placed, extractor: AttentionExtractor, limit: int) -> Placed:
    """Yields the records. Raises DataError at the first one with too many pieces to be shown."""
    for record, place in placed:
        if record.status == OK and (reason := extractor.too_long(record, limit)):
            raise DataError(*place, reason)
        yield record, place


def requiring_targets(placed: Placed, writes_trees: bool) -> Placed:
    """Yields the records. Raises DataError at the first one without what the decoder writes."""
    field, option = ("transitions", "--tgt-conllu") if writes_trees else ("tgt_pieces", "--tgt")
    for record, place in placed:
        if record.status == OK and getattr(record, field) is None:
            problem = f"no {field}; make records with featurize --spm MODEL {option} FILE"
            raise DataError(*place, problem)
        yield record, place
