"""The gradient of a batch: one pass, or one for each length of prefix."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.models import make, side, small

from synmt_cli.core.data.batch import Batch
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.model.prefixes import packed_passes
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.text.vocabulary import PAD
from synmt_cli.core.training import gradient
from synmt_cli.core.training.gradient import backward
from synmt_cli.core.training.loss import ArcLoss
from synmt_cli.core.variants import plan
from synmt_cli.core.variants.stack import StackSpec

SOURCES = [[4, 7, 9, 3], [5, 10, 8, 9, 6, 3], [4, 3]]
TARGETS = [[5, 6], [9, 4, 8, 7, 10], [6]]


# Features for a decoder of trees, BOS first: 1 depends on 2 by the transition at 3, and so on.
FEATURES = {
    "arc": [[2**30] * 3, [2**30, 3, 2**30, 3, 5, 5], [2**30] * 2],
    "head_begin": [[0] * 3, [0, 2, 0, 2, 2, 2], [0] * 2],
    "head_end": [[0] * 3, [0, 3, 0, 3, 3, 3], [0] * 2],
    "arc_label": [[0] * 3, [0, 2, 0, 2, 1, 1], [0] * 2],
}


def batch(targets=TARGETS):
    width = max(map(len, targets)) + 1
    into = side([[2, *row] for row in targets], fill=PAD, width=width, **FEATURES)
    out = torch.tensor([[*row, 3, *[PAD] * (width - 1 - len(row))] for row in targets])
    lengths = np.array([len(row) + 1 for row in targets])
    return Batch.of(side(SOURCES, fill=PAD), Side(into.ids, features=into.features), out, lengths)


def model(name="bitran", norm="post"):
    size = small(norm)
    one, setting = plan(name), StackSpec(small(norm), 2, 5)
    torch.manual_seed(1)
    built = make(size, one.encoder(setting, {}), one.decoder(setting, {}))
    built.rereads = one.rereads
    return built


def gradients(whole, sums):
    assert all(p.grad is not None and p.grad.any() for p in whole.parameters())
    return [p.grad.clone() for p in whole.parameters()], sums


def by_definition(whole, smoothing):
    """The sum over all prefixes, each read alone, of -log P of the next token, with smoothing."""
    total = 0.0
    whole.zero_grad()
    targets = batch().target
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        memory = whole.encode(side([source]))
        for n, token in enumerate([*target, 3], 1):
            states, _ = whole.decode(targets[row : row + 1, :n], memory)
            log_p = whole.logits(states[0, -1]).log_softmax(-1)
            total = total - (1 - smoothing) * log_p[token] - smoothing * log_p.mean()
    (total * 0.5).backward()
    return total.item()


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(
    "name", ["vanilla", "bitran", "rel+bitran", "parent", "gcn", "rel+gcn+parent"]
)
def test_the_gradient_is_that_of_each_prefix_alone(name, norm):
    whole = model(name, norm)
    expected = by_definition(whole, 0.1)
    wanted, _ = gradients(whole, None)
    whole.zero_grad()
    found, sums = gradients(whole, backward(whole, batch(), 0.1, 0.5))
    assert sums.smoothed.item() == pytest.approx(expected, rel=1e-5)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_passes_cut_by_memory_change_nothing(monkeypatch):
    whole = model()
    one, sums = gradients(whole, backward(whole, batch(), 0.1, 1.0))
    whole.zero_grad()
    monkeypatch.setattr(gradient, "packed_passes", lambda *given: packed_passes(*given[:3], 8))
    other, again = gradients(whole, backward(whole, batch(), 0.1, 1.0))
    assert again.smoothed.item() == pytest.approx(sums.smoothed.item())
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b)


DRAWN = [
    *((drawn, [6, 4, 4, 1]) for drawn in ([1, 2, 3, 4, 5, 6], [2, 3, 6], [5], [])),
    ([1, 6, 7, 8, 9, 20], [20, 9]),  # 6 to 9 fill more rows of 10 tokens than 1 to 20 of 21
]


@pytest.mark.parametrize("n_cells", [1, 8, 20, 1000])
@pytest.mark.parametrize(("drawn", "lengths"), DRAWN)
def test_passes_read_every_drawn_prefix_once(drawn, lengths, n_cells):
    width, read = lengths[0], []
    whole = Side(torch.arange(len(lengths) * width).view(-1, width))  # padded targets
    for one in packed_passes(lengths, width, drawn, n_cells):
        ids, number = one.side(whole).ids, one.cells[1]
        assert ids.numel() <= n_cells or len(ids) == one.targets.stop - one.targets.start == 1
        ends = set(one.ends.tolist())
        predicted = iter(one.predicted.tolist())
        for row, (own, column) in enumerate(zip(ids, number, strict=True)):
            for k in (0, 1):
                tokens = own[column == k].tolist()
                assert bool(tokens) == (2 * row + k in ends)
                if tokens:
                    assert own[one.newest[row, k]] == tokens[-1] == next(predicted)
                    assert tokens == list(range(tokens[0], tokens[-1] + 1))
                    read.append((tokens[0] // width, len(tokens)))
    wanted = [(i, n) for i, length in enumerate(lengths) for n in drawn if n <= length]
    assert sorted(read) == wanted


def test_passes_of_targets_of_any_lengths_read_every_drawn_prefix():
    rng = np.random.default_rng(1)
    for _ in range(300):
        lengths = sorted(rng.integers(10, 30, 12).tolist(), reverse=True)
        drawn = (np.flatnonzero(rng.random(lengths[0]) < rng.choice([0.1, 0.25, 0.5])) + 1).tolist()
        n_read = sum(len(one.ends) for one in packed_passes(lengths, lengths[0], drawn, 2**14))
        assert n_read == sum(n <= length for length in lengths for n in drawn)


def test_prefixes_of_targets_of_one_even_length_need_no_padding():
    (one,) = packed_passes([6, 6], 6, range(1, 7), 2**14)
    assert (one.cells[1] >= 0).all()
    assert one.cells.shape == (5, 6, 7)


def test_drawn_prefixes_give_the_same_on_average():
    whole = model()
    everything = backward(whole, batch(), 0.0, 1.0).nll.item()
    torch.manual_seed(3)
    drawn = [backward(whole, batch(), 0.0, 1.0, prefix_share=0.4).nll.item() for _ in range(400)]
    mean = sum(drawn) / len(drawn)
    spread = (sum((d - mean) ** 2 for d in drawn) / len(drawn)) ** 0.5
    assert abs(mean - everything) < 4 * spread / len(drawn) ** 0.5
    assert spread > 0


def test_known_tokens_see_later_ones_and_only_in_a_rereading_decoder():
    for name, sees in (("vanilla", False), ("bitran", True)):
        whole = model(name)
        seen = []
        memory = whole.encode(side([SOURCES[0]]))
        whole.decoder.layers[0].cross.register_forward_pre_hook(
            lambda _, arguments, seen=seen: seen.append(arguments[0].detach())
        )
        for last in (5, 9):
            whole.decode(side([[2, 4, last]]), memory)
        n = len(seen) // 2
        first, second = seen[n - 1], seen[-1]  # the whole prefix, after self-attention
        assert (not torch.equal(first[:, 0], second[:, 0])) == sees


def test_a_rereading_model_has_the_parameters_of_the_plain_one():
    size = small()
    names = [n for n, _ in Transformer(size, 11, 11).named_parameters()]
    assert [n for n, _ in Transformer(size, 11, 11, rereads=True).named_parameters()] == names


@pytest.mark.parametrize("name", ["vanilla", "gcn"])
def test_arcs_of_no_weight_train_nothing_and_are_still_measured(name):
    """The gradient is that of the other tokens; nll counts all."""
    is_arc = torch.zeros(11, dtype=torch.bool)
    is_arc[[6, 8, 10]] = True
    whole = model(name)
    found = backward(whole, batch(), 0.1, 1.0, arcs=ArcLoss(is_arc, 0.0, 0.0))
    weighted = [None if p.grad is None else p.grad.clone() for p in whole.parameters()]
    whole.zero_grad()
    assert found.nll == pytest.approx(backward(whole, batch(), 0.1, 1.0).nll.item(), rel=1e-5)
    whole.zero_grad()
    states, _ = whole.decode(batch().target, whole.encode(batch().source))
    out = batch().target_out
    kept = (out != PAD) & ~is_arc[out]
    logits = whole.logits(states[kept])
    loss = torch.nn.functional.cross_entropy(
        logits, out[kept], reduction="sum", label_smoothing=0.1
    )
    loss.backward()
    assert found.smoothed == pytest.approx(loss.item(), rel=1e-4)
    for own, parameter in zip(weighted, whole.parameters(), strict=True):
        torch.testing.assert_close(own, parameter.grad, rtol=1e-3, atol=1e-4)
