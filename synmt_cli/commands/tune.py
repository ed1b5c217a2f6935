"""synmt tune: the length penalty that is best on development data."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Literal

from synmt_cli import console
from synmt_cli.commands import Manual, completion, options
from synmt_cli.commands.options import option
from synmt_cli.core.text import scripts, tokenizers
from synmt_cli.errors import DataError, UsageError, quoted
from synmt_cli.formats.reports.bounds import MOST_BEAM, MOST_LENPEN
from synmt_cli.formats.reports.table import FORMATS
from synmt_cli.io import memory, reading, writing

if TYPE_CHECKING:
    from synmt_cli.core.jobs.translation.input import Placed

MANUAL = Manual(
    input="JSONL records of `synmt featurize --tgt FILE` or `--tgt-conllu FILE`.",
    output="table: a line for each value, with BLEU, its brevity penalty, the length against the "
    "references, cut (translations that reached the length limit), closed (trees that had to be "
    "completed, where models write them); and the best value. tsv and csv: the same at full "
    "precision. json: one object. --get: one number, `1.2`.",
    memory="The models, the references and translations for all values, and one batch of search.",
    examples=(
        "synmt tune -m runs/base dev.jsonl --lenpen 0.2:1.6 --beam 5",
        "synmt tune -m runs/trees --lenpen 0.6:1.2:0.3 --beam 2 --format json de.trees.jsonl",
        "synmt tune -m runs/base --format json -o lenpen.json dev.jsonl"
        " && synmt translate -m runs/base --tuned lenpen.json test.jsonl > tuned.de",
        "synmt tune -m runs/base --tokenize char dev.jsonl",
    ),
    see_also=("translate", "score", "train"),
)
MOST = 1000  # values


def tune(
    model: Annotated[
        list[str], option("-m, --model RUN", "Run directory; repeatable, for an ensemble.")
    ],
    files: options.Files = None,
    lenpen: Annotated[
        str, option("--lenpen LOW:HIGH[:STEP]", "Values to try, both ends included; STEP is 0.1.")
    ] = "0.2:1.6",
    beam: Annotated[int, option("--beam K", "Beam size.", min=2, max=MOST_BEAM)] = 4,
    patience: options.Patience = None,
    tokenize: Annotated[
        str,
        option(
            "--tokenize NAME",
            "A tokenizer of sacreBLEU, for BLEU.",
            autocompletion=completion.tokenizer,
        ),
    ] = tokenizers.DEFAULT,
    get: Annotated[
        Literal["lenpen", "bleu"] | None,
        option("--get", "Print only the best value, or its BLEU."),
    ] = None,
    form: options.ReportFormat = "table",
    batch_size: options.BatchSize = 64,
    checkpoint: options.Checkpoint = "best",
    device: options.Device = "auto",
    threads: options.Threads = 0,
    jobs: options.Jobs = 1,
    output: options.Output = "-",
    strict: options.Strict = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Translate development data with several length penalties, and find the best by BLEU.

    Systems differ in how short beam search makes their translations, and models that write trees
    more than others. So tune each on dev with the search that it will translate with, and give the
    report of --format json to translate --tuned, which searches in the same way, and to synmt
    report --tuned. Several reports, such as those of a system's seeds, are averaged there: the best
    value for one seed may make the models of others repeat words. Greedy search ignores the
    penalty.

    The penalty A divides log P by length^A (see translate). Which prefixes the search extends does
    not depend on it, only which finished translation is the best and when there can be no better
    one. So one search goes on until it is over for all values, and gives each of them exactly the
    translations of synmt translate --lenpen A (on a GPU with --precision fp32). It takes about as
    long as translate with the largest value, which may be long: the larger the penalty, the longer
    a prefix can still become the best. --patience 1 ends the search as fairseq does, for all values
    at the same step; with decoders that write trees this takes a fraction of the time. Larger
    values are then best, since the search does not wait for long translations that repeat
    themselves: try --lenpen 0.2:3.0.

    BLEU is sacreBLEU's, cased, against tgt of the records; the first of equal values is the best.
    closed counts trees that had to be completed.

    --tokenize takes 13a, none, char, intl, zh, ja-mecab, ko-mecab, flores101, flores200 and
    spBLEU-1K, as synmt score does. 13a is for languages with spaces between words: take zh for
    Chinese, and char for Japanese, Thai and others without. Tune with the tokenizer that
    translations are scored with.
    """
    options.refuse({"--get prints one figure: --format does not apply": get and form != "table"})
    values, paths = grid(lenpen), files or ["-"]
    options.refuse_clashes(paths, output)
    tokenizers.check(tokenize)
    memory.bound_caches(memory.KERNELS_IN_SEARCH)
    with (
        writing.output(output) as writer,
        console.progress("translated", files=paths, output=output) as bar,
    ):
        from synmt_cli.core.decoding.translator import SearchSettings
        from synmt_cli.core.evaluation.tuning import Tuning
        from synmt_cli.core.jobs.translation.job import TranslateJob, Wanted, ending_at_failures

        tokenizers.bleu(tokenize)  # what it lacks is reported before anything is translated
        settings = SearchSettings(beam=beam, patience=patience or math.inf, batch_size=batch_size)
        wanted = Wanted(device, "torch", "fp32")
        job = TranslateJob(model, checkpoint, wanted, settings, jobs, threads)
        references: list[str] = []
        given = job.reader("").read(paths, "jsonl")
        records = requiring_references(ending_at_failures(given, strict))
        lines: list[list[str]] = [[] for _ in values]
        n_cut, n_closed = [0] * len(values), [0] * len(values)
        for each in job.translated_each(records, 1000, console.warn, bar, values):
            references += [one.record.tgt or "" for one in each[0]]
            for i, translated in enumerate(each):
                for one in translated:
                    best = one.lines[0] if one.lines else None
                    lines[i].append(best.text if best else "")
                    n_cut[i] += best is not None and best.cut
                    n_closed[i] += best is not None and best.n_closing > 0
            bar.advance(len(each[0]))
        if not references:
            raise DataError(reading.source_name(paths[0]), None, "no records to tune on")
        if writing_of_them := scripts.misread(references, tokenize):
            console.warn(f"the references have {writing_of_them.advice(tokenize, '--tokenize ')}")
        closed: list[int | None] = [*n_closed] if job.writes_trees else [None] * len(values)
        exact = settings.patience == math.inf
        tuning = Tuning(references, beam, None if exact else settings.patience, tokenize)
        report = tuning.report(values, lines, n_cut, closed)
        for doubt in report.doubts:
            console.warn(doubt)
        if get is None:
            writer.write(FORMATS[form](report))
        else:
            figure = repr(report.best.lenpen) if get == "lenpen" else f"{report.best.bleu:.2f}"
            writer.write(figure.encode() + b"\n")


