"""`synmt challenge` as a user runs it."""

import gzip

import pytest

ROWS = (
    "1\tLook\tlook\tVERB\t_\t_\t0\troot\t_\t_\n"
    "2\tit\tit\tPRON\t_\t{feats}\t1\tobj\t_\t_\n"
    "3\tup\tup\tADP\t_\t_\t1\t{deprel}\t_\t_\n\n"
)
FIRST = "# sent_id = 1\n# text = Look it up\n" + ROWS.format(feats="_", deprel="compound:prt")
SECOND = "# sent_id = 2\n# text = Look it up\n" + ROWS.format(feats="Reflex=Yes", deprel="obl")
EMPTY = "# sent_id = 3\n# synmt_status = empty\n1\t_\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
LATER = FIRST.replace("# sent_id = 1\n", "# sent_id = 4.2\n# synmt_line = 4\n")
SPLIT = SECOND.replace("# sent_id = 2\n", "# sent_id = 4.1\n# synmt_line = 4\n") + LATER
TREES = FIRST + SECOND + EMPTY + SPLIT
LINES = "eins\nzwei\n\nvier\n"
PARTICLE = ("--phenomenon", "particle")
BOTH = (*PARTICLE, "--phenomenon", "preposition-stranding")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "en.conllu").write_text(TREES)
    (tmp_path / "de").write_text(LINES)
    (tmp_path / "short").write_text("eins\n")
    return tmp_path


def with_comment(block, words):
    return block.replace("\n1\t", f"\n# synmt_challenge = {words}\n1\t", 1)


def test_selects_blocks_and_says_which_words(run):
    done = run("challenge", *PARTICLE, stdin=TREES.encode())
    # the sentences of line 4 stay together, the one without a particle too
    expected = with_comment(FIRST, "particle:3:1")
    expected += SPLIT.removesuffix(LATER) + with_comment(LATER, "particle:3:1")
    assert done.stdout.decode() == expected
    assert run("challenge", *PARTICLE, stdin=done.stdout).stdout == done.stdout


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (PARTICLE, b"1\n4\n"),
        (("--phenomenon", "preposition-stranding"), b"2\n4\n"),
        (BOTH, b"1\n2\n4\n"),
        ((*BOTH, "--min-dist", "2"), b""),
        ((*BOTH, "--exactly", "2"), b"1\n2\n4\n"),
        (("--phenomenon", "reflexive"), b""),  # a neighbour of its head
        (("--phenomenon", "reflexive", "--min-dist", "0"), b"2\n4\n"),
        (("--deprel", "obl", "--upos", "VERB"), b""),
        ((*PARTICLE, "--deprel", "^obl$"), b"1\n2\n4\n"),
    ],
)
def test_ids(run, options, expected):
    assert run("challenge", *options, "--format", "ids", stdin=TREES.encode()).stdout == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--form", "^UP$"), b"1\n"),
        (("--form", "^up$"), b""),
        (("--form", "(?i)^up$"), b"1\n"),
        (("--lemma", "^up$"), b"1\n"),
        (("--lemma", "^UP$"), b""),
        (("--lemma", "^up$", "--form", "^up$"), b""),
    ],
)
def test_conditions_on_forms_and_lemmas(run, options, expected):
    upper = FIRST.replace("3\tup\tup", "3\tUP\tup")
    assert run("challenge", *options, "--format", "ids", stdin=upper.encode()).stdout == expected


def test_conditions_that_nothing_meets_are_named(run):
    """Words next to their heads meet them, too, although they are not selected."""
    options = (*BOTH, "--phenomenon", "reflexive", "--lemma", "xyz", "--format", "ids")
    done = run("challenge", *options, stdin=TREES.encode())
    problem = "no word meets this condition, near its head or far from it"
    assert done.stderr.decode() == f"synmt challenge: warning: own: {problem}\n"
    assert done.stdout == b"1\n2\n4\n"


def test_parallel_lines_stand_behind_text_and_ids(run, folder):
    command = ("challenge", *PARTICLE, "en.conllu", "--tgt", "de", "--format")
    done = run(*command, "text", cwd=folder)
    assert done.stdout == b"Look it up\teins\nLook it up Look it up\tvier\n"
    assert run(*command, "ids", cwd=folder).stdout == b"1\teins\n4\tvier\n"


