"""`synmt evaltree` as a user runs it."""

import gzip
import json
import re

import pytest

GOLD = (
    "# text = A dog sees it.\n"
    "1\tA\ta\tDET\t_\t_\t2\tdet\t_\t_\n"
    "2\tdog\tdog\tNOUN\t_\t_\t3\tnsubj\t_\t_\n"
    "3\tsees\tsee\tVERB\t_\t_\t0\troot\t_\t_\n"
    "4\tit\tit\tPRON\t_\t_\t3\tobj\t_\t_\n"
    "5\t.\t.\tPUNCT\t_\t_\t3\tpunct\t_\t_\n\n"
)
NOISY = GOLD.replace("\t3\tnsubj", "\t3\tobj").replace("PRON\t_\t_\t3", "PRON\t_\t_\t2")
JOINED = (  # `it.` as one token
    GOLD.replace("\tit\tit\t", "\tit.\tit.\t").split("5\t.")[0] + "\n"
)
SHARED_TASK = {
    "tokens": [2157, 2165, 2168],
    "sentences": [95, 100, 102],
    "words": [2191, 2202, 2205],
    "upos": [2083, 2202, 2205],
    "xpos": [2068, 2202, 2205],
    "ufeats": [2079, 2202, 2205],
    "alltags": [2037, 2202, 2205],
    "lemmas": [2133, 2202, 2205],
    "uas": [1843, 2202, 2205],
    "las": [1743, 2202, 2205],
    "clas": [933, 1266, 1264],
    "mlas": [883, 1266, 1264],
    "blex": [902, 1266, 1264],
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "gold").write_text(GOLD)
    (tmp_path / "noisy").write_text(NOISY)
    (tmp_path / "joined").write_text(JOINED)
    (tmp_path / "empty").touch()
    return tmp_path


def test_table(run, folder):
    done = run("evaltree", "gold", "noisy", cwd=folder)
    assert done.stdout.decode() == (
        "noisy against gold: 1 sentence, 5 words; universal labels\n\n"
        "metric     precision  recall      F1  aligned\n"
        "Tokens        100.00  100.00  100.00\n"
        "Sentences     100.00  100.00  100.00\n"
        "Words         100.00  100.00  100.00\n"
        "UPOS          100.00  100.00  100.00   100.00\n"
        "XPOS          100.00  100.00  100.00   100.00\n"
        "UFeats        100.00  100.00  100.00   100.00\n"
        "AllTags       100.00  100.00  100.00   100.00\n"
        "Lemmas        100.00  100.00  100.00   100.00\n"
        "UAS            80.00   80.00   80.00    80.00\n"
        "LAS            60.00   60.00   60.00    60.00\n"
        "LA             80.00   80.00   80.00    80.00\n"
        "CLAS           33.33   33.33   33.33    33.33\n"
        "MLAS           33.33   33.33   33.33    33.33\n"
        "BLEX           33.33   33.33   33.33    33.33\n"
    )


def test_a_test_over_few_sentences_is_called_doubtful(run, folder):
    compared = ("evaltree", "gold", "gold", "joined")
    few = b"with fewer than 20 sentences, here "
    assert few in run(*compared, cwd=folder).stderr
    assert few not in run(*compared, "--paired", "ar", cwd=folder).stderr


def test_other_tokens(run, folder):
    done = run("evaltree", "gold", "joined", "--format", "tsv", cwd=folder)
    rows = {
        line.split("\t")[1]: line.split("\t")[2:] for line in done.stdout.decode().split("\n")[:-1]
    }
    assert rows["uas"] == ["75.0", "60.0", repr(100 * 2 / 3), "100.0", "3", "5", "4", "3"]
    assert rows["words"][3] == "n/a"


@pytest.mark.parametrize("system", [["-"], []])
def test_stdin_and_compressed_gold(run, folder, system):
    (folder / "gold.gz").write_bytes(gzip.compress(GOLD.encode()))
    done = run("evaltree", "gold.gz", *system, "--get", "las", stdin=NOISY.encode(), cwd=folder)
    assert (done.stdout, done.stderr) == (b"60.00\n", b"")


def test_by_label_and_by_length(run, folder):
    table = run("evaltree", "gold", "noisy", "--by", "deprel", cwd=folder).stdout.decode()
    assert "obj        1       2           0.00        0.00    0.00        0.00\n" in table
    assert "nsubj      1       0            n/a        0.00    0.00      100.00\n" in table
    table = run("evaltree", "gold", "noisy", "--by", "length:3", cwd=folder).stdout.decode()
    assert "0-2             0      0     n/a     n/a    n/a      n/a\n" in table
    assert "3+              1      5   80.00   60.00  80.00    33.33\n" in table


