"""`synmt translate`: records, trees or text to translations."""

import contextlib
import math
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal

import typer

from synmt_cli import console, pool
from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import option
from synmt_cli.errors import UsageError
from synmt_cli.formats.reports.bounds import MOST_BEAM, MOST_LENPEN
from synmt_cli.io import memory, reading, writing

MANUAL = Manual(
    input="JSONL records of `synmt featurize`, CoNLL-U, or text, one segment a line.",
    output=(
        "text: one line for each segment, `Der Hund schläft .` tsv: `1<TAB>-0.3192<TAB>Der Hund "
        "schläft .`, n-best in order, or as drawn. jsonl: the input's record with hyp and score, "
        "with nbest if N is 2 or more, with hyp_transitions where models write trees, and with "
        "closing where some of these were added at the end: how many. conllu: a parsed sentence "
        "for each segment, or for each part of a long one."
    ),
    memory="The models, and --window segments, twice as many from a pipe; with -j N also at least "
    f"{pool.IN_FLIGHT} N + 2 times --batch-size; and one batch of search.",
    examples=(
        "synmt translate -m runs/pascal test.jsonl > hyp.de",
        "synmt translate -m runs/pascal < test.en | head -3",
        "synmt translate -m runs/pascal -m runs/base --beam 2 test.en.conllu -o ensemble.de",
        "synmt translate -j 2 -m runs/base --beam 2 test.jsonl > hyp.de",
        "synmt translate --precision int8 --patience 1 -m runs/base test.jsonl > fast.de",
        "synmt translate --engine auto --patience 1 -m runs/pascal test.jsonl > fast.de",
        "synmt translate -m runs/trees --format conllu --max-output-len 20 test.en > hyp.conllu",
        "synmt translate -m runs/trees --max-output-len 20 --trees-out hyp.conllu test.en > hyp.de",
        "synmt translate -m runs/base --format tsv --beam 4 --nbest 4 test.jsonl > nbest.tsv",
        "synmt translate -m runs/base --sample 10 --seed 1 test.jsonl > drawn.de",
    ),
    see_also=("train", "featurize", "tune", "likelihood", "score", "export"),
)
BEAM, LENPEN = 4, 0.6
OF_SEARCH = {"beam": "--beam", "patience": "--patience", "tuned": "--tuned"}
OF_SAMPLING = {"temperature": "--temperature", "seed": "--seed"}


def translate(
    context: typer.Context,
    model: Annotated[
        list[str],
        option("-m, --model RUN", "Run directory, or exported; repeatable, for an ensemble."),
    ],
    files: options.Files = None,
    kind: options.InputKind = "auto",
    on_bad_tree: options.OnBadTree = "error",
    parser: options.RunParser = "",
    beam: Annotated[
        int | None,
        option(
            "--beam K",
            "Beam size; 1 is greedy.",
            shown_default=f"{BEAM}, or as tuned",
            min=1,
            max=MOST_BEAM,
        ),
    ] = None,
    lenpen: Annotated[
        float | None,
        option("--lenpen A", "Divide log P by length^A.", f"{LENPEN}", min=0, max=MOST_LENPEN),
    ] = None,
    tuned: Annotated[
        list[str] | None,
        option(
            "--tuned FILE",
            "Take beam, patience and the best A from a report of synmt tune; from several reports,"
            " the A with the best mean BLEU.",
        ),
    ] = None,
    sample: Annotated[
        int | None,
        option(
            "--sample K",
            "Draw each token among the K most probable, instead of searching; 0 is all.",
            min=0,
        ),
    ] = None,
    temperature: Annotated[
        float,
        option(
            "--temperature T",
            "Draw with P^(1/T): below 1 probable tokens become more probable.",
            min=0.01,
            max=100,
        ),
    ] = 1.0,
    seed: options.Seed = options.SEED,
    nbest: Annotated[
        int, option("--nbest N", "Translations for each segment.", min=1, max=1000)
    ] = 1,
    patience: options.Patience = None,
    max_len: Annotated[
        int | None,
        option(
            "--max-output-len N",
            "Most pieces of a translation, with its end, and at least 2 of a tree; the default is "
            "2 * source + 22.",
            min=1,
            max=100_000,
        ),
    ] = None,
    max_pieces: Annotated[
        int, option("--max-pieces N", "Translate sources of more pieces in parts.", min=1)
    ] = 1000,
    format: Annotated[
        Literal["text", "tsv", "jsonl", "conllu"], option("--format", "What to write.")
    ] = "text",
    trees_out: Annotated[
        str, option("--trees-out FILE", "Also write the trees of the translations, as CoNLL-U.")
    ] = "",
    unconstrained: Annotated[
        bool,
        option(
            "--unconstrained", "Let models that write trees write sequences that build no tree."
        ),
    ] = False,
    batch_size: options.BatchSize = 64,
    batch_tokens: Annotated[
        int, option("--batch-tokens N", "At most N padded source pieces in a batch.", min=1)
    ] = 4096,
    window: Annotated[
        int, option("--window N", "Segments that are sorted by length together.", min=1)
    ] = 1000,
    checkpoint: options.Checkpoint = "best",
    engine: Annotated[
        Literal["torch", "ctranslate2", "auto"] | None,
        option(
            "--engine",
            "auto is ctranslate2 where it is installed and fits.",
            shown_default="torch, for exported models ctranslate2",
        ),
    ] = None,
    precision: Annotated[
        Literal["auto", "fp32", "int8", "bf16", "fp16"] | None,
        option(
            "--precision",
            "int8 is faster on a CPU, bf16 and fp16 on a GPU; auto is bf16 where a GPU has it.",
            shown_default="fp32, on a GPU by TF32, or as exported",
        ),
    ] = None,
    device: options.Device = "auto",
    threads: options.Threads = 0,
    jobs: options.Jobs = 1,
    output: options.Output = "-",
    line_buffered: options.LineBuffered = False,
    strict: options.Strict = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Translate records, trees or text with trained models: one line for each segment, in order.

    Only the run directory is needed. Text is parsed by the parser that the run names (train
    --parser) or by --parser, and split into pieces; models without syntax need no parser. A segment
    whose parse failed, or that has no tree, is translated with each piece as its own parent, and
    counted; with --on-bad-tree failed a sentence of CoNLL-U that is not a tree is such a segment,
    and does not end the run. An empty line stays empty and never reaches the model. A source of
    more than --max-pieces pieces is translated in parts without its tree, and the parts are joined
    into one translation, whatever --nbest is. Pieces that the vocabulary lacks, as of another
    script, are read as the unknown piece, and their segments are counted. If a model reads labels
    (gps, tags), a warning says when at least one word in a hundred has a label that did not occur
    in training, as in trees of another scheme.

    The score of a translation is log P / length^A, with the end of sentence counted, as in fairseq
    (not GNMT's). The search ends when no prefix can still enter the n-best by that score, or with
    --patience 1 when as many translations are finished as the beam is wide, as in fairseq and
    CTranslate2. This is faster, and much faster where decoders write trees, but another A is best
    (synmt tune). The unknown piece is never written. A translation that reaches the limit of
    --max-output-len is cut there and counted. Several models average their probabilities; they must
    share a vocabulary.

    Models that write trees (linearized, parent, gcn) write each tree with its words. The search
    offers only continuations that can still become one tree; the length counts pieces, not
    transitions; at the limit a tree has to end, and is counted as cut. A model may stop while
    several words lack a head. Then its most probable arcs are added until the tree is complete, and
    the score does not change; such trees are counted. So each translation is one tree. --format
    text writes only the words, conllu the parsed sentence, and --trees-out adds it to another
    format. Translations in an n-best list may have equal words and other trees; if completing makes
    two equal, one is dropped. --unconstrained allows everything, as the paper's code did:
    transitions that draw nothing are skipped, at most four tokens are written for each piece of the
    limit, and conllu repairs a sequence that builds no tree, and counts it. Then a piece after an
    arc begins a new word of the tree; in the text it is joined to the piece before it unless it has
    the mark of a space.

    --sample K draws translations instead of searching for the best one: each token with its
    probability among the K most probable ones that may come next, or among all with 0. Such
    translations vary as real text does, so they can serve as sources for text that exists only in
    the target language (docs/back-translation.md). --temperature T draws with P^(1/T). What is
    drawn for a segment depends on --seed and on the segment's id and text, not on -j or on its
    neighbours; two draws of --nbest may be equal. The score is that of the model, without K and T.

    --precision int8 multiplies in 8-bit integers, with a scale for each token and each output, and
    may change a few translations. Attention and what variants add keep their precision. On a GPU
    bf16 and fp16 halve weights and states, and the scores of translations keep single precision;
    auto is bf16 where the GPU itself computes in it, else fp32. On a GPU products in fp32 use
    TF32 unless --precision fp32 is given.

    --engine ctranslate2 (`pip install 'synmt-cli[ctranslate2]'`) is faster: torch computes what a
    variant changes in the encoder, and CTranslate2 the rest. It supports single models with a plain
    decoder, which all variants of the source have, alone or combined; it does not support
    ensembles, --sample, decoders that write trees, or rel in the decoder. Its beam search is not
    exact, so --beam needs --patience (or --lenpen 0 without --nbest). Whatever it cannot do, auto
    leaves to torch, and -v shows which engine runs. Both engines search alike, but CTranslate2
    rounds differently and leaves pieces that are never written out of all probabilities. So scores
    differ, and sometimes translations. Therefore the default stays torch, and installing a package
    changes no output. With --threads N (and -j 1) CTranslate2 translates N batches at the same
    time. It reads the folders of `synmt export` too.

    Segments are sorted by length within a --window; --line-buffered, or text typed at a terminal,
    sets it to 1. From a pipe the first windows are shorter, and the next one is read while one is
    translated, so that the program before the pipe need not wait; without -j, a window is shorter
    if that program is the slower one. With -j each process takes parts of every window, with one
    thread unless --threads says otherwise; text is still parsed by one process, so put `synmt parse
    -j` before it if parsing is much of the work. -j is for CPUs: on a machine with a GPU give
    --device cpu, too.
    """
    options.refuse(
        {
            "--lenpen and --tuned both name the length penalty": tuned and lenpen is not None,
            "--trees-out is for formats other than conllu": trees_out and format == "conllu",
            "-o and --trees-out must be different files": (
                options.is_written_twice((output, trees_out))
            ),
        }
    )
    _refuse_of_the_other(context, sample is not None)
    if nbest > 1 and format in ("text", "conllu"):
        raise UsageError("--nbest gives several lines for a segment: --format tsv or jsonl")
    paths = files or ["-"]
    options.refuse_clashes([*paths, *(tuned or []), parser], output, trees_out)
    beam, lenpen, patience = _search(tuned or [], beam, lenpen, patience)
    if sample is None:
        console.debug(f"search: beam {beam}, length penalty {lenpen:g}, patience {patience:g}")
        options.refuse({f"--nbest {nbest} needs --beam {nbest} or more, not {beam}": nbest > beam})
    if options.is_watched(paths, line_buffered):
        window = 1
    counts: Counter[str] = Counter()
    memory.bound_caches(memory.KERNELS_IN_SEARCH)
    with contextlib.ExitStack() as stack:
        outputs = [output, *([trees_out] if trees_out else [])]
        writers = stack.enter_context(writing.together(outputs, line_buffered))
        bar = stack.enter_context(console.progress("translated", files=paths, output=output))
        from synmt_cli.core.decoding.hypothesis import LengthLimit
        from synmt_cli.core.decoding.sampling import Sampling
        from synmt_cli.core.decoding.translator import SearchSettings
        from synmt_cli.core.jobs.translation.job import TranslateJob, Wanted, ending_at_failures
        from synmt_cli.core.jobs.translation.output import remarks, written

        settings = SearchSettings(
            beam=beam,
            lenpen=lenpen,
            nbest=nbest,
            longest=LengthLimit() if max_len is None else LengthLimit(0, max_len),
            constrained=not unconstrained,
            patience=patience,
            max_pieces=max_pieces,
            batch_size=batch_size,
            batch_pieces=batch_tokens,
            scores=format in ("tsv", "jsonl"),
            sampling=None if sample is None else Sampling(sample, temperature, seed),
        )
        job = TranslateJob(
            model, checkpoint, Wanted(device, engine, precision), settings, jobs, threads
        )
        console.debug(job.engine)
        job.refuse_without_trees(
            {
                "--format conllu": format == "conllu",
                "--trees-out": bool(trees_out),
                "--unconstrained": unconstrained,
            }
        )
        source, target = job.members.vocabularies.source, job.members.vocabularies.target
        names = (format, "conllu")[: len(writers)]
        forms = [written(name, target, counts, nbest) for name in names]
        needs_trees = bool(job.members.encoding.needs)
        reader = job.reader(parser, ahead=window)
        records = ending_at_failures(reader.read(paths, kind, on_bad_tree), strict)
        waited = (lambda: reader.waited) if reading.is_streamed(paths) else None
        for translated in job.translated(records, window, console.warn, bar, waited):
            for one in translated:
                for writer, as_bytes in zip(writers, forms, strict=True):
                    writer.write(as_bytes(one))
                counts.update(remarks(one, settings, source, needs_trees))
            bar.advance(len(translated))
        for remark, n in counts.items():
            console.warn(f"{n:,} of {bar.done:,} segments {remark}")


def _refuse_of_the_other(context: typer.Context, samples: bool) -> None:
    """Raises UsageError for an option of search with --sample, or of --sample without it."""
    if samples:
        options.refuse_given(context, OF_SEARCH, "is for a search, and --sample draws")
    else:
        options.refuse_given(context, OF_SAMPLING, "is for --sample")


def _search(
    tuned: Sequence[str], beam: int | None, lenpen: float | None, patience: float | None
) -> tuple[int, float, float]:
    """Beam, length penalty and patience: what is given, else those of reports, else the defaults.

    Raises DataError and ReadError for reports.
    """
    from synmt_cli.formats.reports import tuning

    if not tuned:
        return beam or BEAM, LENPEN if lenpen is None else lenpen, patience or math.inf
    report = tuning.read_all(tuned)
    name = tuned[0]
    if beam not in (None, report.beam):
        console.warn(f"{name} was tuned with --beam {report.beam}, not {beam}")
    if patience not in (None, report.patience or math.inf):
        known = tuning.with_patience(report.patience)
        console.warn(f"{name} was tuned {known}, not {tuning.with_patience(patience)}")
    return beam or report.beam, report.best.lenpen, patience or report.patience or math.inf
