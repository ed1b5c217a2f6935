"""`synmt evaltree`: how well trees are parsed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from synmt_cli import console
from synmt_cli.commands import Manual, completion, options
from synmt_cli.commands.options import argument, option
from synmt_cli.core.evaluation.trees.grouping import Grouping, grouping
from synmt_cli.errors import DataError, UsageError, quoted
from synmt_cli.formats import conllu
from synmt_cli.formats.reports.tree_scores import LABELS
from synmt_cli.io import reading, writing

if TYPE_CHECKING:
    from synmt_cli.core.evaluation.statistics.significance import SignificanceTest
    from synmt_cli.formats.reports.tree_comparison import ParserReport
    from synmt_cli.formats.reports.tree_scores import TreeReport

METRICS = "uas,las"  # tested unless -M names others
TESTED = [name for name in LABELS if name not in ("tokens", "sentences")]
MANUAL = Manual(
    input="CoNLL-U, twice or more, of the same text: `2\tdog\tdog\tNOUN\t_\t_\t3\tnsubj\t_\t_`",
    output="A table, or with `--format tsv` one line for each group and metric, or with"
    ' `--format json` one object: `{"gold": "gold.conllu", "system": "<stdin>", "subtypes":'
    ' false, "scores": {"las": {"precision": 77.1, "recall": 77.1, "f1": 77.1, …}, …}, "by":'
    ' null, "groups": [], "punct": true}`. Several systems have a table of F1 and one of tests; in'
    ' JSON `{"gold": …, "systems": [{"name": "b.conllu", "scores": {…}, "groups": [], "paired":'
    ' {"las": {"delta": 1.2, "p": 0.001, …, "p_corrected": 0.002}}}], "punct": true}`.',
    memory="The longest run of sentences until both streams end one at the same character: one"
    f" pair where the sentences agree. A sentence has at most {conllu.SENTENCE_LIMIT // 2**20}"
    " MiB. For several systems also some numbers for each sentence.",
    examples=(
        "synmt parse -m en.udpipe --from conllu test.en.conllu | synmt evaltree test.en.conllu",
        "synmt parse -m en.udpipe test.en | synmt evaltree test.en.conllu - --by length:5,8",
        "synmt perturb --label-noise 0.2 dev.en.conllu | synmt evaltree dev.en.conllu --by deprel",
        "synmt perturb --head-noise 0.1 dev.en.conllu | synmt evaltree dev.en.conllu --by distance",
        "synmt perturb --head-noise 0.1 dev.en.conllu | synmt evaltree dev.en.conllu --get las",
        "synmt parse -m en.udpipe test.en | synmt evaltree --no-punct test.en.conllu",
        "synmt perturb --head-noise 0.1 dev.en.conllu > a.conllu"
        " && synmt perturb --head-noise 0.3 dev.en.conllu"
        " | synmt evaltree dev.en.conllu a.conllu - -M las,mlas --paired ar",
        "synmt parse -m en.udpipe --from conllu test.en.conllu"
        " | synmt evaltree test.en.conllu --format latex > trees.tex",
    ),
    see_also=("parse", "parser train", "perturb"),
)


def evaltree(
    context: typer.Context,
    gold: Annotated[str, argument("GOLD", "The gold trees, CoNLL-U.")],
    systems: Annotated[
        list[str] | None,
        argument("SYSTEM", "The trees to judge, the baseline first; none or - is stdin."),
    ] = None,
    subtypes: Annotated[
        bool, option("--subtypes", "Compare labels with subtypes: nsubj:pass is not nsubj.")
    ] = False,
    no_punct: Annotated[
        bool, option("--no-punct", "Leave out words that are punctuation in GOLD (UPOS PUNCT).")
    ] = False,
    by: Annotated[
        str | None,
        option(
            "--by SPEC",
            "Also compare by deprel, upos, distance[:EDGES] or length[:EDGES].",
            autocompletion=completion.grouping,
        ),
    ] = None,
    get: Annotated[
        Literal[
            "tokens",
            "sentences",
            "words",
            "upos",
            "xpos",
            "ufeats",
            "alltags",
            "lemmas",
            "uas",
            "las",
            "la",
            "clas",
            "mlas",
            "blex",
        ]
        | None,
        option("--get", "Print only this F1, one line for each SYSTEM."),
    ] = None,
    paired: Annotated[
        Literal["bs", "ar", "sign", "none"] | None,
        option("--paired", "Test each SYSTEM against the first.", shown_default="bs"),
    ] = None,
    metrics: Annotated[
        str | None,
        option(
            "-M, --metrics LIST",
            "Metrics to test.",
            shown_default=METRICS,
            autocompletion=completion.tree_metrics,
        ),
    ] = None,
    samples: Annotated[
        int | None,
        option(
            "--samples N", "Number of samples; the default is 1000 for bs, 10000 for ar.", min=1
        ),
    ] = None,
    seed: options.Seed = options.SEED,
    form: options.ReportFormat = "table",
    output: options.Output = "-",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Compare trees with gold trees: UAS, LAS, MLAS, BLEX and related metrics, with tests.

    The metrics are those of the CoNLL 2018 shared task, in percent, by the rules of its script
    conll18_ud_eval.py, and LA, the words with the right label. As there, labels are compared
    without their subtypes, unless --subtypes is given, UFeats are the universal features alone, and
    punctuation counts, unless --no-punct is given. Where tokens differ right before a multiword
    token, the script may align a word or two differently from what its own rules say.

    --no-punct leaves out the words that GOLD tags PUNCT, whatever SYSTEM says, from all figures but
    those of tokens and sentences; a word that only SYSTEM has goes by its own tag. The words below
    a punctuation mark still count. Figures without punctuation in papers may follow other rules:
    eval.pl of CoNLL-X goes by the characters of the form, so that % is punctuation too, which UD
    tags SYM; evaluations on the Penn Treebank go by its tags.

    SYSTEM may split the text of GOLD into other sentences, tokens and words; white space is
    ignored. Words that are tokens are aligned where they span the same characters; words under a
    multiword token by a longest common subsequence of the forms, ignoring case. Precision is over
    SYSTEM's words, recall over GOLD's, F1 combines both; `aligned` is accuracy among aligned words.
    If the words are the same, these figures are equal, and F1 is the plain score. Where the texts
    differ, the first such sentence is named and nothing is scored (65).

    A block with synmt_status failed has the text of its comment and no words, so all words of
    that sentence count as missed; blocks that stand for empty lines are ignored.

    --by SPEC also gives figures for groups of words:

    \b
    length[:EDGES]    all figures by the length of gold sentences, in words; 20,30,40,50 makes
                      0-19, 20-29, 30-39, 40-49, 50+
    deprel            LAS and LA for each label: precision over SYSTEM's words with it, recall
                      over GOLD's; for UAS recall alone
    distance[:EDGES]  UAS and LAS by the distance from a word to its head, in words, likewise:
                      root, 1, 2, 3-6, 7+ as in CoNLL-X, which is 2,3,7; for LA recall alone. A
                      distance in SYSTEM is counted in GOLD's words where both ends have one
    upos              UAS, LAS, LA and UPOS by GOLD's tag

    Several SYSTEMs are shown side by side by F1, and each is tested against the first, with the
    tests, definitions of p and samples of synmt score: --paired bs (the bootstrap), ar (approximate
    randomization) or sign (the sign test). The tests sample sentences or, where the systems split
    them differently, the shortest stretches that end a sentence in GOLD and in every SYSTEM. p
    (Holm) is corrected for the number of metrics and systems that are tested together; the stars
    follow it. F1 of other metrics is shown without a test; -M names what is tested.
    """
    from synmt_cli.formats.reports.table import FORMATS

    systems = systems or ["-"]
    options.refuse_clashes([gold, *systems], output)
    of_tests = options.given(context) & {"metrics", "samples", "seed"}
    unfit = {
        "--get prints one figure: it cannot be split --by": get and by,
        "--get prints one figure: --format does not apply": get and form != "table",
        "--get prints one figure: it takes no --paired, -M, --samples or --seed": (
            get and (paired not in (None, "none") or of_tests)
        ),
        "--paired, -M, --samples and --seed are for two systems or more": (
            len(systems) < 2 and (paired not in (None, "none") or of_tests)
        ),
        "-M, --samples and --seed are of tests: they exclude --paired none": (
            paired == "none" and of_tests
        ),
        "a SYSTEM is named twice": options.is_named_twice(systems),
    }
    options.refuse(unfit)
    tested = _metrics(METRICS if metrics is None else metrics)
    groups = grouping(by) if by is not None else None
    test = _test(paired, samples, seed) if len(systems) > 1 and not get else None
    with writing.output(output) as writer, ExitStack() as inputs:
        golds, *sources = (inputs.enter_context(reading.open_source(x)) for x in (gold, *systems))
        settings = Settings(subtypes, not no_punct, groups, test, tested)
        report: TreeReport | ParserReport
        files = [gold, *systems]
        with console.progress("compared", None, "sentences", files, output) as bar:
            if sources[1:]:
                report = _several(golds, sources, settings, bar)
            else:
                report = _one(golds, sources[0], settings, bar)
        if get is None:
            writer.write(FORMATS[form](report))
        else:
            for one in report.scored():
                score = one.scores[get].figure("f1")
                writer.write(b"n/a\n" if score is None else f"{score:.2f}\n".encode())


