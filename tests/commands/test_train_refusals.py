"""Training that is asked for what it cannot do: it says what differs, or keeps to stated limits."""

from __future__ import annotations

import json
import os
import signal

import pytest
from support.run_folders import check_whole, last_step

from synmt_cli.core.run import tensors

pytestmark = pytest.mark.slow


def refused(done, *words, status=78):
    message = done.stderr.decode()
    assert done.returncode == status, message
    assert all(word in message for word in words), message
    assert all(line.startswith("synmt train: ") for line in message.splitlines())


# --- resuming -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "then", "words"),
    [
        ((), ("--set", "model.encoder_layers=2"), ("model.encoder_layers = 1, not 2",)),
        ((), ("--set", "model.norm=post"), ("model.norm = 'pre', not 'post'",)),
        ((), ("--set", "training.lr=0.5"), ("training.lr = 0.003, not 0.5",)),
        ((), ("--set", "training.accumulate=3"), ("training.accumulate = 1, not 3",)),
        ((), ("--seed", "3"), ("training.seed = 12345, not 3",)),
        ((), ("--variant", "pascal"), ("variant = 'vanilla', not 'pascal'",)),
        (("gps",), ("--variant", "gps+tags"), ("variant = 'gps', not 'gps+tags'",)),
        (("gps+tags",), ("--variant", "gps"), ("variant = 'gps+tags', not 'gps'",)),
        (
            ("pascal",),
            ("--variant", "pascal", "--set", "pascal.heads=1"),
            ("pascal.heads = 2, not 1",),
        ),
    ],
)
def test_another_size_or_feature_set_is_refused(train, tmp_path, first, then, words):
    variant = ("--variant", *first) if first else ()
    train("--max-steps", 1, *variant, status=0)
    before = check_whole(tmp_path / "r")
    refused(train("--max-steps", 2, *then), *words)
    assert check_whole(tmp_path / "r") == before
    train("--max-steps", 2, *variant, status=0)


def test_what_is_refused_leaves_the_cache_of_the_run(train, tmp_path, example_folder):
    """Otherwise the next start would have to read records again, from files that may be large."""
    train("--variant", "pascal", "--max-steps", 1, status=0)
    index = tmp_path / "r/cache/index.json"
    before = index.read_bytes()
    longest = ("--variant", "pascal", "--set", "training.max_length=50")
    refused(train("--max-steps", 2, *longest), "training.max_length = 256, not 50")
    refused(train("--max-steps", 2, "--variant", "gps"), "variant = 'pascal', not 'gps'")
    other = ("--train", example_folder / "dev.jsonl", "--variant", "pascal", "--max-steps", 2)
    refused(train.only(*other), "with other training records")
    assert index.read_bytes() == before


def test_a_dry_run_goes_by_the_run_that_it_names(train, tmp_path):
    """It says what the command would do: go on as the run began, or refuse it."""
    train("--preset", "small", "--max-steps", 1, status=0)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    done = train("--preset", "auto", "--max-steps", 1, "--dry-run", status=0)
    assert b"preset small: as this run began" in done.stderr
    refused(train("--preset", "small", "--dry-run", "--set", "training.lr=0.5"), "training.lr = ")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_signal_ends_a_dry_run_at_once(train):
    """It has nothing to save."""
    big = ("--set", "model.d_model=1024", "--set", "model.encoder_layers=60")
    process = train.start(*big, "--set", "max_steps=9", "--dry-run")
    assert process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130


@pytest.mark.parametrize("option", ["--train", "--dev"])
def test_records_from_a_pipe_are_refused_whatever_reads_them(
    train, tmp_path, example_folder, option
):
    os.mkfifo(tmp_path / "pipe")
    good = {one: example_folder / f"{one[2:]}.jsonl" for one in ("--train", "--dev")}
    for how in (("--dry-run",), ("--max-steps", 1)):
        files = [word for pair in (good | {option: tmp_path / "pipe"}).items() for word in pair]
        refused(train.only(*files, *how), "training reads its records more than once", status=2)


def test_processes_of_torchrun_start_no_others(run):
    torchrun = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    done = run("train", "--train", "x", "--run", "r", "--nproc", 2, env=torchrun)
    refused(done, "torchrun has started them already", status=2)


def test_settings_that_exclude_each_other_are_refused_before_anything_is_read(train, tmp_path):
    (tmp_path / "bad.jsonl").write_text("no record")
    both = ("--set", "training.shard=true", "--set", "training.compile=true")
    done = train.only("--train", tmp_path / "bad.jsonl", "--nproc", 2, *both)
    refused(done, "training.compile does not go with training.shard")
    assert done.stderr.count(b"\n") == 1


