"""Charts of runs, scores and attention: the values they show, and the forms they are written in."""

from __future__ import annotations

import importlib.util
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synmt_cli.core.pictures import attention, awsl, curves, figures, score_charts, text_charts
from synmt_cli.core.pictures.charts import Chart, HeatMap, Series, group_of, thinned
from synmt_cli.core.pictures.sentences import ROOT, Arc, Column, Picture, Token, shown_ends
from synmt_cli.core.segments.alignment import piece_words
from synmt_cli.errors import DataError, ReadError, UsageError
from synmt_cli.formats.attention import Attention
from synmt_cli.formats.reports.analysis.awsl import LayerWeights, RunWeights
from synmt_cli.formats.reports.score.scores import HOLM, ScoredBucket, ScoreReport
from synmt_cli.formats.reports.score.systems import MetricInfo, PairedComparison, ScoredSystem

needs_matplotlib = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="no matplotlib"
)


@pytest.fixture
def run_folder(tmp_path):
    """`run_folder("base.1", [lines])` makes a run directory with these metrics."""

    def make(name, events, settings=""):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.toml").write_text(f"format = 1\n{settings}")
        lines = [one if isinstance(one, str) else json.dumps(one) + "\n" for one in events]
        (folder / "metrics.jsonl").write_text("".join(lines))
        return str(folder)

    return make


def dev(step, value, perplexity, metric="bleu"):
    facts = {"metric": metric, "value": value, "perplexity": perplexity}
    return {"event": "dev", "step": step, **facts}


def test_curves_of_seeds_share_a_group(run_folder):
    train = {"event": "train", "step": 5, "nll": 6.5}
    half = '{"event": "dev", "st'  # a training is still writing this line
    folders = [run_folder(f"base.{i}", [train, dev(10, i, 90.0), half]) for i in (1, 2)]
    read = [curves.read(folder) for folder in folders]
    bleu, perplexity, training = curves.charts(read, curves.WHAT)
    assert [one.y for one in bleu.series] == [[1.0], [2.0]]
    assert {one.group for one in bleu.series} == {folders[0][:-2]}
    assert (perplexity.series[0].y, training.series[0].y) == ([90.0], [6.5])


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("[training]\nseed = 1", "[training]\nseed = 2", True),
        ("[training]\nseed = 1\nlr = 0.1", "[training]\nseed = 2\nlr = 0.2", False),
        ('[data]\ndev = "a"\ndev_sha256 = "0"', '[data]\ndev = "b"\ndev_sha256 = "0"', True),
        ('[data]\ndev = "a"\ndev_sha256 = "0"', '[data]\ndev = "a"\ndev_sha256 = "1"', False),
        ('variant = "gps"', 'variant = "pascal"', False),
        (
            '[pretrained]\nrun = "a.1"\nsha256 = "0"',
            '[pretrained]\nrun = "a.2"\nsha256 = "1"',
            True,
        ),
        ("training = 1", "training = 1", True),  # check says what is wrong with it
    ],
)
def test_numbers_in_names_are_seeds_where_nothing_else_differs(run_folder, one, other, alike):
    settings = {"r.10": one, "r.20": other}
    folders = [run_folder(name, [dev(1, 2.0, 9.0)], text) for name, text in settings.items()]
    (bleu,) = curves.charts([curves.read(folder) for folder in folders], ["metric"])
    expected = [folders[0][:-3]] * 2 if alike else folders
    assert [series.group for series in bleu.series] == expected


def test_runs_without_figures_are_said(run_folder, tmp_path):
    with pytest.raises(ReadError, match="not a run directory"):
        curves.read(str(tmp_path))
    bad = run_folder("bad", ['{"event": "dev", "step": 1}\n'])
    with pytest.raises(DataError, match=r"metrics.jsonl:1: field metric"):
        curves.read(bad)
    assert curves.charts([curves.read(run_folder("new", []))]) == []


