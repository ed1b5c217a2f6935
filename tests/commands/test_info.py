"""`synmt info` says of each kind of file what it is, with figures that can be counted by hand."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import threading

import pytest
from support.program import ROOT
from support.tree_workshop import Workshop

from synmt_cli.formats import udpipe_model


def row(id, form, head, upos="NOUN", deprel="dep"):
    return f"{id}\t{form}\t_\t{upos}\t_\t_\t{head}\t{deprel}\t_\t_\n"


EMPTY = "# sent_id = 2\n# synmt_status = empty\n" + row(1, "_", 0, "X", "root") + "\n"
CONLLU = (
    "# sent_id = 1\n"
    + row("1-2", "zum", "_")
    + row(1, "zu", 2)
    + row(2, "dem", 0, "DET", "root")
    + row("2.1", "e", "_")
    + "\n"
    + EMPTY
    + "".join(
        f"# sent_id = 3.{k}\n# synmt_line = 3\n{row(1, 'a', heads[0])}{row(2, 'b', heads[1])}"
        f"{row(3, 'c', heads[2])}{row(4, 'd', heads[3])}\n"
        for k, heads in ((1, (3, 4, 0, 3)), (2, (0, 1, 1, 1)))
    )
)


@pytest.fixture(scope="module")
def place(tmp_path_factory, forked):
    shop = Workshop(tmp_path_factory.mktemp("info"), forked)
    shop.train("pascal", "training.metric=loss", options=("--dev", "dev.jsonl", "--max-steps", 2))
    return shop


@pytest.fixture
def facts(place):
    """`facts(FILE, ...)` gives what `info --format json` says of the files."""

    def of(*files, stdin=b""):
        done = place("info", "--format", "json", *files, stdin=stdin, status=0)
        assert done.stderr == b""
        return [json.loads(line) for line in done.stdout.splitlines()]

    return of


def test_text(facts):
    assert facts(stdin="a b\n\nc d ä\nx y z".encode()) == [
        {"file": "<stdin>", "kind": "text", "lines": 4, "empty": 1, "words": 8, "characters": 13,
         "longest": 3, "longest_line": 3}
    ]  # fmt: skip
    (nothing,) = facts(stdin=b"")
    assert nothing == {
        "file": "<stdin>", "kind": "text", "lines": 0, "empty": 0, "words": 0, "characters": 0
    }  # fmt: skip


def test_conllu(facts):
    (found,) = facts(stdin=CONLLU.encode())
    assert found == {
        "file": "<stdin>", "kind": "conllu", "sentences": 4, "segments": 3,
        "statuses": {"ok": 2, "empty": 1}, "trees": 3, "tokens": 9, "multiword_tokens": 1,
        "empty_nodes": 1, "words": 10, "nonprojective": 1, "nonprojective_share": 33.33,
        "depth": {"mean": 1.33, "max": 2}, "distance": {"mean": 1.71, "max": 3},
        "before_head_share": 42.86, "deprels": 2, "upos": 2, "longest": 4, "longest_line": 11,
    }  # fmt: skip


def test_trees_of_one_word_have_a_depth_and_no_arcs(facts):
    (found,) = facts(stdin=(row(1, "a", 0) + "\n").encode())
    assert (found["trees"], found["depth"]) == (1, {"mean": 0.0, "max": 0})
    assert not {"distance", "before_head_share"} & {*found}
    (found,) = facts(stdin=EMPTY.encode())
    assert (found["trees"], "depth" in found) == (0, False)


def test_records(facts, place):
    tree = (
        b'"words":["a","b"],"spans":[[0,1],[2,3]],"heads":[-1,-1],"deprels":["x","y"],'
        b'"upos":["N","V"]'
    )
    data = (
        b'{"src":"a b",' + tree + b',"sents":[0,1],"pieces":["a","b","c"],"piece_word":[0,1,1],'
        b'"tgt":"z","tgt_pieces":["z"],"vocab":"v1","x":1}\n'
        b'{"src":""}\n{"src":"q","status":"failed","reason":"r"}\n'
    )
    (found,) = facts(stdin=data)
    assert found["statuses"] == {"ok": 1, "empty": 1, "failed": 1}
    figures = ("records", "trees", "sentences", "words", "pieces", "targets", "target_pieces")
    assert [found[name] for name in figures] == [3, 1, 2, 2, 3, 1, 1]
    assert (found["longest"], found["longest_line"], found["vocab"]) == (3, 1, {"v1": 1})
    assert (found["fields"]["src"], found["fields"]["x"], found["fields"]["sents"]) == (3, 1, 1)
    (made,) = facts("train.jsonl")
    assert (made["targets"], made["fields"]["transitions"]) == (60, 60)
    alone = b'{"src":"x","transitions":["a","b","LEFT-ARC:det"]}\n'  # arcs are not pieces
    assert facts(stdin=alone)[0]["target_pieces"] == 2


def test_the_sentences_of_a_record_are_measured_one_by_one(facts):
    """The record has the trees of the last line of CONLLU."""
    one = {
        "src": "a b c d a b c d", "words": [*"abcdabcd"], "spans": [[2 * i, 2 * i + 1]
        for i in range(8)], "heads": [2, 3, -1, 2, -1, 4, 4, 4], "deprels": ["x"] * 8,
        "upos": ["N"] * 8, "sents": [0, 4],
    }  # fmt: skip
    (found,) = facts(stdin=json.dumps(one).encode())
    assert (found["trees"], found["sentences"]) == (1, 2)
    assert (found["nonprojective"], found["nonprojective_share"]) == (1, 50.0)
    assert found["depth"] == {"mean": 1.5, "max": 2}
    assert found["distance"] == {"mean": 1.83, "max": 3}
    assert found["before_head_share"] == 33.33


def test_a_tree_that_a_filter_marked_is_one_in_every_form(facts, forked):
    trees = (row(1, "a", 0) + row(2, "b", 1) + "\n").encode()
    for data in (trees, forked("featurize", stdin=trees).stdout):
        marked = forked("filter", "--max-len", 1, "--format", "marked", stdin=data).stdout
        (found,) = facts(stdin=marked)
        assert (found["statuses"], found["trees"]) == ({"skipped": 1}, 1)


@pytest.mark.parametrize("split", [(), ("--split-transitions",)])
def test_transitions_over_words_and_pieces(facts, place, split):
    for name, leaves in (("", "words"), ("spm.model", "pieces")):
        options = ["--spm", "split.model" if split else name] if name else []
        moves = place("linearize", "--glue", *split, *options, "dev.de.conllu", status=0).stdout
        (found,) = facts(stdin=moves)
        (trees,) = facts("dev.de.conllu")
        assert (found["kind"], found["lines"]) == ("transitions", 5)
        assert found["arcs"] == trees["words"] - trees["trees"]
        assert found[leaves] >= trees["words"] - trees["multiword_tokens"]
        assert found["labels"] == trees["deprels"] - 1  # the root has no arc


def test_compressed_files_say_so(facts, place):
    (place.folder / "dev.gz").write_bytes(gzip.compress((place.folder / "dev.jsonl").read_bytes()))
    found, plain = facts("dev.gz", "dev.jsonl")
    assert found.pop("compression") == "gz"
    assert found | {"file": ""} == plain | {"file": ""}


def test_a_vocabulary(facts, place):
    (found,) = facts("spm.model")
    about = json.loads(place("vocab", "info", "--format", "json", "spm.model").stdout)
    for name in ("type", "normalization", "byte_fallback", "fingerprint"):
        assert found[name] == about[name]
    assert (found["kind"], found["pieces"]) == ("sentencepiece", about["size"])
    assert found["symbols"] == len(about["symbols"])
    model = (place.folder / "spm.model").read_bytes()
    assert facts(stdin=model) == [found | {"file": "<stdin>"}]


def test_a_parser(facts, tiny_udpipe):
    (found,) = facts(tiny_udpipe)
    assert found["kind"] == "udpipe"
    assert found["tokenizer"] is found["tagger"] is found["parser"] is True
    assert found["words"] == len(udpipe_model.parser_words(tiny_udpipe.read_bytes())) > 9
    assert found["bytes"] == tiny_udpipe.stat().st_size


def test_a_run_its_checkpoints_and_its_weights(facts, place):
    run, checkpoint, weights = facts(
        "pascal", "pascal/checkpoints/step-2", "pascal/model.safetensors"
    )
    assert [one["kind"] for one in (run, checkpoint, weights)] == ["run", "checkpoint", "weights"]
    assert (run["variant"], run["preset"], run["checkpoints"]) == ("pascal", "tiny", [2])
    assert run["model"]["d_model"] == 16
    assert run["pascal"]["heads"] >= 1
    assert (run["best"]["metric"], run["best"]["step"]) == ("loss", run["step"])
    assert run["finished"] == checkpoint["finished"] == "max_steps"
    assert run["data"]["train"] == ["train.jsonl"]
    assert re.fullmatch("[0-9a-f]{64}", run["data"]["train_sha256"][0])
    assert "torch" in run["environment"]["versions"]
    assert run["vocabulary"]["fingerprint"] == facts("spm.model")[0]["fingerprint"]
    assert checkpoint["step"] == 2
    n = run["parameters"]
    assert n == checkpoint["parameters"] == weights["parameters"] > 1000
    assert weights["about"]["vocabulary"] == run["vocabulary"]["fingerprint"]
    assert weights["types"] == ["F32"]


def test_a_property_a_line_and_an_empty_line_between_files(place):
    done = place("info", "train.en", "pascal", status=0)
    first, second = done.stdout.decode().split("\n\n")
    assert first.split("\n")[:3] == ["file\ttrain.en", "kind\ttext", "lines\t60"]
    rows = dict(line.split("\t") for line in second.splitlines())
    assert (rows["model.d_model"], rows["training.betas"]) == ("16", "0.9 0.98")


def test_a_line_of_white_space_is_as_empty_in_text_as_in_records(place):
    text = "\n \n\u3000\t\na\n"
    records = place("featurize", "--from", "text", stdin=text.encode(), status=0).stdout
    sources = "".join(json.dumps({"src": line}) + "\n" for line in text.splitlines())
    for stdin, key in (
        (text.encode(), "empty"),
        (records, "statuses.empty"),
        (sources.encode(), "statuses.empty"),
    ):
        shown = place("info", stdin=stdin, status=0).stdout.decode()
        assert dict(line.split("\t") for line in shown.splitlines())[key] == "3"


@pytest.mark.parametrize(
    ("stdin", "message"),
    [
        (CONLLU.encode() + b"1\tx\n\n", b"<stdin>:25: 2 columns, expected 10"),
        (b'{"src":"a"}\n{"src":1}\n', b"<stdin>:2: field src: an integer, expected a string"),
        (b"a\n\xff\n", b"<stdin>:2: invalid UTF-8 at byte 1"),
        (b"\n\x0e\n\x05<unk>\x15\0\0\0\0\x18", b"<stdin>: damaged, or no sentencepiece model"),
    ],
)
def test_bad_data_ends_it_as_it_ends_any_reader(place, stdin, message):
    done = place("info", stdin=stdin)
    assert (done.returncode, done.stdout) == (65, b"")
    assert message in done.stderr


def test_damaged_models_and_folders_are_refused(place, tmp_path):
    data = (place.folder / "pascal" / "model.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(data[:-1])
    assert (
        b"but its header promises" in place("info", tmp_path / "cut.safetensors", status=65).stderr
    )
    assert place("info", stdin=data).returncode == 2
    (tmp_path / "config.toml").write_bytes(b"variant = ")
    place("info", tmp_path, status=78)
    (tmp_path / "config.toml").write_bytes(b"variant = 1979-05-27\nx = 99999999999999999999999\n")
    (tmp_path / "labels.json").write_bytes(b"7")
    assert b"expected a list of labels" in place("info", tmp_path, status=65).stderr
    (tmp_path / "labels.json").write_bytes(b"[]")
    assert (
        b'"variant": "1979-05-27"' in place("info", "--format", "json", tmp_path, status=0).stdout
    )
    place("info", tmp_path / "no", status=66)
    (tmp_path / "cut.udpipe").write_bytes(b"\x12morphodita_parsito\x03\x7f\x7f\x01")
    assert b"damaged, or no UDPipe" in place("info", tmp_path / "cut.udpipe", status=65).stderr
    place("info", ROOT / "tests", status=66)


def test_no_torch_is_loaded(place):
    files = ["pascal", "pascal/model.safetensors", "spm.model", "dev.jsonl", "dev.en.conllu"]
    code = f"""
