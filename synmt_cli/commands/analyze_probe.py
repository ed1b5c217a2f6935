"""`synmt analyze probe`: what encoder states know about a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from synmt_cli import console
from synmt_cli.commands.manual import (
    Checkpoint,
    Device,
    Files,
    Manual,
    Out,
    Quiet,
    RunParser,
    Seed,
    Threads,
    Verbose,
)
from synmt_cli.errors import UsageError, printable, quoted
from synmt_cli.io import writing

if TYPE_CHECKING:
    from synmt_cli.core.analysis.datasets import Dataset

MANUAL = Manual(
    input="SentEval's probing files, a task each, `tr<TAB>PAST<TAB>He slept .` a line; or CoNLL-U "
    "with features, of which tasks are made; or both.",
    output="A table; with `--format tsv` a line for each task and run, `syntactic<TAB>tree-depth"
    "<TAB>5<TAB>5900<TAB>735<TAB>735<TAB>20.0<TAB>runs/gps<TAB>46.12<TAB>47.3<TAB>88`; with "
    "`--format json` one object with settings, tasks and runs. Accuracies are percent.",
    memory="The input, and one vector for each sentence of a task.",
    examples=(
        "synmt analyze probe -m runs/base -m runs/pascal train.en.conllu",
        "synmt analyze probe -m runs/pascal --task tense,tree-depth --format json train.en.conllu",
        "synmt analyze probe --save-to 'probe.{task}.txt' train.en.conllu",
    ),
    see_also=("analyze awsl", "train"),
)


def analyze_probe(
    model: Annotated[
        list[str] | None,
        typer.Option("-m", "--model", metavar="RUN", help="Run directory; several: side by side."),
    ] = None,
    files: Files = None,
    task: Annotated[
        str,
        typer.Option("--task", metavar="LIST", help="What to make of trees; else all that can be."),
    ] = "",
    kind: Annotated[
        Literal["auto", "senteval", "conllu"],
        typer.Option("--from", help="What the input is; auto looks at the first line."),
    ] = "auto",
    save_to: Annotated[
        str,
        typer.Option("--save-to", metavar="TEMPLATE", help="Write the tasks, {task} in the name."),
    ] = "",
    parser: RunParser = "",
    hidden: Annotated[
        int,
        typer.Option("--hidden", metavar="N", min=0, max=100_000, help="Hidden units; 0: linear."),
    ] = 200,
    dropout: Annotated[
        float, typer.Option("--dropout", metavar="P", min=0, max=1, help="In the classifier.")
    ] = 0.0,
    max_source: Annotated[
        int,
        typer.Option("--max-source", metavar="N", min=1, help="Leave out longer ones, in pieces."),
    ] = 1000,
    form: Annotated[
        Literal["table", "tsv", "json"], typer.Option("--format", help="How to print it.")
    ] = "table",
    checkpoint: Checkpoint = "best",
    seed: Seed = 1,
    device: Device = "auto",
    threads: Threads = 0,
    output: Out = "-",
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Test what the frozen encoder knows about a sentence, by probing tasks.

    The tasks are those of Conneau et al. 2018, as Wang et al. 2019 use them. Wang et al. do not
    say how they pool and classify; we do both as SentEval does. A sentence is the mean of the
    encoder's states, with that of the end of sentence and without padding. A classifier with
    one hidden layer of sigmoids learns each task from these vectors, as in SentEval: Adam,
    batches of 64, accuracy on dev after every 4 epochs. The model that is best on dev is tested,
    after six such checks without a better one or 200 epochs. SentEval also tunes a weight decay,
    and takes a linear classifier for word_content (--hidden 0); here there is no weight decay,
    and all tasks are treated alike. Compare with the majority baseline.

    SentEval's files, sentence_length.txt to coordination_inversion.txt, are tasks named by
    their files. Their sentences are parsed if the run needs trees, by its parser or --parser.
    These tasks are made from CoNLL-U; --task names some of them:

    \b
      surface     sentence-length  words: 5-8, 9-12, 13-16, 17-20, 21-25, 26-28
                  word-content     which of the most frequent content words is there
      syntactic   tree-depth       arcs from the root to the deepest word
                  bigram-shift     whether two neighbouring words were exchanged
      semantic    tense            Past or Pres of the main clause's finite verb
                  subject-number   Sing or Plur of the root's subject, a common noun
                  object-number    the same of its object

    Each sentence is taken once. The classes are balanced: the most frequent ones that together
    keep most sentences, each cut to the same number, by --seed. A tenth is for dev, a tenth
    for test; sentences with the same word in question are in the same split. Trees come from
    the CoNLL-U, and are gold if it is gold; but all sentences of bigram-shift are parsed again,
    changed or not, since no tree fits a changed one. A task that the trees do not give is left
    out with a warning, or is an error if --task names it. --save-to writes the tasks as
    SentEval's files, for this command or other programs, with or without a run.
    """
    if not model and not save_to:
        raise UsageError("name a run by -m RUN, or where to write the tasks by --save-to TEMPLATE")
    with writing.output(output) as writer, console.progress("encoded", unit="sentences") as bar:
        from synmt_cli.core.analysis import datasets
        from synmt_cli.core.analysis.classifier import ClassifierSettings
        from synmt_cli.core.analysis.opened_run import open_run
        from synmt_cli.core.analysis.probe import Probe, info
        from synmt_cli.core.analysis.tasks import MADE
        from synmt_cli.core.run import device as devices
        from synmt_cli.formats.reports import probes, table

        devices.set_threads(threads)
        chosen = devices.choose(device)
        gathered = datasets.gather(files or ["-"], kind, names(task, list(MADE)), seed)
        for name, reason in gathered.unmade.items():
            console.warn(f"{name} is left out: {reason}")
        if not gathered.datasets:
            raise UsageError("there is no task in the input")
        save(gathered.datasets, save_to)
        settings = ClassifierSettings(hidden, dropout, seed)
        runs = []
        for folder in model or ():
            run = open_run(folder, checkpoint, chosen, parser)
            probe = Probe(run, max_source, settings, bar.advance)
            runs.append(probes.ProbedRun(folder, [probe.probe(d) for d in gathered.datasets]))
            for remark, n in probe.remarks.items():
                console.warn(f"{printable(folder)}: {n:,} sentences {remark}")
        if runs:
            tasks = [info(dataset) for dataset in gathered.datasets]
            report = probes.ProbeReport(tasks, runs, hidden, dropout, seed)
            writer.write(table.FORMATS[form](report))


def names(text: str, known: Sequence[str]) -> list[str]:
    """The tasks in a list such as `tense,tree-depth`; none in an empty text. Raises UsageError."""
    tasks = text.split(",") if text else []
    for name in tasks:
        if name not in known:
            raise UsageError(f"--task: {quoted(name)} is none of {', '.join(known)}")
    return tasks


def save(datasets: Sequence[Dataset], template: str) -> None:
    """Writes each task to its file, if there is a template. Raises UsageError."""
    from synmt_cli.formats import senteval

    if template and "{task}" not in template and len(datasets) > 1:
        raise UsageError(f"--save-to needs {{task}} in the name for {len(datasets)} tasks")
    for dataset in datasets if template else ():
        with writing.atomic(template.replace("{task}", dataset.task)) as writer:
            for example in dataset.examples:
                writer.write(senteval.to_bytes(example))