BLEU = MetricInfo("bleu", "BLEU", "sig", True, 2)


def report(low=0.5):
    paired = PairedComparison("bs", "centred", 9, 1, 2.0, (low, 3.5), 0.01)
    systems = [
        ScoredSystem("base", {"bleu": 20.0}, {}, [], {"bleu": [19.0, 21.0]}, {"bleu": (18, 22)}),
        ScoredSystem("new", {"bleu": 22.0}, {"bleu": paired}, [], {"bleu": [22.0, 22.0]}),
    ]
    scores = [{"bleu": 10.0}, {"bleu": 12.0}]
    full = ScoredBucket("0-9", 0, 9, 30, scores, "length", [{}, {"bleu": paired}])
    empty = ScoredBucket("10+", 10, None, 0, [{"bleu": None}] * 2, "length")
    return ScoreReport(60, ["ref"], [BLEU], systems, [full, empty])


def test_scores_are_drawn_with_intervals_and_seeds():
    whole, _, scores, deltas = score_charts.charts(report())
    assert (whole.series[0].y, whole.series[0].low) == ([20.0, None], [18, None])
    assert whole.series[1].low == [None, None]
    assert whole.series[0].dots[0] == [19.0, 21.0]
    assert scores.series[1].y == [12.0, None]
    assert (deltas.series[1].y, deltas.series[1].low) == ([2.0, None], [0.5, None])
    with pytest.raises(UsageError, match="--by 'x': the report has systems, length"):
        score_charts.charts(report(), by="x")


def test_differences_of_the_whole_set_have_the_stars_of_the_table():
    """p = 0.01 has one star, and none once corrected: a picture claims no more than the table."""
    tested = report()
    (system, difference) = score_charts.charts(tested, by="systems")
    assert (difference.series[0].name, difference.series[0].y) == ("new", [2.0])
    assert (difference.series[0].low, difference.series[0].high) == ([0.5], [3.5])
    assert (difference.ticks, difference.stars, difference.zero) == (["new"], ["*"], True)
    assert difference.y_label == "BLEU - base's"
    assert difference.note == "95 % intervals; * p < 0.05, ** < 0.01"
    base, new = tested.systems
    paired = {"bleu": replace(new.paired["bleu"], corrected=0.06)}
    corrected = replace(
        tested,
        systems=[base, replace(new, paired=paired)],
        settings=replace(tested.settings, correction=HOLM),
    )
    difference = score_charts.charts(corrected)[1]
    assert difference.stars == [""]
    assert difference.note == "95 % intervals; * corrected p < 0.05, ** < 0.01"
    alone = replace(tested, systems=[base, replace(new, paired={})])
    assert score_charts.charts(alone, by="systems") == [system]
    assert "new *" in text_charts.text([score_charts.differences(tested, BLEU)], 70)


def test_charts_say_where_lower_is_better():
    of_errors = replace(report(), metrics=[replace(BLEU, higher_is_better=False)])
    labels = [chart.y_label for chart in score_charts.charts(of_errors)]
    scores, differences = "BLEU (lower is better)", "BLEU - base's (lower is better)"
    assert labels == [scores, differences] * 2


@pytest.mark.parametrize("low", [0.5, 0.0])
def test_what_the_lines_are_is_said_where_there_are_some(low):
    tested = report(low)
    assert [one.note for one in score_charts.charts(tested, by="length")] == ["", "95 % intervals"]
    buckets = [replace(one, paired=[]) for one in tested.buckets]
    untested = score_charts.charts(replace(tested, buckets=buckets), by="length")
    assert [one.note for one in untested] == ["", ""]


