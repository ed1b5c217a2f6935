"""Trees as SVG and LaTeX: what is drawn, and that text stays text."""

from __future__ import annotations

import random
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest
from matplotlib.font_manager import findfont, get_font
from matplotlib.ft2font import LoadFlags

from synmt_cli.core.pictures.sentences import (
    ROOT,
    Arc,
    Column,
    Picture,
    Token,
    differences,
    of_record,
    of_sentence,
    shown,
)
from synmt_cli.core.pictures.trees import svg, tikz, upright
from synmt_cli.core.pictures.trees.arcs import text_width
from synmt_cli.errors import DataError
from synmt_cli.formats import conllu
from synmt_cli.formats.record import Record

BLOCK = """# sent_id = s1
# text = im Haus sieht er
1-2\tim\t_\t_\t_\t_\t_\t_\t_\t_
1\tin\t_\tADP\t_\t_\t3\tcase\t3:case\t_
2\tdem\t_\tDET\t_\t_\t3\tdet\t3:det\t_
3\tHaus\t_\tNOUN\t_\t_\t4\tobl\t4:obl\t_
4\tsieht\t_\tVERB\t_\t_\t0\troot\t0:root\t_
4.1\tes\t_\tPRON\t_\t_\t_\t_\t4:obj|9:bad\t_
5\ter\t_\tPRON\t_\t_\t4\tnsubj\t4:nsubj\t_

"""
HOSTILE = ["<script>alert(1)</script>", "\"'&amp;", "\u202ebidi", "w" * 10_000, "]]>", "\x1b[31m"]
NAMESPACE = "{http://www.w3.org/2000/svg}"


def block(text):
    (sentence,) = conllu.sentences(conllu.RawBlocks("f", 1, text.encode()))
    return of_sentence(sentence, "1")


def hostile():
    columns = [Column(text, text[:9]) for text in HOSTILE]
    arcs = [Arc(i - 1, i, text) for i, text in enumerate(HOSTILE)]
    return Picture("</svg>", " ".join(HOSTILE), columns, arcs, [Token(0, 1, HOSTILE[0])])


def test_a_tree_without_its_text_has_that_of_its_tokens():
    """The text of words does not count: a multiword token has its own, and SpaceAfter counts."""
    text = BLOCK.replace("# text = im Haus sieht er\n", "").replace("nsubj\t_", "nsubj\tx=y")
    text = text.replace("0:root\t_", "0:root\tSpaceAfter=No")
    assert block(text).text == "im Haus siehter"


def test_latex_gets_no_slot_of_a_font():
    """Slots 60, 62, 92 and 124 of LaTeX's default encoding are not < > \\ |."""
    assert tikz.escaped("<|>\\") == r"\textless{}\textbar{}\textgreater{}\textbackslash{}"


def parsed(drawn):
    return ET.fromstring(drawn.document())


def texts(root, kind=""):
    found = root.iter(f"{NAMESPACE}text")
    return [one.text for one in found if kind in one.get("class").split()]


def test_a_block_keeps_its_tokens_and_empty_nodes():
    one = block(BLOCK)
    assert [column.form for column in one.columns] == ["in", "dem", "Haus", "sieht", "es", "er"]
    assert one.tokens == [Token(0, 1, "im")]
    assert one.arcs[-1] == Arc(3, 4, "obj", enhanced=True)
    assert one.tree()[5] == Arc(3, 5, "nsubj")


@pytest.mark.parametrize(
    ("words", "label", "tokens"),
    [
        (["a"], "discourse:sentence", []),
        (["a", "b"], "root", [Token(0, 1, "Donaudampfschifffahrtsgesellschaft")]),
        (["abcdefghi", "b", "c"], "root", [Token(1, 2, "Donaudampfschifffahrtsgesellschaft")]),
        (["abc"], "root", [Token(0, 0, "Donaudampfschifffahrtsgesellschaft")]),
    ],
)
def test_text_that_is_wider_than_its_words_stays_within_the_picture(words, label, tokens):
    arcs = [Arc(0 if i else ROOT, i, "dep" if i else label) for i in range(len(words))]
    one = Picture("1", " ".join(words), [Column(word, "") for word in words], arcs, tokens)
    root = parsed(svg.tree(one))
    _, _, width, _ = map(float, root.get("viewBox").split())
    for text in root.iter(f"{NAMESPACE}text"):
        size = float(text.get("font-size"))
        half = text_width(text.text, size) / 2
        assert half <= float(text.get("x")) + 0.1, text.text
        assert float(text.get("x")) + half <= width + 0.1, text.text


