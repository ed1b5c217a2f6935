"""Checkpoints that are damaged or made to harm: refused by name, and none of their code runs."""

from __future__ import annotations

import json
import re
import shutil

import pytest
import torch
from support.hostile_tensors import HOSTILE, flipped
from support.run_folders import Trainings, differences

from synmt_cli.core.run import tensors

FILES = ("weights.safetensors", "optimizer.safetensors")


pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def trained(example_folder, tmp_path_factory, forked):
    """A run directory with one checkpoint."""
    folder = tmp_path_factory.mktemp("trained")
    Trainings(example_folder, folder, forked)("--max-steps", 1, status=0)
    return folder / "r"


@pytest.fixture
def run(trained, tmp_path):
    """A copy of `trained`, for tests to damage."""
    return shutil.copytree(trained, tmp_path / "r")


def refused(done, *names):
    message = done.stderr.decode()
    assert done.returncode in (65, 66, 69, 78), message
    assert all(name in message for name in names), message
    assert all(line.startswith("synmt ") for line in message.splitlines())  # no traceback
    assert done.stdout == b""
    assert len(max(message.split("\n"), key=len)) < 1000


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_tensors_are_refused_by_name(train, forked, trained, run, tmp_path, kind):
    """By a training that resumes, and by translation with the best model and with a checkpoint."""
    for name in FILES:
        path = run / "checkpoints/step-1" / name
        good = path.read_bytes()
        path.write_bytes(HOSTILE[kind](good, tmp_path / "pwned"))
        assert path.read_bytes() != good
        refused(train("--max-steps", 2), name)
        path.write_bytes(good)
    places = {"best": run / "model.safetensors", "step-1": run / "checkpoints/step-1" / FILES[0]}
    for checkpoint, path in places.items():
        good = path.read_bytes()
        path.write_bytes(HOSTILE[kind](good, tmp_path / "pwned"))
        options = ("-m", run, "--checkpoint", checkpoint, "--threads", 1)
        refused(forked("translate", *options, stdin=b"The dog sleeps.\n"), path.name)
        path.write_bytes(good)
    assert not (tmp_path / "pwned").exists()
    assert differences(run, trained) == []


@pytest.mark.parametrize("name", [FILES[0], FILES[1]])
def test_tensors_of_another_model_are_refused(train, run, name):
    """Whole files, with the right digest, of a model of another width."""
    train("--max-steps", 1, "--set", "model.d_model=32", run="wide", status=0)
    path = run / "checkpoints/step-1" / name
    shutil.copy(run.parent / "wide/checkpoints/step-1" / name, path)
    refused(train("--max-steps", 2), str(run))


def first(found, prefix):
    return min(name for name in found if name.startswith(prefix))


def replaced(found, prefix, change):
    name = first(found, prefix)
    return {**found, name: change(found[name])}


