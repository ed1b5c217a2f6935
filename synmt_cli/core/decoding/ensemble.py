"""The models that translate: one run directory, or several as an ensemble."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from synmt_cli.core import variants
from synmt_cli.core.data.encoding import Encoding, reads_labels
from synmt_cli.core.data.labels import Labels
from synmt_cli.core.data.task_tags import tagged
from synmt_cli.core.decoding.translator import unchanged
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run import building
from synmt_cli.core.run.directory import Run
from synmt_cli.core.text.udpipe import Parser
from synmt_cli.core.text.vocabulary import Vocabularies
from synmt_cli.errors import ConfigError, ReadError, Unavailable
from synmt_cli.formats.record import Record
from synmt_cli.io.digests import sha256


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Models that translate together, with the same vocabularies and labels.

    encoding: of the features that any of them reads. prepare: is applied to a record before it
    is read: it adds the task's tag for models with several tasks. parsers: the file and SHA-256
    of the parser that each run names, by the run's folder.
    """

    models: list[Transformer]
    vocabularies: Vocabularies
    encoding: Encoding
    prepare: Callable[[Record], Record]
    parsers: dict[Path, tuple[str, str] | None]

    def parser_loader(self, override: str = "") -> Callable[[], Parser] | None:
        """A function that loads the parser for text; None if no model needs a tree.

        The function raises Unavailable, and ConfigError if the models need different parsers.
        """
        if not self.encoding.needs:
            return None
        # No model reads lemmas.
        return lambda: Parser(override or self._named_parser(), lemmas=False)

    def _named_parser(self) -> str:
        advice = "name one by --parser FILE, or give parsed input"
        for folder, named in self.parsers.items():
            if named is None:
                raise Unavailable(f"{folder} names no parser for text; {advice}")
        if len({named[1] for named in self.parsers.values() if named}) > 1:
            raise ConfigError(f"the models were trained with different parsers; {advice}")
        folder, named = next(iter(self.parsers.items()))
        assert named is not None
        return find_parser(folder, *named)


def load(folders: Sequence[str], checkpoint: str, device: torch.device) -> Ensemble:
    """Opens run directories. checkpoint: best, last or step-N, of each. Raises SynmtError."""
    found = without_models(folders)
    runs = [Run(Path(folder)) for folder in folders]
    return replace(found, models=[building.load(run, checkpoint).to(device) for run in runs])


def without_models(folders: Sequence[str]) -> Ensemble:
    """Reads what run directories say about their models, not the weights. Raises SynmtError."""
    runs = [Run(Path(folder)) for folder in folders]
    configs = [building.read_config(run) for run in runs]
    vocabularies = [run.vocabularies() for run in runs]
    first = vocabularies[0]
    for run, other in zip(runs, vocabularies, strict=True):
        if other.fingerprint != first.fingerprint:
            raise ConfigError(
                f"an ensemble needs one vocabulary: {runs[0].folder} has "
                f"{first.fingerprint}, {run.folder} has {other.fingerprint}"
            )
    plans = [variants.plan(config.variant) for config in configs]
    _refuse_some(runs, [plan.transitions for plan in plans], "write trees")
    features = {
        run.folder: building.needs(c, training=False) for run, c in zip(runs, configs, strict=True)
    }
    parsers = {run.folder: run.parser() for run in runs if features[run.folder]}
    every = sorted({name for names in features.values() for name in names})
    encoding = Encoding(every, _labels(runs, features))
    with_tags = [plan.data == "multitask" for plan in plans]
    _refuse_some(runs, with_tags, "have sources with task tags")
    return Ensemble([], first, encoding, tagged if all(with_tags) else unchanged, parsers)


def _refuse_some(runs: Sequence[Run], having: Sequence[bool], what: str) -> None:
    """Raises ConfigError if some runs have, and others lack, a property that all must share."""
    if any(having) and not all(having):
        one, other = (runs[having.index(v)].folder for v in (True, False))
        raise ConfigError(f"all of an ensemble {what}, or none: {one} does, {other} does not")


def _labels(runs: Sequence[Run], features: Mapping[Path, Sequence[str]]) -> Labels:
    """The labels of the models that read labels. Raises ConfigError where they differ."""
    names = {run.folder: run.labels() for run in runs if reads_labels(features[run.folder])}
    if len({tuple(one) for one in names.values()}) > 1:
        folders = ", ".join(map(str, names))
        raise ConfigError(f"an ensemble needs the same labels.json; they differ in {folders}")
    return Labels(next(iter(names.values()), []))


def find_parser(folder: Path, file: str, digest: str) -> str:
    """The parser that a run was trained with: in its folder, at an absolute path, or next to it.

    The current folder makes no difference. Raises Unavailable, which says what to do.
    """
    name = Path(file).name
    linked = [Path(file)] if Path(file).is_absolute() else []
    candidates = (folder / name, *linked, folder.parent / name)
    problems = []
    for path in map(str, candidates):
        if os.path.isfile(path):  # False, too, in a folder that must not be entered
            try:
                if sha256(path) == digest:
                    return path
                problems.append(f"{path} is another file")
            except ReadError as error:
                problems.append(str(error))
    problem = problems[0] if problems else "it is not there"
    raise Unavailable(
        f"{folder} was trained with the parser {file} "
        f"(SHA-256 {digest[:16]}…), but {problem}; name a parser by --parser FILE"
    )
