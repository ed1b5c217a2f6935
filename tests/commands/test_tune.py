"""`synmt tune`: for each length penalty exactly what translate and score give with it."""

from __future__ import annotations

import json
import re
from functools import partial

import pytest
from sacrebleu import corpus_bleu

from synmt_cli.formats.reports.tuning import TunedValue, TuningReport, best_of, read

GRID = ("--lenpen", "0:2:1", "--beam", 2)


@pytest.fixture(scope="module")
def tuned(shop):
    """The reports of a model that writes pieces, and of one that writes trees."""
    return {
        variant: json.loads(
            shop("tune", "-m", variant, *GRID, "--format", "json", "dev.jsonl", status=0).stdout
        )
        for variant in ("vanilla", "linearized")
    }


def told(said, what):
    """How many segments a remark on stderr counts."""
    found = re.search(rf"(\d+) of \d+ segments {what}", said)
    return int(found[1]) if found else 0


@pytest.mark.parametrize("variant", ["vanilla", "linearized"])
def test_each_value_gives_what_translate_and_score_give(shop, tuned, variant):
    targets = "".join(record["tgt"] + "\n" for record in shop.records("dev.jsonl"))
    (shop.folder / "dev.tgt").write_text(targets)
    report = tuned[variant]
    assert [one["lenpen"] for one in report["values"]] == [0, 1, 2]
    assert report["segments"] == len(shop.records("dev.jsonl"))
    for one in report["values"][::2]:
        options = ("--beam", 2, "--lenpen", one["lenpen"], "-o", "tuned.hyp", "dev.jsonl")
        done = shop.translate(variant, *options)
        said = done.stderr.decode()
        assert told(said, "reached the length limit") == one["cut"]
        assert (one["closed"] is None) == (variant == "vanilla")
        assert told(said, "ended before their tree was complete") == (one["closed"] or 0)
        given = ("score", "-M", "bleu", "--format", "tsv", "dev.tgt", "tuned.hyp")
        header, row = shop(*given, status=0).stdout.decode().splitlines()[:2]
        score = dict(zip(header.split("\t"), row.split("\t"), strict=True))["score"]
        assert one["bleu"] == pytest.approx(float(score))
    bleu = [one["bleu"] for one in report["values"]]
    assert report["best"] == report["values"][bleu.index(max(bleu))]


@pytest.fixture(scope="module")
def learned(shop):
    """A model whose translations depend on how it searches."""
    settings = ("lr=0.02", "initial_lr=0", "warmup=20", "save_every=30")
    settings = [f"training.{setting}" for setting in settings]
    shop.train("vanilla", *settings, run="learned", options=("--max-steps", 60))
    return "learned"


def test_the_options_of_search_and_model_are_those_of_translate(shop, learned):
    references = [record["tgt"] for record in shop.records("dev.jsonl")]
    found = []
    for options in ((), ("--checkpoint", "step-30"), ("--patience", 0.25)):
        one = ("--beam", 5, *options, "dev.jsonl")
        done = shop("tune", "-m", learned, "--lenpen", "1:1", "--format", "json", *one, status=0)
        (value,) = json.loads(done.stdout)["values"]
        hypotheses = shop.translate(learned, "--lenpen", 1, *one).stdout.decode().splitlines()
        bleu = corpus_bleu(hypotheses, [references])
        assert value["bleu"] == pytest.approx(bleu.score)
        assert value["length_ratio"] == pytest.approx(bleu.sys_len / bleu.ref_len)
        found.append(hypotheses)
    assert found[1] != found[0] != found[2], "each option matters"


def test_a_failed_record_ends_a_strict_tuning(shop):
    record, *others = shop.records("dev.jsonl")
    failed = shop.write("failed.jsonl", [*others, {**record, "status": "failed"}])
    shop("tune", "-m", "vanilla", *GRID, failed, status=0)
    done = shop("tune", "-m", "vanilla", *GRID, "--strict", failed, status=65)
    assert b"failed.jsonl:5: " in done.stderr