@needs_matplotlib
@pytest.mark.parametrize(
    ("n_systems", "side_by_side"), [(3, True), (5, True), (6, False), (10, False)]
)
def test_intervals_of_many_systems_stand_apart(n_systems, side_by_side):
    one = report()
    base, new = one.systems
    full = one.buckets[0]
    scores = [full.scores[0], *[full.scores[1]] * (n_systems - 1)]
    paired = [{}, *[full.paired[1]] * (n_systems - 1)]
    buckets = [replace(full, name=name, scores=scores, paired=paired) for name in "abcde"]
    systems = [base, *(replace(new, name=f"new {i}") for i in range(1, n_systems))]
    many = replace(one, systems=systems, buckets=buckets)
    drawn = score_charts.charts(many, by="length")
    svg = figures.picture(drawn, "svg").decode()
    width, height = map(float, re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups())
    assert (width > 1.5 * height) == side_by_side
    vertical = re.findall(r'd="M ([\d.]+) [\d.]+ \nL \1 [\d.]+ \n" clip', svg)
    places = sorted({float(x) for x in vertical})
    assert len(places) == 5 * (n_systems - 1)
    assert min(np.diff(places)) >= figures.MARKER


@needs_matplotlib
@pytest.mark.parametrize("kind", figures.KINDS)
def test_the_same_charts_give_the_same_bytes(kind):
    made = figures.picture(score_charts.charts(report()), kind)
    assert made == figures.picture(score_charts.charts(report()), kind)
    assert made.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[kind])


@needs_matplotlib
@pytest.mark.parametrize(
    ("xs", "ticks"),
    [
        ([2], ["2"]),
        ([0, 12_000], ["0", "2,000", "4,000", "6,000", "8,000", "10,000", "12,000"]),
        ([0.2, 1.2], ["0.2", "0.4", "0.6", "0.8", "1", "1.2"]),
    ],
)
def test_ticks_are_numbers_that_can_be_there(xs, ticks):
    """Updates are whole, length penalties are not."""
    chart = Chart("x", "y", [Series("a", xs, [1.0] * len(xs))])
    svg = figures.picture([chart], "svg", figures.Size(4, live=True)).decode()
    found = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert found[: len(ticks) + 1] == [*ticks, "x"]


@needs_matplotlib
def test_names_are_text_in_a_page_and_nothing_else():
    name = "<script>$x_1$\u202e" + "w" * 500
    chart = Chart("x", name, [Series(name, [0, 1], [1, 2])], ticks=[name, "b"])
    svg = figures.for_page([chart], '"><script>')
    assert "<script>" not in svg
    assert "\u202e" not in svg
    assert "&lt;script&gt;$x_1$" in svg


@given(
    st.lists(st.text("ab/.", max_size=30), max_size=6), st.integers(8, 20), st.sampled_from("a/.")
)
def test_shortened_names_are_as_different_as_the_names(names, limit, between):
    long = [f"{name}{between * 20}{name}" for name in names]
    for given_names in (names, long):
        short = shown_ends(given_names, limit)
        assert all(len(one) <= limit for one in short)
        pairs = {*zip(given_names, short, strict=True)}
        assert len(pairs) == len({*given_names}) == len({*short})


def test_the_name_at_an_axis_is_short():
    names = [f"out/newstest2014/{name}.detok.de" for name in ("vanilla", "pascal")]
    one = report()
    systems = [replace(old, name=name) for old, name in zip(one.systems, names, strict=True)]
    _, difference = score_charts.charts(replace(one, systems=systems), by="length")
    assert difference.y_label == "BLEU - vanilla's"


@needs_matplotlib
def test_no_line_leads_from_a_range_to_segments_without_a_tree():
    one = report()
    last = replace(one.buckets[0], name="no tree", low=None, high=None)
    for buckets, n_apart in ((one.buckets, 0), ([*one.buckets, last], 1)):
        scores, _ = score_charts.charts(replace(one, buckets=buckets), by="length")
        assert scores.n_apart == n_apart
    three = Chart("", "", [Series("a", [0, 1, 2], [1, 2, 3])], ["0-4", "5+", "no tree"])
    for n_apart, segments in ((0, 2), (1, 1)):
        svg = figures.picture([replace(three, n_apart=n_apart)], "svg").decode()
        (line,) = re.findall(
            rf'd="([^"]*)"[^>]*stroke: {figures.PALETTE[0].lower()}; stroke-w', svg
        )
        assert line.count("L ") == segments


