"""Layers compiled by torch (TorchInductor; Ansel et al. 2024), for training.

Only the computation of layers is compiled: weights, their names and checkpoints stay the same.
Layers without modifiers share one program. Sizes are variables of it, so that batches of other
shapes need no other program; a program depends on what a layer's modifiers are. Rare batches that
would need a program of their own do not get one, since compiling takes a minute: batches without
padding get a mask like all others, and batches with one row or one column (to torch, a size of 1
is another program) are computed without compiling.

Attention with relations (model/relations.py) is not compiled, for it consists of few large
operations already; the rest of such layers is.

Validation and search run without compiled layers: they would need programs of their own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from synmt_cli.core.data.batch import Batch
from synmt_cli.core.model.layers import Layer, Stack
from synmt_cli.core.model.modifier import Active
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.errors import Unavailable

BACKEND = "inductor"
RESULTS = "TORCHINDUCTOR_CACHE_DIR"  # names the folder for compiled programs
PROGRAMS = 128  # of one function at most: torch would go on without compiling after 8


def compile_layers(model: Transformer, device: torch.device) -> None:
    """Lets the layers be compiled when they are first used. Raises Unavailable."""
    _refuse_without_compiler(device)
    if os.environ.get(RESULTS) == os.sep:  # set by cli.main, so that no folder is made in vain
        del os.environ[RESULTS]
    import torch._dynamo.config as settings

    settings.recompile_limit = max(settings.recompile_limit, PROGRAMS)
    if device.type == "cpu":  # torch's own generator is faster than a compiled one
        import torch._inductor.config as inductor

        inductor.fallback_random = True
    for stack in (model.encoder, model.decoder):
        for layer in stack.layers:
            for name in _parts(stack, layer):
                setattr(
                    layer, name, torch.compile(getattr(layer, name), backend=BACKEND, dynamic=True)
                )


def _parts(stack: Stack, layer: Layer) -> Sequence[str]:
    """The methods of a layer that are compiled."""
    own = layer.attention.modified_by([Active(modifier, None) for modifier in stack.modifiers])
    if any(one.is_related for one in own):
        return ("after_attention",)
    return [name for name in ("forward", "read") if hasattr(layer, name)]


def _refuse_without_compiler(device: torch.device) -> None:
    if device.type == "cpu":
        from torch._inductor.cpp_builder import get_cpp_compiler
        from torch._inductor.exc import InvalidCxxCompiler

        try:
            get_cpp_compiler()
        except InvalidCxxCompiler:
            raise _missing("a C++ compiler, such as g++ or that named by $CXX") from None
    elif device.type == "cuda":
        from torch.utils._triton import has_triton

        if not has_triton():
            raise _missing("Triton, and a GPU that it knows")
        if not any(map(shutil.which, ("cc", "gcc", "clang"))):
            raise _missing("a C compiler, such as gcc")
    else:
        raise Unavailable(f"training.compile is not for the device {device}")


def _missing(what: str) -> Unavailable:
    return Unavailable(
        f"training.compile needs {what}, and there is none here: install it, or train with "
        "--set training.compile=false"
    )


def alike(batch: Batch, has_pairs: bool) -> Batch:
    """The batch in the form that all batches share, which has a mask.

    has_pairs: whether any line of the corpus has two sentences; then no batch takes the form for
    lines of one.
    """
    source = batch.source
    pad = torch.zeros_like(source.ids, dtype=torch.bool) if source.pad is None else source.pad
    is_single = source.is_single and not has_pairs
    return replace(batch, source=replace(source, pad=pad, is_single=is_single))


def has_program(batch: Batch) -> bool:
    """Whether all sizes are larger than 1."""
    return min(*batch.source.ids.shape, *batch.target.ids.shape) > 1


@contextlib.contextmanager
def explained(is_compiled: bool) -> Iterator[None]:
    """Raises Unavailable, in one line, where compiling fails."""
    if not is_compiled:
        yield
        return
    from torch._dynamo.exc import TorchDynamoException

    try:
        yield
    except TorchDynamoException as error:
        reason = next((line for line in str(error).split("\n") if line.strip()), "")
        raise Unavailable(
            f"training.compile: torch cannot compile the layers: {type(error).__name__}: {reason}; "
            "train with --set training.compile=false"
        ) from error


@contextlib.contextmanager
def paused(is_compiled: bool) -> Iterator[None]:
    """Inside, layers run without being compiled."""
    if not is_compiled:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield
