"""Ragged columns that grow row by row: in memory, or as files that are mapped when complete.

The columns `source` and `source.depth` have rows of the same lengths, so they share one array of
offsets, named after the part before the dot. In a folder a column is the file NAME.values, and
its offsets are NAME.offsets: numbers end to end.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from synmt_cli.core.data.ragged import Array, Ragged
from synmt_cli.errors import DataError, ReadError, cannot_create, cannot_write
from synmt_cli.io.digests import size_and_sha256

Seals = dict[str, tuple[str, int, str]]  # file -> type, bytes, SHA-256


class Columns:
    """Columns that grow inside a `with` block.

    dtypes: name -> type of its values. folder: where the files go; None: memory.
    """

    def __init__(self, dtypes: dict[str, type], folder: Path | None = None) -> None:
        first = {_base(name): name for name in reversed(dtypes)}  # the column that has the lengths
        self._first = {name: base for base, name in first.items()}
        self._values = {name: _column(folder, f"{name}.values", dtypes[name]) for name in dtypes}
        self._offsets = {base: _column(folder, f"{base}.offsets", np.int64) for base in first}
        self._ends = dict.fromkeys(first, 0)
        for offsets in self._offsets.values():
            offsets.append(np.zeros(1, np.int64))

    def append(self, columns: Mapping[str, Ragged]) -> None:
        """Adds rows to every column. Raises WriteError."""
        for name, rows in columns.items():
            self._values[name].append(rows.values)
            if base := self._first.get(name):
                self._offsets[base].append(rows.offsets[1:] + self._ends[base])
                self._ends[base] += int(rows.offsets[-1])

    def whole(self) -> dict[str, Ragged]:
        """All rows; files are flushed to disk. Raises WriteError."""
        offsets = {name: column.whole() for name, column in self._offsets.items()}
        return {
            name: Ragged(column.whole(), offsets[_base(name)])
            for name, column in self._values.items()
        }

    def __enter__(self) -> Columns:
        return self

    def __exit__(self, *_: object) -> None:
        for column in (*self._values.values(), *self._offsets.values()):
            column.close()

    def seals(self) -> Seals:
        """Type, size and digest of each file, for `mapped` to check; {} in memory."""
        columns = [*self._values.values(), *self._offsets.values()]
        return {one.path.name: one.seal() for one in columns if isinstance(one, _File)}


def mapped(folder: Path, names: Sequence[str], seals: Seals) -> dict[str, Ragged]:
    """The columns in a folder. Raises DataError if a file is not what was written."""
    files = {f"{name}.values" for name in names} | {f"{_base(name)}.offsets" for name in names}
    if seals.keys() != files:
        raise DataError(str(folder), None, "damaged: not the files of its columns")
    arrays = {name: _checked(folder / name, seal) for name, seal in seals.items()}
    columns = {
        name: Ragged(arrays[f"{name}.values"], arrays[f"{_base(name)}.offsets"]) for name in names
    }
    for name, column in columns.items():
        ends = column.offsets[:1].tolist(), column.offsets[-1:].tolist()
        if ends != ([0], [len(column.values)]):
            raise DataError(str(folder), None, f"damaged: the rows of {name} are not its values")
    return columns


def are_seals(value: object) -> bool:
    """Whether a value of JSON has the form of Seals, for files of numbers."""
    return isinstance(value, dict) and all(
        isinstance(seal, list)
        and [type(part) for part in seal] == [str, int, str]
        and re.fullmatch("[<>|][biuf][1248]", seal[0])
        for seal in value.values()
    )


def _base(name: str) -> str:
    return name.partition(".")[0]


class _Memory:
    """An array that grows."""

    def __init__(self, dtype: type) -> None:
        self._parts: list[Array] = [np.empty(0, dtype)]

    def append(self, values: Array) -> None:
        self._parts.append(values.astype(self._parts[0].dtype, copy=False))

    def whole(self) -> Array:
        return np.concatenate(self._parts)

    def close(self) -> None:
        self._parts.clear()


class _File:
    """An array that grows in a file."""

    def __init__(self, path: Path, dtype: type) -> None:
        self.path = path
        self._dtype = np.dtype(dtype)
        self._size = 0
        self._sha = hashlib.sha256()
        try:
            self._file: IO[bytes] = open(path, "wb", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise cannot_create(path, error) from error

    def append(self, values: Array) -> None:
        block = np.ascontiguousarray(values, self._dtype).data.cast("B")
        self._sha.update(block)
        self._size += len(block)
        try:
            while block:
                block = block[self._file.write(block) :]
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def whole(self) -> Array:
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise cannot_write(self.path, error) from error
        return _array(self.path, self._dtype)

    def close(self) -> None:
        self._file.close()

    def seal(self) -> tuple[str, int, str]:
        return self._dtype.str, self._size, self._sha.hexdigest()


def _column(folder: Path | None, name: str, dtype: type) -> _Memory | _File:
    return _Memory(dtype) if folder is None else _File(folder / name, dtype)


def _array(path: Path, dtype: np.dtype[np.generic]) -> Array:
    if not path.stat().st_size:  # nothing can be mapped
        return np.empty(0, dtype)
    return np.asarray(np.memmap(path, dtype, "r"))


def _checked(path: Path, seal: tuple[str, int, str]) -> Array:
    dtype, size, digest = seal
    try:
        whole = size_and_sha256(str(path), follow=False) == (size, digest)
    except ReadError:
        whole = False
    if not whole or size % np.dtype(dtype).itemsize:
        raise DataError(str(path), None, "damaged: not what was written there")
    return _array(path, np.dtype(dtype))
