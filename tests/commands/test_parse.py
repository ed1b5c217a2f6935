import gzip
import itertools
import os
import re
import select
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from synmt_cli.core.text import udpipe
from synmt_cli.io.reading import not_utf8

PROGRAM = [sys.executable, "-m", "synmt_cli", "parse"]
TEXT = b"The dog sleeps.\n\nA cat sees the cat. The man is.\n \nThe\xe2\x80\xa8dog\r\nend"


def ids(conllu):
    return [line[12:] for line in conllu.decode().split("\n") if line.startswith("# sent_id = ")]


def start(model, *options, **streams):
    return subprocess.Popen(
        [*PROGRAM, "-m", model, *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,  # what readline leaves is for communicate
        **streams,
    )


def children(pid):
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]


def workers_of(process, count):
    """The workers of a process, once there are `count`: a child forks them when chunks wait."""
    workers, begin = [], time.monotonic()
    while len(workers) < count:
        assert time.monotonic() - begin < 20
        time.sleep(0.01)
        workers = [worker for child in children(process.pid) for worker in children(child)]
    return workers


def gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_one_record_for_each_line(run, tiny_udpipe):
    done = run("parse", "-m", tiny_udpipe, stdin=TEXT)
    assert (done.returncode, done.stderr) == (0, b"")
    assert ids(done.stdout) == ["1", "2", "3", "4", "5", "6"]
    assert done.stdout.count(b"# synmt_status = empty") == 2
    assert "# text = The\u2028dog\n" in done.stdout.decode()


@pytest.mark.parametrize("options", ["-j2 --segment=split", "-j2 --from=tokens", "-j0"])
def test_processes_change_no_byte(run, tiny_udpipe, options):
    text = TEXT.replace(b"end", b"") * 50
    jobs, *options = options.split()
    one = run("parse", "-m", tiny_udpipe, *options, stdin=text)
    many = run("parse", "-m", tiny_udpipe, jobs, *options, stdin=text)
    assert one.returncode == many.returncode == 0
    assert many.stdout == one.stdout


@settings(max_examples=4, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.text(st.characters(exclude_characters="\0\n", codec="utf-8"), max_size=30)),
    st.sampled_from(["1", "2"]),
)
def test_as_many_records_as_lines_in_order(run, tiny_udpipe, texts, jobs):
    stdin = "".join(f"{text}\n" for text in texts).encode()
    done = run("parse", "-m", tiny_udpipe, "-j", jobs, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, b"")
    assert ids(done.stdout) == [str(number) for number in range(1, len(texts) + 1)]


def test_ids_run_over_all_operands(run, tiny_udpipe, tmp_path):
    (tmp_path / "a").write_bytes(b"The dog sleeps.\nA cat sleeps.")
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"\nThe man is.\n"))
    done = run("parse", "-m", tiny_udpipe, "a", "-", "b.gz", stdin=b"The end\n", cwd=tmp_path)
    assert ids(done.stdout) == ["1", "2", "3", "4", "5"]


def test_split_sentences_are_numbered_within_their_line(run, tiny_udpipe):
    done = run("parse", "-m", tiny_udpipe, "--segment", "split", stdin=TEXT)
    assert ids(done.stdout) == ["1.1", "2", "3.1", "3.2", "4", "5.1", "6.1"]


def test_the_parser_searches_with_the_beam_asked_for(run, tiny_udpipe):
    """For words in any order, greedy search finds other trees."""
    texts = [" ".join(words) for words in product(("The", "dog", "sees", "."), repeat=3)]
    parse, stdin = ("parse", "-m", tiny_udpipe, "--from", "tokens"), "\n".join(texts).encode()
    found = [run(*parse, "--beam", n, stdin=stdin).stdout.decode() for n in (1, 5)]
    for beam, trees in zip((1, 5), found, strict=True):
        parser = udpipe.Parser(str(tiny_udpipe), beam)
        assert trees == "".join(parser.tokens(one, str(i)).conllu for i, one in enumerate(texts, 1))
    assert found[0] != found[1] == run(*parse, stdin=stdin).stdout.decode()