OPTIMIZERS = {
    "nothing": lambda found: {},
    "generators alone": lambda found: {n: v for n, v in found.items() if n[:7] == "random."},
    "no generators": lambda found: {n: v for n, v in found.items() if n[:7] != "random."},
    "one moment less": lambda found: {n: v for n, v in found.items() if n != first(found, "exp")},
    "a moment of no parameter": lambda found: {**found, "exp_avg.x.weight": torch.ones(2)},
    "a name without a dot": lambda found: {**found, "exp": torch.ones(2)},
    "another shape": lambda found: replaced(found, "exp", lambda value: value[:1]),
    "whole numbers": lambda found: replaced(found, "exp", lambda value: value.long()),
    "a short generator": lambda found: replaced(found, "random.", lambda value: value[:9]),
    "another kind of generator": lambda found: replaced(found, "random.", torch.Tensor.float),
    "a generator that has no state": lambda found: replaced(found, "random.", torch.zeros_like),
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_an_optimizer_that_does_not_fit_is_refused(train, run, kind):
    """The digest is right: only what is in the file is wrong."""
    path = run / "checkpoints/step-1/optimizer.safetensors"
    found, about = tensors.read(path)
    tensors.write(path, OPTIMIZERS[kind](found), about)
    refused(train("--max-steps", 2), str(run))


@pytest.mark.parametrize("change", [lambda value: value.long(), lambda value: value / 0])
def test_weights_of_another_type_or_not_finite_are_refused(train, forked, run, change):
    for path in (run / "checkpoints/step-1/weights.safetensors", run / "model.safetensors"):
        found, about = tensors.read(path)
        tensors.write(path, replaced(found, "encoder", change), about)
    refused(train("--max-steps", 2), str(run))
    refused(forked("translate", "-m", run, "--threads", 1, stdin=b"dog\n"), str(run))


STATES = {
    "empty": lambda good: b"",
    "cut": lambda good: good[: len(good) // 2],
    "no UTF-8": lambda good: b"\xff" + good,
    "an array": lambda good: b"[]",
    "deep": lambda good: b"[" * 100_000,
    "long number": lambda good: re.sub(rb'"step": 1', b'"step": 1' + b"0" * 5000, good),
    "other step": lambda good: good.replace(b'"step": 1', b'"step": 9'),
    "negative batch": lambda good: re.sub(rb'"batch": \d+', b'"batch": -7', good),
    "text for a number": lambda good: re.sub(rb'"epoch": \d+', b'"epoch": "x"', good),
    "not a number": lambda good: re.sub(rb'"loss": [\d.]+', b'"loss": NaN', good),
    "no digest": lambda good: re.sub(rb'"sha256": "\w+",', b"", good),
    "no state": lambda good: json.dumps({**json.loads(good), "state": {}}).encode(),
    "other format": lambda good: good.replace(b'"format": 1', b'"format": 2'),
}


@pytest.mark.parametrize("kind", STATES)
def test_a_damaged_state_is_refused_by_name(train, run, kind):
    path = run / "checkpoints/step-1/state.json"
    good = path.read_bytes()
    path.write_bytes(STATES[kind](good))
    assert path.read_bytes() != good
    refused(train("--max-steps", 2), "state.json")


@pytest.mark.parametrize("name", ["state.json", *FILES])
def test_a_checkpoint_that_lacks_a_file_is_refused(train, run, name):
    (run / "checkpoints/step-1" / name).unlink()
    refused(train("--max-steps", 2), name)


OTHERS = {
    "config.toml": (b"", b"[model\n", b"\xff", b"format = 1\n"),
    "spm.model": (b"", b"\0" * 99, b"\x80\x04\x95cos\nsystem\n(S'touch pwned'\ntR."),
    "labels.json": (b"", b"{}", b"[1]", b"\xff", b"[" * 100_000, b'["a", "a"]'),
}


def test_a_configuration_of_many_brackets_is_refused(train, run):
    (run / "config.toml").write_bytes(b"x = " + b"[" * 100_000)
    refused(train("--max-steps", 2), "config.toml")


@pytest.mark.parametrize("name", OTHERS)
def test_damaged_files_of_a_run_are_refused_by_name(train, forked, run, name):
    """labels.json follows from the records: training writes it anew."""
    gps = ("--max-steps", 1, "--variant", "gps")
    train(*gps, run="gps", status=0)
    path = run.parent / "gps" / name
    for content in OTHERS[name]:
        path.write_bytes(content)
        options = ("-m", path.parent, "--from", "jsonl", "--threads", 1)
        record = b'{"src": "a", "pieces": ["a"]}\n'
        refused(forked("translate", *options, stdin=record), str(path.parent))
        if name == "labels.json":
            train(*gps, run="gps", status=0)
        else:
            refused(train(*gps, run="gps"), str(path.parent))


CACHED = {
    "flipped bit": lambda good: flipped(good, len(good) // 2, 3),
    "flipped first bit": lambda good: flipped(good, 0, 0),
    "flipped last bit": lambda good: flipped(good, len(good) - 1, 7),
    "cut": lambda good: good[: len(good) // 2],
    "empty": lambda good: b"",
    "longer": lambda good: good + b"\0" * 8,
    "high bytes": lambda good: b"\x7f" * len(good),
}


@pytest.mark.parametrize("kind", CACHED)
def test_a_damaged_cache_is_made_anew_or_refused(train, run, kind):
    """The cache has the records as numbers; whatever is wrong with it, no other model is learnt."""
    shutil.copytree(run, run.parent / "whole", copy_function=shutil.copy2)
    train("--max-steps", 9, run="whole", status=0)
    cached = sorted(run.glob("cache/*"))
    assert cached
    for path in cached:
        shutil.rmtree(run.parent / "damaged", ignore_errors=True)
        shutil.copytree(run, run.parent / "damaged", copy_function=shutil.copy2)
        (run.parent / "damaged/cache" / path.name).write_bytes(CACHED[kind](path.read_bytes()))
        done = train("--max-steps", 9, run="damaged")
        if done.returncode:
            refused(done, path.name)
        else:
            assert differences(run.parent / "damaged", run.parent / "whole") == [], path.name
