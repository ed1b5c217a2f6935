"""`synmt score` as a user runs it."""

import gzip
import json
import subprocess
import sys

import pytest

REFERENCE = ["the cat sat on the mat .", "a dog barks", "it is what it is", "no one came"]
BASELINE = ["the cat on the mat .", "a dog bark", "what is it", "nobody came"]
BETTER = ["the cat sat on the mat .", "a dog barks", "it is what it was", "one came"]


@pytest.fixture
def folder(tmp_path):
    for name, lines in (("ref", REFERENCE), ("base", BASELINE), ("new", BETTER), ("none", [])):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines))
    (tmp_path / "short").write_text("only\none\n")
    return tmp_path


def sacrebleu(folder, *arguments):
    command = [sys.executable, "-m", "sacrebleu", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout


def test_agrees_with_the_program_sacrebleu(run, folder):
    theirs = sacrebleu(folder, "ref", "-i", "new", "-m", "bleu", "chrf", "ter", "-w", "2")
    expected = {one["name"]: one for one in json.loads(theirs)}
    found = json.loads(
        run("score", "ref", "new", "-M", "bleu,chrf,ter", "--format", "json", cwd=folder).stdout
    )["systems"][0]["scores"]
    for name, label in (("bleu", "BLEU"), ("chrf", "chrF2"), ("ter", "TER")):
        assert round(found[name]["score"], 2) == expected[label]["score"]
        assert found[name]["signature"] == expected[label]["signature"]


def test_get_prints_the_bare_figure_of_each_system(run, folder):
    assert run("score", "ref", "ref", "new", "--get", "bleu", cwd=folder).stdout.startswith(
        b"100.00\n"
    )
    from_stdin = run("score", "ref", "--get", "ribes", stdin=b"x\n" * 4, cwd=folder)
    assert from_stdin.stdout == b"0.0000\n"
    assert from_stdin.returncode == 0


def test_a_system_against_itself_is_not_significant(run, folder):
    for options in ([], ["--paired", "ar"], ["--paired", "sign"], ["--p", "koehn"]):
        done = run("score", "ref", "base", "base", "--format", "json", *options, cwd=folder)
        [_, system] = json.loads(done.stdout)["systems"]
        assert all(one["p"] == 1 and one["delta"] == 0 for one in system["paired"].values())


def test_the_seed_decides_the_bytes(run, folder):
    command = ("score", "ref", "base", "new", "--format", "tsv", "--samples", "99")
    once, again, other = (
        run(*command, "--seed", seed, cwd=folder, env={"COLUMNS": columns, "LC_ALL": "C"}).stdout
        for seed, columns in ((1, "20"), (1, "200"), (2, "80"))
    )
    assert once == again != other


def test_buckets_by_source_length(run, folder):
    (folder / "src").write_text("a b c d e f\na b c\na b c d e\n\n")
    options = ("--by", "length:3,5,6,9", "--src", "src", "--format", "json", "-M", "bleu")
    done = run("score", "ref", "base", "new", *options, cwd=folder)
    buckets = json.loads(done.stdout)["buckets"]
    assert [(one["name"], one["n"]) for one in buckets] == [
        ("0-2", 1),
        ("3-4", 1),
        ("5-5", 1),
        ("6-8", 1),
        ("9+", 0),
    ]
    assert buckets[3]["systems"][1]["scores"]["bleu"]["score"] == pytest.approx(100)
    table = run("score", "ref", "base", *options[:4], cwd=folder).stdout
    assert [b"9+", b"0", b"n/a"] in [line.split() for line in table.splitlines()]


def test_fail_under_prints_and_exits_1(run, folder):
    done = run("score", "ref", "new", "--fail-under", "bleu=99.5", cwd=folder)
    assert done.returncode == 1
    assert done.stdout.startswith(b"4 sentences against ref\n")
    assert done.stderr.startswith(b"synmt score: new: bleu ")
    assert run("score", "ref", "ref", "--fail-under", "ter=0.5", cwd=folder).returncode == 0
    assert run("score", "ref", "new", "--fail-under", "ter=0.5", cwd=folder).returncode == 1


def test_compressed_references_and_crlf(run, folder):
    (folder / "ref.gz").write_bytes(gzip.compress("\r\n".join(REFERENCE).encode()))
    plain = run("score", "ref", "new", "--format", "tsv", cwd=folder).stdout
    assert run("score", "ref.gz", "new", "--format", "tsv", cwd=folder).stdout == plain


def test_only_lf_ends_a_line(run, folder):
    hypotheses = "a\u2028b\nc\u0085d\ne\rf\n\x0c\n".encode()
    assert run("score", "ref", "-", stdin=hypotheses, cwd=folder).returncode == 0


def test_further_references(run, folder):
    done = run("score", "base", "new", "--refs", "ref", "--format", "json", cwd=folder)
    document = json.loads(done.stdout)
    assert document["references"] == ["base", "ref"]
    assert "nrefs:2" in document["systems"][0]["scores"]["bleu"]["signature"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["ref", "short"], 65, "short: 2 lines, but 4 in ref"),
        (["ref", "base", "short"], 65, "short: 2 lines, but 4 in ref"),
        (["ref", "none"], 65, "none: 0 lines, but 4 in ref"),
        (["none", "none"], 65, "none: no lines"),
        (["ref"], 65, "<stdin>:2: invalid UTF-8 at byte 3"),
        (["ref", "absent"], 66, "cannot read absent: No such file or directory"),
        (["ref", "new", "--by", "length", "--src", "short"], 65, "short: 2 lines, but 4 in ref"),
        (["ref", "new", "--tokenize", "flores200"], 69, "tokenizer flores200 needs a model"),
        (["ref", "new", "-o", "absent/x"], 73, "cannot create absent/x"),
        (["-", "-"], 2, "only one input can be stdin"),
        (["ref", "new", "-M", "bleu,meteor"], 2, "no metric 'meteor'"),
        (["ref", "new", "--tokenize", "moses"], 2, "no tokenizer 'moses'"),
        (["ref", "new", "--paired", "bs"], 2, "--paired compares"),
        (["ref", "base", "new", "--paired", "ar", "--p", "koehn"], 2, "--paired ar has no"),
        (["ref", "new", "--by", "length"], 2, "--by length needs --src"),
        (["ref", "new", "--by", "depth", "--src", "ref"], 2, "--by takes length"),
        (["ref", "new", "--by", "length:9,3", "--src", "ref"], 2, "edges must be positive"),
        (["ref", "new", "--src", "ref"], 2, "--src is for --by"),
        (["ref", "new", "--fail-under", "bleu=x"], 2, "--fail-under takes"),
        (["ref", "new", "--seed", "-1"], 2, "Invalid value for '--seed'"),
        ([], 2, "Missing argument 'REF'"),
    ],
)
def test_mistakes_give_one_line_and_nothing_on_stdout(run, folder, arguments, status, message):
    done = run("score", *arguments, stdin=b"ok\nab\xff\n", cwd=folder, env={"HOME": str(folder)})
    assert (done.returncode, done.stdout) == (status, b"")
    assert done.stderr.decode().startswith(f"synmt score: {message}")
    assert done.stderr.count(b"\n") == 1


