"""`synmt filter` as a user runs it."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time

import pytest

SYNMT = [sys.executable, "-m", "synmt_cli"]
EN = "The dog sleeps in the garden.\n\nYes\nThe dog sleeps in the garden.\nA b c d e f g h\n"
DE = "Der Hund schläft im Garten.\n\nJa, das ist richtig so\nDer Hund  schläft im Garten.\nx\n"
PAIR = ("filter", "en", "--tgt", "de")
KEPT = ("-o", "k.en", "--tgt-out", "k.de")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "en").write_text(EN)
    (tmp_path / "de").write_text(DE)
    (tmp_path / "short").write_text("1\n2\n")
    rows = [
        {"src": s, "tgt": t} for s, t in zip(EN.split("\n")[:-1], DE.split("\n")[:-1], strict=True)
    ]
    (tmp_path / "jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def files(folder):
    """The files that are not the fixture's: name -> text."""
    known = {"en", "de", "short", "jsonl"}
    return {p.name: p.read_text() for p in folder.iterdir() if p.name not in known}


def test_text_of_both_sides_with_rejects_and_counts(run, folder):
    done = run(
        *(*PAIR, *KEPT, "--max-len", 7, "--ratio", 4, "--dedup", "pair", "--rejects", "r"),
        cwd=folder,
    )
    assert (done.returncode, done.stdout) == (0, b"")
    first = (EN.split("\n")[0], DE.split("\n")[0])
    assert files(folder) == {
        "k.en": first[0] + "\n",
        "k.de": first[1] + "\n",
        "r": "min-len: 0 source words\t\t\n"
        "ratio: 1 : 5 words\tYes\tJa, das ist richtig so\n"
        "dedup: pair seen before\tThe dog sleeps in the garden.\tDer Hund  schläft im Garten.\n"
        "max-len: 8 source words\tA b c d e f g h\tx\n",
    }
    assert done.stderr.decode() == (
        "synmt filter: kept 1 of 5 pairs; rejected: 1 min-len, 1 max-len, 1 ratio, 1 dedup\n"
    )


def test_lengths_in_words_are_doubted_where_there_are_no_spaces(run, folder):
    """A Chinese line is a word or two; characters are counted whatever the language."""
    (folder / "long").write_text("One two three four five six seven eight nine ten.\n" * 9)
    (folder / "zh").write_text("一二三四五六七八九十一二三四五，一二三四五。\n" * 9)
    pair = ("filter", "long", "--tgt", "zh", *KEPT, "--ratio", 9)
    warning = b"warning: the target has Han characters without spaces, whose clauses count as words"
    done = run(*pair, cwd=folder)
    assert b"kept 0 of 9 pairs; rejected: 9 ratio\n" in done.stderr
    assert done.stderr.count(warning) == 1
    done = run(*pair, "--unit", "chars", "--max-len", 49, cwd=folder)
    assert done.stderr == b"synmt filter: kept 9 of 9 pairs\n"
    turned = ("filter", "zh", "--tgt", "long", *KEPT)
    assert b"the source has Han" in run(*turned, "--max-len", 100, cwd=folder).stderr
    assert b"Han" not in run(*turned, cwd=folder).stderr  # no length is asked for
    assert b"without" not in run(*PAIR, *KEPT, "--ratio", 9, cwd=folder).stderr


def test_nothing_need_be_kept_where_only_the_counts_matter(run, folder):
    nowhere = ("-o", os.devnull, "--tgt-out", os.devnull, "--rejects", os.devnull)
    done = run(*PAIR, *nowhere, "--max-len", 7, cwd=folder)
    assert (done.returncode, done.stdout, files(folder)) == (0, b"", {})
    assert done.stderr == b"synmt filter: kept 3 of 5 pairs; rejected: 1 min-len, 1 max-len\n"
    done = run(*PAIR, "-o", "k", "--tgt-out", "./k", cwd=folder)
    assert done.returncode == 2
    assert b"-o, --tgt-out and --rejects must be different files" in done.stderr


