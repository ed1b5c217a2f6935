"""Processes that share out the layers have the losses, files and ends of those that do not."""

from __future__ import annotations

import os
import signal

import pytest
import torch
from support.run_folders import (
    ENDLESS,
    Trainings,
    check_whole,
    children,
    differences,
    last_step,
    losses,
    wait_for,
    weights,
)

from synmt_cli.core.run import tensors

TWO = ("--nproc", 2, "--set", "training.validate_every=4", "--set", "training.save_every=4")
SHARED = (*TWO, "--set", "training.shard=true")
LAYERS = (
    *("--set", "model.encoder_layers=2", "--set", "model.d_ff=17"),  # no two equal shares
    *("--set", "training.accumulate=2", "--set", "training.clip_norm=0.1"),
    *("--set", "training.lr=0.01", "--set", "training.warmup=2"),
    # Biases of keys have no gradient but rounding, which Adam would make as large as any.
    *("--set", "training.eps=1e-3"),
)

pytestmark = pytest.mark.long


@pytest.fixture
def train(example_folder, tmp_path):
    trainings = Trainings(example_folder, tmp_path, None)

    def run(*options, **changes):
        process = trainings.start(*LAYERS, *options, **changes)
        _, errors = process.communicate(timeout=240)
        assert b"Traceback" not in errors, errors.decode()
        return process.returncode, errors.decode()

    run.start = trainings.start
    yield run
    trainings.end()


def check_equal(folder, step, **tolerance):
    """The runs `whole` and `shared` have the same losses, weights and names of moments."""
    one, other = folder / "whole", folder / "shared"
    assert losses(other) == pytest.approx(losses(one), rel=1e-5)
    torch.testing.assert_close(weights(other, step), weights(one, step), **tolerance)
    found = (
        tensors.read(run / f"checkpoints/step-{step}/optimizer.safetensors") for run in (one, other)
    )
    (here, _), (there, _) = found
    assert {n: (t.shape, t.dtype) for n, t in here.items()} == {
        n: (t.shape, t.dtype) for n, t in there.items()
    }


def test_a_loss_of_its_own_and_batches_without_a_pair_for_all(train, tmp_path):
    """With batches of one pair, the second process computes something that does not count."""
    options = ("--variant", "sisa", "--max-steps", 4, "--set", "model.dropout=0.0")
    options += ("--set", "training.batch_sentences=1", "--set", "model.norm=pre")
    for run, how in (("whole", TWO), ("shared", SHARED)):
        status, errors = train(*options, *how, run=run)
        assert status == 0, errors
    check_equal(tmp_path, 4, rtol=1e-4, atol=1e-5)


def test_runs_go_on_bit_for_bit_and_with_any_number(train, tmp_path):
    for run, steps, how in (
        *(("whole", 8, TWO), ("shared", 8, SHARED)),
        *(("parts", 4, SHARED), ("parts", 8, SHARED)),
    ):
        status, errors = train("--max-steps", steps, *how, run=run)
        assert status == 0, errors
    check_equal(tmp_path, 8, rtol=1e-4, atol=1e-5)
    there = ["checkpoints/step-4/state.json"]  # only `parts` ended there
    assert differences(tmp_path / "parts", tmp_path / "shared") == there
    for steps, how in ((9, SHARED[2:]), (10, SHARED)):  # alone nothing is shared out
        status, errors = train("--max-steps", steps, *how, run="parts")
        assert status == 0, errors
        assert f"resuming {tmp_path / 'parts'} at step {steps - 1}" in errors
    assert check_whole(tmp_path / "parts")[-1] == 10


def test_a_killed_process_ends_the_others_and_a_signal_saves(train, tmp_path):
    run = tmp_path / "r"
    process = train.start(*LAYERS, *ENDLESS, *SHARED)
    wait_for(lambda: last_step(run), 120)
    os.kill(children(process)[-1], signal.SIGKILL)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 74
    assert b"Traceback" not in errors
    done = check_whole(run)[-1]
    process = train.start(*LAYERS, *ENDLESS, *SHARED)
    wait_for(lambda: last_step(run) > done, 120)
    process.terminate()
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 75
    assert errors.count(b"and saved; the same command resumes") == 1
    assert check_whole(run)[-1] > done


def test_decoders_that_reread_their_prefix_are_refused_once(train, tmp_path):
    status, errors = train("--variant", "bitran", *SHARED)
    assert status == 78
    assert errors.count("training.shard: bitran reads each prefix anew") == 1
    assert not (tmp_path / "r").exists()
