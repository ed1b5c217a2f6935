"""The weight of arcs in the loss, and the logits that correct for it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from support.models import side, small

from synmt_cli.core.data.batch import Batch
from synmt_cli.core.model.inference_linear import replace_linear_layers
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run.config import Training
from synmt_cli.core.training.gradient import backward
from synmt_cli.core.training.loss import ArcLoss, arc_loss, cross_entropy
from synmt_cli.core.transitions.grammar import OTHER, Grammar
from synmt_cli.core.trees.arc_standard import Move

MOVES = np.array([OTHER, Move.FINISH, Move.BEGIN, Move.CONTINUE, Move.LEFT, Move.RIGHT])
GRAMMAR = Grammar(MOVES, np.array([0, 0, 0, 0, 1, 1]), ("a",), split=False)
COUNTS = torch.tensor([5, 10, 30, 15, 25, 15])  # how often each token is the target


def model(weight, grammar=GRAMMAR):
    torch.manual_seed(0)
    net = Transformer(small(), len(MOVES), len(MOVES), grammar=grammar).eval()
    net.correct_for(weight)
    return net


@pytest.mark.parametrize("weight", [1.0, 0.3, 3.0])
def test_a_token_becomes_as_likely_as_it_is_whatever_arcs_weigh(weight):
    net = model(weight)
    state = torch.randn(1, net.size.d_model)
    targets = torch.arange(len(MOVES)).repeat_interleave(COUNTS)
    arcs = ArcLoss(torch.from_numpy(GRAMMAR.is_arc), weight, 0.0)
    optimizer = torch.optim.LBFGS([net.output.weight], max_iter=200, tolerance_change=1e-12)

    def closure():
        optimizer.zero_grad()
        states = state.expand(len(targets), -1)
        entropy = cross_entropy(states, net.output.weight, targets, 0.0, arcs=arcs).smoothed
        entropy.backward()
        return entropy

    optimizer.step(closure)
    found = net.logits(state)[0].softmax(-1)
    torch.testing.assert_close(found, COUNTS / COUNTS.sum(), rtol=0, atol=1e-3)


@pytest.mark.parametrize(("weight", "grammar"), [(0.0, GRAMMAR), (1.0, GRAMMAR), (0.3, None)])
def test_there_may_be_nothing_to_correct(weight, grammar):
    assert model(weight, grammar).output_bias is None


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-4), ("int8", 0.1)])
def test_search_dev_and_the_log_of_training_read_the_same_logits(precision, tolerance):
    net, states = model(0.3), torch.randn(7, small().d_model)
    plain = states @ net.output.weight.T
    expected = plain - math.log(0.3) * torch.tensor([0, 0, 0, 0, 1, 1])
    targets = torch.arange(7) % len(MOVES)
    log_probs, is_right = net.judged(states, targets)
    torch.testing.assert_close(log_probs, expected.log_softmax(-1)[range(7), targets])
    assert torch.equal(is_right, expected.argmax(-1) == targets)
    arcs = ArcLoss(torch.from_numpy(GRAMMAR.is_arc), 0.3, 0.2, net.output_bias)
    for dtype in (torch.float32, torch.bfloat16):
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype != torch.float32), torch.no_grad():
            found = net.logits(states)
            again, _ = net.judged(states, targets)
            trained = cross_entropy(states, net.output.weight, targets, 0.1, arcs=arcs)
        torch.testing.assert_close(found, expected)  # in bf16 a score of 10 is rounded to 1/16
        torch.testing.assert_close(again, log_probs)
        logits = (states.to(dtype) @ net.output.weight.to(dtype).T).float() + net.output_bias
        of_training = -logits.log_softmax(-1)[range(7), targets]
        torch.testing.assert_close(trained.nll, of_training.sum())
    with torch.inference_mode():
        torch.testing.assert_close(net.logits(states), expected)
        replace_linear_layers(net, precision)
        found = net.logits(states)
    assert (found - expected).abs().max() < tolerance * plain.std()


def test_arcs_weigh_in_training_what_search_corrects_for():
    settings = Training(transition_weight=0.3, transition_smoothing=0.2)
    net = model(settings.transition_weight)
    arcs = arc_loss(net, settings)
    assert arcs.is_arc.tolist() == [False, False, False, False, True, True]
    assert (arcs.weight, arcs.smoothing, arcs.bias) == (0.3, 0.2, net.output_bias)
    assert arc_loss(model(1.0, grammar=None), settings) is None


def test_a_model_that_corrects_for_the_weight_of_arcs_is_not_trained_without_it():
    net, out = model(0.3), torch.tensor([[2, 4, 3]])
    batch = Batch.of(side([[4, 3]]), side([[1, 2, 4]]), out, np.array([3]))
    with pytest.raises(ValueError, match="arcs=arc_loss"):
        backward(net, batch, 0.1, 1.0)
    assert all(parameter.grad is None for parameter in net.parameters())
    weighted = backward(net, batch, 0.0, 1.0, arcs=arc_loss(net, Training(transition_weight=0.3)))
    states, _ = net.decode(batch.target, net.encode(batch.source))
    log_probs = (states[0] @ net.output.weight.T).log_softmax(-1)[range(3), out[0]]
    assert weighted.smoothed.item() == pytest.approx(
        -(log_probs @ torch.tensor([1, 0.3, 1])).item()
    )