def test_conllu_is_parsed_again_block_by_block(run, tiny_udpipe, tiny_treebank):
    done = run("parse", "-m", tiny_udpipe, "--from", "conllu", "-j", "2", stdin=tiny_treebank)
    assert done.returncode == 0
    columns = [line.split(b"\t") for line in done.stdout.split(b"\n")]
    gold = [line.split(b"\t") for line in tiny_treebank.split(b"\n")]
    assert [row[:2] + row[9:] for row in columns] == [row[:2] + row[9:] for row in gold]
    assert [row[6:8] for row in columns] == [row[6:8] for row in gold]  # it has learnt these


def test_a_marked_tree_is_parsed_again_and_a_placeholder_is_not(run, tiny_udpipe, tiny_treebank):
    blocks = tiny_treebank.split(b"\n\n")[:2]
    skipped = b"# synmt_status = skipped\n# synmt_reason = max-len\n"
    failed = b"# synmt_status = failed\n1\t_\t_\tX\t_\t_\t0\troot\t_\t_"
    parse = ("parse", "-m", tiny_udpipe, "--from", "conllu")
    plain = run(*parse, stdin=b"\n\n".join(blocks) + b"\n\n").stdout
    untagged = re.sub(rb"\t[A-Z]+\t_\t_\t", b"\tZZZ\t_\t_\t", blocks[1])
    assert untagged != blocks[1]
    marked = b"\n\n".join([blocks[0], skipped + untagged, failed]) + b"\n\n"
    done = run(*parse, stdin=marked)
    assert done.returncode == 0
    assert done.stdout.replace(skipped, b"") == plain + failed + b"\n\n"
    assert b"1 of 3 segments failed: synmt_status = failed (1)" in done.stderr
    strict = run(*parse, "--strict", stdin=skipped + failed.partition(b"\n")[2] + b"\n\n")
    assert (strict.returncode, strict.stdout) == (65, b"")
    assert strict.stderr == b"synmt parse: <stdin>:1: max-len\n"


def test_conllu_without_trees_is_parsed_as_with_others(run, tiny_udpipe, tiny_treebank):
    parse = ("parse", "-m", tiny_udpipe, "--from", "conllu")
    rows = [line.split(b"\t") for line in tiny_treebank.split(b"\n")]
    bare = [row[:2] + [b"_"] * 6 + row[8:] if len(row) == 10 else row for row in rows]
    without = b"\n".join(map(b"\t".join, bare))
    done = run(*parse, stdin=without)
    assert (done.returncode, done.stdout) == (0, run(*parse, stdin=tiny_treebank).stdout)
    both = run(*parse, "-j", "2", stdin=without + tiny_treebank)
    assert both.stdout == 2 * done.stdout
    number = 1 + next(i for i, row in enumerate(bare) if len(row) == 10)
    for command in ("featurize", "view"):
        done = run(command, stdin=without)
        assert (done.returncode, done.stdout) == (65, b"")
        assert f"<stdin>:{number}: HEAD '_' is not a word's number".encode() in done.stderr


def test_heads_and_labels_to_be_replaced_may_be_anything(run, tiny_udpipe, tiny_treebank):
    parse = ("parse", "-m", tiny_udpipe, "--from", "conllu")
    bad = itertools.cycle([b"0", b"0", b"1", b"999", b"_", b"x y", b"-1", b"1.5"])
    rows = [line.split(b"\t") for line in tiny_treebank.split(b"\n")]
    other = [[*r[:6], next(bad), b"?", b"7:a|x", *r[9:]] if len(r) == 10 else r for r in rows]
    assert run("featurize", stdin=b"\n".join(map(b"\t".join, other))).returncode == 65
    done = run(*parse, stdin=b"\n".join(map(b"\t".join, other)))
    assert done.returncode == 0
    expected = run(*parse, stdin=tiny_treebank).stdout.split(b"\n")
    found = [line.split(b"\t") for line in done.stdout.split(b"\n")]
    assert {row[8] for row in found if len(row) == 10} == {b"7:a|x"}  # DEPS stays
    plain = [[*r[:8], b"_", *r[9:]] if len(r) == 10 else r for r in found]
    assert [*map(b"\t".join, plain)] == expected