@needs_matplotlib
@pytest.mark.parametrize(
    ("ticks", "n_charts", "turned"),
    [
        ([f"lg/s{i}" for i in range(8)], 1, False),
        ([f"lg/s{i}" for i in range(8)], 2, True),  # half the width
        ([f"{10 * i}-{10 * i + 9}\nn=1,013" for i in range(1, 6)], 2, False),
    ],
)
def test_labels_are_turned_where_there_is_no_room(ticks, n_charts, turned):
    n = len(ticks)
    chart = Chart("x", "y", [Series("a", range(n), [1.0] * n)], ticks)
    svg = figures.picture([chart] * n_charts, "svg", figures.Size(6.3, live=True)).decode()
    assert ("rotate(-30" in svg) == turned


def test_text_of_weights_is_as_wide_as_the_terminal_and_says_what_it_leaves_out():
    names = [f"▁w{i}" for i in range(60)]
    weights = np.eye(60).tolist()
    wide, narrow = (
        text_charts.text([HeatMap("layer 0, head 0", names, names, weights)], n).splitlines()
        for n in (500, 80)
    )
    assert max(map(len, narrow)) <= 80
    assert wide[2] == f"▁w1  |  @ {'  ' * 58}| 1.00"
    assert narrow[2].startswith(wide[2][:60])
    assert narrow[2].endswith("… 1.00")
    shown = len(", ".join(narrow[61:-2]).split(", "))
    assert narrow[-2].startswith(f"{shown} of 60 columns fit")
    assert not any("columns fit" in line for line in wide)


def test_text_shows_every_value():
    text = text_charts.text(score_charts.charts(report()), 70)
    squeezed = " ".join(text.split())
    assert "base 20.00" in squeezed
    assert "0-9 n=30 new 2.00" in squeezed
    lines = [Series("a", [0, 10], [1.0, 2.0]), Series("b", [0, 10], [2.0, 1.0])]
    grid = text_charts.text([Chart("updates", "BLEU", lines)], 40)
    rows = [row for row in grid.splitlines() if "|" in row]
    assert rows[0].endswith("x" + " " * (len(rows[0].split("|")[1]) - 2) + "o")
    assert max(map(len, grid.splitlines())) <= 40


def attention_of(pieces):
    return Attention("1", "ok", "encoder", None, pieces, pieces, {(0, 1): np.eye(len(pieces))})


def test_edges_join_the_pieces_of_a_word_and_of_its_head():
    columns = [Column(form, "") for form in ("The", "dog", "sleeps", ".")]
    arcs = [Arc(1, 0, "det"), Arc(2, 1, "nsubj"), Arc(ROOT, 2, "root"), Arc(2, 3, "punct")]
    tree = Picture("1", "The dog sleeps.", columns, arcs)
    one = attention_of(["▁The", "▁do", "g", "▁sleeps", ".", "</s>"])
    found = attention.edges(one, tree)
    assert found == {(0, 1), (0, 2), (1, 3), (2, 3), (4, 3)}
    (drawn,) = attention.maps(one, heads=[1], tree=tree)
    assert (drawn.title, drawn.outlined) == ("layer 0, head 1", found)
    with pytest.raises(UsageError, match="--heads 0: the file has 1"):
        attention.maps(one, heads=[0])
    with pytest.raises(UsageError, match="not those of segment '1'"):
        attention.edges(attention_of(["▁A"]), tree)


