"""What a training run is: resolved from presets, a TOML file and the command line.

Later layers win: defaults < preset < --config < --set and flags. Everything that was
resolved is written to the run directory's config.toml and compared when a run resumes.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import tomllib
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from synmt_cli.core import variants
from synmt_cli.core.model.size import Size
from synmt_cli.core.options import HIGH, LOW, bounded, problem, suggestion
from synmt_cli.core.run.presets import PRESETS
from synmt_cli.errors import ConfigError, ReadError, UsageError, printable


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How a model is trained.

    max_steps, max_epochs: updates, and passes over the data, at most; 0 epochs = any number.
    batch_tokens: padded cells of the longer side in one batch; batch_sentences: pairs in it,
    0 = any number. accumulate: batches per update. lr: the peak, after `warmup` updates from
    `initial_lr`; then inverse square root. clip_norm: largest norm of the gradient, 0 = no
    limit. prefix_share: of the prefixes of each target, how many a re-reading decoder is
    trained on, drawn by chance and weighted so that the gradient is unbiased. max_length:
    pieces; longer pairs are left out and counted. validate_every, save_every: in updates.
    patience: validations without a better one before the end, 0 = never. metric: what "better"
    means: BLEU of greedy translations, the share of target tokens guessed right, or the loss,
    which is quickest. keep: how many checkpoints stay. precision: auto is bf16 on a GPU that
    has it, else fp32. shard: of several processes (--nproc, torchrun) each keeps its part of
    the encoder's and decoder's layers, for models that do not fit one card; the losses are the
    same, and a run may go on with or without it. Nothing changes for one process. It needs
    torch 2.8; decoders that re-read their prefix refuse it.
    """

    max_steps: int = bounded(100_000, 1)
    max_epochs: int = bounded(0, 0)
    batch_tokens: int = bounded(4096, 1)
    batch_sentences: int = bounded(0, 0)
    accumulate: int = bounded(1, 1)
    lr: float = bounded(0.0007, 0)
    initial_lr: float = bounded(1e-7, 0)
    warmup: int = bounded(4000, 0)
    betas: tuple[float, float] = bounded((0.9, 0.98), 0, 0.999999)
    eps: float = bounded(1e-9, 0)
    weight_decay: float = bounded(0.0, 0)
    clip_norm: float = bounded(1.0, 0)
    label_smoothing: float = bounded(0.1, 0, 1)
    prefix_share: float = bounded(1.0, 1e-6, 1)
    max_length: int = bounded(256, 1)
    validate_every: int = bounded(1000, 1)
    save_every: int = bounded(1000, 1)
    patience: int = bounded(0, 0)
    metric: Literal["bleu", "accuracy", "loss"] = "bleu"
    keep: int = bounded(2, 1)
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    seed: int = bounded(1, 0, 2**63 - 1)
    shard: bool = False


# What may change between a run and its resumption without making it another run.
CHANGEABLE = frozenset(
    f"training.{key}"
    for key in (
        *("max_steps", "max_epochs", "patience", "validate_every", "save_every", "keep"),
        "shard",  # where a parameter lies, not what it becomes
    )
) | {"preset", "data.train", "data.dev", "parser.file"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A resolved run. options: {variant: {option: value}}, defaults included."""

    variant: str = "vanilla"
    preset: str = "base"
    model: Size = field(default_factory=Size)
    training: Training = field(default_factory=Training)
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def to_toml(self) -> dict[str, Any]:
        """Plain tables: variant, preset, [model], [training], and one for each variant."""
        return {
            "variant": self.variant,
            "preset": self.preset,
            "model": dataclasses.asdict(self.model),
            "training": dataclasses.asdict(self.training),
            **{name: dict(options) for name, options in self.options.items() if options},
        }


@dataclass(frozen=True, slots=True)
class SettingsLayer:
    """Tables from one place. origin: file or flag; text: for line numbers, else ""."""

    tables: Mapping[str, Any]
    origin: str
    text: str = ""

    def refuse(self, key: str, what: str) -> typing.NoReturn:
        """Raises ConfigError (a file) or UsageError (the command line) about `key`."""
        if not self.text:
            raise UsageError(printable(f"{self.origin}: {key}: {what}"))
        raise ConfigError(f"{printable(self.origin)}:{self._line(key)}: {printable(key)}: {what}")

    def is_unused(self, section: str, sections: Mapping[str, Any]) -> bool:
        """True for a preset's options of a variant that this run does not have."""
        return self.origin.startswith("preset ") and section not in sections

    def _line(self, key: str) -> int:
        section, _, name = key.rpartition(".")
        inside, found = not section, 1
        written = "|".join(map(re.escape, (name, json.dumps(name)[1:-1])))
        for number, line in enumerate(self.text.split("\n"), 1):
            if header := re.match(r"\s*\[\s*([^]]*?)\s*]", line):
                inside, found = header[1] == section, number if header[1] == key else found
            elif inside and re.match(rf"\s*[\"']?(?:{written})[\"']?\s*[=.]", line):
                return number
        return found


def from_file(path: str) -> SettingsLayer:
    """A TOML file. Raises ReadError, ConfigError with the line of a syntax error."""
    try:
        text = Path(path).read_bytes().decode("utf-8")
        return SettingsLayer(tomllib.loads(text), path, text or "\n")
    except OSError as error:
        raise ReadError(f"cannot read {printable(path)}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{printable(path)}: invalid UTF-8 at byte {error.start + 1}") from None
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+), column \d+\)", str(error))
        line = place[1] if place else str(text.count("\n") + 1)
        what = re.sub(r" \(at .*\)", "", str(error))
        raise ConfigError(f"{printable(path)}:{line}: not TOML: {what}") from None
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, 100,000 brackets
        raise ConfigError(f"{printable(path)}: not TOML: {printable(str(error))}") from None


