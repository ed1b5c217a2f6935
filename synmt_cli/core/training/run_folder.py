"""The run directory of a training: one writer, the same run as before, whole files."""

import contextlib
import datetime
import fcntl
import json
import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from synmt_cli.core.run.config import refuse_another
from synmt_cli.core.run.directory import Run
from synmt_cli.core.text.vocabulary import Vocabularies, Vocabulary
from synmt_cli.errors import ConfigError, CreateError, WriteError, printable
from synmt_cli.io import json_files, writing
from synmt_cli.io.digests import sha256

UNFINISHED = (".tmp", ".old")  # what atomic writers call a file or folder before it is whole
PACKAGES = ("synmt-cli", "torch", "numpy", "sentencepiece", "sacrebleu", "safetensors")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Creates the folder and holds its lock. Raises CreateError, also for a second writer.

    The kernel releases the lock when the process ends, however it ends.
    """
    name = printable(str(folder))
    try:
        new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        others = [path.name for path in folder.iterdir() if not _is_ours(path.name)]
        if others and not Run(folder).config.exists():
            raise CreateError(f"{name} is neither empty nor a run directory; name another --run")
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise CreateError(f"cannot create {name}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _tidy(folder)
        yield
    except BlockingIOError:
        raise CreateError(f"{name} is being written by another `synmt train`") from None
    finally:
        os.close(descriptor)
        if new and not Run(folder).config.exists():  # nothing was trained
            shutil.rmtree(folder, ignore_errors=True)


def _is_ours(name: str) -> bool:
    """True for a file that a run killed before it wrote config.toml may have left."""
    early = (".lock", "spm.model", "spm.tgt.model", "labels.json", "env.json", "cache")
    return name in early or (name.startswith(".") and name.endswith(UNFINISHED))


def _tidy(folder: Path) -> None:
    """Completes or removes what a killed writer left unfinished. The caller holds the lock."""
    for place in (folder, folder / "checkpoints"):
        for aside in place.glob(".*.old"):  # killed between two renames
            final = aside.with_name(aside.name.split(".")[1])
            if not final.exists():
                aside.rename(final)
        for path in place.glob(".*"):
            if path.suffix in UNFINISHED and path.is_dir():
                shutil.rmtree(path)
            elif path.suffix in UNFINISHED:
                path.unlink()


def establish(
    run: Run,
    tables: Mapping[str, Any],
    vocabularies: Vocabularies,
    labels: Sequence[str],
    environment: Mapping[str, Any],
) -> None:
    """Writes the files of a new run directory, or checks that an old one is the same run.

    A run in which nothing was saved yet may be begun with other options. Raises ConfigError
    naming the option that differs, with its old and new value.
    """
    if run.environment.exists() and "averaged" in (json_files.read(run.environment) or {}):
        raise ConfigError(
            f"{printable(str(run.folder))} is the mean of other runs' checkpoints, which cannot be "
            "trained on; name another --run"
        )
    if run.config.exists() and (run.steps() or run.model.exists()):
        old = {key: value for key, value in run.tables().items() if key != "format"}
        refuse_another(old, tables, run.folder)
        run.vocabularies()
    run.write_vocabularies(vocabularies)
    run.write_labels(labels)
    json_files.write(run.environment, environment)
    run.write_config(tables)  # last: a folder that has it has everything else


def environment(threads: int, device: str, processes: int) -> dict[str, Any]:
    """Versions and machine: how the figures of a run came about."""
    versions = {}
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    return {
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": versions,
        "machine": platform.machine(),
        "system": platform.system(),
        "cores": len(os.sched_getaffinity(0)),
        "threads": threads,
        "processes": processes,
        "device": device,
    }


def find_vocabularies(fingerprint: str | None, folders: Sequence[Path]) -> Vocabularies:
    """The sentencepiece models of that fingerprint among the *.model files of `folders`.

    Raises ConfigError if none of them has it: then the user must name one.
    """
    wanted = (fingerprint or "").split("+")
    vocabularies: dict[str, Vocabulary] = {}
    for folder in dict.fromkeys(folders):
        for path in sorted(folder.glob("*.model")):
            digest = sha256(str(path))[: len(wanted[0])]
            if digest in wanted and digest not in vocabularies:
                vocabularies[digest] = Vocabulary.load(str(path))
    missing = [one for one in wanted if one not in vocabularies]
    if missing:
        raise ConfigError(
            f"no sentencepiece model with fingerprint {printable(missing[0]) or 'unknown'} beside "
            "the training records or here; name it by --spm FILE"
        )
    return Vocabularies(vocabularies[wanted[0]], vocabularies[wanted[-1]])


class Metrics:
    """metrics.jsonl. Lines after the step that a run resumes from are dropped first."""

    def __init__(self, run: Run, step: int) -> None:
        kept = []
        if run.metrics.exists():
            for line in run.metrics.read_bytes().split(b"\n"):
                with contextlib.suppress(ValueError):
                    if json.loads(line)["step"] <= step:
                        kept.append(line + b"\n")
        with writing.atomic(run.metrics) as writer:
            writer.write(b"".join(kept))
        self._path = run.metrics

    def add(self, values: Mapping[str, Any]) -> None:
        """Appends one object. Raises WriteError."""
        try:
            with open(self._path, "ab", buffering=0) as file:
                file.write(json.dumps(values).encode() + b"\n")
        except OSError as error:
            raise WriteError(
                f"cannot write {printable(str(self._path))}: {error.strerror}"
            ) from error