def test_the_forms_agree(shop, tuned):
    best = tuned["linearized"]["best"]
    given = ("tune", "-m", "linearized", *GRID, "dev.jsonl")
    assert shop(*given, "--get", "lenpen").stdout.decode() == f"{best['lenpen']!r}\n"
    odd = ("tune", "-m", "linearized", "--lenpen", "0.1234567:0.1234567", "dev.jsonl")
    assert shop(*odd, "--get", "lenpen").stdout == b"0.1234567\n"
    table = shop(*given, "-j", 2).stdout.decode()  # by several processes, too
    lines = table.splitlines()
    assert lines[2].split() == ["lenpen", "BLEU", "BP", "length", "cut", "closed"]
    assert f"best lenpen: {best['lenpen']:g}" in lines
    (marked,) = [line.split() for line in lines if "^" in line]
    assert marked[:2] == [f"{best['lenpen']:g}", f"{best['bleu']:.2f}^"]


def test_translate_takes_the_best_value_of_a_report(shop, tuned):
    report = tuned["vanilla"]
    other = max(report["values"], key=lambda one: one["lenpen"] != 0.6 and one["lenpen"])
    (shop.folder / "tuned.json").write_text(json.dumps(report | {"best": other}))
    for beam, n_lines in ((2, 0), (3, 1)):
        options = ("--beam", beam, "--format", "tsv", "dev.jsonl")
        by_report = shop.translate("vanilla", "--tuned", "tuned.json", *options)
        by_hand = shop.translate("vanilla", "--lenpen", other["lenpen"], *options)
        assert by_report.stdout == by_hand.stdout != shop.translate("vanilla", *options).stdout
        assert by_report.stderr.count(b"tuned.json was tuned with --beam 2, not 3") == n_lines


def test_translate_searches_as_the_report_did(shop, learned):
    """It takes beam and patience from the report, too, unless others are given."""
    search = ("--beam", 3, "--patience", 0.4)
    tune = ("tune", "-m", learned, "--lenpen", "1:1", *search, "-o", "searched.json")
    shop(*tune, "--format", "json", "dev.jsonl", status=0)
    report = json.loads((shop.folder / "searched.json").read_text())
    assert (report["beam"], report["patience"]) == (3, 0.4)
    shown = shop("info", "searched.json", status=0).stdout
    assert b"patience\t0.4\n" in shown

    translate = partial(shop.translate, learned, "--format", "tsv", "dev.jsonl")
    by_hand = translate("--lenpen", 1, *search)
    by_report = translate("--tuned", "searched.json")
    assert (by_report.stdout, by_report.stderr) == (by_hand.stdout, by_hand.stderr)
    found = {by_report.stdout}
    for others, said in (
        (("--beam", 4), b"searched.json was tuned with --beam 3, not 4"),
        (
            ("--patience", "inf"),
            b"searched.json was tuned with --patience 0.4, not with --patience inf",
        ),
    ):
        done = translate("--tuned", "searched.json", *others)
        by_hand = translate("--lenpen", 1, *search, *others)  # the later one counts
        assert done.stdout == by_hand.stdout
        assert said in done.stderr
        found.add(done.stdout)
    assert len(found) == 3, "beam and patience matter here"


def test_a_report_without_patience_is_of_an_exact_search(shop, tuned):
    assert tuned["vanilla"]["patience"] is None
    (shop.folder / "exact.json").write_text(json.dumps(tuned["vanilla"]))
    done = shop.translate("vanilla", "--tuned", "exact.json", "--patience", 1, "dev.jsonl")
    assert b"exact.json was tuned without --patience, not with --patience 1" in done.stderr
    done = shop.translate("vanilla", "--tuned", "exact.json", "--patience", "inf", "dev.jsonl")
    assert b"was tuned" not in done.stderr


