"""A trial of one's own variants on five sentences, before hours are spent on their training.

Each hook (core/model/modifier.py) has to give what its base class promises. A model has to be the
same when it is built again with the same parameters, in any batch, and in a search that reads one
token at a time; its decoder may not see what comes later. Decoders that write trees are not tried.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
import torch
from torch import Tensor

from synmt_cli.core import variants
from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.labels import Labels
from synmt_cli.core.data.ragged import Ragged
from synmt_cli.core.decoding.batching.supply import whole
from synmt_cli.core.decoding.hypothesis import Rules
from synmt_cli.core.decoding.scorers.cached import CachedScorer
from synmt_cli.core.decoding.scorers.scorer import Prefixes
from synmt_cli.core.decoding.search import encoded
from synmt_cli.core.model.modifier import Modifier, Side
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run import building
from synmt_cli.core.run.config import Config
from synmt_cli.core.text.vocabulary import BOS, EOS
from synmt_cli.core.training.hook_promises import ATTENTION, PROMISES, Shape, overrides, watched
from synmt_cli.core.variants import own_file
from synmt_cli.errors import ConfigError
from synmt_cli.formats.record import Record

HEADS = (  # of the words of each sentence; the last one is a chain, which is as deep as it is long
    *([1, 2, -1, 2, 3, 3], [-1], [-1, 0, 1, 0], [1, -1]),
    [-1, *range(20)],
)
LABELS = ("root", "nsubj", "obj")
TARGET = (BOS, EOS + 1, EOS + 2, EOS + 1, EOS + 3, EOS + 4)
N_PIECES = EOS + 1 + max(map(len, HEADS))  # in the vocabulary, the special ones counted
CLOSE = 1e-3  # of states, which are near 1, in single precision
MOVED = 0.02  # by how much each parameter is, since many begin at zero, where others have no say


def of(config: Config) -> list[str]:
    """What is doubtful about the user's own variants of a run; nothing for those of synmt.

    Raises ConfigError for a hook that gives what attention cannot use, and for what makes a model
    another one in translation than in training. What a hook itself raises goes on as it is.
    """
    plan = variants.plan(config.variant)
    own = [variant.name for variant in plan.variants if variant.own]
    if not own:
        return []
    size = replace(config.model, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0)
    config = replace(config, model=size)
    model = _built(config, config.training.seed)
    modifiers = [*model.encoder.modifiers, *model.decoder.modifiers]
    tried = _Tried(own, [one for one in modifiers if one.name in own])
    memory, sources = _watched_pass(model, tried)
    found = [*_unheard(tried.modifiers), *_fixed(tried.modifiers, memory)]
    model.eval()
    with torch.no_grad():
        _refuse_random(model, tried, sources)
        _refuse_unstored(model, tried, _built(config, config.training.seed + 1), sources)
        _refuse_company(model, tried)
        if not (plan.transitions or plan.rereads):
            _refuse_foresight(model, tried, sources)
            _refuse_other_search(model, tried, sources)
    return found


@dataclass(frozen=True, slots=True)
class _Tried:
    """The user's own variants of a combination, and their modifiers in both stacks."""

    names: Sequence[str]
    modifiers: Sequence[Modifier]

    def refuse(self, problem: str) -> NoReturn:
        """Raises ConfigError about all of them."""
        raise ConfigError(f"{own_file.path()}: variant {'+'.join(self.names)}: {problem}")


def _built(config: Config, seed: int) -> Transformer:
    """A model whose modifiers' parameters are away from where they begin."""
    plan = variants.plan(config.variant)
    torch.manual_seed(seed)
    encoder, decoder = building.modifiers(config, len(LABELS))
    if plan.transitions:
        decoder = []
    model = Transformer(config.model, N_PIECES, N_PIECES, encoder, decoder, plan.rereads)
    with torch.no_grad():
        for modifier in (*encoder, *decoder):
            for parameter in modifier.parameters():
                parameter.add_(torch.rand_like(parameter), alpha=MOVED)
    return model


def _sources(model: Transformer, *rows: int) -> Side:
    """A word is a piece, and each sentence ends in EOS."""
    needs = dict.fromkeys(name for one in model.encoder.modifiers for name in one.needs)
    encoding, records, ids = Encoding([*needs], Labels(LABELS)), [], []
    for heads in HEADS:
        words = ["x"] * len(heads)
        labels = [LABELS[0] if head < 0 else LABELS[1 + head % 2] for head in heads]
        places = [*range(len(heads))]
        record = Record("1", "x", words=words, pieces=words, piece_word=places)
        records.append(replace(record, heads=heads, deprels=labels))
        ids.append([*range(EOS + 1, EOS + 1 + len(heads)), EOS])
    values = encoding.ragged([encoding.values(record) for record in records])
    return encoding.side(Ragged.of(ids, np.int64), values, np.array(rows or range(len(HEADS))))


def _targets(n_tokens: int = len(TARGET)) -> Side:
    return Side(torch.tensor([TARGET[:n_tokens]] * len(HEADS)))


def _watched_pass(model: Transformer, tried: _Tried) -> tuple[Tensor, Side]:
    """One pass in which hooks are checked: a sum on which all parts have a say, and the sources."""
    sources = _sources(model)
    before = [value.clone() for one in tried.modifiers for value in one.buffers()]
    with watched(_places(model, tried, sources)):
        memory = model.encode(sources)
        states, losses = model.decode(_targets(), memory)
    after = [value for one in tried.modifiers for value in one.buffers()]
    if not all(map(torch.equal, before, after)):
        tried.refuse("a buffer changes in training, but runs store parameters alone")
    outcome: Tensor = (states * torch.randn_like(states)).sum()
    for loss in (*memory.losses.values(), *losses.values()):
        outcome = outcome + loss
    return outcome, sources