def test_a_file_for_each_phenomenon_and_side(run, folder):
    template = ("--out-template", "{phenomenon}.{name}.gz", "--format", "text")
    done = run("challenge", *BOTH, "en.conllu", "--tgt", "de", *template, cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    written = {p.name: gzip.decompress(p.read_bytes()) for p in folder.glob("*.gz")}
    assert written == {
        "particle.en.conllu.gz": b"Look it up\nLook it up Look it up\n",
        "particle.de.gz": b"eins\nvier\n",
        "preposition-stranding.en.conllu.gz": b"Look it up\nLook it up Look it up\n",
        "preposition-stranding.de.gz": b"zwei\nvier\n",
    }


def test_all_phenomena_in_one_file(run, folder):
    run("challenge", *BOTH, "en.conllu", "--tgt", "de", "--out-template", "{side}", cwd=folder)
    assert (folder / "2").read_text() == "eins\nzwei\nvier\n"
    assert (folder / "1").read_text().count("synmt_challenge") == 4


def test_counts_segments_and_words(run):
    done = run("challenge", *BOTH, "--format", "counts", stdin=TREES.encode())
    assert done.stdout == (
        b"phenomenon\tn\t%\twords\nparticle\t2\t50.0\t2\npreposition-stranding\t2\t50.0\t2\n"
        b"any\t3\t75.0\t4\nall\t4\t100.0\t12\n"  # the empty segment has none
    )
    empty = run("challenge", *PARTICLE, "--format", "counts")
    assert empty.stdout.endswith(b"particle\t0\t0.0\t0\nany\t0\t0.0\t0\nall\t0\t0.0\t0\n")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "say what to look for"),
        (["--phenomenon", "x"], 2, "no phenomenon 'x'; there are particle, reflexive"),
        ([*PARTICLE, "--min-dist", "1", "--exactly", "1"], 2, "give --min-dist or --exactly"),
        (["--feats", "*"], 2, "--feats takes a regular expression"),
        ([*PARTICLE, "--tgt", "de"], 2, "--src and --tgt need --out-template"),
        ([*PARTICLE, "--tgt", "-"], 2, "only one input can be stdin"),
        ([*PARTICLE, "--out-template", "x", "-o", "y"], 2, "--out-template names its files"),
        ([*PARTICLE, "--out-template", "x", "--line-buffered"], 2, "is not for --out-template"),
        ([*BOTH, "--tgt", "de", "--out-template", "x"], 2, "names a file twice"),
        ([*PARTICLE, "en.conllu", "--out-template", "en.conllu"], 2, "would replace an input"),
        ([*PARTICLE, "en.conllu", "-o", "./en.conllu"], 2, "is an input, which would be replaced"),
        ([*PARTICLE, "en.conllu", "--tgt", "short", "--format", "ids"], 65, "short: 1 line, but"),
        (
            ["de", *PARTICLE],
            65,
            "de:1: 1 column, expected 10; text has no trees: synmt parse makes them",
        ),
        (["absent", *PARTICLE], 66, "cannot read absent"),
        ([*PARTICLE, "-o", "absent/x"], 73, "cannot create absent/x"),
    ],
)
def test_wrong_use_is_one_line(run, folder, arguments, status, message):
    done = run("challenge", *arguments, cwd=folder)
    assert done.returncode == status
    assert message in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_no_file_appears_where_the_input_is_bad(run, folder):
    (folder / "bad").write_text(FIRST + "1\tbad\n\n")
    done = run("challenge", *PARTICLE, "bad", "--out-template", "x.{name}", cwd=folder)
    assert done.returncode == 65
    assert {p.name for p in folder.iterdir()} == {"en.conllu", "de", "short", "bad"}


def test_particles_of_a_treebank(run, data):
    """As many segments are found as by a loop over the rows, written for this test."""
    raw = gzip.decompress((data / "ud" / "en_ewt-dev.conllu.gz").read_bytes()).decode()
    expected = 0
    for block in raw.strip().split("\n\n"):
        rows = [line.split("\t") for line in block.split("\n") if line[0] != "#"]
        rows = [row for row in rows if row[0].isdigit() and row[6] != "0"]
        expected += any("prt" in row[7] and abs(int(row[0]) - int(row[6])) > 1 for row in rows)
    path = data / "ud" / "en_ewt-dev.conllu.gz"
    done = run("challenge", path, *PARTICLE, "--format", "ids")
    assert done.stdout.count(b"\n") == expected > 0
