"""The list of `synmt variants`, as tables."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from synmt_cli.formats.reports.table import Notes, Record, Table


@dataclass(frozen=True, slots=True)
class OptionInfo:
    """One option of a variant."""

    name: str
    default: Any
    meaning: str

    @property
    def written_default(self) -> str:
        """The default as TOML and JSON write it."""
        return json.dumps(self.default)


@dataclass(frozen=True, slots=True)
class VariantInfo:
    """One variant.

    features: those of the source that translation reads; training_features: those that only
    training reads. data: the scheme by which `synmt multitask` makes its training records, or "".
    """

    name: str
    paper: str
    what: str
    stacks: tuple[str, ...]
    options: list[OptionInfo]
    features: tuple[str, ...]
    training_features: tuple[str, ...]
    data: str


@dataclass(frozen=True, slots=True)
class VariantList:
    """Variants in the order asked for."""

    variants: list[VariantInfo]

    def sections(self) -> Iterator[Table | Notes]:
        """A table of variants, and one of their options."""
        rows = [
            [
                *(one.name, one.paper, one.what, " ".join(one.stacks)),
                " ".join((*one.features, *(f"({name})" for name in one.training_features))) or "-",
            ]
            for one in self.variants
        ]
        header = ["variant", "paper", "what", "stacks", "reads"]
        yield Table(header, rows, left=5, prose=2)
        options = [
            [f"{one.name}.{option.name}", option.written_default, option.meaning]
            for one in self.variants
            for option in one.options
        ]
        if options:
            yield Table(["option", "default", "meaning"], options, left=3, prose=2)
        if any(one.training_features for one in self.variants):
            yield ["reads: features of the source; those in parentheses in training only"]

    def records(self) -> Iterator[Record]:
        """One for each option, and one for a variant that has none."""
        for one in self.variants:
            start: Record = {
                "variant": one.name,
                "paper": one.paper,
                "what": one.what,
                "stacks": " ".join(one.stacks),
                "features": " ".join(one.features),
                "training_features": " ".join(one.training_features),
                "data": one.data,
            }
            for option in one.options:
                facts = {"default": option.written_default, "meaning": option.meaning}
                yield {**start, "option": option.name, **facts}
            if not one.options:
                yield {**start, "option": "", "default": "", "meaning": ""}
