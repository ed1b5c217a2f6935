"""`synmt bucket-by-length` as a user runs it."""

import gzip
import os
import subprocess
import sys

import pytest

TEXT = "a b c\n\none\na b c d e f\na  b\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "de").write_text(TEXT)
    (tmp_path / "en").write_text("1\n2\n3\n4\n5\n")
    (tmp_path / "short").write_text("1\n2\n")
    (tmp_path / "records").write_text('{"src":"a"}\n' * 5)
    return tmp_path


def files(folder):
    """The files that are not the fixture's: name -> text."""
    known = {"de", "en", "short", "records"}
    return {p.name: p.read_text() for p in folder.iterdir() if p.name not in known}


def test_counts(run, folder):
    done = run("bucket-by-length", "de", "--by=length:1,3,9", cwd=folder)
    assert done.stdout == b"bucket\tn\t%\n0\t1\t20.0\n1-2\t2\t40.0\n3-8\t2\t40.0\n9+\t0\t0.0\n"
    assert run("bucket-by-length", stdin=TEXT.encode()).stdout.startswith(
        b"bucket\tn\t%\n0-19\t5\t"
    )
    assert b"0-19\t0\t0.0\n" in run("bucket-by-length", "--format=counts").stdout


def test_annotates_text_in_a_first_column(run, folder):
    done = run("bucket-by-length", "--format=labelled", "--by=length:3", "de", "en", cwd=folder)
    assert done.stdout.decode() == (
        "3+\ta b c\t1\n0-2\t\t2\n0-2\tone\t3\n3+\ta b c d e f\t4\n0-2\ta  b\t5\n"
    )


def test_a_tab_inside_one_of_several_lines_is_no_new_column(run, tmp_path):
    (tmp_path / "en").write_bytes(b"a\tb\n")
    (tmp_path / "de").write_bytes(b"\tc\td\r\r\n")
    both = run("bucket-by-length", "--format=labelled", "en", "de", cwd=tmp_path)
    assert both.stdout == b"0-19\ta b\t c d\r\r\n"
    alone = run("bucket-by-length", "--format=labelled", "en", cwd=tmp_path)
    assert alone.stdout == b"0-19\ta\tb\n"  # the last column: `cut -f 2-` gives the line


def test_a_carriage_return_of_the_text_stays(run, tmp_path):
    labelled = run("bucket-by-length", "--format=labelled", stdin=b"a b\r\r\n").stdout
    assert labelled == b"0-19\ta b\r\r\n"
    run("bucket-by-length", "--out-template", "{bucket}", stdin=b"a b\r\r\n", cwd=tmp_path)
    assert (tmp_path / "0-19").read_bytes() == b"a b\r\r\n"


def test_annotates_records_and_trees(run):
    records = b'{"src":"a b"}\n{"src":""}\n'
    done = run("bucket-by-length", "--format=labelled", "--by=length:2", stdin=records)
    assert done.stdout == b'{"src":"a b","bucket":"2+"}\n{"src":"","bucket":"0-1"}\n'
    tree = b"# sent_id = 1\n1\tA\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
    done = run("bucket-by-length", "--format=labelled", "--by=length:2", stdin=tree)
    assert done.stdout == tree.replace(b"= 1\n", b"= 1\n# synmt_bucket = 0-1\n")


def test_splits_parallel_text(run, folder):
    done = run("bucket-by-length", "de", "en", "--by=length:1,3",
               "--out-template", "{name}.{bucket}", cwd=folder)  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert files(folder) == {
        "de.0": "\n",
        "en.0": "2\n",
        "de.1-2": "one\na  b\n",
        "en.1-2": "3\n5\n",
        "de.3+": "a b c\na b c d e f\n",
        "en.3+": "1\n4\n",
    }


def test_splits_by_a_source_that_is_not_written_and_compresses(run, folder):
    run("bucket-by-length", "en", "--src", "de", "--by=length:3", "--out-template", "{bucket}.gz",
        cwd=folder)  # fmt: skip
    assert gzip.decompress((folder / "3+.gz").read_bytes()) == b"1\n4\n"
    assert sorted(p.name for p in folder.glob("*.gz")) == ["0-2.gz", "3+.gz"]


