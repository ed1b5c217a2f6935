"""The Makefile of an experiment: plain commands, each in a rule with the files that it reads.

`given/` links to the text as it was given, and to models to begin with; `text/` has the three sets,
`data/` trees and records, `runs/` the training runs, `models/` the means of their last checkpoints,
and `output/` the translations of the test set, with the trees of models that write them.
"""

from collections.abc import Iterable, Iterator

from synmt_cli.core.experiment import rules
from synmt_cli.core.experiment.design import Design, TreesFrom, have
from synmt_cli.core.run.directory import OWN_VARIANTS
from synmt_cli.core.run.resuming import CHANGEABLE_IN_TRAINING
from synmt_cli.core.text.scripts import Writing
from synmt_cli.core.variants.own_file import VARIABLE


def makefile(design: Design, n_pairs: int) -> str:
    """The text of the Makefile. n_pairs: how many pairs the given training text has."""
    parts = [
        _head(design),
        *_sets(design, n_pairs),
        *_trees(design),
        *_vocabulary(design),
        *_records(design),
        *_trainings(design),
        *_translations(design),
        *_answer(design),
    ]
    return "".join(parts)


def _head(design: Design) -> str:
    """The head of the Makefile: what to compare, and the first targets."""
    names = (name for variant in design.variants for name in design.records(variant))
    records = dict.fromkeys([*names, "test"])
    has_own = any(map(design.has_own, design.variants))
    vocabulary = "" if design.pretrained else rules.OF_VOCABULARY.format(coverage=_coverage(design))
    unspaced = design.sides_without_spaces
    lenpens, patience = ("0.2:3.0", " 1") if design.writers else ("0.2:1.6", "")
    return rules.HEAD.format(
        variants=" ".join(design.variants),
        seeds=" ".join(map(str, design.seeds)),
        preset=design.preset,
        lengths=rules.LENGTHS.format(sides=have(unspaced)) if unspaced else "",
        limits=_limits(design),
        own=rules.OWN.format(variable=VARIABLE, file=OWN_VARIANTS) if has_own else "",
        further=rules.FURTHER if design.pretrained else "",
        vocabulary=vocabulary,
        watched="" if design.pretrained else " VOCABULARY COVERAGE",
        lenpens=lenpens,
        patience=patience,
        metrics="bleu,chrf" if design.tgt_writing else "bleu,chrf,ter",
        tokenize=design.tokenize,
        by=_buckets(design.src_writing),
        judged=" trees.txt" if _judges(design) else "",
        judged_if=" $(if $(WRITERS),trees.txt)" if _judges(design) else "",
        readers=" ".join(design.readers),
        writers=" ".join(design.writers),
        records=" ".join(f"data/{name}.jsonl" for name in records),
    )


def _limits(design: Design) -> str:
    """Options of synmt filter for what is too long. A dense character counts like three others."""
    if not design.sides_without_spaces:
        return "--max-len 100 --ratio 9"
    writings = design.src_writing, design.tgt_writing
    n_dense = sum(one is not None and one.is_dense for one in writings)
    longest = 200 if n_dense == 2 else 600  # characters of about 100 words
    return f"--unit chars --max-len {longest} --ratio {20 if n_dense == 1 else 9}"


def _coverage(design: Design) -> str:
    """The share of characters that get a piece: dense scripts have many that are seldom seen."""
    writings = design.src_writing, design.tgt_writing
    return "0.9995" if any(one is not None and one.is_dense for one in writings) else "1"


def _buckets(writing: Writing | None) -> str:
    """The SPEC of synmt score --by, for sources of this writing."""
    if writing is None:
        return "length:10,20,30,40"
    return "chars:20,40,60,80" if writing.is_dense else "chars:50,100,150,200"


def _judges(design: Design) -> bool:
    """Whether there is a parser for the text that models write with its tree."""
    return bool(design.writers) and design.tgt.parser is not None


def _sets(design: Design, n_pairs: int) -> Iterator[str]:
    raw = "given/"
    if len(design.split_off) == 1:
        [split_off] = design.split_off
        yield rules.APART.format(split_off=split_off, given="test" if split_off == "dev" else "dev")
        raw = "text/apart/"
    if design.split_off:
        names = ("raw", *design.split_off)
        files = " ".join(f"text/{name}.{side}" for name in names for side in ("src", "tgt"))
        size = design.n_held_out(n_pairs)
        parts = " ".join(f"--part {name}={size}" for name in design.split_off)
        yield rules.SPLIT.format(files=files, parts=parts, src=f"{raw}src", tgt=f"{raw}tgt")
        raw = "text/raw."
    yield rules.FILTER.format(src=f"{raw}src", tgt=f"{raw}tgt")