@pytest.mark.parametrize(
    ("outputs", "status"),
    [
        ("-o - --tgt-out -", 2),
        ("-o - --tgt-out /dev/stdout", 2),
        ("-o - --tgt-out mine", 2),
        ("-o mine --tgt-out - --rejects other", 2),
        ("-o - --tgt-out other", 0),
        ("-o - --tgt-out /dev/null", 0),
    ],
)
def test_two_outputs_do_not_mix_in_stdout(shell, folder, outputs, status):
    pair = " ".join(map(str, PAIR))
    done = shell(f"synmt {pair} {outputs} > mine", folder)
    assert done.returncode == status
    assert (b"must be different files" in done.stderr) == (status == 2)


def test_records_come_out_as_they_were(run, folder):
    lines = (folder / "jsonl").read_bytes().split(b"\n")
    done = run("filter", "jsonl", "--max-len", "7", "--rejects", "r", cwd=folder)
    assert done.stdout == b"\n".join([lines[0], lines[2], lines[3], b""])
    filtered = [json.loads(line)["filtered"] for line in files(folder)["r"].split("\n")[:-1]]
    assert filtered == ["min-len: 0 source words", "max-len: 8 source words"]


@pytest.mark.parametrize("nothing", [b"", gzip.compress(b"", mtime=0), b"\xef\xbb\xbf"])
def test_the_first_file_that_is_not_empty_says_what_kind_they_are(run, folder, nothing):
    (folder / "nothing").write_bytes(nothing)
    command = ("filter", "--max-len", 7)
    wanted = run(*command, "jsonl", cwd=folder)
    for files in (("nothing", "jsonl"), ("nothing", "nothing", "jsonl", "nothing")):
        assert run(*command, *files, cwd=folder).stdout == wanted.stdout != b""
    done = run(*command, "nothing", "-", stdin=(folder / "jsonl").read_bytes(), cwd=folder)
    assert done.stdout == wanted.stdout
    assert run(*command, "nothing", "nothing", cwd=folder).stdout == b""


def test_counts_have_a_row_for_each_test(run, folder):
    done = run("filter", "--format=counts", "--ratio", "4", stdin=(folder / "jsonl").read_bytes())
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == (
        b"reason\tn\t%\nkept\t2\t40.0\nstatus\t0\t0.0\nmin-len\t1\t20.0\nratio\t2\t40.0\n"
    )
    assert run("filter", "--format=counts").stdout.startswith(b"reason\tn\t%\nkept\t0\t0.0\n")


@pytest.mark.parametrize(
    ("option", "passes", "rejects", "pair"),
    [
        ("--unit chars --min-len", 7, 8, ("abc def", "abcdefgh")),
        ("--unit chars --max-len", 8, 7, ("abc def", "abcdefgh")),
        ("--unit chars --ratio", 2.5, 2.4, ("ab", "abcde")),
        ("--unit pieces --ratio", 3, 2, ("a", "b")),
        ("--max-word-len", 6, 5, ("a", "a bcdefg")),
        ("--max-tgt-pieces", 3, 2, ("a", "b")),
        ("--lang en --lang-prob", 0.8, 0.95, ("The dog sleeps in the garden.", "x")),
        ("--lang en --lang-sure", 0.99, 0.9, ("Der Hund schläft im Garten.", "x")),
    ],
)
def test_a_limit_is_the_value_of_its_option(run, option, passes, rejects, pair):
    pieces = {"pieces": ["▁a"], "tgt_pieces": ["▁", "b", "c"]}
    record = json.dumps({"src": pair[0], "tgt": pair[1], **pieces}).encode() + b"\n"
    assert run("filter", *option.split(), passes, stdin=record).stdout == record
    done = run("filter", *option.split(), rejects, stdin=record)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"kept 0 of 1 pairs; rejected: 1 " in done.stderr


@pytest.mark.parametrize("jobs", [1, 3])
def test_languages(run, folder, jobs):
    done = run("filter", "--lang", "en-de", "--format=marked", "-j", jobs, "en", "--tgt", "de",
               cwd=folder)  # fmt: skip
    reasons = [line.split("\t")[0] for line in done.stdout.decode().split("\n")[:-1]]
    assert [reason.partition(":")[0] for reason in reasons] == [
        "ok",
        "min-len",
        "lang",
        "ok",
        "lang",
    ]
    assert done.stderr == (b"synmt filter: marked 3 of 5 pairs; rejected: 1 min-len, 2 lang\n")


