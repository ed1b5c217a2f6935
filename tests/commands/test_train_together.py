"""Several processes train one model: the same losses, one writer, one end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.run_folders import children, losses, wait_for, weights

from synmt_cli.core.distributed import launch

SIZE = (
    *("--preset", "tiny", "--threads", "1", "--set", "model.d_model=16", "--set", "model.d_ff=16"),
    *("--set", "model.n_heads=2", "--set", "model.encoder_layers=1"),
    *("--set", "model.decoder_layers=1", "--set", "training.batch_tokens=256"),
    *("--set", "training.metric=loss", "--set", "training.validate_every=4"),
)
PROGRAM = (sys.executable, "-m", "synmt_cli", "train")
INSTALLED = (str(Path(sys.executable).with_name("synmt")), "train")
ELASTIC = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"
ALONE = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}

pytestmark = pytest.mark.long


@pytest.fixture
def start(example_folder, tmp_path):
    """Starts a training in a session of its own, on the examples' data.

    tmp_path is also the folder for temporary files, where torchrun leaves some.
    """
    environment = {**os.environ, **ALONE}
    environment.pop("TORCHINDUCTOR_CACHE_DIR", None)

    def begin(*options, program=PROGRAM, dropout=0.1, run="r", **variables):
        files = ("train.jsonl", "dev.jsonl", "spm.model")
        train, dev, spm = (str(example_folder / name) for name in files)
        data = ("--train", train, "--dev", dev, "--spm", spm, "--run", str(tmp_path / run))
        return subprocess.Popen(
            [*program, *SIZE, "--set", f"model.dropout={dropout}", *data, *map(str, options)],
            env={**environment, **variables, "TMPDIR": str(tmp_path)},
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    return begin


def ended(process):
    _, errors = process.communicate(timeout=240)
    return process.returncode, errors.decode()


def test_two_processes_give_the_losses_of_one(start, tmp_path):
    """sisa has a loss of its own. Each process takes one of three batches and half of the third."""
    options = ("--variant", "sisa", "--max-steps", 4, "--set", "training.accumulate=3")
    micro = ("--set", "training.micro_tokens=200")
    assert ended(start(*options, *micro, dropout=0, run="one"))[0] == 0
    status, errors = ended(start(*options, "--nproc", 2, dropout=0, run="two"))
    assert status == 0, errors
    assert errors.count("done at step 4") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-5)
    assert json.loads((tmp_path / "two/env.json").read_bytes())["processes"] == 2


@pytest.mark.parametrize("shard", ["false", "true"])
def test_all_processes_begin_with_the_pretrained_model(start, tmp_path, shard):
    """No update changes anything: each process has these weights, or its part of them."""
    status, errors = ended(start("--max-steps", 2, "--variant", "tags", run="old"))
    assert status == 0, errors
    still = ("--set", "training.lr=0", "--set", "training.initial_lr=0", "--max-steps", 1)
    how = ("--nproc", 2, "--set", f"training.shard={shard}", "--pretrained", tmp_path / "old")
    status, errors = ended(start(*still, *how, run="new"))
    assert status == 0, errors
    assert errors.count("begins with the weights of ") == 1
    assert losses(tmp_path / "new") == pytest.approx(losses(tmp_path / "old"), rel=1e-6)
    one, other = weights(tmp_path / "old", 2), weights(tmp_path / "new", 1)
    assert one.keys() == other.keys()
    assert all(one[name].equal(other[name]) for name in one)
    more = ("--max-steps", 3, *still[:-2], *how[:-2])  # resumes without the model
    status, errors = ended(start(*more, run="new"))
    assert status == 0, errors
    status, errors = ended(start(*still, *how, "--variant", "gps", run="newer"))
    assert status == 78
    assert errors.count("old has variant = 'tags', not 'gps'") == 1
    assert not (tmp_path / "newer").exists()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_processes_that_would_train_different_models_are_refused(start, tmp_path):
    """The command is typed on each machine, and each may have a run folder of its own."""

    def both(second, run="r", n=4):
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
        meeting["GLOO_SOCKET_IFNAME"] = "lo"
        each = [
            start(*more, "--max-steps", n, run=folder, RANK=str(rank), **meeting)
            for rank, (folder, more) in enumerate([("r", ()), (run, second)])
        ]
        return [ended(process) for process in each]

    for status, errors in both(("--seed", 5)):
        assert status == 78
        assert "process 1 has other settings, records or variants than process 0" in errors
    assert not (tmp_path / "r").exists()
    assert [status for status, _ in both(())] == [0, 0]
    shutil.copytree(tmp_path / "r", tmp_path / "copy")
    assert [status for status, _ in both((), n=8)] == [0, 0]
    for status, errors in both((), run="copy", n=12):
        assert status == 78
        assert "process 1 has other checkpoints in " in errors


def test_two_machines_of_torchrun_resume_bit_for_bit(start, tmp_path):
    def both(n, run):
        agents = []
        where = ("--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{free_port()}")
        for _ in range(2):
            torchrun = (sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", *where)
            program = (*torchrun, "--nproc-per-node", "1", "-m", "--", "synmt_cli", "train")
            agents.append(start("--max-steps", n, program=program, run=run))
        for agent in agents:
            status, errors = ended(agent)
            assert status == 0, errors

    both(8, "whole")
    both(4, "parts")
    both(8, "parts")
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    one, other = (weights(tmp_path / run, 8) for run in ("whole", "parts"))
    assert all(one[name].equal(other[name]) for name in one)


def test_a_killed_process_ends_the_others_and_the_run_resumes(start, tmp_path):
    run = tmp_path / "r"
    process = start("--max-steps", 100_000, "--nproc", 2)
    wait_for(lambda: list(run.glob("checkpoints/step-*")), 120)
    os.kill(children(process)[-1], signal.SIGKILL)
    status, errors = ended(process)
    assert status == 74
    assert errors.count("a training process was killed (out of memory?); the same command") == 1
    assert "another process" not in errors
    assert "Traceback" not in errors
    done = max(int(path.name[5:]) for path in run.glob("checkpoints/step-*"))
    status, errors = ended(start("--max-steps", done + 3, "--nproc", 2))
    assert status == 0, errors
    assert f"resuming {run} at step {done:,}" in errors


def test_torchrun_starts_what_was_killed_again(start, tmp_path):
    """Elastic: all processes begin anew from the last checkpoint, and come to the end.

    torch 2.13 lets the new processes find the addresses of the old ones in a store that they
    share, unless told otherwise.
    """
    run = tmp_path / "r"
    where = ("--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{free_port()}")
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", *where)
    program = (*torchrun, "--max-restarts", "1", "-m", "--", "synmt_cli", "train")
    process = start("--max-steps", 200, program=("env", ELASTIC, *program))
    wait_for(lambda: list(run.glob("checkpoints/step-*")), 120)
    os.kill(children(process)[-1], signal.SIGKILL)
    status, errors = ended(process)
    assert status == 0, errors
    assert "resuming" in errors
    assert weights(run, 200)


def listening(pid):
    """The (address, port) of every TCP socket on which a process listens, as in /proc."""
    inodes = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):  # closed since
            inodes.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    for table in ("tcp", "tcp6"):
        lines = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
        for _, local, _, state, *_, inode in (line.split()[:10] for line in lines):
            if state == "0A" and f"socket:[{inode}]" in inodes:
                address, port = local.split(":")
                yield address, int(port, 16)


def test_a_training_listens_on_loopback_alone(start, tmp_path):
    process = start("--max-steps", 100_000, "--nproc", 2)
    wait_for(lambda: list((tmp_path / "r").glob("checkpoints/step-*")), 120)
    everyone = [process.pid, *children(process)]
    sockets = [one for pid in everyone for one in listening(pid)]
    assert len(everyone) == 3
    assert sockets, "gloo connects through sockets: nothing was looked at"
    assert {address for address, _ in sockets} == {"0100007F"}  # 127.0.0.1
    process.terminate()
    assert ended(process)[0] == 75


def test_a_killed_launcher_takes_its_processes_along(start, tmp_path):
    run = tmp_path / "r"
    process = start("--max-steps", 100_000, "--nproc", 2)
    wait_for(lambda: list(run.glob("checkpoints/step-*")), 120)
    pids = children(process)
    process.kill()
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), 30)
    process.communicate()
    steps = {int(path.name[5:]) for path in run.glob("checkpoints/step-*")}
    status, errors = ended(start("--max-steps", max(steps) + 1))  # the lock is free
    assert status == 0, errors


def test_a_signal_to_all_processes_saves_once(start, tmp_path):
    """A cluster ends a job like this; the launcher passes its own signal on, too."""
    run = tmp_path / "r"
    process = start("--max-steps", 100_000, "--nproc", 2)
    wait_for(lambda: list(run.glob("checkpoints/step-*")), 120)
    for pid in [*children(process), process.pid]:
        os.kill(pid, signal.SIGTERM)
    status, errors = ended(process)
    assert status == 75, errors
    assert errors.count("and saved; the same command resumes") == 1


def test_a_signal_to_torchrun_and_all_its_processes_saves(start, tmp_path):
    """torchrun ends with a traceback of its own, but first it waits for the processes."""
    run = tmp_path / "r"
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")
    process = start(
        *("--max-steps", 100_000), program=(*torchrun, "-m", "--", "synmt_cli", "train")
    )
    wait_for(lambda: list(run.glob("checkpoints/step-*")), 120)
    for pid in [*children(process), process.pid]:
        os.kill(pid, signal.SIGTERM)
    status, errors = ended(process)
    assert status != 0
    assert errors.count("and saved; the same command resumes") == 1


def test_python_files_of_the_working_folder_are_not_run(start, tmp_path, monkeypatch):
    folder = tmp_path / "here"
    folder.mkdir()
    for name in ("numpy", "torch", "orjson", "synmt_cli", "sitecustomize"):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(folder)
    status, errors = ended(start("--max-steps", 2, "--nproc", 2, program=INSTALLED))
    assert status == 0, errors
    assert not (tmp_path / "ran").exists()


def test_the_first_process_speaks_for_all(start):
    """Its bar is the only one: a second one would be drawn over it."""
    status, errors = ended(start("--max-steps", 2, "--nproc", 2, "--verbose"))
    assert status == 0, errors
    assert errors.count("reading: ") == errors.count("training pairs") == 1


def test_a_signal_ends_a_process_that_waits_for_one_that_never_comes(start, tmp_path):
    meeting = tmp_path / "meeting"
    place = ("RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0", f"{launch.MEETING}={meeting}")
    process = start("--max-steps", 9, program=("env", *place, *PROGRAM))
    wait_for(lambda: meeting.exists() and meeting.stat().st_size, 120)
    process.terminate()
    status, errors = ended(process)
    assert (status, errors) == (-signal.SIGTERM, "")
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("name", "problem", "expected"),
    [
        ("train", "train.jsonl:3: invalid JSON at character 5: unexpected end of data", 65),
        ("dev", "cannot read {}: No such file or directory", 66),
    ],
)
def test_what_all_processes_or_one_of_them_refuses_is_said_once(
    start, tmp_path, example_folder, name, problem, expected
):
    files = {one: example_folder / f"{one}.jsonl" for one in ("train", "dev")}
    files[name] = tmp_path / f"{name}.jsonl"
    if name == "train":
        lines = (example_folder / "train.jsonl").read_bytes().splitlines(keepends=True)
        files[name].write_bytes(b"".join([*lines[:2], b'{"x"\n', *lines[2:]]))
    named = [word for one, path in files.items() for word in (f"--{one}", path)]
    status, errors = ended(start(*named, "--max-steps", 9, "--nproc", 3))
    assert status == expected
    (line,) = errors.splitlines()
    assert line.endswith(problem.format(files[name]))


def test_a_signal_saves_and_a_refusal_is_said_once(start, tmp_path):
    run = tmp_path / "r"
    process = start("--max-steps", 100_000, "--nproc", 2)
    wait_for(lambda: list(run.glob("checkpoints/step-*")), 120)
    process.terminate()
    status, errors = ended(process)
    assert status == 75
    assert errors.count("and saved; the same command resumes") == 1
    status, errors = ended(start("--max-steps", 9, "--nproc", 2, dropout=0.2))
    assert status == 78
    assert "trained with model.dropout = 0.1, not 0.2" in errors
    assert "Traceback" not in errors
