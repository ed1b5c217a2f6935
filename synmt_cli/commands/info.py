"""`synmt info`: what files are."""

from pathlib import Path
from typing import Annotated, Any, Literal

from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import option
from synmt_cli.core.inspection import counts
from synmt_cli.core.inspection.inputs import InspectedInput, opened
from synmt_cli.core.text.vocabulary import MODEL_LIMIT
from synmt_cli.errors import printable
from synmt_cli.formats.reports import properties
from synmt_cli.io import reading, writing

MANUAL = Manual(
    input="Every file and folder that synmt reads or writes.",
    output="A property a line, `words<TAB>5021`, and an empty line between files;"
    ' with --format json one object a file: `{"file": "dev.jsonl", "kind": "jsonl", "records": 40,'
    " …}`.",
    memory="A line or sentence, a vocabulary, a UDPipe model, or the header of weights.",
    examples=(
        "synmt info train.en train.en.conllu train.jsonl",
        "synmt info runs/pascal runs/pascal/checkpoints/step-3 spm.model en.udpipe",
        "synmt parse -m en.udpipe test.en | synmt info --format json",
        "synmt info train.jsonl | awk -F '\\t' '$1 == \"nonprojective_share\" {print $2}'",
    ),
    see_also=("check", "view", "vocab info", "variants"),
)


def info(
    files: options.Files = None,
    kind: Annotated[
        Literal["auto", "text", "conllu", "jsonl", "transitions"],
        option("--from", "What the input is; auto looks at its beginning."),
    ] = "auto",
    form: options.PropertyFormat = "tsv",
    output: options.Output = "-",
    line_buffered: options.LineBuffered = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Describe files: say what each is, and show its most important figures.

    \b
    text           lines, empty ones, words (between white space), characters
    conllu         sentences, segments (lines of text), statuses, tokens, multiword tokens, empty
                   nodes, words; trees, how deep they are and how long their arcs
    jsonl          records, statuses, records with trees, sentences, words; depth and so on as for
                   CoNLL-U; pieces, targets, fingerprints of vocabularies, and the number of
                   records with each field
    transitions    lines, words or pieces, arcs, labels
    sentencepiece  pieces, type, symbols, fingerprint
    udpipe         how many words the parser knows; whether there is a tokenizer, a tagger and a
                   parser; digest
    weights        parameters, types, and the metadata of the header
    checkpoint     step, epoch, best value so far
    metrics        validations, the best, the trend (metrics.jsonl of a run)
    attention      segments, layers, heads (analyze attention)
    segment-scores segments and mean of each system (score --segment-scores, --format segments)
    table          the command that wrote a TSV, rows, columns
    json           the command that wrote a report and its main figures, or what else it is:
                   labels, environment, state of a run
    config         the settings in a file of TOML
    experiment     what a folder of init compares, and which parts exist already
    export         the model in a folder of export
    cache          pairs, columns, files of the training records as numbers
    run            variant, sizes, parameters, best value on dev, parser, pretrained model and
                   data with their digests, versions

    longest is the length of the longest segment (in CoNLL-U, sentence): in words, in pieces for
    records that have them, in tokens for transitions; longest_line is where the first of that
    length begins. A block or record that stands for a line without a tree is counted, but not as a
    tree. Of the trees of sentences:

    \b
      nonprojective_share  percentage of sentences with an arc over a word that its head does not
                           dominate
      depth                of a sentence, mean and greatest: arcs from its root to its deepest word
      distance             of an arc, mean and greatest: words from the dependent to its head,
                           1 if they are neighbours
      before_head_share    percentage of arcs whose dependent stands before its head

    Streams are read to their end, and bad data ends the command (65), as in other commands;
    synmt check lists everything that is wrong. Only the header of weights is read.
    """
    options.refuse_clashes(files or (), output)
    with writing.output(output, line_buffered) as writer:
        for number, path in enumerate(files or ("-",)):
            with opened(path, None if kind == "auto" else kind) as one:
                facts = _facts(one)
            if form == "json":
                writer.write(properties.as_object(facts))
            else:
                writer.write(b"\n" * (number > 0) + properties.as_lines(facts))


def _facts(one: InspectedInput) -> dict[str, Any]:
    """Name, kind and figures of an input. Raises SynmtError."""
    name = printable(one.name)
    known = {"file": name, "kind": one.kind}
    if one.compression:
        known["compression"] = one.compression
    return known | _figures(one)


def _figures(one: InspectedInput) -> counts.Facts:
    from synmt_cli.core.inspection import documents, folders, models

    path = Path(one.path)
    match one.kind:
        case "run" | "checkpoint" | "experiment" | "export" | "cache":
            return folders.figures(path, one.kind)
        case "weights":
            one.refuse_unnamed()
            return models.of_weights(path)
        case "udpipe":
            one.refuse_unnamed()
            return models.of_udpipe(one.path)
        case "sentencepiece":
            assert one.source is not None
            return models.of_sentencepiece(
                reading.whole(one.source, MODEL_LIMIT, "a vocabulary"), one.name
            )
        case "metrics" | "attention" | "segment-scores" | "table" | "json" | "config":
            assert one.source is not None
            return documents.figures(one.source, one.kind)
        case kind:
            assert one.source is not None
            return counts.of_stream(one.source, kind)
