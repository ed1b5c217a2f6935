"""`synmt score` as a user runs it."""

import gzip
import json
import random
import shutil
import subprocess
import sys
import unicodedata

import numpy as np
import pytest
from sacrebleu import BLEU, CHRF
from scipy import stats

from synmt_cli.formats.reports.score import files as score_files
from synmt_cli.formats.reports.table import as_json, as_text

REFERENCE = ["the cat sat on the mat .", "a dog barks", "it is what it is", "no one came"]
BASELINE = ["the cat on the mat .", "a dog bark", "what is it", "nobody came"]
BETTER = ["the cat sat on the mat .", "a dog barks", "it is what it was", "one came"]


@pytest.fixture
def folder(tmp_path):
    for name, lines in (("ref", REFERENCE), ("base", BASELINE), ("new", BETTER), ("none", [])):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines))
    (tmp_path / "short").write_text("only\none\n")
    (tmp_path / "scores").write_text("new\t1\nnew\t2\nbase\t3\nnew\t3\n")
    (tmp_path / "nan").write_text("new\t1\nnew\tnan\n")
    (tmp_path / "many").write_text("new\t1\n" * 5)
    (tmp_path / "both").write_text("a\t1\n" * 4 + "new\t2\n" * 4)
    (tmp_path / "large").write_text("a\t1e101\n")
    (tmp_path / "tiny").write_text("a\t1e-7\na\t-2e-7\n")
    shutil.copy(tmp_path / "new", tmp_path / "odd\tname")
    (tmp_path / "gap").write_text("a\n\tx\na\nb\n")
    (tmp_path / "missing").write_text("new\t1\nnew\tNone\n")
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


@pytest.mark.parametrize(
    ("option", "metric", "theirs"),
    [
        ("--lowercase", "bleu", BLEU(lowercase=True)),
        ("--lowercase", "chrf", CHRF(lowercase=True)),
        ("--bleu-order 2", "bleu", BLEU(max_ngram_order=2)),
        ("--chrf-order 3", "chrf", CHRF(char_order=3)),
    ],
)
def test_settings_of_metrics_are_those_of_sacrebleu(run, folder, option, metric, theirs):
    lines = ["The Cat sat on a mat .", "A dog barks", "It is what", "No ONE came"]
    score, stdin = ("score", "ref", "--get", metric), "\n".join(lines).encode()
    found = run(*score, *option.split(), stdin=stdin, cwd=folder).stdout
    assert found.decode() == f"{theirs.corpus_score(lines, [REFERENCE]).score:.2f}\n"
    assert found != run(*score, stdin=stdin, cwd=folder).stdout


def test_get_prints_the_bare_figure_of_each_system(run, folder):
    assert run("score", "ref", "ref", "new", "--get", "bleu", cwd=folder).stdout.startswith(
        b"100.00\n"
    )
    from_stdin = run("score", "ref", "--get", "ribes", stdin=b"x\n" * 4, cwd=folder)
    assert from_stdin.stdout == b"0.0000\n"
    assert from_stdin.returncode == 0


def test_a_system_against_itself_is_not_significant(run, folder):
    for options in ([], ["--paired", "ar"], ["--paired", "sign"], ["--p", "koehn"]):
        done = run("score", "ref", "base", "it=base", "--format", "json", *options, cwd=folder)
        [_, system] = json.loads(done.stdout)["systems"]
        found = [(one["p"], one["delta"]) for one in system["paired"].values()]
        assert found == [(1, 0), (1, 0)]


def test_the_definition_of_approximate_randomization_has_the_name_of_the_help(run, folder):
    of = ("score", "ref", "base", "new", "--paired", "ar", "--samples", "99")
    named, default = (run(*of, *p, cwd=folder) for p in (("--p", "centred"), ()))
    assert (named.returncode, named.stdout) == (0, default.stdout)


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
        ("5", 1),
        ("6-8", 1),
        ("9+", 0),
    ]
    assert buckets[3]["systems"][1]["scores"]["bleu"]["score"] == pytest.approx(100)
    table = run("score", "ref", "base", *options[:4], cwd=folder).stdout
    assert b"length:3,5,6,9: no sentences in 9+" in table.splitlines()
    assert not [line for line in table.splitlines() if line.startswith(b"9+")]


def test_buckets_by_characters(run, folder):
    lines = ["一个男人在街上", "", " 狗 跑 ", "你好。"]
    (folder / "src").write_text("".join(line + "\n" for line in lines))
    options = ("--by", "chars:3,4", "--src", "src", "--format", "json", "-M", "chrf")
    done = run("score", "ref", "base", *options, cwd=folder)
    buckets = json.loads(done.stdout)["buckets"]
    n_of = {"0-2": 1, "3": 2, "4+": 1}
    assert {one["name"]: one["n"] for one in buckets} == n_of
    done = run(
        "score", "ref", "base", "--by", "chars", "--src", "src", "--format", "tsv", cwd=folder
    )
    assert b"\n0-19\t4\t" in done.stdout


def test_a_tokenizer_that_takes_clauses_for_words_is_said(run, folder):
    chinese = ["一个男人在街上走路。", "两只狗在雪地里奔跑。", "你好。", "没有人来，真可惜。"]
    (folder / "zh").write_text("".join(line + "\n" for line in chinese))
    warning = (
        b"synmt score: warning: zh has Han characters without spaces, whose clauses tokenizer 13a "
        b"takes for words; use --tokenize zh\n"
    )
    for options, n in (
        ((), 1),
        (("-M", "ribes"), 1),
        (("-M", "chrf,ter"), 0),
        (("--tokenize", "zh"), 0),
        (("--tokenize", "char"), 0),
        (("--refs", "ref"), 1),
    ):
        done = run("score", "zh", "zh", *options, cwd=folder)
        assert (done.returncode, done.stderr.count(warning)) == (0, n)
        assert done.stderr.count(b"without spaces") == n
    assert b"without spaces" not in run("score", "ref", "new", cwd=folder).stderr


def test_fail_under_prints_and_exits_1(run, folder):
    done = run("score", "ref", "new", "--fail-under", "bleu=99.5", cwd=folder)
    assert done.returncode == 1
    assert done.stdout.startswith(b"4 sentences against ref\n")
    assert done.stderr.startswith(b"synmt score: new: bleu ")
    assert run("score", "ref", "ref", "--fail-under", "ter=0.5", cwd=folder).returncode == 0
    assert run("score", "ref", "new", "--fail-under", "ter=0.5", cwd=folder).returncode == 1


def test_a_score_that_is_under_a_limit_reads_so(run, folder):
    (score,) = json.loads(
        run("score", "ref", "new", "-M", "chrf", "--format", "json", cwd=folder).stdout
    )["systems"]
    value = score["scores"]["chrf"]["score"]
    for limit, shown in ((value + 1, f"{value:.2f}"), (value + 1e-9, repr(value))):
        done = run("score", "ref", "new", "--fail-under", f"chrf={limit:.15g}", cwd=folder)
        expected = f"synmt score: new: chrf {shown} is under {limit:.15g}\n"
        assert (done.returncode, done.stderr.decode()) == (1, expected)


def test_a_tokenizer_is_also_for_rare_words(run, folder):
    rare = ("-M", "chrf", "--by", "rare:ref", "--tokenize", "none")
    assert run("score", "ref", "new", *rare, cwd=folder).returncode == 0


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


