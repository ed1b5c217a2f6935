"""The trained model whose weights a new training begins with (`train --pretrained`).

The new model has its weights, vocabulary, sizes and variant, to which other variants may be added.
The optimizer, the order of the data and the schedule are the new training's own. The labels of the
pretrained model come first, in their order, so each row of a table keeps its label. A label that it
does not know gets a new row: a copy of the row that the model reads for it, such as that of `nsubj`
for `nsubj:outer`, or a random one where it knows neither. Parameters of added variants are random.

config.toml records which model it was. A run that has a checkpoint no longer needs that model.
"""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from synmt_cli.core.data.labels import UNKNOWN_LABEL, Labels
from synmt_cli.core.distributed.ranks import Ranks
from synmt_cli.core.model import initialisation
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run import tensors
from synmt_cli.core.run.building import build, read_config
from synmt_cli.core.run.config import Choice, Config, SettingsLayer, flatten
from synmt_cli.core.run.directory import Run
from synmt_cli.core.run.presets import AUTO, PRESETS
from synmt_cli.core.text.vocabulary import Vocabularies
from synmt_cli.core.training.saving.run_folder import begun_with
from synmt_cli.errors import ConfigError, DataError
from synmt_cli.io.digests import size_and_sha256
from synmt_cli.io.json_files import as_text

# Settings of [model] that matter only in training, and so may differ from the model's.
RATES = ("model.dropout", "model.attention_dropout", "model.activation_dropout")
PLAIN = "vanilla"
SHOWN = 5  # labels


@dataclass(frozen=True, slots=True)
class Pretrained:
    """A trained model.

    run: its run directory; for a training that has begun and does not name it again, that of the
    training itself. config: of the run. labels: of the model. record: its table in config.toml.
    weights: the file; None where a training that has begun does not name it again.
    """

    run: Run
    config: Config
    labels: Sequence[str]
    record: Mapping[str, Any]
    weights: Path | None

    def choice(self, choice: Choice) -> Choice:
        """The choice on top of the model's own variant and sizes.

        The preset is that of the model unless the user chose one. Raises ConfigError for a variant
        that is not the model's and does not add to it.
        """
        named = [one.text_of("variant") for one in choice.layers if "variant" in one.tables]
        of_preset = PRESETS.get(choice.preset, {}).get("variant", "")
        wanted = choice.variant or [of_preset, *named][-1] or self.config.variant
        self._refuse_less(wanted)
        stored = self.run.tables().get("preset")
        own = stored if isinstance(stored, str) and stored in PRESETS else AUTO
        layer = SettingsLayer(self.config.architecture(), str(self.run.config))
        preset = own if choice.preset == AUTO else choice.preset
        return replace(choice, variant=wanted, preset=preset, layers=[layer, *choice.layers])

    def _refuse_less(self, wanted: str) -> None:
        """Raises ConfigError unless a variant is the model's, or adds to it."""
        own = [name for name in self.config.variant.split("+") if name != PLAIN]
        if own != [name for name in wanted.split("+") if name in own]:
            variant = self.config.variant
            raise ConfigError(
                f"{self.run.folder} has variant = {variant!r}, not {wanted!r}; a variant can "
                f"only be added, as {variant}+NAME"
            )

    def refuse_another(self, config: Config) -> None:
        """Raises ConfigError where settings ask for a model other than this one."""
        if self.weights is None:  # the run itself says what may not change
            return
        own, wanted = flatten(self.config.architecture()), flatten(config.architecture())
        for key, value in own.items():
            if not key.startswith("training.") and key not in RATES and wanted[key] != value:
                raise ConfigError(
                    f"{self.run.folder} has {key} = {value!r}, not {wanted[key]!r}; leave that "
                    "out, because a training that begins with its weights keeps it"
                )

    def vocabularies(self, fingerprint: str | None) -> Vocabularies:
        """The model's vocabularies. Raises ConfigError for another fingerprint; None fits."""
        own = self.run.vocabularies()
        if fingerprint not in (None, own.fingerprint):
            raise ConfigError(
                f"{self.run.folder} has vocabulary {own.fingerprint}, not {fingerprint}; make the "
                "records with its spm.model"
            )
        return own

    def begin(
        self, model: Transformer, vocabularies: Vocabularies, labels: Labels, ranks: Ranks
    ) -> None:
        """Gives a new model these weights; parameters that they lack stay as they were drawn.

        labels: of the model. Every process calls it. Raises ReadError, DataError for damaged
        weights, ConfigError for those of another model.
        """
        path = self._named_weights()
        digest = float(int(self.record["sha256"][:12], 16))
        if ranks.from_first([digest]) != [digest]:
            raise ConfigError(
                f"{path}: not the weights that the first process begins with; all processes have "
                "to see the same model"
            )
        outline = self._outline(vocabularies)
        old = tensors.read(path, tensors.fitting(outline, vocabularies.fingerprint, path))[0]
        if _sha256(path) != self.record["sha256"]:
            raise DataError(str(path), None, "it changes while it is read")
        for name, own, parameter in _pairs(model, outline, path):
            values = old[name]
            if own.shape != parameter.shape:
                values = self._with_new_rows(values, parameter, labels)
            if values.shape != parameter.shape:
                was, now = tuple(values.shape), tuple(parameter.shape)
                raise ConfigError(f"{path}: {name} has shape {was}, not {now}")
            with torch.no_grad():
                parameter.copy_(values)

    def _named_weights(self) -> Path:
        if self.weights is None:
            raise ConfigError(
                "this run has no checkpoint yet, so it still needs the weights that it begins "
                f"with: name them by --pretrained {self.record['run']}"
            )
        return self.weights

    def _outline(self, vocabularies: Vocabularies) -> Transformer:
        """The model without values."""
        with initialisation.without_values():
            return build(self.config, vocabularies, len(self.labels))

    def _with_new_rows(self, old: Tensor, fresh: Tensor, labels: Labels) -> Tensor:
        """Adds rows for new labels, (1 + old, D) -> (1 + all, D); other tables stay as they are."""
        if fresh.shape[1:] != old.shape[1:] or len(fresh) - len(old) != len(self._new(labels)):
            return old
        values = torch.cat((old, fresh[len(old) :]))
        known = Labels(self.labels)
        for row, name in enumerate(self._new(labels), len(old)):
            if (like := known.id(name)) != UNKNOWN_LABEL:
                values[row] = old[like]
        return values

    def _new(self, labels: Labels) -> list[str]:
        """The labels that the model does not know."""
        return labels.names[len(self.labels) :]

    def introduction(
        self, model: Transformer, vocabularies: Vocabularies, labels: Labels
    ) -> Iterator[str]:
        """Yields lines that tell the user what a new model begins with."""
        yield f"begins with the weights of {self.record['run']} ({self.record['checkpoint']})"
        outline = self._outline(vocabularies)
        n_parameters, n_own = _size(model), _size(outline)
        if n_parameters > n_own:
            yield f"{n_parameters - n_own:,} of {n_parameters:,} parameters are new"
        pairs = _pairs(model, outline, self.run.folder)
        if any(own.shape != parameter.shape for _, own, parameter in pairs):
            names = self._new(labels)
            more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
            yield f"new labels: {', '.join(names[:SHOWN])}{more}"


