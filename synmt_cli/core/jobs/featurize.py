"""CoNLL-U or text to records: trees joined with the line, its pieces, its target, and features."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from synmt_cli.core.jobs.done import Done, do
from synmt_cli.core.jobs.work import Work, contents
from synmt_cli.core.segments.alignment import piece_words, record_of
from synmt_cli.core.segments.bad_trees import INSTEAD, OnBadTree
from synmt_cli.core.text.vocabulary import Vocabularies, Vocabulary
from synmt_cli.core.transitions.linearizer import Linearized, Linearizer
from synmt_cli.core.trees.features import EMITTED, MATRICES, PieceTree, tree_of
from synmt_cli.core.trees.heads import depths
from synmt_cli.formats import conllu, record
from synmt_cli.formats.conllu import RawBlocks, Sentence
from synmt_cli.formats.record import EMPTY, NO_WORD, OK, SKIPPED, Record
from synmt_cli.formats.transitions import is_symbol

LARGEST = 1_000_000  # values of one emitted feature that is not linear in the sentence


@dataclass(frozen=True, slots=True)
class Featurizer:
    """Makes records from trees or text. emit: names of EMITTED, written in this order.

    linearizer: makes transitions from targets that are trees. on_bad_tree: holds for both sides.
    """

    source: Vocabulary | None = None
    target: Vocabulary | None = None
    emit: tuple[str, ...] = ()
    strict: bool = False
    linearizer: Linearizer = field(default_factory=Linearizer)
    on_bad_tree: OnBadTree = "error"

    @property
    def fingerprint(self) -> str | None:
        """The vocabulary as records state it: `SRC`, or `SRC+TGT` if they differ."""
        if self.source is None:
            return None
        return Vocabularies(self.source, self.target or self.source).fingerprint

    def of_trees(
        self,
        sentences: Sequence[Sentence],
        id: str,
        target: str | Sequence[Sentence] | None = None,
    ) -> Record:
        """The record of one line.

        id: for a line whose comments give none. target: its text, or its trees, from which the
        record also gets transitions. Raises DataError as `Linearizer.linearize` does, and
        ValueError without sentences.
        """
        one, tokens = record_of(sentences, id)
        if self.source is not None:
            one.pieces, offsets = self.source.encode(one.src)
            one.piece_word = piece_words(offsets, tokens.spans, tokens.first_words)
            one.vocab = self.fingerprint
        if target is None or isinstance(target, str):
            self._add_target(one, target)
        if self.emit:
            self._add_features(one)
        if target is not None and not isinstance(target, str):
            self._add_tree(one, target)
        return one

    def of_text(self, line: str, id: str, target: str | None = None) -> Record:
        """The record of a line without a tree."""
        one = Record(id, line, EMPTY if not line.strip() else OK)
        if self.source is not None:
            one.pieces = self.source.pieces(line)
            one.piece_word = [NO_WORD] * len(one.pieces)
            one.vocab = self.fingerprint
        self._add_target(one, target)
        return one

    def _add_target(self, one: Record, target: str | None) -> None:
        if target is not None:
            one.tgt = target
            vocabulary = self.target or self.source
            one.tgt_pieces = None if vocabulary is None else vocabulary.pieces(target)

    def _add_features(self, one: Record) -> None:
        tree = tree_of(one)
        for name in self.emit:
            if (n := _n_values(name, tree)) > LARGEST:
                if one.status == OK:
                    one.status = SKIPPED
                    one.reason = f"{name} has {n:,} values, at most {LARGEST:,} are written"
                return
        for name in self.emit:
            one.extra[name] = EMITTED[name](tree)

    def run(self, work: Work) -> Done:
        """The records of some work. Never raises a SynmtError: the result keeps it."""
        return do(self._lines, work)

    def _lines(self, work: Work, done: Done) -> Iterator[bytes]:
        targets = iter(work.targets) if work.targets is not None else None
        for number, content in contents(work, self.on_bad_tree):
            target = None
            if targets is not None and (target := next(targets, None)) is None:
                break
            text = target if isinstance(target, str) else None
            if isinstance(content, str):
                one = self.of_text(content, str(number), text)
                place = work.batch.source, work.batch.line
            else:
                one = self.of_trees(content, str(number), text)
                place = content[0].source, content[0].line
            if isinstance(target, RawBlocks) and self._add_blocks(one, target, done):
                place = target.source, target.line
            done.count(one.status, one.reason, place, self.strict)
            yield record.to_bytes(one)

    def _add_blocks(self, one: Record, target: RawBlocks, done: Done) -> bool:
        """Adds a target that has a tree. Returns whether only the target makes the record fail."""
        sentences = list(conllu.sentences(target, instead=INSTEAD[self.on_bad_tree]))
        had_tree = one.status in (OK, EMPTY)
        linear = self._add_tree(one, sentences)
        done.count_lifted(linear.n_lifted)
        if linear.reason is None and (vocabulary := self.linearizer.vocabulary) is not None:
            unknown = set(linear.tokens).difference(vocabulary.symbols)
            done.unknown.update(t for t in linear.tokens if t in unknown and is_symbol(t))
        return linear.reason is not None and had_tree

    def _add_tree(self, one: Record, target: Sequence[Sentence]) -> Linearized:
        """Adds a target that has a tree, or its reason for having no transitions."""
        self._add_target(one, record_of(target, one.id)[0].src)
        linear = self.linearizer.linearize(target)
        if linear.reason is None:
            one.transitions = linear.tokens
        elif one.status in (OK, EMPTY):
            one.status, one.reason = linear.status, f"target: {linear.reason}"
        return linear


def _n_values(name: str, tree: PieceTree) -> int:
    n = len(tree.piece_word)
    if name in MATRICES:
        return n * n
    if name == "path":
        of_word = [*depths(tree.heads), -1]
        return sum(of_word[word] + 1 for word in tree.piece_word)
    return n