def test_empty_lines_are_scored_and_empty_references_named(run, folder):
    (folder / "gap").write_text("the cat sat on the mat .\n\n \nno one came\n")
    done = run("score", "gap", "-", "-M", "bleu,chrf,chrf+,ter,ribes", stdin=b"\n" * 4, cwd=folder)
    assert done.returncode == 0
    assert done.stderr == (
        b"synmt score: warning: gap:2: empty reference\n"
        b"synmt score: warning: gap:3: empty reference\n"
    )
    assert b"nan" not in done.stdout.lower()
    assert done.stdout.splitlines()[3].split() == b"- 0.00 0.00 0.00 100.00 0.0000".split()


def test_lines_that_are_long_for_ter_are_named(run, folder):
    lines = ["ok", "a " * 301, "b " * 300, *["a " * 400] * 6]
    (folder / "long").write_text("".join(f"{line}\n" for line in lines))
    done = run("score", "long", "long", "-M", "ter", cwd=folder)
    assert done.returncode == 0
    first, *_, last = done.stderr.splitlines()
    assert first == (
        b"synmt score: warning: long:2: 301 words: TER may take minutes for more than 300"
    )
    assert last == b"synmt score: warning: long: 7 lines of more than 300 words in all"
    assert done.stderr.count(b"\n") == 6
    assert run("score", "long", "long", "-M", "ribes", cwd=folder).stderr == b""