def test_other_records_are_refused_in_words(train, tmp_path, example_folder):
    """The message does not give their digests, which nobody types."""
    records = ("--train", example_folder / "train.jsonl")
    dev = ("--dev", example_folder / "dev.jsonl")
    train.only(*records, *dev, "--max-steps", 1)
    refused(train.only(*records, "--max-steps", 2), "r was trained with dev records; name those")
    other = ("--train", example_folder / "dev.jsonl")
    problem = "r was trained with other training records; name those, or another --run"
    refused(train.only(*other, *dev, "--max-steps", 2), problem)
    problem = "r was trained with other dev records; name those, or another --run"
    refused(train.only(*records, "--dev", records[1], "--max-steps", 2), problem)
    train.only(*records, "--max-steps", 1, "--run", tmp_path / "plain")
    done = train.only(*records, *dev, "--max-steps", 2, "--run", tmp_path / "plain")
    refused(done, "plain was trained without dev records; name none, or another --run")


def test_another_parser_is_refused(train, example_folder, tiny_udpipe):
    train("--max-steps", 1, "--parser", example_folder / "en.udpipe", status=0)
    for other, what in (("--parser", tiny_udpipe), "another parser"), ((), "a parser"):
        problem = f"r was trained with {what}; name that one, or another --run"
        refused(train("--max-steps", 2, *other), problem)


def test_another_vocabulary_is_refused(train, forked, tmp_path, example_folder):
    """The records fit the other vocabulary, so that only the run shows that it is another one."""
    train("--max-steps", 1, status=0)
    other = tmp_path / "other.model"
    text = [example_folder / f"train.{side}" for side in ("en", "de")]
    assert forked("vocab", "train", "--size", 200, "-o", other, *text).returncode == 0
    made = ("--spm", other, "--tgt", text[1], "-o", tmp_path / "other.jsonl")
    assert forked("featurize", *made, example_folder / "train.en.conllu").returncode == 0
    records = ("--train", tmp_path / "other.jsonl", "--dev", tmp_path / "other.jsonl")
    done = train.only(*records, "--spm", other, "--max-steps", 2)
    refused(done, " was trained with ", ", not ")
    assert check_whole(tmp_path / "r") == [1]


# --- configuration --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[model]\nd_ff = 1\nd_ff = 2\n", (":3:", "not TOML")),
        (b"\n[training]\r\nlr = nan\r\n", (":3:", "training.lr")),
        (b"[training]\nlr = inf\n", (":2:", "training.lr")),
        (b"[training]\nlr = -1\n", (":2:", "training.lr")),
        (b"[training]\nbetas = [0.9, 1.0]\n", (":2:", "training.betas")),
        (b"[training]\nseed = -1\n", (":2:", "training.seed")),
        (b"[training]\nbatch_tokens = 0\n", (":2:", "training.batch_tokens")),
        (b"[training]\nlr = 1979-05-27\n", (":2:", "training.lr")),
        (b"[model]\ndropout = [[0.1]]\n", (":2:", "model.dropout")),
        (b"model = 3\n", (":1:", "model")),
        (b'variant = "pascal"\n\ntraining.lr = "x"\n', (":3:", "training.lr")),
        (b'\n\ntraining = { lr = "x" }\n', (":3:", "training.lr")),
        (b'[model]\ntraining.lr = 1\n\n[training]\nlr = "x"\n', (":2:", "model.training")),
        (b"[[model]]\nd_ff = 3\n", (":1:", "model")),
        (b'[model]\n"d\\nff" = 3\n', (":2:",)),
        (b"\xff\xfe[\x00", ("UTF-8",)),
        (b"[model]\n# \xff\n", ("UTF-8",)),
    ],
)
def test_a_wrong_configuration_is_refused_with_file_line_and_key(train, tmp_path, content, words):
    (tmp_path / "c.toml").write_bytes(content)
    refused(train("--config", tmp_path / "c.toml"), "c.toml", *words)
    assert not (tmp_path / "r").exists()


def test_a_configuration_that_cannot_be_read_is_named(train, tmp_path):
    refused(train("--config", tmp_path / "none.toml"), "none.toml", status=66)
    refused(train("--config", tmp_path), str(tmp_path), status=66)


# --- losses and lengths ---------------------------------------------------------------------


def test_a_loss_that_is_no_number_keeps_what_was_saved(train, tmp_path):
    """The rate rises by 10,000 with each step: the first of them is sound."""
    steep = ("--set", "training.lr=1e13", "--set", "training.initial_lr=1e-7")
    steep += ("--set", "training.warmup=1000000000", "--set", "training.clip_norm=0")
    steep += ("--set", "training.save_every=1", "--set", "training.validate_every=1")
    done = train("--max-steps", 99, *steep)
    refused(done, "at step")
    run = tmp_path / "r"
    saved = check_whole(run)
    assert saved
    paths = [run / f"checkpoints/step-{step}/weights.safetensors" for step in saved]
    for path in [*paths, *run.glob("model.safetensors")]:
        assert all(value.isfinite().all() for value in tensors.read(path)[0].values())
    refused(train("--max-steps", 99, *steep), "at step")
    assert check_whole(run) == saved


