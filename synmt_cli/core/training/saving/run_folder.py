"""The run directory of a training: one writer, the same run as before, whole files."""

import contextlib
import datetime
import errno
import fcntl
import os
import platform
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from synmt_cli.core.run.directory import (
    CACHE,
    CHECKPOINTS,
    ENVIRONMENT,
    FILES,
    FOLDERS,
    LOCK,
    MEANINGS,
    OWN_VARIANTS,
    PARSER,
    STEP,
    Run,
)
from synmt_cli.core.run.resuming import refuse_another
from synmt_cli.core.text.vocabulary import Vocabularies
from synmt_cli.core.variants import own_file
from synmt_cli.errors import (
    ConfigError,
    CreateError,
    WriteError,
    cannot_create,
    cannot_write,
)
from synmt_cli.io import json_files, regular_files
from synmt_cli.pool.processes import n_processes

TRIES = 100  # to take the lock of a folder that others remove at the same time
# What atomic writers call a file or folder before it is whole: .NAME.PID.tmp, .NAME.PID.old
UNFINISHED = re.compile(r"\.(?P<name>.+?)\.[0-9]+(\.[0-9a-f]{8})?\.(?P<kind>tmp|old)", re.DOTALL)
PACKAGES = ("synmt-cli", "torch", "numpy", "sentencepiece", "sacrebleu", "safetensors")
KEPT_STARTS = 100  # in env.json


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[Callable[[], None]]:
    """Creates the folder and holds its lock. Raises CreateError, also for a second writer.

    Yields a function that raises WriteError once another folder, or none, is at this path: later
    writes would then go into another run.

    Nothing in the folder is looked at, or removed, by anyone who does not hold the lock. The
    kernel releases it when the process ends, however it ends. Raises ReadError for a folder in
    which a name is a link, or not the file or folder it should be.
    """
    if Run(folder).is_exported:
        raise CreateError(f"{folder} was exported for CTranslate2; name another --run")
    try:
        lock = _hold(folder)
    except BlockingIOError:
        raise CreateError(f"{folder} is being written by another `synmt train`") from None
    except (OSError, ValueError) as error:
        raise cannot_create(folder, error) from error
    is_tidied = False
    try:
        try:
            _begin(folder, is_new=lock.made_file)
            is_tidied = True
        except OSError as error:
            raise cannot_create(folder, error) from error
        yield partial(lock.refuse_moved, folder)
    finally:
        if not (is_tidied and os.path.lexists(Run(folder).config)):  # nothing was trained
            lock.remove_new(folder, is_tidied)
        os.close(lock.descriptor)  # last: until then nobody else takes the folder


@dataclass(frozen=True, slots=True)
class _Lock:
    """The lock held on a folder. made_folder, made_file: whether taking it made these.

    place: the folder, as os.stat gives it.
    """

    descriptor: int
    made_folder: bool
    made_file: bool
    place: os.stat_result

    def is_of(self, folder: Path) -> bool:
        """Whether this folder is the one that is locked. Raises OSError."""
        try:
            return os.path.samestat(os.stat(folder), self.place)
        except FileNotFoundError:
            return False

    def refuse_moved(self, folder: Path) -> None:
        """Raises WriteError where this folder is not the one that is locked."""
        try:
            if self.is_of(folder):
                return
        except OSError as error:
            raise cannot_write(folder, error) from error
        raise WriteError(
            f"{folder} was moved or replaced while this training wrote to it: the training ends "
            "here, and its checkpoints are where the folder is now"
        )

    def remove_new(self, folder: Path, is_tidied: bool) -> None:
        """Removes the folder that it made, or the file, as far as the system allows it.

        is_tidied: whether the files there belong to a run; if so the lock stays, to tell that.
        """
        with contextlib.suppress(OSError):
            if not self.is_of(folder):
                return
            if self.made_folder:  # renamed first: nobody begins in a half-removed folder
                doomed = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
                os.rename(folder, doomed)
                shutil.rmtree(doomed)
            elif self.made_file and (not is_tidied or os.listdir(folder) == [LOCK]):
                os.unlink(folder / LOCK)


def _hold(folder: Path) -> _Lock:
    """Takes the lock. Raises OSError, BlockingIOError where another process has it."""
    made_folder = False
    for _ in range(TRIES):
        try:
            made_folder = _made(folder) or made_folder
            descriptor, made_file = _open_lock(folder / LOCK)
        except FileNotFoundError:  # another process has just removed it
            continue
        try:
            _lock(descriptor)
            if _is_at(descriptor, folder / LOCK):
                return _Lock(descriptor, made_folder, made_file, os.stat(folder))
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # the lock of a folder that is gone
        made_folder = False
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def _lock(descriptor: int) -> None:
    """Locks an open file for this process alone. Raises OSError, BlockingIOError."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK):
            problem = "its file system has no file locks, which keep two trainings apart"
            raise OSError(error.errno, f"{problem}; mount it with flock") from error
        raise


def _made(folder: Path) -> bool:
    """Creates a folder. False if it already exists."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        try:
            is_folder = stat.S_ISDIR(os.stat(folder).st_mode)
        except FileNotFoundError:  # removed since by another process, or a link to nothing
            is_folder = not folder.is_symlink()
        if not is_folder:
            raise
        return False
    return True


