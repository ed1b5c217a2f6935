"""The progress of prefixes in search: which tokens may come next, and how long a prefix is.

Prefixes of several sources may have different numbers of tokens; those of one source have the same.

Where targets are pieces, any token may follow. Where they are transitions, each prefix has led
the transition system to a configuration (trees/arc_standard.py, here as arrays over all
prefixes), and only tokens that the system allows may follow, or the end: where it comes before
there is one tree, closing.py completes it. Lengths are in pieces: transitions do not count. After
the last piece for which the limit leaves room, only arcs and the end may follow.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from synmt_cli.core.decoding.batching.places import Stay, lengthened, widened
from synmt_cli.core.model.moving import moved
from synmt_cli.core.text.vocabulary import BOS, PAD, UNK
from synmt_cli.core.transitions.grammar import FEATURES, NO_LABEL, OTHER, Grammar
from synmt_cli.core.trees.arc_standard import NEVER, OPENING, PIECES, Move

SPECIAL = (UNK, PAD, BOS)  # never generated, but they keep their share of the probability
# These are the first ids, and a slice is on any device: a list would be copied to it.
assert max(SPECIAL) == len(SPECIAL) - 1
NOTHING = Move.FINISH  # as the last move: no word is open to more pieces
# What is known of a new prefix: pieces, words on the stack, last move, direction of an arc.
_FRESH = {"_n_pieces": 0, "_n_words": 0, "_last": NOTHING, "_direction": OTHER}
_NOTHING = dict(zip(FEATURES, (NEVER, 0, 0, NO_LABEL), strict=True))  # of a token without an arc


class PieceProgress:
    """The progress of B sources with K prefixes each, none at first. Every token is a piece.

    So the host knows how long prefixes are: nothing is kept, and the device is not asked.
    features: of the prefixes, as decoders may read them, each (B, K, T), BOS counted, arbitrary
    after the last token. reads_parents: whether `select` reads `parents`.
    """

    features: dict[str, Tensor]
    tokens_per_piece = 1  # the most tokens that legal prefixes have for each piece
    reads_parents = False

    def __init__(self) -> None:
        self.features = {}

    def enter(self, places: Tensor, n: int, limits: Sequence[int]) -> None:
        """Puts new sources into these places, out of n, each with BOS.

        limits: the most pieces of each source's prefixes, EOS counted.
        """

    def lengths(self, tokens: Tensor) -> tuple[Tensor, ...]:
        """The lengths of the prefixes, without BOS, and what some next tokens would add.

        tokens: (B, K'). Returns (B, K), the length of each prefix; and (B, K'), how much each
        token would add to it, 1 for EOS. Returns an empty tuple where every token counts.
        """
        return ()

    def forbid(self, log_probs: Tensor) -> None:
        """Sets tokens that may not come next to -inf. log_probs: (B, K, V), of the next token."""
        log_probs[..., : len(SPECIAL)].fill_(-torch.inf)

    def select(
        self, stay: Stay, parents: Tensor | None, tokens: Tensor, at: Tensor, width: int
    ) -> None:
        """Drops sources, reorders prefixes, and makes them longer by a token.

        parents: (B', K), for each source that stays, the old prefix that each new one continues;
        None: each its own. tokens: (B', K), the new tokens. at: (B',), their position, BOS being
        at 0. width: at least the length of the longest prefix, BOS counted.
        """


class TransitionProgress(PieceProgress):
    """Every token is a piece or a transition; only pieces count.

    Limits are the most pieces, EOS counted. features: FEATURES of BOS and each token after it, as
    in `Grammar.features`, if with_features. constrained: only tokens that the system allows may
    follow, and EOS after any whole word; otherwise any arc or EOS may, and any piece while there
    is room, and illegal tokens draw no arc, as in the published code. closing: only arcs may
    follow until there is one tree, and then EOS.
    """

    reads_parents = True
    tokens_per_piece = 4  # a piece, at most one GLUE, and an arc of two tokens

    def __init__(
        self,
        n_beams: int,
        device: torch.device,
        grammar: Grammar,
        constrained: bool = True,
        closing: bool = False,
        with_features: bool = True,
    ) -> None:
        super().__init__()
        self._moves = moved(torch.from_numpy(grammar.moves), device)
        self._labels = moved(torch.from_numpy(grammar.labels), device)
        self._split = grammar.split
        self._constrained = constrained
        self._closing = closing
        zeros = torch.zeros(0, n_beams, dtype=torch.long, device=device)  # (B, K)
        self._limits = zeros[:, 0]  # (B,)
        self._n_pieces = zeros
        self._n_words = zeros  # on the stack
        self._last = zeros  # move
        self._direction = zeros  # of an arc whose label is awaited
        # (B, K, room for T): begin and end of the words on the stack, from the bottom; FEATURES.
        self._begin = self._end = zeros[..., None]
        self.features = dict.fromkeys(FEATURES, zeros[..., None]) if with_features else {}
        self._penalties = _penalties(self._moves)  # (patterns, V)
        self._powers = 2 ** torch.arange(len(Move), device=device)

    def enter(self, places: Tensor, n: int, limits: Sequence[int]) -> None:
        """Puts new sources into these places, with empty stacks."""
        self._limits = lengthened(self._limits, n)
        self._limits[places] = moved(torch.tensor(limits), self._limits.device)
        for name, value in _FRESH.items():
            setattr(self, name, lengthened(getattr(self, name), n).index_fill(0, places, value))
        self._begin, self._end = (lengthened(x, n) for x in (self._begin, self._end))
        for name, own in self.features.items():
            self.features[name] = lengthened(own, n).index_fill(0, places, _NOTHING[name])

    def lengths(self, tokens: Tensor) -> tuple[Tensor, ...]:
        """Pieces and EOS count, transitions do not."""
        return self._n_pieces, _is(self._moves[tokens], (*PIECES, Move.FINISH)).long()

    def forbid(self, log_probs: Tensor) -> None:
        """Forbids what the system does not allow, and pieces where there is no room for one."""
        if self._closing:
            allowed = self._completing()
        else:
            allowed = self._legal() if self._constrained else self._within_limit()
        pattern = (allowed * self._powers).sum(-1)  # (B, K)
        # A row for each set of moves: a gather over (B, K, V) takes as long as the output layer.
        log_probs += self._penalties.index_select(0, pattern.flatten()).view_as(log_probs)

    def _room(self) -> Tensor:
        """(B, K): how many more pieces each prefix may have."""
        return (self._limits - 1).clamp(min=1)[:, None] - self._n_pieces

    def _within_limit(self) -> Tensor:
        """(B, K, moves) bool: every move, but pieces only where there is room for one."""
        shape = *self._last.shape, len(Move)
        allowed = torch.ones(shape, dtype=torch.bool, device=self._last.device)
        for move in PIECES:
            allowed[..., move] = self._room() > 0
        return allowed

    def _legal(self) -> Tensor:
        """(B, K, moves) bool: the moves that Configuration.allows and that have room, or the end.

        The end may come as soon as there is a word, unless an opened word awaits its first piece;
        closing.py adds what the tree then lacks, even the label of its last arc.
        """
        opened, room = self._opened(), self._room()
        free = ~opened & ~self._awaits_label()
        grown = opened | _is(self._last, PIECES)
        allowed = {
            Move.BEGIN: free & (room >= 1),
            Move.SPACE: free & (room >= 2),  # its word needs another piece
            Move.CONTINUE: grown & (room >= 1),
            Move.GLUE: free & (room >= 1) & (self._n_words >= 1),
            Move.LEFT: free & (self._n_words >= 2),
            Move.RIGHT: free & (self._n_words >= 2),
            Move.LABEL: self._awaits_label(),
            Move.FINISH: ~opened & (self._n_words >= 1),
        }
        return _by_move(allowed)

    def _completing(self) -> Tensor:
        """(B, K, moves) bool: the moves of `_legal` that add no word, and the end of a tree."""
        awaits = self._awaits_label()
        several = ~awaits & (self._n_words >= 2)
        return _by_move(
            {
                Move.LEFT: several,
                Move.RIGHT: several,
                Move.LABEL: awaits,
                Move.FINISH: ~awaits & ~several,
            }
        )

    def _opened(self) -> Tensor:
        return _is(self._last, OPENING)

    def _awaits_label(self) -> Tensor:
        return self._direction != OTHER

    def select(
        self, stay: Stay, parents: Tensor | None, tokens: Tensor, at: Tensor, width: int
    ) -> None:
        """Takes the new tokens as Configuration.after_any does, which passes over illegal moves."""
        self._limits = stay.pick(self._limits)
        for name in (*_FRESH, "_begin", "_end"):
            setattr(self, name, stay.pick(getattr(self, name), parents))
        self.features = {name: stay.pick(f, parents) for name, f in self.features.items()}
        self._begin, self._end = (widened(x, width, 0) for x in (self._begin, self._end))
        for name, value in _NOTHING.items():
            if name in self.features:
                self.features[name] = widened(self.features[name], width, value)
        self._advance(self._moves[tokens], self._labels[tokens], at[:, None].expand_as(tokens))

    def _advance(self, move: Tensor, label: Tensor, newest: Tensor) -> None:
        """Makes the moves of new tokens. newest: (B, K), their positions."""
        is_piece = _is(move, PIECES)
        self._close(move, is_piece)
        opened, last, awaits = self._opened(), self._last, self._awaits_label()
        grows = is_piece & (opened | ((move == Move.CONTINUE) & _is(last, PIECES)))
        glues = (move == Move.GLUE) & (self._n_words >= 1) & ~opened
        is_arc = _is(move, (Move.LEFT, Move.RIGHT)) & (self._n_words >= 2)
        draws = (move == Move.LABEL) & awaits if self._split else is_arc
        direction = self._direction if self._split else move
        pushes = (is_piece & ~grows) | glues
        self._draw(draws, direction == Move.LEFT, label, newest)
        self._write(pushes, grows, newest)
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

    def _draw(self, draws: Tensor, leftward: Tensor, label: Tensor, newest: Tensor) -> None:
        """Draws the arcs of the newest token: pops two words, pushes the head."""
        top, second = self._word(1), self._word(2)  # begin and end, (B, K) each
        head = [torch.where(leftward, a, b) for a, b in zip(top, second, strict=True)]
        begin, end = (torch.where(leftward, b, a) for a, b in zip(top, second, strict=True))
        if self.features:
            place = torch.arange(self._begin.size(2), device=begin.device)
            dependent = (place >= begin[..., None]) & (place < end[..., None])  # (B, K, T)
            attached = draws[..., None] & (dependent | (place == newest[..., None]))
            for name, value in zip(FEATURES, (newest, *head, label), strict=True):
                old = self.features[name]
                self.features[name] = torch.where(attached, value[..., None], old)
        self._n_words = self._n_words - draws.long()
        self._put(draws, *head)

    def _word(self, depth: int) -> tuple[Tensor, Tensor]:
        """Begin and end of the word at this depth of the stack, 1 the top."""
        place = (self._n_words - depth).clamp(min=0)[..., None]  # (B, K, 1)
        return self._begin.gather(-1, place)[..., 0], self._end.gather(-1, place)[..., 0]

    def _put(self, where: Tensor, begin: Tensor, end: Tensor) -> None:
        """Writes the top of the stack."""
        place = (self._n_words - 1).clamp(min=0)[..., None]
        for stack, value in ((self._begin, begin), (self._end, end)):
            old = stack.gather(-1, place)
            stack.scatter_(-1, place, torch.where(where[..., None], value[..., None], old))

    def _write(self, pushes: Tensor, grows: Tensor, newest: Tensor) -> None:
        """Pushes the newest token as a word, or lets the top grow by it."""
        self._n_words = self._n_words + pushes.long()
        begin = torch.where(pushes, newest, self._word(1)[0])
        self._put(pushes | grows, begin, newest + 1)


def _by_move(allowed: dict[Move, Tensor]) -> Tensor:
    """(B, K) bool for some moves -> (B, K, moves), False for all others."""
    never = torch.zeros_like(allowed[Move.FINISH])
    return torch.stack([allowed.get(move, never) for move in Move], dim=-1)


def _penalties(moves: Tensor) -> Tensor:
    """moves: (V,) -> (2^moves, V): for each set of moves, 0 for tokens with one of them, else -inf.

    A set is a number with a bit for each move.
    """
    sets = torch.arange(2 ** len(Move), device=moves.device)[:, None]
    is_allowed = ((sets >> moves) & 1).bool()  # no set has OTHER
    is_allowed[:, : len(SPECIAL)] = False
    return torch.zeros(is_allowed.shape, device=moves.device).masked_fill_(~is_allowed, -torch.inf)


def _is(moves: Tensor, among: tuple[Move, ...]) -> Tensor:
    """Whether each move is one of several, bool."""
    is_one = moves == among[0]
    for move in among[1:]:
        is_one = is_one | (moves == move)
    return is_one
