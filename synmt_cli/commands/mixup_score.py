"""`synmt mixup score`: whether translations keep subject and object."""

from typing import Annotated

from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import argument
from synmt_cli.core.challenge.mixup import items
from synmt_cli.core.challenge.roles import judged
from synmt_cli.core.evaluation import parallel_lines
from synmt_cli.errors import DataError, counted
from synmt_cli.formats.reports.mixup_scores import JudgedSystem, MixupReport
from synmt_cli.formats.reports.table import FORMATS
from synmt_cli.io import reading, writing

MANUAL = Manual(
    input="The English translations of the 198 lines of `synmt mixup make`, in their order, one"
    " a line: `The child brings the ball`.",
    output="A table, or with `--format tsv` a line for each system, construction and order, or"
    ' with `--format json` one object with every sentence and its outcome: `{"id":'
    ' "object-01-ovs", …, "outcome": "right_passive", "reason": ""}`.',
    memory="The translations.",
    examples=(
        "synmt mixup make | synmt translate -m runs/base > mixup.en; synmt mixup score mixup.en",
        "synmt mixup make | sed 's/.*/The child throws the ball/' | synmt mixup score --format tsv",
    ),
    see_also=("mixup make", "translate", "score"),
)


def mixup_score(
    systems: Annotated[
        list[str] | None, argument("SYS", "Translations, a file for each system; none is stdin.")
    ] = None,
    form: options.ReportFormat = "table",
    output: options.Output = "-",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Count translations that keep who does what to whom (Choshen and Abend, 2021).

    The two nouns are found by a list of English words, in which for instance Stein is stone,
    rock, pebble or brick. The choice of the verb is ignored. Then:

    \b
      active     The child brings the ball.           the first noun acts
                 The ball the child brings.           object first: the second acts
      passive    The ball is brought by the child.    the noun after `by` acts
      undecided  The child brings.                    a noun is missing, or occurs twice
                 The ball is brought the child.       a passive without `by`
                 The ball and the child.              no verb between them
                 By the ball the child is brought.    a preposition before the first noun
                 The father insists on the horse.     a preposition before the second noun

    A verb is one of some 80 in all their forms, or another word that ends in -s, -ed or -ing.
    These rules of thumb replace the paper's annotator: --format json gives the outcome of every
    sentence, with the reason if it is undecided, for checking by eye.

    `right` counts active and passive together, as Table 3 of the paper does for OVS.
    Percentages are of all sentences: an undecided one is not right.
    """
    paths = systems or ["-"]
    options.refuse_clashes(paths, output)
    sentences, scored = items(), []
    with writing.output(output) as writer:
        for path in paths:
            name = reading.source_name(path)
            translations = parallel_lines.read(path)
            if len(translations) != len(sentences):
                problem = f"{counted(len(translations), 'line')}, but `synmt mixup make` writes"
                raise DataError(name, None, f"{problem} {len(sentences)}")
            scored.append(JudgedSystem(name, [*map(judged, sentences, translations)]))
        writer.write(FORMATS[form](MixupReport(scored)))
