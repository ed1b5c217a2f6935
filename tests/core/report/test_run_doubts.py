"""Doubts about runs side by side: files that differ by design are none."""

from __future__ import annotations

import pytest

from synmt_cli.core.pictures.curves import Curve
from synmt_cli.core.report.runs import RunFacts, doubts

FILES = "The runs were validated on different files"
TRAINED = "The runs were trained on different files."
TREES = "The perplexity of models that write trees counts transitions"


def run(variant, files, **settings):
    digests = {"data.dev_sha256": files, "data.train_sha256": files}
    return RunFacts(variant, Curve(variant), {"variant": variant, **digests, **settings})


OWN = {"variants.entries.mine.transitions": "true"}


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([run("rel", "a"), run("dep+rel", "a")], []),
        ([run("rel", "a"), run("dep+rel", "b")], [FILES, TRAINED]),
        ([run("rel", "a"), run("pascal+gcn", "b")], [TREES]),
        ([run("rel", "a"), run("mine", "b", **OWN)], [TREES]),
        ([run("rel", "a"), run("mine", "b")], [FILES, TRAINED]),
        ([run("rel", "a"), run("gcn", "b"), run("parent", "c")], [FILES, TREES, TRAINED]),
        ([run("rel", "a"), run("multitask", "b")], []),
    ],
)
def test_models_with_records_of_their_own_are_compared_among_themselves(runs, expected):
    found = doubts(runs)
    assert len(found) == len(expected)
    assert all(line.startswith(start) for line, start in zip(found, expected, strict=True))
