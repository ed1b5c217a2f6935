"""`synmt synth`: English-German sentence pairs with gold trees."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from synmt_cli import console
from synmt_cli.commands import Manual, completion, options
from synmt_cli.commands.options import option
from synmt_cli.errors import UsageError
from synmt_cli.io import writing

MANUAL = Manual(
    input="None; --exclude reads text, TSV, CoNLL-U or records.",
    output="`Now, she calls the doctor up.<TAB>Jetzt ruft sie den Arzt an.`, or text or CoNLL-U"
    " of one side; with --out-template four files.",
    memory="Constant; --unique and --exclude hold a digest of each line, about 100 bytes.",
    examples=(
        "synmt synth -n 5 --phenomena particle,reflexive --mix 0",
        "synmt synth -n 1000 --seed 7 --depth 1 --unique --exclude test.en"
        " --out-template 'shallow.{ext}'",
        "synmt synth -n 100 --seed 8 --phenomena relative --min-depth 2 --depth 3"
        " --out-template 'deep.{ext}'",
        "synmt synth -n 100 --phenomena object-first --side de --format text | grep -c '^Den '",
        "synmt synth -n 100 --side de --format conllu | synmt featurize -o trees.jsonl",
    ),
    see_also=("parser train", "featurize", "score"),
)


def synth(
    n: Annotated[int, option("-n, --number N", "Number of pairs to make.", min=0)] = 100,
    seed: options.Seed = options.SEED,
    template: Annotated[
        str | None,
        option(
            "--out-template TEMPLATE",
            "Write four files, all or none, with en, de, en.conllu and de.conllu for {ext}.",
        ),
    ] = None,
    side: Annotated[
        Literal["en", "de"] | None, option("--side", "The side to write as text or CoNLL-U.")
    ] = None,
    kind: Annotated[
        Literal["tsv", "text", "conllu"] | None,
        option("--format", "tsv, the default: English, TAB, German."),
    ] = None,
    phenomena: Annotated[
        str,
        option(
            "--phenomena NAME[:WEIGHT],...",
            "What sentences are built around, with weights; no other phenomenon occurs.",
            autocompletion=completion.made_phenomena,
        ),
    ] = "all",
    mix: Annotated[
        float, option("--mix P", "Chance, 0 to 1, that another phenomenon joins; drawn for each.")
    ] = 0.2,
    min_depth: Annotated[
        int,
        option("--min-depth N", "Nest relative clauses at least N deep, in every sentence.", min=0),
    ] = 0,
    depth: Annotated[
        int, option("--depth N", "Nest relative clauses at most N deep.", min=0, max=10)
    ] = 2,
    unique: Annotated[bool, option("--unique", "Write no line twice, on either side.")] = False,
    exclude: Annotated[
        list[str] | None,
        option(
            "--exclude FILE",
            "Make no sentence that this file contains, on either side; repeatable.",
        ),
    ] = None,
    exclude_kind: options.ExcludedKind = "auto",
    english_order: Annotated[
        Literal["marked", "plain"],
        option("--english-order", "marked: English fronts what German fronts."),
    ] = "marked",
    particles: Annotated[
        Literal["weight", "split", "joined", "mixed"],
        option("--particles", "Place of the English particle."),
    ] = "weight",
    extrapose: Annotated[
        bool, option("--extrapose", "Put German relative clauses after the verb.")
    ] = False,
    output: options.Output = "-",
    line_buffered: options.LineBuffered = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Make English-German sentence pairs with gold UD trees from a small grammar, by seed.

    The same options and seed make the same bytes; a smaller -n makes the first pairs of a
    larger one. Each sentence is built around one of the --phenomena, drawn by weight; each of
    the others joins with the chance --mix (0: none does). A phenomenon with weight 0 can join
    but not lead.

    \b
      plain                   none of the others
      fronting                an adverbial or clause first, the German verb second
      subordinate             dass, ob, weil, obwohl, während, wenn: the German verb last
      particle                ruft ... an, calls ... up; or in German alone (kommt ... an, arrives)
      reflexive               sich, himself, themselves; or in German alone (sich beeilen)
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

    Stranding occurs in questions, and in relative clauses where relative is chosen too. Depth
    is the number of relative clauses nested in one another; 0 is none.

    Either side determines the other, except where a German sentence is object-first-ambiguous:
    it can also be read as subject-first. English fronts what German fronts, with a comma ("The
    dog, the woman sees."); with --english-order plain it does not, and English no longer
    determines German. The English particle follows the object but precedes one with a relative
    clause (weight); --particles split puts it after every object, joined before every noun, and
    mixed chooses at random, so that German no longer determines English.

    CoNLL-U has the comments synth_phenomena, synth_depth, synth_ambiguous (where neither
    German case nor agreement tells subject from object: subject-first, object-first,
    relative) and synth_cue (what marks a fronted object: case, agreement, sense, none). Questions,
    which ask for objects alone, and recipients, which follow their subject, are not marked as
    ambiguous. German contractions (im, am, vom) are multiword tokens. Trees are projective except
    for stranded prepositions and --extrapose.

    --exclude keeps a test set apart from a training set: no sentence of FILE is made, whatever
    format FILE has. If too few sentences can be made, the command exits with status 2.
    """
    from synmt_cli.core.segments import splitting
    from synmt_cli.synth import files, settings
    from synmt_cli.synth.pairs import digest, pairs

    options.refuse_clashes(exclude or (), output)
    options.refuse({"--exclude-format needs --exclude": not exclude and exclude_kind != "auto"})
    if template is not None and (side or kind or output != "-" or line_buffered):
        unfit = "--side, --format, --output, --line-buffered"
        raise UsageError(f"--out-template names its files: no {unfit}")
    kind = kind or "tsv"
    if template is None:
        options.refuse(
            {
                f"--format {kind} needs --side en or de": kind != "tsv" and not side,
                "--side is for --format text or conllu; tsv has both": kind == "tsv" and side,
            }
        )
    chosen = settings.SynthSettings(
        weights=settings.phenomena(phenomena),
        mix=mix,
        min_depth=min_depth,
        max_depth=depth,
        marked=english_order == "marked",
        particles=particles,
        extrapose=extrapose,
    )
    outputs: list[list[str]] = []
    if template is not None:
        outputs = splitting.filled(template, "ext", [*files.FILES], [])
    splitting.refuse_inputs(outputs, exclude or [])
    forbidden = frozenset(map(digest, _sentences(exclude or [], exclude_kind)))
    made = pairs(chosen, seed, n, unique, forbidden)
    if template is not None:
        with console.progress("synth", n, "pairs") as bar:
            files.write(bar.watched(made), [path for (path,) in outputs])
        return
    with writing.output(output, line_buffered) as writer:
        for pair in made:
            writer.write(files.record(pair, side or "en", kind))


def _sentences(paths: Sequence[str], kind: str) -> Iterator[str]:
    """Yields all texts in files of a kind: lines, the columns of TSV, both sides of records.

    A line of CoNLL-U that has several sentences is yielded whole, and sentence by sentence.
    """
    from synmt_cli.core.segments import reader
    from synmt_cli.core.segments.alignment import text_of
    from synmt_cli.core.segments.segment import TreeSegment

    if not paths:  # which would be stdin
        return
    for segment in reader.read(paths, kind, option="--exclude-format"):
        yield from segment.text.split("\t")
        if isinstance(segment, TreeSegment) and segment.sentences[1:]:
            yield from (text_of([one], one.metadata()).strip() for one in segment.sentences)
        if segment.target is not None:
            yield segment.target
