"""What a shell offers for the values of options: names, settings, and what is in a run.

A completer takes the word so far and yields (whole word, short meaning). Nothing here imports
torch, so that TAB answers at once: the options of variants are read from the text of their modules.

bash cuts words at = and :, and replaces only what follows the last of these. `whole` joins the cut
words, `after_cut` removes from an answer what bash already has.
"""

from __future__ import annotations

import json
import os
import textwrap
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

Item = tuple[str, str]  # a word and its meaning, which zsh and fish show
Names = Callable[[], Iterable[str] | Mapping[str, str]]
VARIABLE = "_SYNMT_COMPLETE"
CUTS = "=:"
SHORT = 60  # characters of a meaning; a shell would break a longer line


def one_of(names: Names) -> Callable[[str], Iterator[Item]]:
    """Completes one name. names: a function, because its table may take time to import."""

    def complete(incomplete: str) -> Iterator[Item]:
        yield from _items(names())

    return complete


def list_of(names: Names, separator: str = ",") -> Callable[[str], Iterator[Item]]:
    """Completes the last of several names between separators; no name is offered twice."""

    def complete(incomplete: str) -> Iterator[Item]:
        before, mark, _ = incomplete.rpartition(separator)
        for name, meaning in _items(names()):
            if name not in before.split(separator):
                yield f"{before}{mark}{name}", meaning

    return complete


def _items(names: Iterable[str] | Mapping[str, str]) -> Iterable[Item]:
    return names.items() if isinstance(names, Mapping) else ((name, "") for name in names)


def _short(meaning: str) -> str:
    return textwrap.shorten(meaning, SHORT, placeholder=" ...")


def _variants() -> dict[str, str]:
    from synmt_cli.core.variants.own_file import known

    return {name: one.what for name, one in known().items()}


def _presets() -> Iterable[str]:
    from synmt_cli.core.run.presets import AUTO, PRESETS

    return (AUTO, *PRESETS)


def _metrics() -> Iterable[str]:
    from synmt_cli.core.evaluation.metrics.registry import METRICS

    return METRICS


def _tree_metrics() -> Mapping[str, str]:
    from synmt_cli.formats.reports.tree_scores import LABELS

    return LABELS


def _tokenizers() -> Iterable[str]:
    from synmt_cli.core.text.tokenizers import TOKENIZERS

    return TOKENIZERS


def _fields() -> Iterable[str]:
    from synmt_cli.core.trees.features import EMITTED

    return EMITTED


def _phenomena() -> Iterable[str]:
    from synmt_cli.core.challenge.phenomena import PHENOMENA

    return PHENOMENA


def _made_phenomena() -> Iterable[str]:
    from synmt_cli.synth.settings import PHENOMENA

    return PHENOMENA


def _tasks() -> dict[str, str]:
    from synmt_cli.core.analysis.tasks import TASKS

    return {name: task.group for name, task in TASKS.items()}


def variants(incomplete: str) -> Iterator[Item]:
    """Completes the last name in a list of variants, some of them joined by +."""
    before, mark, last = incomplete.rpartition(",")
    for name, meaning in variant(last):
        yield f"{before}{mark}{name}", meaning


variant = list_of(_variants, "+")
preset = one_of(_presets)
metric = one_of(_metrics)
metrics = list_of(_metrics)
tree_metrics = list_of(_tree_metrics)
limit = one_of(lambda: [f"{name}=" for name in _metrics()])
tokenizer = one_of(_tokenizers)
fields = list_of(_fields)
phenomenon = one_of(_phenomena)
made_phenomena = list_of(_made_phenomena)
tasks = list_of(_tasks)
precision = one_of(lambda: ("auto", "fp32", "bf16", "fp16"))
device = one_of(lambda: ("auto", "cpu", "cuda", "cuda:0"))
length = one_of(lambda: ("length:20,30,40,50",))
_RANGES = ("length:20,30,40,50", "chars:20,40,60,80", "depth:3,5,7,9", "distance:5,10,20,40")
division = one_of(lambda: (*_RANGES, "nonprojective", "deprel:", "rare:", "labels:"))
grouping = one_of(lambda: ("deprel", "upos", "distance:2,3,7", "length:20,30,40,50"))