SEEDS = ["ref", "a=new", "a=base", "b=ref", "b=new"]
UNEQUAL = ["ref", "a=new", "a=base", "b=new"]
OUTSIDE = ["ref", "new", "base", "--segment-scores", "x=scores"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["ref", "short"], 65, "short: 2 lines, but ref has 4"),
        (["ref", "base", "short"], 65, "short: 2 lines, but ref has 4"),
        (["ref", "none"], 65, "none: 0 lines, but ref has 4"),
        (["none", "none"], 65, "none: no lines"),
        (["ref"], 65, "<stdin>:2: invalid UTF-8 at byte 3"),
        (["ref", "absent"], 66, "cannot read absent: No such file or directory"),
        (["ref", "new", "--by", "length", "--src", "short"], 65, "short: 2 lines, but ref has 4"),
        (["ref", "new", "--tokenize", "flores200"], 69, "tokenizer flores200 needs a model"),
        (["ref", "new", "-o", "absent/x"], 73, "cannot create absent/x"),
        (["-", "-"], 2, "only one input can be stdin"),
        (
            ["ref", "new", "-M", "bleu,meteor"],
            2,
            "no metric 'meteor'; there are bleu, chrf, chrf+, chrf++, ter, ribes;"
            " --segment-scores METRIC=FILE takes the scores of others",
        ),
        (["ref", "new", "-M", ""], 2, "no metric ''"),
        (["ref", "new", "-M", "bleu, chrf,BLEU"], 2, "no metric 'BLEU'; did you mean bleu?"),
        (["ref", "new", "--tokenize", "moses"], 2, "no tokenizer 'moses'"),
        (["ref", "new", "--paired", "bs"], 2, "--paired compares"),
        (["ref", "new", "--p", "koehn"], 2, "--p compares systems"),
        (["ref", "a=base", "a=new", "--matched"], 2, "--matched compares systems"),
        (["ref", "base", "new", "--paired", "ar", "--p", "koehn"], 2, "--paired ar has no"),
        (["ref", "new", "--by", "length"], 2, "--by length needs --src"),
        (["ref", "new", "--by", "chars"], 2, "--by chars needs --src"),
        (["ref", "new", "--by", "depth", "--src", "ref"], 2, "--by depth needs --src-trees"),
        (["ref", "new", "--by", "height"], 2, "--by takes length"),
        (["ref", "new", "--by", "deprel:"], 2, "--by takes length"),
        (["ref", "new", "--by", "nonprojective:3"], 2, "--by takes length"),
        (["ref", "new", "--ref-trees", "ref"], 2, "--src-trees and --ref-trees are for --by"),
        (["ref", "new", "--by", "depth", "--src-trees", "ref"], 65, "ref:1: expected trees"),
        (["ref", "new", "--by", "labels:short"], 65, "short: 2 segments, but the test set has 4"),
        (["ref", "new", "--by", "labels:gap"], 65, "gap:2: no label"),
        (["ref", "new", "--get", "ter", "--format", "json"], 2, "--get prints bare figures"),
        (["ref", "new", "ref", "--get", "ter", "--p", "koehn"], 2, "--get prints bare figures"),
        (["ref", "new", "--all-pairs"], 2, "--all-pairs needs two systems"),
        (["ref", "new", "--smooth-value", "1"], 2, "--smooth exp has no --smooth-value"),
        (
            ["ref", "new", "-M", "bleu", "--format", "segments", "--by", "length"],
            2,
            "--format segments has no buckets",
        ),
        (
            ["ref", "new", "--by", "depth", "--src-trees", "ref", "--ref-trees", "ref"],
            2,
            "give --src-trees or --ref-trees, not both",
        ),
        (
            ["ref", "a=base", "a=new", "b=new", "b=base", "--samples", "1"],
            2,
            "--samples: seeds need two or more",
        ),
        (
            [*UNEQUAL, "--paired", "ar"],
            2,
            "--paired ar needs as many outputs of each system (2 of 'a', 1 of 'b')",
        ),
        (
            [*UNEQUAL, "--matched"],
            2,
            "--matched needs as many outputs of each system (2 of 'a', 1 of 'b')",
        ),
        ([*UNEQUAL, "--paired", "sign"], 2, "--paired sign cannot use seeds"),
        (
            ["ref", "new", "b=base", "a=new", "a=base"],
            2,
            "'new' and 'b' have one output each, but others several: one of two systems to compare",
        ),
        ([*UNEQUAL, "ref", "--all-pairs"], 2, "'b' and 'ref' have one output each, but others"),
        (["ref", "base", "new", "base"], 2, "'base' is given as two systems: name them, NAME=FILE"),
        (["ref", "new", "--smooth", "floor", "--smooth-value", "inf"], 2, "--smooth-value is a"),
        (["ref", "new", "base", "--seed", str(2**63)], 2, "--seed 9223372036854775808: at most"),
        (
            [*("ref", "a=new", "a=base", "b=new", "b=ref"), "-M", "chrf", "--format", "segments"],
            2,
            "two outputs are named",
        ),
        (["--segment-scores", "m=large"], 65, "large:1: the score '1e101' of 'a' is not within"),
        (["ref", "a=new", "a=new"], 2, "system 'a' has the same file as two seeds"),
        (["ref", "a=new", "a=./new"], 2, "system 'a' has the same file as two seeds"),
        (["", "new"], 66, "cannot read ''"),
        (["", "new", "-M", "x", "--segment-scores", "x=scores"], 66, "cannot read ''"),
        (["ref", "new", "--get", ""], 2, "no metric ''"),
        ([*SEEDS, "--p", "centred"], 2, "--p centred cannot use seeds"),
        (
            ["ref", "new", "base", "--paired", "sign", "--p", "centred"],
            2,
            "--paired sign has no --p centred",
        ),
        (["--segment-scores", "m=tiny"], 65, "tiny: no score is above 2e-07, too little for tests"),
        (
            ["ref", "odd\tname", "-M", "chrf", "--format", "segments"],
            2,
            r"'odd\tname' is no name for TSV: name it, NAME=FILE",
        ),
        (["ref", "a=new", "a"], 2, "'a' is the name of a system and a file without one"),
        (["ref", "=new"], 2, "a system is FILE or NAME=FILE"),
        (["ref", "a=new", "a=base", "b=ref", "b=short"], 65, "short: 2 lines, but ref has 4"),
        ([*SEEDS, "--paired", "sign"], 2, "--paired sign cannot use seeds"),
        ([*SEEDS, "--p", "koehn"], 2, "--p koehn cannot use seeds"),
        (["ref", "new", "base", "--matched"], 2, "--matched is for the bootstrap of several seeds"),
        ([*SEEDS, "--matched", "--paired", "ar"], 2, "--matched is for the bootstrap of several"),
        ([*SEEDS, "--matched", "--get", "bleu"], 2, "--matched needs a test"),
        ([*SEEDS, "--matched", "--format", "segments", "-M", "bleu"], 2, "--matched needs a test"),
        ([*SEEDS, "--matched", "--p", "koehn"], 2, "--p koehn cannot use seeds"),
        (["ref", "new", "--format", "segments"], 2, "--format segments writes one metric"),
        (["ref", "new", "--segment-scores", "x"], 2, "--segment-scores takes METRIC=FILE"),
        (["ref", "new", "--segment-scores", "ter=x"], 2, "--segment-scores: ter is a metric"),
        (["ref", "new", "--lower-is-better", "x"], 2, "--lower-is-better 'x' is not in"),
        ([*OUTSIDE, "-M", "bleu"], 2, "--segment-scores 'x' is not used"),
        (OUTSIDE, 65, "scores:4: 3 scores of 'new', but 4 segments"),
        (["ref", "base", "--segment-scores", "x=scores"], 65, "scores:1: no system 'new'"),
        (["ref", "new", "--segment-scores", "x=nan"], 65, "nan:2: the score 'nan' of 'new' is not"),
        (["ref", "new", "--segment-scores", "x=many"], 65, "many:5: more scores of 'new' than"),
        (["ref", "new", "--by", "length:9,3", "--src", "ref"], 2, "edges must be positive"),
        (["ref", "new", "--src", "ref"], 2, "--src is for --by"),
        (["ref", "new", "--fail-under", "bleu=x"], 2, "--fail-under takes"),
        (
            ["ref", "new", "--fail-under", "bleu=9", "--fail-under", "bleu=1"],
            2,
            "--fail-under names 'bleu' twice",
        ),
        (["ref", "new", "--correct", "none"], 2, "--correct compares systems"),
        (["ref", "new", "-M", "ter", "--get", "bleu"], 2, "--get names the metric"),
        (
            ["ref", "new", "-M", "bleu", "--format", "segments", "--fail-under", "bleu=9"],
            2,
            "--format segments has no --fail-under",
        ),
        (
            ["ref", "new", "base", "-M", "bleu", "--format", "segments", "--samples", "5"],
            2,
            "--format segments makes no test",
        ),
        (["ref", "new", "base", "--paired", "none", "--p", "koehn"], 2, "--p needs a test"),
        (["ref", "new", "base", "--paired", "none", "--seed", "3"], 2, "--seed needs a test"),
        (["ref", "new", "base", "--paired", "none", "--correct", "holm"], 2, "--correct needs a t"),
        (["ref", "new", "base", "--get", "bleu", "--seed", "3"], 2, "--get prints bare figures"),
        (
            ["ref", "new", "--get", "bleu", "--paired", "none", "--seed", "3"],
            2,
            "--get prints bare figures",
        ),
        (
            ["ref", "new", "-M", "bleu", "--format", "segments", "--seed", "5"],
            2,
            "--format segments makes no test",
        ),
        (["ref", "new", "base", "--paired", "none", "--samples", "9"], 2, "--samples needs a test"),
        (["ref", "new", "-M", "chrf", "--tokenize", "zh"], 2, "--tokenize is for bleu, ribes, not"),
        (["ref", "new", "-M", "ter", "--lowercase"], 2, "--lowercase is for bleu, chrf, chrf+, "),
        (["ref", "new", "--get", "ter", "--smooth", "floor"], 2, "--smooth is for bleu, not ter"),
        (["ref", "new", "-M", "chrf", "--bleu-order", "2"], 2, "--bleu-order is for bleu, not chr"),
        (["ref", "new", "-M", "bleu", "--chrf-order", "2"], 2, "--chrf-order is for chrf, chrf+"),
        (["ref", "new", "--seed", "-1"], 2, "Invalid value for '--seed'"),
        ([], 2, "REF is missing: it is optional only if all metrics come from --segment-scores"),
        (["--segment-scores", "x=scores", "-M", "bleu,x"], 2, "bleu needs REF and the outputs"),
        (["--segment-scores", "x=scores"], 65, "scores:3: 1 score of 'base', but 3 segments"),
        (["--segment-scores", "x=none"], 65, "none: no scores"),
        (
            ["ref", "a=new", "base", "--segment-scores", "x=both"],
            65,
            "both:5: scores of 'new', which have come as 'a'",
        ),
        (
            ["--segment-scores", "x=missing"],
            65,
            "missing:2: no score of 'new': every segment needs one",
        ),
        (["--segment-scores", "x=nan", "--by", "rare:ref"], 2, "--by rare needs --src, or REF"),
        (["--segment-scores", "x=-", "--segment-scores", "y=-"], 2, "only one input can be stdin"),
    ],
)
def test_mistakes_give_one_line_and_nothing_on_stdout(run, folder, arguments, status, message):
    env = {"HOME": str(folder)} if "flores200" in arguments else None
    done = run("score", *arguments, stdin=b"ok\nab\xff\n", cwd=folder, env=env)
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
    piped = run("score", "-", "gap", stdin=b"a\n\nb\nc\n", cwd=folder)
    assert piped.stderr == b"synmt score: warning: <stdin>:2: empty reference\n"
    assert b"nan" not in done.stdout.lower()
    assert done.stdout.splitlines()[3].split() == b"- 0.00 0.00 0.00 100.00 0.0000".split()


