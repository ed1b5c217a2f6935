"""The three forms of a report, on one small report."""

import json
from dataclasses import replace

import pytest

from synmt_cli.formats.reports.score.scores import HOLM, ScoredBucket, ScoreReport, Settings
from synmt_cli.formats.reports.score.systems import MetricInfo, PairedComparison, ScoredSystem
from synmt_cli.formats.reports.table import Table, aligned, as_json, as_text, as_tsv

BLEU = MetricInfo("bleu", "BLEU", "nrefs:1|tok:13a", higher_is_better=True, digits=2)
TER = MetricInfo("ter", "TER", "nrefs:1|tok:tercom", higher_is_better=False, digits=2)
PAIRED = {
    "bleu": PairedComparison("bs", "centred", 1000, 12345, 1.5, (0.25, 2.75), 0.004),
    "ter": PairedComparison("bs", "centred", 1000, 12345, -0.5, (-1.5, 0.5), 0.2),
}


@pytest.fixture
def report():
    return ScoreReport(
        n=1200,
        references=["ref.de"],
        metrics=[BLEU, TER],
        systems=[
            ScoredSystem("base.de", {"bleu": 20.0, "ter": 60.0}),
            ScoredSystem("new.de", {"bleu": 21.5, "ter": 59.5}, PAIRED),
        ],
        buckets=[
            ScoredBucket("0-9", 0, 9, 1200, [{"bleu": 20, "ter": 60}, {"bleu": 21.5, "ter": 60}]),
            ScoredBucket("10+", 10, None, 0, [dict.fromkeys(["bleu", "ter"])] * 2),
        ],
        formula="a formula",
        interval_n=1000,
    )


def test_table(report):
    assert (
        as_text(report).decode()
        == """\
1,200 sentences against ref.de

system    BLEU       TER
base.de  20.00     60.00
new.de   21.50^**  59.50^

Differences from base.de: paired bootstrap

system  metric  delta   95 % interval       p
new.de  BLEU    +1.50  [+0.25, +2.75]  0.0040
new.de  TER     -0.50  [-1.50, +0.50]  0.2000

BLEU by length

length      n  base.de         new.de
0-9     1,200    20.00  21.50 (+1.50)

TER by length

length      n  base.de         new.de
0-9     1,200    60.00  60.00 (+0.00)

^ the best score
* p < 0.05, ** p < 0.01 against base.de: paired bootstrap
a star: if the two were equal, so large a difference would be unlikely
p, centred: a formula
at 0.05 this p calls 6 % of equal systems different, 27-44 % where training runs vary much
sacreBLEU's own definition (--p sacrebleu) would give another p: 12 %, and then 34-55 %
95 % interval of delta = system - base.de: percentile bootstrap, 1,000 samples, seed 12345
a bucket of all sentences is not tested again
length: no sentences in 10+
BLEU|nrefs:1|tok:13a
TER|nrefs:1|tok:tercom (lower is better)

In words, against base.de:
new.de: better by BLEU (+1.50); undecided by TER (-0.50 ± 1.00)
undecided is not "equal": a difference smaller than what follows ± could not be significant here
each system is one output: that says nothing of how training runs vary, and another seed may turn \
it around
"""
    )


def test_json_is_the_documented_one(report):
    document = json.loads(as_json(report))
    assert [*document][:4] == ["n", "references", "systems", "buckets"]
    base = document["systems"][0]
    assert (base["name"], base["paired"]) == ("base.de", {})
    assert base["scores"]["bleu"] == {
        "score": 20.0,
        "signature": "nrefs:1|tok:13a",
        "sd": None,
        "ci95": None,
        "seeds": [20.0],
        "parts": [],
    }
    assert document["systems"][1]["paired"]["bleu"] == {
        "test": "bs",
        "definition": "centred",
        "n": 1000,
        "seed": 12345,
        "delta": 1.5,
        "ci95": [0.25, 2.75],
        "p": 0.004,
        "p_corrected": None,
        "contradicts_delta": False,
    }
    first, last = document["buckets"]
    assert (first["name"], first["low"], first["high"], first["n"]) == ("0-9", 0, 9, 1200)
    assert first["systems"][1]["scores"]["bleu"] == {"score": 21.5, "delta": 1.5}
    assert last["high"] is None
    assert last["systems"][0]["scores"]["ter"] == {"score": None, "delta": None}


def test_tsv_has_one_line_for_each_figure(report):
    header, *rows = [line.split("\t") for line in as_tsv(report).decode().splitlines()]
    records = [dict(zip(header, row, strict=True)) for row in rows]
    assert len(records) == 3 * 2 * 2  # the whole and two buckets, systems, metrics
    best = records[2]
    assert (best["bucket"], best["system"], best["metric"]) == ("all", "new.de", "bleu")
    assert (best["score"], best["delta"], best["p"]) == ("21.5", "1.5", "0.004")
    assert (best["ci95_low"], best["definition"], best["seed"]) == ("0.25", "centred", "12345")
    assert records[-1]["score"] == "n/a"


def test_no_difference_is_never_marked():
    assert PairedComparison("bs", "sacrebleu", 1000, 1, 0.0, (0.0, 0.0), 1 / 1001).mark() == ""
    marks = [
        PairedComparison("bs", "centred", 1000, 1, 0.1, (0.0, 0.1), p).mark()
        for p in (0.05, 0.04, 0)
    ]
    assert marks == ["", "*", "**"]


def test_a_name_cannot_break_a_line():
    assert aligned(Table(["a\nb", "c"], [["\u202e", "d"]])) == ["a\\nb    c", "\\u202e  d"]


def test_stars_follow_the_corrected_p_and_the_direction_of_the_test():
    def one(**further):
        return PairedComparison("sign", "binomial", 100, 1, 19.85, (9.0, 29.0), 0.0001, **further)

    assert one().mark() == "**"
    assert one(corrected=0.02).mark() == "*"
    assert one(corrected=0.2).mark() == ""
    assert one(counts=(30, 70, 0), contradicts=True).mark() == ""  # 30 wins by far, 70 losses


@pytest.mark.parametrize(
    ("n", "in_buckets", "n_samples", "said"),
    [
        (2, 0, 1000, ""),
        (2, 60, 1000, "p is at least 0.001, p (Holm) 0.06 in buckets: more"),
        (
            12,
            60,
            999,
            "p is at least 0.001, p (Holm) 0.012 and 0.06 in buckets: more --samples can",
        ),
        (12, 60, 10**5, ""),
        (2, 4000, 999, "p is at least 0.001, p (Holm) 1 in buckets: more"),
    ],
)
def test_samples_that_are_too_few_for_stars_are_told_after_a_correction(
    report, n, in_buckets, n_samples, said
):
    paired = {name: replace(one, n=n_samples, corrected=1.0) for name, one in PAIRED.items()}
    systems = [report.systems[0], replace(report.systems[1], paired=paired)]
    settings = Settings(correction=HOLM, n_comparisons=n, n_bucket_comparisons=in_buckets)
    text = as_text(replace(report, systems=systems, settings=settings)).decode()
    assert ("p is at least" in text) == bool(said)
    assert said in text


@pytest.mark.parametrize(("n_samples", "said"), [(12, "p is at least 0.077: more"), (100, "")])
def test_samples_that_are_too_few_without_a_correction_are_told(report, n_samples, said):
    paired = {name: replace(one, n=n_samples, corrected=None) for name, one in PAIRED.items()}
    systems = [report.systems[0], replace(report.systems[1], paired=paired)]
    text = as_text(replace(report, systems=systems, settings=Settings())).decode()
    assert ("p is at least" in text) == bool(said)
    assert said in text
