"""The models that translate: one run directory, or several as an ensemble."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from synmt_cli.core.encoding import Encoding
from synmt_cli.core.features import FEATURES
from synmt_cli.core.labels import Labels
from synmt_cli.core.model.translation import Translation
from synmt_cli.core.run import Run, Vocabularies, needs, sha256
from synmt_cli.core.udpipe import Parser
from synmt_cli.errors import ConfigError, ReadError, Unavailable, printable


@dataclass(frozen=True, slots=True)
class Members:
    """Models with the same vocabularies and labels. encoding: of what any of them reads.

    parsers: the file and SHA-256 that each run names, with the run's folder.
    """

    models: list[Translation]
    vocabularies: Vocabularies
    encoding: Encoding
    parsers: dict[Path, tuple[str, str] | None]

    def parser(self, override: str = "") -> Callable[[], Parser] | None:
        """Loads the parser for text, at the first text; None where no model needs a tree.

        Raises Unavailable: when loading, and ConfigError if members need different ones.
        """
        if not self.encoding.needs:
            return None
        return lambda: Parser(override or self._named_parser())

    def _named_parser(self) -> str:
        advice = "name one by --parser FILE, or give parsed input"
        for folder, named in self.parsers.items():
            if named is None:
                raise Unavailable(f"{printable(str(folder))} names no parser for text; {advice}")
        if len({named[1] for named in self.parsers.values() if named}) > 1:
            raise ConfigError(f"the models were trained with different parsers; {advice}")
        folder, named = next(iter(self.parsers.items()))
        assert named is not None
        return find_parser(folder, *named)


def load(folders: Sequence[str], checkpoint: str, device: torch.device) -> Members:
    """Opens run directories. checkpoint: best, last or step-N, of each. Raises SynmtError."""
    runs = [Run(Path(folder)) for folder in folders]
    configs = [run.read_config() for run in runs]
    vocabularies = [run.vocabularies() for run in runs]
    first = vocabularies[0]
    for run, own in zip(runs, vocabularies, strict=True):
        if own.fingerprint != first.fingerprint:
            raise ConfigError(
                f"an ensemble needs one vocabulary: {printable(str(runs[0].folder))} has "
                f"{first.fingerprint}, {printable(str(run.folder))} has {own.fingerprint}"
            )
    models = [run.load(checkpoint).to(device) for run in runs]
    features = {run.folder: needs(c, training=False) for run, c in zip(runs, configs, strict=True)}
    parsers = {run.folder: run.parser() for run in runs if features[run.folder]}
    every = sorted({name for names in features.values() for name in names})
    encoding = Encoding(every, _labels(runs, features))
    return Members(models, first, encoding, parsers)


def _labels(runs: Sequence[Run], features: Mapping[Path, Sequence[str]]) -> Labels:
    """The labels of the models that read labels. Raises ConfigError where they differ."""
    readers = [
        run
        for run in runs
        if any(FEATURES[name].kind in ("label", "labels") for name in features[run.folder])
    ]
    names = {run.folder: run.labels() for run in readers}
    if len({tuple(one) for one in names.values()}) > 1:
        folders = ", ".join(printable(str(folder)) for folder in names)
        raise ConfigError(f"an ensemble needs the same labels.json; they differ in {folders}")
    return Labels(next(iter(names.values()), []))


def find_parser(folder: Path, file: str, digest: str) -> str:
    """The parser that a run was trained with: where it was, or beside or in the run's folder.

    Raises Unavailable, which says what to do.
    """
    name = Path(file).name
    candidates = [Path(file), folder / name, folder.parent / name]
    for path in candidates:
        if path.is_file() and _is(path, digest):
            return str(path)
    found = [path for path in candidates if path.is_file()]
    problem = f"{printable(str(found[0]))} is another file" if found else "it is not there"
    raise Unavailable(
        f"{printable(str(folder))} was trained with the parser {printable(file)} "
        f"(SHA-256 {digest[:16]}…), but {problem}; name a parser by --parser FILE"
    )


def _is(path: Path, digest: str) -> bool:
    try:
        return sha256(str(path)) == digest
    except ReadError as error:
        raise Unavailable(str(error)) from error
