"""Each process has a card of its own."""

from __future__ import annotations

import pytest
import torch

from synmt_cli.core.distributed.launch import MEETING
from synmt_cli.core.distributed.ranks import own_device
from synmt_cli.errors import Unavailable, UsageError


@pytest.fixture
def second_of_two(monkeypatch):
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", MEETING)
    for name, value in zip(names, ("1", "1", "2", "2", "/nowhere"), strict=True):
        monkeypatch.setenv(name, value)


@pytest.fixture
def second_with_one_card(second_of_two, monkeypatch):
    """A process that `launch` did not start, and that sees a single card."""
    monkeypatch.delenv(MEETING)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "29500")


def test_processes_do_not_share_a_card_that_is_named(second_of_two):
    with pytest.raises(UsageError, match="cuda:0 names one GPU for 2 processes"):
        own_device("cuda:0")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there are cards")
def test_the_card_that_a_process_asks_for_is_that_of_its_rank(second_of_two):
    with pytest.raises(Unavailable, match="no device 'cuda:1'"):
        own_device("cuda")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there are cards")
def test_a_process_that_was_given_one_card_takes_it(second_with_one_card):
    for name in ("cuda", "cuda:0"):
        with pytest.raises(Unavailable, match="no device 'cuda:0'"):
            own_device(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there are cards")
def test_processes_of_torchrun_share_the_cards_that_it_was_given(second_with_one_card, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    with pytest.raises(Unavailable, match="no device 'cuda:1'"):
        own_device("cuda")
    with pytest.raises(UsageError, match="cuda:0 names one GPU for 2 processes"):
        own_device("cuda:0")


def test_a_process_alone_takes_what_is_named(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    assert own_device("cpu") == torch.device("cpu")
    with pytest.raises(Unavailable, match="no device 'nonsense'"):
        own_device("nonsense")
