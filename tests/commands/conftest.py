"""Fixtures for the tests of tree decoders and for those of faults in training."""

from __future__ import annotations

import pytest
from support.run_folders import Trainings
from support.tree_workshop import EMPTY, TREES, Workshop


@pytest.fixture(scope="session")
def shop(tmp_path_factory, forked):
    """A Workshop with data and a run of random weights for each of TREES, vanilla and bitran."""
    made = Workshop(tmp_path_factory.mktemp("trees"), forked)
    for variant in (*TREES, "vanilla", "bitran"):
        made.train(variant)
    return made


@pytest.fixture(scope="session")
def source(shop):
    """Seven records: an empty line is among them, and one at the end."""
    lines = (shop.folder / "dev.jsonl").read_bytes().splitlines(keepends=True)
    return b"".join([*lines[:2], EMPTY, *lines[2:], EMPTY])


@pytest.fixture
def train(example_folder, tmp_path, forked):
    """`train("--max-steps", 3)` trains in tmp_path/r; `train.start` in a process of its own."""
    made = Trainings(example_folder, tmp_path, forked)
    yield made
    made.end()
