"""Training of UDPipe 1 models: a tokenizer, a tagger and a parser in one file.

The library's trainer is one long call that does not react to signals and can crash on odd
options, so it runs in a child process, which can be killed. Its log comes line by line.

All its random choices are fixed: the same data and options give the same model. This module
deals with what the trainer does not take:

- more than 255 forms of one lemma, or a FORM, LEMMA or tag over 255 bytes, do not fit its
  dictionary (https://github.com/ufal/udpipe/issues/53). Such a lemma becomes `_`, a sentence
  with such a word is left out; both are counted;
- its reader gives an empty sentence for a space in a tag or a label, or a lone CR, at which the
  trainer crashes. Such sentences are left out. The reader never ends for a CR in a comment, which
  becomes a space. Otherwise comments, empty nodes, DEPS, and columns of a multiword token other
  than FORM and MISC may hold anything, since the trainer learns nothing from them;
- it ignores options that it does not know. `merged` refuses them.
"""

import os
import re
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import chain
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, BinaryIO

from synmt_cli import pool
from synmt_cli.core.segments.comments import STATUS, is_placeholder, status_of
from synmt_cli.core.trees.heads import is_projective
from synmt_cli.core.trees.relations import ROOT_LABEL
from synmt_cli.errors import DataError, UsageError, WorkerLost, quoted
from synmt_cli.formats.conllu import (
    DEPREL,
    DEPS,
    FEATS,
    FORM,
    ID,
    LEMMA,
    UPOS,
    XPOS,
    Sentence,
    to_bytes,
)
from synmt_cli.formats.record import OK
from synmt_cli.io.memory import unnamed_file

PARTS = ("tokenizer", "tagger", "parser")
METHOD = "morphodita_parsito"  # the only one of the library
MAX_BYTES = 250  # of a FORM, LEMMA or tag; the library adds up to five to make 255
MAX_FORMS = 200  # of a lemma; its guesser adds some of its own

# The library's options, from its users' manual and src/trainer/trainer_morphodita_parsito.cpp
OPTIONS: dict[str, str] = {
    "tokenizer": """from_model run detokenize detokenize_handout tokenize_url segment_size
        allow_spaces dimension epochs batch_size learning_rate learning_rate_final dropout
        initialization_range early_stopping""",
    "tagger": """from_model models run templates iterations early_stopping prune_features order
        use_lemma use_xpostag use_feats provide_lemma provide_xpostag provide_feats
        dictionary_model dictionary_file dictionary_suffix_len dictionary_flat_lemmas
        dictionary_lemma_encoding dictionary_max_form_analyses dictionary_accuracy
        guesser_suffix_len guesser_suffix_rules guesser_prefixes_max guesser_prefix_min_count
        guesser_enrich_dictionary""",
    "parser": """from_model run transition_system transition_oracle structured_interval single_root
        use_gold_tags embedding_upostag embedding_feats embedding_xpostag embedding_form
        embedding_form_mincount embedding_form_file embedding_lemma embedding_lemma_mincount
        embedding_lemma_file embedding_deprel iterations hidden_layer batch_size learning_rate
        learning_rate_final l2 early_stopping""",
}

# Options whose values are not numbers.
CHOICES: dict[str, tuple[str, ...]] = {
    "transition_system": ("projective", "swap", "link2"),
    "transition_oracle": ("static", "dynamic", "static_eager", "static_lazy"),
}
_TEXT = ("from_model", "detokenize", "templates", "_file", "_model", "_lemmas", "_accuracy")
_OF_A_FURTHER_MODEL = re.compile(r"(.+)_[1-9]")  # `iterations_2` is for the second tagger
_FRACTIONS = ("learning_rate", "learning_rate_final", "dropout", "l2", "initialization_range")
_FRACTION = re.compile(r"[0-9]+(\.[0-9]+)?([eE]-?[0-9]+)?", re.ASCII)
_COUNT = re.compile("[0-9]+", re.ASCII)

# How long training takes. `accurate` leaves every choice to the library. `quick` learns models of
# the same kinds, smaller and in fewer rounds: it takes seconds for 2,000 sentences.
PRESETS: dict[str, dict[str, str]] = {
    "quick": {
        "tokenizer": "dimension=16;epochs=3",
        "tagger": "iterations=2",
        "parser": "iterations=2;hidden_layer=64;structured_interval=0;embedding_form=32;"
        "embedding_upostag=12;embedding_feats=12;embedding_deprel=12",
    },
    "accurate": {"tokenizer": "", "tagger": "", "parser": ""},
}
# How long the model then takes: a tagger tries each sequence of the tags that its dictionary and
# its guesser offer for three neighbouring words, so fewer guesses are what makes it fast.
LIGHT = {"tagger": "use_lemma=0;provide_lemma=0;guesser_suffix_rules=4;guesser_enrich_dictionary=2"}
_OPTION_PROBLEM = re.compile(
    r"value '|^Cannot (create|load|open|parse)|^Number of|^Unknown|not supported"
)


