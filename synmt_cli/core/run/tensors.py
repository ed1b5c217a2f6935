"""Tensors on disk: safetensors with a format version and a digest that is checked on load.

No pickle is ever read. A file that is cut, has a flipped bit, or is something else under
this suffix is refused by name before its tensors are used.
"""

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from synmt_cli.errors import (
    ConfigError,
    DataError,
    ReadError,
    SynmtError,
    Unavailable,
    is_of_memory,
)
from synmt_cli.io import regular_files, writing

FORMAT = "synmt-tensors-1"
TYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_UNREADABLE = (SafetensorError, ValueError, KeyError, OverflowError, MemoryError, RuntimeError)
# Raises an error unless tensors, and the texts about them, are the expected ones.
Check = Callable[[Mapping[str, Tensor], Mapping[str, str]], None]


def write(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, str]) -> None:
    """Writes a file that appears whole or not at all. about: texts for its header."""
    header = {**about, "format": FORMAT}
    header["sha256"] = _digest(tensors, header)
    with writing.atomic(path, follow=False) as writer:
        writer.write(_head(tensors, header))
        for name in _laid_out(tensors):
            writer.write(_bytes(tensors[name]).numpy().tobytes())


def _laid_out(tensors: Mapping[str, Tensor]) -> list[str]:
    """The names in the order of the file: wide numbers first, so that all are aligned."""
    return sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))


def _head(tensors: Mapping[str, Tensor], header: Mapping[str, str]) -> bytes:
    """The first bytes of a safetensors file: the size of a JSON text, and the text."""
    table: dict[str, Any] = {"__metadata__": header}
    begin = 0
    for name in _laid_out(tensors):
        tensor = tensors[name]
        end = begin + tensor.numel() * tensor.dtype.itemsize
        table[name] = {
            "dtype": TYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
        begin = end
    text = json.dumps(table, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def read(
    path: Path, check: Check | None = None, follow: bool = False
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the texts about them.

    Raises ReadError, DataError, ConfigError; Unavailable where they do not fit into memory.

    check: called twice, with tensors without values before any memory is taken, and with the
    tensors themselves. follow: whether the name may be a link.
    """
    name = str(path)
    try:
        with opened(path, follow) as file:
            header = dict(file.metadata() or {})
            if check is not None and header.get("format") == FORMAT:
                check({key: _outline(file.get_slice(key)) for key in sorted(file.keys())}, header)
            tensors = {key: file.get_tensor(key) for key in sorted(file.keys())}
    except OSError as error:
        raise ReadError(f"cannot read {name}: {error.strerror or error}") from error
    except _UNREADABLE as error:
        if is_of_memory(error):
            raise Unavailable(f"cannot load {name}: too little memory") from error
        raise DataError(name, None, f"not a whole safetensors file: {error}") from None
    if header.get("format") != FORMAT:
        stated = header.get("format", "no format")
        raise ConfigError(f"{name}: format {stated}, expected {FORMAT}")
    if header.pop("sha256", "") != _digest(tensors, header):
        raise DataError(name, None, "damaged: its tensors do not have the digest it states")
    if check is not None:
        check(tensors, header)
    return tensors, header


@contextlib.contextmanager
def opened(path: Path, follow: bool = False) -> Iterator[Any]:
    """A safetensors file as the library opens it. Raises ReadError, and the library's errors.

    The library opens the descriptor of a regular file: by the file's name it would wait for a
    pipe, follow a link, and refuse bytes that are not UTF-8.
    """
    with regular_files.opened(path, follow) as file:
        name = Path(f"/proc/self/fd/{file.fileno()}")
        with safe_open(name if name.exists() else path, framework="pt") as weights:
            yield weights


def stated_step(path: Path) -> str | None:
    """The step that the header of a checkpoint's file names; None if it cannot be read."""
    with contextlib.suppress(OSError, SynmtError, SafetensorError), opened(path) as file:
        return str((file.metadata() or {}).get("step", "no step"))
    return None


def refuse_other_step(path: Path, step: int) -> None:
    """Raises ConfigError if the file belongs to the checkpoint of another step.

    A file that cannot be read raises nothing here: `read` refuses it.
    """
    stated = stated_step(path)
    if stated not in (None, str(step)):
        raise ConfigError(f"{path}: of step {stated}, not {step}")


def _outline(part: Any) -> Tensor:
    """A tensor without values. Raises ValueError for a type that is never written."""
    kinds = {name: kind for kind, name in TYPES.items()}
    if part.get_dtype() not in kinds:
        raise ValueError(f"numbers of type {part.get_dtype()}")
    return torch.empty(part.get_shape(), dtype=kinds[part.get_dtype()], device="meta")


def _digest(tensors: Mapping[str, Tensor], header: Mapping[str, str]) -> str:
    """SHA-256 over the header and every tensor's name, type, shape and bytes, sorted by name."""
    sha = hashlib.sha256(json.dumps(sorted(header.items())).encode())
    for name, tensor in sorted(tensors.items()):
        sha.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        sha.update(_bytes(tensor).numpy().data)
    return sha.hexdigest()


def _bytes(tensor: Tensor) -> Tensor:
    """The values as bytes, (n,), on the CPU."""
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)


def load_into(module: torch.nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Copies tensors that fit (`check_fit`) into the parameters of the same names.

    Shared parameters are stored once, under the first of their names.
    """
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(tensors[name])


def fitting(module: torch.nn.Module, vocabulary: str, path: Path) -> Check:
    """A check that weights are the module's, trained with that vocabulary."""

    def check(tensors: Mapping[str, Tensor], about: Mapping[str, str]) -> None:
        if about.get("vocabulary") != vocabulary:
            raise ConfigError(f"{path}: trained with another vocabulary")
        check_fit(module, tensors, path)

    return check


def check_fit(module: torch.nn.Module, tensors: Mapping[str, Tensor], source: Path) -> None:
    """Raises ConfigError unless tensors have the names and shapes of the module's parameters.

    They also have to be real numbers, and finite where they have values.
    """
    parameters = dict(module.named_parameters())
    if parameters.keys() != tensors.keys():
        different = sorted(parameters.keys() ^ tensors.keys())[0]
        where = "missing" if different in parameters else "not part of the model"
        raise ConfigError(f"{source}: parameter {different} is {where}")
    for name, parameter in parameters.items():
        if parameter.shape != tensors[name].shape:
            was, now = tuple(tensors[name].shape), tuple(parameter.shape)
            raise ConfigError(f"{source}: {name} has shape {was}, not {now}")
        if not is_real(tensors[name]):
            raise ConfigError(f"{source}: {name} has values that are not numbers")


def is_real(tensor: Tensor) -> bool:
    """Whether a tensor's type is real, and its values, where it has them, are finite."""
    return tensor.is_floating_point() and (tensor.is_meta or bool(tensor.isfinite().all()))
