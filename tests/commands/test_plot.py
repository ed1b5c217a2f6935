"""`synmt plot` as a user runs it: where it reads, what it writes, and what it refuses."""

from __future__ import annotations

import json
import re

import pytest

ATTENTION = {
    "id": "1",
    "status": "ok",
    "stack": "encoder",
    "tokens": ["▁A", "</s>"],
    "keys": ["▁A", "</s>"],
    "weights": [{"layer": 0, "head": 0, "rows": [[0.9, 0.1], [0.5, 0.5]]}],
}
AWSL = {
    "runs": [
        {
            "run": "runs/gps",
            "variant": "gps",
            "sentences": 3,
            "layers": [
                {"layer": 0, "variants": ["gps"], "awsl": 0.4, "heads": [{"head": 0, "awsl": 0.4}]}
            ],
        }
    ]
}

HEADS = {
    "runs": [
        {
            "run": "runs/gps",
            "variant": "gps",
            "sentences": 3,
            "relations": [
                {
                    "relation": relation,
                    "words": 8,
                    "offset": 1,
                    "by_offset": 0.5,
                    "heads": [
                        {"layer": i, "head": j, "looks": looks, "accuracy": share, "weight": 0.1}
                        for i, shares in enumerate(found)
                        for j, share in enumerate(shares)
                        for looks in ("up", "down")
                    ],
                }
                for relation, found in {"all": [[0.125, 1.0], [0, 0.5]], "det": [[1], [0]]}.items()
            ],
        }
    ],
    "subtypes": False,
    "least": 20,
    "left_out": {},
}


RAGGED = json.loads(json.dumps(HEADS))
RAGGED["runs"][0]["relations"][0]["heads"].pop()


def lines(*objects):
    return "".join(json.dumps(one) + "\n" for one in objects).encode()


