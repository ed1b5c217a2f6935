"""`synmt analyze` as a user runs it: awsl, heads, attention, probe."""

from __future__ import annotations

import importlib.util
import json
import math
import re
from string import ascii_lowercase

import pytest

from synmt_cli.core.pictures.awsl import chart, lines
from synmt_cli.core.pictures.figures import picture
from synmt_cli.formats.reports.analysis.awsl import LayerWeights, RunWeights

MAX_PIECES = 25  # of a sentence; some sentences have more
NO_MATPLOTLIB = importlib.util.find_spec("matplotlib") is None


@pytest.fixture
def analyze(run, example_folder):
    def analyze(what, *arguments, stdin=b"", model="runs/pascal"):
        given = ("-m", model, "--threads", "1", *arguments)
        return run("analyze", what, *given, stdin=stdin, cwd=example_folder)

    return analyze


# --- awsl ------------------------------------------------------------------------------------


def test_awsl_gives_layers_and_heads_of_each_run(analyze):
    done = analyze("awsl", "-m", "runs/base", "--format", "json", "dev.jsonl")
    assert (done.returncode, done.stderr) == (0, b"")
    pascal, base = json.loads(done.stdout)["runs"]
    assert [one["layer"] for one in pascal["layers"]] == [0, 1, 2, 3]
    assert (pascal["variant"], pascal["sentences"]) == ("pascal", 12)
    bottom = pascal["layers"][0]
    assert bottom["variants"] == ["pascal"]
    assert [head["awsl"] > 0 for head in bottom["heads"]] == [True, True, False, False]
    mean = sum(head["awsl"] for head in bottom["heads"]) / 4
    assert bottom["awsl"] == pytest.approx(mean)
    assert bottom["awsl"] + bottom["equation_7"] == pytest.approx(1)
    assert {one["awsl"] for one in (*pascal["layers"][1:], *base["layers"])} == {0.0}


def test_awsl_reads_text_as_records(analyze):
    """The run's own parser parses it, even for a run without syntax."""
    text = analyze("awsl", "--format", "tsv", stdin=b"A dog sleeps.\n\nThe dog sees a cat.\n")
    assert text.returncode == 0
    assert b"warning: 1 of 3 segments left out: empty" in text.stderr
    rows = [row.split(b"\t") for row in text.stdout.splitlines()]
    assert rows[0][:5] == [b"run", b"layer", b"head", b"variants", b"awsl"]
    assert len(rows) == 1 + 4 * 5
    assert rows[1][-1] == b"2"
    assert analyze("awsl", model="runs/base", stdin=b"A dog sleeps.\n").returncode == 0


def weights(run, **shares):
    layers = []
    for layer in range(3):
        share = shares.get(f"layer{layer}", 0.0)
        variants = ["gps"] if share else []
        layers.append(LayerWeights(layer, variants, share, []))
    return RunWeights(run, "gps", 1, layers)


def test_a_line_is_a_run_or_runs_with_one_layer_each():
    whole = weights("all", layer0=0.5, layer1=0.4)
    one, other = weights("a", layer2=0.1), weights("b", layer0=0.3)
    assert lines([whole, weights("none")]) == [("all", [(0, 0.5), (1, 0.4)])]
    assert lines([one, other]) == [("", [(0, 0.3), (2, 0.1)])]
    assert [name for name, _ in lines([whole, one])] == ["all", "a"]