import sys
from synmt_cli import cli
assert cli._run(["info", *{files!r}]) == 0
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], cwd=place.folder, check=True)


def test_a_named_pipe_is_opened_once(facts, tmp_path):
    os.mkfifo(tmp_path / "pipe")

    def write():
        with (tmp_path / "pipe").open("wb") as file:
            file.write(CONLLU.encode() * 2000)

    writer = threading.Thread(target=write)
    writer.start()
    (found,) = facts(tmp_path / "pipe")
    writer.join()
    assert found["sentences"] == 8000


def test_a_line_of_metrics_that_is_being_written_is_left_out(facts, place, tmp_path):
    shutil.copytree(place.folder / "pascal", tmp_path / "run")
    (whole,) = facts(tmp_path / "run")
    with (tmp_path / "run/metrics.jsonl").open("ab") as file:
        file.write(b'{"event":"dev","st')
    assert facts(tmp_path / "run") == [whole]


def test_a_name_that_is_not_utf_8_is_escaped_in_json(forked, tmp_path):
    source = os.fsdecode(b"tr\xe4n.de")
    for name in (source, "tr.en"):
        (tmp_path / name).write_text("".join(f"{name[-2:]} {i}\n" for i in range(40)))
    given = ("--src", source, "--tgt", "tr.en", "--variants", "vanilla")
    assert forked("init", "made", *given, cwd=tmp_path).returncode == 0
    done = forked("info", "--format", "json", "made", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert r"tr\udce4n.de" in str(json.loads(done.stdout)).replace("\\\\", "\\")


def test_numbers_that_json_does_not_have_are_text(facts, tmp_path):
    (tmp_path / "c.toml").write_text("[training]\nlr = inf\nx = [nan, 1.5]\n")
    (found,) = facts(tmp_path / "c.toml")
    assert (found["training"]["lr"], found["training"]["x"]) == ("inf", ["nan", 1.5])


def test_documents_are_not_nested_without_end(place, tmp_path):
    (tmp_path / "x.json").write_text('{\n"started":1,"versions":' + "[" * 900 + "]" * 900 + "}")
    done = place("info", tmp_path / "x.json", status=65)
    assert b"lists and objects in one another" in done.stderr
