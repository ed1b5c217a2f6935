"""`synmt perturb`: CoNLL-U with other trees."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from synmt_cli import console, pool
from synmt_cli.commands import Manual, conllu_work, options
from synmt_cli.commands.options import option
from synmt_cli.core.jobs.cutting import batches, cut_by_sentence
from synmt_cli.core.jobs.perturb import RANDOM, SHUFFLED, LabelSampler, Perturber, learn
from synmt_cli.errors import DataError
from synmt_cli.io import reading

if TYPE_CHECKING:
    from synmt_cli.core.trees.confusions import Confusions

MANUAL = Manual(
    input="CoNLL-U: `2\tdog\tdog\tNOUN\t_\t_\t3\tnsubj\t_\t_`",
    output="The input with other trees: `2\tdog\tdog\tNOUN\t_\t_\t1\tnsubj\t_\t_`",
    memory=conllu_work.MEMORY,
    examples=(
        "synmt perturb --head-noise 0.2 --seed 1 train.en.conllu > noisy.conllu",
        "synmt perturb --head-noise 0.3 test.en.conllu | synmt evaltree test.en.conllu -",
        "synmt perturb --tree random -j 2 train.en.conllu"
        " | synmt featurize --spm spm.model --tgt train.de -o random.jsonl",
        "synmt parse -m en.udpipe --from conllu dev.en.conllu > dev.parsed.conllu"
        " && synmt perturb --confusions dev.en.conllu dev.parsed.conllu --head-noise 0.2"
        " --projective train.en.conllu > like-a-parser.conllu",
        "cut -sf8 train.en.conllu > labels"
        " && synmt perturb --label-noise 0.1 --label-set labels dev.en.conllu > mislabelled.conllu",
    ),
    see_also=("evaltree", "parse", "featurize"),
)


def perturb(
    files: options.Files = None,
    tree: Annotated[
        Literal["left-branching", "right-branching", "balanced", "random", "shuffled"] | None,
        option("--tree", "Replace every tree by one of this kind."),
    ] = None,
    heads: Annotated[
        float | None,
        option("--head-noise SHARE", "Share of words to get another head.", min=0, max=1),
    ] = None,
    labels: Annotated[
        float | None,
        option(
            "--label-noise SHARE",
            "Share of words, without the root, to get another label.",
            min=0,
            max=1,
        ),
    ] = None,
    label_set: Annotated[
        str | None,
        option(
            "--label-set FILE",
            "Draw labels from the lines of this file instead of the universal relations.",
        ),
    ] = None,
    projective: Annotated[
        bool,
        option(
            "--projective", "Keep projective trees projective; draw only projective random ones."
        ),
    ] = False,
    confusions: Annotated[
        tuple[str, str] | None,
        option(
            "--confusions GOLD PREDICTED",
            "Make errors as a parser makes them, learned from these trees of the same text.",
        ),
    ] = None,
    seed: options.Seed = options.SEED,
    jobs: options.Jobs = 1,
    output: options.Output = "-",
    line_buffered: options.LineBuffered = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Put noise into trees, or replace them, to measure what a tree is worth.

    Each sentence of the input gives one sentence. Every result is a tree with one root. HEAD and
    DEPREL change, DEPS becomes _ in the rows that change, and the sentence gets the comment
    synmt_perturbed with the options; everything else stays. Sentences with a synmt_status, which
    stand for lines without a tree, are not changed. --tree is applied first, then --head-noise,
    then --label-noise.

    --head-noise P: each word of a sentence of two or more gets another head with probability P,
    exactly, so that the expected UAS is 1 - P. First the words are drawn, then a tree, uniformly
    from all in which exactly these words have another head. The root is a word like any other: if
    it gets a head, another word becomes the root. The words of a sentence are nearly independent:
    some sets of words have no such tree, and the others are drawn more often instead. A word keeps
    its label, but a new root swaps labels with the old one.

    --head-noise P --projective: a projective tree stays projective. Its words, without the root,
    move with probability P, one after the other in random order, each with its subtree, to a head
    drawn uniformly from those that keep the tree projective. A word without another such head
    stays, so fewer than P of the words change. Trees that are not projective are treated as
    without --projective.

    --label-noise P: each word but the root gets another label with probability P. It is drawn
    uniformly from the 36 universal relations other than root, or from the lines of --label-set by
    their frequency; never a label of the same relation, such as nsubj:pass for nsubj.

    --confusions GOLD PREDICTED: errors as a parser makes them. PREDICTED has the parser's trees of
    the text of GOLD; sentences with other words are skipped. Which words get another head depends
    on their label; which head, on its UPOS, its direction and distance, and its place in the gold
    tree; which label, on the gold label and on whether the head is correct. With neither
    --head-noise nor --label-noise there are as many errors as the parser makes. With one of them,
    about that share of the words get an error and the other share is 0: all probabilities are
    scaled by one factor, to at most 1, so that high shares may be missed. If the root gets another
    head, that becomes the root.

    Other heads also make trees non-projective: the end of the run says how many are projective
    before and after, and --projective keeps them so.

    \b
    --tree left-branching    each word depends on the next; the last is the root
           right-branching   each word depends on the one before it; the first is the root
           balanced          the middle word is the root, and so on in each half
           random            a tree drawn uniformly from all trees over the words, or with
                             --projective from the projective ones
           shuffled          the same tree and labels, with the words in random places

    The draw depends on --seed and on the number of the sentence over all FILEs, never on -j;
    --label-noise does not change which heads are drawn. At the end the heads and labels that
    differ from the input are counted, with UAS and LAS against it (labels with subtypes).
    """
    is_given = heads is not None or labels is not None
    unfit = {
        "nothing to change: give --tree, --head-noise, --label-noise or --confusions": (
            not (tree or is_given or confusions)
        ),
        "--confusions is not for --tree or --label-set": confusions and (tree or label_set),
        "--label-set is for --label-noise": label_set is not None and labels is None,
        "shuffled trees cannot be kept --projective": projective and tree == SHUFFLED,
        "--projective is for --head-noise and --tree random": (
            projective and tree != RANDOM and heads is None and not confusions
        ),
    }
    options.refuse(unfit)
    others = [*(confusions or ()), *([label_set] if label_set else ())]
    options.refuse_clashes(others, output, rewritten=files or ["-"])
    learned = None
    if confusions:
        learned = _learned(*confusions)
        if not is_given:
            heads, labels = learned.head_share, learned.label_share
        _refuse_unlearned(learned, heads, labels, confusions[1])
    perturber = Perturber(
        tree, heads or 0.0, labels or 0.0, projective, seed, _labels(label_set), learned
    )
    work = cut_by_sentence(batches(files or ()))
    do = partial(pool.ordered_map, perturber.run, jobs=jobs, chunk=1)
    done = conllu_work.write(do, work, files, output, line_buffered, "perturbed", "sentences")
    counts, n = done.counts, done.counts["words"]
    console.info(
        f"{counts['heads']:,} heads and {counts['labels']:,} labels of {n:,} words changed, in "
        f"{counts['changed']:,} of {counts['sentences']:,} sentences"
    )
    if n:
        uas, las = (100 * (1 - counts[wrong] / n) for wrong in ("heads", "wrong"))
        console.info(f"against the input: UAS {uas:.2f}, LAS {las:.2f}")
        before, after = counts["projective"], counts["projective_after"]
        console.info(f"projective trees: {before:,} before, {after:,} after")


def _learned(gold: str, predicted: str) -> Confusions:
    with reading.open_source(gold) as right, reading.open_source(predicted) as found:
        confusions = learn(right, found)
    shares = (100 * confusions.head_share, 100 * confusions.label_share)
    console.info(
        "learned from {:,} words: {:.2f} % different heads, {:.2f} % different labels".format(
            confusions.words.total(), *shares
        )
    )
    return confusions


def _refuse_unlearned(
    learned: Confusions, heads: float | None, labels: float | None, predicted: str
) -> None:
    """Raises DataError if errors of a kind are asked for that the parse does not have."""
    if heads and not learned.wrong_heads:
        raise DataError(predicted, None, "no wrong heads to learn from")
    if labels and not learned.wrong_labels:
        raise DataError(predicted, None, "no wrong labels to learn from")


def _labels(path: str | None) -> LabelSampler:
    if path is None:
        return LabelSampler()
    labels = []
    with reading.open_source(path) as source:
        for number, line in reading.text_lines(source):
            if "\0" in line or (line and line.split() != [line]):
                raise DataError(source.name, number, "a label with white space or NUL")
            labels.append(line)
        try:
            return LabelSampler(filter(None, labels))
        except ValueError as error:
            raise DataError(source.name, None, str(error)) from None
