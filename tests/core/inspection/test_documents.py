"""Files that only info, check and view read back: kinds, figures, and damage with its line."""

import io
import json
import re

import numpy as np
import pytest

from synmt_cli.core.inspection import documents, folders
from synmt_cli.core.inspection.inputs import opened
from synmt_cli.core.jobs import view_attention
from synmt_cli.errors import ReadError
from synmt_cli.formats import attention, segment_scores
from synmt_cli.formats.attention import Attention
from synmt_cli.formats.detect import detect_file, detect_trees, table_of
from synmt_cli.formats.reports.analysis.awsl import AwslReport, LayerWeights, RunWeights
from synmt_cli.formats.reports.analysis.heads import (
    HeadFigures,
    HeadsReport,
    RelationFigures,
    RunFigures,
)
from synmt_cli.formats.reports.analysis.probes import ProbedRun, ProbeReport, ProbeResult, TaskInfo
from synmt_cli.formats.reports.analysis.structural_probes import (
    MEASURES,
    StructuralFigures,
    StructuralReport,
)
from synmt_cli.formats.reports.mixup_scores import JudgedSystem, JudgedTranslation, MixupReport
from synmt_cli.formats.reports.score.scores import ScoreReport
from synmt_cli.formats.reports.score.sets import SetReport
from synmt_cli.formats.reports.score.systems import MetricInfo, ScoredSystem
from synmt_cli.formats.reports.table import as_json, as_tsv
from synmt_cli.formats.reports.tree_comparison import ParserReport
from synmt_cli.formats.reports.tree_scores import MatchCount, TreeReport
from synmt_cli.formats.reports.tuning import TunedValue, TuningReport
from synmt_cli.io import json_files
from synmt_cli.io.reading import Source

LAYERS = [LayerWeights(0, ["pascal"], 0.25, [0.25, None])]
SEEN = [HeadFigures(0, 1, "up", 0.25, 0.1), HeadFigures(0, 1, "down", 0.5, 0.2)]
RELATIONS = [RelationFigures("all", 4, 1, 0.5, SEEN), RelationFigures("det", 0, None, None, [])]
BEST = TunedValue(0.6, 31.5, 1.0, 1.0, 0, None)
PROBES = ProbeReport(
    [TaskInfo("tense", "surface", 2, 9, 3, 3, 50.0)],
    [ProbedRun("runs/p", [ProbeResult("tense", 81.0, 80.0, 4.0)])],
    *(0, 0.0, 1),
)
METRIC = MetricInfo("bleu", "BLEU", "nrefs:1", True, 2)
RESULTS = {
    "awsl": AwslReport([RunWeights("runs/p", "pascal", 40, LAYERS)]),
    "heads": HeadsReport([RunFigures("runs/p", "pascal", 40, RELATIONS)], False, 20),
    "tune": TuningReport(40, 4, None, BEST, [BEST], "nrefs:1"),
    "evaltree": TreeReport("gold", "hyp", False, {"UAS": MatchCount(3, 4, 4)}),
    "probe": PROBES,
    "score": ScoreReport(40, ["ref"], [METRIC], [ScoredSystem("a.de", {"bleu": 31.5})]),
    "mixup": MixupReport(
        [JudgedSystem("a", [JudgedTranslation("1", "object", "ovs", "x", "y", "right_active")])]
    ),
}
FIGURES = {
    "awsl": {"runs": {"runs/p": {"variant": "pascal", "sentences": 40, "awsl": [0.25]}}},
    "heads": {"runs": {"runs/p": {"variant": "pascal", "sentences": 40, "accuracy": {"all": 0.5}}}},
    "tune": {"segments": 40, "beam": 4, "values": 1, "best": {"lenpen": 0.6, "bleu": 31.5}},
    "evaltree": {"gold": "gold", "system": "hyp", "uas": 75.0},
    "probe": {"tasks": ["tense"], "accuracy": {"runs/p": {"tense": 81.0}}, "seeds": 1},
    "score": {"segments": 40, "references": ["ref"], "scores": {"a.de": {"bleu": 31.5}}},
    "mixup": {"systems": {"a": {"object_ovs": 100.0, "all_ovs": 100.0}}},
}
NO_FIGURES = dict.fromkeys(MEASURES)
LINEAR = StructuralFigures(NO_FIGURES, NO_FIGURES, NO_FIGURES, None)
FURTHER = {
    "synmt score --sign-over": SetReport(["a.json"], ["bleu"], "base.de", [], "exact binomial"),
    "synmt evaltree": ParserReport("gold", False, 40, []),
    "synmt analyze probe --structural": StructuralReport((9, 3, 3), LINEAR, [], 0, 1),
}
MAP = Attention("1", "ok", "encoder", None, ["a", "b"], ["x", "y"], {(0, 1): np.eye(2)})
REPORT = {"event": "train", "step": 50, "epoch": 1, "nll": 2.5}
DEV = {"event": "dev", "step": 60, "epoch": 1, "perplexity": 9.0, "metric": "bleu", "value": 7.0}
METRICS = "".join(json.dumps(one) + "\n" for one in (REPORT, {**DEV, "best": True})).encode()
SCORES = segment_scores.to_bytes("a.de", 0.5) + segment_scores.to_bytes("a.de", 1.0)


