"""Translations that were written can be read back."""

import io
from collections import Counter

import pytest

from synmt_cli.core.decoding.translator import Translated, TranslatedLine
from synmt_cli.core.jobs.translation.output import written
from synmt_cli.formats.record import Record
from synmt_cli.io import reading


@pytest.mark.parametrize("format", ["text", "tsv"])
@pytest.mark.parametrize("text", ["a", "a\r", "a\r\r", "\r", ""])
def test_lines_are_read_back_as_they_were(format, text):
    one = Translated(Record("1", "source"), [TranslatedLine(text, 0.0, cut=False)])
    data = written(format, None, Counter(), 1)(one)
    (line,) = reading.lines(reading.Source("f", io.BytesIO(data)))
    assert line.decode().split("\t")[-1] == text