def _places(model: Transformer, tried: _Tried, sources: Side) -> Iterator[tuple[Modifier, Shape]]:
    for stack, side in ((model.encoder, sources), (model.decoder, _targets())):
        for modifier in stack.modifiers:
            if modifier in tried.modifiers:
                yield modifier, (len(HEADS), model.size.n_heads, side.ids.size(1))


def _unheard(modifiers: Sequence[Modifier]) -> Iterator[str]:
    """Names modifiers without hooks, hooks that are never called, and tensors that never learn."""
    for modifier in modifiers:
        name = f"variant {modifier.name}: {type(modifier).__name__}"
        hooks = [hook for hook in PROMISES if overrides(modifier, hook)]
        of_attention = [hook for hook in hooks if hook in ATTENTION]
        if not hooks:
            none = f"{name} changes nothing: it has none of the hooks {', '.join(PROMISES)}"
            yield none + _meant(modifier)
        elif of_attention and not modifier.layers:
            given = "it gives Modifier.__init__ no layers"
            yield f"{name}.{of_attention[0]} is never called, since {given}"
        for key, value in vars(modifier).items():
            if isinstance(value, Tensor) and value.requires_grad:
                yield f"{name}.{key} is no nn.Parameter, so it neither learns nor is stored"


def _meant(modifier: Modifier) -> str:
    """A hint at the hook that one of its methods may have been meant to be."""
    for method in vars(type(modifier)):
        if near := difflib.get_close_matches(method, PROMISES, 1):
            return f"; did you mean {near[0]} by {method}?"
    return ""


def _fixed(modifiers: Sequence[Modifier], outcome: Tensor) -> Iterator[str]:
    """Names parameters that cannot learn."""
    named = [
        (f"variant {modifier.name}: {type(modifier).__name__}.{key}", parameter)
        for modifier in modifiers
        for key, parameter in modifier.named_parameters()
        if parameter.requires_grad
    ]
    if not named:
        return
    gradients = torch.autograd.grad(outcome, [one for _, one in named], allow_unused=True)
    for (name, _), gradient in zip(named, gradients, strict=True):
        if gradient is None or not gradient.any():
            yield f"{name} has no gradient, so it does not learn"


def _states(model: Transformer, sources: Side, n_tokens: int = len(TARGET)) -> list[Tensor]:
    """What encoder and decoder make of the sources and of the beginnings of targets."""
    memory = model.encode(sources)
    return [memory.states, model.decode(_targets(n_tokens), memory)[0]]


def _differ(these: Sequence[Tensor], those: Sequence[Tensor]) -> bool:
    pairs = zip(these, those, strict=True)
    return not all(torch.allclose(one, other, rtol=0, atol=CLOSE) for one, other in pairs)


def _refuse_random(model: Transformer, tried: _Tried, sources: Side) -> None:
    if _differ(_states(model, sources), _states(model, sources)):
        advice = "such as F.dropout without training=self.training"
        tried.refuse(f"something is random outside of training, {advice}")


def _refuse_unstored(model: Transformer, tried: _Tried, again: Transformer, sources: Side) -> None:
    """again: built with another seed."""
    for mine, other in zip(model.parameters(), again.parameters(), strict=True):
        other.copy_(mine)
    if _differ(_states(model, sources), _states(again.eval(), sources)):
        tried.refuse("something that is drawn at random is no nn.Parameter, so no run stores it")


def _refuse_company(model: Transformer, tried: _Tried) -> None:
    """Where a sentence is another one after a longer one in its batch."""
    alone = model.encode(_sources(model, 2)).states[0]
    found = model.encode(_sources(model, 4, 2)).states[1, : len(alone)]
    if _differ([found], [alone]):
        tried.refuse("the encoding of a sentence depends on others in its batch, or on padding")


def _refuse_foresight(model: Transformer, tried: _Tried, sources: Side) -> None:
    _, whole_target = _states(model, sources)
    for n in range(1, len(TARGET)):
        _, beginning = _states(model, sources, n)
        if _differ([whole_target[:, :n]], [beginning]):
            tried.refuse("the decoder sees tokens that come later, which translation has not yet")


def _refuse_other_search(model: Transformer, tried: _Tried, sources: Side) -> None:
    """Where a search, whose only query is the last token of a prefix, finds other scores."""
    n_sources, width = len(HEADS), whole(sources.ids.size(1))
    scorer, places = CachedScorer(model), range(len(HEADS))
    scorer.enter(places, n_sources, width, encoded([model], places, [sources], Rules()))
    memory = model.encode(sources)
    for n in range(1, len(TARGET) + 1):
        ids = _targets(n).ids[:, None]  # (B, 1, n)
        at = torch.full((n_sources,), n - 1)
        try:
            found = scorer.step(Prefixes(ids[..., -1], at, whole(n), width, ids, {}))[:, 0]
        except RuntimeError as error:
            tried.refuse(f"{IN_SEARCH} ({error})")
        states, _ = model.decode(Side(ids[:, 0]), memory)
        if _differ([found], [model.logits(states[:, -1]).log_softmax(-1)]):
            tried.refuse(IN_SEARCH)


IN_SEARCH = (
    "the decoder computes something else in search, where the only query is the last token: "
    "site.q and n_queries count queries, site.k counts tokens, and prefixes may be padded in front"
)