def _trees(design: Design) -> Iterator[str]:
    if design.source_trees:
        yield _parsing("sources", "src", ("train", "dev", "test"), design.src)
    if design.writers:
        yield _parsing("targets", "tgt", ("train", "dev"), design.tgt)


def _parsing(side: str, end: str, sets: Iterable[str], trees: TreesFrom) -> str:
    """The rule for the trees of some sets."""
    given = {} if trees.parser is None else {"-m": f"{end}.udpipe"}
    given |= {} if trees.known is None else {"--known": f"given/{end}.conllu"}
    return rules.TREES.format(
        side=side,
        end=end,
        targets=" ".join(f"data/{name}.{end}.conllu" for name in sets),
        files="".join(f" {file}" for file in given.values()),
        options="".join(f" {option} {file}" for option, file in given.items()),
    )


def _vocabulary(design: Design) -> Iterator[str]:
    if design.pretrained:  # spm.model is a link to the pretrained models' vocabulary
        return
    symbols, files = "", []
    if design.writers:
        symbols += rules.TREE_SYMBOLS
        files.append("data/transitions")
    if design.schemes:
        symbols += rules.TASK_SYMBOLS
        files.append("data/brackets")
    if files:
        symbols += rules.SYMBOLS.format(files=" ".join(files))
    yield rules.VOCABULARY.format(
        symbols=symbols,
        needs=" data/symbols" if files else "",
        options=" --symbols data/symbols" if files else "",
    )


def _records(design: Design) -> Iterator[str]:
    source = {
        "source": "data/%.src.conllu" if design.source_trees else "text/%.src",
        "source_of": "data/$*.src.conllu" if design.source_trees else "text/$*.src",
        "options": "" if design.source_trees else " --from text",
    }
    yield rules.RECORDS.format(**source)
    if design.writers:
        yield rules.TREE_RECORDS.format(**source)
    for scheme in design.schemes:
        yield rules.TASK_RECORDS.format(scheme=scheme)
        if scheme == "multitask":
            yield rules.TASK_DEV


def _trainings(design: Design) -> Iterator[str]:
    yield rules.SCORABLE
    yield rules.TRAIN.format(changeable="|".join(CHANGEABLE_IN_TRAINING))
    for variant in design.variants:
        train, dev = design.records(variant)
        files, options = "", ""
        if design.plans[variant].source_trees and design.src.parser is not None:
            files, options = " src.udpipe", " --parser src.udpipe"
        if design.has_own(variant):
            files += f" {OWN_VARIANTS}"
        if design.pretrained:
            begun = f"given/pretrained/{variant}.%"  # a link, which may be changed
            files += f" \\\n\t\t{begun} {begun}/model.safetensors"
            options += f" --pretrained given/pretrained/{variant}.$*"
        yield rules.TRAIN_ONE.format(
            variant=variant, train=train, dev=dev, files=files, options=options
        )
    yield rules.FORECAST


def _translations(design: Design) -> Iterator[str]:
    yield rules.TUNE
    for variant in design.variants:
        rule = rules.TRANSLATE_TREES if variant in design.writers else rules.TRANSLATE_ONE
        yield rule.format(variant=variant)


def _answer(design: Design) -> Iterator[str]:
    """The rules for what models make of trees, for their scores, and for the page."""
    shown = []  # on the page: a variable that must not be empty (or ""), the option, the file
    if design.source_trees:
        shown.append(("", "--src-trees", "data/test.src.conllu"))
    if design.readers:
        yield rules.READ
        shown.append(("READERS", "--awsl", "output/awsl.json"))
        shown.append(("READERS", "--attention", "output/attention.jsonl"))
    if _judges(design):
        yield rules.JUDGE
    if design.writers:
        shown.append(("WRITERS", "--tgt-trees", "output/$(firstword $(WRITERS)).$(SEED).conllu"))
    files = [_if(needs, file) for needs, _, file in shown]
    options = [_if(needs, f"{option} {file}") for needs, option, file in shown]
    yield rules.TEST.replace("{files}", _lines(files)).replace("{options}", _lines(options))


def _if(name: str, text: str) -> str:
    """The text, for make to use if the variable `name` is not empty; always, if `name` is ""."""
    return f"$(if $({name}),{text})" if name else text


def _lines(words: Iterable[str]) -> str:
    """The words as further lines of a rule, one word in each."""
    return "".join(f" \\\n\t\t{word}" for word in words)
