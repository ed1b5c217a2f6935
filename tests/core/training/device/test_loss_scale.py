"""Loss scaling: what it does in fp16, and that it asks the device nothing."""

from __future__ import annotations

import torch
from support import pretend

from synmt_cli.core.training.device.loss_scale import AFTER, LEAST, LossScale


def test_a_gradient_that_overflows_halves_the_scale_and_is_left_out():
    one = LossScale(torch.device("cpu"), scale=8.0)
    assert [x.item() for x in one.update(torch.tensor(2.0))] == [0.0, 2.0]
    assert (one.scale.item(), one.age.item()) == (8.0, 1.0)
    for norm in (torch.inf, torch.nan):
        assert [x.item() for x in one.update(torch.tensor(norm))] == [1.0, 0.0]
    assert (one.scale.item(), one.age.item()) == (2.0, 0.0)
    for _ in range(9):
        one.update(torch.tensor(torch.inf))
    assert one.scale.item() == LEAST
    assert [x.item() for x in one.update(torch.tensor(torch.inf))] == [1.0, torch.inf]


def test_a_scale_that_never_overflows_grows():
    one = LossScale(torch.device("cpu"), scale=4.0, age=AFTER - 1.0)
    one.update(torch.tensor(1.0))
    assert (one.scale.item(), one.age.item()) == (8.0, 0.0)


def test_nobody_waits_for_the_device():
    one = LossScale(pretend.DEVICE)
    with pretend.counted() as counts:
        one.update(torch.ones((), device=pretend.DEVICE))
    assert not counts.synchronisations