@pytest.mark.parametrize(
    "pieces",
    [
        ["▁the", "▁stras", "se", "▁costs", "▁5", "€"],  # lower case, ß as ss
        ["▁The", "▁Straße", "▁costs", "▁", "<0x35>", "<0xE2>", "<0x82>", "<0xAC>"],
    ],
)
def test_pieces_that_a_vocabulary_normalises_or_spells_are_those_of_their_words(pieces):
    forms = ["The", "Straße", "costs", "5€"]
    columns = [Column(form, "") for form in forms]
    arcs = [Arc(1, 0, "det"), Arc(2, 1, "nsubj"), Arc(ROOT, 2, "root"), Arc(2, 3, "obj")]
    found = attention.edges(attention_of(pieces), Picture("1", "", columns, arcs))
    of_price = {i for i, piece in enumerate(pieces) if piece == "▁5" or piece[0] in "<€"}
    costs = pieces.index("▁costs")
    assert {i for i, j in found if j == costs} == of_price | set(range(1, costs))
    with pytest.raises(UsageError, match="not those of segment"):
        attention.edges(attention_of([*pieces[:-1], "<0xFF>"]), Picture("1", "", columns, arcs))


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (["▁c", "annot", "▁see"], [0, 1, 2]),  # can|not: three of five letters are in `not`
        (["▁cann", "ot", "▁see"], [0, 1, 2]),
        (["▁cannot", "▁see"], [0, 2]),  # three letters of each word: the first one wins
        (["▁ca", "nnots", "ee"], [0, 1, 2]),  # with letters of three words
    ],
)
def test_a_piece_of_several_words_is_that_of_most_of_its_letters(pieces, words):
    columns = [Column(form, "") for form in ("can", "not", "see")]
    arcs = [Arc(2, 0, "aux"), Arc(2, 1, "advmod"), Arc(ROOT, 2, "root")]
    found = attention.edges(attention_of(pieces), Picture("1", "", columns, arcs))
    verb = words.index(2)
    assert found == {(i, verb) for i, word in enumerate(words) if word != 2}
    spans, at = [], 0
    for piece in pieces:  # spans as in records
        spans.append((at, at := at + len(piece.replace("▁", ""))))
    assert piece_words(spans, [(0, 3), (3, 6), (6, 9)], [0, 1, 2]) == words


def test_a_piece_of_a_multiword_token_belongs_to_each_of_its_words():
    forms = [("Le", ""), ("chat", ""), ("vu", ""), ("de", ""), ("le", ""), ("voisin", "")]
    columns = [Column(form, tag, empty=form == "vu") for form, tag in forms]
    arcs = [Arc(1, 0, "det"), Arc(ROOT, 1, "root"), Arc(5, 3, "case"), Arc(5, 4, "det")]
    tree = Picture("1", "", columns, [*arcs, Arc(1, 5, "nmod")], [Token(3, 4, "du")])
    pieces = ["▁Le", "▁chat", "▁d", "u", "▁voisin", "</s>"]
    assert attention.edges(attention_of(pieces), tree) == {(0, 1), (2, 4), (3, 4), (4, 1)}


@needs_matplotlib
def test_heat_maps_are_drawn_in_all_forms():
    maps = [HeatMap("layer 0", ["a", "犬"], ["$b", "c"], [[0, 1], [0.5, 0.5]], frozenset({(0, 1)}))]
    assert figures.picture(maps, "svg").startswith(b"<?xml")
    assert text_charts.text(maps, 80).splitlines()[1] == "a  |  @]| 1.00"