def _open_lock(path: Path) -> tuple[int, bool]:
    """An open lock file, which is never a link, and whether it was made here."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644), True
    except FileExistsError:
        if problem := regular_files.problem(path):
            raise problem from None
        return os.open(path, flags), False


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _begin(folder: Path, is_new: bool) -> None:
    """Refuses a folder that is not a run's, and tidies one that is. The caller holds the lock.

    is_new: whether there was no lock before, which a run that was killed early would have left.
    """
    run = Run(folder)
    others = [one for one in os.listdir(folder) if one != LOCK and (is_new or not _is_ours(one))]
    if others and not os.path.lexists(run.config):
        raise CreateError(f"{folder} is neither empty nor a run directory; name another --run")
    if os.path.lexists(run.config):
        run.tables()  # raises for a config.toml that someone else wrote
    _refuse_mean(run)
    run.refuse_misplaced()
    run.steps()
    _tidy(folder, lambda name: name in (*FILES, *FOLDERS))
    if (folder / CHECKPOINTS).is_dir():
        _tidy(folder / CHECKPOINTS, lambda name: bool(STEP.fullmatch(name)))


def _is_ours(name: str) -> bool:
    """True for a file that a run killed before it wrote config.toml may have left."""
    early = (LOCK, *MEANINGS, ENVIRONMENT, CACHE, PARSER, OWN_VARIANTS)
    return name in early or bool(UNFINISHED.fullmatch(name))


def _tidy(place: Path, is_written: Callable[[str], bool]) -> None:
    """Completes or removes what a killed training left unfinished.

    is_written: whether training writes a file or folder of that name. Other programs may be
    writing others.
    """
    for name in os.listdir(place):
        match, path = UNFINISHED.fullmatch(name), place / name
        if match is None or not is_written(match["name"]):
            continue
        is_folder = stat.S_ISDIR(path.lstat().st_mode)
        final = place / match["name"]
        if match["kind"] == "old" and is_folder and not os.path.lexists(final):
            path.rename(final)  # killed between two renames
        elif is_folder:
            shutil.rmtree(path)
        else:
            path.unlink()


def establish(
    run: Run,
    tables: Mapping[str, Any],
    vocabularies: Vocabularies,
    labels: Sequence[str],
    environment: Mapping[str, Any],
    parser: str = "",
) -> None:
    """Writes the files of a new run directory, or checks that an old one is the same run.

    parser: a file to copy, with the digest in `tables`. Raises what `refuse_another_run` raises.
    """
    refuse_another_run(run, tables)
    if (begun := begun_with(run)) is not None:
        run.vocabularies()
        environment = {**environment, "earlier": _earlier(run)}
        if "variants" in begun:  # the copy computes the same, and stays
            tables = {**tables, "variants": begun["variants"]}
    else:
        run.write_own_variants(own_file.text() if "variants" in tables else None)
    run.write_vocabularies(vocabularies)
    run.write_labels(labels)
    if parser:
        run.copy_parser(parser, tables["parser"]["sha256"])
    json_files.write(run.environment, environment)
    run.write_config(tables)  # last: a folder that has it has everything else


def begun_with(run: Run) -> dict[str, Any] | None:
    """The tables that a run was begun with; None where nothing was saved yet. Raises SynmtError."""
    if not os.path.lexists(run.config) or not (run.steps() or os.path.lexists(run.model)):
        return None
    return {key: value for key, value in run.tables().items() if key != "format"}


def refuse_another_run(run: Run, tables: Mapping[str, Any]) -> None:
    """Raises ConfigError unless training can go on in this folder, or begin in a new one.

    The message names the option that differs, with its old and new value. A run in which nothing
    was saved yet may be begun with other options.
    """
    _refuse_mean(run)
    if (begun := begun_with(run)) is not None:
        refuse_another(begun, tables, run.folder)
        run.refuse_other_code()


def _refuse_mean(run: Run) -> None:
    if run.averaged:
        raise ConfigError(
            f"{run.folder} is the mean of other runs' checkpoints, which cannot be "
            "trained on; name another --run"
        )


def _earlier(run: Run) -> list[Any]:
    """The starts of a run so far, from env.json, oldest first. Raises SynmtError."""
    if not os.path.lexists(run.environment):
        return []
    last = run.read_environment()
    earlier = last.pop("earlier", [])
    return [*(earlier if isinstance(earlier, list) else []), last][-KEPT_STARTS:]


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
        "cores": n_processes(0),
        "threads": threads,
        "processes": processes,
        "device": device,
    }
