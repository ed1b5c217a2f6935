"""The trees of the page, from CoNLL-U and records, one list for each line of text."""

import pytest

from synmt_cli.core.report import trees
from synmt_cli.errors import DataError

BLOCK = "1\tdogs\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
TREE = '"words": ["dogs"], "upos": ["NOUN"], "heads": [-1], "deprels": ["root"], "spans": [[0, 4]]'
RECORD = f'{{"src": "dogs", {TREE}}}\n'


@pytest.mark.parametrize("text", [BLOCK * 2, RECORD * 2])
def test_each_line_has_its_trees_by_number(tmp_path, text):
    (tmp_path / "trees").write_text(text)
    found = trees.read(str(tmp_path / "trees"))
    assert [[one.id for one in line] for line in found] == [["1"], ["2"]]
    assert [[one.columns[0].form for one in line] for line in found] == [["dogs"], ["dogs"]]


def test_a_bad_first_record_advises_no_option_of_other_commands(tmp_path):
    (tmp_path / "trees").write_text('{"src": 1}\n')
    with pytest.raises(DataError, match="trees:1: field src") as caught:
        trees.read(str(tmp_path / "trees"))
    assert "--from" not in str(caught.value)
