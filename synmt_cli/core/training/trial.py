"""A trial of the user's own variants on five lines, before hours are spent on their training.

Each hook (core/model/modifier.py) has to return what its base class promises. A model has to
compute the same when it is built again with the same parameters, in any batch, and in a search
that reads one token at a time; its decoder may not see what comes later. Decoders that write trees
are not tried.
"""

from __future__ import annotations

import difflib
import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import NoReturn

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from synmt_cli.core import variants
from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.labels import Labels
from synmt_cli.core.data.ragged import Ragged
from synmt_cli.core.decoding.batching.supply import whole
from synmt_cli.core.decoding.hypothesis import Rules
from synmt_cli.core.decoding.scorers.cached import CachedScorer
from synmt_cli.core.decoding.scorers.scorer import Prefixes
from synmt_cli.core.decoding.search import encoded
from synmt_cli.core.model.modifier import Modifier, Side, features_read
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run import building
from synmt_cli.core.run.config import Config
from synmt_cli.core.text.vocabulary import BOS, EOS, PAD
from synmt_cli.core.training.promises import kept
from synmt_cli.core.training.promises.hooks import ATTENTION, PROMISES, Shape, watched
from synmt_cli.core.variants import own_file
from synmt_cli.errors import ConfigError, is_of_memory
from synmt_cli.formats.record import Record

HEADS = (  # of the words of each line; the last one is a chain, which is as deep as it is long
    *([1, 2, -1, 2, 3, 3], [-1], [1, -1, 1, -1, 3, 3], [1, -1]),
    [-1, *range(40)],
)
SENTENCES = {2: [0, 3]}  # the first words of the sentences of a line that has several
LABELS = ("root", "nsubj", "obj")
N_PIECES = EOS + 1 + 2 * max(map(len, HEADS))  # in the vocabulary, the special ones counted
N_TARGET = 20  # tokens of each target
CLOSE = 1e-3  # the tolerance for states, which are near 1, in single precision
SAME = 1e-5  # the tolerance for states of the same batch, whose sums have the same order
MOVED = 0.02  # how far parameters are moved: many begin at zero, where others have no effect


def of(config: Config) -> list[str]:
    """Returns doubts about the user's own variants of a run; none about those of synmt.

    Raises ConfigError for a hook that returns what attention cannot use, and for anything that
    makes a model differ between training and translation. Errors of a hook itself are passed on.
    """
    plan = variants.plan(config.variant)
    own = [variant.name for variant in plan.variants if variant.own]
    if not own:
        return []
    size = replace(config.model, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0)
    config = replace(config, model=size)
    model = _built(config, config.training.seed)
    tried = _Tried(own, [one for one in _modifiers(model) if one.name in own])
    _refuse_unfit(tried)
    with _accepted(tried):
        outcome = _watched_pass(model, tried)
        found = [*_unheard(tried.modifiers), *_fixed(tried.modifiers, outcome)]
    keeps = _snapshot(tried)
    model.eval()
    with _accepted(tried), torch.no_grad():
        _refuse_random(model, tried)
        found += _growing(model, tried, keeps)
        _refuse_lacking(model, tried)
        again, doubts = _built_anew(config)
        found += doubts
        _refuse_unstored(model, tried, again)
        _refuse_company(model, tried)
        _refuse_uneven_losses(model, tried)
        if not (plan.transitions or plan.rereads):
            _refuse_foresight(model, tried)
            _refuse_other_search(model, tried)
    return found


@contextmanager
def _accepted(tried: _Tried) -> Iterator[None]:
    """Inside, what torch or attention refuses to compute is a ConfigError that names the variants.

    Errors that the user's file raises, or that a function raises that it calls, go on as they are:
    their traceback says more.
    """
    try:
        yield
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        if is_of_memory(error) or own_file.line_in(own_file.path(), error) is not None:
            raise
        what, _, _ = f"{type(error).__name__}: {error}".partition("\n")
        tried.refuse(f"attention cannot use what the hooks return ({what})")


def _modifiers(model: Transformer) -> list[Modifier]:
    return [*model.encoder.modifiers, *model.decoder.modifiers]


@dataclass(frozen=True, slots=True)
class _Tried:
    """The user's own variants of a combination, and their modifiers in both stacks."""

    names: Sequence[str]
    modifiers: Sequence[Modifier]

    def refuse(self, problem: str) -> NoReturn:
        """Raises ConfigError about all of them."""
        raise ConfigError(f"{own_file.path()}: variant {'+'.join(self.names)}: {problem}")