def test_a_tab_inside_a_line_is_no_new_column(run, tmp_path):
    (tmp_path / "en").write_bytes(b"a\tb\nc\n")
    (tmp_path / "de").write_bytes(b"1\n2\t3 4\t\n")
    command = ("filter", "en", "--tgt", "de", "--max-len", "2", "--rejects", "rejects")
    done = run(*command, "--format=marked", cwd=tmp_path)
    assert done.stdout == b"ok\ta b\t1\nmax-len: 3 target words\tc\t2 3 4 \n"
    assert (tmp_path / "rejects").read_bytes() == b"max-len: 3 target words\tc\t2 3 4 \n"
    kept = run(*command, "--tgt-out", "kept", cwd=tmp_path)
    assert (kept.stdout, (tmp_path / "kept").read_bytes()) == (b"a\tb\n", b"1\n")


def test_annotated_records_are_as_many_and_are_left_out_by_their_status(run, folder):
    done = run("filter", "--format=marked", "--max-len", "7", "jsonl", cwd=folder)
    found = [json.loads(line) for line in done.stdout.split(b"\n")[:-1]]
    assert [one.get("status") for one in found] == [None, None, None, None, "skipped"]
    assert found[4]["reason"] == "max-len: 8 source words"


def test_each_block_of_a_line_is_marked(run):
    """Other tools read single blocks; to synmt they are one segment, which was skipped."""
    blocks = "".join(
        f"# sent_id = 1.{k}\n# text = {form}\n# synmt_line = 1\n"
        f"1\t{form}\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
        for k, form in enumerate("ab", 1)
    ).encode()
    marked = run("filter", "--format=marked", "--max-len", "1", stdin=blocks).stdout
    reason = b"# synmt_status = skipped\n# synmt_reason = max-len: 2 source words\n"
    assert marked.count(reason) == marked.count(b"# sent_id") == 2
    record = json.loads(run("featurize", stdin=marked).stdout)
    assert (record["status"], record["reason"]) == ("skipped", "max-len: 2 source words")


def test_test_sets_of_any_kind_are_excluded(run, folder):
    tree = "# text = Yes\n1\tYes\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
    (folder / "test.conllu").write_text(tree)
    (folder / "test.gz").write_bytes(gzip.compress(b"The  dog sleeps in the garden.\n\n"))
    done = run(
        *(*PAIR, "--format=counts", "--exclude", "test.conllu", "--exclude", "test.gz"), cwd=folder
    )
    assert b"\nkept\t1\t" in done.stdout
    assert b"\nexclude\t3\t" in done.stdout
    done = run("filter", "jsonl", "--format=counts", "--exclude", "jsonl", "--exclude-side", "tgt",
               cwd=folder)  # fmt: skip
    assert b"\nexclude\t4\t" in done.stdout
    bad = (*PAIR, "--format=counts", "--exclude", "bad.conllu")
    (folder / "bad.conllu").write_text(tree.replace("\t0\troot", "\t5\tdep"))
    assert run(*bad, cwd=folder).returncode == 65
    done = run(*bad, "--on-bad-tree", "failed", cwd=folder)  # its text is still excluded
    assert b"\nexclude\t1\t" in done.stdout
    (folder / "steps").write_text("1\tThe first.\tThe\tfirst.\nYes\n")
    excluded = ("--format=counts", "--exclude", "steps")
    done = run(*PAIR, *excluded, cwd=folder)
    assert done.returncode == 65  # it begins like CoNLL-U
    done = run(*PAIR, *excluded, "--exclude-format", "text", cwd=folder)
    assert b"\nexclude\t1\t" in done.stdout