def test_tokenized_text_is_warned_of_in_our_own_words(run, folder):
    (folder / "many").write_text("a b c d .\n" * 100)
    done = run("score", "many", "many", cwd=folder)
    expected = b"synmt score: warning: many: 100 lines end in ' .': is the text tokenized?\n"
    assert done.stderr == expected
    assert run("score", "many", "many", "-q", cwd=folder).stderr == b""
    assert run("score", "many", "many", "--tokenize", "none", cwd=folder).stderr == b""


RECORDED = {"": 26.6, "_pascal": 27.4, "_lisa": 27.2, "_tagemb": 26.8, "_multitask": 26.7}


def test_recorded_scores_of_the_pascal_paper(run, data):
    """recorded-bleu.txt to 0.1: the paper's own outputs, newstest2016 German-English."""
    outputs = data / "nc11-de-en-outputs"
    names = [f"transformer{suffix}.en" for suffix in RECORDED]
    done = run("score", "ref.en", *names, "--get", "bleu", cwd=outputs)
    found = [float(line) for line in done.stdout.split()]
    assert found == pytest.approx(list(RECORDED.values()), abs=0.1)


@pytest.mark.parametrize(
    ("p", "least", "greatest"),
    [("centred", 1 / 1001, 0.002), ("koehn", 0, 0), ("sacrebleu", 1 / 1001, 1 / 1001)],
)
def test_pascal_beats_the_transformer(run, data, p, least, greatest):
    outputs = data / "nc11-de-en-outputs"
    systems = ("transformer.en", "transformer_pascal.en")
    options = ("-M", "bleu", "--p", p, "--format", "json")
    if p == "centred":
        options += ("--by", "length:20,30,40,50", "--src", "src.tok.de")
    document = json.loads(run("score", "ref.en", *systems, *options, cwd=outputs).stdout)
    one = document["systems"][1]["paired"]["bleu"]
    assert document["n"] == 2999
    assert least <= one["p"] <= greatest
    assert one["delta"] == pytest.approx(27.38 - 26.61, abs=0.02)
    assert 0 < one["ci95"][0] < one["delta"] < one["ci95"][1]
    if p == "centred":
        counts = [bucket["n"] for bucket in document["buckets"]]
        deltas = [bucket["systems"][1]["scores"]["bleu"]["delta"] for bucket in document["buckets"]]
        assert counts == [1618, 765, 396, 144, 76]
        assert [round(delta, 2) for delta in deltas] == [0.19, 1.2, 0.68, 0.98, 1.5]


def test_sign_test_over_the_scores_of_several_sets(run, folder):
    for name, systems in (("one", ("base", "new", "ref")), ("two", ("new", "base", "new"))):
        options = ("-M", "bleu,ter", "--format", "json", "--paired", "none", "-o", f"{name}.json")
        run("score", "ref", *systems, *options, cwd=folder)
    command = ("score", "--sign-over", "one.json", "two.json")
    found = json.loads(run(*command, "--format", "json", cwd=folder).stdout)
    assert (found["unit"], found["baseline"]) == ("set x metric", "base")
    counts = [(one["wins"], one["losses"], one["ties"], one["p"]) for one in found["systems"]]
    assert counts == [(2, 2, 0, 1.0), (2, 0, 2, 0.5)]
    table = run(*command, cwd=folder).stdout
    assert [b"ref", b"2", b"0", b"2", b"0.5000"] in [line.split() for line in table.splitlines()]
    tsv = run(*command, "-M", "bleu", "--format", "tsv", cwd=folder).stdout
    assert tsv.endswith(b"ref\tall\tall\t\t\t\t1\t0\t1\t1.0\n")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["ref"], 65, "ref: not from `synmt score --format json`: invalid JSON"),
        (["list"], 65, "list: not from `synmt score --format json`: no field systems"),
        (["nan"], 65, "nan: not from `synmt score --format json`: the score of 'bleu'"),
        (["absent"], 66, "cannot read absent"),
        (["-", "-"], 2, "only one input can be stdin"),
        (["ref", "--get", "bleu"], 2, "--sign-over reads scores from reports"),
        (["ref", "--paired", "bs"], 2, "--sign-over reads scores from reports"),
    ],
)
def test_sign_test_of_what_is_no_report(run, folder, arguments, status, message):
    (folder / "list").write_text("[1]")
    (folder / "nan").write_text('{"systems":[{"name":"a","scores":{"bleu":{"score":true}}}]}')
    done = run("score", "--sign-over", *arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (status, b"")
    assert message in done.stderr.decode()