def source(data, name="f"):
    return Source(name, io.BufferedReader(io.BytesIO(data)))


def problems(data, kind):
    return [str(one) for one in documents.problems(source(data), kind)]


@pytest.mark.parametrize("name", RESULTS)
def test_a_report_is_named_with_its_figures(name):
    data = as_json(RESULTS[name])
    kind, replayed = detect_file(source(data))
    assert kind == "json"
    found = documents.figures(replayed, kind)
    assert name in found["content"]
    assert FIGURES[name].items() <= found.items()


@pytest.mark.parametrize("command", FURTHER)
def test_a_report_with_fields_of_another_is_told_from_it(command):
    data = as_json(FURTHER[command])
    assert documents.figures(source(data), "json")["content"] == f"report of {command}"
    assert problems(data, "json") == []


@pytest.mark.parametrize("name", [name for name in RESULTS if name != "score"])
def test_a_whole_report_has_no_problem_and_a_damaged_one_is_named_with_its_line(name):
    data = as_json(RESULTS[name])
    assert problems(data, "json") == []
    line = data.count(b"\n") // 2
    cut = b"".join(data.splitlines(keepends=True)[:line])
    [problem] = problems(cut, "json")
    assert problem.startswith((f"f:{line + 1}: not JSON: ", f"f:{line}: not JSON: "))


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [("awsl", "awsl", 7.5), ("heads", "subtypes", 1), ("tune", "bleu", 999)],
)
def test_what_its_reader_would_refuse_is_a_problem(name, key, value):
    text = re.sub(
        rf'"{key}": ?[^,\s}}]+', f'"{key}": {value}', as_json(RESULTS[name]).decode(), count=1
    )
    [problem] = problems(text.encode(), "json")
    assert problem.startswith("f: not from `synmt ")


def test_fields_that_are_missing_are_a_problem():
    assert problems(b'{"sets": 1, "baseline": 2, "systems": 3}', "json") == [
        "f: damaged: not all of report of synmt score --sign-over"
    ]
    [problem] = problems(b'{"n": 1, "references": ["r"], "systems": [{}]}', "json")
    assert problem.startswith("f: not from `synmt score --format json`: ")


@pytest.mark.parametrize("name", RESULTS)
def test_the_header_of_a_table_is_known(name):
    header = as_tsv(RESULTS[name])
    assert name.split()[0] in table_of(header)
    found = documents.figures(detect_file(source(header))[1], "table")
    assert found["rows"] == header.count(b"\n") - 1
    row = header.split(b"\n")[1]
    assert problems(header + row + b"\tmore\n", "table")[0].startswith(f"f:{found['rows'] + 2}: ")


