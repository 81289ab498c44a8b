"""The coordinates of a mixed model's tangent space at a Gaussian fit, to second order.

With a row's predictors in whitened coordinates, a for the wide parameters and e for its own
group's, and c₁, C₂ the expected derivatives, the centred potential is

    Σ_k c₁ₖ (aₖ·z + eₖ·ε) + ½ Σ_kj C₂ₖⱼ [(aₖ·z + eₖ·ε)(aⱼ·z + eⱼ·ε) − E]

and its coordinates, orthonormal under the fit, are those of 1, z, zzᵀ, common to all groups, and of
ε, εεᵀ, zεᵀ and ε³, of one group alone. There are no draws, and no noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, permutations
from typing import Any, NamedTuple

import numpy as np

from corebayes.arrow.expectation import expected, whitened_split
from corebayes.arrow.gaussian import ArrowGaussian
from corebayes.arrow.layout import Layout
from corebayes.arrow.prior import PriorParts
from corebayes.arrow.sums import ArrowSums, arrow_sums
from corebayes.models.custom.touching import is_touching
from corebayes.models.structure import StructuredModel
from corebayes.types import Array, Block, Indices, Total

ROOT_HALF = float(np.sqrt(0.5))


class GroupedElement(NamedTuple):
    """An element in its parts."""

    common: Array
    """(P,)."""
    own: Array
    """(G, F): the coordinates of each group."""

    @property
    def half_square(self) -> float:
        return 0.5 * float(self.common @ self.common + np.sum(np.square(self.own)))


@dataclass(frozen=True, eq=False)
class ArrowCoordinates:
    """Polynomials of degree two at an arrow's Gaussian. An element has P + G·F entries."""

    model: StructuredModel
    gaussian: ArrowGaussian
    prior: PriorParts

    @property
    def layout(self) -> Layout:
        return self.gaussian.layout

    @property
    def location(self) -> Array:
        mean = self.gaussian.mean
        return self.model.rescaling.theta(mean) if is_touching(self.model) else mean

    @cached_property
    def _pairs(self) -> tuple[Indices, Indices, Array]:
        """Places i ≤ j of pairs of wide coordinates, and their scales."""
        i, j = np.triu_indices(self.layout.num_wide)
        return i, j, np.where(i == j, ROOT_HALF, 1.0)

    @cached_property
    def _own_pairs(self) -> tuple[Indices, Indices, Array]:
        i, j = np.triu_indices(self.layout.num_own)
        return i, j, np.where(i == j, ROOT_HALF, 1.0)

    @cached_property
    def _own_triples(self) -> tuple[Indices, Indices, Indices, Array]:
        """Places i ≤ j ≤ k of triples of a group's coordinates: groups of few rows are skewed.

        With several predictors there are none, nor by differences.
        """
        model = self.model
        has_thirds = model.num_predictors == 1 and not (is_touching(model) and not model.is_traced)
        q = self.layout.num_own if has_thirds else 0
        triples = list(combinations_with_replacement(range(q), 3))
        i, j, k = np.array(triples, dtype=np.int64).reshape(-1, 3).T
        # A triple stands for as many entries of the tensor as it has orders.
        orders = [len(set(permutations(triple))) for triple in triples]
        return i, j, k, np.sqrt(np.array(orders, dtype=np.float64) / 6.0)

    def _cubes(self, cubes: Array) -> Array:
        i, j, k, scales = self._own_triples
        return cubes[:, i, j, k] * scales

    @property
    def num_common(self) -> int:
        p = self.layout.num_wide
        return p + p * (p + 1) // 2

    @property
    def num_own(self) -> int:
        p, q = self.layout.num_wide, self.layout.num_own
        return q + q * (q + 1) // 2 + p * q + self._own_triples[3].size

    def third_moments(self, vectors: Any, element: Array) -> Array:
        raise TypeError("the space of a mixed model has no third moments: use another update")

    def total(self, block: Block) -> Total:
        """Cost: n·p² flops; no vectors are formed."""
        split = self.layout.split(self.model, block)
        whitened, turned = whitened_split(self.gaussian, split)
        jets = expected(self.model, block, self.gaussian, whitened)
        return self.total_of(arrow_sums(turned, jets, block.counts, self.layout.num_groups))

    def total_of(self, sums: ArrowSums) -> Total:
        """The total that these sums in whitened coordinates are."""
        i, j, scales = self._pairs
        common = np.concatenate([sums.wide, sums.wide_wide[i, j] * scales])
        i, j, scales = self._own_pairs
        own = np.concatenate(
            [
                sums.own,
                sums.own_own[:, i, j] * scales,
                sums.own_wide.reshape(self.layout.num_groups, -1),
                self._cubes(sums.own_cubes),
            ],
            axis=1,
        )
        return Total(np.concatenate([common, own.ravel()]), sums.value)

    def free_energy(self, total: Total) -> float:
        log_prior = self.prior.expected_log_density(self.gaussian)
        return float(-total.mean - log_prior - self.gaussian.log_volume())

    def in_parts(self, element: Array) -> GroupedElement:
        """The common coordinates of an element, and those of each group."""
        split = self.num_common
        own = element[split:].reshape(self.layout.num_groups, self.num_own)
        return GroupedElement(element[:split], own)
