"""`synmt variants`: the models that `train --variant` knows."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict
from typing import Annotated, Any

from synmt_cli import console
from synmt_cli.commands import Manual, completion, options
from synmt_cli.commands.options import argument
from synmt_cli.formats.reports.table import FORMATS
from synmt_cli.formats.reports.variants import VariantInfo, VariantList
from synmt_cli.io import writing

MANUAL = Manual(
    input="None.",
    output="For each variant its paper, the features of the source that it reads, and its options "
    'with their defaults. --format json: a list of objects: `[{"name":"tags",…}]`.',
    examples=(
        "synmt variants",
        "synmt variants gps dep+rel",
        "synmt variants --format latex pascal gps > variants.tex",
        "synmt variants --format json"
        " | python3 -c 'import json, sys; print(len(json.load(sys.stdin)))'",
    ),
    see_also=("train", "settings", "multitask", "featurize"),
)
WIDTH = 100


def variants(
    names: Annotated[
        list[str] | None,
        argument("NAME", "Variants to list; none is all.", autocompletion=completion.variant),
    ] = None,
    form: options.ListFormat = "text",
    output: options.Output = "-",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """List the model variants: papers, options with their defaults, and the features they read.

    Names are joined by + (`synmt train --variant dep+rel`) and act in that order, so that each
    works on the result of those before it: variants that only add can be swapped, but pascal scales
    only what is named before it. Training refuses impossible combinations: sisa computes the scores
    of a head anew and must be named before whatever changes scores of its layer, and pascal, which
    would scale that head, needs another layer; multitask and mixed-encoder each make their own
    records (synmt multitask).

    The presets paper-* (train --preset) set the model and its training. What the papers do before
    and after is set in other commands. paper-pascal-* and paper-gps-*: joint BPE of 16,000 for NC11
    and WMT18, 32,000 for the others (vocab train --size), filter --lang except for En-Ja, translate
    --beam 4, and for pascal the weights of the last update (translate --checkpoint last).
    paper-structural-*: BPE of 32,000. paper-dep-*: words (vocab train --type word), at most 50 a
    sentence, --beam 1. paper-trees-*: filter at 40 target pieces. rel.clip is 16 in all of Wang et
    al.'s models, as the paper says; its toolkit's comment has 8 for big ones.

    Variants of your own are in the Python file that the variable SYNMT_VARIANTS names
    (docs/own-variants.md, examples/near_parent.py). This lists them, too, and tries their code on a
    few sentences.

    Absolute positions belong to no variant: train --set positions=none leaves them out of the
    encoder, --set decoder_positions=none out of the decoder. An option is set by
    --set NAME.OPTION=VALUE, as in pascal.heads=[2,0,0,1]. Features that are read only in training
    are not needed to translate, nor is a parser for them.
    """
    from synmt_cli.core.inspection.variant_description import describe
    from synmt_cli.core.run.config import resolve
    from synmt_cli.core.training import trial

    descriptions = describe(names or ())
    for one in descriptions:
        for line in trial.of(resolve(one.name, "tiny", [])):
            console.warn(line)
    with writing.output(output) as writer:
        if form == "json":
            objects = [_as_object(one) for one in descriptions]
            writer.write(json.dumps(objects, indent=1, ensure_ascii=False).encode() + b"\n")
        elif form == "text":
            writer.write("\n".join(map(_as_text, descriptions)).encode())
        else:
            writer.write(FORMATS[form](VariantList(descriptions)))


def _as_object(one: VariantInfo) -> dict[str, Any]:
    options = {
        option.name: {"default": option.default, "meaning": option.meaning}
        for option in one.options
    }
    return {**asdict(one), "options": options}


def _as_text(one: VariantInfo) -> str:
    lines = [f"{one.name:<16}{one.what} ({one.paper})"]
    reads = ", ".join(one.features)
    if one.training_features:
        reads += f"{'; ' if reads else ''}in training {', '.join(one.training_features)}"
    if reads:
        lines.append(f"{'':16}reads {reads}")
    if one.data:
        lines.append(f"{'':16}records of synmt multitask --scheme {one.data}")
    for option in one.options:
        text = f"{one.name}.{option.name} = {option.written_default}: {option.meaning}"
        lines += textwrap.wrap(text, WIDTH, initial_indent=" " * 16, subsequent_indent=" " * 20)
    return "\n".join(lines) + "\n"
