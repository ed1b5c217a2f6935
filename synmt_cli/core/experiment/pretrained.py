"""The trained models with whose weights the trainings of an experiment begin."""

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
    """One for each training. folders: of their runs. configs: what they will be, trained further.

    The first one's vocabulary is that of all.
    """

    folders: Mapping[System, str]
    configs: Mapping[System, Config]

    @property
    def links(self) -> dict[str, str]:
        """Names in the folder of the experiment, and what they link to."""
        folders = self.folders.items()
        links = {f"given/pretrained/{variant}.{seed}": of for (variant, seed), of in folders}
        return links | {"spm.model": f"{next(iter(self.folders.values()))}/{SOURCE_VOCABULARY}"}

    def config(self, variant: str) -> Config:
        """What the first model of a variant will be."""
        return next(config for (name, _), config in self.configs.items() if name == variant)

    @property
    def lr(self) -> float:
        """A third of the learning rate with which models of the first one's preset are trained."""
        return next(iter(self.configs.values())).training.lr / 3

    def warnings(self) -> Iterator[str]:
        """What makes the comparison unfair."""
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

    name: of their runs; {variant} and {seed} there stand for those of each training.

    Raises SynmtError for a model that is missing or damaged, or with which a training cannot begin,
    and ConfigError for vocabularies that differ.
    """
    systems = [(variant, seed) for variant in design.variants for seed in design.seeds]
    folders = {
        (variant, seed): name.replace("{variant}", variant).replace("{seed}", str(seed))
        for variant, seed in systems
    }
    distinct = dict.fromkeys(folders.values())  # one model may begin all trainings
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
    """Raises ConfigError unless all have one vocabulary, for both languages."""
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
    """Raises ConfigError for a variant with other symbols in its records than the model's.

    Those of transitions or tasks, which the model's vocabulary may lack.
    """
    wanted, own = plan(variant), plan(model.config.variant)
    if (wanted.transitions, wanted.data) != (own.transitions, own.data):
        raise ConfigError(
            f"{model.run.folder} has variant = {model.config.variant!r}, whose vocabulary is not "
            f"made for {variant}"
        )