@pytest.mark.parametrize(
    ("scores", "lenpens", "said"),
    [
        ([1.0, 2.0, 3.0], [0.5, 1.0, 1.5], "1.5, is the greatest value tried: greater"),
        ([1.0, 2.0, 3.0], [9.0, 9.5, 10.0], ""),  # --lenpen takes no value above 10
        ([3.0, 2.0, 1.0], [0.5, 1.0, 1.5], "0.5, is the smallest value tried: smaller"),
        ([3.0, 2.0, 1.0], [0.0, 0.5, 1.0], ""),
        ([1.0, 3.0, 2.0], [0.5, 1.0, 1.5], ""),
        ([3.0, 2.0, 3.0], [0.5, 1.0, 1.5], ""),  # nothing says that smaller ones are better
        ([2.0], [0.5], ""),
    ],
)
def test_a_best_value_at_an_end_is_said(scores, lenpens, said):
    values = [
        TunedValue(lenpen, score, 1.0, 1.0, 0, None)
        for lenpen, score in zip(lenpens, scores, strict=True)
    ]
    doubts = TuningReport(2, 4, None, best_of(values), values, "").doubts
    assert [f"the best, {said} ones may be better"] * bool(said) == doubts


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        (
            [0.0, 0.0, 0.0],
            "all values have the same BLEU, 0.00: it decides nothing, and 0.1 is only",
        ),
        ([7.5, 7.5], "the same BLEU, 7.50"),
        ([0.0, 0.0, 1e-9], ""),
        ([0.0], ""),
    ],
)
def test_values_that_tie_are_said_to_decide_nothing(scores, said):
    values = [TunedValue(i / 10, score, 1.0, 1.0, 0, None) for i, score in enumerate(scores, 1)]
    found = " ".join(TuningReport(2, 4, None, best_of(values), values, "").doubts)
    assert ("decides nothing" in found) == bool(said)
    assert said in found


def test_doubts_are_said_on_stderr(shop, learned):
    options = ("--lenpen", "0.1:0.3", "--beam", 2, "--format", "json", "-o", "ends.json")
    done = shop("tune", "-m", learned, *options, "dev.jsonl", status=0)
    (doubt,) = read(str(shop.folder / "ends.json")).doubts
    assert f"synmt tune: warning: {doubt}\n" in done.stderr.decode()


def test_bleu_is_by_the_tokenizer_asked_for_which_the_report_keeps(shop, learned):
    hypotheses = shop.translate(learned, "--beam", 2, "--lenpen", 1, "dev.jsonl")
    hypotheses = hypotheses.stdout.decode().splitlines()
    records = shop.records("dev.jsonl")
    # A greeting for each, of Han characters that the model cannot write
    chinese = [{**one, "tgt": "你好，很高兴认识你。" * 2} for one in records]
    shop.write("chinese.jsonl", chinese)
    for file, tokenize, warns in (
        ("dev.jsonl", "char", False),
        ("dev.jsonl", "13a", False),
        ("chinese.jsonl", "13a", True),
        ("chinese.jsonl", "zh", False),
    ):
        options = ("--lenpen", "1:1", "--beam", 2, "--tokenize", tokenize, "--format", "json", file)
        done = shop("tune", "-m", learned, *options, status=0)
        report = json.loads(done.stdout)
        references = [record["tgt"] for record in shop.records(file)]
        expected = corpus_bleu(hypotheses, [references], tokenize=tokenize)
        assert report["best"]["bleu"] == pytest.approx(expected.score)
        assert report["best"]["length_ratio"] == pytest.approx(expected.sys_len / expected.ref_len)
        assert report["tokenize"] == tokenize
        assert b"decides nothing" not in done.stderr
        warning = b"Han characters without spaces, whose clauses tokenizer 13a takes for words; use"
        assert (warning + b" --tokenize zh\n" in done.stderr) == warns


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        ("", 65, b"bad.json: not from `synmt tune --format json`: invalid JSON"),
        ('{"segments": 2}', 65, b"values are missing"),
        ('{"segments": 2, "beam": 2, "signature": "", "best": {}, "values": []}', 65, b"values"),
        (None, 66, b"bad.json: No such file"),
    ],
)
def test_a_report_of_something_else_is_refused(shop, text, status, message):
    (shop.folder / "bad.json").unlink(missing_ok=True)
    if text is not None:
        (shop.folder / "bad.json").write_text(text)
    for command in (("translate", "-m", "vanilla", "--tuned", "bad.json", "dev.jsonl"),
                    ("report", "--tuned", "bad.json")):  # fmt: skip
        done = shop(*command, status=status)
        assert (done.stdout, done.stderr.count(b"\n")) == (b"", 1)
        assert message in done.stderr


@pytest.mark.parametrize("change", [{"beam": 0}, {"beam": 1001}, {"patience": 0}, {"patience": -1}])
def test_a_report_of_no_search_is_refused(shop, tuned, change):
    (shop.folder / "bad.json").write_text(json.dumps(tuned["vanilla"] | change))
    done = shop("translate", "-m", "vanilla", "--tuned", "bad.json", "dev.jsonl", status=65)
    assert b"bad.json: not from `synmt tune --format json`: values are missing" in done.stderr


