"""`synmt view` as a user runs it."""

from __future__ import annotations

import inspect
import os
import pty
import re
import subprocess
import sys

import pytest
from support.program import ENVIRONMENT

from synmt_cli.commands.view import view

TREE = b"""# sent_id = s7
# text = The dog sees it .
1\tThe\t_\tDET\t_\t_\t2\tdet\t_\t_
2\tdog\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\tsees\t_\tVERB\t_\t_\t0\troot\t_\t_
4\tit\t_\tPRON\t_\t_\t3\tobj\t_\t_
5\t.\t_\tPUNCT\t_\t_\t3\tpunct\t_\t_

"""
DRAWN = """# s7  The dog sees it .
   ╭─ The   DET    det
 ╭─┴─ dog   NOUN   nsubj
─┼─── sees  VERB   root
 ├─── it    PRON   obj
 ╰─── .     PUNCT  punct

"""
RECORD = b'{"id":"s7","src":"The dog sees it .","words":["The","dog","sees","it","."],"spans":[[0,3],[4,7],[8,12],[13,15],[16,17]],"heads":[1,2,-1,2,2],"deprels":["det","nsubj","root","obj","punct"],"upos":["DET","NOUN","VERB","PRON","PUNCT"]}\n'  # noqa: E501


def words(*forms):
    rows = (f"{i}\t{f}\t_\tX\t_\t_\t{i - 1}\tdep\t_\t_\n" for i, f in enumerate(forms, 1))
    return ("".join(rows) + "\n").encode()


def drawn(run, *arguments, stdin):
    done = run("view", *arguments, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def test_trees_records_and_transitions_are_drawn_alike(run):
    assert drawn(run, stdin=TREE) == drawn(run, stdin=RECORD) == DRAWN
    moves = b"The dog LEFT-ARC:det sees LEFT-ARC:nsubj it RIGHT-ARC:obj . RIGHT-ARC:punct\n"
    assert drawn(run, stdin=moves).splitlines()[2] == " ╭─┴─ dog   _  nsubj"


def test_the_manual_shows_what_is_drawn(run):
    example = re.search(r"# 1 .*?(?=\n\n)", inspect.getdoc(view), re.DOTALL)[0]
    moves = "The dog LEFT-ARC:det sees LEFT-ARC:nsubj the cat LEFT-ARC:det RIGHT-ARC:obj"
    text = drawn(run, stdin=f"{moves} . RIGHT-ARC:punct\n".encode()).rstrip("\n")
    without_tags = re.compile(" +(?:_|[A-Z]{3,}) +")
    assert without_tags.sub(" ", example) == without_tags.sub(" ", text)


def test_ascii_lines_and_the_width_asked_for(run):
    text = drawn(run, "--ascii", "--width", "14", stdin=TREE)
    assert text.isascii() is False  # the ellipsis of what was cut is text, not a line
    assert text.splitlines()[:4] == ["# s7  The dog…", "   ,- The   D…", " ,-'- dog   N…",
                                     "-+--- sees  V…"]  # fmt: skip


def test_what_has_no_tree_is_said(run):
    empty = b"# sent_id = 1\n# text = \n# synmt_status = empty\n1\t_\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
    failed = (
        b'{"id":"2","src":"a b","status":"failed","reason":"too long"}\n{"src":"c"}\n{"src":""}\n'
    )
    assert drawn(run, stdin=empty) == "# 1  (empty)\n\n"
    said = "# 2  (failed: too long)  a b\n\n# 2  (no tree)  c\n\n# 3  (empty)\n\n"
    assert drawn(run, stdin=failed) == said
    assert drawn(run, "--from", "transitions", stdin=b"\n") == "# 1  (empty)\n\n"


def test_wide_characters_and_marks_stand_in_columns(run):
    rows = drawn(run, stdin=words("犬", "e\u0301x", "abcd")).splitlines()[1:4]
    assert [row[row.index("─ ") :] for row in rows] == [
        "─ 犬    X  dep",
        "─ e\u0301x    X  dep",
        "─ abcd  X  dep",
    ]


def test_what_disturbs_a_terminal_is_escaped_and_great_words_stay_whole(run):
    text = drawn(run, stdin=words("a\x1b[31m\u202e", "w" * 5000, "ok"))
    assert "\x1b" not in text
    assert r"a\x1b[31m\u202e" in text
    assert "w" * 5000 + "  X" in text
    assert "ok" + " " * 40 + "X" in text


def test_a_tree_too_large_is_said_not_to_be_drawn(run):
    text = drawn(run, stdin=words(*"w" * 4000) + TREE)
    assert "\nnot drawn: 4,000 words, more than 1,000 columns\n\n" in text
    assert text.endswith(DRAWN)


def test_ids_count_on_over_files(run, tmp_path):
    (tmp_path / "a").write_bytes(words("a") * 2)
    (tmp_path / "b.jsonl").write_bytes(b'{"src":"c"}\n')
    text = drawn(run, tmp_path / "a", tmp_path / "b.jsonl", stdin=b"")
    assert [line[:3] for line in text.splitlines() if line[:1] == "#"] == ["# 1", "# 2", "# 3"]


@pytest.mark.parametrize(
    ("stdin", "message"),
    [
        (b"Hello world\n", b"<stdin>:1: text has no trees: synmt parse makes them"),
        (TREE + b"1\tx\n\n", b"<stdin>:9: 2 columns, expected 10"),
        (b'{"src":1}\n', b"<stdin>:1: field src: an integer, expected a string"),
        (b"a LEFT-ARC:det\n", b"<stdin>:1: token 2: the arc"),
    ],
)
def test_bad_input_is_named(run, stdin, message):
    done = run("view", stdin=stdin)
    assert done.returncode == 65
    assert message in done.stderr
    assert done.stdout == (DRAWN.encode() if stdin.startswith(TREE) else b"")


def test_nothing_shows_nothing(run):
    assert drawn(run, stdin=b"") == ""


def on_terminal(stdin, **environment):
    """What `synmt view` writes to a terminal of unknown width."""
    try:
        ours, theirs = pty.openpty()
    except OSError:
        pytest.skip("no pseudo-terminals here")
    command = [sys.executable, "-m", "synmt_cli", "view"]
    environment = {**os.environ, **ENVIRONMENT, **environment}
    done = subprocess.run(command, input=stdin, stdout=theirs, env=environment, check=False)
    os.close(theirs)
    with os.fdopen(ours, "rb", buffering=0) as file:
        assert done.returncode == 0
        return file.read(4000).decode().replace("\r\n", "\n")


def test_colours_are_for_terminals_without_no_color():
    environment = {"NO_COLOR": ""}
    assert "\x1b[32mnsubj\x1b[0m" in on_terminal(TREE, **environment)
    assert on_terminal(TREE, NO_COLOR="1") == DRAWN
    assert on_terminal(TREE, TERM="dumb") == DRAWN


@pytest.mark.slow
def test_a_treebank_is_drawn_whole(run, data):
    done = run("view", data / "ud" / "en_ewt-test.conllu.gz")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"\n# ") + 1 == 2077


