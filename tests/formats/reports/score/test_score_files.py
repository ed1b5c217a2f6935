"""Broken reports of `score --format json` end in one line."""

import json
import random
import re
from dataclasses import replace

import pytest
from support.mutations import JSON_PIECES, mutated_value, mutations

from synmt_cli.errors import DataError
from synmt_cli.formats.reports.score.files import read
from synmt_cli.formats.reports.score.scores import ComparedPair, ScoredBucket, ScoreReport
from synmt_cli.formats.reports.score.systems import MetricInfo, PairedComparison, ScoredSystem
from synmt_cli.formats.reports.table import FORMATS, as_json

PAIRED = PairedComparison("sign", "binomial", 3, 1, 1.5, (0.25, 2.75), 0.04, 0.08, (2, 1, 9))
BETWEEN = {"m": (2.0, 3.0)}
REPORT = ScoreReport(
    12,
    ["r"],
    [MetricInfo("m", "M", "s", False, 2)],
    [
        ScoredSystem("a", {"m": 1.0}, {}, ["a"], {"m": [1.0]}, BETWEEN),
        ScoredSystem("b", {"m": 2.5}, {"m": PAIRED}, ["b"], {"m": [2.5]}, BETWEEN),
        ScoredSystem("c", {"m": 2.5}, {"m": PAIRED}, ["c"], {"m": [2.5]}, BETWEEN),
    ],
    [
        ScoredBucket(
            *("x", None, None, 9),
            [{"m": 1.0}, {"m": None}, {"m": 2.0}],
            "labels:f",
            [{}, {"m": PAIRED}, {}],
        )
    ],
    pairs=[ComparedPair("m", "b", "c", PAIRED)],
    clusters={"m": [["a"], ["b", "c"]]},
)


def as_object(result):
    return json.loads(as_json(result))


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
        (["n"], -1, "n of the report is not from 0 to"),
        (["metrics", 0, "digits"], 31, "digits of an item of metrics is not from 0 to 30"),
        (["systems", 0, "scores", "m", "ci95"], None, "intervals of some of the scores"),
        (["systems", 0, "scores", "m", "seeds"], [], "a system has no score of a seed"),
        (["systems", 1, "paired", "m", "test"], "x", "comparisons by .* one that is not known"),
        (["systems", 2, "paired"], {}, "comparisons by some of the metrics, or of some of the sys"),
        (["systems", 0, "paired"], {"m": as_object(PAIRED)}, "the first system is compared with i"),
        (["pairs", 0, "system"], "d", "a pair of other systems, or by another metric"),
        (["clusters", "m", 0], ["d"], "clusters of other systems, or by other metrics"),
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


@pytest.mark.parametrize(
    "parts",
    [
        [[{"a": 1}, {"b": 2}], []],
        [[{"a": 1}], [{"a": [1]}]],
        [[{"a": [1]}], [{"a": [1, 2]}]],
        [[{"a": [1]}, {}], [{"a": [1]}]],
    ],
)
def test_parts_that_differ_between_seeds_or_systems_are_refused(path, parts):
    document = json.loads(as_json(REPORT))
    for system, given in zip(document["systems"], parts, strict=False):
        system["scores"]["m"]["parts"] = given
    path.write_text(json.dumps(document))
    assert "is made of other parts than that of another" in shown_or_refused(path)


def test_an_interval_may_be_missing_of_a_single_output_alone(path):
    """It may if others have several: theirs are of seeds, of which one output shows nothing."""
    document = json.loads(as_json(REPORT))
    document["systems"][2]["scores"]["m"]["ci95"] = None
    path.write_text(json.dumps(document))
    assert "intervals of some of the scores" in shown_or_refused(path)
    for one in document["systems"][:2]:
        one["files"], one["scores"]["m"]["seeds"] = ["x", "y"], [1.0, 2.0]
    path.write_text(json.dumps(document))
    assert shown_or_refused(path) == ""
    assert read(str(path)).n_seeds == "1 to 2"
    document["systems"][2]["scores"]["m"]["ci95"] = [1, 2]
    path.write_text(json.dumps(document))
    assert "intervals of some of the scores" in shown_or_refused(path)


@pytest.mark.parametrize("figure", [1e151, -1e308, 10**160])
@pytest.mark.parametrize("field", ["score", "seeds", "ci95"])
def test_figures_that_charts_cannot_hold_are_refused(path, figure, field):
    document = json.loads(as_json(REPORT))
    document["systems"][0]["scores"]["m"][field] = figure if field == "score" else [figure, 1.0]
    path.write_text(json.dumps(document))
    assert f"{field} of 'm' is not within 1e+150" in shown_or_refused(path)


def shown_or_refused(path):
    """The problem of a report, or "" where each of its forms could be made."""
    try:
        report = read(str(path))
    except DataError as error:
        return str(error)
    for detailed in (False, True):
        for form in FORMATS.values():
            form(replace(report, detailed=detailed))
    return ""


def test_mutated_reports_end_in_all_forms_or_an_error(path):
    for data in mutations(as_json(REPORT), 4, JSON_PIECES, 300):
        path.write_bytes(data)
        problem = shown_or_refused(path)
        of_bytes = re.search(r"report\.json:\d+: invalid UTF-8 at byte \d+ ", problem)
        assert not problem or of_bytes or "report.json: not from" in problem


def test_reports_with_odd_values_end_in_all_forms_or_an_error(path):
    rng = random.Random(5)
    document = json.loads(as_json(REPORT))
    problems = []
    for _ in range(2000):
        path.write_text(json.dumps(mutated_value(document, rng)))
        problems.append(shown_or_refused(path))
    assert all("report.json: not from" in one for one in problems if one)
    assert 0.05 < problems.count("") / len(problems) < 0.5
