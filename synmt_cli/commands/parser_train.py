"""`synmt parser train`: CoNLL-U to a UDPipe model."""

from collections.abc import Sequence
from typing import Annotated, Literal

from synmt_cli import console
from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import argument, option
from synmt_cli.core.text import parser_training
from synmt_cli.errors import DataError
from synmt_cli.formats import conllu
from synmt_cli.io import reading, writing

MANUAL = Manual(
    input="Treebanks in CoNLL-U: `2\tdog\tdog\tNOUN\t_\t_\t3\tnsubj\t_\t_`",
    output="A UDPipe 1 model file, which parse and other UDPipe 1 programs load.",
    memory="Both treebanks, and about ten times their size for the trainer.",
    examples=(
        "synmt parser train train.en.conllu --dev dev.en.conllu -o my.udpipe",
        "synmt parser train --light train.en.conllu --dev dev.en.conllu -o light.udpipe",
        "synmt parser train train.de.conllu --dev dev.de.conllu -o de.udpipe "
        "--tokenizer-options none --parser-options 'iterations=1;transition_system=swap'",
    ),
    see_also=("parse", "synth"),
)

MANY_CROSSING = 0.05  # the share of a treebank's trees


def parser_train(
    files: Annotated[list[str], argument("TRAIN", "Treebanks to train on; - is stdin.")],
    output: Annotated[str, option("-o, --output MODEL", "Write the model here.")],
    dev: Annotated[
        list[str] | None,
        option("--dev FILE", "Treebank for early stopping and evaluation; repeatable."),
    ] = None,
    preset: Annotated[
        Literal["quick", "accurate"],
        option(
            "--preset",
            "quick: a small model, soon trained. accurate: UDPipe's own defaults, hours for "
            "a large treebank.",
        ),
    ] = "quick",
    light: Annotated[
        bool, option("--light", "A model that parses faster: no lemmas, fewer guesses at tags.")
    ] = False,
    tokenizer: Annotated[
        str, option("--tokenizer-options LIST", "UDPipe's name=value;..., or none.")
    ] = "",
    tagger: Annotated[str, option("--tagger-options LIST", "UDPipe's name=value;...")] = "",
    parser: Annotated[str, option("--parser-options LIST", "UDPipe's name=value;...")] = "",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Train a tokenizer, tagger and parser for parse on treebanks.

    --tokenizer-options, --tagger-options and --parser-options override single options of the
    preset. They take what UDPipe 1's own trainer takes, such as epochs=20 for the tokenizer,
    iterations=10 for the tagger, hidden_layer=200;transition_system=swap for the parser. The
    preset quick is dimension=16;epochs=3 for the tokenizer, iterations=2 for the tagger, and for
    the parser iterations=2;hidden_layer=64;structured_interval=0 with embeddings of 32 and 12.

    The preset decides how long training takes, --light how long parse takes with the model: its
    tagger gives no lemmas, and chooses among fewer tags of a word
    (use_lemma=0;provide_lemma=0;guesser_suffix_rules=4;guesser_enrich_dictionary=2).
    docs/parsers.md says what that costs. No variant reads lemmas.

    Training makes no random choice: the same files and options give the same model. The model
    is written once it is complete, has been loaded, and has been evaluated on the --dev
    treebank.
    """
    given = {"tokenizer": tokenizer, "tagger": tagger, "parser": parser}
    settings = parser_training.merged(preset, given, light)
    options.refuse_compressed(output)
    options.refuse_clashes([*files, *(dev or [])], output)
    with writing.output(output) as writer:
        training = _treebank(files, "training", "train on")
        development = _treebank(dev, "dev", "measure with") if dev else parser_training.Treebank()
        _advise(training, settings["parser"])
        trained = parser_training.train(training, development, settings, _log)
        writer.write(trained.model)
    for line in filter(None, trained.evaluation.split("\n")):
        console.info(line)


def _treebank(paths: Sequence[str], name: str, purpose: str) -> parser_training.Treebank:
    """Reads all files. name, purpose: for messages. Raises DataError, also if nothing is left."""
    sentences = (one for source in reading.sources(paths) for one in conllu.read(source))
    treebank = parser_training.treebank(sentences)
    for reason, n in treebank.left_out.items():
        console.warn(f"{n:,} {name} sentences {reason} are left out")
    if not treebank.blocks:
        where = ", ".join(map(reading.source_name, paths))
        raise DataError(where, None, f"no sentence to {purpose}")
    if treebank.n_lemmas:
        console.warn(
            f"{treebank.n_lemmas:,} lemmas in the {name} data have over "
            f"{parser_training.MAX_FORMS} forms, which UDPipe cannot hold: they become _"
        )
    console.info(f"{len(treebank.blocks):,} {name} sentences")
    return treebank


def _advise(training: parser_training.Treebank, options_of_parser: str) -> None:
    """Says how crossing arcs can be learnt, if there are many and the options do not see to it."""
    share = training.n_crossing / len(training.blocks)
    chosen = "transition_system" in options_of_parser or "from_model" in options_of_parser
    if share >= MANY_CROSSING and not chosen:
        console.info(
            f"{share:.0%} of the trees are not projective, but those of this parser will be; "
            "--parser-options transition_system=swap makes one that can build such trees"
        )


def _log(line: str) -> None:
    rounds = line.startswith(("Epoch", "Iteration", "Training", "Parser transition"))
    (console.info if rounds else console.debug)(line)
