"""Run directories made to harm: one line that names the file, at once, and nothing is touched."""

from __future__ import annotations

import json
import os
import shutil
import time

import pytest
from support.in_process import InProcess
from support.run_folders import Trainings, check_whole, differences

from synmt_cli.io import json_files

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def whole(example_folder, tmp_path_factory, forked):
    """A run directory with two checkpoints, to be copied."""
    folder = tmp_path_factory.mktemp("whole")
    save = ("--set", "training.save_every=1", "--set", "training.validate_every=1")
    Trainings(example_folder, folder, forked)("--max-steps", 2, *save, status=0)
    return folder / "r"


@pytest.fixture
def run(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "r", symlinks=True, copy_function=shutil.copy2)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_bytes(b"mine\n")
    yield tmp_path / "r"
    assert (tmp_path / "outside/file").read_bytes() == b"mine\n"
    assert len([*(tmp_path / "outside").iterdir()]) == 1


@pytest.fixture
def synmt(capfdbinary):
    """The program in this process."""
    return InProcess(capfdbinary)


@pytest.fixture
def train(example_folder, tmp_path, synmt):
    """`train("--max-steps", 3)` trains in tmp_path/r."""
    return Trainings(example_folder, tmp_path, synmt)


@pytest.fixture
def readers(train, synmt, run, tmp_path):
    """Commands by name, each a call that runs it on the run directory."""
    resume = ("--set", "training.save_every=1", "--set", "training.validate_every=1")
    translate = ("-m", run, "--threads", 1)
    return {
        "info": lambda: synmt("info", run),
        "info --format json": lambda: synmt("info", "--format", "json", run),
        "check": lambda: synmt("check", run),
        "translate": lambda: synmt("translate", *translate, stdin=b"The dog sleeps.\n"),
        "average": lambda: synmt("average", "-m", run, "-o", tmp_path / "mean"),
        "train": lambda: train(*resume, "--max-steps", 3),
    }


def refused(done, *names):
    message = done.stderr.decode()
    said = done.stdout.decode() + message  # check writes problems to stdout
    assert done.returncode in (1, 65, 66, 69, 73, 78), said
    assert all(name in said for name in names), said
    assert all(line.startswith("synmt ") for line in message.splitlines()), message
    assert len(max(said.split("\n"), key=len)) < 1000