def checkpoint(ctx: typer.Context, incomplete: str) -> Iterator[Item]:
    """`best`, `last`, and the steps that the run of -m or --pretrained has."""
    yield "best", "the best on dev"
    yield "last", "the newest"
    runs = ctx.params.get("model") or ctx.params.get("pretrained") or ()
    for run in [runs] if isinstance(runs, str) else runs:
        for folder in sorted(Path(run, "checkpoints").glob("step-*")):
            yield folder.name, ""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that `--set` takes. values: those to offer, its choices or else its default."""

    values: tuple[str, ...]
    meaning: str


def setting(ctx: typer.Context, incomplete: str) -> Iterator[Item]:
    """`section.key=`, then its values: the choices where there are any, or the default."""
    known = _settings(str(ctx.params.get("variant") or ""))
    chosen = [name for name in known if name.startswith(incomplete)]
    name, sign, _ = incomplete.partition("=")
    if sign or len(chosen) == 1:  # a shell would put a space after the only word that fits
        chosen = [name] if sign else chosen
        for one in chosen:
            for value in known[one].values if one in known else ():
                yield f"{one}={value}", _short(known[one].meaning)
        return
    for one in chosen:
        yield f"{one}=", _short(known[one].meaning)


def _named_settings() -> dict[str, str]:
    from synmt_cli.core.run.config import SECTIONS
    from synmt_cli.core.run.settings import every

    sections = dict.fromkeys(SECTIONS, "all of its settings")
    keys = {one.key: _short(one.option.meaning) for one in every()}
    return {**sections, **_variants(), **dict.fromkeys(_presets(), "a preset"), **keys}


setting_or_preset = one_of(_named_settings)


def _settings(chosen: str) -> dict[str, Setting]:
    """All settings of the model, training and the variants chosen, or of all variants."""
    from synmt_cli.core.run.config import SECTIONS
    from synmt_cli.core.run.settings import every
    from synmt_cli.core.variants.own_file import known

    names = known()
    wanted = [one for one in chosen.split("+") if one in names] or [*names]
    return {
        one.key: Setting(_choices(one.option.hint) or (_written(one.option.default),), meaning)
        for one in every()
        if one.section in (*SECTIONS, *wanted) and (meaning := one.option.meaning)
    }


def _choices(hint: Any) -> tuple[str, ...]:
    if hint is bool:
        return "true", "false"
    return (
        tuple(map(str, typing.get_args(hint))) if typing.get_origin(hint) is typing.Literal else ()
    )


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def whole(environment: MutableMapping[str, str]) -> str:
    """Joins the words that bash has cut; returns the part of the word to complete that bash keeps.

    >>> cut = {"COMP_WORDS": "synmt\\ntrain\\n--set\\nmodel.norm\\n=\\np", "COMP_CWORD": "5"}
    >>> whole(cut), cut["COMP_WORDS"].split(), cut["COMP_CWORD"]
    ('model.norm=', ['synmt', 'train', '--set', 'model.norm=p'], '3')
    """
    words: list[str] = []
    place, at = 0, int(environment["COMP_CWORD"])
    is_open = False
    for number, word in enumerate(environment["COMP_WORDS"].split("\n")):
        is_cut = bool(word) and set(word) <= set(CUTS)
        if words and (is_cut or is_open):
            words[-1] += word
        else:
            words.append(word)
        is_open = is_cut
        if number == at:
            place = len(words) - 1
            words = words[: place + 1]
            break
    else:
        place = len(words)
    environment["COMP_WORDS"], environment["COMP_CWORD"] = "\n".join(words), str(place)
    word = words[place] if place < len(words) else ""
    if word.startswith("--"):
        word = word.partition("=")[2]  # what is completed is the value alone
    return word[: max(map(word.rfind, CUTS)) + 1]


def after_cut(answer: str, kept: str) -> str:
    """The answer without what bash keeps of each word.

    >>> after_cut("model.norm=pre\\nmodel.norm=post\\n", "model.norm=")
    'pre\\npost\\n'
    """
    return "\n".join(line.removeprefix(kept) for line in answer.split("\n"))


def is_asked_by_bash() -> bool:
    """Whether this process is to complete a word for bash."""
    return os.environ.get(VARIABLE) == "complete_bash" and "COMP_WORDS" in os.environ