@needs_matplotlib
def test_heat_maps_shade_the_square_root_up_to_the_strongest_of_all(monkeypatch):
    """Percents keep the scale from 0 to 1; the colour bar says how weights are shaded."""
    from matplotlib.figure import Figure

    bars = []
    colorbar = Figure.colorbar
    monkeypatch.setattr(
        Figure,
        "colorbar",
        lambda self, mesh, **how: bars.append((mesh, how["label"])) or colorbar(self, mesh, **how),
    )
    diffuse = HeatMap("diffuse", ["a"], ["b", "c"], [[0.04, 0.01]])
    peaked = HeatMap("peaked", ["a"], ["b", "c"], [[0.64, 0.0]])
    figures.picture([diffuse, peaked], "svg")
    figures.picture([diffuse], "svg")
    figures.picture([replace(diffuse, in_percent=True, what="words")], "svg")
    (both, label), (alone, _), (percents, words) = bars
    assert both.norm(0.04) == pytest.approx(0.25)  # a sixteenth would be nearly white
    assert (both.norm(0.64), both.norm(0)) == (1, 0)
    assert (alone.norm(0.04), alone.norm(0.01)) == (1, pytest.approx(0.5))
    assert percents.norm(0.04) == pytest.approx(0.04)
    assert (label, words) == ("weight, shaded by its square root", "words")


def test_a_thinned_series_keeps_its_ends_and_its_extremes():
    rng = np.random.default_rng(3)
    for n in (5, 401, 402, 12_000):
        y = rng.normal(size=n).cumsum().tolist()
        one = Series("a", range(n), y)
        for most in (4, 5, 400):
            found = thinned(one, most)
            assert len(found.x) == len(found.y) <= most or n <= most
            assert [y[x] for x in found.x] == found.y
            assert (found.x[0], found.x[-1]) == (0, n - 1)
            assert (min(found.y), max(found.y)) == (min(y), max(y))
            assert [*found.x] == sorted(found.x)
    assert thinned(Series("a", [1, 2], [3, None]), 400).y == [3, None]


@pytest.mark.parametrize("field", ["value", "perplexity", "nll"])
def test_figures_that_no_chart_can_hold_are_refused(run_folder, field):
    event = dev(2, 1.0, 9.0) if field != "nll" else {"event": "train", "step": 2}
    folder = run_folder("a", [dev(1, 2.0, math.exp(700)), {**event, field: -1e308}])
    with pytest.raises(DataError, match=f"metrics.jsonl:2: field {field} is not within 1e"):
        curves.read(folder)


def test_awsl_of_one_run_has_its_rest_and_of_several_not():
    runs = [
        RunWeights(name, "gps", 1, [LayerWeights(i, ["gps"], 0.25, []) for i in (0, 1)])
        for name in ("a", "b")
    ]
    assert [one.name for one in awsl.chart(runs).series] == ["a", "b"]
    alone = awsl.chart(runs[:1]).series
    assert [(one.name, one.y) for one in alone] == [("standard", [0.75] * 2), ("AWSL", [0.25] * 2)]


def test_awsl_of_runs_with_one_layer_is_one_line_where_the_layer_alone_varies():
    def drawn(*runs):
        made = [
            RunWeights(f"{variant}.{i}", variant, 1, [LayerWeights(layer, [variant], 0.25, [])])
            for i, (variant, layer) in enumerate(runs)
        ]
        return [(one.name, [*one.x]) for one in awsl.chart(made).series]

    assert drawn(("gps", 2), ("gps", 0)) == [("standard", [0, 2]), ("AWSL", [0, 2])]
    assert drawn(("gps", 0), ("gps", 0)) == [("gps.0", [0]), ("gps.1", [0])]
    assert drawn(("gps", 0), ("pascal", 1)) == [("gps.0", [0]), ("pascal.1", [1])]


@needs_matplotlib
@pytest.mark.parametrize(
    ("names", "n_rows"), [([f"a rather long name {i}" for i in range(9)], 5), (list("abc"), 1)]
)
def test_a_legend_is_inside_the_figure(names, n_rows):
    series = [Series(name, [0.0, 1.0], [1.0, 2.0]) for name in names]
    size = figures.Size(width=5, font=8, live=True)
    svg = figures.picture([Chart("x", "y", series)], "svg", size).decode()
    width = float(re.search(r'viewBox="0 0 ([\d.]+) ', svg)[1])
    legend = svg[svg.index('id="legend_1"') :]
    texts = re.findall(r' x="(-?[\d.]+)" y="([\d.]+)" [^>]*>([^<]+)</text>', legend)
    assert [text for _, _, text in texts] == names
    assert len({y for _, y, _ in texts}) == n_rows
    narrow = 0.4 * size.font  # letters are at least this wide
    lines = re.findall(r'd="M (-?[\d.]+) ', legend)
    assert all(float(x) >= 0 for x in lines)
    assert all(float(x) + narrow * len(text) <= width for x, _, text in texts)


