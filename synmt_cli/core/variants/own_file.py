"""The user's own variants: those of the Python file that the variable SYNMT_VARIANTS names.

The file has `VARIANTS`, a list of `Variant` whose builders are functions of the same file. It is
code, so it is run for the user who names it, and never because a run directory holds a copy.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import inspect
import io
import os
import re
import sys
import traceback
import typing
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from itertools import chain
from types import ModuleType
from typing import TYPE_CHECKING, Any

from synmt_cli.core.options import Bounds, described, options
from synmt_cli.core.variants.table import OWN, VARIANTS, Variant
from synmt_cli.errors import ConfigError, ReadError, quoted
from synmt_cli.io import regular_files

if TYPE_CHECKING:
    from synmt_cli.core.model.modifier import Modifier
    from synmt_cli.core.variants.stack import StackSpec

VARIABLE = "SYNMT_VARIANTS"
LIMIT = 2**20  # bytes of a file
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
# The other names of tables and keys in config.toml.
RESERVED = (
    *("variant", "preset", "model", "training", "format", "variants"),
    *("vocabulary", "parser", "pretrained", "data"),
)


def path() -> str:
    """The file that SYNMT_VARIANTS names, "" if it names none."""
    return os.environ.get(VARIABLE, "")


def known() -> dict[str, Variant]:
    """Every variant by name: those of synmt, then those of the user's own file.

    Raises ReadError where the file cannot be read, and ConfigError, with file and line, where it
    does not define variants.
    """
    return VARIANTS | (_read(path()) if path() else {})


def text() -> bytes:
    """The content of the file. Raises ReadError."""
    return _text(path())


@functools.cache
def _text(file: str) -> bytes:
    """The content of a file, read once: what runs and what a run directory keeps are the same."""
    try:
        return regular_files.read(file, LIMIT, follow=True)
    except ReadError as error:
        raise ReadError(f"{VARIABLE}: {error}") from error


@functools.cache
def _read(file: str) -> dict[str, Variant]:
    module = _loaded(file)
    named = getattr(module, "VARIANTS", None)
    if not isinstance(named, list | tuple) or not all(isinstance(one, Variant) for one in named):
        raise ConfigError(f"{file}: VARIANTS has to be a list of Variant")
    found: dict[str, Variant] = {}
    for variant in named:
        problems = chain(_of_name(variant.name, found), _of_builders(variant, module))
        for line, problem in problems:  # the first one: others may follow from it
            where = f"{file}:{line}" if line else file
            raise ConfigError(f"{where}: variant {quoted(str(variant.name))}: {problem}")
        found[variant.name] = replace(
            variant,
            own=True,
            encoder=variant.encoder and f"{OWN}:{variant.encoder}",
            decoder=variant.decoder and f"{OWN}:{variant.decoder}",
        )
    return found


def variables() -> dict[str, Any]:
    """The global variables of the file, which has been loaded, by name."""
    return vars(sys.modules[OWN])


@contextlib.contextmanager
def run_anew() -> Iterator[str]:
    """Inside, builders are those of the file run once more, as another process would run it.

    It has been loaded before. Gives "", or why it does not run twice; builders are then those of
    the first time.
    What it prints and the warnings that it gives were shown then, and are left out.
    """
    before, problem = sys.modules[OWN], ""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            _loaded(path())
    except ConfigError as error:
        problem = str(error)
        sys.modules[OWN] = before
    try:
        yield problem
    finally:
        sys.modules[OWN] = before


class _Loader(SourceFileLoader):
    """Runs the text that was read, and leaves no compiled copy next to the file."""

    def get_code(self, fullname: str) -> Any:
        return self.source_to_code(_text(self.path), self.path)


def _loaded(file: str) -> ModuleType:
    """The file as a module. Raises ReadError, and ConfigError with the line of an error in it."""
    loader = _Loader(OWN, file)
    spec = importlib.util.spec_from_loader(OWN, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    _text(file)
    sys.modules[OWN] = module
    try:
        with contextlib.redirect_stdout(sys.stderr):  # stdout is for results
            loader.exec_module(module)
    except SyntaxError as error:
        raise ConfigError(f"{file}:{error.lineno or 1}: not Python: {error.msg}") from None
    except (Exception, SystemExit) as error:
        problem = f"{type(error).__name__}: {error}"
        if isinstance(error, ModuleNotFoundError):
            problem += "; the folder of the file is not searched, so keep all of it in one file"
        raise ConfigError(f"{file}:{line_in(file, error) or 1}: {problem}") from error
    return module


def line_in(file: str, error: BaseException) -> int | None:
    """The line of the file that raised an error, or called what raised it; None without one."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((one.lineno for one in reversed(frames) if one.filename == file), None)


def from_own(error: BaseException) -> BaseException:
    """The error; if its traceback passes through the file, what comes before that is cut off."""
    part = error.__traceback__
    while part is not None and part.tb_frame.f_code.co_filename != path():
        part = part.tb_next
    return error if part is None else error.with_traceback(part)


