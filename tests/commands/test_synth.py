"""`synmt synth` as a user runs it."""

import os
import subprocess
import sys

import pytest
from support.run_folders import wait_for

from synmt_cli.commands import synth
from synmt_cli.io.reading import not_utf8
from synmt_cli.synth.pairs import pairs
from synmt_cli.synth.settings import PHENOMENA, SynthSettings, phenomena

FILES = ["train.de", "train.de.conllu", "train.en", "train.en.conllu"]


def test_writes_four_aligned_files(run, tmp_path):
    done = run("synth", "-n", 120, "--seed", 1, "--out-template", "train.{ext}", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert sorted(os.listdir(tmp_path)) == FILES
    for side in ("en", "de"):
        lines = (tmp_path / f"train.{side}").read_text().split("\n")[:-1]
        trees = (tmp_path / f"train.{side}.conllu").read_text()
        assert len(lines) == 120
        assert [row[9:] for row in trees.split("\n") if row.startswith("# text = ")] == lines
        assert trees.count("\n\n") == trees.count("# sent_id = ") == 120


def test_streams_carry_the_same_pairs(run, tmp_path):
    options = ("-n", 30, "--seed", 4, "--mix", 0.5)
    run("synth", *options, "--out-template", "train.{ext}", cwd=tmp_path)
    table = run("synth", *options).stdout.decode().split("\n")[:-1]
    for column, side in enumerate(("en", "de")):
        text = run("synth", *options, "--side", side, "--format", "text").stdout
        trees = run("synth", *options, "--side", side, "--format", "conllu").stdout
        assert text == (tmp_path / f"train.{side}").read_bytes()
        assert trees == (tmp_path / f"train.{side}.conllu").read_bytes()
        assert [line.split("\t")[column] for line in table] == text.decode().split("\n")[:-1]


@pytest.mark.parametrize(
    ("option", "setting"),
    [
        (("--english-order", "plain"), {"marked": False}),
        (("--particles", "joined"), {"particles": "joined"}),
        (("--extrapose",), {"extrapose": True}),
    ],
)
def test_an_option_is_the_setting_of_its_name(run, option, setting):
    names = "fronting,particle,relative"
    command = ("synth", "-n", 40, "--seed", 4, "--phenomena", names)
    made = pairs(SynthSettings(weights=phenomena(names), **setting), seed=4, n=40)
    lines = [f"{one.english.text}\t{one.german.text}" for one in made]
    assert run(*command, *option).stdout.decode().splitlines() == lines
    assert run(*command).stdout.decode().splitlines() != lines


def test_same_bytes_everywhere(run):
    worlds = [
        {"PYTHONHASHSEED": "0"},
        {"PYTHONHASHSEED": "77", "LC_ALL": "tr_TR.UTF-8", "COLUMNS": "20"},
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "TZ": "Asia/Tokyo", "HOME": "/nowhere"},
    ]
    options = ("-n", 60, "--side", "de", "--format", "conllu", "--unique")
    assert len({run("synth", *options, env=world).stdout for world in worlds}) == 1


def test_a_test_set_apart_from_the_training_set(run, tmp_path):
    options = ("--phenomena", "reflexive", "--mix", 0, "--unique")
    run("synth", "-n", 300, *options, "--out-template", "train.{ext}", cwd=tmp_path)
    apart = ("--exclude", "train.en", "--seed", 2, "--out-template", "test.{ext}")
    assert run("synth", "-n", 300, *options, *apart, cwd=tmp_path).returncode == 0
    for side in ("en", "de"):
        train, test = (
            set((tmp_path / f"{name}.{side}").read_text().split("\n")) - {""}
            for name in ("train", "test")
        )
        assert len(train) == len(test) == 300
        assert not train & test


@pytest.mark.parametrize("form", ["tsv", "text", "conllu", "jsonl"])
def test_sentences_to_exclude_may_have_any_form(run, tmp_path, form):
    few = ("synth", "--phenomena", "stranding", "--mix", "0", "--unique")
    kind = {"jsonl": "conllu"}.get(form, form)
    side = () if form == "tsv" else ("--side", "de")
    taken = run(*few, "-n", 200, *side, "--format", kind).stdout
    if form == "jsonl":
        taken = run("featurize", stdin=taken).stdout
    (tmp_path / "taken").write_bytes(taken)
    lines = run(*few, "-n", 300).stdout.splitlines()
    kinds = ("auto", "text" if form == "tsv" else form)
    for kind in kinds:
        excluded = ("--exclude", "taken", "--exclude-format", kind)
        done = run(*few, "-n", 100, *excluded, cwd=tmp_path)
        assert done.stdout.splitlines() == lines[200:]


