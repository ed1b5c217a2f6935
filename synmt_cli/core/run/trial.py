"""A trial of one's own variants on three sentences, before hours are spent on their training.

Each hook (core/model/modifier.py) has to give what its base class promises; a sentence has to be
encoded alike whatever else is in its batch; each parameter should have a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from synmt_cli.core import variants
from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.labels import Labels
from synmt_cli.core.data.ragged import Ragged
from synmt_cli.core.model.modifier import Dot, Modifier, Side, Site
from synmt_cli.core.model.relations import Related
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run import building
from synmt_cli.core.run.config import Config
from synmt_cli.core.text.vocabulary import BOS, EOS
from synmt_cli.core.variants import own_file
from synmt_cli.errors import ConfigError
from synmt_cli.formats.record import Record

HEADS = ([1, 2, -1, 2, 3, 3], [-1], [-1, 0, 1, 0])  # of the words of each sentence
LABELS = ("root", "nsubj", "obj")
N_PIECES = 10  # in the vocabulary, the special ones counted
ATTENTION = ("scores", "added", "related", "visible", "context")
CLOSE = 1e-8  # in double precision


def of(config: Config) -> list[str]:
    """What is doubtful about the user's own variants of a run; nothing for those of synmt.

    Raises ConfigError for a hook that gives what attention cannot use. What a hook itself raises
    goes on as it is. Trees on the target's side are not tried, only their encoders.
    """
    plan = variants.plan(config.variant)
    own = [variant.name for variant in plan.variants if variant.own]
    if not own:
        return []
    size = replace(config.model, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0)
    encoder, decoder = building.modifiers(replace(config, model=size), len(LABELS))
    decoder = [] if plan.transitions else decoder
    torch.manual_seed(config.training.seed)
    model = Transformer(size, N_PIECES, N_PIECES, encoder, decoder, plan.rereads).double()
    tried = [modifier for modifier in (*encoder, *decoder) if modifier.name in own]
    with _watched(tried):
        memory = model.encode(_sources(encoder, (0, 1, 2)))
        states, losses = model.decode(_targets(), memory)
        outcome = (states * torch.randn_like(states)).sum()  # any sum on which all parts have a say
        outcome = sum([*memory.losses.values(), *losses.values()], outcome)
    return [*_uncalled(tried), *_fixed(tried, outcome), *_unsteady(model.eval(), encoder)]


def _sources(encoder: Sequence[Modifier], rows: Sequence[int]) -> Side:
    """A word is a piece, and each sentence ends in EOS."""
    needs = dict.fromkeys(name for modifier in encoder for name in modifier.needs)
    encoding, records, ids = Encoding([*needs], Labels(LABELS)), [], []
    for heads in HEADS:
        words = ["x"] * len(heads)
        labels = [LABELS[0] if head < 0 else LABELS[1 + head % 2] for head in heads]
        places = [*range(len(heads))]
        records.append(
            Record(
                "1", "x", words=words, heads=heads, deprels=labels, pieces=words, piece_word=places
            )
        )
        ids.append([EOS + 1 + place for place in places] + [EOS])
    values = encoding.ragged([encoding.values(record) for record in records])
    return encoding.side(Ragged.of(ids, np.int64), values, np.array(rows))


def _targets() -> Side:
    return Side(torch.tensor([[BOS, EOS + 1, EOS + 2, EOS + 3]] * len(HEADS)))


@contextmanager
def _watched(modifiers: Sequence[Modifier]) -> Iterator[None]:
    """Hooks that are checked while this lasts."""
    hooks = [(m, name) for m in modifiers for name in PROMISES if _has(m, name)]
    for modifier, name in hooks:
        setattr(modifier, name, partial(_checked, modifier, name, getattr(modifier, name)))
    try:
        yield
    finally:
        for modifier, name in hooks:
            delattr(modifier, name)


def _has(modifier: Modifier, hook: str) -> bool:
    return getattr(type(modifier), hook) is not getattr(Modifier, hook)


def _checked(modifier: Modifier, name: str, hook: Callable[..., Any], *given: Any) -> Any:
    result = hook(*given)
    if problem := PROMISES[name](result, *given):
        where = f"{own_file.path()}: variant {modifier.name}"
        raise ConfigError(f"{where}: {type(modifier).__name__}.{name} has to return {problem}")
    return result


def _of_shape(result: Any, shape: Sequence[int], *, dtype: str = "numbers") -> str:
    """Why a result is not a tensor that broadcasts to a shape; "" if it is."""
    wanted = f"{dtype} of shape {tuple(shape)}"
    if not isinstance(result, Tensor):
        return f"{wanted}, not {type(result).__name__}"
    if (result.dtype is torch.bool) != (dtype == "bool"):
        return f"{wanted}, not {result.dtype}"
    try:
        result.expand(tuple(shape))
    except RuntimeError:
        return f"{wanted}, not {tuple(result.shape)}"
    return "" if result.isfinite().all() else f"finite {wanted}"


def _as_given(result: Any, *given: Any) -> str:
    """The last argument, changed."""
    shape = given[-1].shape
    if isinstance(result, Tensor) and result.shape != shape:
        return f"numbers of shape {tuple(shape)}, not {tuple(result.shape)}"
    return _of_shape(result, shape)


def _as_positions(result: Any, state: Any, positions: Tensor) -> str:
    return _of_shape(result, (len(HEADS), *positions.shape[1:]))


def _as_added(result: Any, state: Any, site: Site) -> str:
    if result is None or isinstance(result, Dot):
        return ""
    return _of_shape(result, (*site.q.shape[:3], site.k.size(2)))


def _as_related(result: Any, state: Any, layer: int) -> str:
    is_one = result is None or isinstance(result, Related)
    return "" if is_one else f"a Related or None, not {type(result).__name__}"


def _as_visible(result: Any, state: Any, n_queries: int) -> str:
    if result is None or (isinstance(result, Tensor) and result.dtype is torch.bool):
        return ""
    return f"a tensor of bool or None, not {getattr(result, 'dtype', type(result).__name__)}"


def _as_loss(result: Any, state: Any) -> str:
    return "" if result is None else _of_shape(result, ())


PROMISES: dict[str, Callable[..., str]] = {
    **dict.fromkeys(("tokens", "inputs", "scores", "context"), _as_given),
    "positions": _as_positions,
    "added": _as_added,
    "related": _as_related,
    "visible": _as_visible,
    "loss": _as_loss,
}


def _uncalled(modifiers: Sequence[Modifier]) -> Iterator[str]:
    """Names modifiers without hooks, and hooks of attention that are never called."""
    for modifier in modifiers:
        name = f"variant {modifier.name}: {type(modifier).__name__}"
        hooks = [hook for hook in PROMISES if _has(modifier, hook)]
        of_attention = [hook for hook in hooks if hook in ATTENTION]
        if not hooks:
            yield f"{name} changes nothing: it has none of the hooks {', '.join(PROMISES)}"
        elif of_attention and not modifier.layers:
            given = "it gives Modifier.__init__ no layers"
            yield f"{name}.{of_attention[0]} is never called, since {given}"


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


def _unsteady(model: Transformer, encoder: Sequence[Modifier]) -> Iterator[str]:
    """Says where a sentence is another one after a longer one in its batch."""
    with torch.no_grad():
        alone = model.encode(_sources(encoder, [2])).states[0]
        found = model.encode(_sources(encoder, [0, 2])).states[1, : len(alone)]
    if not torch.allclose(found, alone, rtol=0, atol=CLOSE):
        names = "+".join(dict.fromkeys(modifier.name for modifier in encoder))
        yield f"variant {names}: the encoding of a sentence depends on what is in its batch"
