import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

QUICK = [
    "--tokenizer-options=dimension=16;epochs=1;batch_size=10;segment_size=10",
    "--tagger-options=iterations=1;guesser_enrich_dictionary=0",
    "--parser-options=iterations=1;hidden_layer=10;structured_interval=0",
]


def block(*words, comments=""):
    rows = [
        f"{i}\t{form}\t{lemma}\t{upos}\t_\t_\t{head}\t{deprel}\t_\t_\n"
        for i, (form, lemma, upos, head, deprel) in enumerate(words, 1)
    ]
    return f"{comments}{''.join(rows)}\n".encode()


def test_what_it_writes_parses_what_it_was_trained_on(run, tiny_treebank, tmp_path):
    (tmp_path / "dev.conllu").write_bytes(tiny_treebank)
    options = ["--dev", "dev.conllu", "-o", "my.udpipe", *QUICK]
    done = run("parser", "train", "-", *options, stdin=tiny_treebank, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"")
    messages = done.stderr.decode()
    assert all(line.startswith("synmt parser train: ") for line in messages.splitlines())
    assert "Epoch 1" in messages
    assert "Parsing from gold tokenization" in messages
    assert "Parsing from plain text" in messages
    parsed = run("parse", "-m", "my.udpipe", stdin=b"The dog sees the dog.\n", cwd=tmp_path)
    heads = [row.split(b"\t")[6] for row in parsed.stdout.split(b"\n") if b"\t" in row]
    assert heads == [b"2", b"3", b"0", b"5", b"3", b"3"]
    assert sorted(os.listdir(tmp_path)) == ["dev.conllu", "my.udpipe"]