def test_both_sentences_of_a_line_are_excluded(run, tmp_path):
    """Both have the number of their line, as `parse --segment split` writes it."""
    few = ("synth", "--phenomena", "stranding", "--mix", "0", "--unique")
    taken = run(*few, "-n", 200, "--side", "de", "--format", "conllu").stdout
    blocks = taken.decode().split("\n\n")[:-1]
    marked = (f"# synmt_line = {i // 2}\n{block}\n\n" for i, block in enumerate(blocks))
    (tmp_path / "two").write_text("".join(marked))
    done = run(*few, "-n", 100, "--exclude", "two", cwd=tmp_path)
    assert done.stdout.splitlines() == run(*few, "-n", 300).stdout.splitlines()[200:]


def test_nothing_is_an_empty_file(run, tmp_path):
    assert run("synth", "-n", 0, "--out-template", "train.{ext}", cwd=tmp_path).returncode == 0
    assert [(tmp_path / name).read_bytes() for name in FILES] == [b""] * 4


@pytest.mark.parametrize("path", ["nowhere/x", "/proc/x/y", "/dev/null/x"])
def test_files_that_cannot_be(run, tmp_path, path):
    done = run("synth", "--out-template", path + ".{ext}", cwd=tmp_path)
    assert done.returncode == 73
    assert done.stderr.startswith(f"synmt synth: cannot create {path}.en: ".encode())
    assert not os.listdir(tmp_path)


def test_all_four_files_or_none(run, tmp_path):
    (tmp_path / "train.de.conllu").mkdir()
    done = run("synth", "--out-template", "train.{ext}", cwd=tmp_path)
    assert done.returncode == 73
    assert os.listdir(tmp_path) == ["train.de.conllu"]


def test_a_full_disk_leaves_nothing(tmp_path):
    command = f"{sys.executable} -m synmt_cli synth -n 3000 --out-template train.{{ext}}"
    line = f"ulimit -f 8; exec {command}"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 74
    assert b"File too large" in done.stderr
    assert not os.listdir(tmp_path)


def test_an_interrupt_leaves_nothing(tmp_path):
    command = [sys.executable, "-m", "synmt_cli", "synth", "-n", "100000000"]
    command += ["--out-template", "x.{ext}"]
    with subprocess.Popen(command, cwd=tmp_path) as process:
        wait_for(lambda: os.listdir(tmp_path))
        process.terminate()
        assert process.wait(10) == 143
    assert not os.listdir(tmp_path)


def test_a_closed_pipe_ends_it(shell, tmp_path):
    done = shell("set +o pipefail; synmt synth -n 100000000 | head -n 1", tmp_path)
    assert done.stdout.count(b"\n") == 1
    assert done.stderr == b""


def test_sentences_to_leave_out_that_cannot_be_read(run, tmp_path):
    (tmp_path / "bad").write_bytes(b"good\n\xff\n")
    done = run("synth", "--exclude", "bad", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (65, b"")
    assert done.stderr.decode() == f"synmt synth: bad:2: {not_utf8(1)}\n"
    assert run("synth", "--exclude", "none", cwd=tmp_path).returncode == 66


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--format", "text"), "--format text needs --side en or de"),
        (("--side", "en"), "--side is for --format text or conllu; tsv has both"),
        (("--out-template", "x.{ext}", "--side", "en"), "--out-template names its files"),
        (("--out-template", "x"), "names a file twice"),
        (("--out-template", ""), "--out-template is empty: leave it out, or give its TEMPLATE"),
        (("--phenomena", "relativ"), "did you mean relative?"),
        (
            ("--phenomena", "plain:nan"),
            "--phenomena plain: the weight must be a number such as 0.5, not 'nan'",
        ),
        (("--min-depth", "3"), "above --depth 2"),
        (("--mix", "1.1"), "expected 0 to 1"),
        (
            ("--phenomena", "particle,stranding", "--mix", "1"),
            "--mix 1 with these --phenomena: no sentence around",
        ),
        (("--exclude-format", "text"), "--exclude-format needs --exclude"),
        (("-n", "-1"), "-n"),
        (
            ("--exclude", "x.en", "--out-template", "x.{ext}"),
            "--out-template would replace an input: x.en",
        ),
    ],
)
def test_usage(run, tmp_path, options, message):
    (tmp_path / "x.en").write_text("kept\n")
    done = run("synth", *options, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.count(b"\n") == 1
    assert message in done.stderr.decode()
    assert os.listdir(tmp_path) == ["x.en"]


def test_help_names_every_phenomenon():
    listed = [
        line.split()[0] for line in synth.synth.__doc__.split("\n") if line.startswith(" " * 6)
    ]
    assert listed == list(PHENOMENA)
