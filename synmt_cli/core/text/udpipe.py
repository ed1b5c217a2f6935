"""UDPipe 1 models: from one line of text to one CoNLL-U record.

Source: Straka and Straková 2017, "Tokenizing, POS Tagging, Lemmatizing and Parsing UD 2.0
with UDPipe", through the binding ufal.udpipe. The binding holds the interpreter's lock, so
parallel work needs processes (pool), not threads.

Every line gets a fresh tokenizer: no line is lost, and the offsets are relative to the line.
Where the library handles odd lines badly, this module steps in:

- it splits a line at CR, and takes U+2028 and its like for letters. It is given a space
  instead of each of them, one character for one, so that its offsets stay right;
- it drops empty lines. They become a record of one word `_` with status `empty`;
- with a beam, usually of 5, its parser takes time quadratic in the sentence (42 s for 8,000
  words). Sentences over LONG words are searched greedily, in linear time (0.1 s).
"""

import os
import re
import resource
from dataclasses import dataclass
from typing import Any, BinaryIO

from synmt_cli import pool
from synmt_cli.core.segments.comments import (
    LINE,
    comment,
    is_placeholder,
    of_line,
    placeholder,
    recorded_status,
)
from synmt_cli.errors import DataError, Unavailable, quoted, reason
from synmt_cli.formats import conllu, udpipe_model
from synmt_cli.formats.record import EMPTY, FAILED, OK
from synmt_cli.io import memory, regular_files

BEAM = 5  # the library's own
LONG = 1_000  # words; a longer sentence is parsed with a beam of 1
MAX_WORDS = 50_000  # in a sentence; a word takes about 22 kB of memory
MAX_CHARACTERS = 1_000_000  # in a line
TRIAL = 60  # seconds of processor time
SAMPLE = "It is 12.5 \u00e9t\u00e9, isn't it?"  # parsed in a trial
N_COPIES = 3  # loading a model takes at most so many times its unpacked size in memory

