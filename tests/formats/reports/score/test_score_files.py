"""Reports of `score --format json` that are broken end in one line."""

import json

import pytest
from support.mutations import JSON_PIECES, mutations

from synmt_cli.errors import DataError
from synmt_cli.formats.reports.score.files import read
from synmt_cli.formats.reports.score.scores import (
    MetricInfo,
    PairedComparison,
    ScoredBucket,
    ScoredSystem,
    ScoreReport,
)
from synmt_cli.formats.reports.table import as_json

PAIRED = PairedComparison("sign", "binomial", 3, 1, 1.5, (0.25, 2.75), 0.04, 0.08, (2, 1, 9))
REPORT = ScoreReport(
    12,
    ["r"],
    [MetricInfo("m", "M", "s", False, 2)],
    [
        ScoredSystem("a", {"m": 1.0}, files=["a"], seeds={"m": [1.0]}),
        ScoredSystem("b", {"m": 2.5}, {"m": PAIRED}, ["b"], {"m": [2.5]}, {"m": (2.0, 3.0)}),
    ],
    [ScoredBucket("x", None, None, 9, [{"m": 1.0}, {"m": None}], "labels:f", [{}, {"m": PAIRED}])],
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "report.json"


def test_a_report_is_read_back(path):
    path.write_bytes(as_json(REPORT))
    assert read(str(path)) == REPORT


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        (["n"], "12", "the report has no n"),
        (["systems"], [], "no systems"),
        (["systems", 0, "scores", "m", "score"], True, "'m' has no score"),
        (["systems", 1, "paired", "m", "ci95"], [1], "ci95 of 'm' is not two numbers"),
        (["systems", 0, "scores"], {}, "a system has no score of one of m"),
        (["buckets", 0, "systems"], [], "a bucket has other systems"),
        (["metrics", 0, "higher_is_better"], 1, "an item of metrics has no higher_is_better"),
        (["clusters"], {"m": [["a"], "b"]}, "clusters of the report has no m"),
        (["systems", 0, "scores", "m", "parts"], [{"BP": "x"}], "an item of parts has no BP"),
        (["settings"], None, "settings of the report is not an object"),
    ],
)
def test_what_is_missing_is_named(path, place, value, problem):
    document = json.loads(as_json(REPORT))
    *above, last = place
    inner = document
    for key in above:
        inner = inner[key]
    inner[last] = value
    path.write_text(json.dumps(document))
    with pytest.raises(DataError, match=f"not from `synmt score --format json`: {problem}"):
        read(str(path))


def test_mutated_reports_end_in_a_report_or_an_error(path):
    for data in mutations(as_json(REPORT), 4, JSON_PIECES, 300):
        path.write_bytes(data)
        problems = []
        try:
            as_json(read(str(path)))
        except DataError as error:
            problems.append(str(error))
        assert all("report.json: not from" in one for one in problems)