def test_names_that_are_not_utf_8_are_escaped(run, folder, tmp_path):
    for name in ("ref", "b\udcff", "c"):
        (tmp_path / name).write_bytes(b"a dog sleeps\n" * 3)
    options = ("--format", "json", "-o", "\udcfe.json", "ref", "b\udcff", "d\udcfd=c")
    done = run("score", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "\udcfe.json").read_bytes())
    assert [one["name"] for one in report["systems"]] == [r"b\udcff", r"d\udcfd"]
    assert report["settings"]["command"][5] == r"\udcfe.json"


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


def test_letters_in_another_unicode_form_are_warned_of(run, folder):
    lines = [f"muži číslo {n}\n" for n in range(20)]
    others = [*lines[:-1], "číslo\n"]
    for form in ("NFC", "NFD"):
        for name, text in (("", lines), ("-2", others)):
            path = folder / f"{form.lower()}{name}"
            path.write_text(unicodedata.normalize(form, "".join(text)))
    (folder / "plain").write_text("men\n" * 20)
    done = run("score", "nfc", "nfd", "plain", "nfc-2", cwd=folder)
    assert done.stderr.decode() == (
        "synmt score: warning: nfd has letters with accents in another Unicode form (NFC, NFD) "
        "than nfc: they count as different letters\n"
    )
    assert b"warning: nfc has letters" in run("score", "nfd", "nfc", cwd=folder).stderr
    assert run("score", "nfd", "nfd-2", cwd=folder).stderr == b""


def test_tokenized_text_is_warned_of_in_our_own_words(run, folder):
    (folder / "ref").write_text("a b c e .\n" * 100)
    (folder / "many").write_text("a b c d .\n" * 100)
    done = run("score", "ref", "many", cwd=folder)
    expected = b"synmt score: warning: many: 100 lines end in ' .': is the text tokenized?\n"
    assert done.stderr == expected
    assert run("score", "ref", "many", "-q", cwd=folder).stderr == b""
    assert run("score", "ref", "many", "--tokenize", "none", cwd=folder).stderr == b""


def test_texts_that_are_the_same_are_warned_of(run, folder):
    """Two files of one seed, for example, would not show how far apart seeds are."""
    lines = [f"The dog sleeps {n} hours.\n" for n in range(20)]
    for name, text in (("ref", lines), ("a.1", [*lines[:-1], "No.\n"]), ("b", ["No.\n"] * 20)):
        (folder / name).write_text("".join(text))
    for copy, of in (("copy", "ref"), ("a.2", "a.1"), ("a.3", "a.1")):
        (folder / copy).write_bytes((folder / of).read_bytes())
    every = ("a=a.1", "a=a.2", "a=a.3", "b", "copy", "c=copy", "ref")
    done = run("score", "ref", *every, cwd=folder)
    assert done.returncode == 0
    *said, of_seeds = done.stderr.decode().splitlines()
    assert "assumed to vary over seeds" in of_seeds
    assert said == [
        "synmt score: warning: a.1 and a.2 are the same text",
        "synmt score: warning: a.1 and a.3 are the same text",
        "synmt score: warning: ref and copy are the same text",
        "synmt score: warning: copy is scored twice",
        "synmt score: warning: ref is scored against itself",
    ]
    # Alone, the reference shows what a metric gives at most.
    assert run("score", "ref", "ref", cwd=folder).stderr == b""
    for name in ("ref", "copy"):  # with fewer lines it may be by chance
        (folder / name).write_text("".join(lines[:19]))
    assert run("score", "ref", "copy", cwd=folder).stderr == b""


