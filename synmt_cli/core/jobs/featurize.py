"""CoNLL-U to records: trees joined with the line, its pieces, its target, and features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from synmt_cli.core.segments.alignment import piece_words, record_of
from synmt_cli.core.segments.work import Done, Work, groups
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.core.transitions.linearizer import Linearizer
from synmt_cli.core.trees.features import EMITTED, MATRICES, PieceTree, tree_of
from synmt_cli.core.trees.heads import depths
from synmt_cli.errors import SynmtError
from synmt_cli.formats import conllu, record
from synmt_cli.formats.conllu import RawBlocks, Sentence
from synmt_cli.formats.record import Record
from synmt_cli.formats.transitions import is_symbol

LARGEST = 1_000_000  # values of one emitted feature that is not linear in the sentence


@dataclass(frozen=True, slots=True)
class Featurizer:
    """What to add to the trees. emit: names of EMITTED, written in this order.

    linearizer: what makes transitions of targets that are trees.
    """

    source: Vocabulary | None = None
    target: Vocabulary | None = None
    emit: tuple[str, ...] = ()
    strict: bool = False
    linearizer: Linearizer = field(default_factory=Linearizer)

    @property
    def fingerprint(self) -> str | None:
        """What the records say about the vocabulary: `SRC`, or `SRC+TGT` if they differ."""
        if self.source is None:
            return None
        if self.target is None or self.target.fingerprint == self.source.fingerprint:
            return self.source.fingerprint
        return f"{self.source.fingerprint}+{self.target.fingerprint}"

    def record(self, sentences: Sequence[Sentence], id: str, target: str | None = None) -> Record:
        """The record of one line. id: for a line whose comments give none."""
        found, tokens = record_of(sentences, id)
        if self.source is not None:
            found.pieces, offsets = self.source.encode(found.src)
            found.piece_word = piece_words(offsets, tokens.spans, tokens.first_words)
            found.vocab = self.fingerprint
        self._add_target(found, target)
        if self.emit:
            self._add_features(found)
        return found

    def text(self, line: str, id: str, target: str | None = None) -> Record:
        """The record of a line without a tree."""
        found = Record(id, line, "empty" if not line.strip() else "ok")
        if self.source is not None:
            found.pieces = self.source.pieces(line)
            found.piece_word = [-1] * len(found.pieces)
            found.vocab = self.fingerprint
        self._add_target(found, target)
        return found

    def _add_target(self, found: Record, target: str | None) -> None:
        if target is not None:
            found.tgt = target
            vocabulary = self.target or self.source
            found.tgt_pieces = None if vocabulary is None else vocabulary.pieces(target)

    def _add_features(self, found: Record) -> None:
        tree = tree_of(found)
        for name in self.emit:
            if (n := _n_values(name, tree)) > LARGEST:
                found.status = "skipped"
                found.reason = f"{name} has {n:,} values, at most {LARGEST:,} are written"
                return
        for name in self.emit:
            found.extra[name] = EMITTED[name](tree)

    def run(self, work: Work) -> Done:
        """The records of a batch. Never raises a SynmtError: what was done before it counts."""
        done = Done()
        try:
            lines = groups(conllu.sentences(work.batch), work.sizes)
            targets = iter(work.targets) if work.targets is not None else None
            for number, sentences in enumerate(lines, work.first):
                target = None
                if targets is not None and (target := next(targets, None)) is None:
                    break
                text = target if isinstance(target, str) else None
                found = self.record(sentences, str(number), text)
                place = sentences[0].source, sentences[0].line
                if isinstance(target, RawBlocks) and self._add_tree(found, target, done):
                    place = target.source, target.line
                done.count(found.status, found.reason, place, self.strict)
                done.lines.append(record.to_bytes(found))
        except SynmtError as error:
            done.error = error
        return done

    def _add_tree(self, found: Record, target: RawBlocks, done: Done) -> bool:
        """Adds a target that has a tree. Returns whether the record fails for it alone."""
        sentences = list(conllu.sentences(target))
        self._add_target(found, record_of(sentences, found.id)[0].src)
        linear = self.linearizer.linearize(sentences)
        done.count_lifted(linear.n_lifted)
        if linear.reason is None:
            found.transitions = linear.tokens
            if (vocabulary := self.linearizer.vocabulary) is not None:
                unknown = filter(is_symbol, set(linear.tokens).difference(vocabulary.symbols))
                done.unknown.update(unknown)
        elif found.status in ("ok", "empty"):
            found.status, found.reason = linear.status, f"target: {linear.reason}"
            return True
        return False


def _n_values(name: str, tree: PieceTree) -> int:
    n = len(tree.piece_word)
    if name in MATRICES:
        return n * n
    if name == "path":
        of_word = [*depths(tree.heads), -1]
        return sum(of_word[word] + 1 for word in tree.piece_word)
    return n