def test_two_length_penalties_are_refused(shop):
    command = ("translate", "-m", "vanilla", "--tuned", "x", "--lenpen", 1, "dev.jsonl")
    assert b"both name the length penalty" in shop(*command, status=2).stderr


@pytest.mark.parametrize("others", [("--tuned", "-", "dev.jsonl"), (), ("-",)])
def test_a_report_and_something_else_on_stdin_are_refused(shop, others):
    command = ("translate", "-m", "vanilla", "--tuned", "-", *others)
    assert b"stdin" in shop(*command, status=2).stderr


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (
            ("--lenpen", "1:0"),
            2,
            b"--lenpen '1:0': expected LOW:HIGH or LOW:HIGH:STEP within 0..10",
        ),
        (("--lenpen", "nan:1"), 2, b"expected LOW:HIGH"),
        (("--lenpen", "0.5:1:0.3"), 2, b"steps of 0.3 do not lead from 0.5 to 1"),
        (("--lenpen", "0.2:1.05"), 2, b"steps of 0.1 do not lead from 0.2 to 1.05"),
        (("--lenpen", "0:1:0"), 2, b"expected LOW:HIGH"),
        (("--lenpen", "0:10:0.001"), 2, b"more than 1,000 values"),
        (("--lenpen", "0:1:1e-5000"), 2, b"more than 1,000 values"),
        (("--lenpen", "\u0661:\u0662"), 2, b"expected LOW:HIGH"),
        (("--lenpen", "1_0:1_0"), 2, b"expected LOW:HIGH"),
        (("--beam", 1), 2, b"--beam"),
        (("--tokenize", "zhh"), 2, b"no tokenizer 'zhh'; there are 13a, none, char, intl, zh, ja"),
        (("--get", "bleu", "--format", "tsv"), 2, b"--get prints one figure"),
        (("empty.jsonl",), 65, b"empty.jsonl: no records to tune on"),
        (("bare.jsonl",), 65, b"bare.jsonl:2: no tgt to compare with"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(shop, options, status, message):
    first, second = shop.records("dev.jsonl")[:2]
    del second["tgt"]
    shop.write("bare.jsonl", [first, second])
    shop.write("empty.jsonl", [])
    done = shop("tune", "-m", "vanilla", *options, status=status)
    assert (done.stdout, done.stderr.count(b"\n")) == (b"", 1)
    assert message in done.stderr


def test_several_reports_are_averaged(shop, tuned):
    """The value with the best mean is not the best one of either report."""
    report = tuned["vanilla"]
    lenpens = [one["lenpen"] for one in report["values"]]
    scores = [10.0, 9.0, 0.0], [0.0, 9.0, 10.0]
    for name, given in zip(("a.json", "b.json"), scores, strict=True):
        padded = dict(zip(lenpens, given, strict=False))
        values = [one | {"bleu": padded.get(one["lenpen"], 0.0)} for one in report["values"]]
        best = max(values, key=lambda one: one["bleu"])
        (shop.folder / name).write_text(json.dumps(report | {"values": values, "best": best}))
    options = ("--format", "jsonl", "--beam", 2, "dev.jsonl")
    by_mean = shop.translate("vanilla", "--tuned", "a.json", "--tuned", "b.json", *options)
    assert by_mean.stdout == shop.translate("vanilla", "--lenpen", lenpens[1], *options).stdout
    assert by_mean.stdout != shop.translate("vanilla", "--lenpen", lenpens[0], *options).stdout


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("beam", b"b.json: tuned with --beam 7, but a.json with --beam 2"),
        ("patience", b"b.json: tuned with --patience 1, but a.json without --patience"),
        ("tokenize", b"b.json: tuned with --tokenize zh, but a.json with --tokenize 13a"),
        ("values", b"b.json: other length penalties than in a.json"),
    ],
)
def test_reports_of_other_searches_are_not_averaged(shop, tuned, field, message):
    report = tuned["vanilla"]
    change = {"beam": 7, "patience": 1, "tokenize": "zh", "values": [report["best"]]}
    report = {name: value for name, value in report.items() if name != "tokenize"}  # it was 13a
    (shop.folder / "a.json").write_text(json.dumps(report))
    (shop.folder / "b.json").write_text(json.dumps(report | {field: change[field]}))
    command = ("translate", "-m", "vanilla", "--tuned", "a.json", "--tuned", "b.json", "dev.jsonl")
    assert message in shop(*command, status=65).stderr