RECORDED = {"": 26.6, "_pascal": 27.4, "_lisa": 27.2, "_tagemb": 26.8, "_multitask": 26.7}


def test_recorded_scores_of_the_pascal_paper(run, data):
    """The paper's outputs for newstest2016 German-English score as in recorded-bleu.txt, to 0.1."""
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
    for name, systems in (
        ("one", ("base", "new", "ref")),
        ("two", ("base=new", "new=base", "ref=new")),
    ):
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


def test_few_samples_are_warned_of(run, folder):
    for systems in (["new"], ["base", "new"]):
        done = run("score", "ref", *systems, "-M", "bleu", "--samples", 1, cwd=folder)
        rough = "synmt score: warning: an interval of 1 sample is rough: take the default of"
        assert rough in done.stderr.decode()
        assert b", 1 sample" in done.stdout
        assert b"1 samples" not in done.stdout
    done = run("score", "ref", "new", "-M", "bleu", "--samples", 100, cwd=folder)
    assert b"rough" not in done.stderr


def test_reports_may_name_systems_in_another_order(run, folder):
    options = ("-M", "bleu", "--format", "json", "--paired", "none", "-o")
    for name, systems in (("one", ("base", "new")), ("two", ("new", "base"))):
        run("score", "ref", *systems, *options, f"{name}.json", cwd=folder)
    twice = run("score", "--sign-over", "one.json", "two.json", "--format", "json", cwd=folder)
    alone = run("score", "--sign-over", "one.json", "--format", "json", cwd=folder)
    (pair,) = json.loads(alone.stdout)["systems"][0]["pairs"]
    pairs = json.loads(twice.stdout)["systems"][0]["pairs"]
    assert pairs == [pair, pair | {"set": "two.json"}]
    assert twice.stderr == b""


def test_reports_that_name_other_systems_are_matched_by_order_with_a_warning(run, folder):
    options = ("-M", "bleu", "--format", "json", "--paired", "none", "-o")
    for name, systems in (("one", ("base", "new")), ("two", ("base.2=base", "new.2=new"))):
        run("score", "ref", *systems, *options, f"{name}.json", cwd=folder)
    done = run("score", "--sign-over", "one.json", "two.json", cwd=folder)
    assert done.returncode == 0
    assert done.stderr.decode() == (
        "synmt score: warning: two.json names other systems ('base.2', 'new.2') than one.json"
        " ('base', 'new'): they are matched by their order\n"
    )


def test_scores_of_several_sets_have_the_digits_of_their_metric(run, folder):
    options = ("-M", "bleu,ribes", "--format", "json", "--paired", "none", "-o", "one.json")
    run("score", "ref", "base", "new", *options, cwd=folder)
    systems = json.loads((folder / "one.json").read_bytes())["systems"]
    base, new = (one["scores"]["ribes"]["score"] for one in systems)
    table = run("score", "--sign-over", "one.json", cwd=folder).stdout.decode()
    assert f"{base:.4f}  {new:.4f} ({new - base:+.4f})" in table