FILES = (
    *("config.toml", "spm.model", "labels.json", "model.safetensors", "metrics.jsonl", "env.json"),
    *("spm.tgt.model", ".lock", "cache", "checkpoints", "checkpoints/step-2"),
)
PLANTED = {
    "link": lambda path: path.symlink_to(path.parent / ".kept"),
    "link outside": lambda path: path.symlink_to(
        path.parents[-1] / path.parent / "../outside/file"
    ),
    "link to a folder": lambda path: path.symlink_to(path.parent / "../outside"),
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "pipe": os.mkfifo,
    "wrong": lambda path: (
        path.mkdir()
        if path.name not in ("cache", "checkpoints", "step-2")
        else path.write_bytes(b"")
    ),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_nothing_but_files_and_folders_is_followed_or_opened(run, readers, kind):
    """Each name in turn is replaced and read by commands; kind `link` leads to what was there."""
    for n, name in enumerate(FILES):
        path, kept = run / name, (run / name).parent / ".kept"
        there = path.exists()
        if there:
            path.rename(kept)
        PLANTED[kind](path)
        some = [*readers][n % 3 :: 3] if kind != "pipe" else [*readers]
        for reader in {*some, "train"}:
            start = time.monotonic()
            refused(readers[reader](), name)
            assert time.monotonic() - start < 20
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        if there:
            kept.rename(path)
    assert readers["train"]().returncode == 0
    assert check_whole(run)[-1] == 3


@pytest.mark.parametrize("kind", ["link", "pipe", "wrong", "dangling link"])
def test_the_files_of_a_checkpoint_are_files(run, readers, kind):
    for name in ("weights.safetensors", "optimizer.safetensors", "state.json"):
        path = run / "checkpoints/step-2" / name
        path.rename(path.parent / ".kept")
        PLANTED[kind](path)
        for reader in ("check", "train", *(["average"] if name[0] == "w" else ["info"])):
            if (reader, name) != ("info", "optimizer.safetensors"):
                refused(readers[reader](), name)
        path.rmdir() if path.is_dir() else path.unlink()
        (path.parent / ".kept").rename(path)


@pytest.mark.parametrize("name", ["index.json", "source.values"])
@pytest.mark.parametrize("kind", ["link", "link to a device", "pipe", "wrong"])
def test_a_cache_with_anything_else_is_made_anew(run, readers, kind, name):
    path = run / "cache" / name
    path.rename(path.parent / ".kept")
    PLANTED[kind](path)
    assert readers["train"]().returncode == 0
    assert path.is_file()
    assert not path.is_symlink()


def test_a_run_directory_behind_a_link_is_one(run, readers, tmp_path, whole):
    run.rename(tmp_path / "disk")
    run.symlink_to("disk")
    for reader in readers.values():
        done = reader()
        assert done.returncode == 0, done.stderr.decode()
    assert check_whole(run)[-1] == 3
    assert run.is_symlink()


# --- what is in the files ---------------------------------------------------------------------

DEEP = b"[" * 20_000
DIGITS = b"1" * 5_000
JSON = (b"", b"null", b"7", b'"x"', b"{", b"\xff", DEEP, DIGITS, b"[NaN]", b'["\\ud800"]')
WRONG = {
    "config.toml": (
        *(b"", b"\xff", b"format = 1\nx = " + DEEP, b"format = " + DIGITS, b"\0"),
        *(b"format = true\n", b"format = [1]\n", b"format = 1\nvariant = []\n"),
        *(b"format = 1\nmodel = 3\n", b"format = 1\n[model]\nd_ff = " + DIGITS),
        *(
            b"format = 1\n[model]\nd_ff = 0x" + b"f" * 5_000,
            b"format = 1\n" + b"a." * 20_000 + b"a=1",
        ),
        *(b"format = 1\n[" + b"a." * 100 + b"a]\n", b"format = 1\n[model]\nd_ff = true\n"),
        *(b"format = 1\nvocabulary = 3\n", b"format = 1\npreset = {a = 1}\n"),
        *(b"format = 1\nx = " + b"{a=" * 9_000, b"format = 1\na = 1\na = 1\n"),
        b"format = 1\n[model]\nd_ff = 1979-05-27\n",
    ),
    "labels.json": (*JSON, b"{}", b"[1]", b"[null]", b'[["a"]]'),
    "env.json": (*JSON, b"[]", b'{"a": 1, "a": 2}', b'{"a": ' + DIGITS + b"}"),
    "metrics.jsonl": tuple(one + b"\n" for one in (*JSON, b"[]", b"{}", b'{"step": "1"}')),
    "spm.model": (b"", b"\0" * 99, b"\x0a\xff\xff\xff\xff\x0f"),
}
UNREAD = {  # (command, file) that it does not read, or makes anew
    *(("translate", "metrics.jsonl"), ("translate", "env.json"), ("average", "metrics.jsonl")),
    *(("train", "labels.json"), ("info", "spm.model"), ("info --format json", "spm.model")),
}


@pytest.mark.parametrize("name", WRONG)
def test_whatever_is_wrong_in_a_file_is_one_line(run, readers, name):
    path = run / name
    good = path.read_bytes()
    names = [one for one in readers if (one, name) not in UNREAD]
    for n, content in enumerate(WRONG[name]):
        path.write_bytes(content)
        for reader in (names[n % len(names)], "check", *(["train"] if "train" in names else [])):
            done = readers[reader]()
            if reader[:4] == "info" and name == "config.toml" and done.returncode == 0:
                continue  # info shows even an invalid configuration
            refused(done, str(run))
    path.write_bytes(good)
    assert readers["train"]().returncode == 0


def test_a_file_of_five_gigabytes_is_not_read(run, readers):
    for name in (*WRONG, "checkpoints/step-2/state.json", "cache/index.json"):
        path = run / name
        good = path.read_bytes()
        with path.open("ab") as file:
            file.truncate(5 * 2**30)
        start = time.monotonic()
        done = readers["check" if name in WRONG else "train"]()
        assert time.monotonic() - start < 20
        if name != "cache/index.json":
            refused(done, name)
        path.write_bytes(good)


STATES = {
    "nothing": lambda state: {},
    "unknown": lambda state: {**state, "x": 1},
    "another step": lambda state: {**state, "step": 1},
    "text for a step": lambda state: {**state, "step": "2"},
    "fraction": lambda state: {**state, "step": 2.0},
    "negative": lambda state: {**state, "batch": -1},
    "negative epoch": lambda state: {**state, "epoch": -1},
    "bool": lambda state: {**state, "epoch": True},
    "null": lambda state: {**state, "tokens": None},
    "65 bits": lambda state: {**state, "batch": 2**63},
    "not a number": lambda state: {**state, "loss": float("nan")},
    "infinite": lambda state: {**state, "best_value": float("inf")},
    "a list of losses": lambda state: {**state, "losses": []},
    "a text among losses": lambda state: {**state, "losses": {"x": "1"}},
    "an end that is not a text": lambda state: {**state, "finished": 3},
}


@pytest.mark.parametrize("kind", STATES)
def test_a_state_of_wrong_types_has_the_right_digest_and_is_refused(run, readers, kind):
    path = run / "checkpoints/step-2/state.json"
    state = json.loads(path.read_bytes())["state"]
    json_files.write_sealed(path, STATES[kind](state))
    refused(readers["train"](), "step-2/state.json")
    refused(readers["check"](), "step-2/state.json")
    assert b"Traceback" not in readers["info"]().stderr


@pytest.mark.parametrize("name", ["weights.safetensors", "optimizer.safetensors"])
def test_a_file_of_another_checkpoint_is_refused(run, readers, name):
    """The file is whole and fits, but training would go on from a state that never was."""
    shutil.copy(run / "checkpoints/step-1" / name, run / "checkpoints/step-2" / name)
    refused(readers["train"](), f"step-2/{name}: of step 1, not 2")
    refused(readers["check"](), f"step-2/{name}: of step 1, not 2")


def test_an_early_state_without_later_fields_is_read(run, readers):
    path = run / "checkpoints/step-2/state.json"
    state = json.loads(path.read_bytes())["state"]
    kept = {name: value for name, value in state.items() if name not in ("losses", "validated")}
    json_files.write_sealed(path, kept)
    assert readers["train"]().returncode == 0


INDICES = {
    "nothing": lambda index: {},
    "a list of seals": lambda index: {**index, "seals": []},
    "another file": lambda index: {**index, "seals": {"../config.toml": ["<i4", 1, ""]}},
    "objects": lambda index: {
        **index,
        "seals": {name: ["|O", *seal[1:]] for name, seal in index["seals"].items()},
    },
    "wider": lambda index: {
        **index,
        "seals": {name: ["<i8", *seal[1:]] for name, seal in index["seals"].items()},
    },
    "labels": lambda index: {**index, "labels": {}},
    "left out": lambda index: {**index, "left_out": {"x": "1"}},
    "without trees": lambda index: {**index, "n_treeless": -1},
    "digests": lambda index: {**index, "sha256": 3},
}


@pytest.mark.parametrize("kind", INDICES)
def test_an_index_of_wrong_types_is_made_anew(run, readers, whole, kind):
    path = run / "cache/index.json"
    index = json.loads(path.read_bytes())["state"]
    json_files.write_sealed(path, INDICES[kind](index))
    assert readers["train"]().returncode == 0
    assert json.loads(path.read_bytes())["state"] == index


def test_steps_are_names_that_synmt_writes(run, readers):
    """Digits of other scripts, leading zeros and signs are not steps."""
    for name in ("step-٣", "step-007", "step--1", "step-1e9", "step-" + "9" * 200, "step-"):
        (run / "checkpoints" / name).mkdir()
    assert readers["train"]().returncode == 0
    assert readers["info"]().returncode == 0


# --- names that are not UTF-8, and a model that is lost ------------------------------------------


def test_names_that_are_not_utf_8_work(train, synmt, example_folder, tmp_path):
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    os.mkdir(folder)
    for name in ("train.jsonl", "dev.jsonl", "en.udpipe"):
        shutil.copy(example_folder / name, folder)
    options = ("--train", f"{folder}/train.jsonl", "--dev", f"{folder}/dev.jsonl")
    options += ("--spm", example_folder / "spm.model", "--parser", f"{folder}/en.udpipe")
    for steps in (1, 2):
        done = train.only(*options, "--max-steps", steps)
        assert done.returncode == 0, done.stderr.decode()
    (tmp_path / "r").rename(os.path.join(folder, "r"))
    for command in ("info", "check"):
        done = synmt(command, os.path.join(folder, "r"))
        assert done.returncode == 0, done.stderr.decode()
    model = ("-m", os.path.join(folder, "r"))
    for rest in (("translate", *model, "--threads", 1), ("average", *model, "-o", folder + "/o")):
        done = synmt(*rest, stdin=b"dog\n")
        assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("best_step", [1, 2])
def test_a_lost_model_is_written_again(run, readers, train, whole, best_step):
    """Training says that a run is done only when it has its model, that of the best checkpoint."""
    path = run / "checkpoints/step-2/state.json"
    state = json.loads(path.read_bytes())["state"]
    json_files.write_sealed(path, {**state, "best_step": best_step})
    (run / "model.safetensors").unlink()
    resume = ("--set", "training.save_every=1", "--set", "training.validate_every=1")
    done = train(*resume, "--max-steps", 2, status=0)
    assert b"model.safetensors was missing" in done.stderr
    assert b"done at step 2" in done.stderr
    kept = run / f"checkpoints/step-{best_step}/weights.safetensors"
    assert (run / "model.safetensors").read_bytes() == kept.read_bytes()
    assert b"missing" not in train(*resume, "--max-steps", 2, status=0).stderr


def test_a_lost_model_whose_checkpoint_is_gone_is_the_newest(run, train):
    path = run / "checkpoints/step-2/state.json"
    state = json.loads(path.read_bytes())["state"]
    json_files.write_sealed(path, {**state, "best_step": 1, "best_value": 99.0})
    shutil.rmtree(run / "checkpoints/step-1")
    (run / "model.safetensors").unlink()
    resume = ("--set", "training.save_every=1", "--set", "training.validate_every=1")
    train(*resume, "--max-steps", 2, status=0)
    newest = run / "checkpoints/step-2/weights.safetensors"
    assert (run / "model.safetensors").read_bytes() == newest.read_bytes()
    state = json.loads(path.read_bytes())["state"]
    assert state["best_step"] == 2
    assert state["best_value"] != 99.0
    assert check_whole(run) == [2]


def test_a_lost_model_changes_nothing_later(run, train, whole):
    (run / "model.safetensors").unlink()
    resume = ("--set", "training.save_every=1", "--set", "training.validate_every=1")
    train(*resume, "--max-steps", 4, status=0)
    shutil.copytree(whole, run.parent / "other", copy_function=shutil.copy2)
    train(*resume, "--max-steps", 4, run="other", status=0)
    assert differences(run, run.parent / "other") == []


def test_a_damaged_model_is_not_said_to_be_done(run, train):
    data = bytearray((run / "model.safetensors").read_bytes())
    data[-3] ^= 1
    (run / "model.safetensors").write_bytes(data)
    resume = ("--set", "training.save_every=1", "--set", "training.validate_every=1")
    refused(train(*resume, "--max-steps", 2), "model.safetensors: damaged")