def _built(config: Config, seed: int) -> Transformer:
    """A model whose modifiers' parameters are moved from their initial values."""
    plan = variants.plan(config.variant)
    torch.manual_seed(seed)
    encoder, decoder = building.modifiers(config, len(LABELS))
    if plan.transitions:
        decoder = []
    model = Transformer(config.model, N_PIECES, N_PIECES, encoder, decoder, plan.rereads)
    with torch.no_grad():
        for modifier in (*encoder, *decoder):
            for parameter in modifier.parameters():
                if not is_lazy(parameter):
                    parameter.add_(torch.rand_like(parameter), alpha=MOVED)
    return model


def _built_anew(config: Config) -> tuple[Transformer, list[str]]:
    """A model as another process builds it, from the file that is run anew; and doubts about it."""
    seed = config.training.seed + 1
    with _seeded(seed), own_file.run_anew() as problem:
        again = _built(config, seed)
    unseen = "numbers drawn at random outside of functions are not found, as it runs only once"
    return again, [f"{unseen}: {problem}"] if problem else []


def _sources(model: Transformer, *rows: int, training: bool = True) -> Side:
    """The lines of these rows, each with EOS; every third word has two pieces.

    training: whether to include features that only a loss reads.
    """
    features = features_read(model.encoder.modifiers, training=training)
    encoding, records, ids = Encoding(features, Labels(LABELS)), [], []
    for number, heads in enumerate(HEADS):
        words = ["x"] * len(heads)
        labels = [LABELS[0] if head < 0 else LABELS[1 + head % 2] for head in heads]
        piece_word = [word for word in range(len(heads)) for _ in range(1 + (word % 3 == 2))]
        record = Record("1", "x", words=words, pieces=["x"] * len(piece_word))
        sents = SENTENCES.get(number, [0])
        record = replace(record, piece_word=piece_word, heads=heads, deprels=labels, sents=sents)
        records.append(record)
        ids.append([*range(EOS + 1, EOS + 1 + len(piece_word)), EOS])
    values = encoding.ragged([encoding.values(record) for record in records])
    return encoding.side(Ragged.of(ids, np.int64), values, np.array(rows or range(len(HEADS))))


def _targets(n_tokens: int = N_TARGET) -> Tensor:
    """The beginnings of targets, (B, n_tokens), each with other pieces; they begin with BOS."""
    row, place = torch.arange(len(HEADS))[:, None], torch.arange(n_tokens)
    ids = EOS + 1 + (7 * row + 3 * place + row * place) % (N_PIECES - EOS - 1)
    return ids.masked_fill(place == 0, BOS)


def _refuse_unfit(tried: _Tried) -> None:
    if len({*map(id, tried.modifiers)}) < len(tried.modifiers):
        tried.refuse("one modifier serves twice: make one for each stack and place")
    if any(map(is_lazy, chain.from_iterable(one.parameters() for one in tried.modifiers))):
        tried.refuse("a parameter has no shape yet: give its module all sizes in __init__")


def _watched_pass(model: Transformer, tried: _Tried) -> Tensor:
    """Makes one training pass in which hooks are checked; returns a sum that all parts affect."""
    sources, before = _sources(model), _kept(tried)
    names = [name for name, _ in model.named_parameters()]
    with watched(_places(model, tried, sources)):
        states, losses = _training_pass(model, sources)
    if names != [name for name, _ in model.named_parameters()]:
        tried.refuse("a parameter is made in a hook: make it in __init__")
    for name, value in _kept(tried).items():
        if name in before and not torch.equal(before[name], value):
            tried.refuse(f"{name} changes in training, but runs store parameters alone")
    outcome: Tensor = (states * torch.randn_like(states)).sum()
    for loss in losses:
        outcome = outcome + loss
    return outcome


