"""Run directories with one mutated file: commands give a right result or one clear line.

The commands run in this process. Sealed files are mutated before and after they are sealed.
"""

from __future__ import annotations

import json
import random
import shutil
import tomllib

import pytest
import tomli_w
from support.mutations import FEW, JSON_PIECES, SEED, mutated, mutated_value, mutations
from support.run_folders import SIZE

from synmt_cli import cli, console
from synmt_cli.io import json_files

CLEAR = (0, 1, 65, 66, 69, 73, 78)
BINARY = [b"\0", b"\xff" * 8, b"\x7f", b"\x80", b"9" * 20]
FILES = (
    *("config.toml", "labels.json", "env.json", "metrics.jsonl", "spm.model"),
    *("model.safetensors", "cache/index.json", "cache/source.values"),
    *(f"checkpoints/step-2/{name}" for name in ("state.json", "weights.safetensors")),
    "checkpoints/step-2/optimizer.safetensors",
)
SAVE = ("--set", "training.save_every=1", "--set", "training.validate_every=1")

pytestmark = pytest.mark.long


@pytest.fixture
def commands(example_folder, tmp_path, monkeypatch, capfd):
    """Makes the run directory r in the working folder, and yields commands that read it."""
    monkeypatch.chdir(tmp_path)
    for name in ("train.jsonl", "dev.jsonl"):
        lines = (example_folder / name).read_bytes().splitlines(keepends=True)[:30]
        (tmp_path / name).write_bytes(b"".join(lines))
    (tmp_path / "one").write_bytes(b"The dog sleeps.\n")
    data = ("--train", "train.jsonl", "--dev", "dev.jsonl", "--spm", example_folder / "spm.model")
    options = (*SIZE, *SAVE, *data, "--variant", "pascal", "--parser", example_folder / "en.udpipe")
    train = ("train", "-q", *options, "--max-steps", "2", "--run", "r")
    assert cli._run([*map(str, train)]) == 0, capfd.readouterr().err
    yield {
        "info": ("info", "-q", "-o", "out", "r"),
        "info as json": ("info", "-q", "--format=json", "-o", "out", "r", "r/checkpoints/step-2"),
        "check": ("check", "-q", "-o", "out", "r", "r/checkpoints/step-2"),
        "translate": ("translate", "-q", "-o", "out", "-m", "r", "--threads", "1", "one"),
        "average": ("average", "-q", "-m", "r", "-o", "mean"),
        "train": tuple(map(str, train)),
    }
    console.set_level(console.NORMAL)


def test_mutated_run_directories_give_a_result_or_a_clear_error(commands, tmp_path, capfd):
    """A command reads the mutated directory; the next mutation begins from the whole one."""
    run, kept = tmp_path / "r", tmp_path / "kept"
    shutil.copytree(run, kept)
    for command in commands.values():
        assert cli._run([*command]) == 0, capfd.readouterr().err
    shutil.rmtree(tmp_path / "mean")
    rng = random.Random(11 + 1000 * SEED)
    counts = dict.fromkeys((0, "refused"), 0)
    for _ in mutations(b"-" * 99, 12, [b"-"], FEW):
        name, command = rng.choice(FILES), rng.choice([*commands])
        how = mutate(run / name, rng)
        status = cli._run([*commands[command]])
        messages = capfd.readouterr().err
        about = (command, name, how, status, messages)
        assert status in CLEAR, about
        assert messages.count("\n") == (status != 0), about
        assert messages == "" or messages.startswith("synmt "), about
        assert len(messages) < 1000, about
        if command == "translate" and status == 0:
            assert (tmp_path / "out").read_bytes().count(b"\n") == 1, about
        assert command != "check" or (status == 1) == bool((tmp_path / "out").read_bytes()), about
        counts[0 if status == 0 else "refused"] += 1
        shutil.rmtree(run)
        shutil.copytree(kept, run)
        shutil.rmtree(tmp_path / "mean", ignore_errors=True)
    assert all(counts.values())


def mutate(path, rng):
    """Changes bytes of a file, or a value in it and its digest. Returns (part of) the new bytes."""
    data = path.read_bytes()
    kind = path.name if path.name in ("config.toml", "metrics.jsonl") else path.suffix
    if kind in ("config.toml", "metrics.jsonl", ".json") and rng.randrange(3):
        try:
            data = CHANGED[kind](data, rng)
            path.write_bytes(data)
            return data
        except (AttributeError, TypeError, ValueError):  # a value that the file cannot hold
            pass
    data = mutated(data, rng, JSON_PIECES if path.suffix != ".model" else BINARY)
    path.write_bytes(data)
    return data[:2000]


def changed_json(data, rng):
    value = json.loads(data)
    if isinstance(value, dict) and "sha256" in value and isinstance(value.get("state"), dict):
        state = mutated_value(value["state"], rng)
        digest = json_files._digest(state)
        return json.dumps({**value, "sha256": digest, "state": state}).encode()
    return json.dumps(mutated_value(value, rng)).encode()


def changed_toml(data, rng):
    return tomli_w.dumps(mutated_value(tomllib.loads(data.decode()), rng)).encode()


def changed_lines(data, rng):
    lines = data.splitlines(keepends=True)
    n = rng.randrange(len(lines))
    lines[n] = changed_json(lines[n], rng) + b"\n"
    return b"".join(lines)


CHANGED = {"config.toml": changed_toml, "metrics.jsonl": changed_lines, ".json": changed_json}
