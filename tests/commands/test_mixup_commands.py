"""`synmt mixup make` and `synmt mixup score` as a user runs them."""

import json

import pytest


@pytest.fixture(scope="module")
def english():
    """A right translation of each line, and one that keeps the order of the German words."""
    from synmt_cli.core.challenge.mixup import items
    from synmt_cli.core.challenge.roles import NOUNS

    right, literal = [], []
    for one in items():
        subject, object = (f"the {NOUNS[noun][0]}" for noun in (one.subject, one.object))
        first, last = (object, subject) if one.order == "ovs" else (subject, object)
        right.append(f"{subject} pulls {object}\n")
        literal.append(f"{first} pulls {last}\n")
    return "".join(right).encode(), "".join(literal).encode()


def test_make_has_the_same_sentences_in_every_form(run):
    text = run("mixup", "make").stdout.decode().splitlines()
    tsv = run("mixup", "make", "--format", "tsv").stdout.decode().splitlines()
    records = run("mixup", "make", "--format", "jsonl", "--full-stop").stdout.splitlines()
    assert text[:2] == ["Den Ball bringt das Kind", "Das Kind bringt den Ball"]
    assert tsv[0] == "id\tconstruction\torder\tsubject\tverb\tobject\tsrc"
    assert tsv[1] == "object-01-ovs\tobject\tovs\tKind\tbringt\tBall\tDen Ball bringt das Kind"
    assert [line.split("\t")[-1] for line in tsv[1:]] == text
    assert [json.loads(line)["src"] for line in records] == [f"{line}." for line in text]


def test_records_are_records(run):
    records = run("mixup", "make", "--format", "jsonl").stdout
    done = run("bucket-by-length", "--by", "length:5", "--format", "counts", stdin=records)
    assert b"5+\t198\t100.0\n" in done.stdout


def test_a_right_translation_and_a_literal_one(run, english, tmp_path):
    (tmp_path / "right").write_bytes(english[0])
    (tmp_path / "literal").write_bytes(english[1])
    done = run("mixup", "score", "right", "literal", "--format", "tsv", cwd=tmp_path)
    rows = [line.split("\t") for line in done.stdout.decode().splitlines()]
    assert rows[0][:5] == ["system", "construction", "order", "n", "right"]
    assert ["right", "subject", "ovs", "27", "27", "27", "0", "0", "0", "0", "100.0"] in rows
    assert ["literal", "subject", "ovs", "27", "0", "0", "0", "27", "0", "0", "0.0"] in rows
    assert ["literal", "all", "svo", "99", "99", "99", "0", "0", "0", "0", "100.0"] in rows
    assert len(rows) == 1 + 2 * 8


def test_every_sentence_is_in_the_json(run, english):
    lines = english[0].splitlines()
    lines[0] = b"the ball is brought by the child"
    lines[2] = "Kind \t \u202e".encode()
    done = run("mixup", "score", "--format", "json", stdin=b"\n".join(lines))
    (system,) = json.loads(done.stdout)["systems"]
    assert (len(system["sentences"]), len(system["groups"])) == (198, 8)
    assert system["sentences"][0]["outcome"] == "right_passive"
    assert system["sentences"][2]["outcome"] == "undecided"
    assert system["sentences"][2]["reason"] == "no subject"
    first = system["groups"][0]
    assert (first["n"], first["right"], first["undecided"]) == (36, 35, 1)
    table = run("mixup", "score", stdin=b"\n".join(lines)).stdout.splitlines()
    assert table[1].split() == b"<stdin> object only OVS 36 35 97.2 34 1 0 0 0 1".split()


@pytest.mark.parametrize(
    ("arguments", "stdin", "status", "message"),
    [
        ([], b"", 65, "<stdin>: 0 lines, but `synmt mixup make` writes 198"),
        ([], b"x\n" * 199, 65, "<stdin>: 199 lines"),
        ([], b"x\n\xff\n", 65, "<stdin>:2: invalid UTF-8"),
        (["-", "-"], b"", 2, "only one input can be stdin"),
        (["absent"], b"", 66, "cannot read absent"),
    ],
)
def test_wrong_use_is_one_line(run, tmp_path, arguments, stdin, status, message):
    done = run("mixup", "score", *arguments, stdin=stdin, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (status, b"")
    assert message in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