def long_record(fields, n):
    """The record with its sentence n times on both sides."""
    words = len(fields["words"])
    many = {name: fields[name] * n for name in ("words", "spans", "deprels", "upos", "pieces")}
    many["heads"] = [h + words * i if h >= 0 else -1 for i in range(n) for h in fields["heads"]]
    many["piece_word"] = [w + words * i for i in range(n) for w in fields["piece_word"]]
    many["sents"] = [words * i for i in range(n)]
    return {**fields, **many, "tgt_pieces": fields["tgt_pieces"] * n}


def without_trees(records, n):
    """Records of which the first n have no tree."""
    tree = {"words", "spans", "heads", "deprels", "upos", "sents", "piece_word"}
    for i, line in enumerate(records.read_bytes().splitlines()):
        fields = json.loads(line)
        kept = {name: value for name, value in fields.items() if i >= n or name not in tree}
        yield json.dumps(kept).encode() + b"\n"


@pytest.mark.parametrize("variant", ["pascal", "sisa", "rel"])
def test_a_variant_that_reads_trees_is_not_trained_without_any(
    train, tmp_path, example_folder, variant
):
    records = tmp_path / "plain.jsonl"
    records.write_bytes(b"".join(without_trees(example_folder / "train.jsonl", 1000)))
    done = train("--max-steps", 1, "--variant", variant, records=records)
    if variant == "rel":
        assert (done.returncode, b"no tree" in done.stderr) == (0, False)
    else:
        problem = f"{variant} reads trees, and none of 200 records has one"
        refused(done, f"{records}: {problem}", status=65)
        assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(("variant", "refuses"), [("pascal", True), ("sisa", False)])
def test_dev_needs_trees_where_translation_does(train, tmp_path, example_folder, variant, refuses):
    dev = tmp_path / "plain.jsonl"
    dev.write_bytes(b"".join(without_trees(example_folder / "dev.jsonl", 1000)))
    files = ("--train", example_folder / "train.jsonl", "--dev", dev)
    done = train.only(*files, "--max-steps", 1, "--variant", variant)
    assert done.returncode == (65 if refuses else 0)
    assert (b"none of 12 records has one" in done.stderr) == refuses


def test_pairs_without_a_tree_are_counted(train, tmp_path, example_folder):
    records = tmp_path / "some.jsonl"
    records.write_bytes(b"".join(without_trees(example_folder / "train.jsonl", 3)))
    for step in (1, 2):  # read, then from the cache
        done = train("--max-steps", step, "--variant", "pascal", records=records, status=0)
        assert b"warning: 3 of 200 training pairs have no tree" in done.stderr


def test_pairs_beyond_the_limit_are_left_out_and_counted(train, tmp_path, example_folder):
    lines = (example_folder / "train.jsonl").read_bytes().splitlines()
    fields = json.loads(lines[0])
    added = [long_record(fields, 400), {**fields, "tgt_pieces": fields["tgt_pieces"] * 400}]
    content = b"\n".join([*lines, *(json.dumps(one).encode() for one in added)])
    (tmp_path / "long.jsonl").write_bytes(content)
    done = train("--max-steps", 3, records=tmp_path / "long.jsonl", status=0)
    assert b"%d training pairs" % len(lines) in done.stderr
    assert b"2 training records left out: " in done.stderr
    done = train(
        *("--max-steps", 3, "--set", "training.max_length=2"),
        records=tmp_path / "long.jsonl",
        run="none",
    )
    refused(done, "long.jsonl", f"{len(lines) + 2} longer than 2", status=65)
    assert last_step(tmp_path / "none") == 0


def test_translation_gives_a_line_for_each_line_however_long(train, forked, tmp_path):
    """Lines of 5,000 words, of one word of 20,000 letters, of nothing, and of bare spaces."""
    train("--max-steps", 1, status=0)
    text = [b"dog " * 5000, b"", b"x" * 20_000, b"The dog sleeps.", b" ", b"dog"]
    options = ("-m", tmp_path / "r", "--threads", 1, "--beam", 2, "--max-output-len", 4)
    done = forked("translate", *options, stdin=b"\n".join(text) + b"\n")
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.count(b"\n") == len(text)
    assert done.stdout.split(b"\n")[1] == b""
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("limit", ["0", "0.0h", "-1", "1 h", "nan"])
def test_a_time_limit_is_above_0(run, limit):
    done = run("train", "--train", "x", "--run", "r", f"--time-limit={limit}")
    assert done.returncode == 2
    assert b"expected a time above 0" in done.stderr
