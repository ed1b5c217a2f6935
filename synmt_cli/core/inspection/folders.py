"""Figures and problems of the other folders that synmt writes: experiments, exports, caches."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from synmt_cli.core.inspection import documents, models
from synmt_cli.core.inspection.counts import Facts
from synmt_cli.core.inspection.inputs import INDEX, FolderKind
from synmt_cli.core.run.directory import EXPORT, Run
from synmt_cli.errors import ReadError, SynmtError, cannot_read
from synmt_cli.io import json_files, reading, regular_files

VARIABLE = re.compile(r"^(VARIANTS|SEEDS|PRESET|METRICS|BY) := ([^#\n]*)", re.MULTILINE)
LISTS = ("VARIANTS", "SEEDS")
MAKEFILE_LIMIT = 2**20  # bytes
# What a Makefile of init calls its inputs; % stands for a seed. A model's vocabulary, and sets that
# were given, have the names of files that other experiments make.
INPUT = re.compile(
    r"(?<![\w./+%-])(given/(?:pretrained/[\w+-]+\.%|[\w.+-]+)|text/\w+\.(?:src|tgt)"
    r"|(?:src|tgt)\.udpipe|spm\.model|config\.toml|variants\.py)(?![\w./%$])"
)
RULE = re.compile(r"([^:=]+?) *&?:(?!=)(.*)")
ASIDE = re.compile(r"^\t.*$|(?<!\\)#.*$", re.MULTILINE)  # recipes and comments


def figures(folder: Path, kind: FolderKind) -> Facts:
    """The figures of a folder. Raises SynmtError."""
    return _FIGURES[kind](folder)


def of_experiment(folder: Path) -> Facts:
    """The settings and inputs of a folder of `synmt init`, and its progress. Raises SynmtError."""
    facts = _settings(_rules(folder))
    facts["given"] = {
        str(one.relative_to(folder)): os.path.realpath(one) for one in sorted(_given(folder))
    }
    systems = [f"{v}.{seed}" for v in facts.get("variants", ()) for seed in facts.get("seeds", ())]
    for done, path in (("trained", "runs/{}.trained"), ("translated", "output/{}.txt")):
        n = sum((folder / path.format(system)).exists() for system in systems)
        facts[done] = f"{n} of {len(systems)}"
    scores = folder / "scores.json"
    if scores.is_file():
        with reading.open_source(str(scores)) as source:
            facts["scores"] = documents.figures(source, "json").get("scores")
    return facts


def _rules(folder: Path) -> str:
    """The text of the Makefile. Raises ReadError."""
    text = regular_files.read(folder / "Makefile", MAKEFILE_LIMIT, follow=True)
    return text.decode("utf-8", "replace")


def _settings(rules: str) -> Facts:
    """The variables of a Makefile that say what it compares."""
    return {
        name.lower(): text.split() if name in LISTS else text.strip()
        for name, text in VARIABLE.findall(rules)
    }


def _inputs(rules: str, seeds: Iterable[str]) -> list[str]:
    """The files that rules and variables of a Makefile name and no rule makes."""
    named: set[str] = set()
    made: set[str] = set()
    for line in ASIDE.sub("", rules.replace("\\\n", " ")).split("\n"):
        if rule := RULE.match(line):
            made.update(target.replace("%", "*") for target in rule[1].split())
        for name in INPUT.findall(rule[2] if rule else line):
            named.update([name.replace("%", seed) for seed in seeds] if "%" in name else [name])
    return sorted(name for name in named if not any(fnmatch(name, one) for one in made))


def _given(folder: Path) -> Iterator[Path]:
    """Yields the links to the input: text, parsers, and models that trainings begin with."""
    for pattern in ("given/*", "given/pretrained/*", "text/*", "*.udpipe", "*.model"):
        yield from (one for one in folder.glob(pattern) if one.is_symlink())


def problems_of_experiment(folder: Path) -> Iterator[SynmtError]:
    """Yields missing inputs, the problems of settings and scores, and all those of the runs."""
    from synmt_cli.core.inspection import model_problems

    for link in sorted(_given(folder)):
        if not link.exists():
            yield ReadError(f"{link}: its input is gone: {os.readlink(link)}")
    rules = _rules(folder)
    for name in _inputs(rules, _settings(rules).get("seeds", ())):
        if not os.path.lexists(folder / name):
            yield ReadError(f"{folder / name}: not there, and make has no rule for it")
    for name, kind in (("config.toml", "config"), ("scores.json", "json")):
        if (folder / name).exists():
            with reading.open_source(str(folder / name)) as source:
                yield from documents.problems(source, kind)  # type: ignore[arg-type]
    for config in sorted(folder.glob("runs/*/config.toml")):
        yield from model_problems.of_run(Run(config.parent))


def of_export(folder: Path) -> Facts:
    """The figures of an exported model. Raises SynmtError."""
    state = json_files.read_sealed(folder / EXPORT, "what `synmt export` wrote")
    run = models.of_run(folder)
    run.pop("checkpoints", None)
    about = {name: state.get(name) for name in ("checkpoint", "quantization")}
    sizes = {one.name: one.stat().st_size for one in sorted(folder.iterdir()) if one.is_file()}
    return {**about, "bytes": sum(sizes.values()), "files": [*sizes], **run}


def of_cache(folder: Path) -> Facts:
    """The figures of the training records that a run keeps as numbers. Raises SynmtError."""
    with reading.open_source(str(folder / INDEX)) as source:
        facts = documents.figures(source, "json")
    try:
        n_bytes = (folder / "target.offsets").stat().st_size
    except OSError as error:
        raise cannot_read(folder / "target.offsets", error) from error
    return {"pairs": n_bytes // 8 - 1, **{k: v for k, v in facts.items() if k != "content"}}


def problems_of_cache(folder: Path) -> Iterator[SynmtError]:
    """Yields the error if a file of a cache is not the one that was written."""
    from synmt_cli.core.data import cache
    from synmt_cli.core.data.ragged_files import mapped

    path = folder / cache.INDEX
    try:
        index: dict[str, Any] = json_files.read_sealed(path, cache.INDEX_CONTENT)
        json_files.refuse_other_fields(index, cache.FIELDS, path)
        mapped(folder, [*index["made_of"]["columns"], cache.PATHS], index["seals"])
    except SynmtError as error:
        yield error


_FIGURES: dict[FolderKind, Callable[[Path], Facts]] = {
    "run": models.of_run,
    "checkpoint": models.of_checkpoint,
    "experiment": of_experiment,
    "export": of_export,
    "cache": of_cache,
}
