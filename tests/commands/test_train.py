"""`synmt train` as a user runs it: resuming, stopping, refusing."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from functools import partial

import pytest
from safetensors.numpy import load_file
from support.event_files import events
from support.program import ENVIRONMENT
from support.run_folders import wait_for

from synmt_cli import cli, console
from synmt_cli.core.run import device
from synmt_cli.core.run.resuming import LATER

SIZE = ["--preset", "tiny", "--threads", "1"]
for small in ("d_model=16", "d_ff=16", "encoder_layers=2", "decoder_layers=1", "batch_tokens=500"):
    SIZE += ["--set", small]


@pytest.fixture
def records(example_folder):
    return ["--train", example_folder / "train.jsonl", "--dev", example_folder / "dev.jsonl"]


@dataclass
class Done:
    returncode: int
    stderr: bytes


@pytest.fixture
def here(capfd):
    """Runs synmt in this process, which spares each call the loading of torch."""

    def start(*arguments):
        capfd.readouterr()
        status = cli._run([str(argument) for argument in arguments])
        return Done(status, capfd.readouterr().err.encode())

    yield start
    console.set_level(console.NORMAL)


@pytest.fixture
def train(here, records, tmp_path):
    """`train("name", "--max-steps", 3)` trains in tmp_path/name and returns what happened."""

    def start(name, *options):
        return here("train", *SIZE, "-q", *records, "--run", tmp_path / name, *options)

    return start


def digest(run_folder, step):
    return load_file(run_folder / f"checkpoints/step-{step}/weights.safetensors")


def same(a, b):
    return a.keys() == b.keys() and all((a[k] == b[k]).all() for k in a)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["vanilla", "pascal"])
def test_a_resumed_run_is_bit_equal_to_one_that_never_stopped(train, tmp_path, variant):
    options = ["--variant", variant, "--set", "save_every=7", "--set", "validate_every=5"]
    if variant == "pascal":
        options += ["--set", "pascal.ignore=0.5"]
    assert train("whole", "--max-steps", 12, *options).returncode == 0
    for steps in (4, 9, 12):
        assert train("parts", "--max-steps", steps, *options).returncode == 0
    assert same(digest(tmp_path / "whole", 12), digest(tmp_path / "parts", 12))
    assert not same(digest(tmp_path / "whole", 12), digest(tmp_path / "whole", 10))


def test_a_run_of_an_earlier_version_goes_on_as_it_began(train, tmp_path):
    """Newer settings are not in its config.toml, and the default of the seed was another."""
    config = tmp_path / "r/config.toml"
    assert train("r", "--seed", 1, "--max-steps", 2).returncode == 0
    now = config.read_text()
    newer = {key.partition(".")[2] for key in LATER}
    lines = [line for line in now.splitlines() if line.split(" = ")[0] not in newer]
    config.write_text("\n".join(lines))
    refused = train("r", "--seed", 12345, "--max-steps", 3)
    assert b"training.seed = 1, not 12345" in refused.stderr
    assert train("r", "--max-steps", 3).returncode == 0
    earlier = {**tomllib.loads(now)["training"], "max_steps": 3, "max_epochs": 0}
    earlier |= {"transition_weight": 1.0, "transition_smoothing": 0.1}
    assert tomllib.loads(config.read_text())["training"] == earlier
    assert train("straight", "--seed", 1, "--max-steps", 3).returncode == 0
    assert same(digest(tmp_path / "r", 3), digest(tmp_path / "straight", 3))


def test_a_finished_run_is_left_alone(train, tmp_path):
    assert train("r", "--max-steps", 2).returncode == 0
    before = (tmp_path / "r/model.safetensors").stat().st_mtime_ns
    assert train("r", "--max-steps", 2).returncode == 0
    assert (tmp_path / "r/model.safetensors").stat().st_mtime_ns == before


def test_a_run_goes_on_with_its_own_copy_of_a_vocabulary_that_is_gone(here, records, tmp_path):
    for file in (records[1], records[3], records[1].parent / "spm.model"):
        shutil.copy(file, tmp_path)
    own = ["--train", tmp_path / "train.jsonl", "--dev", tmp_path / "dev.jsonl"]
    command = ["train", *SIZE, "-q", *own, "--run", tmp_path / "r", "--max-steps"]
    assert here(*command, 2).returncode == 0
    (tmp_path / "spm.model").unlink()
    assert here(*command, 3).returncode == 0
    other = here(*command[:-3], "--run", tmp_path / "s", "--max-steps", 2)
    assert other.returncode == 78
    assert b"no sentencepiece model with fingerprint" in other.stderr


def test_a_damaged_model_can_be_written_again(train, tmp_path):
    assert train("r", "--max-steps", 2).returncode == 0
    model = tmp_path / "r/model.safetensors"
    whole = model.read_bytes()
    model.write_bytes(whole + b"x")
    done = train("r", "--max-steps", 3)
    assert done.returncode == 65
    assert b"without this file the same command writes it again" in done.stderr
    model.unlink()
    assert train("r", "--max-steps", 2).returncode == 0
    assert model.read_bytes() == whole


def test_a_run_that_has_more_updates_than_it_may_says_so(here, records, tmp_path):
    run = tmp_path / "r\nr"
    model = run / "model.safetensors"
    for updates, epochs, is_past in ((9, 2, False), (9, 2, False), (1, 2, True), (9, 1, True)):
        before = model.read_bytes() if model.exists() else b""
        limits = ["--max-steps", updates, "--set", f"training.max_epochs={epochs}"]
        limits += ["--set", "training.batch_tokens=4096"]  # two updates an epoch
        done = here("train", *SIZE, *records, "--run", run, *limits)
        assert done.returncode == 0
        assert (b"r\\nr is past training.max_" in done.stderr) == is_past
        assert not before or model.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "has", "is_emulated"),
    [("fp32", False, False), ("bf16", True, False), ("bf16", False, True)],
)
def test_bf16_where_there_is_none_says_that_it_is_slow(
    here, records, tmp_path, monkeypatch, name, has, is_emulated
):
    monkeypatch.setattr(device, "has_bf16", lambda _: has)
    options = ["--precision", name, "--device", "cpu"]
    for place in (["--dry-run"], ["--run", tmp_path / "r", "--max-steps", 1]):
        done = here("train", *SIZE, *records, *options, *place)
        told = b"this device has no bf16 and emulates it" in done.stderr
        assert (done.returncode, told) == (0, is_emulated)


def test_a_run_directory_holds_what_it_promises(train, tmp_path):
    assert train("r", "--max-steps", 2).returncode == 0
    names = {path.name for path in (tmp_path / "r").iterdir()}
    promised = {"config.toml", "spm.model", "labels.json", "model.safetensors", "checkpoints"}
    assert names == promised | {"metrics.jsonl", "env.json", "cache", ".lock"}
    lines = (tmp_path / "r/metrics.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["event"] == "dev"
    assert "nsubj" in json.loads((tmp_path / "r/labels.json").read_text())


def test_a_run_remembers_on_what_it_was_started(train, tmp_path):
    path = tmp_path / "r/env.json"
    assert train("r", "--max-steps", 1).returncode == 0
    first = json.loads(path.read_text())
    for steps in (2, 3):
        assert train("r", "--max-steps", steps).returncode == 0
    last = json.loads(path.read_text())
    assert last["earlier"][0] == first
    assert [len(one) for one in last["earlier"]] == [len(first)] * 2
    path.unlink()
    assert train("r", "--max-steps", 4).returncode == 0
    assert json.loads(path.read_text())["earlier"] == []


def test_tensorboard_gets_the_whole_course_when_a_run_resumes(train, tmp_path):
    for steps in (2, 4):
        board = tmp_path / f"board/{steps}"
        assert train("r", "--max-steps", steps, "--tensorboard", board).returncode == 0
    (file,) = board.iterdir()
    lines = (tmp_path / "r/metrics.jsonl").read_text().splitlines()
    _, _, *told = events(file)
    assert [one.step for one in told] == [json.loads(line)["step"] for line in lines]
    assert {one.step for one in told} >= {2, 4}
    (tmp_path / "file").write_bytes(b"")
    done = train("s", "--max-steps", 2, "--tensorboard", tmp_path / "file/board")
    assert done.returncode == 73
    assert not (tmp_path / "s").exists()  # nothing was read yet
    assert train("t", "--max-steps", 1, "--tensorboard", tmp_path / "t/board").returncode == 0
    assert len([*(tmp_path / "t/board").iterdir()]) == 1


def test_a_start_that_fails_leaves_no_folder_of_tensorboard_in_the_run(train, tmp_path):
    """It would look like someone else's, and the same command would be refused."""
    board = tmp_path / "r/board"
    options = ("--max-steps", 1, "--tensorboard", board)
    assert train("r", *options, "--dev", tmp_path / "none").returncode == 66
    assert not board.exists()
    assert train("r", *options).returncode == 0


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        *(pytest.param(one, marks=pytest.mark.long) for one in (signal.SIGINT, signal.SIGHUP)),
    ],
)
def test_a_signal_saves_and_the_run_goes_on_from_there(train, records, tmp_path, number):
    command = [sys.executable, "-m", "synmt_cli", "train", *SIZE, "-q", *records]
    command += ["--run", tmp_path / "r", "--max-steps", "100000", "--set", "validate_every=9999"]
    with subprocess.Popen(
        list(map(str, command)),
        stderr=subprocess.PIPE,
        env={**os.environ, **ENVIRONMENT},
        preexec_fn=partial(signal.signal, signal.SIGHUP, signal.SIG_DFL),  # unlike under nohup
    ) as process:
        wait_for((tmp_path / "r/config.toml").exists)
        time.sleep(1)
        process.send_signal(number)
        assert process.wait(30) == 75
        assert b"stopped at step" in process.stderr.read()
    (saved,) = (tmp_path / "r/checkpoints").iterdir()
    step = int(saved.name.removeprefix("step-"))
    done = train("r", "--max-steps", step + 1, "--set", "validate_every=9999")
    assert done.returncode == 0
    assert (tmp_path / f"r/checkpoints/step-{step + 1}").is_dir()


