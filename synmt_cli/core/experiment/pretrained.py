"""The trained models whose weights the trainings of an experiment begin with."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from synmt_cli.core.experiment.design import Design
from synmt_cli.core.run.config import Choice, Config
from synmt_cli.core.run.directory import SOURCE_VOCABULARY
from synmt_cli.core.training import pretrained
from synmt_cli.core.training.pretrained import Pretrained
from synmt_cli.core.variants import plan
from synmt_cli.errors import ConfigError

System = tuple[str, int]  # variant and seed


@dataclass(frozen=True)
class PretrainedModels:
    """A trained model for each training. All models have one vocabulary.

    folders: the models' run directories. configs: the configurations after further training.
    """

    folders: Mapping[System, str]
    configs: Mapping[System, Config]

    @property
    def links(self) -> dict[str, str]:
        """Names in the folder of the experiment, and what they link to."""
        folders = self.folders.items()
        links = {f"given/pretrained/{variant}.{seed}": of for (variant, seed), of in folders}
        return links | {"spm.model": f"{next(iter(self.folders.values()))}/{SOURCE_VOCABULARY}"}

    def first_config(self, variant: str) -> Config:
        """The configuration of the first model of a variant, after further training."""
        return next(config for (name, _), config in self.configs.items() if name == variant)

    @property
    def lr(self) -> float:
        """A third of the learning rate that the preset of the first model has."""
        return next(iter(self.configs.values())).training.lr / 3

    def warnings(self) -> Iterator[str]:
        """Yields what makes the comparison unfair."""
        of_sizes = {config.model: system for system, config in self.configs.items()}
        if len(of_sizes) > 1:
            names = " and ".join(self.folders[system] for system in [*of_sizes.values()][:2])
            yield f"{names} differ in [model] of config.toml, which scores will show, too"
        presets = {config.preset: system for system, config in self.configs.items()}
        if len(presets) > 1:
            names = " and ".join(self.folders[system] for system in [*presets.values()][:2])
            yield f"{names} have other presets ({', '.join(presets)}): name one by --preset"


def read(name: str, design: Design) -> PretrainedModels:
    """The models of a design.

    name: their run directories, where {variant} and {seed} stand for each training's.

    Raises SynmtError for a model that is missing or damaged, or that a training cannot begin with,
    and ConfigError for vocabularies that differ.
    """
    systems = [(variant, seed) for variant in design.variants for seed in design.seeds]
    folders = {
        (variant, seed): name.replace("{variant}", variant).replace("{seed}", str(seed))
        for variant, seed in systems
    }
    distinct = dict.fromkeys(folders.values())  # all trainings may begin with one model
    models = {folder: pretrained.in_folder(folder) for folder in distinct}
    _refuse_vocabularies(models)
    configs = {}
    for (variant, seed), folder in folders.items():
        model = models[folder]
        _refuse_symbols(variant, model)
        choice = model.choice(Choice(variant, design.preset, []))
        configs[variant, seed] = choice.provisional()
    return PretrainedModels(folders, configs)


def _refuse_vocabularies(models: Mapping[str, Pretrained]) -> None:
    """Raises ConfigError unless all models share one vocabulary, the same for both languages."""
    fingerprints = {name: model.run.vocabularies().fingerprint for name, model in models.items()}
    (first, expected), *_ = fingerprints.items()
    for name, fingerprint in fingerprints.items():
        if "+" in fingerprint:
            raise ConfigError(
                f"{name} has a vocabulary for each language; an experiment has one for both"
            )
        if fingerprint != expected:
            raise ConfigError(
                f"{name} has vocabulary {fingerprint}, but {first} has {expected}; an experiment "
                "has one for all models"
            )


def _refuse_symbols(variant: str, model: Pretrained) -> None:
    """Raises ConfigError if the variant's records have other symbols than the model's.

    These are symbols of transitions or tasks, which the model's vocabulary may lack.
    """
    wanted, own = plan(variant), plan(model.config.variant)
    if (wanted.transitions, wanted.data) != (own.transitions, own.data):
        raise ConfigError(
            f"{model.run.folder} has variant = {model.config.variant!r}, whose vocabulary is not "
            f"made for {variant}"
        )
