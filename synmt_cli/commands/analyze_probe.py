"""`synmt analyze probe`: what encoder states know about a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from synmt_cli import console
from synmt_cli.commands import Manual, completion, options
from synmt_cli.commands.options import option
from synmt_cli.core.analysis import datasets
from synmt_cli.core.analysis.tasks import TASKS
from synmt_cli.core.segments import splitting
from synmt_cli.errors import UsageError, quoted
from synmt_cli.formats import senteval
from synmt_cli.io import writing

if TYPE_CHECKING:
    from synmt_cli.core.analysis.opened_run import OpenedRun
    from synmt_cli.core.analysis.probe import Probe
    from synmt_cli.formats.conllu import Sentence
    from synmt_cli.formats.reports.analysis.probes import ProbedRun
    from synmt_cli.formats.reports.analysis.structural_probes import StructuralReport

MANUAL = Manual(
    input="SentEval's probing files, one for each task, `tr<TAB>PAST<TAB>He slept .` a line; or "
    "CoNLL-U with features, and Penn brackets, a tree a line, from which tasks are made; or all.",
    output="A table; with `--format tsv` a line for each task and run, which begins `syntactic<TAB>"
    "tree-depth<TAB>5<TAB>5900<TAB>735<TAB>735<TAB>20.0<TAB>runs/gps<TAB>46.12<TAB>47.3<TAB>88`, or"
    " with `--structural` for each run and layer; with "
    "`--format json` one object with settings and all figures. Accuracies are percent.",
    memory="The input, and one vector for each sentence of a task; with --structural one for each"
    " word, and the distances of its sentences' words.",
    examples=(
        "synmt analyze probe -m runs/base -m runs/pascal train.en.conllu",
        "synmt analyze probe -m runs/pascal --task tense,tree-depth --format json train.en.conllu",
        "synmt analyze probe -m runs/pascal --layers all --seeds 3 --control --task tense"
        " --hidden 0 train.en.conllu",
        "synmt analyze probe -m runs/base --structural 8 dev.en.conllu",
        "synmt analyze probe --out-template 'probe.{task}.txt' train.en.conllu",
    ),
    see_also=("analyze heads", "analyze awsl", "train"),
)
HIDDEN = 200
OF_RUNS = {  # parameters and options that mean nothing without a run
    "parser": "--parser",
    "hidden": "--hidden",
    "dropout": "--dropout",
    "layers": "--layers",
    "control": "--control",
    "n_seeds": "--seeds",
    "max_pieces": "--max-pieces",
    "form": "--format",
    "checkpoint": "--checkpoint",
    "output": "-o",
}


def analyze_probe(
    context: typer.Context,
    model: Annotated[
        list[str] | None,
        option("-m, --model RUN", "Run directory; repeatable, compared side by side."),
    ] = None,
    files: options.Files = None,
    task: Annotated[
        str,
        option(
            "--task LIST",
            "Tasks to make from trees; the default is all.",
            autocompletion=completion.tasks,
        ),
    ] = "",
    kind: Annotated[
        Literal["auto", "senteval", "conllu", "penn"],
        option("--from", "What the input is; auto looks at the first line."),
    ] = "auto",
    template: Annotated[
        str, option("--out-template TEMPLATE", "Write each task to a file; {task} in the name.")
    ] = "",
    parser: options.RunParser = "",
    hidden: Annotated[
        int, option("--hidden N", "Hidden units; 0 is a linear classifier.", min=0, max=100_000)
    ] = HIDDEN,
    dropout: Annotated[
        float, option("--dropout P", "Dropout in the classifier.", min=0, max=1)
    ] = 0.0,
    layers: Annotated[
        str,
        option(
            "--layers LIST",
            "Layers to probe, from 0, the bottom one, or all; the default is the encoder's output.",
        ),
    ] = "",
    control: Annotated[
        bool, option("--control", "Also probe a control task, for selectivity.")
    ] = False,
    structural: Annotated[
        int | None,
        option(
            "--structural RANK",
            "Learn structural probes of this rank instead of tasks; 0 is full rank.",
            min=0,
        ),
    ] = None,
    n_seeds: Annotated[
        int, option("--seeds N", "Classifiers or probes of each, from --seed on.", min=1, max=1000)
    ] = 1,
    max_pieces: options.LongestMeasured = 1000,
    form: options.ReportFormat = "table",
    checkpoint: options.Checkpoint = "best",
    seed: options.Seed = options.SEED,
    device: options.Device = "auto",
    threads: options.Threads = 0,
    output: options.Output = "-",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Run probing tasks on the frozen encoder. Conneau et al. 2018, as Wang et al. 2019 use them.

    Wang et al. do not say how they pool and classify; this is SentEval's way, and our reading. A
    sentence is the mean of the encoder's states, including the end of sentence and excluding
    padding. A classifier with one hidden layer of sigmoids learns each task from these vectors, as
    in SentEval: Adam, batches of 64, accuracy on dev after every 4 epochs. Training ends after six
    such checks in all without improvement, or after 200 epochs, and the model that was best on dev
    is tested. SentEval also tunes a weight decay, and takes a linear classifier for word_content
    (--hidden 0). Here no task has a weight decay, and all have the same classifier. The table shows
    the accuracy of always guessing the most frequent class, too.

    Several runs are compared on the same sentences: where --max-pieces would leave them different
    ones, since their vocabularies differ, this is an error.

    --layers 0,5 probes the states after these layers, as they come from them; the encoder's output
    is that of the last layer, after the last normalisation where the run has one. --seeds N trains
    N classifiers on the same data and gives mean ± standard deviation: the variance of training,
    not of the sentences, whose standard error stands below the table. --control also trains each on
    a control task (Hewitt and Liang 2019): labels drawn for each type of word, here the first word
    of the sentence, which can only be memorised. Selectivity is the accuracy minus that on the
    control task; if it is small, the probe learns the task rather than reads it from the states.

    SentEval's files, sentence_length.txt to coordination_inversion.txt, are tasks named by their
    files. Their sentences are parsed where the run needs trees, by its parser or --parser. From
    CoNLL-U, and top-constituents from Penn brackets, these tasks are made, and --task selects some
    of them:

    \b
      surface     sentence-length  words: 5-8, 9-12, 13-16, 17-20, 21-25, 26-28
                  word-content     which of the most frequent content words occurs
      syntactic   tree-depth       arcs from the root to the deepest word
                  top-constituents  what the sentence consists of: 19 sequences such as NP_VP_.,
                                   and OTHER; without other punctuation than that full stop
                  bigram-shift     whether two neighbouring words were swapped
      semantic    tense            Past or Pres of the main clause's finite verb, indicative
                  subject-number   Sing or Plur of the root's subject, a common noun
                  object-number    the same of its object
                  odd-man-out      whether a noun or verb was replaced by an equally likely one
                  coordination-inversion  whether two coordinate main clauses were exchanged

    A sentence is taken once; one that was changed into another of them is left out. The classes are
    balanced: the most frequent ones that together keep most sentences, each cut to the same number,
    by --seed. A tenth is for dev, a tenth for test; sentences with the same word in question are in
    the same part. Trees are those of the CoNLL-U, gold if it is gold; but all sentences of
    bigram-shift, odd-man-out and coordination-inversion are parsed again, changed or not, because
    no tree fits a changed one, and so are those of Penn brackets, whose words have spaces between
    them, as in SentEval's files. A task that the trees do not support is left out with a warning,
    or is an error if --task names it. --out-template writes the tasks as SentEval's files, for this
    command or other programs, with or without a run.

    --structural RANK asks for the tree itself (Hewitt and Manning 2019): a linear map to RANK
    numbers is learned on the states of words, the mean of their pieces', so that squared distances
    are path lengths in the tree, and another so that squared norms are depths. UUAS is the share of
    the tree's edges that a minimum spanning tree finds, root the share of sentences in which the
    predicted shallowest word is the root, both without punctuation (UPOS); Spearman's correlations
    are averaged over sentences of one length, then over lengths of 5 to 50 words. Input is CoNLL-U:
    eight tenths of its sentences for training, one each for dev and test, by --seed. The first row
    is a baseline that takes distances and depths from the positions of words. A run whose encoder
    reads trees gets these trees, so that its states contain them already.
    """
    options.refuse_clashes([*(files or ()), parser], output)
    of_tasks: dict[str, object] = {"--task": task, "--out-template": template}
    of_classifiers: dict[str, object] = {
        "--parser": parser,
        "--hidden": hidden != HIDDEN,
        "--dropout": dropout,
        "--control": control,
    }
    _refuse("tasks, not for --structural", structural is not None, of_tasks | of_classifiers)
    _refuse("a run: name one by -m", not model, options.given_of(context, OF_RUNS))
    options.refuse(
        {
            "name a run by -m RUN, or files for the tasks by --out-template TEMPLATE": not (
                model or template
            ),
            "--dropout needs hidden units, and --hidden 0 has none": dropout and not hidden,
        }
    )
    with (
        writing.output(output) as writer,
        console.progress("encoded", unit="sentences", output=output) as bar,
    ):
        from synmt_cli.core.analysis.classifier import ClassifierSettings
        from synmt_cli.core.analysis.opened_run import open_run
        from synmt_cli.core.analysis.probe import Probe, info
        from synmt_cli.core.run import device as devices
        from synmt_cli.formats.reports import table
        from synmt_cli.formats.reports.analysis import probes

        devices.set_threads(threads)
        chosen = devices.choose(device)
        if structural is not None:
            trees = datasets.trees(files or ["-"], kind)
            opened = (open_run(folder, checkpoint, chosen) for folder in model or ())
            seeds = seed, n_seeds
            found = _structural(opened, trees, structural, seeds, layers, max_pieces, bar.advance)
            writer.write(table.FORMATS[form](found))
            return
        gathered = datasets.gather(files or ["-"], kind, names(task, list(TASKS)), seed)
        for name, reason in gathered.unmade.items():
            console.warn(f"{name} is left out: {reason}")
        if not gathered.datasets:
            raise UsageError("there is no task in the input")
        save(gathered.datasets, template, files or ())
        settings = ClassifierSettings(hidden, dropout, seed)
        bar.total = len(model or ()) * sum(len(one.examples) for one in gathered.datasets)

        def each() -> Iterator[tuple[str, Sequence[int | None], Probe]]:
            for folder in model or ():
                run = open_run(folder, checkpoint, chosen, parser)
                of_run = _layers(layers, len(run.model.encoder.layers))
                how = settings, bar.advance, of_run, n_seeds, control
                yield folder, of_run, Probe(run, max_pieces, *how)

        probed, runs = _probed(each(), gathered.datasets)
        if runs:
            tasks = [info(dataset) for dataset in probed]
            report = probes.ProbeReport(tasks, runs, hidden, dropout, seed, n_seeds)
            writer.write(table.FORMATS[form](report))


