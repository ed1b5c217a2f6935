"""Relations between tokens as learned vectors: rel, dep, struct-rel.

Shaw et al. (2018), eqs. 3-4; Omote et al. (2019), eqs. 11-22; Wang et al. (2019), section 3.2:

    e_ij = q_i . (k_j + w^K[r_ij]) / sqrt(d_head)            Omote eqs. 12, 18, 21
    z_i  = sum_j alpha_ij (v_j + w^V[r_ij])                  Omote eqs. 11, 17, 22

The three differ in the relation r_ij that they clip and look up:

    rel         clip(j - i, k)
    dep         clip(depth_j - depth_i, l)                   Omote eqs. 16, 19-20
    struct-rel  clip(depth_i - depth_j, r)                   between a head and its dependent
                clip(sign(i - j) (depth_i + depth_j), r)     else

Tables are per layer and shared by the heads, as in Shaw et al.; several relations add up
(`dep+rel`, eqs. 21-22). The papers do not speak of subwords: those of one word have its depth,
so they differ by 0. Omote et al. work on words without an end of sentence; here, pairs of tokens
that are not in the tree of one sentence share a vector of their own, zero at first.
In Wang et al. the end of sentence is one deeper than all words (section 3.1), and related by
the second rule; so are words of two sentences. Their sign(i - j) is opposite to Shaw's j - i.
"""

from collections.abc import Callable
from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from synmt_cli.core.model.modifier import Modifier, Side
from synmt_cli.core.model.relations import Related, Rows, Table
from synmt_cli.core.options import Bounds
from synmt_cli.core.variants.stack import StackSpec

CLIP = Bounds(0, 1000)  # 1000 is more than any sentence needs


def sequential(side: Side, clip: int) -> Tensor:
    """Rows of the table for clip(j - i), (1, T, T)."""
    i = torch.arange(side.ids.size(1), device=side.ids.device)  # (T,)
    return ((i - i[:, None]).clamp(-clip, clip) + clip)[None]


def relative_depth(side: Side, clip: int) -> Tensor:
    """Rows for clip(depth_j - depth_i); 2 clip + 1 for no relation. (B, T, T)."""
    depth = side.features["depth"]  # (B, T)
    row = (depth[:, None, :] - depth[:, :, None]).clamp(-clip, clip) + clip  # (B, T, T)
    return torch.where(side.same_sentence, row, 2 * clip + 1)


def structural(side: Side, clip: int) -> Tensor:
    """Rows for Wang et al.'s relative structural position, (B, T, T)."""
    depth, word, head = (side.features[name] for name in ("struct_abs", "word", "head_word"))
    i = torch.arange(depth.size(1), device=depth.device)  # (T,)
    same_word = word[:, :, None] == word[:, None, :]  # (B, T, T)
    is_head = head[:, :, None] == word[:, None, :]  # j is the head of i
    on_arc = is_head | is_head.transpose(1, 2)
    first_rule = depth[:, :, None] - depth[:, None, :]
    second_rule = (i[:, None] - i).sign() * (depth[:, :, None] + depth[:, None, :])
    position = torch.where(on_arc, first_rule, second_rule).masked_fill(same_word, 0)
    return position.clamp(-clip, clip) + clip


class Relation(Modifier):
    """Adds vectors of r_ij to keys and values.

    rows: Side, clip -> the table's row for each pair, (B or 1, T, T). keys, values: whether it
    has w^K and w^V. absent: whether pairs may have no relation, which takes one more row.
    """

    def __init__(
        self,
        spec: StackSpec,
        rows: Callable[[Side, int], Tensor],
        clip: int,
        *,
        keys: bool,
        values: bool,
        needs: tuple[str, ...] = (),
        absent: bool = False,
    ) -> None:
        super().__init__(range(spec.n_layers))
        self.n_heads = spec.size.n_heads
        self.rows = rows
        self.clip = clip
        self.absent = absent
        self.needs = needs
        self.key = self._tables(spec, absent) if keys else None  # w^K
        self.value = self._tables(spec, absent) if values else None  # w^V

    def _tables(self, spec: StackSpec, absent: bool) -> nn.Parameter:
        """(layers, rows, d_head); the row for no relation is zero."""
        n_rows = 2 * self.clip + 1
        tables = torch.zeros(spec.n_layers, n_rows + absent, spec.size.d_head)
        for table in tables:
            nn.init.xavier_uniform_(table[:n_rows])
        return nn.Parameter(tables)

    def prepare(self, side: Side) -> list[Table | None]:
        """The row of each pair, in the tables of keys and of values."""
        n_rows = 2 * self.clip + 1 + self.absent
        rows = Rows.of(
            self.rows(side, self.clip),
            n_rows,
            side.ids.size(0),
            self.n_heads,
            is_rising=self.rows is sequential,
        )
        return [t if t is None else Table(rows, t) for t in (self.key, self.value)]

    def related(self, state: list[Table | None], layer: int) -> Related:
        """The tables, for this layer."""
        key, value = state
        return Related(key, value, layer)


def rel(
    spec: StackSpec,
    *,
    clip: Annotated[int, "k: distances are clipped to -k..k", CLIP] = 16,
    keys: Annotated[bool, "add learned vectors to the keys (w^K)"] = True,
    values: Annotated[bool, "add learned vectors to the values (w^V)"] = True,
    stack: Annotated[
        Literal["both", "encoder", "decoder"], "the stacks whose self-attention uses them"
    ] = "both",
) -> tuple[Modifier, ...]:
    """Builds sequential relations, for whichever stack is being built."""
    if stack not in ("both", spec.stack):
        return ()
    return (Relation(spec, sequential, clip, keys=keys, values=values),)


def dep(
    spec: StackSpec,
    *,
    clip: Annotated[int, "l: differences of depth are clipped to -l..l", CLIP] = 2,
    keys: Annotated[bool, "add learned vectors to the keys (b^K)"] = True,
    values: Annotated[bool, "add learned vectors to the values (b^V)"] = True,
) -> tuple[Modifier, ...]:
    """Builds relative depths."""
    needs = ("depth", "sentence")
    return (
        Relation(spec, relative_depth, clip, keys=keys, values=values, needs=needs, absent=True),
    )


def struct_rel(
    spec: StackSpec,
    *,
    clip: Annotated[int, "r: positions are clipped to -r..r", CLIP] = 16,
    keys: Annotated[bool, "add learned vectors to the keys (w^K)"] = True,
    values: Annotated[bool, "add learned vectors to the values (w^V)"] = True,
) -> tuple[Modifier, ...]:
    """Builds relative structural positions."""
    needs = ("struct_abs", "word", "head_word")
    return (Relation(spec, structural, clip, keys=keys, values=values, needs=needs),)