@pytest.mark.parametrize(
    ("data", "kind", "figures", "damaged", "problem"),
    [
        (
            METRICS,
            "metrics",
            {"reports": 1, "validations": 1, "step": 60, "best": {"metric": "bleu", "value": 7.0}
             | {"step": 60, "perplexity": 9.0}},
            METRICS + b'{"event": "dev"}\n',
            "f:3: field step is missing or not an integer",
        ),
        (
            attention.to_bytes(MAP, 2),
            "attention",
            {"segments": 1, "stacks": {"encoder": 1}, "layers": [0], "heads": [1], "tokens": 2},
            attention.to_bytes(MAP, 2).replace(b"[1.0,0.0]", b"[1.0]"),
            "f:1: not from `synmt analyze attention`: weights that are not 2 rows of 2 numbers",
        ),
        *(
            (
                attention.to_bytes(MAP, 2),
                "attention",
                {"segments": 1},
                attention.to_bytes(MAP, 2).replace(b"[1.0,0.0]", row),
                f"f:1: not from `synmt analyze attention`: {problem}",
            )
            for problem, rows in (
                (
                    "weights that are not 2 rows of 2 numbers",
                    (b"[null,0.0]", b'["1.0",0.0]', b"[[1.0],[0.0]]"),
                ),
                (
                    "a weight that is not from 0 to 1",
                    (b"[-5,0.0]", b"[1e308,0.0]", b"[1.1,0.0]"),
                ),
            )
            for row in rows
        ),
        (
            SCORES,
            "segment-scores",
            {"lines": 2, "systems": {"a.de": {"segments": 2, "mean": 0.75}}},
            SCORES + b"a.de\tnan\n",
            "f:3: the score 'nan' of 'a.de' is not a finite number",
        ),
        (
            b'# mine\n\nvariant = "pascal"\n[model]\nd_ff = 8\n',
            "config",
            {"variant": "pascal", "model": {"d_ff": 8}},
            b'variant = "vanilla"\n[model]\ndropuot = 8\n',
            "f:3: model.dropuot: no such key; did you mean 'dropout'? (see synmt settings model)",
        ),
    ],
)  # fmt: skip
def test_a_file_is_known_by_its_beginning(data, kind, figures, damaged, problem):
    found, replayed = detect_file(source(data))
    assert found == kind
    assert figures.items() <= documents.figures(replayed, kind).items()
    assert problems(data, kind) == []
    assert problems(damaged, kind) == [problem]
    assert detect_file(source(damaged))[0] == kind


def test_a_line_that_a_training_is_writing_is_left_out():
    begun = METRICS + METRICS.splitlines()[-1]
    for length in (1, 9, len(METRICS.splitlines()[-1])):
        data = begun[: len(METRICS) + length]
        assert problems(data, "metrics") == []
        whole = documents.figures(source(METRICS), "metrics")
        assert documents.figures(source(data), "metrics") == whole
    assert len(problems(METRICS + METRICS[:9] + b"\n", "metrics")) == 1


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"\n", b"[sic] he said\n", b"{a}\n", b"variant\n", b"a\tb\n"),
        *(b"# heading\ntext\n", b"a 1.5\n"),
    ],
)
def test_text_stays_text(data):
    found, replayed = detect_file(source(data))
    assert (found, replayed.file.read()) == ("text", data)


@pytest.mark.parametrize(
    "data", [b"1\tdog\n", b"# sent_id = 1\n1\ta\n", b'{"src": "a"}\n', b"the LEFT-ARC:det\n"]
)
def test_streams_are_detected_as_by_other_commands(data):
    assert detect_file(source(data))[0] == detect_trees(source(data))[0]


