"""`synmt info`: what files are."""

from pathlib import Path
from typing import Annotated, Any, Literal

from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import option
from synmt_cli.core.inspection import counts
from synmt_cli.core.inspection.inputs import InspectedInput, opened
from synmt_cli.core.text.vocabulary import MODEL_LIMIT
from synmt_cli.errors import DataError, printable
from synmt_cli.formats.reports import properties
from synmt_cli.io import reading, writing

MANUAL = Manual(
    input="Text, CoNLL-U, records, transitions, models, checkpoints, run directories.",
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
    """Say what files are, and show their most important figures.

    \b
    text           lines, empty ones, words (between white space), characters
    conllu         sentences, segments (lines of text), statuses, trees, tokens, multiword
                   tokens, empty nodes, words, trees that are not projective
    jsonl          records, statuses, trees, sentences, words, pieces, targets, fingerprints of
                   vocabularies, and the number of records with each field
    transitions    lines, words or pieces, arcs, labels
    sentencepiece  pieces, type, symbols, fingerprint
    udpipe         whether it has a tokenizer, a tagger and a parser; digest
    weights        parameters, types, and the metadata of the header
    checkpoint     step, epoch, best value so far
    run            variant, sizes, parameters, best value on dev, parser and data with their
                   digests, versions

    longest counts words, pieces in records with pieces, and tokens in transitions; longest_line
    is where the first segment of that length begins. nonprojective_share is a percentage of the
    trees. Blocks and records that stand for a line without a tree count only in statuses.

    Streams are read to their end, and bad data ends the command (65), as in other commands;
    synmt check lists everything that is wrong. Only the header of weights is read.
    """
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
    from synmt_cli.core.inspection import models

    match one.kind:
        case "run":
            return models.of_run(Path(one.path))
        case "checkpoint":
            return models.of_checkpoint(Path(one.path))
        case "weights":
            one.refuse_unnamed()
            return models.of_weights(Path(one.path))
        case "udpipe":
            one.refuse_unnamed()
            return models.of_udpipe(one.path)
        case "sentencepiece":
            assert one.source is not None
            return models.of_sentencepiece(_vocabulary(one.source), one.name)
        case kind:
            assert one.source is not None
            return counts.of_stream(one.source, kind)


def _vocabulary(source: reading.Source) -> bytes:
    """All bytes of a source. Raises DataError for more than a vocabulary may have, ReadError."""
    data = bytearray()
    for chunk in reading.chunks(source):
        data += chunk
        if len(data) > MODEL_LIMIT:
            problem = f"more than the {MODEL_LIMIT:,} bytes that a vocabulary may have"
            raise DataError(source.name, None, problem)
    return bytes(data)
