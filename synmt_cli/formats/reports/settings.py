"""The list of `synmt settings`, as tables."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from synmt_cli.formats.reports.table import Notes, Record, Table


def shown(value: Any) -> str:
    """A value as --set and TOML take it, without the quotation marks that a text may have.

    >>> shown((0.9, 0.98)), shown(True), shown("pre")
    ('[0.9, 0.98]', 'true', 'pre')
    """
    return value if isinstance(value, str) else json.dumps(value)


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """One setting. values: those it can have. presets: its value in each preset that sets it."""

    setting: str
    values: str
    default: Any
    meaning: str
    presets: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SettingList:
    """Settings in order. preset: the one whose settings they are, or "".

    columns: presets that people see next to the default.
    """

    settings: list[SettingInfo]
    preset: str
    columns: tuple[str, ...]

    def sections(self) -> Iterator[Table | Notes]:
        """A table of settings; for a single one, also a table of its values in presets."""
        columns = (self.preset,) if self.preset else self.columns
        header = ["setting", "default", *columns, "values", "meaning"]
        rows = [
            [
                one.setting,
                shown(one.default),
                *(shown(one.presets[name]) if name in one.presets else "" for name in columns),
                one.values,
                one.meaning,
            ]
            for one in self.settings
        ]
        yield Table(header, rows, left=len(header), prose=len(header) - 1)
        if len(self.settings) == 1 and not self.preset and self.settings[0].presets:
            values = [[name, shown(value)] for name, value in self.settings[0].presets.items()]
            yield Table(["preset", self.settings[0].setting], values, left=2)

    def records(self) -> Iterator[Record]:
        """One for each setting, with a column for each preset that sets one of them."""
        presets = dict.fromkeys(name for one in self.settings for name in one.presets)
        for one in self.settings:
            yield {
                "setting": one.setting,
                "default": shown(one.default),
                "values": one.values,
                "meaning": one.meaning,
                **{
                    name: shown(one.presets[name]) if name in one.presets else ""
                    for name in ([self.preset] if self.preset else presets)
                },
            }

    def document(self) -> list[SettingInfo]:
        """The settings alone."""
        return self.settings
