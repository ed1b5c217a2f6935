"""The device to compute on, its precision and its threads."""

import contextlib
from collections.abc import Iterator

import torch

from synmt_cli.errors import Unavailable, UsageError

HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}
MAX_THREADS = 1024  # with more, the threads' library ends the process silently


def choose(name: str) -> torch.device:
    """The device of this name; `auto` is the GPU if there is one. Raises Unavailable."""
    return tried(named(name))


def named(name: str) -> torch.device:
    """The device of this name, which may not be there: nothing is put on it. Raises Unavailable."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.device(name)
    except RuntimeError as error:
        raise _missing(name, error) from None


def tried(device: torch.device) -> torch.device:
    """The same device, on which something can be computed. Raises Unavailable."""
    try:
        if device.type == "cuda" and device.index is not None and torch.cuda.is_available():
            torch.cuda.set_device(device)  # nothing is put on another card
        torch.zeros(1, device=device).item()  # `meta` has no values
    except (RuntimeError, AssertionError) as error:
        raise _missing(str(device), error) from None
    # torch prefers cuDNN's attention on some GPUs. It takes tens of milliseconds to plan each new
    # shape, and nearly every batch has one.
    torch.backends.cuda.enable_cudnn_sdp(False)
    return device


def _missing(name: str, error: Exception) -> Unavailable:
    reason = str(error).split("\n")[0]
    return Unavailable(f"no device {name!r}: {reason}; try --device cpu")


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Lets torch use one thread: on small matrices threads mostly wait for each other."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


def widest(device: torch.device) -> torch.dtype:
    """The most exact type of numbers on a device."""
    return torch.float32 if device.type == "mps" else torch.float64


def has_bf16(device: torch.device) -> bool:
    """Whether the hardware itself computes in bf16, without emulation."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu":
        return False
    has = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return bool(has.get("avx512_bf16") or has.get("amx_bf16"))


def own_precision(device: torch.device) -> str:
    """bf16 on a GPU that has it, else fp32."""
    return "bf16" if device.type == "cuda" and has_bf16(device) else "fp32"


def precision(name: str, device: torch.device) -> contextlib.AbstractContextManager[None]:
    """A context that computes in `fp32`, `bf16` or `fp16`, to be entered at each step.

    Runs of early versions have `auto`: bf16 on a GPU that has it, else fp32.
    """
    if name == "auto":
        name = own_precision(device)
    if name == "fp32":
        return contextlib.nullcontext()
    return torch.autocast(device.type, HALF[name])


def allow_tf32(device: torch.device, is_allowed: bool) -> None:
    """Lets a GPU round the factors of fp32 products to 10 bits, a few times as fast, or not."""
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high" if is_allowed else "highest")


def set_threads(n: int) -> None:
    """Sets how many threads one operation may use; 0 leaves it to torch. Raises UsageError."""
    if n > MAX_THREADS:
        raise UsageError(f"--threads {n}: at most {MAX_THREADS}")
    if n:
        torch.set_num_threads(n)