def test_by_distance_and_by_tag(run, folder):
    table = run("evaltree", "gold", "noisy", "--by", "distance:2,3", cwd=folder).stdout.decode()
    assert "distance  gold  system  UAS precision  UAS recall  UAS F1  LAS precision" in table
    assert "1            3       2         100.00       66.67   80.00          50.00" in table
    compared = ("evaltree", "gold", "gold", "noisy", "--paired", "none")
    table = run(*compared, "--by", "distance", cwd=folder).stdout.decode()
    assert "UAS F1 by distance\n" in table
    assert "1             3  100.00  80.00 (-20.00)\n" in table
    table = run(*compared[:1], "gold", "noisy", "--by", "upos", cwd=folder).stdout.decode()
    assert "PRON       1    0.00    0.00  100.00   100.00\n" in table


def test_json(run, folder):
    done = run("evaltree", "gold", "noisy", "--by", "deprel", "--format", "json", cwd=folder)
    found = json.loads(done.stdout)
    assert [found[key] for key in ("gold", "system", "subtypes", "by")] == [
        "gold",
        "noisy",
        False,
        "deprel",
    ]
    assert found["scores"]["uas"]["f1"] == 80
    groups = {group["name"]: group["scores"] for group in found["groups"]}
    assert groups["nsubj"]["las"]["precision"] is None
    assert groups["nsubj"]["uas"]["system"] is None


def test_a_figure_of_nothing_is_none(run, folder):
    (folder / "stop").write_text("1\t!\t!\tPUNCT\t_\t_\t0\tpunct\t_\t_\n\n")
    done = run("evaltree", "stop", "stop", "--get", "clas", cwd=folder)
    assert (done.returncode, done.stdout) == (0, b"n/a\n")


def test_subtypes(run, folder):
    system = GOLD.replace("nsubj", "nsubj:pass").encode()
    for systems, others in (((), b""), (("gold", "-"), b"100.00\n")):
        compared = ("evaltree", "gold", *systems, "--get", "la")
        plain = run(*compared, stdin=system, cwd=folder)
        exact = run(*compared, "--subtypes", stdin=system, cwd=folder)
        assert (plain.stdout, exact.stdout) == (others + b"100.00\n", others + b"80.00\n")


def test_lines_without_a_tree_miss_every_word(run, folder):
    failed = "# text = A dog sees it.\n# synmt_status = failed\n1\t_\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
    done = run("evaltree", "gold", "--format", "tsv", stdin=failed.encode(), cwd=folder)
    assert b"all\tuas\tn/a\t0.0\t0.0\tn/a\t0\t5\t0\t0\n" in done.stdout


@pytest.mark.slow
def test_parsed_real_text_counts_as_in_the_shared_task(run, data, tmp_path):
    """conll18_ud_eval.py counts the same correct, gold and system words.

    The parser cuts the text into sentences anew.
    """
    treebank = gzip.decompress((data / "ud" / "en_ewt-test.conllu.gz").read_bytes())
    blocks = treebank.decode().split("\n\n")[:100]
    (tmp_path / "gold").write_text("\n\n".join(blocks) + "\n\n")
    texts = [block.partition("# text = ")[2].partition("\n")[0] for block in blocks]
    lines = [" ".join(texts[i : i + 7]) + "\n" for i in range(0, len(texts), 7)]
    model = data / "udpipe" / "en_ewt.udpipe"
    parsed = run("parse", "-m", model, "--segment", "split", stdin="".join(lines).encode())
    done = run("evaltree", tmp_path / "gold", "--format", "tsv", stdin=parsed.stdout)
    rows = [line.split("\t") for line in done.stdout.decode().split("\n")[1:-1]]
    assert {row[1]: [int(n) for n in row[6:9]] for row in rows if row[1] != "la"} == SHARED_TASK


def test_several_parsers(run, folder):
    arguments = ["gold", "noisy", "gold", "--paired", "ar", "--samples", "99", "-M", "las"]
    table = run("evaltree", *arguments, "--by", "length:3", cwd=folder).stdout.decode()
    assert "LAS         60.00     100.00^\n" in table
    assert "gold    LAS     +40.00  [+40.00, +40.00]  1.0000   two-sided  99" in table
    assert re.search(r"^3\+ +5 +60.00 +100.00 \(\+40.00\)$", table, re.MULTILINE)
    done = run("evaltree", *arguments, "--format", "json", cwd=folder)
    first, second = json.loads(done.stdout)["systems"]
    assert (first["paired"], second["paired"]["las"]["p"]) == ({}, 1.0)
    done = run("evaltree", "gold", "noisy", "gold", "--get", "las", cwd=folder)
    assert done.stdout == b"60.00\n100.00\n"


def test_the_seed_draws_the_samples(run, folder):
    for name, blocks in (("g", GOLD * 3), ("a", NOISY + GOLD * 2), ("b", GOLD * 2 + NOISY)):
        (folder / name).write_text(blocks * 10)
    compared = ("evaltree", "g", "a", "b", "-M", "las", "--samples", "99", "--format", "json")
    found = [
        json.loads(run(*compared, "--seed", seed, cwd=folder).stdout)["systems"][1]["paired"]["las"]
        for seed in (1, 2, 1)
    ]
    assert [one["seed"] for one in found] == [1, 2, 1]
    assert found[0] == found[2]
    assert found[0]["ci95"] != found[1]["ci95"]