@pytest.mark.skipif(NO_MATPLOTLIB, reason="no matplotlib")
@pytest.mark.parametrize(
    ("kind", "begin"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_a_picture_is_drawn_the_same_each_time(kind, begin):
    runs = [weights("all", layer0=0.5, layer1=0.4), weights("one", layer2=0.2)]
    drawn = picture([chart(runs)], kind)
    assert drawn.startswith(begin)
    assert picture([chart(runs)], kind) == drawn


@pytest.mark.skipif(NO_MATPLOTLIB, reason="no matplotlib")
@pytest.mark.parametrize(
    ("plot", "status", "message"),
    [
        ("one.png", 2, b": --plot and -o need two files\n"),
        ("absent/f.png", 73, b"absent/f.png: No such file or directory\n"),
    ],
)
def test_a_picture_that_cannot_be_drawn_costs_no_measurement(
    analyze, tmp_path, plot, status, message
):
    given = ("--plot", tmp_path / plot, "-o", tmp_path / "one.png", "absent.jsonl")
    done = analyze("awsl", *given)
    assert done.returncode == status  # before the missing input is noticed
    assert done.stderr.endswith(message)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(NO_MATPLOTLIB, reason="no matplotlib")
def test_a_plot_without_syntax_is_refused_before_anything_is_measured(run, example_folder):
    arguments = ("awsl", "-m", "runs/base", "--plot", "x.png", "absent.jsonl")
    done = run("analyze", *arguments, cwd=example_folder)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--plot: no variant changes a layer's scores" in done.stderr


# --- heads -----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["heads", "awsl"])
def test_no_segments_are_no_measurement(analyze, command):
    for options in ((), ("-q",)):
        done = analyze(command, *options, "--format", "json", stdin=b"")
        assert (done.returncode, done.stdout) == (65, b"")
        assert done.stderr.endswith(b": <stdin>: no segments to measure\n")


@pytest.mark.parametrize("command", ["heads", "awsl"])
def test_segments_without_trees_are_no_measurement(analyze, command):
    done = analyze(command, stdin=b'{"src":"A dog."}\n{"src":""}\n{"src":"A cat."}\n')
    assert (done.returncode, done.stdout) == (65, b"")
    assert done.stderr.endswith(
        b": <stdin>: no segments to measure, all are left out: without a tree (2), empty (1); "
        b"give text, which is parsed, or records with trees\n"
    )
    done = analyze(command, "--max-pieces", "1", stdin=b"The dog sees the cat.\n")
    assert done.returncode == 65
    assert done.stderr.endswith(b"all are left out: of more than 1 pieces (1)\n")


def test_strict_attention_ends_at_a_segment_of_too_many_pieces(analyze):
    text, limit = b"A.\nThe dog sees the cat.\n", ("--max-pieces", "3")
    shown = analyze("attention", *limit, stdin=text)
    assert shown.returncode == 0
    assert [json.loads(line)["status"] for line in shown.stdout.splitlines()] == ["ok", "skipped"]
    strict = analyze("attention", *limit, "--strict", stdin=text)
    assert strict.returncode == 65
    assert strict.stderr.endswith(b": <stdin>:2: more than 3 pieces\n")


def test_heads_gives_every_head_of_each_run(analyze):
    done = analyze("heads", "-m", "runs/base", "--format", "json", "dev.jsonl")
    assert (done.returncode, done.stderr) == (0, b"")
    pascal, base = json.loads(done.stdout)["runs"]
    assert (pascal["variant"], pascal["sentences"], base["variant"]) == ("pascal", 12, "vanilla")
    whole, *each = base["relations"]
    assert whole["words"] == sum(one["words"] for one in each)
    assert [one["words"] for one in each] == sorted((one["words"] for one in each), reverse=True)
    assert len(whole["heads"]) == 4 * 4 * 2
    for i, head in enumerate(whole["heads"]):
        parts = [one["words"] * one["heads"][i]["accuracy"] for one in each]
        assert head["accuracy"] == pytest.approx(sum(parts) / whole["words"])


def test_pascal_turns_its_heads_towards_parents(analyze):
    """It scales down the scores of words that are far from the parent, in two heads of layer 0."""
    done = analyze("heads", "-m", "runs/base", "--format", "json", "dev.jsonl")
    pascal, base = (
        {(one["layer"], one["head"], one["looks"]): one["weight"] for one in whole["heads"]}
        for whole in (run["relations"][0] for run in json.loads(done.stdout)["runs"])
    )
    changed = {at[:2] for at, weight in pascal.items() if abs(weight - base[at]) > 0.001}
    assert {(0, 0), (0, 1)} <= changed


def test_heads_shows_people_frequent_relations_alone(analyze):
    some = analyze("heads", "--least", "20", "dev.jsonl").stdout.decode()
    every = analyze("heads", "--least", "1", "dev.jsonl").stdout.decode()
    rows = [
        re.findall(r"^\S+ +\d\.\d +(?:up|down) +([\d,]+) .*$", text, re.M) for text in (some, every)
    ]
    few, all_of_them = ([int(n.replace(",", "")) for n in found] for found in rows)
    assert min(few) >= 20 > min(all_of_them)
    assert few == [n for n in all_of_them if n >= 20]


def test_heads_reads_text_as_records_and_tsv_has_every_head(analyze):
    done = analyze("heads", "--format", "tsv", stdin=b"A dog sleeps.\n\nThe dog sees a cat.\n")
    assert done.returncode == 0
    assert b"warning: 1 of 3 segments left out: empty" in done.stderr
    header, *rows = [row.split("\t") for row in done.stdout.decode().splitlines()]
    assert header[:4] == ["run", "relation", "layer", "head"]
    relations = {row[1] for row in rows}
    assert len(rows) == len(relations) * 4 * 4 * 2
    assert {row[-1] for row in rows} == {"2"}
    base = analyze("heads", "--format", "tsv", model="runs/base", stdin=b"A dog sleeps.\n")
    assert base.returncode == 0


# --- attention -------------------------------------------------------------------------------


def test_attention_gives_one_object_for_each_line(analyze):
    text = b"The dog sleeps.\n\nA cat sees the dog.\n"
    done = analyze("attention", "--layers", "0,2", "--heads", "1", stdin=text)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["id"], one["status"]) for one in found] == [
        ("1", "ok"),
        ("2", "empty"),
        ("3", "ok"),
    ]
    assert [(w["layer"], w["head"]) for w in found[0]["weights"]] == [(0, 1), (2, 1)]
    assert found[0]["tokens"] == found[0]["keys"]
    assert found[0]["tokens"][-1] == "</s>"
    for weight in found[0]["weights"]:
        assert len(weight["rows"]) == len(found[0]["tokens"])
        assert all(sum(row) == pytest.approx(1, abs=1e-3) for row in weight["rows"])
    assert (found[1]["tokens"], found[1]["weights"]) == ([], [])
    assert b"1 of 3 segments have no weights" in done.stderr
    rounded = analyze("attention", "--layers", "0,2", "--heads", "1", "--decimals", "2", stdin=text)
    for line, exact in zip(rounded.stdout.splitlines(), found, strict=True):
        for weight, other in zip(json.loads(line)["weights"], exact["weights"], strict=True):
            for row, same in zip(weight["rows"], other["rows"], strict=True):
                assert row == [round(x, 2) for x in row]
                assert row == pytest.approx(same, abs=0.0051)


