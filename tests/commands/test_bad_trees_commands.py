"""--on-bad-tree: lines stay aligned where another parser's trees are bad."""

import json

import pytest

GOOD = "# text = A dog.\n1\tA\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tdog.\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
BAD = GOOD.replace("\t2\tdet", "\t0\tdet").replace("A dog.", "A cat.").replace("dog.", "cat.")
SHORT = GOOD.replace("\tX\t_", "\tX").replace("A dog.", "A row.")
MIXED = (GOOD + BAD + GOOD + SHORT + GOOD).encode()
REASONS = [
    "<stdin>:7: 2 words with HEAD 0 (root), expected 1",
    "<stdin>:15: 9 columns, expected 10",
]
FAILED = ("--on-bad-tree", "failed")


def objects(done):
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("jobs", ["-j1", "-j2"])
def test_featurize_keeps_every_line_with_its_target(run, tmp_path, jobs):
    (tmp_path / "tgt").write_text("a\nb\nc\nd\ne\n")
    command = ("featurize", "--tgt", tmp_path / "tgt", jobs)
    done = run(*command, *FAILED, stdin=MIXED)
    records = objects(done)
    assert [one["tgt"] for one in records] == list("abcde")
    assert [one["status"] for one in records] == ["ok", "failed", "ok", "failed", "ok"]
    assert [one["src"] for one in records[1::2]] == ["A cat.", "A row."]
    assert [one["reason"] for one in records[1::2]] == REASONS
    alone = objects(run("featurize", stdin=3 * GOOD.encode()))
    assert [one["words"] for one in records[::2]] == [one["words"] for one in alone]
    warning = "synmt featurize: warning: "
    said = f"{warning}2 of 5 segments failed\n{warning}the first of them: {REASONS[0]}\n"
    assert done.stderr.decode() == said
    for options in ([], [*FAILED, "--strict"]):
        refused = run(*command, *options, stdin=MIXED)
        assert (refused.returncode, len(refused.stdout.splitlines())) == (65, 1)
        assert refused.stderr.decode() == f"synmt featurize: {REASONS[0]}\n"


def test_a_bad_target_tree_fails_its_segment_alone(run, tmp_path):
    (tmp_path / "tgt").write_bytes(MIXED)
    command = ("featurize", "--tgt-conllu", "tgt")
    found = objects(run(*command, *FAILED, stdin=5 * GOOD.encode(), cwd=tmp_path))
    assert [one["status"] for one in found] == ["ok", "failed", "ok", "failed", "ok"]
    assert found[1]["reason"] == "target: tgt:7: 2 words with HEAD 0 (root), expected 1"
    assert [one["tgt"] for one in found] == ["A dog.", "A cat.", "A dog.", "A row.", "A dog."]
    assert run(*command, stdin=5 * GOOD.encode(), cwd=tmp_path).returncode == 65


def test_only_trees_can_be_bad(run):
    done = run("featurize", "--from", "text", *FAILED, stdin=b"a\n")
    assert (done.returncode, b"--on-bad-tree is for CoNLL-U" in done.stderr) == (2, True)
    done = run("parse", "-m", "x", *FAILED, stdin=b"a\n")
    assert (done.returncode, b"--on-bad-tree is for the trees of --known" in done.stderr) == (
        2,
        True,
    )


def test_linearize_leaves_lines_empty_and_counts(run):
    done = run("linearize", *FAILED, stdin=MIXED)
    line = b"A dog. LEFT-ARC:det\n"
    assert (done.returncode, done.stdout) == (0, line + b"\n" + line + b"\n" + line)
    assert b"2 of 5 lines failed" in done.stderr
    symbols = run("linearize", "--format", "symbols", *FAILED, stdin=MIXED)
    assert symbols.stdout == run("linearize", "--format", "symbols", stdin=GOOD.encode()).stdout
    assert f"the first of them: {REASONS[0]}".encode() in symbols.stderr
    assert run("linearize", "--format", "symbols", stdin=MIXED).returncode == 65


def test_filter_drops_the_pairs_of_bad_trees(run, tmp_path):
    (tmp_path / "tgt").write_text("a\nb\nc\nd\ne\n")
    pair = ("--tgt", "tgt", "--tgt-out", "kept", "--rejects", "rejects")
    done = run("filter", *FAILED, *pair, stdin=MIXED, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, 3 * GOOD.encode())
    assert (tmp_path / "kept").read_text() == "a\nc\ne\n"
    assert b"kept 3 of 5 pairs; rejected: 2 status" in done.stderr
    rejects = (tmp_path / "rejects").read_text()
    assert [f"# synmt_filtered = status: failed: {one}" in rejects for one in REASONS] == [True] * 2
    assert run("filter", *pair, stdin=MIXED, cwd=tmp_path).returncode == 65


def test_filter_makes_valid_conllu_for_every_other_command(run):
    marked = run("filter", *FAILED, "--min-len", "0", "--format", "marked", stdin=MIXED)
    assert marked.returncode == 0
    assert run("check", "--from", "conllu", stdin=marked.stdout).returncode == 0
    found = objects(run("featurize", stdin=marked.stdout))
    assert found == objects(run("featurize", *FAILED, stdin=MIXED))
    assert run("info", stdin=MIXED).returncode == 65
    info = run("info", "--format", "json", stdin=marked.stdout)
    assert json.loads(info.stdout)["statuses"] == {"ok": 3, "failed": 2}