OTHER = TREE.replace(b"4\tit\t_\tPRON\t_\t_\t3\tobj", b"4\tit\t_\tPRON\t_\t_\t2\tnmod")


def test_pictures_of_all_kinds(run):
    svg = drawn(run, "--format", "svg", stdin=TREE)
    assert svg.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert svg.count("</svg>") == 1
    assert drawn(run, "--format", "svg", stdin=RECORD).count(">nsubj<") == 1
    html = drawn(run, "--format", "html", stdin=TREE + OTHER)
    assert html.count("<figure>") == 2
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    assert "\\depedge{2}{1}{det}" in drawn(run, "--format", "tikz", stdin=TREE)


def test_upright_puts_each_word_below_its_head(run):
    """`sees` stands above its dependents, and these above `The`."""
    picture = drawn(run, "--format", "svg", "--layout", "upright", stdin=TREE)
    height = {
        word: float(re.search(rf'<text [^>]*\by="([\d.]+)"[^>]*>{word}<', picture)[1])
        for word in ("The", "dog", "sees", "it")
    }
    assert height["sees"] < height["dog"] == height["it"] < height["The"]


def test_pictures_of_two_files(run, tmp_path):
    (tmp_path / "other").write_bytes(OTHER)
    marked = drawn(run, "--format", "svg", "--compare", tmp_path / "other", stdin=TREE)
    assert "1 of 5 words differ: 1 by head, 0 by label only" in marked
    both = drawn(run, "--format", "html", "--beside", tmp_path / "other", stdin=TREE)
    assert both.count("<svg") == 2
    tikz = drawn(run, "--format", "tikz", "--compare", tmp_path / "other", stdin=TREE)
    assert "\\depedge[edge below, edge style={dashed" in tikz