def _probed(
    runs: Iterable[tuple[str, Sequence[int | None], Probe]], made: Sequence[datasets.Dataset]
) -> tuple[list[datasets.Dataset], list[ProbedRun]]:
    """The examples of each task that were probed, and the results of each layer of each run.

    runs: the folder of each run, its layers, and the Probe of them.
    """
    from synmt_cli.formats.reports.analysis.probes import ProbedRun

    probed: list[datasets.Dataset] = []
    found: list[ProbedRun] = []
    for folder, layers, probe in runs:
        here, by_task = zip(*map(probe.probe, made), strict=True)
        _warn(probe.run, probe.remarks)
        probed = probed or [*here]
        _refuse_other_sentences(found[0].run if found else folder, folder, probed, [*here])
        of_layers = zip(layers, zip(*by_task, strict=True), strict=True)
        found += [ProbedRun(folder, [*results], layer) for layer, results in of_layers]
    return probed, found


def _refuse_other_sentences(first: str, run: str, of_first: object, of_run: object) -> None:
    """Raises UsageError if a run has other sentences than the first: figures would not compare."""
    if of_first != of_run:
        raise UsageError(
            f"--max-pieces leaves {run} other sentences than {first}, since their "
            "vocabularies differ: raise it, or probe them one by one"
        )


