"""Memory, before torch and numpy are loaded: what they need at least, and what they may keep."""

import mmap
import os
import resource
import sys
import tempfile
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import BinaryIO, cast

from synmt_cli.errors import Unavailable

MIB = 2**20
NUMPY = 48 * MIB  # of address space, which numpy 2.4 takes for itself
TORCH = 96 * MIB  # in addition to its libraries, before it has computed anything
KERNELS_IN_TRAINING = 256
KERNELS_IN_SEARCH = 64
THREAD = 40 * MIB  # for each thread of numpy's OpenBLAS: a buffer and a stack


def is_available(n_bytes: int) -> bool:
    """Whether the system would give this process that much memory now."""
    try:
        mmap.mmap(-1, max(n_bytes, 1)).close()
    except (OSError, ValueError, OverflowError, MemoryError):
        return False
    return True


def unnamed_file() -> BinaryIO:
    """A file for this process and its children alone: in memory on Linux, else a temporary one."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("synmt"), "w+b")
    return cast(BinaryIO, tempfile.TemporaryFile())


def bound_caches(n_kernels: int) -> None:
    """Lets oneDNN keep few kernels, unless the environment says how many.

    By default it keeps those of 1,024 shapes, and torch's layer above it as many again, so that a
    model of 1.6 million parameters took 1.6 GB after 400 updates in bf16. The shapes of
    model/projection.py are so few that 256 kernels are enough in training: with these it took
    0.7 GB after 120 updates.

    A decoder that re-reads its prefix needs kernels of new shapes at each step. The memory between
    them is not reused: with beam 5, 40 sentences took 2.2 GB, and 0.8 GB with 64 kernels.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, str(n_kernels))


def guard_imports() -> None:
    """If memory is limited, lets numpy and torch be imported only if there is enough for them.

    Otherwise both end the process, by an abort or with an exit status of their own, at places
    that differ from run to run.
    """
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        sys.meta_path.insert(0, _Guard())


class _Guard(MetaPathFinder):
    """A finder that finds nothing, but raises Unavailable if memory is too short for a library."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if name not in ("numpy", "torch"):
            return
        needed = NUMPY + THREAD * _n_threads()
        if name == "torch":
            needed += TORCH + _size_of_libraries(name)
        if not is_available(needed):
            raise Unavailable(
                f"cannot load {name}: it needs about {needed / MIB:,.0f} MiB of memory, more than "
                "the limit of this process leaves (ulimit -v)"
            )


def _n_threads() -> int:
    """How many threads numpy starts."""
    number = os.environ.get("OPENBLAS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS") or ""
    return int(number) if number.isdecimal() and len(number) < 4 else os.cpu_count() or 1


def _size_of_libraries(name: str) -> int:
    """The least memory that the libraries of a package take: the size of their files."""
    spec = PathFinder.find_spec(name)
    if spec is None or spec.origin is None:
        return 0
    return sum(path.stat().st_size for path in (Path(spec.origin).parent / "lib").glob("*.so*"))