def test_bad_conllu_ends_at_its_line_after_the_blocks_before_it(run, tiny_udpipe):
    good = b"1\tThe\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
    done = run("parse", "-m", tiny_udpipe, "--from", "conllu", stdin=good + b"# x\n1\tThe\n\n")
    assert done.returncode == 65
    assert done.stderr == b"synmt parse: <stdin>:4: 2 columns, expected 10\n"
    assert ids(done.stdout + b"# sent_id = x") == ["x"]
    assert done.stdout.count(b"\troot\t") == 1


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize(
    ("bad", "problem"), [(b"a\xffb", not_utf8(2).encode()), (b"a\0b", b"NUL character")]
)
def test_a_bad_line_is_named_and_those_before_it_are_written(run, tiny_udpipe, jobs, bad, problem):
    done = run("parse", "-m", tiny_udpipe, "-j", jobs, stdin=b"The dog\n" * 20 + bad + b"\nThe\n")
    assert done.returncode == 65
    assert done.stderr == b"synmt parse: <stdin>:21: " + problem + b"\n"
    assert ids(done.stdout) == [str(number) for number in range(1, 21)]
    assert done.stdout.endswith(b"\n\n")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_failed_lines_are_records_and_counted_or_fatal(run, tiny_udpipe, jobs):
    stdin = b"The dog\n" + b"x" * 1_000_001 + b"\nThe dog\n"
    done = run("parse", "-m", tiny_udpipe, "-j", jobs, stdin=stdin)
    assert (done.returncode, ids(done.stdout)) == (0, ["1", "2", "3"])
    reason = b"1,000,001 characters, at most 1,000,000"
    assert done.stderr == b"synmt parse: warning: 1 of 3 segments failed: " + reason + b" (1)\n"
    done = run("parse", "-m", tiny_udpipe, "-j", jobs, "--strict", stdin=stdin)
    assert (done.returncode, ids(done.stdout)) == (65, ["1"])
    assert done.stderr == b"synmt parse: <stdin>:2: " + reason + b"\n"


