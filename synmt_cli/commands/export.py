"""`synmt export`: a trained model for another program."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from synmt_cli import console
from synmt_cli.commands.manual import Checkpoint, Manual, Quiet
from synmt_cli.errors import printable

MANUAL = Manual(
    input="A run directory, as `synmt train` makes it.",
    output=(
        "A folder that ctranslate2.Translator opens, with the sentencepiece model (spm.model; "
        "spm.tgt.model too, where the target has its own)."
    ),
    memory="The model three times.",
    examples=(
        "synmt export -m runs/base -o base.ct2",
        "synmt export -m runs/base --quantization int8 -o base.int8.ct2",
    ),
    see_also=("translate", "average", "vocab-encode", "vocab-decode"),
)


class ExportFormat(StrEnum):
    """Of which program."""

    CTRANSLATE2 = "ctranslate2"


class Quantization(StrEnum):
    """What weights are stored in."""

    INT8 = "int8"
    INT16 = "int16"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"


def export(
    model: Annotated[str, typer.Option("-m", "--model", metavar="RUN", help="Run directory.")],
    output: Annotated[str, typer.Option("-o", "--output", metavar="DIR", help="New folder.")],
    format: Annotated[ExportFormat, typer.Option("--format", help="Of which program.")] = (
        ExportFormat.CTRANSLATE2
    ),
    quantization: Annotated[
        Quantization | None,
        typer.Option("--quantization", help="How weights are stored; else as they are."),
    ] = None,
    checkpoint: Checkpoint = "best",
    quiet: Quiet = False,
) -> None:
    """Write a trained model in the format of another program.

    CTranslate2 translates plain Transformers faster than torch on a CPU. Its models are read by
    its own library: pieces in (`synmt vocab encode`), pieces out (`synmt vocab decode`); it adds
    the end of the source itself. Only models without modifiers fit: vanilla, multitask and
    mixed-encoder. Others change attention, embeddings or the decoder, and CTranslate2 has no
    place for that (78).

    Sources and translations may have 2,048 pieces at most: as many sinusoids are written.

    Needs the package ctranslate2 (`pip install 'synmt-cli[ctranslate2]'`, 69 without it). The
    folder must not exist, and appears when it is complete.
    """
    from synmt_cli.core.run import export as ctranslate2_export
    from synmt_cli.core.run.directory import Run

    kind = quantization.value if quantization else None
    ctranslate2_export.export(Run(Path(model)), Path(output), checkpoint, kind)
    console.info(f"{printable(model)} for {format.value}: {printable(output)}")