Problem = tuple[int, str]  # a line, 0 where it is not known, and what is wrong there


def _of_name(name: str, before: dict[str, Variant]) -> Iterator[Problem]:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield 0, "a name has small letters, digits, and - between them"
    elif name in VARIANTS:
        yield 0, "synmt has one of this name"
    elif name in RESERVED:
        yield 0, "config.toml has another table or key of this name"
    elif name in before:
        yield 0, "the file has two of this name"


def _of_builders(variant: Variant, module: ModuleType) -> Iterator[Problem]:
    for stack in ("encoder", "decoder"):
        if not isinstance(getattr(variant, stack), str):
            yield 0, f"{stack} has to be the name of a function, in quotes"
            return
    if variant.data:
        yield 0, "data is for variants of synmt, since synmt multitask makes their records"
    for name in variant.paths():
        build = getattr(module, name, None)
        if not inspect.isfunction(build) or build.__module__ != OWN:
            yield 0, f"the file has no function {quoted(name)}"
        else:
            for problem in _of_parameters(build):
                yield build.__code__.co_firstlineno, f"{name}: {problem}"


def _of_parameters(build: Callable[..., Any]) -> Iterator[str]:
    """Yields what is wrong with the declarations of a builder's options."""
    parameters = [*inspect.signature(build).parameters.values()]
    if not parameters or parameters[0].kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
        yield "its first parameter has to be the StackSpec"
        return
    hints = typing.get_type_hints(build, include_extras=True)
    for one in parameters[1:]:
        if one.kind is not one.KEYWORD_ONLY:
            yield f"{one.name} has to come after *, as options do"
        elif not _is_declared(hints.get(one.name)):
            form = 'Annotated[type, "meaning", Bounds(low, high)]'
            yield f"{one.name} needs the form {form}, with a type such as int, str or list[int]"
        elif one.default is one.empty:
            yield f"{one.name} needs a default"
    for name, option in options(build).items():
        if problem := option.problem(option.default):
            yield f"{name}: its default: {problem}"


def _is_declared(hint: Any) -> bool:
    """Whether it is Annotated[type, meaning] or Annotated[type, meaning, Bounds]."""
    if typing.get_origin(hint) is not typing.Annotated:
        return False
    kind, meaning, *bounds = typing.get_args(hint)
    try:
        described(kind)
    except KeyError:
        return False
    is_bounded = len(bounds) <= 1 and all(isinstance(one, Bounds) for one in bounds)
    return isinstance(meaning, str) and is_bounded


def check_built(built: object, variant: Variant, spec: StackSpec) -> None:
    """Raises ConfigError unless `built` are modifiers for this stack that say what they read."""
    from synmt_cli.core.model.modifier import Modifier  # the builder has loaded torch

    def refuse(problem: str) -> typing.NoReturn:
        raise ConfigError(f"{path()}: variant {variant.name}: {problem}")

    if not isinstance(built, tuple | list) or not all(isinstance(m, Modifier) for m in built):
        refuse(f"its builder for the {spec.stack} has to return a tuple of modifiers")
    for modifier in built:
        name = type(modifier).__name__
        if problem := _misread(modifier, variant, spec.stack):
            refuse(name + problem)
        if not modifier.layers <= {*range(spec.n_layers)}:
            refuse(f"{name} changes layers {sorted(modifier.layers)}, of 0 to {spec.n_layers - 1}")


def _misread(modifier: Modifier, variant: Variant, stack: str) -> str:
    """What is wrong with the features that a modifier says it reads, or ""."""
    from synmt_cli.core.transitions.grammar import FEATURES as TARGET_FEATURES
    from synmt_cli.core.trees.features import FEATURES as SOURCE_FEATURES

    needs, learns = modifier.needs, modifier.learns
    of_source = stack == "encoder"
    features = SOURCE_FEATURES if of_source else TARGET_FEATURES
    of_target = bool(needs) and not of_source
    choice = ", ".join(features)
    problems = {
        f".needs is {needs!r}, not a tuple of these: {choice}": (
            isinstance(needs, str) or not {*needs} <= {*features}
        ),
        f".learns is {learns!r}, not a tuple of what is in its needs": (
            isinstance(learns, str) or not {*learns} <= {*needs}
        ),
        " reads trees: its Variant needs source_trees=True": (
            needs and of_source and not variant.source_trees
        ),
        " reads trees of the target: its Variant needs transitions=True and rereads=True": (
            of_target and not (variant.transitions and variant.rereads)
        ),
        f".needs is {needs!r}, not all of these: {choice}": of_target and {*needs} != {*features},
    }
    return next((problem for problem, is_so in problems.items() if is_so), "")


def entry(variant: Variant) -> dict[str, str | bool]:
    """The part of a variant's entry in the file that decides what the model is."""
    return {
        "encoder": variant.encoder.partition(":")[2],
        "decoder": variant.decoder.partition(":")[2],
        "rereads": variant.rereads,
        "transitions": variant.transitions,
    }