def test_segments_whose_trees_are_the_same_can_be_left_out(run, tmp_path):
    failed = b"# text = A dog.\n# synmt_status = failed\n1\t_\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
    (tmp_path / "other").write_bytes(TREE + OTHER + failed + failed)
    given = TREE + TREE + failed + TREE
    compared = ("view", "--format", "html", "--compare", "other")
    done = run(*compared, "--differing", stdin=given, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"synmt view: 2 of 4 segments differ\n")
    assert done.stdout.count(b"<figure>") == 2
    assert b"1 of 5 words differ" in done.stdout
    assert b"the two trees are the same" not in done.stdout
    whole = run(*compared, stdin=given, cwd=tmp_path)
    assert (whole.stdout.count(b"<figure>"), whole.stderr) == (4, b"")
    none = run(
        *compared[:2],
        "svg",
        "--compare",
        "-",
        "--differing",
        "other",
        stdin=TREE + OTHER + 2 * failed,
        cwd=tmp_path,
    )
    assert b"no segments" in none.stdout


def test_a_line_of_two_sentences_is_compared_with_its_record(run, tmp_path):
    two = TREE.replace(b"s7\n", b"4.1\n# synmt_line = 4\n") + OTHER.replace(
        b"s7\n", b"4.2\n# synmt_line = 4\n"
    )
    (tmp_path / "split").write_bytes(two + OTHER)
    (tmp_path / "records").write_bytes(run("featurize", stdin=two + OTHER).stdout)
    for first, second in (("split", "records"), ("records", "split"), ("split", "split")):
        files = ("--format", "html", "--compare", tmp_path / second, tmp_path / first)
        compared = drawn(run, *files, stdin=b"")
        assert compared.count("the two trees are the same") == 2 * compared.count("<figure") == 4
        chosen = drawn(run, "--id", "4", *files, stdin=b"")
        assert chosen.count(">nsubj<") == 4  # in two trees
    tikz = ("--format", "tikz", "--width", "2000", "--beside", tmp_path / "records")
    beside = drawn(run, *tikz, stdin=two + OTHER)
    trees = re.findall(r"\\begin{dependency}.*?\\end{dependency}", beside, re.DOTALL)
    first, again, last, other = trees
    assert first == again != last == other
    assert "\\depedge{7}{6}{det}" in first


def test_nothing_is_a_picture_too(run):
    assert "no segments" in drawn(run, "--format", "svg", stdin=b"")
    assert "There are no segments to draw." in drawn(run, "--format", "html", stdin=b"")


def test_a_shorter_stdin_is_named_as_in_other_commands(run, tmp_path):
    (tmp_path / "two").write_bytes(TREE + TREE)
    done = run("view", "--format", "svg", "--beside", "-", "two", stdin=TREE, cwd=tmp_path)
    assert done.returncode == 65
    assert done.stderr == (
        b"synmt view: <stdin>: ends after 1 segment, but the first file continues\n"
    )


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--beside", "other"], 2, b"draw pictures: name --format svg, html or tikz"),
        (["--format", "svg", "--beside", "-"], 2, b"only one input can be stdin"),
        (["--format", "svg", "--differing"], 2, b"--differing is for --compare"),
        (["--format", "svg", "--ascii"], 2, b"--ascii is for --format text"),
        (["--layout", "arcs"], 2, b"--layout is for --format svg and html"),
        (
            ["--format", "svg", "--compare", "other", "--beside", "other"],
            2,
            b"--compare and --beside exclude each other",
        ),
        (["--format", "svg", "--compare", "no"], 66, b"no: No such file"),
        (["--format", "svg", "--beside", "other"], 65, b"ends after 1 segment"),
        (["--format", "svg", "--id", "z"], 2, b"--id 'z': no segment has this id"),
    ],
)
def test_wrong_wishes_for_pictures(run, tmp_path, arguments, status, message):
    (tmp_path / "other").write_bytes(OTHER)
    done = run("view", *arguments, stdin=TREE + TREE, cwd=tmp_path)
    assert done.returncode == status
    assert message in done.stderr
    assert not (done.stdout and "--id" in arguments)