def test_buckets_that_are_asked_for_twice_are_made_and_counted_once(run, folder):
    command = ("score", "ref", "base", "new", "--by", "length:2", "--src", "ref")
    assert run(*command, "--by", "length:2", cwd=folder).stdout == run(*command, cwd=folder).stdout


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["ref"], 65, "ref: not from `synmt score --format json`: invalid JSON"),
        (["list"], 65, "list: not from `synmt score --format json`: no field systems"),
        (["nan"], 65, "nan: not from `synmt score --format json`: the score of 'bleu'"),
        (["absent"], 66, "cannot read absent"),
        ([], 2, "--sign-over needs reports"),
        (["-", "-"], 2, "only one input can be stdin"),
        (["list", "ref", "./list"], 2, "a report is named twice"),
        (["ref", "--get", "bleu"], 2, "--sign-over reads scores from reports"),
        (["ref", "--paired", "bs"], 2, "--sign-over reads scores from reports"),
        (["ref", "--format", "segments"], 2, "--sign-over reads scores from reports"),
    ],
)
def test_sign_test_of_what_is_no_report(run, folder, arguments, status, message):
    (folder / "list").write_text("[1]")
    (folder / "nan").write_text('{"systems":[{"name":"a","scores":{"bleu":{"score":true}}}]}')
    done = run("score", "--sign-over", *arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (status, b"")
    assert message in done.stderr.decode()


WORDS = ["the", "a", "of", "Dr.", "dog", "cat,", "tree:", "it's", "well-known", "3,000", "sees"]
WRONG = {"t": 0.3, "t_tagemb": 0.36, "t_pascal": 0.27, "t_lisa": 0.33}  # shares of words


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """200 references of 4 to 24 words, and outputs with some words exchanged or left out."""
    folder, dice = tmp_path_factory.mktemp("outputs"), random.Random(1)
    lines = [dice.choices(WORDS, k=dice.randint(4, 24)) for _ in range(200)]
    for name, wrong in {"ref": 0, **WRONG}.items():
        kept = [[w if dice.random() >= wrong else dice.choice(["", *WORDS]) for w in line]
                for line in lines]  # fmt: skip
        (folder / f"{name}.en").write_text("".join(" ".join(line) + "!\n" for line in kept))
    return folder


OUTPUTS = ("ref.en", "a=t.en", "a=t_tagemb.en", "b=t_pascal.en", "b=t_lisa.en")


def test_the_same_name_again_is_another_seed(run, outputs):
    document = json.loads(run("score", *OUTPUTS, "--format", "json", cwd=outputs).stdout)
    single = json.loads(
        run("score", "ref.en", "t.en", "t_tagemb.en", "--format", "json", cwd=outputs).stdout
    )
    a, b = document["systems"]
    assert (a["name"], a["files"]) == ("a", ["t.en", "t_tagemb.en"])
    scores = [one["scores"]["bleu"]["score"] for one in single["systems"]]
    assert a["scores"]["bleu"]["seeds"] == scores
    assert a["scores"]["bleu"]["score"] == pytest.approx(np.mean(scores))
    assert a["scores"]["bleu"]["sd"] == pytest.approx(np.std(scores, ddof=1))
    assert a["scores"]["bleu"]["ci95"][0] < a["scores"]["bleu"]["score"]
    one = b["paired"]["bleu"]
    assert one["definition"] == "seeds"
    assert one["delta"] == b["scores"]["bleu"]["score"] - a["scores"]["bleu"]["score"]
    assert one["ci95"][0] < 0 < one["ci95"][1]
    assert one["p"] > 0.05  # with two runs each, seeds leave the interval too wide
    shown = run("score", *OUTPUTS, cwd=outputs)
    assert b"two seeds often leave intervals too wide to decide anything" in shown.stderr
    table = shown.stdout.decode()
    assert "200 sentences against ref.en, means of 2 seeds" in table
    assert "quasi F, Clark 1973" in table
    stratified = run(
        "score", *OUTPUTS, "--paired", "ar", "--samples", "99", cwd=outputs
    ).stdout.decode()
    assert "p is too small where they differ" in stratified
    assert "d +- t sqrt V; V = variance of d over seeds" in stratified
    matched = json.loads(
        run("score", *OUTPUTS, "--matched", "--format", "json", cwd=outputs).stdout
    )["systems"][1]["paired"]["bleu"]
    assert (matched["definition"], matched["delta"]) == ("matched", one["delta"])
    assert matched["ci95"] != one["ci95"]


def test_systems_may_have_different_numbers_of_seeds(run, outputs):
    """d is the difference of means; a system's interval does not depend on the other's seeds."""
    more = ("ref.en", "a=t.en", "a=t_tagemb.en", "a=t_lisa.en", "b=t_pascal.en", "b=t_lisa.en")
    options = ("-M", "chrf", "--format", "json")
    document = json.loads(run("score", *more, *options, cwd=outputs).stdout)
    a, b = (one["scores"]["chrf"] for one in document["systems"])
    assert [len(one["seeds"]) for one in (a, b)] == [3, 2]
    one = document["systems"][1]["paired"]["chrf"]
    assert one["delta"] == b["score"] - a["score"] == np.mean(b["seeds"]) - np.mean(a["seeds"])
    assert one["ci95"][0] < one["delta"] < one["ci95"][1]
    assert (one["definition"], "equal-variance" in document["formula"]) == ("seeds", False)
    fewer = json.loads(run("score", *OUTPUTS, *options, cwd=outputs).stdout)
    assert fewer["systems"][1]["scores"]["chrf"]["ci95"] == b["ci95"]
    table = run("score", *more, cwd=outputs).stdout.decode()
    assert "200 sentences against ref.en, means of 2 to 3 seeds" in table


def test_a_single_output_against_seeds_says_what_it_assumes(run, outputs):
    single = ("ref.en", "a=t.en", "a=t_tagemb.en", "a=t_lisa.en", "published=t_pascal.en")
    options = ("-M", "chrf", "--format", "json", "-o", "r.json")
    done = run("score", *single, *options, cwd=outputs)
    assumed = b"published: one output, assumed to vary over seeds as much as the other system\n"
    assert assumed in done.stderr
    document = json.loads((outputs / "r.json").read_bytes())
    a, published = document["systems"]
    one = published["paired"]["chrf"]
    assert one["definition"] == "equal-variance"
    assert "assumed to vary over seeds as much as the other" in document["formula"]
    assert published["scores"]["chrf"]["ci95"] is None
    assert published["scores"]["chrf"]["sd"] is None
    seeds = a["scores"]["chrf"]["seeds"]
    least = stats.t.ppf(0.975, 1e9) * np.std(seeds, ddof=1) * np.sqrt(1 + 1 / 3)
    assert one["ci95"][1] - one["delta"] > least  # never less than what seeds alone allow
    report = score_files.read(str(outputs / "r.json"))
    assert as_json(report) == (outputs / "r.json").read_bytes()
    shown = run("score", *single, "-M", "chrf", cwd=outputs).stdout.decode()
    assert run("score", *AGAIN, cwd=outputs).stdout.decode() == shown
    assert "p, equal-variance: P(|t| >= |d| / sqrt V)" in shown
    both = ("ref.en", "published=t.en", "a=t_tagemb.en", "a=t_pascal.en", "b=t_lisa.en", "b=t.en")
    every = run("score", *both, "--all-pairs", "-M", "chrf", cwd=outputs).stdout.decode()
    assert "p, equal-variance, seeds: P(|t| >= |d| / sqrt V)" in every
    # A definition that all comparisons share is named once; else each has its own.
    assert not any(line.endswith(("definition", "equal-variance")) for line in shown.splitlines())
    last = [line.split()[-1] for line in every.splitlines() if line]
    assert (last.count("definition"), last.count("equal-variance")) == (1, 2)
    row = next(line.split() for line in shown.splitlines() if line.startswith("published"))
    assert len(row) == 2
    drawn = run("plot", "scores", "r.json", cwd=outputs)
    assert (drawn.returncode, drawn.stderr) == (0, b"")


def test_p_is_corrected_for_the_number_of_comparisons(run, outputs):
    command = ("score", "ref.en", "t.en", "t_pascal.en", "t_lisa.en")
    document = json.loads(run(*command, "--format", "json", cwd=outputs).stdout)
    results = [of for one in document["systems"][1:] for of in one["paired"].values()]
    assert document["settings"]["n_comparisons"] == len(results) == 4
    ordered = sorted(results, key=lambda one: one["p"])
    assert ordered[0]["p_corrected"] == min(1, 4 * ordered[0]["p"])
    assert all(one["p_corrected"] >= one["p"] for one in results)
    table = run(*command, cwd=outputs).stdout.decode()
    assert "p (Holm): corrected for 4 comparisons of the whole test set (Holm 1979)" in table
    by = "--by", "length:20", "--src", "ref.en"
    divided = run(*command, *by, "--format", "json", cwd=outputs)
    by_length = json.loads(divided.stdout)
    assert [one["paired"] for one in by_length["systems"]] == [
        one["paired"] for one in document["systems"]
    ]
    parts = [of for b in by_length["buckets"] for s in b["systems"] for of in s["scores"].values()]
    least = min((of["paired"] for of in parts if of.get("paired")), key=lambda of: of["p"])
    assert by_length["settings"]["n_bucket_comparisons"] == 8
    assert least["p_corrected"] == min(1, 8 * least["p"])
    raw = run(*command, "--correct", "none", cwd=outputs).stdout.decode()
    assert "of 4 comparisons some may have stars by chance" in raw
    assert "p (Holm)" not in raw
    alone = run(*command[:-1], "-M", "bleu", cwd=outputs).stdout.decode()
    assert "Holm" not in alone
    single = json.loads(
        run(*command[:-1], "-M", "bleu", *by, "--format", "json", cwd=outputs).stdout
    )
    paired = single["systems"][1]["paired"]["bleu"]
    assert paired["p_corrected"] == paired["p"]  # a family of one, next to that of buckets


@pytest.mark.long
def test_more_processes_print_the_same_bytes(run, outputs):
    """Also with several references, where sacreBLEU counts BLEU and chrF."""
    every = ("-M", "bleu,chrf,chrf+,ter,ribes", "--format", "json")
    command = ("score", "ref.en", "t.en", "t_pascal.en", "--refs", "t_lisa.en", *every)
    alone, spread = (run(*command, "-j", n, cwd=outputs) for n in ("1", "2"))
    documents = [json.loads(done.stdout) for done in (alone, spread)]
    for document in documents:
        document["settings"].pop("command")
    assert documents[0] == documents[1]
    assert alone.stderr == spread.stderr


def test_all_pairs_and_clusters(run, outputs):
    command = ("score", "ref.en", "t.en", "t_pascal.en", "ref.en", "--all-pairs", "-M", "bleu,ter")
    done = run(*command, "--format", "json", cwd=outputs)
    document = json.loads(done.stdout)
    names = [(one["baseline"], one["system"]) for one in document["pairs"][:3]]
    assert names == [("t.en", "t_pascal.en"), ("t.en", "ref.en"), ("t_pascal.en", "ref.en")]
    assert document["clusters"]["bleu"][0] == document["clusters"]["ter"][0] == ["ref.en"]
    assert document["systems"][2]["paired"]["bleu"]["delta"] == document["pairs"][1]["delta"]
    table = run(*command, cwd=outputs).stdout.decode()
    assert "Clusters by BLEU" in table
    assert "\neach system of a cluster is better than all below it, by the test\n" in table
    assert "delta = system - against: " in table
    by_length = run(*command, "--by", "length:10", "--src", "ref.en", cwd=outputs).stdout.decode()
    assert "delta = system - against, in buckets system - t.en: " in by_length
    assert run(*command, "--format", "tsv", cwd=outputs).stdout.count(b"\tpairs\t") == 6


def test_the_sign_test_prints_wins_and_never_praises_the_loser(run, folder):
    """Thirty segments won by far, seventy lost by a little."""
    rows = [("a b c d e f g h", "a b c d e f g h", "x y z")] * 30
    rows += [("a b c d e f g h", "a b c d e f g x", "a b c d e f g h")] * 70
    for name, lines in zip(("r", "sb", "sa"), zip(*rows, strict=True), strict=True):
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    command = ("score", "r", "sa", "sb", "-M", "bleu", "--paired", "sign")
    document = json.loads(run(*command, "--format", "json", cwd=folder).stdout)
    one = document["systems"][1]["paired"]["bleu"]
    assert (one["wins"], one["losses"], one["ties"], one["n"]) == (30, 70, 0, 100)
    assert one["p"] == pytest.approx(stats.binomtest(30, 100).pvalue)
    assert one["delta"] > 10
    assert one["contradicts_delta"]
    table = run(*command, cwd=folder).stdout.decode()
    rows = map(str.split, table.splitlines())
    *_, row = (row for row in rows if row[:2] == ["sb", "BLEU"])
    assert [*map(int, row[6:])] == [30, 70, 0]
    assert "\np, binomial: " in table
    assert "^*" not in table


def test_our_segment_scores_come_back_as_a_metric_from_outside(run, outputs):
    written = run("score", *OUTPUTS, "-M", "chrf", "--format", "segments", cwd=outputs).stdout
    lines = [line.split("\t") for line in written.decode().splitlines()]
    assert [name for name, _ in lines[::200]] == ["t.en", "t_tagemb.en", "t_pascal.en", "t_lisa.en"]
    (outputs / "mine.seg.score").write_bytes(written)
    objects = ({"system": name, "score": -float(value)} for name, value in lines)
    (outputs / "mine.jsonl").write_text("".join(json.dumps(one) + "\n" for one in objects))
    given = ("--segment-scores", "up=mine.seg.score", "--segment-scores", "down=mine.jsonl")
    options = (
        "--lower-is-better",
        "down",
        "-M",
        "up,down",
        "--format",
        "json",
        "--by",
        "labels:by",
    )
    (outputs / "by").write_text("x\ny\n" * 100)
    document = json.loads(run("score", *OUTPUTS, *given, *options, cwd=outputs).stdout)
    scores = document["systems"][1]["scores"]
    expected = np.mean([float(value) for _, value in lines[400:]])
    assert scores["up"]["score"] == pytest.approx(expected)
    up, down = document["systems"][1]["paired"].values()
    assert (up["p"], up["delta"]) == (pytest.approx(down["p"]), pytest.approx(-down["delta"]))
    x, y = document["buckets"]
    assert (x["name"], x["n"], y["n"]) == ("x", 100, 100)
    both = [one["systems"][1]["scores"]["up"]["score"] for one in (x, y)]
    assert np.mean(both) == pytest.approx(scores["up"]["score"])
    assert x["systems"][1]["scores"]["up"]["paired"]["p_corrected"] is not None
    files = ("ref.en", *(one.partition("=")[2] for one in OUTPUTS[1:]))
    named, alone = (
        json.loads(run("score", *texts, *given, *options, cwd=outputs).stdout)
        for texts in (files, ())
    )
    assert (alone["references"], alone["buckets"]) == ([], named["buckets"])
    assert alone["systems"] == named["systems"]
    bare = run("score", *OUTPUTS, *given[:2], "--get", "up", cwd=outputs).stdout.split()
    assert float(bare[1]) == pytest.approx(expected, abs=0.0001)


def test_the_mean_of_segment_scores_has_the_interval_of_the_t_test(run, outputs):
    """SciPy's paired t test on the same scores: the bootstrap of a mean agrees with it."""
    scores = np.random.default_rng(2).normal([[0.7], [0.712]], 0.1, size=(2, 200))
    rows = "".join(
        f"{name}\t{one!r}\n"
        for name, of in zip(("t.en", "t_lisa.en"), scores.tolist(), strict=True)
        for one in of
    )
    (outputs / "comet").write_text(rows)
    command = ("score", "ref.en", "t.en", "t_lisa.en", "-M", "comet", "--segment-scores")
    done = run(*command, "comet=comet", "--samples", "4000", "--format", "json", cwd=outputs)
    one = json.loads(done.stdout)["systems"][1]["paired"]["comet"]
    expected = stats.ttest_rel(scores[1], scores[0])
    assert one["p"] == pytest.approx(expected.pvalue, abs=0.015)
    assert one["ci95"] == pytest.approx([*expected.confidence_interval()], abs=0.002)


def test_buckets_of_trees_words_and_labels(run, folder):
    heads = {"n": [0], "p": [2, 0, 2], "x": [3, 4, 0, 3], "d": [0, 1, 2, 3]}
    blocks = []
    for name in ("n", "p", "x", "d"):
        words = [
            f"{i}\tw\t_\t_\t_\t_\t{head}\t{'obl:arg' if i == 1 and head else 'root'}\t_\t_"
            for i, head in enumerate(heads[name], 1)
        ]
        blocks.append("\n".join([f"# sent_id = {name}", *words]) + "\n\n")
    (folder / "trees").write_text("".join(blocks))
    (folder / "train").write_text("a dog barks it is what\n" * 5)
    specs = ("depth:1,2", "distance:1,2", "nonprojective", "deprel:obl", "rare:train", "length:3")
    by = [text for spec in specs for text in ("--by", spec)]
    done = run("score", "ref", "new", *by, "--src-trees", "trees", "--format", "json", cwd=folder)
    buckets = json.loads(done.stdout)["buckets"]
    found = {spec: [] for spec in specs}
    for one in buckets:
        found[one["by"]].append((one["name"], one["n"]))
    assert found == {
        "depth:1,2": [("0", 1), ("1", 1), ("2+", 2)],
        "distance:1,2": [("0", 1), ("1", 2), ("2+", 1)],
        "nonprojective": [("nonprojective", 1), ("projective", 3)],
        "deprel:obl": [("with obl", 2), ("without obl", 2)],
        "rare:train": [("0", 2), ("1", 0), ("2", 0), ("3+", 2)],
        "length:3": [("0-2", 1), ("3+", 3)],
    }


@pytest.mark.parametrize("form", ["text", "conllu"])
def test_rare_words_are_those_of_the_tokenizer_in_any_case(run, folder, form):
    (folder / "src").write_text("The cat.\nthe dog, cat\nA mouse.\nemu (\n")
    train = 'A cat (the "dog").\n'
    if form == "conllu":
        words = ["A", "cat", "(", "the", '"', "dog", '"', ")", "."]
        rows = [f"{i}\t{w}\t_\tX\t_\t_\t{i - 1}\tdep\t_\t_\n" for i, w in enumerate(words, 1)]
        train = f"# text = {train}{''.join(rows)}\n"
    (folder / "train").write_text(train * 5)
    by = ("--by", "rare:train", "--src", "src", "--format", "json")
    for tokenize, expected in (("13a", [1, 3, 0, 0]), ("none", [0, 1, 3, 0])):
        done = run("score", "ref", "new", *by, "--tokenize", tokenize, cwd=folder)
        buckets = json.loads(done.stdout)["buckets"]
        assert [(one["name"], one["n"]) for one in buckets] == list(
            zip(["0", "1", "2", "3+"], expected, strict=True)
        )


@pytest.mark.parametrize("spec", ["nonprojective", "deprel:nsubj"])
def test_a_bucket_that_no_segment_is_in_is_named(run, folder, spec):
    (folder / "trees").write_text("1\tw\t_\tX\t_\t_\t0\troot\t_\t_\n\n" * 4)
    by = ("--by", spec, "--src-trees", "trees")
    done = run("score", "ref", "new", *by, "--format", "json", cwd=folder)
    assert sorted(one["n"] for one in json.loads(done.stdout)["buckets"]) == [0, 4]
    table = run("score", "ref", "new", *by, cwd=folder).stdout.decode()
    name = {"nonprojective": "nonprojective", "deprel:nsubj": "with nsubj"}[spec]
    assert f"{spec}: no sentences in {name}\n" in table


def test_segments_without_a_tree_are_as_long_as_their_text(run, folder):
    text = "a b c d e"
    failed = f"# synmt_status = failed\n# text = {text}\n1\t_\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
    (folder / "trees").write_text(failed * 4)
    (folder / "src").write_text(f"{text}\n" * 4)
    by = ("--by", "length:3", "--format", "json")
    for source in (("--src-trees", "trees"), ("--src", "src")):
        done = run("score", "ref", "new", *by, *source, cwd=folder)
        found = [(one["name"], one["n"]) for one in json.loads(done.stdout)["buckets"]]
        assert found == [("0-2", 0), ("3+", 4)]


def test_a_line_that_filter_marked_keeps_its_tree(run, folder):
    """As in records, only the placeholder of a failed line has no tree."""
    tree = "1\tw\t_\tX\t_\t_\t2\tobj\t_\t_\n2\tw\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
    status = "# synmt_status = {}\n# synmt_reason = 2 words\n# text = w w\n"
    marked = status.format("skipped") + tree
    failed = status.format("failed") + "1\t_\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
    (folder / "trees").write_text(tree + marked + marked + failed)
    by = ("--by", "depth:1", "--by", "deprel:obj", "--src-trees", "trees", "--format", "json")
    done = run("score", "ref", "new", *by, cwd=folder)
    found = [(one["name"], one["n"]) for one in json.loads(done.stdout)["buckets"]]
    assert found[:3] == [("0", 0), ("1+", 3), ("no tree", 1)]
    assert ("with obj", 3) in found


def test_what_bucket_by_length_and_challenge_label_fits(run, folder):
    (folder / "src").write_text("a b\na\na b c\na b\n")
    labelled = run(
        *("bucket-by-length", "--format", "labelled", "--by", "length:2,3", "src"), cwd=folder
    ).stdout
    (folder / "lengths").write_bytes(labelled)
    trees = "".join(
        f"1\tw\t_\t_\t_\t_\t0\troot\t_\t_\n2\tw\t_\t_\t_\t_\t1\t{label}\t_\t_\n\n"
        for label in ("compound:prt", "obj", "obj", "compound:prt")
    ).encode()
    command = ("challenge", "--phenomenon", "particle", "--min-dist", "0", "--format", "labels")
    labels = run(*command, stdin=trees, cwd=folder).stdout
    assert labels == b"particle\nnone\nnone\nparticle\n"
    (folder / "particles").write_bytes(labels)
    by = ("--by", "labels:lengths", "--by", "labels:particles", "--format", "json")
    buckets = json.loads(run("score", "ref", "new", *by, cwd=folder).stdout)["buckets"]
    found = [(one["name"], one["n"]) for one in buckets]
    assert found == [("0-1", 1), ("2", 2), ("3+", 1), ("none", 2), ("particle", 2)]


@pytest.mark.parametrize("n", [1, 19, 20])
def test_of_few_segments_chance_is_no_difference(run, tmp_path, n):
    for name, word in (("ref", "a"), ("one", "b"), ("two", "c")):
        (tmp_path / name).write_text(f"x y z {word} w\n" * n)
    (tmp_path / "two").write_text("x v v v w\n" * n)
    done = run("score", "ref", "one", "two", "-M", "chrf", "--format", "json", cwd=tmp_path)
    few = f"with fewer than 20 segments, here {n}, the bootstrap calls chance a difference"
    assert (few.encode() in done.stderr) == (n < 20)
    p = json.loads(done.stdout)["systems"][1]["paired"]["chrf"]["p"]
    assert p == 1 if n == 1 else p < 0.01  # every sample has the same difference


@pytest.mark.parametrize(
    ("outputs", "seeds"),
    [
        (["gps.1.de", "gps.2.de", "gps.3.de", "base.1.de"], "gps.1.de, gps.2.de, gps.3.de"),
        (["base.de", "runs/gps-9/out", "runs/gps-10/out"], "runs/gps-9/out, runs/gps-10/out"),
        (["beam.4.de", "beam.8.de"], ""),
        (["gps.1.de", "base.2.de", "v2", "v3"], ""),
        (["gps=gps.1.de", "gps=gps.2.de", "base=base.1.de", "base=base.2.de"], ""),
    ],
)
def test_files_that_are_named_as_seeds_but_compared_as_systems(run, tmp_path, outputs, seeds):
    (tmp_path / "ref").write_text("a b c\n" * 30)
    for i, output in enumerate(outputs):
        file = tmp_path / output.split("=")[-1]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"a b x{i}\n" * 30)
    done = run("score", "ref", *outputs, "-M", "chrf", cwd=tmp_path)
    hint = f"{seeds}: compared as {seeds.count(',') + 1} systems; if they are seeds of one, give"
    assert done.returncode == 0
    assert (hint in done.stderr.decode()) == bool(seeds)
    assert done.stderr.decode().count("if they are seeds") == bool(seeds)