@pytest.mark.parametrize(("n", "said"), [(99, True), (999, False)])
def test_samples_that_are_too_few_for_stars_are_told(run, folder, n, said):
    done = run("evaltree", "gold", "noisy", "gold", "--paired", "ar", "--samples", n, cwd=folder)
    note = b"\np is at least 0.01, p (Holm) 0.02: more --samples can show less\n"
    assert (note in done.stdout) == said


@pytest.mark.parametrize(
    ("arguments", "stdin", "status", "message"),
    [
        (["gold", "noisy", "--get", "las", "--by", "deprel"], "", 2, "--get prints one figure"),
        (["gold", "noisy", "--get", "las", "--format", "json"], "", 2, "--get prints one figure"),
        (["gold", "noisy", "-", "--get", "la", "--samples", "7"], "", 2, "--get prints one figure"),
        (
            ["gold", "noisy", "-", "--paired", "none", "-M", "las"],
            "",
            2,
            "-M, --samples and --seed",
        ),
        (["gold", "noisy", "-", "--paired", "none", "--seed", "1"], "", 2, "-M, --samples and"),
        (["gold", "noisy", "-", "--get", "la", "--seed", "7"], "", 2, "--get prints one figure"),
        (["gold", "noisy", "--paired", "ar"], "", 2, "--paired, -M, --samples and --seed are for"),
        (["gold", "noisy", "--seed", "1"], "", 2, "--paired, -M, --samples and --seed are for two"),
        (["gold", "noisy", "./noisy"], "", 2, "a SYSTEM is named twice"),
        (["gold", "noisy", "gold", "-M", "bleu"], "", 2, "-M: 'bleu' is not one of words"),
        (["gold", "noisy", "gold", "-M", ""], "", 2, "-M: '' is not one of words"),
        (["gold", "noisy", "absent"], "", 66, "cannot read absent"),
        (["gold", "noisy", "-"], GOLD + GOLD, 65, "<stdin>:8: the text goes on, but gold ends"),
        (["gold", "noisy", "--by", "upos:3"], "", 2, "--by takes deprel, upos, distance[:EDGES]"),
        (["gold", "noisy", "--by", "length:3,2"], "", 2, "edges must be positive"),
        (["gold", "noisy", "--get", "bleu"], "", 2, "Invalid value for '--get'"),
        (["-"], "", 2, "only one input can be stdin"),
        (["absent"], "", 66, "cannot read absent"),
        (["gold", "-o", "absent/x"], GOLD, 73, "cannot create absent/x"),
        (["gold"], "", 65, "gold:1: the text goes on, but <stdin> ends before"),
        (["gold"], GOLD + GOLD, 65, "<stdin>:8: the text goes on, but gold ends before"),
        (["gold"], GOLD.replace("\tdog", "\tcat"), 65, "<stdin>:1: the text differs from gold:1: "),
        (["gold"], GOLD.replace("1\tA\t", "1\t"), 65, "<stdin>:2: 9 columns, expected 10"),
        (["empty"], "", 65, "empty: no words to compare"),
    ],
)
def test_mistakes_write_nothing(run, folder, arguments, stdin, status, message):
    done = run("evaltree", *arguments, stdin=stdin.encode(), cwd=folder)
    assert (done.returncode, done.stdout) == (status, b"")
    assert done.stderr.decode().startswith(f"synmt evaltree: {message}")
    assert done.stderr.count(b"\n") == 1


def test_punctuation_is_left_out_when_asked_for(run, folder):
    # noisy has one wrong label and one wrong head; without `.`, which is right: UAS 3/4, LAS 2/4
    command = ("evaltree", "gold", "noisy", "--no-punct")
    scores = {}
    for metric in ("uas", "las", "words", "tokens"):
        scores[metric] = run(*command, "--get", metric, cwd=folder).stdout
    assert scores == {
        "uas": b"75.00\n",
        "las": b"50.00\n",
        "words": b"100.00\n",
        "tokens": b"100.00\n",
    }
    table = run(*command, cwd=folder).stdout.decode()
    title = "noisy against gold: 1 sentence, 4 words; universal labels, without punctuation\n"
    assert table.startswith(title)
    both = run("evaltree", "gold", "noisy", "gold", "--no-punct", cwd=folder).stdout.decode()
    assert both.startswith(title.replace("noisy ", ""))
    for systems in (["noisy"], ["noisy", "gold"]):
        for options, punct in ((["--no-punct"], False), ([], True)):
            arguments = ("evaltree", "gold", *systems, *options, "--format", "json")
            assert json.loads(run(*arguments, cwd=folder).stdout)["punct"] is punct
    (folder / "dots").write_text("1\t.\t_\tPUNCT\t_\t_\t0\troot\t_\t_\n\n")
    done = run("evaltree", "dots", "dots", "--no-punct", cwd=folder)
    assert (done.returncode, done.stderr) == (65, b"synmt evaltree: dots: no words to compare\n")
