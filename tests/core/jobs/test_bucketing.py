"""Lengths of segments of each kind, and files by bucket."""

import io

import pytest

from synmt_cli.core.jobs import bucketing
from synmt_cli.core.segments import reader, splitting
from synmt_cli.core.segments.buckets import Buckets
from synmt_cli.errors import DataError, UsageError
from synmt_cli.io import reading


def source(text, name="x"):
    return reading.Source(name, io.BufferedReader(io.BytesIO(text.encode())))


def block(n_words, **comments):
    lines = [f"# {key} = {value}" for key, value in comments.items()]
    heads = ["0", *["1"] * (n_words - 1)]
    rows = [f"{i}\tw\t_\tX\t_\t_\t{head}\tdep\t_\t_" for i, head in enumerate(heads, 1)]
    return "\n".join([*lines, *rows, "", ""])


def test_a_tree_is_as_long_as_its_syntactic_words():
    rows = "1-2\tim\t_\t_\t_\t_\t_\t_\t_\t_\n1\tin\t_\tX\t_\t_\t2\tx\t_\t_\n"
    rows += "2\tdem\t_\tX\t_\t_\t0\troot\t_\t_\n2.1\te\t_\tX\t_\t_\t_\t_\t_\t_\n\n"
    assert [one.length for one in reader.trees(source(rows))] == [2]


def test_sentences_of_a_line_are_one_segment():
    text = (
        block(2, synmt_line=1)
        + block(3, synmt_line=1)
        + block(4, synmt_line=2)
        + block(5)
        + block(6)
        + block(1, synmt_status="empty")
        + block(1, synmt_status="failed", text="three words here")
    )
    found = list(reader.trees(source(text)))
    assert [one.length for one in found] == [5, 4, 5, 6, 0, 3]
    assert b"".join(one.written() for one in found) == text.encode()


def test_the_label_of_a_tree_replaces_an_older_one():
    segments = reader.trees(source(block(2, sent_id=1, synmt_bucket="old", text="w w")))
    [one] = bucketing.MeasuredStream([""], segments).labelled(Buckets((10,)))
    assert one.startswith(b"# sent_id = 1\n# text = w w\n# synmt_bucket = 0-9\n1\t")


@pytest.mark.parametrize(
    ("line", "length"),
    [
        ('{"src":"a b c"}', 3),
        ('{"src":"a b c","words":["a b","c"]}', 2),
        ('{"src":"","status":"empty"}', 0),
        ('{"src":"a b","words":[]}', 0),
    ],
)
def test_a_record_is_as_long_as_its_words(line, length):
    [one] = reader.jsonl(source(line))
    assert one.length == length
    assert one.written() == line.encode() + b"\n"


def test_the_label_of_a_record_leaves_its_fields_alone():
    segments = reader.jsonl(source('{"z":[1.5,{"a":null}],"src":"a"}'))
    [one] = bucketing.MeasuredStream([""], segments).labelled(Buckets((10,)))
    assert one == b'{"z":[1.5,{"a":null}],"src":"a","bucket":"0-9"}\n'


@pytest.mark.parametrize(
    "line", ["[]", "null", "{", "{}", '{"src":1}', '{"src":"","src":""}', '{"src":"","words":1}']
)
def test_a_broken_record_is_refused_with_its_line(line):
    with pytest.raises(DataError, match="x:2"):
        [one.length for one in reader.jsonl(source('{"src":""}\n' + line))]


def test_parallel_texts_of_different_length_name_both_counts():
    sides = [source("a\nb c\n", "de"), source("x\n", "en"), source("1\n2\n3\n", "fr")]
    with pytest.raises(DataError, match="en: 1 line, but de has 2"):
        list(bucketing.parallel_lines(sides))


def test_a_hidden_text_is_measured_and_not_a_part():
    [one] = bucketing.parallel_lines([source("a b"), source("x"), source("y\r\n")], n_hidden=1)
    assert one == (2, [b"x", b"y"])
    [labelled] = bucketing.MeasuredStream(["", ""], [one]).labelled(Buckets((2,)))
    assert labelled == b"2+\tx\ty\n"


def paths(template, buckets, sides):
    return splitting.filled(template, "bucket", buckets.names, sides)


def test_paths_of_parallel_files():
    buckets = Buckets((5,))
    assert paths("{bucket}/{name}.gz", buckets, ["a/de", "-"]) == [
        ["0-4/de.gz", "0-4/stdin.gz"],
        ["5+/de.gz", "5+/stdin.gz"],
    ]
    assert paths("{side}.{bucket}", buckets, ["{bucket}"]) == [["1.0-4"], ["1.5+"]]
    # A name is not a template.
    assert paths("{bucket}.{name}", buckets, ["{bucket}"])[0] == ["0-4.{bucket}"]


@pytest.mark.parametrize(
    ("template", "sides"),
    [
        ("x", ["a"]),
        ("{bucket}", ["a", "b"]),
        ("{bucket}.{name}", ["a/x", "b/x"]),
        ("{bucket}.{name}", [""]),
        ("{side}", ["a", "b"]),
        ("{bucket}.{nmae}", ["a"]),
        ("{bucket}{}", ["a"]),
    ],
)
def test_templates_that_name_a_file_twice_or_nothing(template, sides):
    with pytest.raises(UsageError, match="--out-template"):
        paths(template, Buckets((5,)), sides)
