"""Whether a run may go on with these settings and files, and the settings it began with.

Some may change when a run resumes, and others are named by the error that refuses them. A run of
an earlier version lacks newer settings, or has defaults that have changed: it keeps those that
held when it began.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from synmt_cli.core.run.config import SettingsLayer, flatten
from synmt_cli.errors import QUOTE_LIMIT, ConfigError

# These may change when a run resumes without making it another run.
CHANGEABLE_IN_TRAINING = (
    *("max_steps", "max_epochs", "patience", "validate_every", "save_every", "keep"),
    "shard",  # decides where a parameter lies, not what it becomes
    "micro_tokens",  # decides how much is computed at a time
    "compile",  # decides how fast
)
CHANGEABLE = {f"training.{key}" for key in CHANGEABLE_IN_TRAINING} | {
    *("preset", "data.train", "data.dev", "parser.file"),
    *("pretrained.run", "pretrained.checkpoint", "pretrained.labels"),  # its digest decides
    "variants.sha256",  # Run.refuse_other_code looks at what the code does
}


class Named(NamedTuple):
    """How messages name a file: what it is, another such file, and what to name instead."""

    file: str
    other: str
    instead: str


# The keys whose values are digests
DIGESTS = {
    "data.train_sha256": Named("training records", "other training records", "those"),
    "data.dev_sha256": Named("dev records", "other dev records", "those"),
    "parser.sha256": Named("a parser", "another parser", "that one"),
    "pretrained.sha256": Named("a pretrained model", "another pretrained model", "that one, none"),
}


@dataclass(frozen=True, slots=True)
class SameAs:
    """The value of another setting of the same section."""

    name: str


# Settings that config.toml of earlier versions lacks, and what held before they existed: a value,
# or the value of another setting of the section. A new setting of model, training or a variant
# belongs here, so that runs in progress go on as they began.
LATER: dict[str, Any] = {
    "training.max_epochs": 0,
    "training.batch_sentences": 0,
    "training.prefix_share": 1.0,
    "training.micro_tokens": 0,
    "training.transition_weight": 1.0,
    "training.transition_smoothing": SameAs("label_smoothing"),
    "training.shard": False,
    "training.compile": False,
    "training.tokenize": "13a",
    "model.decoder_positions": SameAs("positions"),
}
# Defaults that have changed since, in the same form: a run that was begun with one of them keeps
# it, also where an earlier resume has written what config.toml lacked.
EARLIER_DEFAULTS: dict[str, Any] = {
    "training.seed": 1,
    "training.transition_weight": 1.0,
    "training.transition_smoothing": SameAs("label_smoothing"),
    "training.max_epochs": 0,  # in tiny and small too
    "model.decoder_positions": SameAs("positions"),
}


def unsaid(tables: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings that a config.toml lacks because they are newer, with what held before them."""
    lacking: dict[str, dict[str, Any]] = {}
    for key, before in LATER.items():
        section, _, name = key.partition(".")
        table = tables.get(section)
        if isinstance(table, Mapping) and name not in table:
            value = _held(table, before)
            if value is not None:
                lacking.setdefault(section, {})[name] = value
    return lacking


def _held(table: Mapping[str, Any], before: Any) -> Any:
    """The value of an entry of LATER or EARLIER_DEFAULTS in a section, None if it has none."""
    return table.get(before.name) if isinstance(before, SameAs) else before


def as_begun(tables: Mapping[str, Any]) -> SettingsLayer:
    """The settings that an earlier version began a run with and that this one would not.

    tables: the run's config.toml. Settings that the user names override them.
    """
    earlier = unsaid(tables)
    for key, before in EARLIER_DEFAULTS.items():
        section, _, name = key.partition(".")
        table = tables.get(section)
        if isinstance(table, Mapping) and name in table and table[name] == _held(table, before):
            earlier.setdefault(section, {})[name] = table[name]
    return SettingsLayer(earlier, "config.toml of an earlier version")


def _of_files(key: str, old: object, new: object) -> str:
    """How the files of a run differ, and what to do, in words: digests would tell nobody."""
    named = DIGESTS[key]
    if old is None:
        return f"without {named.file}; name none, or another --run"
    used = named.file if new is None else named.other
    return f"with {used}; name {named.instead}, or another --run"


def refuse_another(old: Mapping[str, Any], new: Mapping[str, Any], run: Path) -> None:
    """Raises ConfigError if `new` is not the run that `old` was, with option, old and new value."""
    now = flatten(new)
    before = {k: v for k, v in flatten(unsaid(old)).items() if k in now} | flatten(old)
    keys = before.keys() | now.keys()
    # The variant before its options, and a vocabulary before the records that have it
    for key in sorted(keys, key=lambda key: (key in DIGESTS, "." in key, key)):
        values = before.get(key), now.get(key)
        if key not in CHANGEABLE and values[0] != values[1]:
            trained = f"{run} was trained"
            if key in DIGESTS:
                raise ConfigError(f"{trained} {_of_files(key, *values)}")
            option, old_value, new_value = (
                text[:QUOTE_LIMIT] for text in (key, *map(repr, values))
            )
            raise ConfigError(
                f"{trained} with {option} = {old_value}, not {new_value}; name another --run, or "
                "the old value"
            )
