"""The one interface through which a variant changes the Transformer.

    x  = inputs(tokens(E[w] * sqrt(d)) + positions(PE))      once per stack
    A  = softmax(visible(mask(scores(Q K^T / sqrt(d_head) + added))))  per layer in `layers`
    C  = context(A V)                                        per layer in `layers`
    L  = L_translation + sum of loss()                       once per batch, sums over tokens

Every hook returns what it was given unless a subclass says otherwise, so a variant's
module holds its paper's equations and nothing else.

Attention takes one kernel where nothing happens between its steps. `added` and `visible` keep it
so; `related` has a fused form of its own (relations.py); `scores` and `context` make it eager.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt_cli.core.model.moving import moved
from synmt_cli.core.model.relations import Related
from synmt_cli.core.text.vocabulary import PAD


@dataclass(frozen=True)
class Paths:
    """The distinct label paths of a batch and all their prefixes, as a tree of prefixes.

    Rows are sorted by length; row 0 is the empty path. labels: (P,) the id of the last label.
    shorter: (P,) the row of the path without it. sizes: how many rows have 0, 1, 2 ... labels.
    whole: (N, L), the same tree as sequences: column l is one of the L paths that no other
    continues, given as the rows of its prefixes, short to long, then 0. places: (P,), a place in
    these sequences where each path ends, as an index of ((N + 1) * L,): L beginnings come first.
    """

    labels: Tensor
    shorter: Tensor
    sizes: Sequence[int]
    whole: Tensor
    places: Tensor

    def to(self, device: torch.device | str) -> Paths:
        """The same paths on a device."""
        tensors = self.labels, self.shorter, self.whole, self.places
        labels, shorter, whole, places = (moved(x, device) for x in tensors)
        return Paths(labels, shorter, self.sizes, whole, places)


@dataclass(frozen=True)
class Side:
    """One side of a batch: source tokens, or the target prefix known so far.

    ids: (B, T) token ids, padded on the right.
    pad: (B, T) bool, True at padding; None when no row is padded, so that no layer needs a
        mask. Decided where the batch is made, so that no device has to be asked.
    features: name -> (B, T). `path` is a row of `paths`.
    is_single: whether no row has words of two sentences, as far as that is known.
    lengths: of the rows without padding, in tokens; empty where the host does not know them.
    """

    ids: Tensor
    pad: Tensor | None = None
    features: Mapping[str, Tensor] = field(default_factory=dict)
    paths: Paths | None = None
    is_single: bool = False
    lengths: Sequence[int] = ()

    @property
    def allowed(self) -> Tensor | None:
        """The mask of attention, (B, 1, 1, T) bool, True at tokens; None allows everything."""
        return None if self.pad is None else ~self.pad[:, None, None, :]

    @property
    def same_sentence(self) -> Tensor:
        """Which pairs of tokens are in the tree of the same sentence, (B, T, T) bool.

        From the feature `sentence`; what it says of padding never matters.
        """
        sentence = self.features["sentence"]  # (B, T)
        return (sentence[:, :, None] == sentence[:, None, :]) & (sentence >= 0)[:, :, None]

    def flat(self) -> Side:
        """The same prefixes, with ids of shape (B * K, T) instead of (B, K, T)."""
        features = {name: values.flatten(0, 1) for name, values in self.features.items()}
        return Side(self.ids.flatten(0, 1), features=features)

    def widened(self, width: int) -> Side:
        """The same side with padding up to `width` tokens."""
        missing = (0, width - self.ids.size(1))
        pad = torch.zeros_like(self.ids, dtype=torch.bool) if self.pad is None else self.pad
        features = {name: F.pad(values, missing) for name, values in self.features.items()}
        pad = F.pad(pad, missing, value=True)
        ids = F.pad(self.ids, missing, value=PAD)
        return replace(self, ids=ids, pad=pad, features=features)

    def __getitem__(self, index: Any) -> Side:
        """The ids and features at an index of (B, T), as `side[rows, :n]`: no `pad` or `paths`.

        `side[rows, :n]` is the first n tokens of rows that are all at least that long, as if no
        more were known.
        """
        features = {name: values[index] for name, values in self.features.items()}
        return Side(self.ids[index], features=features)


class Site(NamedTuple):
    """The place where an attention hook is called.

    Tq = T, or 1 when decoding step by step: the queries are the last Tq of the T tokens,
    and `prepare` was given all T.
    """

    layer: int  # 0 is the bottom layer
    x: Tensor  # (B, Tq, D) what queries and keys are made of
    q: Tensor  # (B, H, Tq, D / H)
    k: Tensor  # (B, H, T, D / H)


class Dot(NamedTuple):
    """A second dot product, scaled like that of queries and keys.

    q: (B, H, Tq, D'). k: (B, H, T, D').
    """

    q: Tensor
    k: Tensor


class Modifier(nn.Module):
    """A change to one stack (encoder or decoder). Subclass and override hooks.

    layers: the layers whose attention it changes, 0 the bottom one. name: of the variant.

    State lives in the object that `prepare` returns, one per forward pass, never on the
    module: the same modifier can then serve training and beam search.
    """

    name: str = ""
    needs: tuple[str, ...] = ()  # names of the features that `prepare` reads
    learns: tuple[str, ...] = ()  # the needs that only `loss` reads: translation lacks them
    replaces: frozenset[int] = frozenset()  # heads whose scores it computes anew in its layers

    def __init__(self, layers: Iterable[int] = ()) -> None:
        super().__init__()
        self.layers = frozenset(layers)

    def scaled(self, layer: int) -> frozenset[int]:
        """The heads whose scores it multiplies in a layer."""
        return frozenset()

    @property
    def changes_scores(self) -> bool:
        """Whether it may change attention scores in its layers, apart from the mask."""
        return any(map(self.overrides, ("scores", "added", "related")))

    def overrides(self, hook: str) -> bool:
        """Whether the variant has a hook of its own."""
        return getattr(type(self), hook) is not getattr(Modifier, hook)

    def prepare(self, side: Side) -> Any:
        """Work that depends only on the batch, e.g. a (B, T, T) distance."""
        return None

    def tokens(self, state: Any, x: Tensor) -> Tensor:
        """Scaled token embeddings, (B, T, D)."""
        return x

    def positions(self, state: Any, p: Tensor) -> Tensor:
        """Positional encodings, (1 or B, T, D)."""
        return p

    def inputs(self, state: Any, x: Tensor) -> Tensor:
        """The first layer's input, (B, T, D)."""
        return x

    def scores(self, state: Any, site: Site, scores: Tensor) -> Tensor:
        """Scaled scores before the mask and the softmax, (B, H, Tq, T)."""
        return scores

    def added(self, state: Any, site: Site) -> Tensor | Dot | None:
        """A summand of the scaled scores: numbers that broadcast to (B, H, Tq, T), or a Dot.

        Attention that only this hook changes keeps its fused kernel.
        """
        return None

    def related(self, state: Any, layer: int) -> Related | None:
        """Vectors that are added to keys and values by the relation of each pair of tokens.

        Attention that only `added`, `related` and `visible` change keeps a fused form. Where only
        this hook changes it, search need not put keys and values in order.
        """
        return None

    def visible(self, state: Any, n_queries: int) -> Tensor | None:
        """The tokens that the last n_queries may see, bool, broadcasts to (B, H, Tq, T); None: all.

        Each query must see something. It adds to the mask, and no change of scores undoes it;
        attention that only this hook changes keeps its fused kernel.
        """
        return None

    def context(self, state: Any, site: Site, weights: Tensor, context: Tensor) -> Tensor:
        """Weighted values of each head, (B, H, Tq, D / H)."""
        return context

    def loss(self, state: Any) -> Tensor | None:
        """A scalar to add to the summed translation loss: itself a sum, already weighted.

        An update may have several passes, in several processes, and each adds its own.
        """
        return None


def features_read(modifiers: Iterable[Modifier], *, training: bool) -> list[str]:
    """The names of the features that some modifiers read, sorted.

    training: whether to include those that only a loss reads.
    """
    return sorted({n for one in modifiers for n in one.needs if training or n not in one.learns})


class Active(NamedTuple):
    """A modifier and what it prepared for this forward pass."""

    modifier: Modifier
    state: Any

    @property
    def is_eager(self) -> bool:
        """Whether it has a hook between the steps of attention, which fused attention hides."""
        return self.modifier.overrides("scores") or self.modifier.overrides("context")

    @property
    def is_only_mask(self) -> bool:
        """Whether it changes nothing in attention but which tokens are seen."""
        return not (self.modifier.changes_scores or self.modifier.overrides("context"))

    @property
    def is_related(self) -> bool:
        """Whether it has vectors of relations, which torch's fused attention does not know."""
        return self.modifier.overrides("related")

    @property
    def is_only_related(self) -> bool:
        """Whether it changes attention by vectors of relations alone."""
        others = ("scores", "added", "visible", "context")
        return self.is_related and not any(map(self.modifier.overrides, others))
