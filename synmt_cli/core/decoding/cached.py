"""A model's next token from remembered keys and values: each step reads one token.

Right for every decoder in which a known token sees only earlier ones. The source's keys and
values are computed once, and the K prefixes of a source are K queries against them. Their own
tokens are remembered in the same way: the keys and values of a token stay where they were written,
in slot k of their position, and every prefix knows in which slot each of its tokens lies. So
nothing is copied when prefixes change places, and attention to the prefix is K queries against
the T * K tokens of the source, of which each query sees its own.
"""

from functools import partial

import torch
from torch import Tensor

from synmt_cli.core.decoding.places import Stay, lengthened, widened
from synmt_cli.core.decoding.scorer import Prefixes, SourceStates
from synmt_cli.core.decoding.supply import Sources
from synmt_cli.core.model.attention import (
    SelfAttention,
    additive_mask,
    fused_attention,
    join_heads,
    split_heads,
)
from synmt_cli.core.model.modifier import Active
from synmt_cli.core.model.transformer import Transformer


class CachedScorer:
    """A Scorer of one model. number: of the model in an ensemble.

    Decoder modifiers are given the whole prefix, with Tq = 1.
    """

    def __init__(self, model: Transformer, number: int = 0) -> None:
        self._model = model
        self._number = number
        self.reads_prefixes = len(model.decoder.modifiers) > 0
        self._sources = SourceStates()
        # Keys and values of all layers are one tensor, which moves in one operation: (layers, 2,
        # room for B, H, room for T, K, D / H). Zero at first: what is not seen has weight 0, but
        # 0 * NaN is not 0.
        self._prefixes = model.output.weight.new_empty(0, 2, 0, 0, 0, 0, 0)
        self._slots = self._prefixes.new_empty(0, 0, 0, dtype=torch.long)  # (B, K, room for T)

    def enter(self, places: Tensor, n: int, width: int, new: Sources) -> None:
        """The sources' keys and values; those of former prefixes are not seen."""
        self._sources.enter(places, n, width, new, self._number)

    def step(self, prefixes: Prefixes) -> Tensor:
        """Log-probabilities (B, K, V)."""
        logits = self._model.logits(self._model.decoder.norm(self._states(prefixes)))
        return logits.log_softmax(-1, dtype=torch.float32)

    def read(self, prefixes: Prefixes) -> None:
        """Remembers the newest tokens."""
        self._states(prefixes)

    def _states(self, prefixes: Prefixes) -> Tensor:
        """The last layer's states of the newest tokens, (B, K, D)."""
        n_sources, n_beams = prefixes.newest.shape
        decoder, width = self._model.decoder, prefixes.width
        both, allowed = self._sources.seen(prefixes.source_width)
        self._make_room(n_sources, width, n_beams, both)
        at = prefixes.at  # (B,), the position of the newest token
        place = torch.arange(n_sources, device=at.device)
        written = place, at
        slots = torch.arange(n_beams, device=at.device)
        self._slots[place, :, at] = slots
        aligned = Aligned(prefixes, self._slots) if self.reads_prefixes else None
        active = decoder.prepare(aligned.side) if aligned else []
        positions = at[:, None].expand(-1, n_beams).flatten()[:, None]  # (B * K, 1)
        x = decoder.embedding(prefixes.newest.flatten()[:, None], active, positions, width)
        x = x.view(n_sources, n_beams, -1)  # (B, K, D)
        seen = self._seen(prefixes, slots)
        for layer, source, prefix in zip(decoder.layers, both, self._prefixes, strict=True):
            attend = partial(self._attend, layer.attention, prefix, written, seen, active, aligned)
            x = layer.step(x, attend, (source[0], source[1]), allowed)
        return x

    def _attend(
        self,
        attention: SelfAttention,
        prefix: Tensor,
        written: tuple[Tensor, Tensor],
        seen: Tensor,
        active: list[Active],
        aligned: "Aligned | None",
        x: Tensor,
    ) -> Tensor:
        """The newest token of each prefix attends to all of its tokens, itself included.

        x: (B, K, D) -> (B, K, D). prefix: (2, room for B, H, room for T, K, D / H), filled here at
        the places and positions `written`. seen: (B, 1, K, T * K).
        """
        n_sources, n_beams, _ = x.shape
        q, newest = attention.project_apart(x)  # (B, K, D), (B, K, 2, D)
        place, position = written
        newest = newest.unflatten(-1, (attention.n_heads, -1))  # (B, K, 2, H, D / H)
        prefix[:, place, :, position] = newest.permute(0, 2, 3, 1, 4)
        if aligned is None or not attention.modified_by(active):
            width = seen.size(-1) // n_beams
            k, v = prefix[:, :n_sources, :, :width].flatten(3, 4)  # (B, H, T * K, D / H) each
            heads = split_heads(q, attention.n_heads)
            return attention.out(join_heads(fused_attention(heads, k, v, seen, 0.0, False)))
        k, v = aligned.of(prefix)  # (B * K, T, D) each
        q, one = q.flatten(0, 1)[:, None], x.flatten(0, 1)[:, None]  # (B * K, 1, D)
        return attention.attend(one, q, k, v, aligned.mask, False, active).view_as(x)

    def _seen(self, prefixes: Prefixes, slots: Tensor) -> Tensor:
        """(B, 1, K, T * K), 0 at a prefix's own tokens, else -inf."""
        seen = prefixes.known[:, None]  # (B, 1, T)
        if len(slots) > 1:
            own = self._slots[..., : prefixes.width, None] == slots  # (B, K, T, K)
            seen = (own & seen[..., None]).flatten(2)
        return additive_mask(seen[:, None], self._prefixes)

    def _make_room(self, n_sources: int, width: int, n_beams: int, like: Tensor) -> None:
        _, _, n_old, _, capacity, *_ = self._prefixes.shape
        if not len(self._slots):
            self._slots = self._slots.new_zeros(n_sources, n_beams, width)
        self._slots = widened(lengthened(self._slots, n_sources), width, 0)
        if n_sources <= n_old and width <= capacity:
            return
        old = self._prefixes
        n_layers, _, _, n_heads, _, size = like.shape
        n_sources = max(n_sources, n_old)
        width = max(width, 2 * capacity) if width > capacity else capacity
        shape = n_layers, 2, n_sources, n_heads, width, n_beams, size
        self._prefixes = like.new_zeros(shape)
        if n_old:
            self._prefixes[:, :, :n_old, :, :capacity] = old

    def select(self, stay: Stay, parents: Tensor | None) -> None:
        """Moves sources into the places of those that left; tokens stay in their slots."""
        self._slots = stay.pick(self._slots, parents)
        self._sources.select(stay)
        if not stay.is_all:
            used = self._slots.size(2)  # positions
            stay.move(self._prefixes[:, :, :, :, :used].transpose(0, 2))


class Aligned:
    """Prefixes one in a row, as modifiers read them: the newest tokens in the last column.

    side: (B * K, T). mask: (B * K, 1, 1, T) bool, where there is a token.
    """

    def __init__(self, prefixes: Prefixes, slots: Tensor) -> None:
        self.side, mask, positions = prefixes.aligned()
        n_beams = prefixes.newest.size(1)
        self.mask = mask[:, None].expand(-1, n_beams, -1).flatten(0, 1)[:, None, None]
        self._positions = positions[:, None]  # (B, 1, T)
        self._slots = slots.gather(2, self._positions.expand(-1, n_beams, -1))  # (B, K, T)
        self._place = torch.arange(len(slots), device=slots.device)[:, None, None]

    def of(self, prefix: Tensor) -> tuple[Tensor, Tensor]:
        """prefix: (2, room for B, H, room for T, K, D / H) -> k and v, (B * K, T, D) each."""
        both = prefix[:, self._place, :, self._positions, self._slots]  # (B, K, T, 2, H, D / H)
        k, v = both.flatten(0, 1).flatten(3).unbind(2)
        return k, v