def test_the_same_data_give_the_same_model(run, tiny_treebank, tiny_udpipe, tmp_path):
    options = [option.replace("=10;", "=20;") for option in QUICK]
    for name in ("a", "b"):
        run("parser", "train", "-", "-q", "-o", tmp_path / name, *options, stdin=tiny_treebank)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_quiet_is_quiet_and_what_a_model_lacks_is_said_or_seen(run, tiny_treebank, tmp_path):
    options = ["-q", "--light", "--tokenizer-options=none", *QUICK[1:], "-o", "my.udpipe"]
    done = run("parser", "train", "-", *options, stdin=tiny_treebank, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    done = run("parse", "-m", "my.udpipe", stdin=b"The dog\n", cwd=tmp_path)
    assert done.returncode == 69
    assert b"my.udpipe has no tokenizer: use --from tokens" in done.stderr
    done = run("parse", "-m", "my.udpipe", "--from", "tokens", stdin=b"The dog\n", cwd=tmp_path)
    assert done.returncode == 0
    rows = [row.split(b"\t") for row in done.stdout.split(b"\n") if b"\t" in row]
    assert [row[2] for row in rows] == [b"_", b"_"]  # a light model gives no lemmas


def test_a_treebank_with_arcs_that_cross_calls_for_another_parser(run, tiny_treebank, tmp_path):
    crossing = block(
        ("a", "a", "X", 3, "dep"), ("b", "b", "X", 0, "root"), ("c", "c", "X", 2, "dep")
    )
    for n, options, said in (
        (20, (), True),
        (1, (), False),
        (20, ("--parser-options", QUICK[-1].split("=", 1)[1] + ";transition_system=swap"), False),
    ):
        arguments = ("-o", tmp_path / "m", *QUICK, *options)
        done = run("parser", "train", "-", *arguments, stdin=tiny_treebank + crossing * n)
        assert done.returncode == 0, done.stderr
        advice = b"% of the trees are not projective, but those of this parser will be; --parser-op"
        assert (advice in done.stderr) == said


def test_what_the_library_cannot_store_is_prepared_and_counted(run, tiny_treebank, tmp_path):
    odd = b"".join(block((f"{i:b}", "--", "PUNCT", 0, "root")) for i in range(300))
    odd += block(("10 000", "1 0", "NUM", 2, "nummod"), ("in spite", "in spite", "ADP", 0, "root"))
    odd += block(("x" * 300, "x", "X", 0, "root"))
    odd += block(("_", "_", "X", 0, "root"), comments="# synmt_status = empty\n")
    odd += block(("a", "a", "X", 0, "root"), comments="# synmt_status = skipped\n")
    odd += block(("a", "a", "X Y", 0, "root")) + block(
        ("a", "a", "X", 0, "root"), ("b", "b", "X", 1, "a b")
    )
    odd += block(("a\rb", "a", "X", 0, "root"))
    odd += block(("a", "a", "X", 0, "root"), comments="# text = a\rb\n")  # as parse writes them
    odd += (
        b"1-1\tab\tab\t_\t_\tTypo=Yes\t_\t_\t_\t_\n1\ta\ta\tX\t_\t_\t0\troot\t0:a b\t_\n"
        b"1.1\tc\tc\tX Y\t_\t_\t_\t_\t1:x y\t_\n\n"
    )
    done = run("parser", "train", "-", "-o", tmp_path / "m", *QUICK, stdin=tiny_treebank + odd)
    assert done.returncode == 0
    assert b"1 lemmas in the training data have over 200 forms" in done.stderr
    assert b"1 training sentences with a FORM, LEMMA or tag over 250 bytes are left" in done.stderr
    assert b"1 training sentences without a tree are left out" in done.stderr
    assert b"1 training sentences with a synmt_status other than ok are left out" in done.stderr
    assert b"2 training sentences with a space in UPOS, XPOS, FEATS or DEPREL are" in done.stderr
    assert b"1 training sentences with a lone CR are left out" in done.stderr
    assert b"399 training sentences" in done.stderr


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--parser-options=iteration=3", b"has no option 'iteration'; did you mean iterations?"),
        ("--tagger-options=iterations_x=3", b"has no option 'iterations_x'; did you mean iterati"),
        ("--tagger-options=x_=3", b"has no option 'x_'; there are from_model, models"),
        ("--tokenizer-options=epochs", b"'epochs' has no value: write epochs=VALUE"),
        ("--tagger-options=iterations=x", b"--tagger-options iterations is 'x', expected a whole"),
        ("--parser-options=iterations=-1", b"iterations is '-1', expected a whole number from 0"),
        ("--parser-options=iterations=1.5", b"iterations is '1.5', expected a whole number"),
        ("--tokenizer-options=dropout=-0.1", b"dropout is '-0.1', expected a number"),
        ("--tagger-options=iterations=1;templates=foo", b"UDPipe: Cannot parse feature sequence"),
        ("--tokenizer-options=dimension=17", b"UDPipe: "),
        (
            "--parser-options=transition_system=no",
            b"--parser-options transition_system is one of projective, swap, link2",
        ),
    ],
)
def test_options_that_udpipe_does_not_take_are_named(run, tiny_treebank, tmp_path, option, message):
    done = run(
        "parser", "train", "-q", "-o", tmp_path / "m", *QUICK, option, "-", stdin=tiny_treebank
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count(b"\n") == 1
    assert not os.listdir(tmp_path)


def test_figures_are_of_the_dev_set_alone(run, tiny_treebank, tmp_path):
    """The dev set has the sentences of training with a wrong head for every word."""
    rows = [line.split(b"\t") for line in tiny_treebank.split(b"\n")]
    for row in rows:
        row[6:8] = [] if row == [b""] else [b"0", b"root"] if row[0] == b"1" else [b"1", b"dep"]
    (tmp_path / "dev").write_bytes(b"\n".join(map(b"\t".join, rows)))
    options = ("--dev", tmp_path / "dev", "-o", tmp_path / "m", *QUICK)
    done = run("parser", "train", "-", *options, stdin=tiny_treebank)
    assert re.findall(rb"UAS:? ([0-9.]+)%", done.stderr) == [b"0.00"] * 3


def test_a_dev_set_without_sentences_is_refused(run, tiny_treebank, tmp_path):
    (tmp_path / "none").write_bytes(b"")
    arguments = ("-q", "-o", tmp_path / "m", *QUICK, "--dev", tmp_path / "none", "-")
    done = run("parser", "train", *arguments, stdin=tiny_treebank)
    assert done.returncode == 65
    assert f"{tmp_path}/none: no sentence to measure with".encode() in done.stderr


@pytest.mark.parametrize(
    ("data", "status", "message"),
    [
        (b"1\ta\n\n", 65, b"<stdin>:1: 2 columns, expected 10"),
        (b"", 65, b"no sentence to train on"),
        (block(("a", "a", "X", 0, "top")), 65, b"<stdin>:1: HEAD 0 and DEPREL root go together"),
        (block(("a", "a", "X", 0, "root")), 65, b"UDPipe: "),
    ],
)
def test_data_that_cannot_train_are_refused(run, tmp_path, data, status, message):
    done = run("parser", "train", "-q", "-o", tmp_path / "m", *QUICK, "-", stdin=data)
    assert done.returncode == status
    assert message in done.stderr
    assert not os.listdir(tmp_path)


def test_a_crash_of_the_library_is_one_line(run, tiny_treebank, tmp_path):
    options = ["--tokenizer-options=none", QUICK[1], "--parser-options=hidden_layer=0"]
    done = run("parser", "train", "-q", "-o", tmp_path / "m", *options, "-", stdin=tiny_treebank)
    assert done.returncode == 74
    assert done.stderr.startswith(b"synmt parser train: the training process was ended by SIGSEGV")
    assert done.stderr.count(b"\n") == 1
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_ends_training_and_its_child(tiny_treebank, tmp_path, number):
    many = "--tokenizer-options=dimension=16;epochs=999;batch_size=10;segment_size=10"
    command = [sys.executable, "-m", "synmt_cli", "parser", "train", "train", "-o", "m", many]
    (tmp_path / "train").write_bytes(tiny_treebank)
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, bufsize=0) as process:
        while b"Epoch 1" not in (line := process.stderr.readline()):
            assert line
        (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.send_signal(number)
        before = time.monotonic()
        process.communicate(timeout=20)
    assert process.returncode == (-9 if number == signal.SIGKILL else 128 + number)
    while running(child) and time.monotonic() - before < 10:
        time.sleep(0.05)
    assert not running(child)
    assert not (tmp_path / "m").exists()
    assert number == signal.SIGKILL or os.listdir(tmp_path) == ["train"]


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_an_output_that_cannot_be_created_is_known_before_training(run, tiny_treebank):
    done = run("parser", "train", "-", "-o", "/dev/null/x", stdin=tiny_treebank)
    assert (done.returncode, done.stderr.count(b"\n")) == (73, 1)