@pytest.mark.parametrize(
    "text",
    ["Donaudampfschifffahrtsgesellschaftskapitän", "WWW.MMMMMMMM.COM", "obl:unmarked", "—&…@",
     "the quick brown fox", "Привет, мир", "Москва", "NOUN · root", "1,024", "ILLFITTING"],
)  # fmt: skip
def test_text_is_estimated_at_least_as_wide_as_in_dejavu_sans(text):
    font = get_font(findfont("DejaVu Sans"))
    font.set_size(100, 72)
    font.set_text(text, flags=LoadFlags.NO_HINTING)
    width = font.get_width_height()[0] / 64
    assert width <= text_width(text, 100) <= 1.4 * width


@pytest.mark.parametrize("seed", range(12))
def test_labels_of_a_broken_sentence_do_not_overlap(seed):
    draw = random.Random(seed)
    width = draw.choice([480, 600, 720])
    words = [draw.choice(["a", "nostalgic", "days"]) for _ in range(40)]
    labels = ["det", "obl:unmarked", "punct", "nmod:poss"]
    arcs = [
        Arc(draw.randrange(max(i - 9, 0), i) if i else ROOT, i, draw.choice(labels))
        for i in range(40)
    ]
    drawn = svg.tree(Picture("1", " ".join(words), [Column(word, "") for word in words], arcs),
                     width=width)  # fmt: skip
    for line in parsed(drawn).findall(f"{NAMESPACE}g"):
        by_level = defaultdict(list)
        for text in line.iter(f"{NAMESPACE}text"):
            if "label" in text.get("class"):
                half = text_width(text.text, float(text.get("font-size"))) / 2
                by_level[text.get("y")].append((float(text.get("x")), half))
        for places in by_level.values():
            for (x, half), (other_x, other) in pairwise(sorted(places)):
                assert x + half <= other_x - other + 0.2


def test_an_empty_node_has_no_arc_from_itself():
    one = block(BLOCK.replace("4:obj|9:bad", "4.1:obj|0:root"))
    assert [arc for arc in one.arcs if arc.enhanced] == [Arc(ROOT, 4, "root", enhanced=True)]
    assert parsed(svg.tree(one, "arcs")) is not None


def test_words_that_share_a_span_are_a_token():
    record = Record("1", "im Haus", words=["in", "dem", "Haus"], spans=[[0, 2], [0, 2], [3, 7]],
                    heads=[2, 2, -1], deprels=["case", "det", "root"], upos=["X"] * 3)  # fmt: skip
    assert of_record(record).tokens == [Token(0, 1, "im")]
    assert of_record(Record("2", "a")).problem == "no tree"


@pytest.mark.parametrize("layout", ["arcs", "upright"])
def test_words_labels_and_tokens_are_drawn_once(layout):
    root = parsed(svg.tree(block(BLOCK), layout))
    assert texts(root, "word") == ["in", "dem", "Haus", "sieht", "es", "er"]
    labels = {text.split(" · ")[-1] for text in texts(root, "label")}
    assert labels == {"case", "det", "obl", "root", "obj", "nsubj"}
    if layout == "arcs":
        assert texts(root, "token") == ["im"]
    described = root.find(f"{NAMESPACE}desc").text
    assert "in: case of Haus" in described
    assert "sieht: root" in described


@pytest.mark.parametrize("layout", ["arcs", "upright"])
def test_text_never_becomes_markup_and_long_words_are_cut(layout):
    both = differences(hostile(), replace(hostile(), arcs=hostile().arcs[::-1]))
    for drawn in (svg.tree(hostile(), layout), svg.compared(both, layout)):
        root = parsed(drawn)
        tags = {one.tag.removeprefix(NAMESPACE) for one in root.iter()}
        assert tags <= {"svg", "title", "desc", "g", "text", "path", "line"}
        assert "\u202e" not in drawn.document()
        assert "\x1b" not in drawn.document()
        assert drawn.width < 3000
        assert len(drawn.document()) < 30_000


