"""Potentials of the rows of groups at effects of their own, for integrals over these.

A block has G groups of m rows each: see `MarginalRegression.group_block`. Effects are (G, S, K, q)
for S draws of what all groups share and K places.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from corebayes.models.families.family import Row
from corebayes.models.mixed.regression import MixedRegression
from corebayes.types import Array, Block, Indices


@dataclass(frozen=True, eq=False)
class GroupRows:
    """The rows of groups at draws of what they share, for a mixed model with one group term and
    one linear predictor."""

    mixed: MixedRegression
    fixed: Array
    """η without effects, (n, m, S)."""
    constants: tuple[Array, ...]
    """The other predictors of the family, each to be broadcast with (n, m, S, K)."""
    columns: Array
    """What effects are multiplied by, (n, m, q)."""
    weights: Array
    """(n, m)."""
    row: Row
    """What the family sees beside predictors, (n, m, 1, 1) each."""

    @classmethod
    def at(cls, mixed: MixedRegression, draws: Array, block: Block) -> GroupRows:
        """Cost: n·m·S·p flops."""
        fixed: Array = block["X"] @ draws[:, : mixed.num_fixed].T
        if "offset" in block.fields:
            fixed = fixed + block["offset"][..., None]
        constants: tuple[Array, ...] = ()
        if mixed.as_glm is None:
            others = mixed.complete([], mixed.learned_at(draws))
            constants = tuple(np.reshape(one, (1, 1, -1, 1)) for one in others)
        names = ("y", *mixed.family.row_columns)
        row = {name: block[name][:, :, None, None] for name in names if name in block.fields}
        return cls(mixed, fixed, constants, block["Z"], block["w"], row)

    def pairs(self, groups: Indices, draws: Indices) -> GroupRows:
        """Pairs of a group and a draw, as if each were a group at its only draw."""
        shape = (len(self.fixed), 1, self.fixed.shape[2], 1)
        return replace(
            self,
            fixed=self.fixed[groups, :, draws][:, :, None],
            constants=tuple(
                np.broadcast_to(one, shape)[groups, 0, draws, 0][:, None, None, None]
                for one in self.constants
            ),
            columns=self.columns[groups],
            weights=self.weights[groups],
            row={name: values[groups] for name, values in self.row.items()},
        )

    def eta(self, effects: Array) -> Array:
        """(n, m, S, K) at effects (n, S, K, q)."""
        n, S, K, q = effects.shape
        moved = self.columns @ effects.reshape(n, S * K, q).transpose(0, 2, 1)
        return self.fixed[..., None] + moved.reshape(n, self.fixed.shape[1], S, K)

    def heights(self, effects: Array) -> Array:
        """Σ_n w_n f_n at effects (n, S, K, q), (n, S, K)."""
        eta = self.eta(effects)
        if (glm := self.mixed.as_glm) is not None:
            shape = eta.shape
            flat = eta.reshape(shape[0] * shape[1], shape[2] * shape[3])
            values = glm.transform(flat, glm.own_target(self.row["y"].ravel())).reshape(shape)
        else:
            values = self.mixed.family.log_likelihood([eta, *self.constants], self.row)
        n, S, K, _ = effects.shape
        flat = values.reshape(n, self.fixed.shape[1], S * K)
        return (self.weights[:, None] @ flat).reshape(n, S, K)

    def slopes(self, effects: Array) -> tuple[Array, Array]:
        """ℓ' and ℓ'' in η at effects (n, S, K, q), (n, m, S, K)."""
        eta = self.eta(effects)
        if (glm := self.mixed.as_glm) is not None:
            first, second = glm.derivatives(eta, glm.own_target(self.row["y"]), 2)
            return first, second
        first, second = self.mixed.family.slopes([eta, *self.constants], self.row)
        return first, np.broadcast_to(second, eta.shape)

    def predictor_slopes(self, effects: Array) -> tuple[list[Array], list[list[Array]]]:
        """Derivatives in the predictors that are parameters, at one draw, (n, m, K) each."""
        if self.mixed.as_glm is not None:
            first, second = self.slopes(effects)
            return [first[:, :, 0]], [[second[:, :, 0]]]
        eta, wanted = self.eta(effects), self.mixed.wanted
        jet = self.mixed.family.jet([eta, *self.constants], self.row)

        def whole(one: Array) -> Array:
            # Some derivatives are the same for all rows.
            return np.broadcast_to(one, eta.shape)[:, :, 0]

        return [whole(jet.first[i]) for i in wanted], [
            [whole(jet.second[i][j]) for j in wanted[: place + 1]] for place, i in enumerate(wanted)
        ]


def group_base(mixed: MixedRegression, block: Block) -> Array:
    """What the potentials leave out, weighted as the rows are, (n,)."""
    if (glm := mixed.as_glm) is not None:
        base = glm.log_base_of(block["y"])
    else:
        names = ("y", *mixed.family.row_columns)
        base = mixed.family.row_base({name: block[name] for name in names if name in block.fields})
    return np.einsum("gm,gm->g", block["w"], base.reshape(block["y"].shape))
