"""Folders that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from synmt_cli import streams
from synmt_cli.errors import CreateError, WriteError, printable


@contextmanager
def appearing(folder: Path, replace: bool = False) -> Iterator[Path]:
    """Yields an empty folder beside `folder`, which takes its name when the block is left.

    If the block raises, nothing is left. replace: an older one goes, or CreateError is raised.
    Raises WriteError.
    """
    name = printable(str(folder))
    if not replace and (folder.exists() or folder.is_symlink()):
        raise CreateError(f"cannot create {name}: it is there already")
    beside = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        beside.mkdir()
    except OSError as error:
        raise CreateError(f"cannot create {name}: {error.strerror}") from error
    try:
        yield beside
        try:
            if replace:
                shutil.rmtree(folder, ignore_errors=True)
            os.rename(beside, folder)
            streams.sync_folder(folder.absolute().parent)
        except OSError as error:
            raise WriteError(f"cannot write {name}: {error.strerror}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
