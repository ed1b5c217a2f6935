import io
import json

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synmt_cli.errors import DataError
from synmt_cli.formats import record
from synmt_cli.formats.record import Record
from synmt_cli.io.reading import Source

GOOD = {
    "id": "x",
    "status": "ok",
    "src": "a b c",
    "words": ["a", "b", "c"],
    "spans": [[0, 1], [2, 3], [4, 5]],
    "heads": [1, -1, 1],
    "deprels": ["det", "root", "obj"],
    "upos": ["X", "X", "X"],
    "pieces": ["▁a", "▁", "b", "▁c"],
    "piece_word": [0, -1, 1, 2],
    "tgt": "d",
    "tgt_pieces": ["▁d"],
    "vocab": "0123456789abcdef",
}


def read(line):
    data = line if isinstance(line, bytes) else orjson.dumps(line)
    return list(record.read(Source("f", io.BytesIO(data))))


def test_a_record_comes_out_as_it_came_in():
    line = orjson.dumps(GOOD | {"score": {"bleu": 1.5}, "note": None}) + b"\n"
    (found,) = read(line)
    assert record.to_bytes(found) == line
    assert found.extra == {"score": {"bleu": 1.5}, "note": None}


@pytest.mark.parametrize(
    "number", ["1e20", "-1.5E+300", "18446744073709551615", "-9223372036854775808", "1e-9"]
)
def test_every_number_that_is_not_rounded_is_kept(number):
    """Integers of 64 bits, with a sign or without, and any float."""
    line = b'{"src":"a","n":[%b, {"m":%b}]}' % (number.encode(), number.encode())
    (found,) = read(line)
    assert found.extra == {"n": [json.loads(number), {"m": json.loads(number)}]}
    assert read(record.to_bytes(found)) == [found]
    assert record.fields_from_bytes(line, "f", 1)["n"] == found.extra["n"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"[]", "not a JSON object"),
        (b'"x"', "not a JSON object"),
        (b"null", "not a JSON object"),
        (b"{}", "field src is missing"),
        (b'{"src":NaN}', "invalid JSON at character 8"),
        (b'{"src":"a"', "invalid JSON"),
        (b"[" * 200_000, "depth limit"),
        (b'{"src":"a","n":' + b"9" * 10_000 + b"}", "invalid JSON"),
        (b'{"src":"a","n":123456789012345678901234567890}', "64 bits"),
        (b'{"src":"a","m":1e20,"n":[{"o":18446744073709551616}]}', "field 'n': an integer that 64"),
        (b'{"src":"a","m":1,"n":-9223372036854775809}', "field 'n': an integer that 64 bits"),
        (b'{"src":"a","m":1e20,"n":' + b"[" * 300 + b"]" * 300 + b"}", "nested more than 100 deep"),
        (b'{"src":"a","n":' + b"[" * 300 + b"]" * 300 + b"}", "nested more than 100 deep"),
        (rb'{"src":"\ud800"}', "invalid JSON"),
        (b'{"src":"\xed\xa0\x80"}', "invalid UTF-8 at byte 9"),
        (b'{"src":"a","src":"b"}', "field 'src' is there twice"),
        (b'{"src" : "a", "src" : ":", "b":":"}', "field 'src' is there twice"),
        (b'{"src":"a","x":{"y":1,"y":2}}', "field 'y' is there twice"),
        (b'{"src":"a"}{"src":"b"}', "invalid JSON at character 12"),
        (b'{"src":"a"} {"src":"b"}', "invalid JSON at character 13"),
        (b"# sent_id = 1", "CoNLL-U"),
        (b"1\ta\ta", "CoNLL-U"),
        (b"\n{}", "empty line"),
        (b'{"src":5}', "field src: an integer, expected a string"),
        (b'{"src":null}', "field src: null, expected a string"),
        (b'{"src":"a\\nb"}', "field src: a line feed"),
        (b'{"src":"a","id":1}', "field id: an integer, expected a string"),
        (b'{"src":"a","status":"fine"}', "field status: 'fine' is none of ok, empty"),
        (b'{"src":"a","sents":[0]}', "field words is missing"),
    ],
)
def test_a_bad_line_is_named(line, problem):
    with pytest.raises(DataError, match=r"^f:1: ") as caught:
        read(line)
    assert problem in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("words", "abc", "a string, expected a list of strings"),
        ("words", ["a", 1, "c"], "item 1 is an integer, expected a string"),
        ("words", ["a", "", "c"], "item 1 is empty"),
        ("heads", [1, -1, True], "item 2 is a boolean, expected an integer"),
        ("heads", [1.0, -1, 1], "item 0 is a number with a fraction, expected an integer"),
        ("heads", [1, -1], "2 items, but 3 words"),
        ("heads", [-1], "1 item, but 3 words"),
        ("heads", [1, 2, 0], "0 roots (-1) in words 0 to 2, expected 1"),
        ("heads", [-1, -1, 1], "2 roots (-1) in words 0 to 2, expected 1"),
        ("heads", [2, -1, 0], "a cycle"),
        ("heads", [0, -1, 1], "a cycle"),
        ("heads", [3, -1, 1], "item 0 is 3, not in 0 to 2"),
        ("heads", [-2, -1, 1], "item 0 is -2, not in 0 to 2"),
        ("sents", [1], "not rising from 0 to at most 2"),
        ("sents", [0, 0], "not rising"),
        ("sents", [0, 3], "not rising"),
        ("spans", [[0, 1], [2, 3], 4], "item 2 is an integer, expected a list"),
        ("spans", [[0, 1], [2, 3], [4]], "item 2 is not a [begin, end] pair"),
        ("spans", [[0, 1], [2, 3], [4, 5.0]], "not an integer"),
        ("spans", [[0, 1], [2, 3], [4, 6]], "item 2 is [4, 6], but src has 5 characters"),
        ("spans", [[0, 1], [3, 2], [4, 5]], "item 1 is [3, 2]"),
        ("piece_word", [0, 1, 2], "3 items, but 4 pieces"),
        ("piece_word", [0, 1, 2, 3], "item 3 is 3, but 3 words"),
        ("piece_word", [0, 1, 2, -2], "item 3 is -2"),
        ("tgt", ["d"], "a list, expected a string"),
    ],
)
def test_a_bad_field_is_named(name, value, problem):
    with pytest.raises(DataError, match=f"^f:1: field {name}: ") as caught:
        read(GOOD | {name: value})
    assert problem in str(caught.value)