def test_a_line_fails_with_one_of_its_sentences_in_every_command(run):
    one, two = (f"# sent_id = 1.{k}\n# synmt_line = 1\n" for k in (1, 2))
    line = (one + GOOD + two + BAD).encode()
    marked = run("filter", *FAILED, "--format", "marked", stdin=line)
    assert b"skipped" not in marked.stdout
    for stdin, options in ((line, FAILED), (marked.stdout, ())):
        (found,) = objects(run("featurize", *options, stdin=stdin))
        assert (found["status"], found["src"]) == ("failed", "A dog. A cat.")
    info = run("info", "--format", "json", stdin=marked.stdout)
    assert json.loads(info.stdout)["statuses"] == {"failed": 1}


def test_a_block_without_an_end_does_not_take_the_next_line_along(run, tmp_path):
    """The second block lost its blank line, so that comments of line 3 stand inside it."""
    (tmp_path / "tgt").write_text("a\nb\nc\nd\n")
    line = "# synmt_line = 3\n"
    stdin = (GOOD + GOOD[:-1] + line + GOOD + line + GOOD + GOOD).encode()
    found = objects(run("featurize", "--tgt", "tgt", *FAILED, stdin=stdin, cwd=tmp_path))
    statuses = [(one["tgt"], one["status"]) for one in found]
    assert statuses == [("a", "ok"), ("b", "failed"), ("c", "ok"), ("d", "ok")]
    assert found[1]["reason"] == "<stdin>:8: comment inside a sentence"
    check = run("check", "--parallel", "-", "tgt", stdin=stdin, cwd=tmp_path)
    assert check.stdout == b"<stdin>:8: comment inside a sentence\n"


@pytest.mark.parametrize("jobs", ["-j1", "-j2"])
def test_known_trees_that_are_bad_are_parsed_or_failed(run, tmp_path, tiny_udpipe, jobs):
    known = tmp_path / "known"
    again = GOOD.replace("A dog.", "A row.").replace("dog.", "row.")  # a second tree that is good
    known.write_text(GOOD + BAD + SHORT + again)
    text = b"A dog.\nA cat.\n\nA row.\n"
    command = ("parse", "--known", known, jobs)
    reason = f"{known}:7: 2 words with HEAD 0 (root), expected 1"
    refused = run(*command, stdin=text)
    assert (refused.returncode, refused.stdout) == (65, b"")
    assert refused.stderr.decode() == f"synmt parse: {reason}\n"

    failed = run(*command, *FAILED, stdin=text)
    assert failed.returncode == 0
    dog, cat, empty, row = failed.stdout.decode().split("\n\n")[:-1]
    assert cat.split("\n")[:4] == [
        *("# sent_id = 2", "# text = A cat.", "# synmt_status = failed"),
        f"# synmt_reason = {reason}",
    ]
    assert "synmt_status = empty" in empty
    assert "\tdog.\t" in dog
    assert "\trow.\t" in row
    assert f"1 of 4 segments failed: {reason} (1)" in failed.stderr.decode()
    strict = run(*command, *FAILED, "--strict", stdin=text)
    assert (strict.returncode, f"<stdin>:2: {reason}" in strict.stderr.decode()) == (65, True)
    unknown = run(*command, *FAILED, stdin=b"A bird.\n")
    assert (unknown.returncode, b"has this text: 'A bird.'" in unknown.stderr) == (65, True)

    parsed = run(*command, *FAILED, "-m", tiny_udpipe, stdin=text)
    alone = run("parse", "-m", tiny_udpipe, stdin=b"A cat.\n").stdout.decode()
    assert parsed.returncode == 0
    blocks = parsed.stdout.decode().split("\n\n")
    assert blocks[1] + "\n\n" == alone.replace("sent_id = 1", "sent_id = 2")
    assert [blocks[0], blocks[2], blocks[3]] == [dog, empty, row]
    said = f"1 of 4 lines have a tree in {known} that failed, and were parsed: {reason} (1)"
    assert said in parsed.stderr.decode()


def test_a_bad_tree_is_translated_as_a_failed_segment(run, example_folder):
    command = ("translate", "-m", "runs/pascal", "--max-output-len", "5", "--threads", "1")
    done = run(*command, *FAILED, "--format", "jsonl", stdin=MIXED, cwd=example_folder)
    found = objects(done)
    assert [one["status"] for one in found] == ["ok", "failed", "ok", "failed", "ok"]
    assert all(one["score"] < 0 for one in found)  # search has translated each of them
    assert {*found[1]["piece_word"]} == {-1}
    assert b"2 of 5 segments failed: translated without a tree" in done.stderr
    for options in ([], [*FAILED, "--strict"]):
        refused = run(*command, *options, stdin=MIXED, cwd=example_folder)
        assert refused.returncode == 65
        assert refused.stderr.decode().endswith(f"synmt translate: {REASONS[0]}\n")
