"""Potentials of the rows of groups at effects of their own, for integrals over these.

A block has G groups of m rows each: see `MarginalRegression.group_block`. Effects are (G, S, K, q)
for S draws of what all groups share and K places.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from corebayes.models.family import Row
from corebayes.models.mixed import MixedRegression
from corebayes.types import Array, Block


@dataclass(frozen=True, eq=False)
class GroupRows:
    """The rows of a mixed model with one group term and one linear predictor."""

    mixed: MixedRegression

    def _eta(self, draws: Array, block: Block, effects: Array) -> Array:
        """(n, m, S, K) at effects (n, S, K, q)."""
        fixed = block["X"] @ draws[:, : self.mixed.num_fixed].T
        if "offset" in block.fields:
            fixed = fixed + block["offset"][..., None]
        return fixed[..., None] + np.einsum("gmq,gskq->gmsk", block["Z"], effects)

    def _at(self, draws: Array, eta: Array) -> list[Array]:
        """All predictors of the family, which broadcast with η (n, m, S, K)."""
        constants = [one[..., None] for one in self.mixed.learned_at(draws)]
        eta, *others = self.mixed.complete([eta], constants)
        return [eta, *(np.reshape(one, (1, 1, -1, 1)) for one in others)]

    def _row(self, block: Block) -> Row:
        """What the family sees beside them, (n, m, 1, 1) each."""
        names = ("y", *self.mixed.family.row_columns)
        return {name: block[name][:, :, None, None] for name in names if name in block.fields}

    def heights(self, draws: Array, block: Block, effects: Array) -> Array:
        """Σ_n w_n f_n at effects (n, S, K, q), (n, S, K)."""
        eta = self._eta(draws, block, effects)
        if (glm := self.mixed.as_glm) is not None:
            shape = eta.shape
            flat = eta.reshape(shape[0] * shape[1], -1)
            values = glm.transform(flat, glm.own_target(block["y"].ravel())).reshape(shape)
        else:
            values = self.mixed.family.log_likelihood(self._at(draws, eta), self._row(block))
        return np.einsum("gm,gmsk->gsk", block["w"], values)

    def slopes(self, draws: Array, block: Block, effects: Array) -> tuple[Array, Array]:
        """ℓ' and ℓ'' in η at effects (n, S, K, q), (n, m, S, K)."""
        eta = self._eta(draws, block, effects)
        if (glm := self.mixed.as_glm) is not None:
            first, second = glm.derivatives(eta, glm.own_target(block["y"][:, :, None, None]), 2)
            return first, second
        jet = self.mixed.family.jet(self._at(draws, eta), self._row(block))
        return jet.first[0], np.broadcast_to(jet.second[0][0], eta.shape)

    def predictor_slopes(
        self, draws: Array, block: Block, effects: Array
    ) -> tuple[list[Array], list[list[Array]]]:
        """Derivatives in the predictors that are parameters, at one draw, (n, m, K) each."""
        if self.mixed.as_glm is not None:
            first, second = self.slopes(draws, block, effects)
            return [first[:, :, 0]], [[second[:, :, 0]]]
        eta, wanted = self._eta(draws, block, effects), self.mixed.wanted
        jet = self.mixed.family.jet(self._at(draws, eta), self._row(block))

        def whole(one: Array) -> Array:
            # Some derivatives are the same for all rows.
            return np.broadcast_to(one, eta.shape)[:, :, 0]

        return [whole(jet.first[i]) for i in wanted], [
            [whole(jet.second[i][j]) for j in wanted[: place + 1]] for place, i in enumerate(wanted)
        ]

    def base(self, block: Block) -> Array:
        """What the potentials leave out, for every row."""
        if (glm := self.mixed.as_glm) is not None:
            return glm.log_base_of(block["y"])
        return self.mixed.family.row_base(self._row(block))
