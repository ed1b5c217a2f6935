"""Reports of `tune --format json`: the mean of several, and figures that no search gives."""

import json

import pytest

from synmt_cli.errors import DataError
from synmt_cli.formats.reports import tuning

VALUE = {"lenpen": 1.0, "bleu": 30.0, "brevity_penalty": 0.9, "length_ratio": 1.1, "cut": 2}
REPORT = {"segments": 4, "beam": 5, "patience": None, "signature": "s"}


@pytest.fixture
def written(tmp_path):
    """`written("a", bleu=1.0)` writes a report of one value and gives its path."""

    def write(name, **figures):
        value = {**VALUE, "closed": None, **figures}
        path = tmp_path / name
        path.write_text(json.dumps({**REPORT, "values": [value], "best": value}))
        return str(path)

    return write


def test_a_perfect_score_may_be_rounded(written):
    paths = [written("a", bleu=100.00000000000004, brevity_penalty=1.0), written("b", bleu=0)]
    assert tuning.read_all(paths).best.bleu == pytest.approx(50)


@pytest.mark.parametrize(
    ("field", "figure"),
    [
        *(("bleu", one) for one in (1e308, 100.1, -0.1, True)),
        *(("brevity_penalty", one) for one in (1.1, -1e308)),
        *(("length_ratio", one) for one in (1e151, -1)),
        *(("lenpen", one) for one in (11, -1)),
    ],
)
def test_figures_that_no_search_gives_are_refused(written, field, figure):
    path = written("a", **{field: figure})
    with pytest.raises(DataError, match="a: not from `synmt tune --format json`: values are mis"):
        tuning.read_all([path, path])