def grid(text: str) -> list[float]:
    """The values of LOW:HIGH[:STEP], HIGH included, counted in decimals. Raises UsageError.

    >>> grid("0.2:0.6"), grid("1:2:0.5")
    ([0.2, 0.3, 0.4, 0.5, 0.6], [1.0, 1.5, 2.0])
    """
    problem = f"expected LOW:HIGH or LOW:HIGH:STEP within 0..{MOST_LENPEN}, such as 0.2:1.6:0.1"
    n = 0
    try:
        low, high, step = map(Decimal, (text if text.count(":") == 2 else f"{text}:0.1").split(":"))
        is_plain = re.fullmatch("[0-9.eE:+-]+", text, re.ASCII)
        if is_plain and 0 <= low <= high <= MOST_LENPEN and 0 < step < math.inf:
            n = int(min((high - low) / step, Decimal(MOST))) + 1
    except (ArithmeticError, ValueError):  # not numbers, too few or too many, or not finite
        pass
    if n > MOST:
        problem = f"more than {MOST:,} values"
    elif n and low + (n - 1) * step != high:
        n, problem = 0, f"steps of {step} do not lead from {low} to {high}"
    if not 1 <= n <= MOST:
        raise UsageError(f"--lenpen {quoted(text)}: {problem}")
    return [float(low + i * step) for i in range(n)]


def requiring_references(records: Placed) -> Placed:
    """Yields the same records. Raises DataError at the first without a target."""
    for record, place in records:
        if record.tgt is None:
            raise DataError(
                *place, "no tgt to compare with; make records with featurize --tgt FILE"
            )
        yield record, place