def test_attention_is_the_same_alone_and_in_a_batch(analyze, example_folder):
    records = (example_folder / "test.jsonl").read_bytes().splitlines(keepends=True)
    together = analyze("attention", "--stack", "cross", "test.jsonl").stdout.splitlines()
    (alone,) = analyze("attention", "--stack", "cross", stdin=records[7]).stdout.splitlines()
    one, other = json.loads(together[7]), json.loads(alone)
    assert (one["tokens"], one["keys"]) == (other["tokens"], other["keys"])
    for a, b in zip(one["weights"], other["weights"], strict=True):
        for row, same in zip(a["rows"], b["rows"], strict=True):
            assert row == pytest.approx(same, abs=1.1e-4)


def test_attention_of_the_decoder_needs_targets(analyze):
    done = analyze("attention", "--stack", "cross", stdin=b"A dog.\n")
    assert (done.returncode, done.stdout) == (65, b"")
    assert b"<stdin>:1: no tgt_pieces" in done.stderr


def test_attention_of_a_decoder_of_trees_needs_transitions(analyze, example_folder):
    with open(example_folder / "de.trees.jsonl") as file:
        record = json.loads(file.readline())
    options = ("--stack", "decoder", "--layers", "0", "--heads", "0")
    stdin = json.dumps(record).encode() + b"\n"
    done = analyze("attention", *options, stdin=stdin, model="runs/trees")
    transitions = record.pop("transitions")
    assert json.loads(done.stdout)["tokens"] == ["<s>", *transitions]
    stdin = json.dumps({**record, "tgt_pieces": ["▁a"]}).encode() + b"\n"
    done = analyze("attention", *options, stdin=stdin, model="runs/trees")
    assert (done.returncode, done.stdout) == (65, b"")
    said = b"<stdin>:1: no transitions; make records with featurize --spm MODEL --tgt-conllu FILE"
    assert said in done.stderr


@pytest.mark.parametrize("bad", [("--heads", "4"), ("--layers", "4"), ("--heads", "1,x")])
def test_attention_refuses_what_is_not_there(analyze, bad):
    done = analyze("attention", *bad, "test.jsonl")
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)


