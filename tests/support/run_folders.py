"""Trainings of small models, and checks of run directories that faults have interrupted."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
import tomllib

from sentencepiece import SentencePieceProcessor

from support.program import ENVIRONMENT
from synmt_cli.core.run import tensors

SIZE = (
    *("--preset", "tiny", "--threads", "1", "--set", "model.d_model=16", "--set", "model.d_ff=16"),
    *("--set", "model.n_heads=2", "--set", "model.encoder_layers=1"),
    *("--set", "model.decoder_layers=1", "--set", "training.batch_tokens=300"),
    *("--set", "training.metric=loss", "--set", "training.max_epochs=0"),
)
STEP_FILES = {"weights.safetensors", "optimizer.safetensors", "state.json"}
READ = {  # the files of a run directory, each with a function that reads it
    "config.toml": lambda path: tomllib.loads(path.read_text()),
    "labels.json": lambda path: json.loads(path.read_bytes()),
    "env.json": lambda path: json.loads(path.read_bytes()),
    "spm.model": lambda path: SentencePieceProcessor(model_proto=path.read_bytes()),
    "model.safetensors": tensors.read,
    # Lines are added to it: only the last may be half.
    "metrics.jsonl": lambda path: [*map(json.loads, path.read_bytes().split(b"\n")[:-1])],
    "parser.udpipe": os.stat,
    "cache": lambda path: json.loads((path / "index.json").read_bytes()),
    "checkpoints": os.listdir,
    ".lock": os.stat,
}
OFTEN = ("--set", "training.save_every=3", "--set", "training.validate_every=7")
ENDLESS = ("--max-steps", 1_000_000)


def weights(folder, step):
    """The weights in a checkpoint, by name."""
    return tensors.read(folder / f"checkpoints/step-{step}/weights.safetensors")[0]


def losses(folder):
    """The loss of each validation, in nats per token."""
    lines = (folder / "metrics.jsonl").read_bytes().splitlines()
    return [event["nll"] for event in map(json.loads, lines) if event["event"] == "dev"]


class Trainings:
    """Trains small models on the examples' records, in forks or in processes of their own."""

    def __init__(self, examples, folder, forked):
        self.examples, self.folder, self._forked = examples, folder, forked
        self._started = []

    def arguments(self, *options, run="r", records="train.jsonl"):
        data = ("--train", self.examples / records, "--dev", self.examples / "dev.jsonl")
        data += ("--spm", self.examples / "spm.model", "--run", self.folder / run)
        return [*map(str, ("train", *SIZE, *data, *options))]

    def __call__(self, *options, signals=(), status=None, **changes):
        """Trains in a fork; `signals` are sent to it on the way. Returns what happened."""
        done = self._forked(*self.arguments(*options, **changes), signals=signals)
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        assert status is None or done.returncode == status, done.stderr.decode()
        return done

    def command(self, *options, **changes):
        """The line of shell that trains."""
        program = (sys.executable, "-m", "synmt_cli")
        return shlex.join((*program, *self.arguments(*options, **changes)))

    def only(self, *options):
        """Trains in a fork in folder/r, with no data except what `options` name."""
        return self._forked(*map(str, ("train", *SIZE, "--run", self.folder / "r", *options)))

    def start(self, *options, **changes):
        """A process that trains; `end` ends it if it has not ended."""
        command = shlex.split(self.command(*options, **changes))
        environment = {**os.environ, **ENVIRONMENT}
        self._started.append(subprocess.Popen(command, stderr=subprocess.PIPE, env=environment))
        return self._started[-1]

    def end(self):
        for process in self._started:
            process.kill()
            process.communicate()


def wait_for(condition, seconds=60):
    """Waits until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def children(process):
    """The processes that a process started itself."""
    found = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, check=True)
    pairs = (map(int, line.split()) for line in found.stdout.splitlines())
    return [pid for pid, parent in pairs if parent == process.pid]


def check_whole(run):
    """Checks that everything under a final name loads, with its digest. Returns the saved steps."""
    for path in run.iterdir():
        if not is_temporary(path.name):
            READ[path.name](path)
    steps = [path for path in run.glob("checkpoints/*") if not is_temporary(path.name)]
    for folder in steps:
        assert {path.name for path in folder.iterdir()} == STEP_FILES
        tensors.read(folder / "weights.safetensors")
        tensors.read(folder / "optimizer.safetensors")
        assert json.loads((folder / "state.json").read_bytes())["state"]["step"] == number(folder)
    return sorted(map(number, steps))


def is_temporary(name):
    return name.startswith(".") and name.endswith((".tmp", ".old"))


def number(folder):
    return int(folder.name.removeprefix("step-"))


def last_step(run):
    """The newest step that is saved, 0 for none."""
    return max(map(number, run.glob("checkpoints/step-*")), default=0)


def everything(run):
    """All that must be the same in two equal runs: tensors, states and the figures of dev."""
    found = {}
    for path in [*run.glob("checkpoints/step-*/*"), run / "model.safetensors"]:
        name = str(path.relative_to(run))
        if path.suffix == ".safetensors":
            kept, about = tensors.read(path)
            found[name] = about
            found.update({f"{name}:{key}": value.numpy().tobytes() for key, value in kept.items()})
        else:
            found[name] = json.loads(path.read_bytes())
    lines = map(json.loads, (run / "metrics.jsonl").read_bytes().splitlines())
    clock = ("time", "seconds")
    validations = (line for line in lines if line["event"] == "dev")
    found["dev"] = [{k: v for k, v in line.items() if k not in clock} for line in validations]
    return found


def differences(one, other):
    """The names of what is not the same in two runs."""
    one, other = everything(one), everything(other)
    return sorted(n for n in one.keys() | other.keys() if one.get(n) != other.get(n))
