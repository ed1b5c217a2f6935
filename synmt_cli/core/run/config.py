"""The configuration of a run: resolved from presets, a TOML file and the command line.

Later layers win: defaults < preset < --config < --set and flags. The resolved values are
written to the run directory's config.toml and compared when a run resumes (resuming.py).
"""

import dataclasses
import difflib
import json
import re
import tomllib
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from synmt_cli.core import variants
from synmt_cli.core.model.size import Size
from synmt_cli.core.options import SEED, Bounds, Option, options, suggestion
from synmt_cli.core.run.declared import declared
from synmt_cli.core.run.presets import AUTO, PRESETS, SIZES
from synmt_cli.core.text.tokenizers import DEFAULT, Tokenizer
from synmt_cli.core.variants import own_file
from synmt_cli.errors import ConfigError, DataError, UsageError, quoted
from synmt_cli.io import json_files, regular_files

Precision = Literal["auto", "fp32", "bf16", "fp16"]

LIMIT = 4 * 2**20  # bytes of a file
BITS = 1000  # of an integer: one that is of no use may be there, but not one of 5,000 digits
DOTS = 200  # in a line: a key of thousands of parts would take minutes to read


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How a model is trained."""

    max_steps: Annotated[int, "largest number of updates", Bounds(1)] = 100_000
    max_epochs: Annotated[int, "largest number of epochs; 0 sets no limit", Bounds(0)] = 0
    batch_tokens: Annotated[
        int, "padded pieces of the longer side in a batch; transitions do not count", Bounds(1)
    ] = 4096
    batch_sentences: Annotated[
        int, "largest number of pairs in a batch; 0 sets no limit", Bounds(0)
    ] = 0
    accumulate: Annotated[int, "batches per update", Bounds(1)] = 1
    micro_tokens: Annotated[
        int,
        "padded pieces that pass through the model at a time, counted as those of a batch; 0 is a "
        "batch. It is for memory and speed: the size of an update stays batch_tokens x accumulate",
        Bounds(0),
    ] = 0
    lr: Annotated[float, "peak learning rate, then inverse square root", Bounds(0)] = 0.0007
    initial_lr: Annotated[float, "learning rate that warm-up begins with", Bounds(0)] = 1e-7
    warmup: Annotated[int, "updates from initial_lr to lr; 0 is as 1", Bounds(0)] = 4000
    betas: Annotated[tuple[float, float], "Adam's betas", Bounds(0, 0.999999)] = (0.9, 0.98)
    eps: Annotated[float, "Adam's epsilon", Bounds(1e-30)] = 1e-9
    weight_decay: Annotated[float, "Adam's weight decay", Bounds(0)] = 0.0
    clip_norm: Annotated[float, "largest norm of the gradient; 0 is no limit", Bounds(0)] = 1.0
    label_smoothing: Annotated[float, "probability spread over the vocabulary", Bounds(0, 1)] = 0.1
    transition_weight: Annotated[
        float,
        "weight of arcs in the loss of decoders that write trees; words have 1. Search and all "
        "figures correct for it, so that arcs are as likely as in the data",
        Bounds(0),
    ] = 0.3
    transition_smoothing: Annotated[
        float, "label smoothing of arcs, in place of label_smoothing", Bounds(0, 1)
    ] = 0.0
    prefix_share: Annotated[
        float,
        "share of each target's prefixes that a re-reading decoder is trained on, drawn at random "
        "and weighted so that the gradient is unbiased",
        Bounds(1e-6, 1),
    ] = 1.0
    max_length: Annotated[
        int, "most pieces of a side, EOS counted; longer pairs are left out and counted", Bounds(1)
    ] = 256
    validate_every: Annotated[int, "updates between validations", Bounds(1)] = 1000
    save_every: Annotated[
        int, "updates between checkpoints; a validation saves one, too", Bounds(1)
    ] = 1000
    patience: Annotated[
        int,
        "stop after so many validations that are better neither by the metric nor by perplexity; "
        "0 never stops",
        Bounds(0),
    ] = 0
    metric: Annotated[
        Literal["bleu", "accuracy", "loss"],
        "what makes a model better: BLEU of greedy translations, the accuracy of target "
        "tokens, or the loss, which is quickest; of equal ones the lower perplexity decides",
    ] = "bleu"
    tokenize: Annotated[
        Tokenizer,
        "tokenizer of sacreBLEU for the metric bleu, as in synmt score --tokenize: zh for Chinese, "
        "char for other targets without spaces between words",
    ] = DEFAULT
    keep: Annotated[int, "how many checkpoints to keep", Bounds(1)] = 2
    precision: Annotated[
        Precision,
        "auto is bf16 on a GPU that supports it and on a CPU where timing shows that it pays, "
        "else fp32; fp16 is for GPUs without bf16, and scales the loss; a run keeps what it began "
        "with",
    ] = "auto"
    compile: Annotated[
        bool,
        "layers are compiled by torch, which takes a minute or two at the start; meant for GPUs, "
        "but has not been tried on one yet; on a CPU training is a tenth slower; needs a C++ "
        "compiler on a CPU and Triton on a GPU; "
        "weights and files are the same, and a run may go on with or without it",
    ] = False
    seed: Annotated[int, "seed of weights, order and dropout", Bounds(0, 2**63 - 1)] = SEED
    shard: Annotated[
        bool,
        "each of several processes (--nproc, torchrun) keeps its part of the encoder's and "
        "decoder's layers, for models that do not fit one GPU; the losses are the same, and a "
        "run may go on with or without it; one process alone trains as without; needs torch 2.8; "
        "decoders that re-read their prefix refuse it",
    ] = False


SECTIONS = {"model": Size, "training": Training}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The resolved configuration of a run. options: {variant: {option: value}}, with defaults."""

    variant: str = "vanilla"
    preset: str = "base"
    model: Size = field(default_factory=Size)
    training: Training = field(default_factory=Training)
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def architecture(self) -> dict[str, Any]:
        """The tables that define a model, with the weight of arcs: the search corrects for it."""
        tables = {"model": dataclasses.asdict(self.model), **self.own_options()}
        if variants.plan(self.variant).transitions:
            tables["training"] = {"transition_weight": self.training.transition_weight}
        return tables

    def own_options(self) -> dict[str, dict[str, Any]]:
        """A table for each variant that has options."""
        return {name: dict(own) for name, own in self.options.items() if own}

    def to_toml(self) -> dict[str, Any]:
        """Plain tables: variant, preset, [model], [training], and one for each variant."""
        return {
            "variant": self.variant,
            "preset": self.preset,
            "model": dataclasses.asdict(self.model),
            "training": dataclasses.asdict(self.training),
            **self.own_options(),
        }