def _training_pass(model: Transformer, sources: Side) -> tuple[Tensor, list[Tensor]]:
    """The states of the decoder and the losses of variants; random numbers are always the same."""
    with _seeded(0):
        memory = model.encode(sources)
        states, losses = model.decode(Side(_targets()), memory)
    return states, [*memory.losses.values(), *losses.values()]


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Inside, torch, NumPy and `random` begin with a seed; afterwards they go on as before."""
    of_numpy, of_random = np.random.get_state(), random.getstate()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        np.random.seed(seed)
        random.seed(seed)
        try:
            yield
        finally:
            np.random.set_state(of_numpy)
            random.setstate(of_random)


def _kept(tried: _Tried) -> dict[str, Tensor]:
    """The numbers and tensors that modules have, except for parameters."""
    return {
        f"{type(module).__name__}.{key}": torch.as_tensor(value).clone()
        for modifier in tried.modifiers
        for module in modifier.modules()
        for key, value in chain(vars(module).items(), module._buffers.items())
        if isinstance(value, int | float | Tensor) and key != "training"
    }


def _places(
    model: Transformer, tried: _Tried, sources: Side
) -> Iterator[tuple[Modifier, Shape, Tensor | None]]:
    for stack, side in ((model.encoder, sources), (model.decoder, Side(_targets()))):
        for modifier in stack.modifiers:
            if modifier in tried.modifiers:
                size = model.size
                shape = len(side.ids), size.n_heads, side.ids.size(1), size.d_head
                yield modifier, shape, side.pad


def _unheard(modifiers: Sequence[Modifier]) -> Iterator[str]:
    """Names modifiers without hooks, hooks that are never called, and tensors that never learn."""
    for modifier in modifiers:
        name = f"variant {modifier.name}: {type(modifier).__name__}"
        hooks = [hook for hook in PROMISES if modifier.overrides(hook)]
        of_attention = [hook for hook in hooks if hook in ATTENTION]
        if not hooks:
            none = f"{name} changes nothing: it has none of the hooks {', '.join(PROMISES)}"
            yield none + _meant(modifier)
        elif of_attention and not modifier.layers:
            given = "it gives Modifier.__init__ no layers"
            yield f"{name}.{of_attention[0]} is never called, since {given}"
        for key, value in vars(modifier).items():
            if not key.startswith("_") and any(map(_is_lost, _inside(value))):
                kinds = "nn.Parameter, nn.ParameterList or nn.ModuleList"
                yield f"{name}.{key} is no {kinds}, so it neither learns nor is stored"


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple) else [value]


def _is_lost(value: object) -> bool:
    """Whether something would learn if it were registered."""
    return isinstance(value, nn.Module) or (isinstance(value, Tensor) and value.requires_grad)


def _meant(modifier: Modifier) -> str:
    """A hint at the hook that one of its methods may have been meant to be, or ""."""
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
            yield f"{name} has no gradient on the lines of the trial"


def _states(model: Transformer, sources: Side, targets: Tensor) -> list[Tensor]:
    """The states of encoder and decoder for sources and the beginnings of targets."""
    memory = model.encode(sources)
    return [memory.states, model.decode(Side(targets), memory)[0]]


def _differ(these: Sequence[Tensor], those: Sequence[Tensor], within: float = CLOSE) -> bool:
    pairs = zip(these, those, strict=True)
    return not all(torch.allclose(one, other, rtol=0, atol=within) for one, other in pairs)


def _refuse_random(model: Transformer, tried: _Tried) -> None:
    drawn, sources = torch.get_rng_state(), _sources(model)
    first, second = (_states(model, sources, _targets()) for _ in range(2))
    if _differ(first, second):
        advice = "random, such as F.dropout without training=self.training, or changed in place"
        tried.refuse(f"the same input gives another result the second time: something is {advice}")
    if not torch.equal(drawn, torch.get_rng_state()):
        tried.refuse("a hook draws or seeds random numbers outside of training")


def _snapshot(tried: _Tried) -> kept.Snapshot:
    return kept.snapshot(tried.modifiers, own_file.variables())


def _growing(model: Transformer, tried: _Tried, before: kept.Snapshot) -> list[str]:
    """Refuses what changes in training or changes the model; returns doubts about what grows.

    before: what was kept after the first training pass. A second one over the same lines leaves a
    cache as it is, but not a count or a mean.
    """
    sources = _sources(model)
    first = _states(model, sources, _targets())
    model.train()
    with torch.enable_grad():
        _training_pass(model, sources)
    model.eval()
    after = _snapshot(tried)
    for name in kept.changed(before, after):
        tried.refuse(f"{name} changes in training, but runs store parameters alone")
    if _differ(first, _states(model, sources, _targets()), SAME):
        what = "what it computes changes in training, and not by parameters"
        tried.refuse(f"{what}, but runs store these alone")
    where, what = f"variant {'+'.join(tried.names)}", "gets another length with each pass"
    return [
        f"{where}: {name} {what}, but runs store parameters alone"
        for name in kept.resized(before, after)
    ]


def _refuse_lacking(model: Transformer, tried: _Tried) -> None:
    """Refuses variants that read `learns` for more than a loss: translation lacks these."""
    sources = _sources(model, training=False)
    with watched(_places(model, tried, sources)):
        memory = model.encode(sources)
    if _differ([memory.states], [model.encode(_sources(model)).states]):
        tried.refuse("more than a loss reads a feature of `learns`, which translation has not")


def _refuse_unstored(model: Transformer, tried: _Tried, again: Transformer) -> None:
    """Refuses a variant that runs would not store in full.

    again: built with another seed, from a file that is run anew.
    """
    for mine, other in zip(model.parameters(), again.parameters(), strict=True):
        other.copy_(mine)
    sources, targets = _sources(model), _targets()
    if _differ(_states(model, sources, targets), _states(again.eval(), sources, targets)):
        tried.refuse("a value drawn at random is not an nn.Parameter, so no run stores it")


def _refuse_company(model: Transformer, tried: _Tried) -> None:
    """Refuses states of a sentence that change when it is alone, or elsewhere in its batch."""
    targets, whole_batch = _targets(), _sources(model)
    encoded, decoded = _states(model, whole_batch, targets)
    backwards = _sources(model, *reversed(range(len(HEADS))))
    turned = [x.flip(0) for x in _states(model, backwards, targets.flip(0))]
    lengths = whole_batch.lengths
    for row, n in enumerate(lengths):
        alone = _states(model, _sources(model, row), targets[row : row + 1])
        for name, k, batch in (("encoder", 0, encoded), ("decoder", 1, decoded)):
            found = batch[row, : n if name == "encoder" else None]
            others = (alone[k][0], turned[k][row, : len(found)])
            if any(_differ([found], [other]) for other in others):
                what = f"what the {name} makes of a sentence depends on others in its batch"
                tried.refuse(f"{what}, or on padding")


def _refuse_uneven_losses(model: Transformer, tried: _Tried) -> None:
    """Refuses a loss that is not a sum over lines, apart from a term that is always the same."""
    every = range(len(HEADS))
    model.train()  # many losses are for training alone
    if _losses(model, tried, every, seed=0) != _losses(model, tried, every, seed=1):
        model.eval()  # they are random there
    alone = [_losses(model, tried, [row]) for row in every]
    together = [(rows, _losses(model, tried, rows)) for rows in (every[:2], every[2:], every)]
    model.eval()
    for key in together[-1][1]:
        by_line = [losses.get(key, 0.0) for losses in alone]
        summands = [
            (sum(by_line[row] for row in rows) - losses.get(key, 0.0)) / (len(rows) - 1)
            for rows, losses in together
        ]
        if max(summands) - min(summands) > CLOSE * sum(map(abs, by_line)):
            what = "the loss of a batch is not the sum of those of its sentences alone"
            tried.refuse(f"{what}: it is a mean, or depends on others in the batch or on padding")


def _losses(
    model: Transformer, tried: _Tried, rows: Sequence[int], seed: int = 0
) -> dict[tuple[str, str], float]:
    """The losses of the user's variants for these lines, by stack and variant.

    Targets have other lengths each, as in training, and are padded.
    """
    with _seeded(seed):
        memory = model.encode(_sources(model, *rows))
        lengths = N_TARGET - 3 * torch.tensor(rows)[:, None]
        n_tokens = int(lengths.max())
        targets = _targets(n_tokens)[rows].masked_fill(torch.arange(n_tokens) >= lengths, PAD)
        _, losses = model.decode(Side(targets), memory)
    stacks = (("encoder", memory.losses), ("decoder", losses))
    return {
        (stack, name): loss.item()
        for stack, found in stacks
        for name, loss in found.items()
        if name in tried.names
    }


def _refuse_foresight(model: Transformer, tried: _Tried) -> None:
    memory = model.encode(_sources(model))
    whole_target, _ = model.decode(Side(_targets()), memory)
    for n in (1, 2, 3, N_TARGET // 2, N_TARGET - 1):
        beginning, _ = model.decode(Side(_targets(n)), memory)
        if _differ([whole_target[:, :n]], [beginning]):
            tried.refuse("the decoder sees tokens that come later, which translation has not yet")


def _refuse_other_search(model: Transformer, tried: _Tried) -> None:
    """Refuses other scores in search, where the only query is the last token of a prefix."""
    sources, places = _sources(model), range(len(HEADS))
    n_sources, width = len(places), whole(sources.ids.size(1))
    scorer = CachedScorer(model)
    scorer.enter(places, n_sources, width, encoded([model], places, [sources], Rules()))
    memory = model.encode(sources)
    states, _ = model.decode(Side(_targets()), memory)
    expected = model.logits(states).log_softmax(-1)
    for n in range(1, N_TARGET + 1):
        ids = _targets(n)[:, None]  # (B, 1, n)
        at = torch.full((n_sources,), n - 1)
        try:
            found = scorer.step(Prefixes(ids[..., -1], at, whole(n), width, ids, {}))[:, 0]
        except RuntimeError as error:
            tried.refuse(f"{IN_SEARCH} ({error})")
        if _differ([found], [expected[:, n - 1]]):
            tried.refuse(IN_SEARCH)


IN_SEARCH = (
    "the decoder computes something else in search, where the only query is the last token: "
    "site.q and n_queries count queries, site.k counts tokens, and prefixes may be padded in front"
)