def _warn(run: OpenedRun, remarks: Mapping[str, int]) -> None:
    from synmt_cli.core.analysis.opened_run import warnings

    for remark, n in remarks.items():
        console.warn(f"{run.name}: {n:,} sentences {remark}")
    for line in warnings([run]):
        console.warn(line)


def _refuse(what: str, holds: bool, given: Mapping[str, object]) -> None:
    """Raises UsageError for the first option that is given and is for something else."""
    options.refuse({f"{name} is for {what}": holds and one for name, one in given.items()})


def _structural(
    runs: Iterable[OpenedRun],
    trees: Sequence[Sentence],
    rank: int,
    seeds: tuple[int, int],
    layers: str,
    max_pieces: int,
    on_sentences: Callable[[int], None],
) -> StructuralReport:
    """Probes each layer of each run. seeds: the first, and how many."""
    from synmt_cli.core.analysis.structural_probe import StructuralProbe, parted
    from synmt_cli.formats.reports.analysis.structural_probes import ProbedLayer, StructuralReport

    parts = parted(trees, seeds[0])
    reports: list[StructuralReport] = []
    first: tuple[str, list[str]] | None = None  # a run, and its sentences
    for run in runs:
        probe = StructuralProbe(run, max_pieces, rank, *seeds, on_sentences)
        records = probe.prepared(parts)
        here = [one.src for split in senteval.SPLITS for one in records[split]]
        first = first or (run.name, here)
        _refuse_other_sentences(first[0], run.name, first[1], here)
        of_run = _layers(layers, len(run.model.encoder.layers))
        probed = [
            ProbedLayer(run.name, layer, probe.rank, probe.probe(records, layer))
            for layer in of_run
        ]
        _warn(run, probe.remarks)
        train, dev, test = (len(records[split]) for split in senteval.SPLITS)
        sizes, baseline = (train, dev, test), probe.baseline(records[senteval.TEST])
        reports.append(StructuralReport(sizes, baseline, probed, *seeds))
    return replace(reports[0], layers=[one for report in reports for one in report.layers])


