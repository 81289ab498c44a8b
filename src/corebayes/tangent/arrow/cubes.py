"""The third degree of rows that touch no group: what quadratics leave of a skewed posterior.

With a row's predictors a in whitened coordinates and T = E ∂³f in them, the part of degree three of
its potential is Σ T_kjl (a_k·z)(a_j·z)(a_l·z) / 6, less what lower degrees have of it, and

    ⟨g, gʹ⟩ = Σ T_kjl Tʹ_abc K_ka K_jb K_lc / 6,      K = a aʹᵀ.

Only single elements, totals and residuals, have all their p³ coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from corebayes.arrow.expectation import expected_thirds
from corebayes.arrow.gaussian import ArrowGaussian
from corebayes.models.structure import StructuredModel
from corebayes.types import Array, Block, Indices, Total

ROOT_6 = float(np.sqrt(6.0))
# Numbers of rows times p² that are held at once.
NUMBERS_AT_ONCE = 4_000_000


class Cubics(NamedTuple):
    """Rows by their predictors in whitened coordinates, and their expected third derivatives."""

    wide: Array
    """(n, k, p): a."""
    third: Array
    """(n, k, k, k)."""


@dataclass(frozen=True, eq=False)
class CubeSpace:
    """Polynomials of degree three at a Gaussian, of a model without groups.

    Cost of inner products: n·m·k²·p flops; of elements: n·k·p³.
    """

    model: StructuredModel
    gaussian: ArrowGaussian

    @property
    def width(self) -> int:
        return self._dim**2

    @property
    def location(self) -> Array:
        return self.gaussian.mean

    @property
    def _dim(self) -> int:
        return self.gaussian.layout.num_wide

    def embed(self, block: Block, *, reuse: bool = False) -> Cubics:
        split = self.gaussian.layout.split(self.model, block)
        whitened = self.gaussian.whiten(split)
        return Cubics(whitened.wide, expected_thirds(self.model, block, whitened))

    def take(self, vectors: Cubics, positions: Indices | slice) -> Cubics:
        return Cubics(vectors.wide[positions], vectors.third[positions])

    def combine(self, vectors: Cubics, weights: Array) -> Array:
        p = self._dim
        total = np.zeros((p, p * p))
        for part in self._parts(weights.size):
            wide, third = self.take(vectors, part)
            third = weights[part, None, None, None] * third
            for k in range(wide.shape[1]):
                bent = np.einsum("njl,njp,nlq->npq", third[:, k], wide, wide, optimize=True)
                total += wide[:, k].T @ bent.reshape(-1, p * p)
        return total.ravel() / ROOT_6

    def project(self, vectors: Cubics, element: Array) -> Array:
        p = self._dim
        result = np.zeros(len(vectors.wide))
        for part in self._parts(result.size):
            wide, third = self.take(vectors, part)
            for k in range(wide.shape[1]):
                along = (wide[:, k] @ element.reshape(p, p * p)).reshape(-1, p, p)
                result[part] += np.einsum(
                    "njl,njp,npq,nlq->n", third[:, k], wide, along, wide, optimize=True
                )
        return result / ROOT_6

    def squared_norms(self, vectors: Cubics) -> Array:
        wide, third = vectors
        inner = np.matmul(wide, wide.transpose(0, 2, 1))
        turned = np.einsum("nabc,nka,njb,nlc->nkjl", third, inner, inner, inner, optimize=True)
        return np.einsum("nkjl,nkjl->n", third, turned) / 6.0

    def gram(self, vectors: Cubics, others: Cubics | None = None) -> Array:
        others = vectors if others is None else others
        places = range(vectors.wide.shape[1])
        inner = [[vectors.wide[:, i] @ others.wide[:, a].T for a in places] for i in places]
        third = vectors.third[..., None]
        result = np.zeros((len(vectors.wide), len(others.wide)))
        # T is symmetric: a triple a ≤ b ≤ c stands for all its orders.
        for c in places:
            once = [
                [sum(third[:, i, j, m] * inner[m][c] for m in places) for j in places]
                for i in places
            ]
            for b in range(c + 1):
                twice = [sum(once[i][j] * inner[j][b] for j in places) for i in places]
                for a in range(b + 1):
                    orders = len(set(permutations((a, b, c))))
                    turned = sum(twice[i] * inner[i][a] for i in places)
                    result += turned * (orders * others.third[:, a, b, c])
        return result / 6.0

    def third_moments(self, vectors: Any, element: Array) -> Array:
        raise TypeError("this space has no third moments: use another update")

    def total(self, block: Block) -> Total:
        """Cost: n·k·p³ flops."""
        return Total(self.combine(self.embed(block), block.multiplicity()), 0.0)

    def free_energy(self, total: Total) -> float:
        raise TypeError("this space is beside one of lower degrees, which has an energy")

    def _parts(self, num_rows: int) -> list[slice]:
        step = max(1, NUMBERS_AT_ONCE // self.width)
        return [slice(first, first + step) for first in range(0, num_rows, step)]
