"""What the tests of decoders of trees share: models that take a while to make."""

from __future__ import annotations

import pytest
from forked import Forked
from tree_workshop import EMPTY, TREES, Workshop


@pytest.fixture(scope="session")
def shop(tmp_path_factory):
    """A Workshop with data, and runs of random weights: those of TREES, vanilla, bitran."""
    with Forked() as forked:
        made = Workshop(tmp_path_factory.mktemp("trees"), forked)
        for variant in (*TREES, "vanilla", "bitran"):
            made.train(variant)
        yield made


@pytest.fixture(scope="session")
def source(shop):
    """Seven records: an empty line is among them, and one at the end."""
    lines = (shop.folder / "dev.jsonl").read_bytes().splitlines(keepends=True)
    return b"".join([*lines[:2], EMPTY, *lines[2:], EMPTY])