def test_small_files_of_a_run_are_told_apart(tmp_path):
    json_files.write(tmp_path / "labels.json", ["nsubj", "obj"])
    with opened(str(tmp_path / "labels.json")) as one:
        assert documents.figures(one.source, one.kind) == {"content": "labels of a run", "texts": 2}
    json_files.write_sealed(tmp_path / "state.json", {"step": 7})
    data = (tmp_path / "state.json").read_bytes()
    assert documents.figures(source(data), "json")["step"] == 7
    assert problems(data, "json") == []
    assert problems(data.replace(b'"step": 7', b'"step": 8'), "json") == [
        "f:1: damaged: it does not have the digest it states"
    ]


def test_a_folder_is_what_its_files_say(tmp_path):
    (tmp_path / "exp/given").mkdir(parents=True)
    for name in ("Makefile", "config.toml"):
        (tmp_path / "exp" / name).write_text("")
    with opened(str(tmp_path / "exp")) as one:
        assert one.kind == "experiment"
    with pytest.raises(ReadError, match="none that synmt writes"), opened(str(tmp_path)):
        pass


def test_an_experiment_is_what_its_makefile_compares(tmp_path):
    """Models of other seeds do not count; a model to begin with that is gone is a problem."""
    for name in ("given/pretrained", "runs", "output"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "Makefile").write_text("VARIANTS := rel dep+rel # two\nSEEDS := 2\n")
    for name in ("rel.1", "rel.2", "dep+rel.1"):
        (tmp_path / f"runs/{name}.trained").touch()
    (tmp_path / "output/rel.1.txt").touch()
    (tmp_path / "spm.model").symlink_to(tmp_path / "general/spm.model")
    (tmp_path / "given/pretrained/rel.2").symlink_to(tmp_path / "general")
    facts = folders.figures(tmp_path, "experiment")
    assert (facts["trained"], facts["translated"]) == ("1 of 2", "0 of 2")
    assert facts["given"]["given/pretrained/rel.2"] == str(tmp_path / "general")
    found = [str(one) for one in folders.problems_of_experiment(tmp_path)]
    assert [one.split(":")[0].removeprefix(f"{tmp_path}/") for one in found] == [
        "given/pretrained/rel.2",
        "spm.model",
    ]


EDITED = """\
SEEDS := 1 2
export SYNMT_VARIANTS := variants.py
NEEDS := data/train.jsonl \\
  src.udpipe
# given/comment
text/raw.src text/dev.src &: given/src # given/aside
\tcp given/recipe text/test.tgt
text/test.%: ../test.%
\tcp $< $@
$(SEEDS:%=runs/rel.%.trained): runs/rel.%.trained: $(NEEDS) text/test.src text/dev.tgt \\
\t\tgiven/pretrained/rel.% given/pretrained/rel.%/model.safetensors | config.toml
\ttrain --pretrained given/pretrained/rel.$*
"""


def test_inputs_of_an_experiment_are_what_rules_need_and_no_rule_makes(tmp_path):
    (tmp_path / "Makefile").write_text(EDITED)
    (tmp_path / "given").mkdir()
    (tmp_path / "given/src").touch()
    found = [str(one) for one in folders.problems_of_experiment(tmp_path)]
    named = (
        *("config.toml", "given/pretrained/rel.1", "given/pretrained/rel.2"),
        *("src.udpipe", "text/dev.tgt", "variants.py"),
    )
    missing = "not there, and make has no rule for it"
    assert found == [f"{tmp_path / name}: {missing}" for name in named]


def test_attention_is_drawn_by_the_share_of_the_strongest_key():
    lines = view_attention.block(MAP, ascii=False, columns=None)
    assert lines == "# 1  encoder, layer 0, head 1\na  █   x 1.00\nb   █  y 1.00\n\n"
    none = Attention("2", "failed", "encoder", "bad\nline")
    assert view_attention.block(none, False, 30) == "# 2  (failed: bad\\nline; no w…\n\n"
    assert all(len(line) <= 9 for line in view_attention.block(MAP, True, 9).split("\n"))