@pytest.mark.parametrize("draw", [lambda both: svg.compared(both).document(), tikz.compared])
def test_a_tree_is_not_the_same_as_none(draw):
    without = Picture("s1", "a", problem="failed: no tree")
    for both in (differences(hostile(), without), differences(without, hostile())):
        assert "(failed: no tree)" in draw(both)
        assert "the same" not in draw(both)


def test_what_is_shown_keeps_persian_joiners():
    assert shown("می\u200cخواهم") == "می\u200cخواهم"


def test_a_sentence_written_to_the_left_is_mirrored():
    words = ["ذهب", "الولد"]
    arcs = [Arc(ROOT, 0, "root"), Arc(0, 1, "nsubj")]
    one = Picture("1", " ".join(words), [Column(word, "X") for word in words], arcs)
    for layout in ("arcs", "upright"):
        root = parsed(svg.tree(one, layout))
        places = {text.text: float(text.get("x")) for text in root.iter(f"{NAMESPACE}text")}
        assert places[words[0]] > places[words[1]]


def test_a_tree_too_large_is_said_not_to_be_drawn():
    arcs = [Arc(i - 1, i, "dep") for i in range(10_001)]
    one = Picture("1", "w", [Column("w", "X")] * 10_001, arcs)
    both = differences(one, one)
    for text in (svg.tree(one).content, svg.compared(both).content, tikz.compared(both)):
        assert "not drawn: 10,001 words, and 10,000 are the most" in text


def test_differences_count_heads_and_labels_apart():
    first = block(BLOCK)
    changed = [
        arc._replace(head=4 - 1) if arc.dependent == 0 else arc._replace(label="x")
        if arc.dependent == 2 else arc for arc in first.arcs
    ]  # fmt: skip
    both = differences(first, replace(first, arcs=changed))
    assert both.differing == {0, 2}
    assert both.summary() == "2 of 5 words differ: 1 by head, 1 by label only"
    root = parsed(svg.compared(both))
    dashed = [one for one in root.iter(f"{NAMESPACE}path") if one.get("stroke-dasharray") == "5 3"]
    assert len(dashed) == 4  # two arcs, in both trees


def test_trees_over_other_words_are_refused():
    other = block(BLOCK.replace("Haus\t", "Heim\t"))
    with pytest.raises(DataError, match=r"f:1: sentence s1: .* word 3 is 'Heim', not 'Haus'"):
        differences(block(BLOCK), other)


def test_upright_edges_join_neighbouring_depths_and_words_do_not_overlap():
    one = block(BLOCK)
    placed = upright.layout(one)
    for arc in one.arcs:
        if arc.head != ROOT:
            assert placed.at[arc.dependent][1] - placed.at[arc.head][1] == upright.DEPTH
    xs = [x for x, _ in placed.at]
    assert xs == sorted(xs)


LATEX = shutil.which("pdflatex")


@pytest.mark.slow
def test_latex_compiles_what_tikz_writes(tmp_path):
    found = LATEX and subprocess.run(["kpsewhich", "tikz-dependency.sty"], capture_output=True)
    if not found or found.returncode:
        pytest.skip("no pdflatex with tikz-dependency (Debian: texlive-latex-extra)")
    special = Picture("1", "x", [Column("a[&\\%$#_{}~^<>|\"`'-*]b", "N&"), Column("[", "")],
                      [Arc(ROOT, 0, "a&b"), Arc(0, 1, "]")])  # fmt: skip
    parts = [tikz.HEADER, tikz.tree(special), tikz.tree(block(BLOCK)), tikz.tree(block(BLOCK), 60)]
    changed = replace(block(BLOCK), arcs=[arc._replace(label="y") for arc in block(BLOCK).arcs])
    parts.append(tikz.compared(differences(block(BLOCK), changed)))
    start = "\\documentclass{article}\\usepackage{tikz-dependency}\\begin{document}\n"
    (tmp_path / "a.tex").write_text(f"{start}{''.join(parts)}\\end{{document}}\n")
    command = [LATEX, "-interaction=nonstopmode", "-halt-on-error", "a.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    assert b"Overfull" not in done.stdout
    assert (tmp_path / "a.pdf").exists()