@dataclass(frozen=True, slots=True)
class SettingsLayer:
    """Tables from one place. origin: file or flag; text: for line numbers, else "".

    is_preset: a preset's options of variants that a run does not have are passed over.
    """

    tables: Mapping[str, Any]
    origin: str
    text: str = ""
    is_preset: bool = False

    def refuse(self, key: str, what: str) -> typing.NoReturn:
        """Raises ConfigError (a file) or UsageError (the command line) about `key`."""
        if not self.text:
            raise UsageError(f"{self.origin}: {key}: {what}")
        raise ConfigError(f"{self.origin}:{self._line(key)}: {key}: {what}")

    def text_of(self, key: str) -> str:
        """The text of a key outside all tables, "" if there is none."""
        value = self.tables.get(key, "")
        if not isinstance(value, str):
            self.refuse(key, f"expected a string, not {quoted(str(value))}")
        return value

    def is_unused(self, section: str, sections: Mapping[str, Any]) -> bool:
        """Whether these are a preset's options of a variant that this run does not have."""
        return self.is_preset and section not in sections

    def _line(self, key: str) -> int:
        section, _, name = key.rpartition(".")
        inside, outside, place = not section, bool(section), 1
        written = "|".join(map(re.escape, (name, json.dumps(name)[1:-1])))
        # section.name = ..., or section = {name = ...}
        dotted = rf"\s*{re.escape(section)}\s*(\.\s*[\"']?(?:{written})[\"']?\s*[=.]|=)"
        for number, line in enumerate(self.text.split("\n"), 1):
            if header := re.match(r"\s*\[\s*([^]]*?)\s*]", line):
                inside, outside = header[1] == section, False
                place = number if header[1] == key else place
            elif (outside and re.match(dotted, line)) or (
                inside and re.match(rf"\s*[\"']?(?:{written})[\"']?\s*[=.]", line)
            ):
                return number
        return place


def from_file(path: str) -> SettingsLayer:
    """A TOML file. Raises ReadError, DataError, ConfigError with the line of a syntax error."""
    return from_bytes(regular_files.read(path, LIMIT, follow=True), path)


def from_bytes(data: bytes, path: str) -> SettingsLayer:
    """The tables of a TOML file. Raises DataError, ConfigError with the line of a syntax error."""
    if len(data) > LIMIT:
        raise DataError(path, None, f"more than the {LIMIT:,} bytes it may have")
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.count(b".") > DOTS:
            raise ConfigError(f"{path}:{number}: more than {DOTS} dots")
    text = ""
    try:
        text = data.decode("utf-8")
        tables = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: invalid UTF-8 at byte {error.start + 1}") from None
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+), column \d+\)", str(error))
        line_number = place[1] if place else str(text.count("\n") + 1)
        what = re.sub(r" \(at .*\)", "", str(error))
        raise ConfigError(f"{path}:{line_number}: not TOML: {what}") from None
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, 100,000 brackets
        raise ConfigError(f"{path}: not TOML: {error}") from None
    if problem := json_files.unusual(tables, finite=False, bits=BITS):
        raise ConfigError(f"{path}: {problem}")
    return SettingsLayer(tables, path, text or "\n")


def from_settings(settings: Sequence[str]) -> list[SettingsLayer]:
    """`--set section.key=value`, the value as in TOML or a bare word."""
    layers = []
    for setting in settings:
        key, sign, value = setting.partition("=")
        if not sign or not key or "\n" in setting or "\r" in setting:  # two settings in TOML
            raise UsageError(f"--set {setting!r}: expected section.key=value")
        section, dot, name = key.rpartition(".")
        section = section if dot else _section_of(name)
        tables = {section: {name: _value(value)}}
        if problem := json_files.unusual(tables, finite=False):
            raise UsageError(f"--set {key}: {problem}")
        layers.append(SettingsLayer(tables, f"--set {setting}"))
    return layers


