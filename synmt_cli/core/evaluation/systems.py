"""Assigns outputs to systems: `[NAME=]FILE`; a NAME that is repeated has several seeds."""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from synmt_cli.errors import UsageError, quoted


@dataclass(frozen=True, slots=True)
class SystemFiles:
    """A system and the files of its outputs, one for each training seed."""

    name: str
    files: list[str]

    def outputs(self) -> Iterator[tuple[str, str]]:
        """(file, label) of each seed; the label is the system's name if there is one seed."""
        for file in self.files:
            yield file, self.name if len(self.files) == 1 else file

    @property
    def labels(self) -> list[str]:
        """The names under which a file of scores may give the outputs."""
        return [*dict.fromkeys(name for names in self.outputs() for name in names)]


def parse(arguments: Sequence[str]) -> list[SystemFiles]:
    """The systems in order. NAME is what stands before the first =, unless there is a / in it.

    A FILE without NAME is a system of its own. Raises UsageError, also where such a FILE is given
    twice: the two would have one name.

    >>> parse(["b=1.en", "b=2.en"])
    [SystemFiles(name='b', files=['1.en', '2.en'])]
    """
    systems: list[SystemFiles] = []
    named: dict[str, SystemFiles] = {}
    for argument in arguments:
        name, equals, file = argument.partition("=")
        if not equals or "/" in name:
            systems.append(SystemFiles(argument, [argument]))
            continue
        if not name or not file:
            raise UsageError(f"a system is FILE or NAME=FILE, not {quoted(argument)}")
        if name in named:
            named[name].files.append(file)
        else:
            named[name] = SystemFiles(name, [file])
            systems.append(named[name])
    _check(systems, named)
    return systems


def _check(systems: Sequence[SystemFiles], named: dict[str, SystemFiles]) -> None:
    known: set[str] = set()
    for one in systems:
        if one.name in named and one is not named[one.name]:
            raise UsageError(f"{quoted(one.name)} is the name of a system and a file without one")
        if one.name in known:
            raise UsageError(f"{quoted(one.name)} is given as two systems: name them, NAME=FILE")
        known.add(one.name)
        if len({*map(os.path.realpath, one.files)}) < len(one.files):
            raise UsageError(f"system {quoted(one.name)} has the same file as two seeds")


def like_seeds(systems: Sequence[SystemFiles]) -> list[str]:
    """The files, given without a NAME, that look like seeds of one system; [] if none do.

    Only one number differs in their names, and it counts up: gps.1.de, gps.2.de, gps.3.de.

    >>> like_seeds(parse(["a.1.de", "a.2.de", "b.3.de", "beam.4.de", "beam.8.de"]))
    ['a.1.de', 'a.2.de']
    """
    counted: dict[tuple[str, str], dict[int, str]] = defaultdict(dict)
    for name in (one.name for one in systems if one.files == [one.name]):
        for number in re.finditer(r"(?<=[._-])[0-9]{1,3}(?=[._/-]|$)", name):
            counted[name[: number.start()], name[number.end() :]][int(number[0])] = name
    for files in counted.values():
        if 1 < len(files) == max(files) - min(files) + 1:
            return [files[seed] for seed in sorted(files)]
    return []


def refuse_unequal(systems: Sequence[SystemFiles], what: str) -> None:
    """Raises UsageError for different numbers of seeds. what: the option that needs equal ones."""
    first = systems[0]
    for one in systems[1:]:
        if len(one.files) != len(first.files):
            counts = ", ".join(f"{len(it.files)} of {quoted(it.name)}" for it in (first, one))
            raise UsageError(f"{what} needs as many outputs of each system ({counts})")


def refuse_two_single(systems: Sequence[SystemFiles], pairs: Iterable[tuple[int, int]]) -> None:
    """Raises UsageError for a pair to compare in which both systems have a single output, while
    others have several: nothing shows how the two vary over seeds.
    """
    if all(len(one.files) == 1 for one in systems):
        return
    for pair in pairs:
        names = [quoted(systems[i].name) for i in pair if len(systems[i].files) == 1]
        if len(names) == 2:
            problem = f"{' and '.join(names)} have one output each, but others several"
            raise UsageError(f"{problem}: one of two systems to compare needs several")
