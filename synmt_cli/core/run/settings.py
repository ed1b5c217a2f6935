"""Every setting of a model, of training and of variants, and what presets make of it.

Read from the declarations (core/options.py), without loading torch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from synmt_cli.core.options import Bounds, Option, options, suggestion
from synmt_cli.core.run.config import SECTIONS
from synmt_cli.core.run.declared import declared
from synmt_cli.core.run.presets import AUTO, PRESETS, SIZES
from synmt_cli.core.variants import own_file
from synmt_cli.errors import UsageError, quoted

# Keys of --config files that are outside all sections.
CHOICES = {
    "variant": Option(str, "vanilla", "what the model is; names combine with +", Bounds()),
    "preset": Option(str, AUTO, "the settings to start from", Bounds()),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. key: `section.name`. presets: the values that presets give it."""

    key: str
    option: Option
    presets: dict[str, Any]

    @property
    def section(self) -> str:
        """`model`, `training`, a variant's name; "" for a key outside all sections."""
        return self.key.rpartition(".")[0]

    @property
    def name(self) -> str:
        """Its name within the section."""
        return self.key.rpartition(".")[2]


def every() -> list[Setting]:
    """All settings, in the order of config.toml."""
    return [*_outside(), *(one for section in _sections() for one in _of(section))]


def named(name: str) -> list[Setting]:
    """The settings of a section, of a variant such as `dep+rel`, or those with this name.

    Raises UsageError.
    """
    parts = name.split("+")
    if all(part in _sections() for part in parts):
        return [one for part in parts for one in _of(part)]
    known = every()
    if found := [one for one in known if name in (one.key, one.name)]:
        return found
    words = [*_sections(), *PRESETS, *(one.key for one in known)]
    last = suggestion(name, [*words, *(one.name for one in known)])
    if not last.startswith("did you mean"):
        last = "synmt settings without a name lists all"
    raise UsageError(f"no setting, section, variant or preset {quoted(name)}; {last}")


def of_preset(preset: str) -> list[Setting]:
    """The settings that a preset sets; base sets each of model and training to its default.

    Raises UsageError for `auto`, which stands for one of the others.
    """
    if preset == AUTO:
        raise UsageError(f"auto is one of {', '.join(SIZES)}, by data and device; name one of them")
    return [one for one in every() if preset in one.presets]


def _sections() -> list[str]:
    return [*SECTIONS, *own_file.known()]


def _outside() -> Iterator[Setting]:
    for key, option in CHOICES.items():
        given = {name: tables[key] for name, tables in PRESETS.items() if key in tables}
        yield Setting(key, option, given)


def _of(section: str) -> Iterator[Setting]:
    """The settings of a section. A preset's options count where its variant has them."""
    owner = SECTIONS.get(section)
    for name, option in (options(owner) if owner else declared(own_file.known()[section])).items():
        given = {}
        for preset, tables in PRESETS.items():
            table = tables.get(section, {})
            is_used = owner or section in str(tables.get("variant", "")).split("+")
            if name in table and is_used:
                given[preset] = table[name]
            elif owner and preset == "base":
                given[preset] = option.default
        yield Setting(f"{section}.{name}", option, given)