def from_settings(settings: Sequence[str]) -> list[SettingsLayer]:
    """`--set section.key=value`, the value as in TOML or a bare word."""
    layers = []
    for setting in settings:
        key, sign, value = setting.partition("=")
        if not sign or not key:
            raise UsageError(f"--set {setting!r}: expected section.key=value")
        section, dot, name = key.rpartition(".")
        section = section if dot else _section_of(name)
        layers.append(SettingsLayer({section: {name: _value(value)}}, f"--set {setting}"))
    return layers


def _section_of(name: str) -> str:
    for section, kind in (("model", Size), ("training", Training)):
        if name in {f.name for f in dataclasses.fields(kind)}:
            return section
    raise UsageError(f"--set {name}: no such key in model or training; name its section")


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text


def resolve(variant: str | None, preset: str, layers: Sequence[SettingsLayer]) -> Config:
    """Joins all layers over the preset. Raises UsageError, ConfigError."""
    if preset not in PRESETS:
        raise UsageError(f"no preset {preset!r}; {suggestion(preset, PRESETS)}")
    layers = [SettingsLayer(PRESETS[preset], f"preset {preset}"), *layers]
    for layer in layers:
        named = layer.tables.get("variant")
        if named is not None and not isinstance(named, str):
            layer.refuse("variant", f"expected a text, not {named!r}")
    named = [layer.tables["variant"] for layer in layers if "variant" in layer.tables]
    chosen = variant or (named[-1] if named else "vanilla")
    plan = variants.plan(chosen)
    values: dict[str, dict[str, Any]] = {"model": {}, "training": {}}
    values |= {v.name: variants.defaults(v) for v in plan.variants}
    for layer in layers:
        for section, key, value in _checked(layer, values):
            values[section][key] = value
    options = {v.name: values[v.name] for v in plan.variants}
    try:
        size = Size(**values["model"])
    except ValueError as error:
        raise ConfigError(f"model: {error}") from None
    training = Training(**values["training"])
    if training.shard and plan.rereads:
        raise ConfigError(
            f"training.shard: {chosen} reads each prefix anew, in as many passes as a batch is "
            "long, and processes that share out layers have to make the same passes; leave it out"
        )
    return Config(variant=chosen, preset=preset, model=size, training=training, options=options)


def _checked(layer: SettingsLayer, sections: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """The (section, key, value) of a layer, each of them legal."""
    for section, table in layer.tables.items():
        if section in ("variant", "preset", *INFORMATION) or layer.is_unused(section, sections):
            continue
        if section not in sections:
            layer.refuse(section, f"no such section here; {suggestion(section, sections)}")
        if not isinstance(table, Mapping):
            layer.refuse(section, f"expected a table, not {table!r}")
        known = _known(section)
        for key, value in table.items():
            if key not in known:
                layer.refuse(f"{section}.{key}", f"no such key; {suggestion(key, known)}")
            hint, low, high = known[key]
            if what := problem(value, hint, low, high):
                layer.refuse(f"{section}.{key}", what)
            yield section, key, tuple(value) if typing.get_origin(hint) is tuple else value


INFORMATION = ("vocabulary", "parser", "data", "format")  # what a run's config.toml also holds


def _known(section: str) -> dict[str, tuple[Any, float | None, float | None]]:
    """key -> (type, low, high) of a section."""
    if section in ("model", "training"):
        kind: type[Size] | type[Training] = Size if section == "model" else Training
        hints = typing.get_type_hints(kind)
        return {
            f.name: (hints[f.name], f.metadata.get(LOW), f.metadata.get(HIGH))
            for f in dataclasses.fields(kind)
        }
    return {
        key: (typing.get_type_hints(build, vars(inspect.getmodule(build)))[key], None, None)
        for build in variants.VARIANTS[section].builders()
        for key in variants.known(build)
    }


def flatten(tables: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"model": {"d_ff": 1}} -> {"model.d_ff": 1}; tuples become lists, as TOML has them."""
    flat: dict[str, Any] = {}
    for key, value in tables.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = list(value) if isinstance(value, tuple) else value
    return flat


def refuse_another(old: Mapping[str, Any], new: Mapping[str, Any], run: Path) -> None:
    """Raises ConfigError if `new` is not the run that `old` was: option, old, new value."""
    before, now = flatten(old), flatten(new)
    keys = before.keys() | now.keys()
    for key in sorted(keys, key=lambda key: ("." in key, key)):  # the variant before its options
        if key not in CHANGEABLE and before.get(key) != now.get(key):
            raise ConfigError(
                f"{printable(str(run))} was trained with {key} = {before.get(key)!r}, "
                f"not {now.get(key)!r}; name another --run, or the old value"
            )