@pytest.mark.parametrize("paired", [(), ("--paired", "ar")])
def test_a_bucket_of_fewer_than_20_segments_is_not_tested(run, tmp_path, paired):
    for name, word in (("ref", "a"), ("one", "b"), ("two", "a"), ("by", "")):
        (tmp_path / name).write_text(f"x y z {word} w\n" * 39)
    (tmp_path / "by").write_text("19\n" * 19 + "20\n" * 20)
    command = ("score", "ref", "one", "two", "-M", "bleu", "--by", "labels:by", "--samples", 9)
    done = run(*command, *paired, "--format", "json", cwd=tmp_path)
    (small, large) = json.loads(done.stdout)["buckets"]
    assert (small["n"], large["n"]) == (19, 20)
    scores = [one["systems"][1]["scores"]["bleu"] for one in (small, large)]
    assert ["paired" in one for one in scores] == [False, True]
    assert scores[0]["score"] == scores[1]["score"] == pytest.approx(100)


def test_a_bucket_of_all_segments_is_not_tested_again(run, tmp_path):
    """Its comparison is that of the whole set, and would count twice in the correction."""
    for name, word in (("ref", "a"), ("one", "b"), ("two", "a")):
        (tmp_path / name).write_text(f"x y z {word} w\n" * 40)
    (tmp_path / "halves").write_text("1\n2\n" * 20)
    (tmp_path / "same").write_text("0\n" * 40)
    command = ("score", "ref", "one", "two", "-M", "bleu", "--samples", 50, "--by", "labels:halves")
    halves = json.loads(run(*command, "--format", "json", cwd=tmp_path).stdout)
    done = run(*command, "--by", "labels:same", "--format", "json", cwd=tmp_path)
    document = json.loads(done.stdout)
    *two, whole = document["buckets"]
    assert (whole["n"], two) == (40, halves["buckets"])
    better = document["systems"][1]
    score, delta = better["scores"]["bleu"]["score"], better["paired"]["bleu"]["delta"]
    assert whole["systems"][1]["scores"]["bleu"] == {"score": score, "delta": delta}
    assert document["settings"]["n_bucket_comparisons"] == 2
    table = run(*command, "--by", "labels:same", cwd=tmp_path).stdout.decode()
    assert "\na bucket of all sentences is not tested again\n" in table
    assert "not tested" not in run(*command, cwd=tmp_path).stdout.decode()