def test_figures_go_from_score_to_picture(run, tmp_path):
    (tmp_path / "ref").write_text("a b c d e\n" * 5)
    (tmp_path / "hyp").write_text("a b c d\n" * 5)
    arguments = ["--format", "json", "--samples", "10", tmp_path / "ref", tmp_path / "hyp"]
    scored = run("score", *arguments, "-M", "bleu,chrf,ter", cwd=tmp_path)
    assert scored.returncode == 0
    text = run("plot", "scores", stdin=scored.stdout)
    drawn = b"synmt plot scores: BLEU is drawn; --metric draws chrf, ter\n"
    assert (text.returncode, text.stderr) == (0, drawn)
    assert b"BLEU" in text.stdout
    assert b"chrF2" in run("plot", "scores", "--metric", "chrf", stdin=scored.stdout).stdout
    pytest.importorskip("matplotlib")
    done = run(
        "plot", "scores", "-o", "a.pdf", "--metric", "bleu", stdin=scored.stdout, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")


def test_attention_and_awsl_are_drawn_as_text(run):
    done = run("plot", "attention", stdin=lines(ATTENTION))
    assert done.stdout.decode().splitlines()[1] == "▁A   |@ . | 0.90"
    assert "AWSL         0.40" in run("plot", "awsl", stdin=lines(AWSL)).stdout.decode()


@pytest.mark.parametrize(
    ("command", "before", "line"),
    [
        (("plot", "attention"), b"", lines(ATTENTION)),
        (("plot", "awsl"), b"{\n", lines(AWSL)[1:]),
        (("info",), b"{\n", lines(AWSL)[1:]),
    ],
)
def test_a_byte_that_is_not_utf8_is_named_with_its_line(run, command, before, line):
    done = run(*command, stdin=before + line[:9] + b"\xff" + line[9:])
    assert (done.returncode, done.stdout) == (65, b"")
    number = before.count(b"\n") + 1
    assert f": <stdin>:{number}: invalid UTF-8 at byte 10 (".encode() in done.stderr


@pytest.mark.parametrize("option", ["--width", "--font-size"])
@pytest.mark.parametrize("where", [(), ("-o", "a.txt"), ("--format", "text", "-o", "a.svg")])
def test_text_has_no_size(run, tmp_path, option, where):
    done = run("plot", "attention", option, 5, *where, stdin=lines(ATTENTION), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert f"{option} is for pictures, and text is written".encode() in done.stderr
    assert not any(tmp_path.iterdir())


def test_a_head_that_looks_everywhere_is_not_blank_as_text(run):
    """24 tokens, weights below 0.1: shades are shares of the row's strongest weight."""
    tokens = [f"t{i}" for i in range(24)]
    row = [0.08, *[0.04] * 23]
    weights = [{"layer": 0, "head": 0, "rows": [row[-i:] + row[:-i] for i in range(24)]}]
    segment = {**ATTENTION, "tokens": tokens, "keys": tokens, "weights": weights}
    drawn = run("plot", "attention", stdin=lines(segment)).stdout.decode().splitlines()
    assert drawn[1] == f"t0  |@ {'+ ' * 23}| 0.08"
    assert drawn[4] == f"t3  |{'+ ' * 3}@ {'+ ' * 20}| 0.08"
    assert (
        drawn[-1] == "a shade is the share of the row's strongest weight, which stands at its end"
    )


def test_heads_are_percents_by_layer_and_head(run):
    drawn = run("plot", "heads", "--looks", "up", stdin=lines(HEADS)).stdout.decode()
    rows = ["runs/gps, all, up", "layer 0 | 12 100 |", "layer 1 |  0  50 |"]
    assert drawn.splitlines() == [*rows, "columns: head 0, head 1"]
    both = run("plot", "heads", "--relation", "det,all", stdin=lines(HEADS)).stdout.decode()
    titles = re.findall(r"^runs/gps, (.*)$", both, re.MULTILINE)
    assert titles == ["det, up", "det, down", "all, up", "all, down"]


def test_weights_as_text_stand_at_their_layers(run):
    layers = [
        {"layer": i, "variants": ["gps"] * (i > 0), "awsl": i / 8 or None, "heads": []}
        for i in range(4)
    ]
    runs = [{**AWSL["runs"][0], "layers": layers}]
    rows = run("plot", "awsl", stdin=lines({"runs": runs})).stdout.decode().splitlines()
    expected = [[str(i), "standard", f"{1 - i / 8:.2f}"] for i in (1, 2, 3)]
    assert [row.split()[:3] for row in rows[1:7:2]] == expected
    assert [row.split()[:2] for row in rows[2:7:2]] == [["AWSL", f"{i / 8:.2f}"] for i in (1, 2, 3)]


def test_figures_as_text_have_the_digits_of_the_metric(run, tmp_path):
    (tmp_path / "ref").write_text("a b c d e\n" * 5)
    (tmp_path / "hyp").write_text("a b d c e\n" * 5)
    scored = run("score", "-M", "ribes", "--format", "json", "ref", "ref", "hyp", cwd=tmp_path)
    ribes = json.loads(scored.stdout)["systems"][1]["scores"]["ribes"]["score"]
    assert f" {ribes:.4f} " in run("plot", "scores", stdin=scored.stdout).stdout.decode()


@pytest.mark.parametrize(
    ("arguments", "stdin", "status", "message"),
    [
        (["scores"], b"", 65, b"invalid JSON"),
        (["scores"], b"{}", 65, b"not from `synmt score --format json`"),
        (["scores", "no.json"], b"", 66, b"no.json: No such file"),
        (["awsl"], b'{"runs": []}', 65, b"no runs"),
        (["awsl"], b"[1]", 65, b"not from `synmt analyze awsl --format json`"),
        (["heads"], b'{"runs": [], "subtypes": false, "least": 20}', 65, b"no runs"),
        (["heads"], b'{"runs": []}', 65, b"not from `synmt analyze heads --format json`"),
        (["heads"], lines({**HEADS, "subtypes": "no"}), 65, b"missing or of other types"),
        (["heads"], lines({**HEADS, "least": "20"}), 65, b"missing or of other types"),
        (["awsl"], lines({"runs": [{**AWSL["runs"][0], "sentences": True}]}), 65, b"other types"),
        (["heads"], lines(RAGGED), 65, b"relations are missing or of other types"),
        (["heads", "--relation", "obj"], lines(HEADS), 2, b"'obj': runs/gps has all, det"),
        (["attention"], b"", 65, b"<stdin>: no segment has weights"),
        (["attention"], b'{"id": 1}\n', 65, b"<stdin>:1: not from `synmt analyze attention`"),
        (
            ["attention"],
            lines(
                {**ATTENTION, "keys": [], "weights": [{"layer": 0, "head": 0, "rows": [[], []]}]}
            ),
            65,
            b"<stdin>:1: not from `synmt analyze attention`: weights without keys",
        ),
        (
            ["attention"],
            lines({**ATTENTION, "tokens": [], "weights": [{"layer": 0, "head": 0, "rows": []}]}),
            65,
            b"<stdin>:1: not from `synmt analyze attention`: weights without tokens",
        ),
        (["attention", "--id", "9"], lines(ATTENTION), 2, b"--id '9': no segment has this id"),
        (["attention", "--heads", "x"], lines(ATTENTION), 2, b"expected numbers from 0 on"),
        (["scores", "."], b"", 66, b"is a folder: give the report of `synmt score --format json`"),
        (["heads", "."], b"", 66, b". is a folder: give the report of `synmt analyze heads --form"),
        (["awsl", "."], b"", 66, b". is a folder: give the report of `synmt analyze awsl --format"),
        (["curves", "no"], b"", 66, b"no is not a run directory"),
        (["curves", "--show", "x", "no"], b"", 2, b"expected some of metric, perplexity"),
        (
            ["scores", "-o", "a.gif"],
            b"",
            2,
            b"the name must end in .png, .svg or .pdf, or in .txt for text",
        ),
    ],
)
def test_bad_input_is_named(run, tmp_path, arguments, stdin, status, message):
    done = run("plot", *arguments, stdin=stdin, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (status, b"")
    assert message in done.stderr