# --- probe -----------------------------------------------------------------------------------


def test_probe_makes_tasks_of_trees_and_compares_runs(analyze):
    tasks = ("--task", "tree-depth,subject-number")
    done = analyze("probe", "-m", "runs/base", *tasks, "--format", "json", "train.en.conllu")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [(one["task"], one["group"]) for one in report["tasks"]] == [
        ("tree-depth", "syntactic"),
        ("subject-number", "semantic"),
    ]
    assert all(one["majority"] == 100 / one["classes"] for one in report["tasks"])
    assert [run["run"] for run in report["runs"]] == ["runs/pascal", "runs/base"]
    for run in report["runs"]:
        assert run["means"]["syntactic"] == run["results"][0]["accuracy"]


@pytest.mark.parametrize(
    "option", [("-o", "report"), ("--format", "table"), ("--max-pieces", "9"), ("--seeds", "1")]
)
def test_without_a_run_probe_refuses_what_is_for_runs(run, example_folder, tmp_path, option):
    (tmp_path / "report").write_bytes(b"old")
    arguments = ("--out-template", "{task}.txt", example_folder / "train.en.conllu", *option)
    done = run("analyze", "probe", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert f"{option[0]} is for a run: name one by -m".encode() in done.stderr
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("report", b"old")]


def test_probe_writes_its_tasks_and_reads_them_again(analyze, run, example_folder, tmp_path):
    made = run(
        *("analyze", "probe", "--out-template", tmp_path / "{task}.txt", "train.en.conllu"),
        cwd=example_folder,
    )
    assert (made.returncode, made.stdout) == (0, b"")
    names = {path.name for path in tmp_path.iterdir()}
    assert {"bigram-shift.txt", "tense.txt", "tree-depth.txt"} <= names
    done = analyze("probe", tmp_path / "bigram-shift.txt", "--format", "tsv")
    ((group, task, *_),) = [row.split(b"\t") for row in done.stdout.splitlines()[1:]]
    assert (group, task) == (b"syntactic", b"bigram-shift")
    # The sentences are parsed in both cases, so the figures are the same.
    direct = analyze(
        "probe", "--task", "bigram-shift,bigram-shift", "train.en.conllu", "--format", "tsv"
    )
    assert direct.stdout == done.stdout


def test_probe_says_what_is_missing(analyze, run):
    done = run("analyze", "probe", stdin=b"")
    assert (done.returncode, b": name a run by -m RUN, or files for" in done.stderr) == (2, True)
    done = analyze("probe", "--task", "tense", "dev.en.conllu", "--seed", "1", "--max-pieces", "2")
    assert done.returncode == 2
    assert b"--task tense: needs two classes of 10 sentences or more" in done.stderr
    done = analyze("probe", stdin=b"tr\ta\tx\n\n")
    assert done.returncode == 65
    assert b"<stdin>:2: 1 column, expected" in done.stderr


def test_sizes_and_majority_are_of_what_was_probed(analyze):
    task = ("--task", "sentence-length", "train.en.conllu", "--hidden", 0, "--format", "json")
    whole = json.loads(analyze("probe", *task).stdout)["tasks"][0]
    done = analyze("probe", *task, "--max-pieces", MAX_PIECES)
    report = json.loads(done.stdout)
    (found,), ((result,),) = report["tasks"], [run["results"] for run in report["runs"]]
    (n_left_out,) = re.findall(r"([0-9]+) sentences of more than", done.stderr.decode())
    sizes = ("train", "dev", "test")
    assert sum(found[name] for name in sizes) == sum(whole[name] for name in sizes) - int(
        n_left_out
    )
    accuracy = result["accuracy"]
    error = math.sqrt(accuracy * (100 - accuracy) / found["test"])
    assert result["standard_error"] == pytest.approx(error)
    n_right = found["majority"] * found["test"] / 100
    assert n_right == pytest.approx(round(n_right))
    assert found["majority"] != whole["majority"]