@needs_matplotlib
def test_names_that_differ_at_their_end_can_be_told_apart():
    names = [f"/data/experiments/2026/de-en/first/runs/{one}.1" for one in ("vanilla", "pascal")]
    chart = Chart("x", "y", [Series(name, [0.0, 1.0], [1.0, 2.0]) for name in names])
    svg = figures.picture([chart], "svg", figures.Size(6.3, live=True)).decode()
    text = text_charts.text([chart], 40)
    for end in ("vanilla.1", "pascal.1"):
        assert f">{end}</text>" in svg
        assert f" {end}\n" in text


@needs_matplotlib
def test_names_that_differ_in_the_middle_can_be_told_apart():
    names = [f"out/{one}/newstest2019-ende.detokenized.de" for one in ("vanilla", "pascal")]
    series = [Series(name, [i], [1.0]) for i, name in enumerate(names)]
    chart = Chart("", "BLEU", series, names, joined=False)
    svg = figures.picture([chart], "svg", figures.Size(6.3, live=True)).decode()
    for name in ("vanilla", "pascal"):
        assert f">{name}</text>" in svg
        assert f"\n{name} " in text_charts.text([chart], 60)


@needs_matplotlib
def test_a_label_of_several_lines_is_drawn():
    chart = Chart("", "BLEU", [Series("a", [0, 1], [1, 2])], ["x\ny\nn=3", "z\nn=4"])
    svg = figures.picture([chart], "svg", figures.Size(6.3, live=True)).decode()
    assert all(f">{line}</" in svg for line in ("x", "y", "n=3", "z", "n=4"))


@needs_matplotlib
def test_a_run_without_other_seeds_has_its_whole_name():
    names = ["pascal-9000", "base.1", "base.2"]
    series = [Series(name, [0.0, 1.0], [1.0, 2.0], group=group_of(name)) for name in names]
    svg = figures.picture([Chart("x", "y", series)], "svg", figures.Size(6.3, live=True)).decode()
    assert re.findall(r">(pascal[^<]*|base[^<]*)</text>", svg) == ["pascal-9000", "base (2 seeds)"]


@needs_matplotlib
def test_titles_of_maps_end_with_what_they_show():
    run = "runs/europarl/de-en/first/pascal-deep.seed1"
    one = HeatMap(f"{run}\nnsubj, up", ["a"], ["b"], [[0.5]])
    svg = figures.picture([one], "svg", figures.Size(6.3, live=True)).decode()
    assert ">nsubj, up</text>" in svg
    assert "pascal-deep.seed1</text>" in svg
    assert text_charts.text([one], 80).startswith(f"{run}, nsubj, up\n")


@needs_matplotlib
def test_a_name_that_is_a_colour_stays_a_name():
    name = figures.PALETTE[0].lower() + figures.INK
    svg = figures.for_page([Chart("x", "y", [Series(name, [0, 1], [1, 2])], [name, "b"])], "t")
    assert name in svg
    assert f"var(--c0, {figures.PALETTE[0]})" in svg


def test_each_line_of_a_chart_of_text_has_a_mark_of_its_own():
    lines = [Series(f"run {i}", [0.0, 1_234_567.0], [i, i + 1.0]) for i in range(30)]
    rows = text_charts.text([Chart("updates", "BLEU", lines)], 60).splitlines()
    assert len({row.split()[0] for row in rows[-30:]}) == 30
    assert "1,234,567" in rows[-31]
