"""`synmt mixup make`: German sentences with subject and object in both orders."""

from typing import Annotated, Literal

from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import option
from synmt_cli.io import writing

MANUAL = Manual(
    input="None.",
    output="198 lines, `Den Ball bringt das Kind`; --format tsv: with id and roles,"
    " `object-01-ovs<TAB>object<TAB>ovs<TAB>Kind<TAB>bringt<TAB>Ball<TAB>Den Ball bringt das"
    " Kind`, under a header; --format jsonl: records with the same as fields.",
    memory="Constant.",
    examples=(
        "synmt mixup make > mixup.de",
        "synmt mixup make --full-stop | synmt translate -m runs/base | synmt mixup score",
        "synmt mixup make --format tsv | grep -c '\\-ovs'",
    ),
    see_also=("mixup score", "translate", "challenge"),
)
HEADER = ("id", "construction", "order", "subject", "verb", "object", "src")


def mixup_make(
    form: Annotated[
        Literal["text", "tsv", "jsonl"],
        option("--format", "Write text, or a table or records with the roles."),
    ] = "text",
    full_stop: Annotated[
        bool, option("--full-stop", "End each sentence with a full stop.")
    ] = False,
    output: options.Output = "-",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Write the 99 + 99 German sentences of Choshen and Abend (2021), Appendix C.

    Each sentence comes first with the object in front (OVS), which is rare, and on the next line
    with the subject in front (SVO); both mean the same. The case of the articles tells the roles
    apart, in three constructions:

    \b
      object   36  Den Ball bringt das Kind       the object is marked
      subject  27  Das Pferd drängt der Vater     the subject is marked
      both     36  Den Ball bringt der Vater      both are

    The order of the lines is fixed; `mixup score` relies on it. The paper's sentences have no
    full stop. If all training sentences end with one, --full-stop is fairer to the model.
    """
    import orjson

    from synmt_cli.core.challenge.mixup import items

    with writing.output(output) as writer:
        if form == "tsv":
            writer.write("\t".join(HEADER).encode() + b"\n")
        for one in items():
            src = one.sentence + "." * full_stop
            fields = {name: getattr(one, name) for name in HEADER[:-1]} | {"src": src}
            if form == "jsonl":
                writer.write(orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE))
            else:
                writer.write(
                    ("\t".join(fields.values()) if form == "tsv" else src).encode() + b"\n"
                )