def _section_of(name: str) -> str:
    for section, owner in SECTIONS.items():
        if name in options(owner):
            return section
    keys = [f"{one.name}.{name}" for one in own_file.known().values() if name in declared(one)]
    near = difflib.get_close_matches(
        name, {key for one in SECTIONS.values() for key in options(one)}
    )
    meant = keys or near[:1]
    hint = f"did you mean {' or '.join(meant)}?" if meant else "name its section"
    raise UsageError(f"--set {name}: no such key in model or training; {hint} (see synmt settings)")


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except (ValueError, RecursionError):  # a bare word
        return text


def resolve(variant: str | None, preset: str, layers: Sequence[SettingsLayer]) -> Config:
    """Joins all layers over the preset. Raises UsageError, ConfigError.

    preset: a key of PRESETS. `auto` is not one of them: `presets.by_data` chooses one once the data
    and the device are known.
    """
    if preset == AUTO:
        sizes = ", ".join(SIZES)
        raise UsageError(f"preset auto is one of {sizes}, by data and device; name one of them")
    if preset not in PRESETS:
        shown = f"{AUTO}, {', '.join(SIZES)} and those of the papers"
        hint = suggestion(preset, (AUTO, *PRESETS), shown=shown)
        raise UsageError(f"no preset {preset!r}; {hint} (see synmt-config(5))")
    layers = [SettingsLayer(PRESETS[preset], f"preset {preset}", is_preset=True), *layers]
    for layer in layers:
        for key in ("variant", "preset"):
            layer.text_of(key)
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
    refuse_shard(training, chosen, plan.rereads)
    return Config(variant=chosen, preset=preset, model=size, training=training, options=options)


def refuse_shard(training: Training, variant: str, rereads: bool) -> None:
    """Raises ConfigError where layers cannot be shared out."""
    if training.shard and rereads:
        raise ConfigError(
            f"training.shard: {variant} reads each prefix anew, in as many passes as a batch is "
            "long, and processes that share out layers have to make the same passes; leave it out"
        )
    if training.shard and training.precision == "fp16":
        raise ConfigError("training.shard: layers that are shared out take bf16 or fp32, not fp16")
    if training.shard and training.compile:
        raise ConfigError("training.compile does not go with training.shard: leave one out")


@dataclass(frozen=True, slots=True)
class Choice:
    """The choices that configure a run before its data are read. preset: may be AUTO."""

    variant: str | None
    preset: str
    layers: Sequence[SettingsLayer]

    def config(self, preset: str = "") -> Config:
        """The configuration with the chosen preset, or with another one. Raises as `resolve`."""
        return resolve(self.variant, preset or self.preset, self.layers)

    def provisional(self) -> Config:
        """A configuration to read the data with, whose variant is final. Raises as `resolve`."""
        if self.preset != AUTO:
            return self.config()
        errors = []
        for name in SIZES:  # a setting may fit one of them alone
            try:
                return self.config(name)
            except (ConfigError, UsageError) as error:
                errors.append(error)
        raise errors[0]


def _checked(layer: SettingsLayer, sections: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yields the (section, key, value) of a layer, each of them checked."""
    for section, table in layer.tables.items():
        if section in ("variant", "preset", *INFORMATION) or layer.is_unused(section, sections):
            continue
        if section not in sections:
            hint = suggestion(section, sections)
            layer.refuse(section, f"no such section here; {hint} (see synmt settings)")
        if not isinstance(table, Mapping):
            layer.refuse(section, f"expected a table, not {quoted(str(table))}")
        known = _options(section)
        for key, value in table.items():
            if key not in known:
                hint = suggestion(key, known)
                layer.refuse(
                    f"{section}.{key}", f"no such key; {hint} (see synmt settings {section})"
                )
            if problem := known[key].problem(value) or json_files.unusual(value, finite=False):
                key = f"{section}.{key}"
                layer.refuse(key, f"{problem} (see synmt settings {key})")
            is_pair = typing.get_origin(known[key].hint) is tuple
            yield section, key, tuple(map(float, value)) if is_pair else value


# Further keys and tables of config.toml, which are not settings.
INFORMATION = ("vocabulary", "parser", "pretrained", "data", "format", "variants")


def _options(section: str) -> dict[str, Option]:
    """The options of a section; a variant's have no bounds here, since it checks them itself."""
    if section in SECTIONS:
        return options(SECTIONS[section])
    own = own_file.known()[section].options()
    return {name: dataclasses.replace(option, bounds=Bounds()) for name, option in own.items()}


def flatten(tables: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"model": {"d_ff": 1}} -> {"model.d_ff": 1}; tuples become lists, as TOML has them."""
    flat: dict[str, Any] = {}
    for key, value in tables.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = list(value) if isinstance(value, tuple) else value
    return flat
