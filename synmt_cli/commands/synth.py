"""`synmt synth`: English-German sentence pairs with gold trees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from synmt_cli import console
from synmt_cli.commands.manual import LineBuffered, Manual, Out, Quiet, Seed, Verbose
from synmt_cli.errors import UsageError
from synmt_cli.io import writing

if TYPE_CHECKING:
    from synmt_cli.synth.pairs import MadePair

MANUAL = Manual(
    input="None; --exclude reads text.",
    output="`Now, she calls the doctor up.<TAB>Jetzt ruft sie den Arzt an.`, or text or CoNLL-U"
    " of one side; with --prefix four files.",
    memory="Constant; --unique and --exclude hold a digest of each line, about 100 bytes.",
    examples=(
        "synmt synth -n 5 --phenomena particle,reflexive --mix 0",
        "synmt synth -n 1000 --seed 7 --depth 1 --unique --exclude test.en --prefix shallow",
        "synmt synth -n 100 --seed 8 --phenomena relative --min-depth 2 --depth 3 --prefix deep",
        "synmt synth -n 100 --phenomena object-first --side de --format text | grep -c '^Den '",
        "synmt synth -n 100 --side de --format conllu | synmt featurize -o trees.jsonl",
    ),
    see_also=("parser train", "featurize", "score"),
)


def synth(
    n: Annotated[
        int, typer.Option("-n", "--number", metavar="N", min=0, help="How many pairs to make.")
    ] = 100,
    seed: Seed = 1,
    prefix: Annotated[
        str | None,
        typer.Option(
            "--prefix",
            metavar="PATH",
            help="Write PATH.en, PATH.de, PATH.en.conllu and PATH.de.conllu: all four or none.",
        ),
    ] = None,
    side: Annotated[
        Literal["en", "de"] | None,
        typer.Option("--side", help="The side to write as text or conllu."),
    ] = None,
    kind: Annotated[
        Literal["tsv", "text", "conllu"] | None,
        typer.Option("--format", help="tsv is English, TAB, German (the default)."),
    ] = None,
    phenomena: Annotated[
        str,
        typer.Option(
            "--phenomena",
            metavar="NAME[:WEIGHT],...",
            help="What sentences are built around, and how often. Others do not occur.",
        ),
    ] = "all",
    mix: Annotated[
        float,
        typer.Option(
            "--mix", metavar="P", help="The chance that each other phenomenon joins, 0 to 1."
        ),
    ] = 0.2,
    min_depth: Annotated[
        int,
        typer.Option(
            "--min-depth",
            metavar="N",
            min=0,
            help="Every sentence has relative clauses at least N deep.",
        ),
    ] = 0,
    depth: Annotated[
        int,
        typer.Option(
            "--depth", metavar="N", min=0, max=10, help="Relative clauses are at most N deep."
        ),
    ] = 2,
    unique: Annotated[
        bool, typer.Option("--unique", help="No line comes twice, on either side.")
    ] = False,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            metavar="FILE",
            help="Lines of text, of either side, that are not to be made; may be repeated.",
        ),
    ] = None,
    english_order: Annotated[
        Literal["marked", "plain"],
        typer.Option("--english-order", help="marked: English puts first what German puts first."),
    ] = "marked",
    particles: Annotated[
        Literal["weight", "split", "joined", "mixed"],
        typer.Option("--particles", help="Where the English particle stands."),
    ] = "weight",
    extrapose: Annotated[
        bool,
        typer.Option("--extrapose", help="German relative clauses stand behind the verb."),
    ] = False,
    output: Out = "-",
    line_buffered: LineBuffered = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Makes English-German sentence pairs with gold UD trees from a small grammar, by seed.

    The same options and seed make the same bytes, and the first pairs of more. Each sentence
    is built around one of the --phenomena, drawn by weight; each of the others joins with the
    chance --mix (0: one alone). A weight of 0 lets a phenomenon join but not lead.

    \b
      plain                   none of the others
      fronting                an adverbial or clause first, the German verb second
      subordinate             dass, ob, weil, obwohl, während, wenn: the German verb last
      particle                ruft ... an, calls ... up
      reflexive               sich, himself, themselves; German alone too (sich beeilen)
      dative                  hilft der Frau, gibt der Frau den Brief
      object-first            the German object first, told by case or agreement
      object-first-ambiguous  the same where neither tells
      relative                relative clauses, --min-depth to --depth deep
      stranding               the man that she looks at; What does she wait for?
      agreement               a noun of the other number between subject and verb
      perfect                 has called, hat gerufen, ist gekommen
      modal                   can, should, might, must, will with an infinitive
      negation                not, nicht, kein
      adjective               adjectives before nouns, with German endings

    Stranding is in questions, and in relative clauses where relative is chosen too. Depth
    counts relative clauses in one another; 0 is none.

    Either side determines the other, save where a German sentence is object-first-ambiguous:
    it reads as subject-first too. English shows a German opening by its own, with a comma
    ("The dog, the woman sees."); with --english-order plain it does not, and English no longer
    determines German. The English particle stands behind the object but before one with a
    relative clause (weight); --particles split puts it behind, joined before every noun, and
    mixed either way by chance.

    CoNLL-U has the comments synth_phenomena, synth_depth, synth_ambiguous (where neither
    German case nor agreement tells subject from object: subject-first, object-first,
    relative) and synth_cue (what tells the object that stands first: case, agreement, sense,
    none). German contractions (im, am, vom) are multiword tokens. Trees are projective but
    for stranded prepositions and --extrapose.

    --exclude keeps a test set apart from a training set. Where too few sentences can be made
    the command ends with status 2.
    """
    from synmt_cli.synth import files, settings
    from synmt_cli.synth.pairs import pairs

    if prefix is not None and (side or kind or output != "-" or line_buffered):
        raise UsageError("--prefix names its files: no --side, --format, --output, --line-buffered")
    kind = kind or "tsv"
    if prefix is None and (kind == "tsv") != (side is None):
        raise UsageError("--format text and conllu need --side en or de; tsv has both sides")
    chosen = settings.SynthSettings(
        weights=settings.phenomena(phenomena),
        mix=mix,
        min_depth=min_depth,
        max_depth=depth,
        marked=english_order == "marked",
        particles=particles,
        extrapose=extrapose,
    )
    outputs = files.paths(prefix) if prefix is not None else []
    forbidden = files.excluded(exclude or [], outputs)
    made = pairs(chosen, seed, n, unique, forbidden)
    if prefix is not None:
        with console.progress("synth", n, "pairs") as progress:
            files.write(_counted(made, progress), prefix)
        return
    with writing.output(output, line_buffered) as writer:
        for pair in made:
            writer.write(files.record(pair, side or "en", kind))


def _counted(made: Iterable[MadePair], progress: console.Progress) -> Iterator[MadePair]:
    for pair in made:
        yield pair
        progress.advance()