def test_splits_records_as_they_are(run, folder):
    lines = b'{"src": "a b",  "x":1}\n{"src":""}\n'
    done = run("bucket-by-length", "--by=length:2", "--out-template", "s.{bucket}", stdin=lines,
               cwd=folder)  # fmt: skip
    assert done.returncode == 0
    assert files(folder) == {"s.0-1": '{"src":""}\n', "s.2+": '{"src": "a b",  "x":1}\n'}


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["de", "short"], 65, "short: 2 lines, but de has 5"),
        (["short", "de"], 65, "de: 5 lines, but short has 2"),
        (["en", "--src", "short"], 65, "en: 5 lines, but short has 2"),
        (["de", "short", "--out-template", "{bucket}.{side}"], 65, "short: 2 lines, but de has 5"),
        (["--out-template", "{bucket}"], 65, "<stdin>:2: invalid UTF-8 at byte 2"),
        (["--from", "jsonl"], 65, "<stdin>:1: invalid JSON"),
        (["--from", "conllu"], 65, "<stdin>:"),
        (["absent"], 66, "cannot read absent"),
        (["de", "--out-template", "absent/{bucket}"], 73, "cannot create absent/0-19"),
        (["de", "--by=length:20,20"], 2, "edges must be positive and rise"),
        (["de", "--by=length:0,20"], 2, "edges must be positive and rise"),
        (["de", "--by=length:a"], 2, "edges are whole numbers"),
        (["de", "--by", "deprel"], 2, "--by takes length or"),
        (
            ["de", "en", "--out-template", "{bucket}"],
            2,
            "--out-template '{bucket}' names a file twice",
        ),
        (["de", "--out-template", "{bucket}", "-o", "x"], 2, "--out-template names its files"),
        (["de", "--out-template", "{bucket}", "--line-buffered"], 2, "--out-template names its"),
        (["de", "--src", "en", "--from", "conllu"], 2, "--src gives the lengths of text"),
        (["records", "--src", "en"], 2, "--src gives the lengths of text; jsonl has its own"),
        (["-", "-"], 2, "only one input can be stdin"),
    ],
)
def test_mistakes_write_nothing(run, folder, arguments, status, message):
    done = run("bucket-by-length", *arguments, stdin=b"a\nb\xff\n", cwd=folder)
    assert (done.returncode, done.stdout, files(folder)) == (status, b"", {})
    assert done.stderr.decode().startswith(f"synmt bucket-by-length: {message}")
    assert done.stderr.count(b"\n") == 1


def test_an_input_is_never_replaced(run, folder):
    os.link(folder / "de", folder / "0-19")
    done = run("bucket-by-length", "de", "--out-template", "{bucket}", cwd=folder)
    assert done.returncode == 2
    assert files(folder) == {"0-19": TEXT}


def test_a_full_disk_leaves_no_file(folder):
    (folder / "de").write_text("word\n" * 100_000)
    command = f"{sys.executable} -m synmt_cli bucket-by-length de --out-template 'f.{{bucket}}'"
    limited = f"ulimit -f 8; {command}"
    done = subprocess.run(["bash", "-c", limited], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 74
    assert b"cannot write f.0-19: File too large" in done.stderr
    assert files(folder) == {}


BLOCK = b"1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n"


@pytest.mark.parametrize(
    ("record", "first"),
    [(b"a b\n", b"0-19\ta b\n"), (BLOCK, b"# synmt_bucket = 0-19\n")],
)
def test_records_come_out_before_the_end_of_input(record, first):
    command = [sys.executable, "-m", "synmt_cli", "bucket-by-length", "--format=labelled"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([*command, "--line-buffered"], **pipes) as process:
        process.stdin.write(record)
        process.stdin.flush()
        assert process.stdout.readline() == first
        process.stdin.close()
        assert process.wait(10) == 0


def test_a_closed_pipe_ends_in_silence():
    command = f"yes a | {sys.executable} -m synmt_cli bucket-by-length --format labelled | head -1"
    script = f"{command}; echo ${{PIPESTATUS[1]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == (b"0-19\ta\n141\n", b"")
