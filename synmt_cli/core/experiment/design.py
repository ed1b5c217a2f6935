"""The design of an experiment: what it compares, and what that needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from synmt_cli.core.text.scripts import Writing
from synmt_cli.core.text.tokenizers import DEFAULT
from synmt_cli.core.variants import Plan, plan
from synmt_cli.errors import UsageError, quoted

MOST_HELD_OUT = 1000  # at most so many pairs in each set that is split off
HELD_OUT = 10  # such a set gets one pair in so many, if that is fewer


class TreesFrom(NamedTuple):
    """The files that give trees to one side of the text; None for a file that is not given.

    parser: a UDPipe model. known: CoNLL-U with trees of the side's lines, of all or of some.
    """

    parser: str | None = None
    known: str | None = None


@dataclass(frozen=True)
class Design:
    """One experiment: every variant is trained with every seed on the same text.

    split_off: which of dev and test are cut from the training text. src, tgt: what gives trees to
    each side. pretrained: whether trainings begin with the weights of trained models. tokenize:
    the tokenizer of BLEU. src_writing, tgt_writing: how a side without spaces between words is
    written; None for a side with spaces.
    """

    variants: tuple[str, ...]
    n_seeds: int
    preset: str
    split_off: tuple[str, ...]
    src: TreesFrom
    tgt: TreesFrom
    pretrained: bool = False
    tokenize: str = DEFAULT
    src_writing: Writing | None = None
    tgt_writing: Writing | None = None

    @property
    def seeds(self) -> range:
        """The seeds of each variant."""
        return range(1, self.n_seeds + 1)

    @cached_property
    def plans(self) -> dict[str, Plan]:
        """The plan of each variant. Raises UsageError for an unknown variant."""
        return {name: plan(name) for name in self.variants}

    @property
    def source_trees(self) -> bool:
        """Whether any variant reads the sources' trees."""
        return any(one.source_trees for one in self.plans.values())

    @property
    def writers(self) -> tuple[str, ...]:
        """The variants that write trees."""
        return tuple(name for name, one in self.plans.items() if one.transitions)

    @property
    def readers(self) -> tuple[str, ...]:
        """The variants whose encoders read trees of the source text.

        Variants trained on records of `synmt multitask` are left out: their sources are not all
        text.
        """
        plans = self.plans.items()
        return tuple(name for name, one in plans if one.source_trees and not one.data)

    def has_own(self, variant: str) -> bool:
        """Whether a variant, or a part of it, is in the user's own file."""
        return any(one.own for one in self.plans[variant].variants)

    @property
    def schemes(self) -> tuple[str, ...]:
        """The schemes of `synmt multitask` that any variant is trained on."""
        return tuple(dict.fromkeys(one.data for one in self.plans.values() if one.data))

    @property
    def sides_without_spaces(self) -> list[str]:
        """The sides without spaces between words: `the source`, `the target`."""
        sides = {"the source": self.src_writing, "the target": self.tgt_writing}
        return [side for side, writing in sides.items() if writing]

    def check(self) -> None:
        """Raises UsageError for variants that cannot be compared.

        These are a variant that is named twice, one that needs trees which no option gives, and
        one that needs both kinds of records, those with transitions and those of multitask.
        """
        for name, one in self.plans.items():
            if self.variants.count(name) > 1:
                raise UsageError(f"--variants names {quoted(name)} twice")
            if one.data and one.transitions:
                raise UsageError(f"{name}: init makes no records for both of them together")
            if one.source_trees and not any(self.src):
                raise _no_trees(name, "source", "--parser", "--src-trees")
            if one.transitions and not any(self.tgt):
                raise _no_trees(name, "target", "--tgt-parser", "--tgt-trees")

    def n_held_out(self, n_pairs: int) -> int:
        """How many pairs each set gets that is split off. Raises UsageError if it would be none."""
        if n := min(MOST_HELD_OUT, n_pairs // HELD_OUT):
            return n
        needed = " and ".join(f"--{name}-src, --{name}-tgt" for name in self.split_off)
        raise UsageError(f"too few pairs to split ({n_pairs:,}): give {needed}")

    def records(self, variant: str) -> tuple[str, str]:
        """The names of a variant's training and development records, as in data/NAME.jsonl."""
        one = self.plans[variant]
        if one.transitions:
            return "train.trees", "dev.trees"
        if one.data == "multitask":
            return "train.multitask", "dev.multitask"
        return (f"train.{one.data}" if one.data else "train"), "dev"


def have(sides: Sequence[str]) -> str:
    """Sides and the verb of which they are the subject.

    >>> have(["the target"]), have(["the source", "the target"])
    ('the target has', 'the source and the target have')
    """
    return f"{' and '.join(sides)} {'has' if len(sides) == 1 else 'have'}"


def _no_trees(variant: str, side: str, parser: str, known: str) -> UsageError:
    give = f"give {parser} MODEL, a UDPipe model of its language, or {known} FILE"
    return UsageError(f"{variant} needs trees of the {side}: {give}")


def variants(names: str) -> tuple[str, ...]:
    """The variants in a list with commas, spaces allowed. Raises UsageError if there are none.

    >>> variants("vanilla, dep+rel")
    ('vanilla', 'dep+rel')
    """
    named: Sequence[str] = [name for one in names.split(",") if (name := one.strip())]
    if not named:
        raise UsageError("--variants names no variant")
    return tuple(named)