def test_trees_are_filtered_with_their_targets(run, folder):
    row = "{}\tw\t_\tX\t_\t_\t{}\ta\t_\t_\n".format
    trees = "".join(
        "".join(["# text = w w w\n", *map(row, (1, 2, 3), heads), "\n"])
        for heads in ((2, 0, 2), (3, 0, 2))
    )
    (folder / "t.conllu").write_text(trees)
    done = run(
        *("filter", "--projective", "--tgt", "short", "--tgt-out", "k", "--rejects", "r"),
        "t.conllu",
        cwd=folder,
    )
    assert done.stdout.decode() == trees[: len(trees) // 2]
    assert files(folder)["k"] == "1\n"
    assert "# synmt_filtered = projective: an arc over" in files(folder)["r"]
    assert "# synmt_tgt = 2\n" in files(folder)["r"]


def test_scores_of_an_aligner(run, folder):
    (folder / "scores").write_text("0-0 ||| -20.5\n||| 0\n1-1 0-0 ||| -181\n-180\n-inf\n")
    arguments = (
        "--align-scores",
        "scores",
        "--min-align",
        "-180",
        "--format=counts",
        "--min-len",
        "0",
    )
    done = run(*PAIR, *arguments, cwd=folder)
    assert done.stdout == b"reason\tn\t%\nkept\t3\t60.0\nstatus\t0\t0.0\nmin-align\t2\t40.0\n"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ((*PAIR, "--tgt-out", "k"), 65, "de: 5 lines, but the source has 1"),
        (
            ("filter", "en", "--tgt", "short", "--format=counts"),
            65,
            "short: 2 lines, but the source has 5",
        ),
        (("filter", "en", "--tgt", "de"), 2, "--tgt needs --tgt-out"),
        (
            ("filter", "en", "--tgt", "de", "--tgt-out", "en"),
            2,
            "en is an input, which would be replaced",
        ),
        ((*PAIR, "--tgt-out", "k", "-o", "de"), 2, "de is an input, which would be replaced"),
        (
            ("filter", "en", "--max-len", "3", "--rejects", "en"),
            2,
            "en is an input, which would be replaced",
        ),
        (
            ("filter", "en", "--exclude", "de", "-o", "de"),
            2,
            "de is an input, which would be replaced",
        ),
        ((*PAIR, "--format=counts", "--tgt-out", "k"), 2, "--tgt-out is for the kept lines"),
        (("filter", "en", "--tgt-out", "k"), 2, "--tgt-out is for the kept lines"),
        (("filter", "jsonl", "--tgt", "de", "--format=counts"), 2, "--tgt is for text and CoNLL-U"),
        (("filter", "en", "--ratio", "2", "--format=counts"), 2, "--ratio needs both sides"),
        (
            ("filter", "en", "--lang", "en-de", "--format=counts"),
            2,
            "--lang SRC-TGT needs both sides",
        ),
        (("filter", "en", "--dedup", "tgt", "--format=counts"), 2, "--dedup tgt needs both sides"),
        (("filter", "en", "--projective", "--format=counts"), 2, "--projective needs trees"),
        (("filter", "en", "--unit", "pieces", "--format=counts"), 2, "--unit pieces needs records"),
        (
            ("filter", "jsonl", "--unit", "pieces", "--format=counts"),
            65,
            "jsonl:1: field pieces is miss",
        ),
        (("filter", "en", "--lang", "en-xx"), 2, "--lang en-xx: xx is none"),
        (("filter", "en", "--lang-sure", "0.5"), 2, "--lang-prob and --lang-sure need --lang"),
        (("filter", "en", "--exclude-format", "text"), 2, "--exclude-format needs --exclude"),
        (("filter", "en", "--exclude-side", "src"), 2, "--exclude-side needs --exclude"),
        (("filter", "en", "--min-len", "5", "--max-len", "3"), 2, "--min-len 5 is above --max-len"),
        (("filter", "en", "--min-align", "1"), 2, "--align-scores and --min-align go together"),
        (("filter", "en", "--min-align", "nan", "--align-scores", "de"), 2, "--min-align is a"),
        (("filter", "en", "--min-align", "1", "--align-scores", "de"), 65, "de:1: not a number"),
        (("filter", "en", "--format=other"), 2, "Invalid value for '--format': "),
        (("filter", "--exclude", "-"), 2, "only one input can be stdin"),
        (("filter", "en", "-o", "k", "--rejects", "./k"), 2, "-o, --tgt-out and --rejects must"),
        (("filter", "absent"), 66, "cannot read absent"),
        (("filter", "en", "--exclude", "absent"), 66, "cannot read absent"),
        (("filter", "en", "--rejects", "absent/r"), 73, "cannot create absent/r"),
        (("filter", "--from", "jsonl"), 65, "<stdin>:1: invalid JSON"),
        (("filter", "--format=counts"), 65, "<stdin>:2: invalid UTF-8 at byte 2"),
    ],
)
def test_mistakes_are_one_line_and_leave_no_file(run, folder, arguments, status, message):
    one_line = arguments == (*PAIR, "--tgt-out", "k")
    if one_line:  # good lines before the mistake are written
        (folder / "en").write_text("1\n")
    done = run(*arguments, stdin=b"a\nb\xff\n", cwd=folder)
    assert (done.returncode, files(folder)) == (status, {})
    assert done.stdout == (b"1\n" if one_line else b"")
    assert done.stderr.decode().startswith(f"synmt filter: {message}")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    "line", ["[]", "null", "{}", '{"src":1}', '{"src":"","src":""}', '{"src":"a","status":"odd"}']
)
def test_a_broken_record_is_named_and_those_before_it_come_out(run, line):
    good = b'{"src": "a"}\n'
    done = run("filter", stdin=good + line.encode())
    assert (done.returncode, done.stdout) == (65, good)
    assert done.stderr.startswith(b"synmt filter: <stdin>:2: ")