def _layers(text: str, n: int) -> list[int | None]:
    """The layers in a list such as `0,5`; [None] if it is empty, all n layers for `all`."""
    if text == "all":
        return [*range(n)]
    chosen: list[int | None] = [*dict.fromkeys(options.numbers("--layers", text))]
    if outside := [one for one in chosen if one is not None and one >= n]:
        raise UsageError(f"--layers: there is no layer {outside[0]}; the last is {n - 1}")
    return chosen or [None]


def names(text: str, known: Sequence[str]) -> list[str]:
    """The tasks in a list such as `tense,tree-depth`; none in an empty text. Raises UsageError."""
    tasks = options.names(text) if text else []
    for name in tasks:
        if name not in known:
            raise UsageError(f"--task: {quoted(name)} is none of {', '.join(known)}")
    return tasks


def save(made: Sequence[datasets.Dataset], template: str, inputs: Sequence[str]) -> None:
    """Writes each task to its file, if there is a template. Raises UsageError.

    inputs: files that must not be replaced.
    """
    if not template:
        return
    outputs = splitting.filled(template, "task", [one.task for one in made], [])
    splitting.refuse_inputs(outputs, inputs)
    with splitting.written_together(outputs) as writers:
        for dataset, (writer,) in zip(made, writers, strict=True):
            for example in dataset.examples:
                writer.write(senteval.to_bytes(example))