def test_under_nohup_a_closed_terminal_changes_nothing():
    code = """
import os, signal
from synmt_cli import signals
signal.signal(signal.SIGHUP, signal.SIG_IGN)
signals.install()
with signals.requested() as request:
    os.kill(os.getpid(), signal.SIGHUP)
    assert not request
os.kill(os.getpid(), signal.SIGHUP)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_time_limit_is_kept_and_ends_with_75(train):
    start = time.monotonic()
    done = train("r", "--max-steps", 100000, "--time-limit", "1s")
    assert done.returncode == 75
    assert b"time limit" in done.stderr
    assert time.monotonic() - start < 60


def test_processes_that_read_records_make_the_same_numbers(train, tmp_path):
    for folder, n in (("one", 1), ("two", 2)):
        assert train(folder, "--max-steps", 1, "--num-workers", n).returncode == 0
    one, two = (sorted((tmp_path / folder / "cache").rglob("*")) for folder in ("one", "two"))
    assert [path.name for path in one] == [path.name for path in two]
    numbers = [path for path in one if path.is_file() and path.suffix != ".json"]
    assert numbers
    for path in numbers:
        other = tmp_path / "two" / path.relative_to(tmp_path / "one")
        assert other.read_bytes() == path.read_bytes(), path.name


def test_a_second_writer_is_refused_and_a_dead_ones_lock_is_not(train, records, tmp_path):
    import fcntl

    (tmp_path / "r").mkdir()
    with open(tmp_path / "r/.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = train("r", "--max-steps", 1)
        assert done.returncode == 73
        assert b"another" in done.stderr
    assert train("r", "--max-steps", 1).returncode == 0


def test_a_loss_that_is_no_number_stops_with_its_step(train, tmp_path):
    done = train("r", "--max-steps", 9, "--set", "lr=1e30", "--set", "warmup=0")
    assert done.returncode == 78
    assert b"at step 2 " in done.stderr
    assert not list((tmp_path / "r").rglob("*.safetensors"))


def test_a_parser_is_a_model_and_a_second_vocabulary_needs_a_first(train, tmp_path):
    (tmp_path / "text").write_bytes(b"no model\n")
    done = train("r", "--max-steps", 1, "--parser", tmp_path / "text")
    assert (done.returncode, b"text: not a UDPipe 1 model" in done.stderr) == (65, True)
    done = train("r", "--max-steps", 1, "--parser", tmp_path / "none")
    assert done.returncode == 66
    done = train("r", "--max-steps", 1, "--tgt-spm", tmp_path / "none")
    assert (done.returncode, b"--tgt-spm needs --spm" in done.stderr) == (2, True)
    assert not (tmp_path / "r").exists()


def test_a_run_in_which_nothing_was_saved_may_be_begun_otherwise(train, tmp_path):
    done = train("r", "--max-steps", 2, "--set", "lr=1e30", "--set", "warmup=0")
    assert done.returncode == 78  # the loss is not a number
    assert not (tmp_path / "r" / "model.safetensors").exists()
    assert train("r", "--max-steps", 1).returncode == 0


def test_a_damaged_checkpoint_is_refused_by_name(train, tmp_path):
    assert train("r", "--max-steps", 1).returncode == 0
    path = tmp_path / "r/checkpoints/step-1/optimizer.safetensors"
    damaged = bytearray(path.read_bytes())
    damaged[-9] ^= 4
    path.write_bytes(damaged)
    done = train("r", "--max-steps", 2)
    assert done.returncode == 65
    assert b"optimizer.safetensors" in done.stderr


def test_a_vocabulary_that_is_not_the_records_is_refused(train, here, tmp_path, example_folder):
    other = tmp_path / "other.model"
    made = here("vocab", "train", "--size", 200, "-o", other, example_folder / "train.de")
    assert made.returncode == 0
    done = train("r", "--max-steps", 1, "--spm", other)
    assert done.returncode == 78
    assert b"train.jsonl:1:" in done.stderr


def test_what_is_not_ok_is_left_out_and_counted(run, tmp_path, example_folder):
    lines = (example_folder / "train.jsonl").read_bytes().splitlines(keepends=True)
    fields = json.loads(lines[0])
    failed = {**fields, "status": "failed", "reason": "x"}
    lines[0] = json.dumps(failed).encode() + b"\n"
    (tmp_path / "t.jsonl").write_bytes(b"".join(lines))
    spm = example_folder / "spm.model"
    options = ["--train", tmp_path / "t.jsonl", "--spm", spm, "--run", tmp_path / "r"]
    done = run("train", *SIZE, *options, "--dry-run")
    assert done.returncode == 0
    assert b"1 training records left out: failed" in done.stderr
    assert b"parameters\t" in done.stdout
    assert not (tmp_path / "r").exists()


def test_a_folder_that_cannot_be_made_fails_before_the_first_step(train):
    done = train("/proc/x/y")
    assert done.returncode == 73
    done = train("/dev/null/x")
    assert done.returncode == 73


def test_a_folder_that_is_something_else_is_not_touched(train, tmp_path):
    (tmp_path / "r").mkdir()
    (tmp_path / "r/thesis.tex").write_text("years")
    assert train("r", "--max-steps", 1).returncode == 73
    assert [p.name for p in (tmp_path / "r").iterdir()] == ["thesis.tex"]


def test_what_a_killed_run_left_is_tidied_and_taken_up(train, tmp_path):
    (tmp_path / "r").mkdir()
    (tmp_path / "r/.lock").touch()
    for name in ("spm.model", "labels.json", ".config.toml.99.tmp"):
        (tmp_path / "r" / name).write_text("half")
    assert train("r", "--max-steps", 1).returncode == 0
    checkpoints = tmp_path / "r/checkpoints"
    (checkpoints / "step-1").rename(checkpoints / ".step-1.99.old")
    (checkpoints / ".step-2.99.tmp").mkdir()
    assert train("r", "--max-steps", 2).returncode == 0
    assert sorted(p.name for p in checkpoints.iterdir()) == ["step-1", "step-2"]
    assert not list((tmp_path / "r").glob(".*.tmp"))


@pytest.mark.long
def test_a_full_disk_keeps_what_was_saved(train, records, tmp_path):
    assert train("r", "--max-steps", 1).returncode == 0
    size = (tmp_path / "r/checkpoints/step-1/optimizer.safetensors").stat().st_size
    arguments = [*SIZE, "-q", *records, "--run", tmp_path / "r", "--max-steps", 2]
    line = " ".join(map(str, [sys.executable, "-m synmt_cli train", *arguments]))
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f {size // 2048}; {line}"], capture_output=True, check=False
    )
    assert 1 <= done.returncode <= 125, done.stderr
    assert b"Traceback" not in done.stderr
    assert [p.name for p in (tmp_path / "r/checkpoints").iterdir()] == ["step-1"]
    assert train("r", "--max-steps", 2).returncode == 0


@pytest.mark.parametrize("option", [["--device", "tpu"], ["--device", "cuda:77"]])
def test_a_device_that_is_not_there_is_named(train, option):
    assert train("r", *option).returncode == 69


def test_training_without_a_run_is_a_usage_error(here, records):
    done = here("train", *records)
    assert (done.returncode, b"--run DIR is missing (or --dry-run)" in done.stderr) == (2, True)
    done = here("train", "--train", "-", "--run", "x")
    assert (done.returncode, b"reads its records more than once" in done.stderr) == (2, True)


def test_a_parser_is_copied_or_linked(train, example_folder, tmp_path):
    """The copy has the same bytes, a link is an absolute path, and a run may change to it."""
    parser = os.path.relpath(example_folder / "en.udpipe")
    for options, file in (
        ((), "parser.udpipe"),
        (("--parser-link",), example_folder / "en.udpipe"),
    ):
        assert train("r", "--max-steps", 1, "--parser", parser, *options).returncode == 0
        tables = tomllib.loads((tmp_path / "r/config.toml").read_text())
        assert tables["parser"]["file"] == str(file)
    copy = (tmp_path / "r/parser.udpipe").read_bytes()
    assert copy == (example_folder / "en.udpipe").read_bytes()
