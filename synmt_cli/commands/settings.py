"""`synmt settings`: what can be set in a model and its training."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Annotated, Any

from synmt_cli import console
from synmt_cli.commands import Manual, completion, options
from synmt_cli.commands.options import argument
from synmt_cli.formats.reports.settings import SettingInfo, SettingList, shown
from synmt_cli.formats.reports.table import FORMATS
from synmt_cli.io import writing

MANUAL = Manual(
    input="None.",
    output="For each setting `training.lr = 0.0007`, its meaning, the values that it can have, and "
    "those that presets give it. --format tsv and csv: a row for each setting, with a column for "
    'each preset that sets it; json: a list of objects `[{"setting": "model.d_model",…}]`.',
    examples=(
        "synmt settings",
        "synmt settings lr",
        "synmt settings training",
        "synmt settings pascal",
        "synmt settings tiny",
        "synmt settings --format markdown model > model.md",
        "synmt settings --format tsv training.lr training.warmup | cut -f 1,2,5-",
    ),
    see_also=("train", "variants", "config"),
)
WIDTH = 100


def settings(
    names: Annotated[
        list[str] | None,
        argument(
            "NAME",
            "Settings, sections, variants or presets; none is all settings.",
            autocompletion=completion.setting_or_preset,
        ),
    ] = None,
    form: options.ListFormat = "text",
    output: options.Output = "-",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """List the settings of models, training and variants: meaning, values, default, presets.

    NAME is a setting (`training.lr`, or `lr` alone), a section (`model`, `training`), a variant
    (`pascal`, `dep+rel`), or a preset (`tiny`), whose settings are listed. A setting has its
    default unless a preset, a file of `train --config`, `train --set` or an option of its own
    sets it; later ones win. `base` is the defaults.

    synmt-config(5) has all settings and presets in one page.
    """
    lists = [*_lists(names or [])]
    with writing.output(output) as writer:
        if form == "text":
            writer.write("\n".join(text for one in lists for text in _as_text(one)).encode())
        else:
            writer.write(FORMATS[form](_joined(lists)))


def _lists(names: list[str]) -> Iterator[SettingList]:
    """The settings that each name means. Raises UsageError."""
    from synmt_cli.core.run import settings as known
    from synmt_cli.core.run.presets import AUTO, PRESETS

    if not names:
        yield listed(known.every())
    for name in names:
        if name in (AUTO, *PRESETS):
            yield listed(known.of_preset(name), name)
        else:
            found = known.named(name)
            if not found:
                console.info(f"{name} has no settings of its own")
            yield listed(found)


def listed(found: list[Any], preset: str = "") -> SettingList:
    """Settings of core as they are printed. preset: the one that they are listed for, or ""."""
    from synmt_cli.core.run.presets import SIZES

    infos = [
        SettingInfo(
            one.key, one.option.values(), one.option.default, one.option.meaning, one.presets
        )
        for one in found
    ]
    return SettingList(infos, preset, tuple(name for name in reversed(SIZES) if name != "base"))


def _joined(lists: list[SettingList]) -> SettingList:
    """One list of all, each setting once. If the lists differ in their preset, it has none."""
    infos = {info.setting: info for one in lists for info in one.settings}
    presets = {one.preset for one in lists}
    preset = presets.pop() if len(presets) == 1 else ""
    return SettingList([*infos.values()], preset, lists[0].columns)


def _as_text(settings: SettingList) -> Iterator[str]:
    """A paragraph for each setting."""
    for one in settings.settings:
        value = one.presets.get(settings.preset, one.default)
        about, more = [one.values], []
        if settings.preset:
            about += [f"default {shown(one.default)}"] * (value != one.default)
        elif len(settings.settings) == 1:
            more = [*_by_value(one)]
        else:
            about += _in_short(one, settings.columns)
        texts = one.meaning, "; ".join(about), *more
        lines = [f"{one.setting} = {shown(value)}", *(line for t in texts for line in _wrapped(t))]
        yield "\n".join(lines) + "\n"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8, break_on_hyphens=False
    )


def _by_value(one: SettingInfo) -> Iterator[str]:
    """Each value that presets give, with the presets that give it."""
    presets: dict[str, list[str]] = {}
    for name, value in one.presets.items():
        presets.setdefault(shown(value), []).append(name)
    for text, names in presets.items():
        yield f"{text}: {', '.join(names)}"


def _in_short(one: SettingInfo, columns: tuple[str, ...]) -> Iterator[str]:
    """The values in the presets `columns`, and how many presets paper-* give one."""
    if parts := [f"{name} {shown(one.presets[name])}" for name in columns if name in one.presets]:
        yield ", ".join(parts)
    if n := sum(name.startswith("paper-") for name in one.presets):
        yield f"{n} presets paper-* set it" if n > 1 else "a preset paper-* sets it"
