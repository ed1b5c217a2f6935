"""Training on two hosts: two network namespaces, joined by a cable that can be cut."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys

import pytest
from support.run_folders import ENDLESS, check_whole, last_step, wait_for

from synmt_cli.core.run import tensors

FIRST = "10.77.0.1"  # in namespaces of their own: no other network can have these
SECOND = "10.77.0.2"

pytestmark = pytest.mark.long


class Hosts:
    """Two network namespaces with one interface each, named `wire`."""

    def __init__(self):
        self.names = [f"synmt-{os.getpid()}-{n}" for n in (1, 2)]

    def __enter__(self):
        for name in self.names:
            ip("netns", "add", name)
        one, other = self.names
        cable = ("link", "add", "wire", "netns", one, "type", "veth")
        ip(*cable, "peer", "name", "wire", "netns", other)
        for name, address in zip(self.names, (FIRST, SECOND), strict=True):
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "address", "add", f"{address}/24", "dev", "wire")
            ip("-n", name, "link", "set", "wire", "up")
            # TCP gives up after seconds instead of its 15 minutes.
            ip("netns", "exec", name, "sysctl", "-w", "net.ipv4.tcp_retries2=4")
        return self

    def __exit__(self, *error):
        for name in self.names:
            self.end(name)
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)

    def end(self, name):
        """Kills every process of a host."""
        asked = ["ip", "netns", "pids", name]
        found = subprocess.run(asked, capture_output=True, check=False).stdout.split()
        for pid in map(int, found):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def cut(self):
        ip("-n", self.names[1], "link", "set", "wire", "down")

    def mend(self):
        ip("-n", self.names[1], "link", "set", "wire", "up")


def ip(*arguments):
    done = subprocess.run(["ip", *arguments], capture_output=True, check=False)
    if done.returncode:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.decode().strip()}")


@pytest.fixture
def hosts():
    """Two hosts; skips where they cannot be made."""
    made = Hosts()
    try:
        made.__enter__()
    except OSError as error:
        made.__exit__()
        pytest.skip(f"cannot make network namespaces: {error}")
    yield made
    made.__exit__()


@pytest.fixture
def agents(hosts, train):
    """`agents("--max-steps", 8)` starts torchrun on each host; the run directory is shared."""
    started = []

    def start(*options, run="r"):
        begun = []
        for rank, name in enumerate(hosts.names):
            where = ("--nnodes", "2", "--node-rank", str(rank), "--nproc-per-node", "1")
            where += ("--master-addr", FIRST, "--master-port", "29500")
            torchrun = ("-m", "torch.distributed.run", *where, "-m", "--", "synmt_cli")
            command = ("ip", "netns", "exec", name, sys.executable, *torchrun)
            environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
            begun.append(
                subprocess.Popen(
                    [*command, *train.arguments(*options, run=run)],
                    env={**environment, "GLOO_SOCKET_IFNAME": "wire", "TMPDIR": str(train.folder)},
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
            )
        started.extend(begun)
        return begun

    yield start
    for name in hosts.names:
        hosts.end(name)
    for process in started:
        process.communicate()


def ended(processes, seconds):
    """The statuses and messages of processes; each has to end within `seconds`."""
    found = [process.communicate(timeout=seconds) for process in processes]
    statuses = [process.returncode for process in processes]
    return statuses, [errors.decode() for _, errors in found]


def losses(run):
    lines = map(json.loads, (run / "metrics.jsonl").read_bytes().splitlines())
    return [line["nll"] for line in lines if line["event"] == "dev"]


def weights(run, step):
    return tensors.read(run / f"checkpoints/step-{step}/weights.safetensors")[0]


SAME = ("--set", "model.dropout=0", "--set", "training.validate_every=2")


def test_two_hosts_give_the_losses_of_one_process(train, agents, tmp_path):
    statuses, errors = ended(agents("--max-steps", 6, *SAME), 60)
    assert statuses == [0, 0], errors
    train("--max-steps", 6, *SAME, run="alone", status=0)
    assert losses(tmp_path / "r") == pytest.approx(losses(tmp_path / "alone"), rel=1e-5)
    assert json.loads((tmp_path / "r/env.json").read_bytes())["processes"] == 2
    assert check_whole(tmp_path / "r")[-1] == 6


OFTEN = ("--set", "training.save_every=3")


def resumes(agents, run):
    saved = check_whole(run)[-1]
    statuses, errors = ended(agents("--max-steps", saved + 3, *OFTEN), 90)
    assert statuses == [0, 0], errors
    assert f"at step {saved:,}" in errors[0]
    assert check_whole(run)[-1] == saved + 3


def test_a_lost_host_ends_the_other_and_the_run_resumes(hosts, agents, tmp_path):
    both = agents(*ENDLESS, *OFTEN)
    wait_for(lambda: last_step(tmp_path / "r") > 3)
    hosts.end(hosts.names[1])
    statuses, errors = ended(both, 60)
    assert 1 <= statuses[0] <= 125, errors
    resumes(agents, tmp_path / "r")


def test_a_cut_cable_ends_whoever_sends_and_the_run_resumes(hosts, agents, tmp_path):
    """The one that only waits has nothing that TCP could give up on: it is ended by hand."""
    both = agents(*ENDLESS, *OFTEN)
    wait_for(lambda: last_step(tmp_path / "r") > 3)
    hosts.cut()
    wait_for(lambda: any(one.poll() is not None for one in both))
    assert all(one.returncode in (None, *range(1, 126)) for one in both)
    for name in hosts.names:
        hosts.end(name)
    hosts.mend()
    resumes(agents, tmp_path / "r")