# White space that would end the line or become part of a word. NBSP and its like do not.
_SPACES = dict.fromkeys([*range(0x0A, 0x0E), *range(0x1C, 0x20), 0x85, 0x2028, 0x2029], " ")
_TOKEN = re.compile(r"[^ \t]+")
# At the end of a row, so in MISC: no FORM can look like it.
_TOKEN_RANGE = re.compile(r"TokenRange=([0-9]+):[0-9]+$", re.MULTILINE)
_ROOT = re.compile(r"^[0-9]+(?:\t[^\t\n]*){5}\t0\t", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Parsed:
    """One record: its CoNLL-U in one or more blocks, its status, and the reason unless it is ok.

    `formats.conllu.encoded` makes its bytes. is_known: its tree was known, not parsed.
    known_failure: what was wrong with its known tree.
    """

    conllu: str
    status: str = OK
    reason: str = ""
    is_known: bool = False
    known_failure: str = ""


class Parser:
    """A UDPipe model with a tagger and a parser. Raises Unavailable.

    beam, lemmas: as `synmt parse` has them.
    """

    def __init__(self, path: str, beam: int = BEAM, lemmas: bool = True) -> None:
        import ufal.udpipe as binding

        self._binding = binding
        self.name = path
        self._model = load(path, lemmas=lemmas)
        self._beam = beam
        self._writer = binding.OutputFormat.newOutputFormat("conllu")

    def line(self, text: str, segment: str) -> Parsed:
        """The record of a line of text, with one tree. `segment` is its id."""
        if skipped := unparsed(text, segment):
            return skipped
        return self._one(text, segment, self._split(text, "presegmented;ranges"))

    def tokens(self, text: str, segment: str) -> Parsed:
        """The record of a line of words between spaces or TABs; the words stay as they are."""
        if skipped := unparsed(text, segment):
            return skipped
        sentence = self._binding.Sentence()
        for match in _TOKEN.finditer(text):
            sentence.addWord(match[0]).misc = f"TokenRange={match.start()}:{match.end()}"
        return self._one(text, segment, [sentence])

    def sentences(self, text: str, segment: str) -> Parsed:
        """The record of a line of text, with a tree for each sentence that the model finds.

        The blocks are `segment`.1, `segment`.2, …; their `# text` comments together are the
        line. TokenRange counts from the start of the line in each of them.
        """
        if skipped := unparsed(text, segment):
            return skipped
        try:
            blocks = [self._block(sentence) for sentence in self._split(text, "ranges")]
        except _NoTree as problem:
            return failed(text, segment, str(problem))
        ends = [*map(_begin, blocks[1:]), len(text)]
        record: list[str] = []
        begin = 0
        for k, (block, end) in enumerate(zip(blocks, ends, strict=True), 1):
            record += of_line(f"{segment}.{k}", text[begin:end]), comment(LINE, segment) + "\n"
            record.append(block)
            begin = end
        return Parsed("".join(record))

    def again(self, sentence: conllu.Sentence) -> Parsed:
        """The sentence tagged and parsed again.

        FORM, ranges, comments and MISC are kept, and so are empty nodes and DEPS, which no
        UDPipe model predicts. A record that stands for a line without a tree
        (`# synmt_status`) comes out unchanged; one that `filter` marked is parsed.
        """
        if is_placeholder(sentence):
            status, reason = recorded_status(sentence)
            return Parsed(conllu.to_text(sentence), status, reason or "")
        comments = "".join(f"{comment}\n" for comment in sentence.comments)
        again = self._binding.Sentence()
        for form in sentence.forms:
            again.addWord(form)
        try:
            made = iter(self._block(again).split("\n"))
        except _NoTree as problem:
            return _placeholder(comments, FAILED, str(problem))
        rows = (
            _with_tree(row, next(made)) if row[conllu.ID].isdecimal() else row
            for row in sentence.rows
        )
        return Parsed(comments + "".join("\t".join(row) + "\n" for row in rows) + "\n")

    def words(self, text: str) -> list[str]:
        """The words of a line of text, which is neither tagged nor parsed. Raises Unavailable."""
        if unparsed(text, ""):
            return []
        try:
            sentences = self._split(text, "presegmented")
        except _NoTree:
            return []
        return [word.form for sentence in sentences for word in list(sentence.words)[1:]]

    def _split(self, text: str, options: str) -> list[Any]:
        tokenizer = self._model.newTokenizer(options)
        if tokenizer is None:
            raise Unavailable(f"{self.name} has no tokenizer: use --from tokens or conllu")
        tokenizer.setText(text.translate(_SPACES))
        return self._read(tokenizer)

    def _read(self, reader: Any) -> list[Any]:
        sentences = []
        error = self._binding.ProcessingError()
        while reader.nextSentence(sentence := self._binding.Sentence(), error):
            sentences.append(sentence)
        if not sentences:
            raise _NoTree(f"UDPipe: {quoted(error.message.strip())}")
        return sentences

    def _one(self, text: str, segment: str, sentences: list[Any]) -> Parsed:
        try:
            (block,) = map(self._block, sentences)
        except _NoTree as problem:
            return failed(text, segment, str(problem))
        return Parsed(of_line(segment, text) + block)

    def _block(self, sentence: Any) -> str:
        """The rows of a sentence that was tagged and parsed, and a blank line."""
        n_words = len(sentence.words) - 1  # the first one is the artificial root
        if n_words > MAX_WORDS:
            raise _NoTree(f"{n_words:,} words in a sentence, at most {MAX_WORDS:,}")
        error = self._binding.ProcessingError()
        options = f"beam_search={1 if n_words > LONG else self._beam}"
        if not self._model.tag(sentence, "", error) or not self._model.parse(
            sentence, options, error
        ):
            raise Unavailable(f"{self.name}: {error.message.strip()}")
        sentence.comments.clear()
        block: str = self._writer.writeSentence(sentence)
        n_roots = len(_ROOT.findall(block))
        if n_roots != 1:
            raise _NoTree(f"the parser gives {n_roots} roots")
        return block


class _NoTree(Exception):
    """A sentence gets no tree; the message says why."""


def failed(text: str, segment: str, reason: str) -> Parsed:
    """The record of a line without a tree: one word `_`, so that the line is counted."""
    return _placeholder(of_line(segment, text), FAILED, reason)


def unparsed(text: str, segment: str) -> Parsed | None:
    """The record of a line that never reaches the model, None for any other line."""
    if not text or text.isspace():
        return _placeholder(of_line(segment, text), EMPTY)
    if len(text) > MAX_CHARACTERS:
        return failed(text, segment, f"{len(text):,} characters, at most {MAX_CHARACTERS:,}")
    return None


def _with_tree(row: list[str], made: str) -> list[str]:
    """The row with the columns from LEMMA to DEPREL of another one."""
    new = made.split("\t")[conllu.LEMMA : conllu.DEPS]
    return [*row[: conllu.LEMMA], *new, *row[conllu.DEPS :]]


def _placeholder(comments: str, status: str, reason: str = "") -> Parsed:
    return Parsed(placeholder(comments, status, reason), status, reason)


def _begin(block: str) -> int:
    match = _TOKEN_RANGE.search(block)
    assert match is not None  # the tokenizer was asked for ranges
    return int(match[1])


def load(path: str, tried: bool = False, lemmas: bool = True) -> Any:
    """The binding's model. Raises Unavailable for a file that is missing or not a model.

    The library ends the process at some damaged files and where memory is short, so both are
    checked first. tried: whether another process loads and uses the model before this one, which
    finds files that someone made to end a process, and doubles the time. lemmas: False leaves out
    the lemmatizer of a model whose trees do not need it.
    """
    import ufal.udpipe as binding

    advice = "name a UDPipe 1 model: one from https://ufal.mff.cuni.cz/udpipe/1/models, "
    advice += "or your own by `synmt parser train`"
    try:
        with regular_files.named(path) as file:
            unpacked = udpipe_model.unpacked_size(file, path)
            if not memory.is_available(N_COPIES * unpacked):
                problem = f"cannot load {path}: it needs about {N_COPIES * unpacked / 2**20:,.0f}"
                raise Unavailable(f"{problem} MiB of memory")
            # The library takes only names that are Unicode.
            named = path if path.isprintable() else f"/dev/fd/{file.fileno()}"
            if tried and not _is_survived(named):
                raise DataError(path, None, "it ends the process that uses it")
            model = binding.Model.load(named) if lemmas else _load_without_lemmas(file, named)
    except (OSError, ValueError) as error:
        raise Unavailable(f"cannot read the model {path}: {reason(error)}; {advice}") from error
    except DataError:
        model = None
    if model is None:
        raise Unavailable(f"{path} is damaged or no UDPipe 1 model; {advice}")
    return model


def _load_without_lemmas(file: BinaryIO, named: str) -> Any:
    import ufal.udpipe as binding

    file.seek(0)
    model = udpipe_model.without_lemmas(file.read())
    if model is None:
        return binding.Model.load(named)
    with memory.unnamed_file() as rewritten:
        rewritten.write(model)
        rewritten.flush()
        return binding.Model.load(f"/dev/fd/{rewritten.fileno()}")


def _is_survived(path: str) -> bool:
    """Whether another process loads and uses the model, or refuses it, within TRIAL seconds."""
    child = pool.fork(_try, path)
    child.join()
    return child.exitcode == 0


def _try(path: str) -> None:
    """Runs as the process of `_is_survived`: loads and uses the model, then exits."""
    resource.setrlimit(resource.RLIMIT_CPU, (TRIAL, TRIAL))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the library's last words
    import ufal.udpipe as binding

    if model := binding.Model.load(path):
        tokenizer = model.newTokenizer("presegmented;ranges")
        sentence = binding.Sentence()
        if tokenizer is None:
            sentence.addWord("a")
        else:
            tokenizer.setText(SAMPLE)
            tokenizer.nextSentence(sentence)
        model.tag(sentence, "")
        model.parse(sentence, "")
    os._exit(0)