@dataclass(frozen=True)
class Settings:
    """What is compared. by: None without groups. test: None without tests.

    tested: the metrics to test. punct: whether punctuation counts.
    """

    subtypes: bool
    punct: bool
    by: Grouping | None
    test: SignificanceTest | None
    tested: list[str]

    @property
    def kind(self) -> str | None:
        """The word before the colon of --by."""
        return None if self.by is None else self.by.kind


def _one(
    gold: reading.Source, system: reading.Source, settings: Settings, bar: console.Progress
) -> TreeReport:
    from synmt_cli.core.evaluation.trees.attachment import Attachment
    from synmt_cli.core.evaluation.trees.word_alignment import aligned_spans
    from synmt_cli.formats.reports.tree_scores import TreeReport

    attachment = Attachment(settings.subtypes, settings.by, settings.punct)
    names = gold.name, system.name
    spans = aligned_spans(conllu.read(gold), conllu.read(system), names)
    for span in bar.finished(bar.taken(spans)):
        attachment.add(span)
        bar.advance(len(span.gold))
    scores = attachment.scores()
    _refuse_no_words(gold, scores["words"].gold)
    groups = attachment.groups()
    return TreeReport(*names, settings.subtypes, scores, settings.kind, groups, settings.punct)


def _several(
    gold: reading.Source,
    systems: Sequence[reading.Source],
    settings: Settings,
    bar: console.Progress,
) -> ParserReport:
    from synmt_cli.core.evaluation.statistics.significance import doubt
    from synmt_cli.core.evaluation.trees.attachment import Attachment
    from synmt_cli.core.evaluation.trees.tree_comparison import ParserComparison, units
    from synmt_cli.formats.reports.tree_comparison import ParserReport

    build = partial(Attachment, settings.subtypes, settings.by, settings.punct)
    comparison = ParserComparison(len(systems), settings.tested, build)
    names = [gold.name, *(system.name for system in systems)]
    read = units(conllu.read(gold), [*map(conllu.read, systems)], names)
    for unit in bar.finished(bar.taken(read)):
        comparison.add(unit)
        bar.advance(sum(len(span.gold) for span in unit[0]))
    _refuse_no_words(gold, comparison.attachments[0].scores()["words"].gold)
    test = settings.test
    parsers = comparison.compared(names[1:], test)
    facts = (test.formula, test.interval_n) if test else ("", 0)
    n = comparison.n_units
    if test and (problem := doubt(test, n, "sentences")):
        console.warn(problem)
    kind, punct = settings.kind, settings.punct
    return ParserReport(gold.name, settings.subtypes, n, parsers, kind, *facts, punct)


def _refuse_no_words(gold: reading.Source, n: int) -> None:
    if not n:
        raise DataError(gold.name, None, "no words to compare")


def _metrics(text: str) -> list[str]:
    names = options.names(text)
    for name in names:
        if name not in TESTED:
            raise UsageError(f"-M: {quoted(name)} is not one of {', '.join(TESTED)}")
    return names


def _test(paired: str | None, samples: int | None, seed: int) -> SignificanceTest | None:
    from synmt_cli.core.evaluation.statistics.significance import (
        FORMULAS,
        SAMPLES,
        SignificanceTest,
    )

    name = paired or "bs"
    if name == "none":
        return None
    return SignificanceTest(name, next(iter(FORMULAS[name])), samples or SAMPLES[name], seed)
