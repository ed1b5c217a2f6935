"""`synmt export`: a trained model for another program."""

from pathlib import Path
from typing import Annotated, Literal

from synmt_cli import console
from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import option

MANUAL = Manual(
    input="A run directory, as `synmt train` makes it.",
    output=(
        "A folder that `synmt translate` reads, with the sentencepiece model (spm.model; "
        "spm.tgt.model too, where the target has its own), and the parser if the run has a copy. "
        "ctranslate2.Translator opens it if the model has no modifiers."
    ),
    memory="The model three times.",
    examples=(
        "synmt export -m runs/base -o base.ct2",
        "synmt export -m runs/pascal --quantization int8 -o pascal.ct2",
    ),
    see_also=("translate", "average", "vocab encode", "vocab decode"),
)


def export(
    model: options.RunModel,
    output: Annotated[str, option("-o, --output DIR", "New folder.")],
    format: Annotated[
        Literal["ctranslate2"], option("--format", "The program that is to read it.")
    ] = "ctranslate2",
    quantization: Annotated[
        Literal["int8", "int16", "float16", "bfloat16"] | None,
        option(
            "--quantization",
            "How to store weights; int16 only for models that change nothing in the encoder; the "
            "default keeps them as they are.",
        ),
    ] = None,
    checkpoint: options.Checkpoint = "best",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Write a trained model in the format of another program.

    `synmt translate -m DIR --patience 1` needs only this folder, not the run directory. Models with
    a plain decoder can be exported: all source-side variants, alone or combined. Decoders that
    write trees, re-read their prefix or see distances (rel, unless rel.stack=encoder) are refused
    (78). What a variant changes in the encoder is stored for torch (encoder.safetensors),
    everything after it for CTranslate2.

    Where nothing is changed (vanilla, multitask, mixed-encoder) CTranslate2 has the whole model,
    and its own library runs it, too: pieces in (`synmt vocab encode`), pieces out (`synmt vocab
    decode`); it adds the end of the source itself.

    Sources and translations can have at most 2,048 pieces, because the export holds that many
    positions.

    Needs the package ctranslate2 (`pip install 'synmt-cli[ctranslate2]'`, 69 without it). The
    folder must not exist, and appears when it is complete.
    """
    options.refuse_no_folder("--output", output)

    from synmt_cli.core.run.directory import Run
    from synmt_cli.core.run.exported import export as ctranslate2_export

    ctranslate2_export.export(Run(Path(model)), Path(output), checkpoint, quantization)
    console.info(f"exported {model} for {format} to {output}")