@pytest.mark.parametrize("path", ["missing.udpipe", ".", "damaged.udpipe"])
def test_without_a_model_it_says_what_to_do(run, tiny_udpipe, tmp_path, path):
    (tmp_path / "damaged.udpipe").write_bytes(tiny_udpipe.read_bytes()[:-200])
    done = run("parse", "-m", path, stdin=TEXT, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (69, b"")
    assert done.stderr.count(b"\n") == 1
    assert path.encode() in done.stderr
    assert b"synmt parser train" in done.stderr


@pytest.mark.parametrize("options", [[], ["-j2", "--segment=split"], ["--from=tokens"]])
def test_text_of_another_language_is_parsed_with_a_warning(run, tiny_udpipe, options):
    text = "Der Hund sieht die Katze und das Kind schläft.\n".encode() * 90
    done = run("parse", "-m", tiny_udpipe, *options, stdin=text)
    assert (done.returncode, len(ids(done.stdout)) >= 90) == (0, True)
    warning = f"synmt parse: warning: {tiny_udpipe} knows only "
    assert done.stderr.decode().startswith(warning)
    assert b"unknown: der" in done.stderr
    assert done.stderr.count(b"\n") == 1
    same = run("parse", "-m", tiny_udpipe, *options, stdin=b"The dog sees a cat.\n" * 90)
    assert (same.returncode, same.stderr) == (0, b"")


def test_split_is_for_text(run, tiny_udpipe):
    done = run("parse", "-m", tiny_udpipe, "--from", "tokens", "--segment", "split")
    assert done.returncode == 2
    assert b"--segment split is for --from text" in done.stderr


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_records_come_while_the_input_waits(tiny_udpipe, jobs):
    with start(tiny_udpipe, "--line-buffered", "-j", jobs) as process:
        for number in (b"1", b"2"):
            process.stdin.write(b"The dog sleeps.\n")
            process.stdin.flush()
            assert select.select([process.stdout], [], [], 20)[0]
            block = b""
            while not block.endswith(b"\n\n"):
                line = process.stdout.readline()
                assert line
                block += line
            assert block.startswith(b"# sent_id = " + number)
        process.stdin.close()
        assert process.wait(20) == 0


def test_the_work_of_a_killed_worker_is_done_by_another(run, tiny_udpipe):
    text = b"The dog sleeps.\n" * 520
    with start(tiny_udpipe, "-j", "3", "--line-buffered", stderr=subprocess.PIPE) as process:
        process.stdin.write(text[: len(text) // 2])
        process.stdin.flush()
        first = process.stdout.readline()
        for pid in workers_of(process, 3)[:2]:
            os.kill(pid, signal.SIGKILL)
        out, err = process.communicate(text[len(text) // 2 :], timeout=20)
    assert process.returncode == 0
    assert first + out == run("parse", "-m", tiny_udpipe, stdin=text).stdout
    again = b"synmt parse: warning: a worker process was killed (out of memory?); its work is "
    assert set(err.splitlines()) <= {again + b"done again"}


def test_without_a_worker_left_it_is_an_error_that_names_the_lines(tiny_udpipe):
    with start(tiny_udpipe, "-j", "2", "--line-buffered", stderr=subprocess.PIPE) as process:
        process.stdin.write(b"The dog sleeps.\n" * 260)
        process.stdin.flush()
        process.stdout.readline()
        for pid in workers_of(process, 2):
            os.kill(pid, signal.SIGKILL)
        out, err = process.communicate(b"The dog sleeps.\n" * 500, timeout=20)
    assert process.returncode == 74
    *_, last = err.splitlines()
    lost = rb"a worker (process was killed .*|was lost), and none is left"
    assert re.fullmatch(rb"synmt parse: <stdin>:\d+-\d+: " + lost, last)
    assert out.endswith(b"\n\n")


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_whole_records_and_no_children(tiny_udpipe, jobs, number):
    with start(tiny_udpipe, "-j", jobs, "--line-buffered", stderr=subprocess.PIPE) as process:
        process.stdin.write(b"The dog sleeps.\n" * 3)
        process.stdin.flush()
        block = b"".join(process.stdout.readline() for _ in range(7))
        workers = children(process.pid) + workers_of(process, 1 if jobs == "2" else 0)
        process.send_signal(number)
        before = time.monotonic()
        out, err = process.communicate(timeout=20)
    assert time.monotonic() - before < 10
    assert (process.returncode, err) == (128 + number, b"")
    assert (block + out).endswith(b"\n\n")
    assert bool(workers) == (jobs == "2")
    assert all(map(gone, workers))


def test_a_closed_pipe_ends_it_silently(tiny_udpipe, tmp_path):
    (tmp_path / "text").write_bytes(b"The dog sleeps.\n" * 5_000)
    done = subprocess.run(
        f"{' '.join(PROGRAM)} -m {tiny_udpipe} -j 2 text | head -1; exit ${{PIPESTATUS[0]}}",
        shell=True, executable="/bin/bash", cwd=tmp_path, capture_output=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (141, b"# sent_id = 1\n", b"")


def test_a_full_disk_is_an_error(run, tiny_udpipe):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*PROGRAM, "-m", tiny_udpipe], input=TEXT, stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 74
    assert b"No space left" in done.stderr


def test_an_output_file_appears_whole_or_not_at_all(run, tiny_udpipe, tmp_path):
    done = run("parse", "-m", tiny_udpipe, "-o", tmp_path / "x.conllu.gz", stdin=TEXT)
    assert (done.returncode, done.stdout) == (0, b"")
    assert len(ids(gzip.decompress((tmp_path / "x.conllu.gz").read_bytes()))) == 6
    done = run("parse", "-m", tiny_udpipe, "-o", tmp_path / "y", stdin=b"The\n\xff\n")
    assert done.returncode == 65
    assert os.listdir(tmp_path) == ["x.conllu.gz"]


def test_a_real_model_on_real_text_gives_one_tree_a_line(run, data):
    with gzip.open(data / "multi30k" / "val.en.gz") as file:
        text = b"".join(file.readlines()[:30])
    model = data / "udpipe" / "en_ewt.udpipe"
    done = run("parse", "-m", model, "-j", "2", stdin=text)
    assert (done.returncode, len(ids(done.stdout))) == (0, 30)
    again = run("parse", "-m", model, "--from", "conllu", stdin=done.stdout)
    assert again.stdout == done.stdout


# --- trees that there are ----------------------------------------------------------------------

KNOWN = """\
# sent_id = treebank-9
# text = The dog sleeps.
# note = kept
1-2\tThedog\t_\t_\t_\t_\t_\t_\t_\t_
1\tThe\t_\tX\t_\t_\t2\tdep\t_\t_
2\tdog\t_\tX\t_\t_\t0\troot\t_\t_

# sent_id = 1
1\tA\t_\tX\t_\t_\t0\troot\t_\t_
2\tcat\t_\tX\t_\t_\t1\tdep\t_\tSpaceAfter=No
3\t.\t_\tX\t_\t_\t1\tdep\t_\t_

# sent_id = 8.1
# synmt_line = 8
# text = One.~
1\tOne.\t_\tX\t_\t_\t0\troot\t_\tTokenRange=0:4

# sent_id = 8.2
# synmt_line = 8
# text = Two.
1\tTwo.\t_\tX\t_\t_\t0\troot\t_\tTokenRange=5:9

# text = The man is.
# synmt_status = failed
1\t_\t_\tX\t_\t_\t0\troot\t_\t_

# text = The dog sleeps.
1\tThe\t_\tX\t_\t_\t0\troot\t_\t_

""".replace("~", " ")
LINES = b"A cat.\n\nOne. Two.\nThe dog sleeps.\nA cat.\n"


@pytest.fixture
def known(tmp_path):
    (tmp_path / "known").write_text(KNOWN)
    return tmp_path / "known"


@pytest.mark.parametrize("jobs", ["-j1", "-j2"])
def test_known_trees_are_those_of_their_lines(run, known, jobs):
    done = run("parse", "--known", known, jobs, stdin=LINES)
    assert (done.returncode, done.stderr) == (0, b"")
    assert ids(done.stdout) == ["1", "2", "3.1", "3.2", "4", "5"]
    cat, empty, one, two, dog, again = done.stdout.decode().split("\n\n")[:-1]
    of_cat = KNOWN.split("\n\n")[1].removeprefix("# sent_id = 1\n")
    assert cat == f"# sent_id = 1\n# text = A cat.\n{of_cat}"
    assert "# synmt_status = empty" in empty
    assert one.startswith("# sent_id = 3.1\n# text = One. \n# synmt_line = 3\n1\tOne.\t")
    assert two.startswith("# sent_id = 3.2\n# text = Two.\n# synmt_line = 3\n1\tTwo.\t")
    first = KNOWN.split("\n\n")[0].replace("# sent_id = treebank-9\n# text = The dog sleeps.\n", "")
    assert dog == f"# sent_id = 4\n# text = The dog sleeps.\n{first}"  # the first of two
    assert again == cat.replace("sent_id = 1", "sent_id = 5")
    joined = run("featurize", stdin=done.stdout)
    assert joined.stdout.count(b'"status":"ok"') == 3  # Thedog is not in its line


def test_a_line_without_a_known_tree_is_parsed_or_refused(run, known, tiny_udpipe):
    text = LINES + b"The man is.\n"
    done = run("parse", "--known", known, stdin=text)
    assert done.returncode == 65
    problem = f"<stdin>:6: no tree in {known} has this text: 'The man is.'"
    assert problem in done.stderr.decode()
    advice = (
        b"; if it has several sentences, give all their trees the same comment, such as # synmt_"
    )
    assert advice in done.stderr
    parsed = run("parse", "--known", known, "-m", tiny_udpipe, stdin=text)
    alone = run("parse", "-m", tiny_udpipe, stdin=b"The man is.\n")
    assert parsed.returncode == 0
    said = f"synmt parse: 4 of 5 lines have a tree in {known}\n"  # one of the six is empty
    assert said in parsed.stderr.decode()
    none = run("parse", "--known", known, "-m", tiny_udpipe, stdin=b"The man is.\n")
    assert none.stderr.decode() == f"synmt parse: warning: 0 of 1 lines have a tree in {known}\n"
    assert parsed.stdout.decode().split("\n\n")[6] == alone.stdout.decode().strip().replace(
        "sent_id = 1", "sent_id = 6"
    )


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--known", "none"], 66, b"none: No such file"),
        (["--known", "bad"], 65, b"bad:1: 2 columns, expected 10"),
        (["--known", "bad", "--from", "conllu"], 2, b"--known is for text"),
        (["--known", "-"], 2, b"only one input can be stdin"),
        (["--known", "known", "--beam", "3"], 2, b"--beam needs a parser: give -m MODEL"),
        (["--known", "known", "--no-lemmas"], 2, b"--no-lemmas needs a parser: give -m MODEL"),
        (["--known", "known", "--segment=split"], 2, b"--segment split needs a parser: give -m"),
        ([], 2, b"give -m MODEL, or --known FILE with a tree for each line"),
    ],
)
def test_known_trees_that_cannot_be_read_are_named(run, tmp_path, arguments, status, message):
    (tmp_path / "bad").write_text("1\tA\n\n")
    done = run("parse", *arguments, stdin=LINES, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (status, b"")
    assert message in done.stderr
