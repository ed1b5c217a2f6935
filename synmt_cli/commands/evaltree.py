"""`synmt evaltree`: how well trees are parsed."""

from typing import Annotated, Literal

from synmt_cli import console
from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import argument, option
from synmt_cli.core.segments.buckets import Buckets, parse_edges
from synmt_cli.errors import DataError, UsageError, quoted
from synmt_cli.formats import conllu
from synmt_cli.io import reading, writing

MANUAL = Manual(
    input="CoNLL-U twice, of the same text: `2\tdog\tdog\tNOUN\t_\t_\t3\tnsubj\t_\t_`",
    output="A table, or with `--format tsv` one line for each group and metric, or with"
    ' `--format json` one object: `{"gold": "gold.conllu", "system": "<stdin>", "subtypes":'
    ' false, "scores": {"las": {"precision": 77.1, "recall": 77.1, "f1": 77.1, …}, …}, "by":'
    ' null, "groups": []}`.',
    memory="The longest run of sentences until both streams end one at the same character: one"
    f" pair where the sentences agree. A sentence has at most {conllu.SENTENCE_LIMIT // 2**20}"
    " MiB.",
    examples=(
        "synmt parse -m en.udpipe --from conllu test.en.conllu | synmt evaltree test.en.conllu",
        "synmt parse -m en.udpipe test.en | synmt evaltree test.en.conllu - --by length:5,8",
        "synmt perturb --label-noise 0.2 dev.en.conllu | synmt evaltree dev.en.conllu --by deprel",
        "synmt perturb --head-noise 0.1 dev.en.conllu | synmt evaltree dev.en.conllu --get las",
        "synmt parse -m en.udpipe --from conllu test.en.conllu"
        " | synmt evaltree test.en.conllu --format latex > trees.tex",
    ),
    see_also=("parse", "parser train", "perturb"),
)


def evaltree(
    gold: Annotated[str, argument("GOLD", "The gold trees, CoNLL-U.")],
    system: Annotated[str, argument("SYSTEM", "The trees to judge; none or - is stdin.")] = "-",
    subtypes: Annotated[
        bool, option("--subtypes", "Compare labels with subtypes: nsubj:pass is not nsubj.")
    ] = False,
    by: Annotated[
        str | None,
        option(
            "--by deprel|length[:EDGES]",
            "Also compare by label, or by the length of gold sentences, in words.",
        ),
    ] = None,
    get: Annotated[
        Literal["tokens", "sentences", "words", "upos", "uas", "las", "la", "clas"] | None,
        option("--get", "Print only this F1."),
    ] = None,
    form: options.ReportFormat = "table",
    output: options.Output = "-",
    quiet: options.Quiet = False,
) -> None:
    """Compare trees with gold trees: UAS, LAS, label accuracy and related metrics.

    The metrics are those of the CoNLL 2018 shared task, in percent, by the rules of its script
    conll18_ud_eval.py, and LA, the words with the right label. As there, labels are compared
    without their subtypes, unless --subtypes is given. Punctuation counts.

    SYSTEM may split the text of GOLD into other sentences, tokens and words, apart from white
    space. Words that are tokens are aligned where they span the same characters; words under a
    multiword token by a longest common subsequence of the forms, ignoring case. Precision is
    over SYSTEM's words, recall over GOLD's, F1 combines both; `aligned` is accuracy among aligned
    words. If the words are the same, these figures are equal, and F1 is the plain score. Where
    the texts differ, the first such sentence is named and nothing is scored (65).

    A block with synmt_status failed has the text of its comment and no words, so all words of
    that sentence count as missed; blocks that stand for empty lines are ignored.

    --by length:20,30,40,50 gives the same figures for gold sentences of 0-19, 20-29, 30-39, 40-49
    and 50+ words. --by deprel gives LAS and LA for each label, precision over SYSTEM's words with
    it and recall over GOLD's, and for UAS recall only.
    """
    from synmt_cli.core.evaluation.attachment import Attachment
    from synmt_cli.core.evaluation.word_alignment import aligned_spans
    from synmt_cli.formats.reports.table import FORMATS
    from synmt_cli.formats.reports.tree_scores import TreeReport

    options.refuse_two_stdins([gold, system])
    if get is not None and by is not None:
        raise UsageError("--get prints one figure: it cannot be split --by")
    groups = _by(by)
    attachment = Attachment(subtypes, groups)
    with (
        writing.output(output) as writer,
        reading.open_source(gold) as golds,
        reading.open_source(system) as systems,
        console.progress("compared", unit="sentences") as bar,
    ):
        names = golds.name, systems.name
        for span in aligned_spans(conllu.read(golds), conllu.read(systems), names):
            attachment.add(span)
            bar.advance(len(span.gold))
        scores = attachment.scores()
        if not scores["words"].gold:
            raise DataError(golds.name, None, "no words to compare")
        if get is not None:
            writer.write(f"{scores[get].figure('f1') or 0.0:.2f}\n".encode())
            return
        kind = None if by is None else by.partition(":")[0]
        report = TreeReport(*names, subtypes, scores, kind, attachment.groups())
        writer.write(FORMATS[form](report))


def _by(option: str | None) -> Buckets | Literal["deprel"] | None:
    if option is None:
        return None
    kind, colon, edges = option.partition(":")
    if kind == "length":
        return parse_edges(edges) if colon else Buckets()
    if option != "deprel":
        raise UsageError(f"--by takes deprel, length or length:20,30,40,50, not {quoted(option)}")
    return "deprel"
