"""`synmt init` as a user runs it: the folder it writes, and what make does there."""

import os
import re
import subprocess

import pytest
from support.program import shell

SMALL = """
[model]
d_model = 16
d_ff = 16
n_heads = 2
encoder_layers = 1
decoder_layers = 1
[training]
max_steps = 2
validate_every = 2
batch_tokens = 300
precision = "fp32"
metric = "loss"
"""


@pytest.fixture(scope="module")
def given(example_folder, tmp_path_factory, forked):
    """A folder with 200 pairs, in files whose names have spaces, and parsers of both languages."""
    folder = tmp_path_factory.mktemp("given text")
    script = f"""
    head -200 {example_folder}/train.en > 'my text.en'
    head -200 {example_folder}/train.de | gzip > 'my text.de.gz'
    cp {example_folder}/en.udpipe 'my parser'
    synmt parser train --preset quick -o de.udpipe {example_folder}/test.de.conllu
    """
    done = shell(script, folder, first=forked.folder)
    assert done.returncode == 0, done.stderr.decode()
    return folder


TEXT = ("--src", "my text.en", "--tgt", "my text.de.gz")
PARSERS = ("--parser", "my parser", "--tgt-parser", "de.udpipe")


def make(folder, forked, *arguments):
    done = shell(f"make {' '.join(arguments)}", folder, timeout=250, first=forked.folder)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    return done.stdout.decode()


@pytest.mark.slow
def test_make_goes_from_text_to_scores_and_makes_again_what_changed(run, forked, given, tmp_path):
    variants = "vanilla,pascal,linearized,multitask,mixed-encoder"
    folder = tmp_path / "e x"
    done = run("init", folder, *TEXT, *PARSERS, "--variants", variants, "--seeds", 1, cwd=given)
    assert done.returncode == 0
    assert b"20 pairs each for dev and test, chosen by a hash" in done.stderr
    (folder / "config.toml").write_text(SMALL)
    make(folder, forked, "PRESET=tiny", "VOCABULARY=290", "BEAM=2")
    scores = (folder / "scores.txt").read_text()
    for variant in variants.split(","):
        assert variant in scores
        assert len((folder / f"output/{variant}.1.txt").read_bytes().split(b"\n")) == 21
    judged = (folder / "trees.txt").read_text()
    assert re.fullmatch(r"system\tUAS\tLAS\nlinearized.1\t[0-9.]+\t[0-9.]+\n", judged)
    report = (folder / "report.html").read_text()
    assert report.count("<svg") > 20  # figures, and each tree
    tuned = re.search(r'<section id="tuned">.*?</section>', report, re.DOTALL).group()
    assert re.findall(r"<bdi>(.*?)</bdi>", tuned) == ["vanilla", "linearized"]
    assert "Weight of syntax by layer" in report
    assert "Attention in segment" in report
    assert "Nothing to be done" in make(folder, forked)
    # A training goes on whose records are only newer; one whose settings have changed makes way.
    (folder / "data/train.jsonl").touch()
    assert (
        make(folder, forked, "runs/vanilla.1.trained", "PRESET=tiny").count("train --preset") == 1
    )
    assert not (folder / "runs/old").exists()
    (folder / "config.toml").write_text(SMALL.replace("max_steps = 2", "max_steps = 3"))
    make(folder, forked, "PRESET=tiny", "BEAM=2", "output/vanilla.1.txt")
    assert [name.rsplit(".", 1)[0] for name in os.listdir(folder / "runs/old")] == ["vanilla.1"]
    assert "step 3" in (folder / "runs/vanilla.1.log").read_text()


def test_without_trees_no_parser_is_needed_and_sets_may_be_given(run, forked, given, tmp_path):
    for name in ("dev.en", "dev.de"):
        (tmp_path / name).write_text("A dog sleeps.\n" * 2)
    sets = [f"--{s}-{side}" for s in ("dev", "test") for side in ("src", "tgt")]
    files = [tmp_path / "dev.en", tmp_path / "dev.de"] * 2
    options = [x for pair in zip(sets, files, strict=True) for x in pair]
    folder = tmp_path / "plain"
    done = run("init", folder, *TEXT, *options, "--variants", "vanilla,rel", cwd=given)
    assert done.returncode == 0
    script = make(folder, forked, "-n")
    assert "synmt parse" not in script
    assert "synmt split" not in script
    assert "featurize --from text" in script
    assert script.count("synmt train --preset") == 6
    make(folder, forked, "data", "VOCABULARY=200")
    assert len((folder / "data/dev.jsonl").read_bytes().splitlines()) == 2


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        ([*TEXT, "--variants", "pascal"], 2, "pascal needs trees of the source: give --parser"),
        ([*TEXT, *PARSERS[:2], "--variants", "gcn"], 2, "gcn needs trees of the target"),
        ([*TEXT, "--variants", "pascl"], 2, "no variant 'pascl'; did you mean 'pascal'"),
        ([*TEXT, "--variants", "rel,rel"], 2, "--variants names 'rel' twice"),
        ([*TEXT, "--variants", ""], 2, "--variants names no variant"),
        ([*TEXT, "--variants", "rel", "--dev-src", "my text.en"], 2, "--dev-tgt is missing"),
        (["--src", "my text.en", "--tgt", "./my text.en"], 2, "is both sides of the train set"),
        (["--src", "my text.en", "--tgt", "none"], 66, "cannot read none"),
        (["--src", "my text.en", "--tgt", "."], 66, "cannot read ."),
        (["--src", "my text.en", "--tgt", "short"], 65, "short: 2 lines, but there are 200"),
        (["--src", "empty", "--tgt", "also empty"], 65, "empty: no lines"),
        (["--src", "short", "--tgt", "short too"], 2, "2 pairs are too few to split"),
        ([*TEXT, "--parser", "short", "--variants", "pascal"], 69, "short"),
        ([*TEXT, "--preset", "tinny"], 2, "tinny"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(run, given, options, status, message):
    for name, text in {
        "short": "a\nb\n",
        "short too": "c\nd\n",
        "empty": "",
        "also empty": "",
    }.items():
        (given / name).write_text(text)
    if "--variants" not in options:
        options = [*options, "--variants", "vanilla"]
    done = run("init", "bad", *options, cwd=given)
    assert done.returncode == status
    assert message in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    assert not (given / "bad").exists()
    assert not [path for path in given.iterdir() if path.name.startswith(".")]


def test_a_folder_that_exists_stays_as_it_is(run, given, tmp_path):
    (tmp_path / "here").mkdir()
    done = run("init", tmp_path / "here", *TEXT, "--variants", "vanilla", cwd=given)
    assert done.returncode == 73
    assert b"it already exists" in done.stderr
    assert not os.listdir(tmp_path / "here")


def test_folders_above_are_made(run, given, tmp_path):
    done = run("init", tmp_path / "not yet/here", *TEXT, "--variants", "vanilla", cwd=given)
    assert done.returncode == 0
    assert (tmp_path / "not yet/here/Makefile").is_file()
    (tmp_path / "file").touch()
    done = run("init", tmp_path / "file/here", *TEXT, "--variants", "vanilla", cwd=given)
    assert done.returncode == 73
    assert done.stderr.count(b"\n") == 1


def test_an_older_make_is_refused(run, given, tmp_path):
    folder = tmp_path / "old make"
    run("init", folder, *TEXT, "--variants", "vanilla", cwd=given)
    command = ["make", "-n", "-C", folder, ".FEATURES="]
    done = subprocess.run(command, capture_output=True, check=False)
    assert b"this needs GNU make 4.3 or newer" in done.stderr