@pytest.mark.parametrize("name", ["words", "spans", "heads", "deprels", "upos", "piece_word"])
def test_a_missing_field_is_named(name):
    with pytest.raises(DataError, match=f"^f:1: field {name} is missing"):
        read({key: value for key, value in GOOD.items() if key != name})


def test_heads_stay_in_their_sentence():
    two = {"heads": [-1, 0, -1], "sents": [0, 2]}
    assert read(GOOD | two)[0].sents == [0, 2]
    with pytest.raises(DataError, match=r"item 1 is 2, not in 0 to 1"):
        read(GOOD | two | {"heads": [-1, 2, -1]})
    with pytest.raises(DataError, match=r"item 2 is 0, not in 1 to 2"):
        read(GOOD | {"heads": [-1, -1, 0], "sents": [0, 1]})


def test_a_line_of_text_is_enough():
    found = list(record.read(Source("f", io.BytesIO(b'{"src":"a"}\n{"src":""}\r\n')), first=7))
    assert [(r.id, r.status, r.words) for r in found] == [("7", "ok", None), ("8", "empty", None)]


def test_colons_and_spaces_are_no_repeated_keys():
    text = ' ":" : "a":\t'
    for dumped in (orjson.dumps, lambda o: orjson.dumps(o, option=orjson.OPT_INDENT_2)):
        line = dumped({"src": text, "x": {"src": 1, ":": '":'}}).replace(b"\n", b" ")
        assert read(line)[0].src == text


words = st.lists(st.text(st.characters(codec="utf-8"), min_size=1), max_size=6)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab:\"' ", max_size=3), inner)
    ),
    max_leaves=6,
)


@given(words, st.dictionaries(st.text("xyz", min_size=1), json_values, max_size=3))
@settings(max_examples=150)
def test_what_was_written_reads_the_same(words, extra):
    n = len(words)
    wrote = Record(
        "1",
        " ".join(words).replace("\n", " "),
        words=words,
        spans=[[0, 0]] * n,
        heads=list(range(-1, n - 1)),
        deprels=["x"] * n,
        upos=["x"] * n,
        tgt_pieces=words,
        status="ok" if words else "empty",
        extra=extra,
    )
    line = record.to_bytes(wrote)
    assert line.count(b"\n") == 1
    assert read(line) == [wrote]