def merged(preset: str, given: Mapping[str, str], light: bool = False) -> dict[str, str]:
    """The options of each part: those of the preset and of LIGHT, overridden by the given ones.

    given: `name=value;name=value` by part, or `none` for no tokenizer. Raises UsageError.

    >>> merged("accurate", {"tagger": "guesser_suffix_rules=8"}, light=True)["tagger"]
    'use_lemma=0;provide_lemma=0;guesser_suffix_rules=8;guesser_enrich_dictionary=2'
    """
    options = {}
    for part in PARTS:
        if given.get(part) == "none" and part == "tokenizer":
            options[part] = "none"
            continue
        layers = PRESETS[preset][part], LIGHT.get(part, "") if light else "", given.get(part, "")
        values = {name: one for layer in layers for name, one in _named(layer, part).items()}
        options[part] = ";".join(f"{name}={value}" for name, value in values.items())
    return options


def _named(text: str, part: str) -> dict[str, str]:
    values = {}
    for item in filter(None, text.split(";")):
        name, equals, value = item.partition("=")
        known = OPTIONS[part].split()
        further = _OF_A_FURTHER_MODEL.fullmatch(name) if part == "tagger" else None
        if name not in known and not (further and further[1] in known):
            close = get_close_matches(name, known, 1)
            hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"
            raise UsageError(f"--{part}-options has no option {quoted(name)}{hint}")
        if not equals:
            raise UsageError(f"--{part}-options {quoted(name)} has no value: write {name}=VALUE")
        # The library would find out only when it comes to that part, perhaps after hours.
        if name in CHOICES and value not in CHOICES[name]:
            raise UsageError(f"--{part}-options {name} is one of {', '.join(CHOICES[name])}")
        number, expected = (
            (_FRACTION, "a number") if name in _FRACTIONS else (_COUNT, "a whole number from 0 on")
        )
        if not (name in CHOICES or number.fullmatch(value) or any(s in name for s in _TEXT)):
            raise UsageError(f"--{part}-options {name} is {quoted(value)}, expected {expected}")
        values[name] = value
    return values


@dataclass(slots=True)
class Treebank:
    """CoNLL-U blocks to train on or to measure with, and counts of what was changed.

    left_out: the number of sentences left out, by reason. n_lemmas: how many lemmas became `_`.
    n_crossing: how many sentences have trees that are not projective.
    """

    blocks: list[bytes] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    n_lemmas: int = 0
    n_crossing: int = 0


def treebank(sentences: Iterable[Sentence]) -> Treebank:
    """The sentences that the trainer takes. They are held in memory.

    Raises DataError for a root with another label than `root`, or another word with that label:
    the trainer takes neither.
    """
    result, kept = Treebank(), []
    forms: defaultdict[str, set[str]] = defaultdict(set)
    for sentence in sentences:
        if reason := _unfit(sentence):
            result.left_out[reason] += 1
            continue
        for row in sentence.words:
            forms[row[LEMMA]].add(row[FORM])
        result.n_crossing += not is_projective([head - 1 for head in sentence.heads])
        kept.append(_learnt(sentence))
    varied = {lemma for lemma, of_lemma in forms.items() if len(of_lemma) > MAX_FORMS} - {"_"}
    for sentence in kept:
        for row in sentence.words:
            if row[LEMMA] in varied:
                row[LEMMA] = "_"
        result.blocks.append(to_bytes(sentence))
    result.n_lemmas = len(varied)
    return result


def _learnt(sentence: Sentence) -> Sentence:
    """The sentence with the rows and columns that the trainer learns from or needs."""
    rows = [row for row in sentence.rows if "." not in row[ID]]
    for row in rows:
        row[DEPS] = "_"
        if "-" in row[ID]:
            row[LEMMA:DEPS] = ["_"] * (DEPS - LEMMA)
    comments = [comment.replace("\r", " ") for comment in sentence.comments]
    return replace(sentence, comments=comments, rows=rows)