def test_a_full_disk_leaves_no_file(folder):
    (folder / "en").write_text("word\n" * 100_000)
    (folder / "de").write_text("Wort\n" * 100_000)
    command = " ".join([*SYNMT, *PAIR, *KEPT])
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 8; {command}"], cwd=folder, capture_output=True, check=False
    )
    assert (done.returncode, files(folder)) == (74, {})
    assert b"File too large" in done.stderr


def test_records_come_out_before_the_end_of_input(folder):
    command = [*SYNMT, "filter", "--line-buffered", "--lang", "en", "-j", "2"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **pipes) as process:
        process.stdin.write(b"The dog sleeps in the garden.\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"The dog sleeps in the garden.\n"
        process.stdin.close()
        assert process.wait(10) == 0


@pytest.mark.parametrize("options", ["", "--lang en -j 2"])
def test_a_closed_pipe_ends_in_silence(options):
    text = "The dog sleeps in the garden."
    command = f"yes {text!r} | {' '.join(SYNMT)} filter {options} | head -1"
    script = f"{command}; echo ${{PIPESTATUS[1]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == (f"{text}\n141\n".encode(), b"")


PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, capture_output=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.long
def test_memory_does_not_grow_with_the_input(tmp_path):
    peaks = []
    for n in (10_000, 200_000):  # 2 and 44 MB
        (tmp_path / "x").write_bytes((b"some words " * 20 + b"\n") * n)
        command = [
            sys.executable,
            "-c",
            PEAK,
            *SYNMT,
            "filter",
            "x",
            "--dedup",
            "src",
            "--format=counts",
        ]
        done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
        peaks.append(int(done.stdout))
    assert peaks[1] - peaks[0] < 4 * 1024  # KiB


def test_real_pairs_pass_unless_they_are_in_another_language(run, data, tmp_path):
    sides = [data / "multi30k" / f"val.{side}.gz" for side in ("en", "de", "fr")]
    done = run("filter", sides[0], "--tgt", sides[1], "--lang", "en-de", "--format=counts")
    assert b"kept\t1013\t99.9\n" in done.stdout
    done = run("filter", sides[0], "--tgt", sides[2], "--lang", "en-de", "--format=counts")
    assert b"kept\t0\t0.0\n" in done.stdout


def test_a_corpus_overlaps_with_itself_and_not_with_its_test_set(run, data):
    books = data / "books"
    count = (
        "filter",
        books / "dev.en.gz",
        "--tgt",
        books / "dev.de.gz",
        "--format=counts",
        "--exclude",
    )
    assert b"kept\t1000\t" in run(*count, books / "test.en.gz").stdout
    assert b"kept\t0\t" in run(*count, books / "dev.de.gz").stdout


def test_only_lang_needs_a_language_model(run, tmp_path):
    (tmp_path / "py3langid.py").write_text("raise SystemExit(9)\n")
    environment = {"PYTHONPATH": os.fspath(tmp_path)}
    assert run("filter", stdin=b"a\n", env=environment).stdout == b"a\n"
    assert run("filter", "--lang", "en", stdin=b"a\n", env=environment).stdout == b""


def test_a_signal_ends_it_while_its_processes_wait_for_more_of_a_pipe(folder):
    command = [*SYNMT, "filter", "-q", "-j", "2", "--lang", "en-de"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, cwd=folder
    ) as program:
        program.stdin.write((folder / "jsonl").read_bytes())
        program.stdin.flush()
        time.sleep(3)
        program.terminate()
        try:
            assert program.wait(10) == 128 + signal.SIGTERM
        finally:
            program.kill()
