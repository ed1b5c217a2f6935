"""What search knows of its prefixes beside their scores: what may come next, and their length.

Where targets are pieces, anything may follow. Where they are transitions, each prefix has the
state of the system behind it (trees/arc_standard.py, here as arrays over all prefixes), and
only what the system allows may follow, so that every translation is a tree. Lengths are in
pieces: transitions do not count. When the last piece that the limit leaves room for is there,
only arcs may follow, until the tree is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor

from synmt_cli.core.text.vocabulary import BOS, PAD, UNK
from synmt_cli.core.transitions.grammar import FEATURES, NO_LABEL, OTHER, Grammar
from synmt_cli.core.trees.arc_standard import NEVER, OPENING, PIECES, Move

SPECIAL = (UNK, PAD, BOS)  # not generated, but they keep their share of the probability
NOTHING = Move.FINISH  # as the last move: no word is open to more pieces


class PrefixProgress(Protocol):
    """Of B sources with K prefixes each."""

    @property
    def features(self) -> Mapping[str, Tensor]:
        """What a decoder may ask of the prefixes, each (B, K, T), BOS counted."""

    @property
    def lengths(self) -> Tensor:
        """(B, K): what counts of each prefix, without BOS."""

    @property
    def full(self) -> Tensor:
        """(B,) bool: where prefixes are so long that only their end may follow."""

    def counts(self, tokens: Tensor) -> Tensor:
        """(B, K') tokens -> by how much each would make a prefix longer; EOS by 1."""

    def forbid(self, each: Tensor) -> None:
        """each: (B, K, V), scores of the next token; makes those that may not come -inf."""

    def select(self, sources: Tensor, parents: Tensor, tokens: Tensor) -> None:
        """Drops sources, reorders prefixes, and makes them longer by a token.

        sources: (B',), the old index of each source that stays. parents: (B', K'), the old
        prefix of that source which each new one continues. tokens: (B', K'), by which.
        """


class Pieces:
    """Every token is a piece, and counts. limits: (B,), tokens at most, EOS counted."""

    features: Mapping[str, Tensor] = {}

    def __init__(self, limits: Tensor) -> None:
        self._limits, self._n_tokens = limits, 0
        self._shape: tuple[int, ...] = len(limits), 1

    @property
    def lengths(self) -> Tensor:
        """(B, K)."""
        return self._limits.new_full(self._shape, self._n_tokens)

    @property
    def full(self) -> Tensor:
        """(B,)."""
        return self._limits <= self._n_tokens + 1

    def counts(self, tokens: Tensor) -> Tensor:
        """1."""
        return torch.ones_like(tokens)

    def forbid(self, each: Tensor) -> None:
        """Special tokens are never written."""
        each[..., SPECIAL] = -torch.inf

    def select(self, sources: Tensor, parents: Tensor, tokens: Tensor) -> None:
        """All prefixes have one length."""
        self._limits, self._n_tokens = self._limits[sources], self._n_tokens + 1
        self._shape = parents.shape


class Derivations:
    """Every token is a piece or a transition; pieces count.

    limits: (B,), pieces at most, EOS counted. constrained: only what the system allows may
    follow; else anything may, and what is illegal draws nothing, as in the published code.
    """

    def __init__(self, grammar: Grammar, limits: Tensor, constrained: bool = True) -> None:
        device, n = limits.device, len(limits)
        self._moves = torch.from_numpy(grammar.moves).to(device)
        self._labels = torch.from_numpy(grammar.labels).to(device)
        self._split, self._constrained = grammar.split, constrained
        self._room = (limits - 1).clamp(min=1)  # pieces
        self._limits = limits
        zeros = limits.new_zeros(n, 1)
        self._n_pieces, self._n_words = zeros, zeros
        self._last = torch.full_like(zeros, NOTHING)
        self._direction = torch.full_like(zeros, OTHER)  # of an arc whose label is awaited
        # (B, K, T): begin and end of the words on the stack, from the bottom; FEATURES.
        self._begin, self._end = zeros[..., None], zeros[..., None]
        self._features = dict.fromkeys(FEATURES, zeros[..., None])
        self._features["arc"] = torch.full_like(zeros, NEVER)[..., None]

    @property
    def features(self) -> Mapping[str, Tensor]:
        """FEATURES of BOS and each token behind it, as `Grammar.features`."""
        return self._features

    @property
    def lengths(self) -> Tensor:
        """(B, K)."""
        return self._n_pieces

    @property
    def full(self) -> Tensor:
        """(B,). A legal prefix never is: a piece brings one GLUE and one arc of two at most."""
        return self._limits * 4 <= self._begin.size(2)

    def counts(self, tokens: Tensor) -> Tensor:
        """1 for pieces and EOS, 0 for transitions."""
        return _is(self._moves[tokens], (*PIECES, Move.FINISH)).long()

    def forbid(self, each: Tensor) -> None:
        """What the system does not allow; beyond the room for pieces, always pieces."""
        each[..., SPECIAL] = -torch.inf
        allowed = self._legal() if self._constrained else self._within()
        each.masked_fill_(~allowed[..., self._moves], -torch.inf)

    def _within(self) -> Tensor:
        """(B, K, moves) bool: every move, but pieces only where there is room for one."""
        allowed = torch.ones(*self._last.shape, OTHER + 1, dtype=torch.bool)
        allowed = allowed.to(self._last.device)
        allowed[..., OTHER] = False
        for move in PIECES:
            allowed[..., move] = self._n_pieces < self._room[:, None]
        return allowed

    def _legal(self) -> Tensor:
        """(B, K, moves) bool: what Configuration.allows, as far as there is room."""
        opened, left = self._opened(), self._room[:, None] - self._n_pieces
        free = ~opened & ~self._awaits_label()
        grown = opened | _is(self._last, PIECES)
        allowed = {
            Move.BEGIN: free & (left >= 1),
            Move.SPACE: free & (left >= 2),  # its word needs another
            Move.CONTINUE: grown & (left >= 1),
            Move.GLUE: free & (left >= 1) & (self._n_words >= 1),
            Move.LEFT: free & (self._n_words >= 2),
            Move.RIGHT: free & (self._n_words >= 2),
            Move.LABEL: self._awaits_label(),
            Move.FINISH: free & (self._n_words == 1),
        }
        never = torch.zeros_like(free)
        return torch.stack([allowed.get(move, never) for move in (*Move, OTHER)], dim=-1)

    def _opened(self) -> Tensor:
        return _is(self._last, OPENING)

    def _awaits_label(self) -> Tensor:
        return self._direction != OTHER

    def select(self, sources: Tensor, parents: Tensor, tokens: Tensor) -> None:
        """Takes the new tokens as Configuration.after_any does: what is legal is done."""
        place = sources[:, None]
        self._room, self._limits = self._room[sources], self._limits[sources]
        for name in ("_n_pieces", "_n_words", "_last", "_direction", "_begin", "_end"):
            setattr(self, name, getattr(self, name)[place, parents])
        self._features = {name: f[place, parents] for name, f in self._features.items()}
        self._advance(self._moves[tokens], self._labels[tokens])

    def _advance(self, move: Tensor, label: Tensor) -> None:
        is_piece = _is(move, PIECES)
        self._close(move, is_piece)
        opened, last, awaits = self._opened(), self._last, self._awaits_label()
        grows = is_piece & (opened | ((move == Move.CONTINUE) & _is(last, PIECES)))
        glues = (move == Move.GLUE) & (self._n_words >= 1) & ~opened
        is_arc = _is(move, (Move.LEFT, Move.RIGHT)) & (self._n_words >= 2)
        draws = (move == Move.LABEL) & awaits if self._split else is_arc
        direction = self._direction if self._split else move
        pushes = (is_piece & ~grows) | glues
        self._draw(draws, direction == Move.LEFT, label)
        self._write(pushes, grows)
        self._n_pieces = self._n_pieces + is_piece
        self._last = torch.where(is_piece | glues | draws | is_arc, move, NOTHING)
        self._direction = torch.where(is_arc, move, OTHER) if self._split else self._direction

    def _close(self, move: Tensor, is_piece: Tensor) -> None:
        """Gives up an opened word or a direction, as `Configuration.open_to` says."""
        dropped = self._opened() & ~is_piece
        given_up = self._awaits_label() & (move != Move.LABEL)
        self._n_words = self._n_words - dropped.long()
        self._last = torch.where(dropped | given_up, NOTHING, self._last)
        self._direction = torch.where(given_up, OTHER, self._direction)

    def _draw(self, draws: Tensor, leftward: Tensor, label: Tensor) -> None:
        """Draws the arcs of the newest token: pops two words, pushes the head."""
        newest = self._begin.size(2)
        self._begin, self._end = (_longer(x, 0) for x in (self._begin, self._end))
        top, below = self._word(1), self._word(2)
        head = [torch.where(leftward, a, b) for a, b in zip(top, below, strict=True)]
        begin, end = (torch.where(leftward, b, a) for a, b in zip(top, below, strict=True))
        place = torch.arange(newest + 1, device=begin.device)
        inside = (place >= begin[..., None]) & (place < end[..., None])
        attached = draws[..., None] & (inside | (place == newest))
        values = (torch.full_like(label, newest), *head, label)
        for name, value, nothing in zip(FEATURES, values, (NEVER, 0, 0, NO_LABEL), strict=True):
            old = _longer(self._features[name], nothing)
            self._features[name] = torch.where(attached, value[..., None], old)
        self._n_words = self._n_words - draws.long()
        self._put(draws, *head)

    def _word(self, depth: int) -> tuple[Tensor, Tensor]:
        """Begin and end of the word at this depth of the stack, 1 the top."""
        place = (self._n_words - depth).clamp(min=0)[..., None]
        return self._begin.gather(-1, place)[..., 0], self._end.gather(-1, place)[..., 0]

    def _put(self, where: Tensor, begin: Tensor, end: Tensor) -> None:
        """Writes the top of the stack."""
        place = (self._n_words - 1).clamp(min=0)[..., None]
        for stack, value in ((self._begin, begin), (self._end, end)):
            old = stack.gather(-1, place)
            stack.scatter_(-1, place, torch.where(where[..., None], value[..., None], old))

    def _write(self, pushes: Tensor, grows: Tensor) -> None:
        """Pushes the newest token as a word, or lets the top grow by it."""
        self._n_words = self._n_words + pushes.long()
        newest = torch.full_like(self._n_words, self._begin.size(2) - 1)
        begin = torch.where(pushes, newest, self._word(1)[0])
        self._put(pushes | grows, begin, newest + 1)


def _is(moves: Tensor, among: tuple[Move, ...]) -> Tensor:
    found = moves == among[0]
    for move in among[1:]:
        found = found | (moves == move)
    return found


def _longer(x: Tensor, value: int) -> Tensor:
    """(B, K, T) -> (B, K, T + 1)."""
    return torch.cat((x, torch.full_like(x[..., :1], value)), dim=-1)