def test_labels_are_in_the_order_of_their_numbers(run, tmp_path):
    long = "7" * 5000  # more digits than Python turns into a number
    for name in ("ref", "sys"):
        (tmp_path / name).write_text("a\n" * 5)
    (tmp_path / "by").write_text(f"b{long}\nb10\nb9\nb010\nb\n")
    options = ("--by", "labels:by", "--format", "json")
    buckets = json.loads(run("score", "ref", "sys", *options, cwd=tmp_path).stdout)["buckets"]
    assert [one["name"] for one in buckets] == ["b", "b9", "b010", "b10", f"b{long}"]


def test_labels_of_conllu_may_follow_any_comment(run, tmp_path):
    """UDPipe 2 writes its name first."""
    row = "1\ta\ta\tX\t_\t_\t0\troot\t_\t_\n\n"
    for name in ("ref", "sys"):
        (tmp_path / name).write_text("a\n" * 2)
    block = f"# generator = x\n# sent_id = 1\n# synmt_bucket = %s\n{row}"
    (tmp_path / "by").write_text(block % "short" + block % "long")
    options = ("--by", "labels:by", "--format", "json")
    buckets = json.loads(run("score", "ref", "sys", *options, cwd=tmp_path).stdout)["buckets"]
    assert [(one["name"], one["n"]) for one in buckets] == [("long", 1), ("short", 1)]


