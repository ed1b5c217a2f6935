"""What an experiment compares, and what that needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from synmt_cli.core.text.scripts import Writing
from synmt_cli.core.text.tokenizers import DEFAULT
from synmt_cli.core.variants import Plan, plan
from synmt_cli.errors import UsageError, quoted

MOST_HELD_OUT = 1000  # pairs of development and of test, if they are split off
HELD_OUT = 10  # one in so many, if there are fewer


class TreesFrom(NamedTuple):
    """The files that give trees to one side of the text; None for those that are not given.

    parser: a UDPipe model. known: CoNLL-U with the trees of its lines, or of some of them.
    """

    parser: str | None = None
    known: str | None = None


@dataclass(frozen=True)
class Design:
    """One experiment: every variant is trained with every seed on the same text.

    split_off: the sets that are cut from the training text, of dev and test. src, tgt: what gives
    trees to each side. pretrained: whether trainings begin with the weights of trained models.
    tokenize: of BLEU. src_writing, tgt_writing: how the sides are written without spaces, None
    where words have spaces between them.
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
        """What each variant is. Raises UsageError for an unknown one."""
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

        Not those trained on records of `synmt multitask`, some of whose sources are no text.
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
    def unspaced(self) -> str:
        """`the target has`, or which sides have, no spaces between words; "" if both have them."""
        sides = {"the source": self.src_writing, "the target": self.tgt_writing}
        without = [side for side, writing in sides.items() if writing]
        return (
            f"{' and '.join(without)} {'has' if len(without) == 1 else 'have'}" if without else ""
        )

    def check(self) -> None:
        """Raises UsageError for variants that cannot be compared.

        One that is named twice, one whose trees nobody gives, and one with both kinds of records.
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
        """Pairs of each set that is split off. Raises UsageError if there are none."""
        if n := min(MOST_HELD_OUT, n_pairs // HELD_OUT):
            return n
        needed = " and ".join(f"--{name}-src, --{name}-tgt" for name in self.split_off)
        raise UsageError(f"{n_pairs:,} pairs are too few to split: give {needed}")

    def records(self, variant: str) -> tuple[str, str]:
        """The names of a variant's training and development records, as in data/NAME.jsonl."""
        one = self.plans[variant]
        if one.transitions:
            return "train.trees", "dev.trees"
        if one.data == "multitask":
            return "train.multitask", "dev.multitask"
        return (f"train.{one.data}" if one.data else "train"), "dev"


def _no_trees(variant: str, side: str, parser: str, known: str) -> UsageError:
    give = f"give {parser} MODEL, a UDPipe model of its language, or {known} FILE"
    return UsageError(f"{variant} needs trees of the {side}: {give}")


def variants(names: str) -> tuple[str, ...]:
    """The variants of `vanilla,pascal,dep+rel`, also with spaces. Raises UsageError for none.

    >>> variants("vanilla, dep+rel")
    ('vanilla', 'dep+rel')
    """
    named: Sequence[str] = [name for one in names.split(",") if (name := one.strip())]
    if not named:
        raise UsageError("--variants names no variant")
    return tuple(named)
