"""The kind of a stream is detected, and looking at it loses nothing."""

import gzip
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synmt_cli.formats.detect import detect, detect_file
from synmt_cli.io import reading

ROW = b"1\tA\ta\tDET\t_\t_\t0\troot\t_\t_\n"


def kind_and_bytes(data):
    kind, source = detect(reading.Source("x", io.BufferedReader(io.BytesIO(data))))
    return kind, source.file.read()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"src": "a"}\n', "jsonl"),
        (b' { "src"', "jsonl"),
        (b"\xef\xbb\xbf{}", "jsonl"),
        (ROW, "conllu"),
        (b"1-2\tim\t_\t_\n", "conllu"),
        (b"1-2\tim\n", "text"),
        (b"20-29\tA long line.\tEine lange Zeile.\n", "text"),
        (b"# sent_id = 1\n", "conllu"),
        (b"# a remark\r\n" + ROW, "conllu"),
        (b"\n\n" + ROW, "conllu"),
        (b"# newpar\n", "conllu"),
        (b"# textual criticism\nis hard\n", "text"),
        (b"# one\n# two\n", "text"),
        (b"{ curly }\n", "text"),
        (b"1 One\n", "text"),
        (b"", "text"),
        (b"\n", "text"),
        (b"\xff\n", "text"),
    ],
)
def test_the_first_record_decides(data, expected):
    assert kind_and_bytes(data) == (expected, data)


@given(st.binary(max_size=200))
def test_every_byte_is_read_again(data):
    assert kind_and_bytes(data)[1] == data


@pytest.mark.parametrize("name", ["a", 's"1', "\\", '\\"'])
def test_names_in_json_may_have_quotes(name):
    weights = json.dumps({"id": name, "status": "ok", "stack": "encoder"}, separators=(",", ":"))
    scores = json.dumps({"system": name, "score": 0.5})
    for kind, line in (("attention", weights), ("segment-scores", scores)):
        data = io.BufferedReader(io.BytesIO(line.encode()))
        assert detect_file(reading.Source("x", data))[0] == kind


def test_it_does_not_read_ahead_without_bound():
    comments = b"# a remark\n" * 100_000
    assert kind_and_bytes(comments + ROW) == ("text", comments + ROW)
    assert kind_and_bytes(b"x" * 10**6) == ("text", b"x" * 10**6)


def test_lines_and_chunks_of_compressed_data(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b'{"src":""}\nb\n'))
    with reading.open_source(str(path)) as source:
        kind, again = detect(source)
        assert (kind, list(reading.lines(again))) == ("jsonl", [b'{"src":""}', b"b"])
    with reading.open_source(str(path)) as source:
        assert b"".join(reading.chunks(detect(source)[1])) == b'{"src":""}\nb\n'