def test_a_report_is_read_back_whole(run, outputs):
    (outputs / "by").write_text("x\ny\n" * 100)
    options = ("--by", "labels:by", "--format", "json")
    few = ("--samples", "50")
    commands = [
        ("ref.en", "t.en", "t_pascal.en", "t_lisa.en", "--all-pairs", *few),
        (*OUTPUTS, *few),
        ("ref.en", "t.en", "t_lisa.en", "--paired", "sign", *few),
        ("ref.en", "t.en", "t_lisa.en", "--paired", "none"),
        ("ref.en", "t.en", *few),
    ]
    for command in commands:
        written = run("score", *command, *options, "-o", "r.json", cwd=outputs)
        assert written.returncode == 0
        report = score_files.read(str(outputs / "r.json"))
        assert as_json(report) == (outputs / "r.json").read_bytes()
    table = run("score", *commands[-1], *options[:2], "--samples", "50", cwd=outputs).stdout
    assert as_text(report) == table


AGAIN = ("--from-report", "r.json")


def test_a_report_is_printed_again_as_the_scores_were(run, outputs, tmp_path):
    for name in ("ref", *WRONG):  # 44 lines: two buckets that are just large enough for a test
        lines = (outputs / f"{name}.en").read_bytes().splitlines(keepends=True)
        (tmp_path / f"{name}.en").write_bytes(b"".join(lines[:44]))
    (tmp_path / "by").write_text("x\ny\n" * 22)
    for asked in (
        (*OUTPUTS, "-M", "bleu,ter", "--by", "labels:by"),
        ("ref.en", "t.en", "t_pascal.en", "t_lisa.en", "--all-pairs"),
        ("ref.en", "t.en", "t_lisa.en", "--paired", "sign"),
    ):
        asked += ("--seed", "1", *(("--samples", "50") if "sign" not in asked else ()))
        run("score", *asked, "--format", "json", "-o", "r.json", cwd=tmp_path)
        report = (tmp_path / "r.json").read_bytes()
        others = ("tsv", "csv", "latex", "markdown") if "labels:by" in asked else ()
        for form in ("table", *others):
            again = run("score", "--from-report", "r.json", "--format", form, cwd=tmp_path)
            scored = run("score", *asked, "--format", form, cwd=tmp_path)
            assert (again.returncode, again.stdout) == (0, scored.stdout), again.stderr
        piped = run("score", "--from-report", "-", "--format", "json", stdin=report)
        assert piped.stdout == report
    detailed = [run("score", *how, "-v", cwd=tmp_path).stdout for how in (asked, AGAIN)]
    assert detailed[0] == detailed[1]


def test_a_report_answers_without_the_texts(run, folder):
    made = ("ref", "base", "new", "-M", "bleu,ter", "--paired", "none", "--format", "json")
    run("score", *made, "-o", "r.json", cwd=folder)
    figures = run("score", "ref", "base", "new", "--get", "ter", cwd=folder).stdout
    assert run("score", *AGAIN, "--get", "ter", cwd=folder).stdout == figures
    for limit, status in (("ter=100", 0), ("ter=10", 1), ("bleu=1", 0), ("bleu=99", 1)):
        done = run("score", *AGAIN, "--fail-under", limit, "-o", "t.txt", cwd=folder)
        assert (done.returncode, done.stdout) == (status, b"")
        assert b"sentences against ref" in (folder / "t.txt").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([*AGAIN, "ref"], 2, "--from-report scores nothing: only --get"),
        ([*AGAIN, "-M", "bleu"], 2, "--from-report scores nothing: only --get"),
        ([*AGAIN, "--seed", "12345"], 2, "--from-report scores nothing: only --get"),
        ([*AGAIN, "--sign-over"], 2, "--sign-over reads scores from reports"),
        ([*AGAIN, "--format", "segments"], 2, "a report does not have them"),
        ([*AGAIN, "--get", "bleu", "--format", "tsv"], 2, "it takes no --format"),
        ([*AGAIN, "--get", "chrf"], 2, "r.json: no metric 'chrf'; there are bleu"),
        ([*AGAIN, "--fail-under", "ter=1"], 2, "r.json: no metric 'ter'; there are bleu"),
        (["--from-report", "ref"], 65, "ref: not from `synmt score --format json`: invalid JSON"),
        (["--from-report", "absent"], 66, "cannot read absent"),
        (["--from-report", ""], 2, "--from-report is empty: leave it out, or give its FILE"),
    ],
)
def test_what_cannot_be_printed_again(run, folder, arguments, status, message):
    run("score", "ref", "new", "-M", "bleu", "--format", "json", "-o", "r.json", cwd=folder)
    done = run("score", *arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (status, b"")
    assert message in done.stderr.decode()
    assert done.stderr.count(b"\n") <= 3


def test_counts_that_scores_are_made_of_are_whole_where_their_mean_is(run, tmp_path):
    for name, text in (("ref", "a b c d\n"), ("four", "a b c d\n"), ("five", "a b c d e\n")):
        (tmp_path / name).write_text(text)

    def words(*outputs):
        table = run("score", "ref", *outputs, "-M", "bleu", "-v", cwd=tmp_path).stdout.decode()
        rows = table.splitlines()
        return rows[rows.index("BLEU: what it is made of") + 3].split()[-2:]

    assert words("four") == ["4", "4"]
    assert words("a=four", "a=five") == ["4.5", "4"]


def test_verbose_shows_what_scores_are_made_of(run, outputs):
    table = run("score", "ref.en", "t.en", "-M", "bleu,ter", "-v", cwd=outputs).stdout.decode()
    theirs = sacrebleu(outputs, "ref.en", "-i", "t.en", "-m", "bleu", "-w", "3")
    verbose = json.loads(theirs)["verbose_score"]  # 60.0/30.9/... (BP = 0.970 ratio = ...
    row = table.splitlines()[table.splitlines().index("BLEU: what it is made of") + 3].split()
    assert "/".join(row[1:5]) == verbose.split()[0]
    assert f"BP = {row[5]}" in verbose
    assert f"hyp_len = {row[6].replace(',', '')} ref_len = {row[7].replace(',', '')}" in verbose
    assert "TER: what it is made of" in table