def _unfit(sentence: Sentence) -> str | None:
    if is_placeholder(sentence):
        return "without a tree"
    if status_of(sentence)[0] != OK:
        return f"with a {STATUS} other than ok"
    if reason := _unreadable(sentence):
        return reason
    for row in sentence.words:
        tag = len(f"{row[UPOS]}{row[XPOS]}{row[FEATS]}".encode())
        if max(len(row[FORM].encode()), len(row[LEMMA].encode()), tag) > MAX_BYTES:
            return f"with a FORM, LEMMA or tag over {MAX_BYTES} bytes"
    for row, head in zip(sentence.words, sentence.heads, strict=True):
        if (head == 0) != (row[DEPREL] == ROOT_LABEL):
            problem = "HEAD 0 and DEPREL root go together, here DEPREL is " + quoted(row[DEPREL])
            raise DataError(sentence.source, sentence.line_of(row), problem)
    return None


def _unreadable(sentence: Sentence) -> str | None:
    if any("\r" in column for column in chain.from_iterable(sentence.rows)):
        return "with a lone CR"
    if any(" " in row[column] for row in sentence.words for column in (UPOS, XPOS, FEATS, DEPREL)):
        return "with a space in UPOS, XPOS, FEATS or DEPREL"
    return None


@dataclass(frozen=True, slots=True)
class Trained:
    """The bytes of a model file, and the library's own evaluation of it on the dev set."""

    model: bytes
    evaluation: str


def train(
    training: Treebank, dev: Treebank, options: Mapping[str, str], log: Callable[[str], None]
) -> Trained:
    """A model that `udpipe.load` loads. `log` is given each line of the trainer's log.

    Without dev sentences there is no early stopping and no evaluation. Raises UsageError for
    options and DataError for data that the library does not take, WorkerLost if it crashes.
    """
    result, child_result = Pipe()
    log_end, child_log = os.pipe()
    with result, open(log_end, "rb") as log_lines:
        blocks = training.blocks, dev.blocks
        parent_ends = result, log_lines
        process = pool.fork(_train, *blocks, options, child_result, child_log, parent_ends)
        try:
            child_result.close()
            os.close(child_log)
            for line in log_lines:
                log(line.decode("utf-8", "replace").rstrip("\n"))
            try:
                outcome: Trained | str = result.recv()
            except EOFError:
                process.join()
                end = f"ended with status {process.exitcode}"
                if process.exitcode is not None and process.exitcode < 0:
                    name = signal.Signals(-process.exitcode).name
                    end = f"was ended by {name}: too little memory, or an odd option"
                raise WorkerLost(f"the training process {end}") from None
        finally:
            process.kill()
            process.join()
    if isinstance(outcome, Trained):
        return outcome
    if _OPTION_PROBLEM.search(outcome):
        raise UsageError(f"UDPipe: {outcome}")
    raise DataError("training data", None, f"UDPipe: {outcome}")


def _train(
    training: list[bytes],
    dev: list[bytes],
    options: Mapping[str, str],
    result: Connection,
    log: int,
    parent_ends: Iterable[Connection | BinaryIO],
) -> None:
    """Runs as the child: sends a Trained, or the library's complaint."""
    import ufal.udpipe as binding

    for end in parent_ends:  # while they are open, the parent's end is not noticed
        end.close()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # without a parent the next log line ends it
    os.dup2(log, 2)  # the library writes there
    os.close(log)
    error = binding.ProcessingError()
    both = [_sentences(blocks, error) for blocks in (training, dev)]
    model = b""
    if not error.occurred():
        model = binding.Trainer.train(METHOD, *both, *(options[part] for part in PARTS), error)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # so that the parent sees the end of the log
    if error.occurred() or not model:
        result.send(error.message.strip() or "it gives no model")
        return
    with unnamed_file() as file:
        file.write(model)
        file.flush()
        loaded = binding.Model.load(f"/dev/fd/{file.fileno()}")
    if loaded is None:
        result.send("it gives a model that it cannot load")
        return
    result.send(Trained(model, _evaluation(loaded, dev, options)))


def _sentences(blocks: Iterable[bytes], error: Any) -> Any:
    """The library's sentences; `error` says what it cannot read."""
    import ufal.udpipe as binding

    reader = binding.InputFormat.newInputFormat("conllu")
    sentences = binding.Sentences()
    for block in blocks:
        reader.setText(block.decode())
        sentence = binding.Sentence()
        if not reader.nextSentence(sentence, error):
            break
        sentences.append(sentence)
    return sentences


def _evaluation(model: Any, dev: list[bytes], options: Mapping[str, str]) -> str:
    import ufal.udpipe as binding

    if not dev:
        return ""
    text = b"".join(dev).decode()
    default = binding.Evaluator.DEFAULT
    tokenizers = [binding.Evaluator.NONE]
    if options["tokenizer"] != "none":
        tokenizers.append(default)
    evaluators = (binding.Evaluator(model, one, default, default) for one in tokenizers)
    return "".join(one.evaluate(text, binding.ProcessingError()) for one in evaluators)