def test_runs_are_probed_on_the_same_sentences(analyze, run, example_folder, tmp_path):
    """Vocabularies cut sentences differently, so that --max-pieces would leave different ones."""
    few, records, other = (tmp_path / name for name in ("few.model", "few.jsonl", "other"))
    run("vocab", "train", "--size", 120, "-o", few, "train.en", "train.de", cwd=example_folder)
    made = ("--spm", few, "--tgt", "test.de", "-o", records, "test.en.conllu")
    run("featurize", *made, cwd=example_folder)
    options = ("--preset", "tiny", "--max-steps", 1, "--threads", 1, "--run", other)
    done = run("train", "--train", records, *options, cwd=example_folder)
    assert done.returncode == 0, done.stderr
    for what in (("--task", "tense"), ("--structural", 2)):
        given = (*what, "--max-pieces", MAX_PIECES, "-m", other, "train.en.conllu")
        done = analyze("probe", *given)
        assert (done.returncode, done.stdout) == (2, b"")
        said = f"--max-pieces leaves {other} other sentences than runs/pascal, since their "
        assert said in done.stderr.decode()


def test_probe_of_layers_with_seeds_and_control(analyze):
    task = ("--task", "tense", "train.en.conllu", "--seeds", 2, "--control", "--hidden", 0)
    done = analyze("probe", *task, "--layers", "all", "--format", "json")
    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout)["runs"]
    assert [run["layer"] for run in runs] == [*range(len(runs))]
    for run in runs:
        (one,) = run["results"]
        assert one["selectivity"] == one["accuracy"] - one["control"]
        assert one["standard_error"] > 0
    assert any(run["results"][0]["sd"] > 0 for run in runs)  # the seeds do something
    done = analyze("probe", *task, "--layers", "0,9")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--layers: there is no layer 9; the last is " in done.stderr


def test_structural_probes_of_layers(analyze, run):
    given = ("probe", "--structural", "4", "-m", "runs/base", "dev.en.conllu")
    done = analyze(*given, "--layers", "0,3", "--seeds", "2", "--format", "json")
    report = json.loads(done.stdout)
    rows = [(one["run"], one["layer"], one["rank"]) for one in report["layers"]]
    assert rows == [(run, layer, 4) for run in ("runs/pascal", "runs/base") for layer in (0, 3)]
    for one in report["layers"]:
        assert one["figures"]["deviations"]["uuas"] is not None
        assert 0 <= one["figures"]["means"]["root"] <= 100
    assert report["sentences"] == {"train": 32, "dev": 4, "test": 4}
    assert report["baseline"]["epochs"] is None
    known = json.loads(run("info", "--format", "json", stdin=done.stdout).stdout)
    assert known["content"] == "report of synmt analyze probe --structural"
    lowest = report["layers"][0]["figures"]["means"]
    assert known["runs"]["runs/pascal, layer 0"] == lowest


@pytest.mark.parametrize(
    ("arguments", "stdin", "status", "message"),
    [
        (["--control"], b"", 2, "--control is for tasks, not for --structural"),
        (["--layers", "9", "dev.en.conllu"], b"", 2, "--layers: there is no layer 9"),
        ([], b"tr\ta\tx\n", 2, "--structural reads CoNLL-U, and <stdin> is not"),
        (
            [],
            b"1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n",
            2,
            "1 different sentences with trees; it needs",
        ),
        (["--max-pieces", "1", "dev.en.conllu"], b"", 2, "of more than 1 pieces: left out"),
        (
            ["-"],
            "".join(
                f"1\t{word}\t_\tX\t_\t_\t0\troot\t_\t_\n\n" for word in ascii_lowercase
            ).encode(),
            2,
            "can be probed; 26 without two words that have pieces: left out",
        ),
    ],
)
def test_structural_probes_say_what_is_missing(analyze, arguments, stdin, status, message):
    done = analyze("probe", "--structural", "4", *arguments, stdin=stdin)
    assert (done.returncode, done.stdout) == (status, b"")
    assert message in done.stderr.decode()


@pytest.mark.parametrize("option", ["--control", "--layers 0", "--hidden 0", "--seeds 2"])
def test_options_of_classifiers_need_a_run(run, tmp_path, example_folder, option):
    template = ["--out-template", tmp_path / "{task}.txt", "train.en.conllu"]
    done = run("analyze", "probe", *option.split(), *template, cwd=example_folder)
    named = option.split()[0].encode()
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    assert done.stderr.startswith(b"synmt analyze probe: %b is for a run: name one by -m" % named)


def test_a_structural_probe_is_at_most_as_wide_as_the_states(analyze):
    done = analyze("probe", "--structural", "999", "dev.en.conllu")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--structural 999: the states of runs/pascal have " in done.stderr