def find(name: str, checkpoint: str, run: Run | None) -> Pretrained | None:
    """The model that a training begins with, or began with. Raises SynmtError.

    name: of its run, or "". checkpoint: `best`, `last` or `step-N`. run: of the training, new or
    begun. A training that has begun remembers its model, which may since have been removed.
    """
    known = _remembered(run) if run is not None else None
    is_gone = known and known.record["run"] == as_text(name) and not os.path.lexists(name)
    return known if is_gone or not name else in_folder(name, checkpoint)


def in_folder(name: str, checkpoint: str = "best") -> Pretrained:
    """The model in a run directory. Raises SynmtError."""
    run = Run(Path(name))
    checkpoint = run.named(checkpoint)
    config, weights, labels = read_config(run), run.weights(checkpoint), run.labels()
    record = {
        "run": as_text(name),
        "checkpoint": checkpoint,
        "sha256": _sha256(weights),
        "labels": len(labels),
    }
    return Pretrained(run, config, labels, record, weights)


def _remembered(run: Run) -> Pretrained | None:
    if begun_with(run) is None or (record := run.pretrained()) is None:
        return None
    labels = run.labels()[: record["labels"]]
    return Pretrained(run, read_config(run), labels, record, None)


def _sha256(weights: Path) -> str:
    return size_and_sha256(str(weights), follow=False)[1]


def _pairs(
    model: Transformer, outline: Transformer, source: Path
) -> Iterator[tuple[str, Parameter, Parameter]]:
    """Yields each parameter of `outline`: its name, itself, and that of `model` in its place.

    Raises ConfigError for one that `model` lacks.
    """
    places = {_place(model, name): one for name, one in model.named_parameters()}
    for name, own in outline.named_parameters():
        place = _place(outline, name)
        if place not in places:
            raise ConfigError(f"{source}: parameter {name} is not part of the new model")
        yield name, own, places[place]


def _place(model: Transformer, name: str) -> str:
    """A parameter's name, with a modifier's variant instead of its number.

    So it is the same whatever other variants there are.
    """
    stack, _, rest = name.partition(".modifiers.")
    if not rest:
        return name
    modifiers = (model.encoder if stack == "encoder" else model.decoder).modifiers
    names = [modifier.name for modifier in modifiers]
    number, _, own = rest.partition(".")
    variant = names[int(number)]
    return f"{stack}.{variant}.{names[: int(number)].count(variant)}.{own}"


def _size(model: Transformer) -> int:
    return sum(math.prod(parameter.shape) for parameter in model.parameters())
