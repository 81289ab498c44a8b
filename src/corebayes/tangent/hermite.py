"""The tangent space of a generalised linear model by Hermite expansion: no draws, no noise.

With π_w ≈ N(μ, LLᵀ) the linear predictor of row n is η ~ N(x_nᵀμ, ‖β_n‖²), β_n = Lᵀx_n, and

    f_n − E f_n = Σ_k c_{n,k} ⟨β_n^{⊗k}, He_k⟩ / k!,     c_{n,k} = E[∂^k f_n / ∂η^k].

The coefficients are one-dimensional Gaussian integrals, taken by Gauss–Hermite quadrature.
Degrees beyond `order` are dropped; linear regression is the exact case of order 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import hermite_e

from corebayes.arguments import check_fields
from corebayes.models.glm import GLM
from corebayes.models.quadrature import gauss_hermite
from corebayes.problem import Problem
from corebayes.samplers.exact import Exact, is_conjugate
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.posterior import Posterior
from corebayes.tangent.gaussian import gaussian_free_energy
from corebayes.tangent.geometry import Geometry, half_square
from corebayes.tangent.ridge import RidgeAlgebra, Ridges
from corebayes.types import Array, Block, Estimate, Gaussian, Model, Rng, Total, WeightedPoints

MAX_ORDER = 8
# Rows whose total is taken at once.
ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class HermiteSpace(RidgeAlgebra):
    """Ridge polynomials at N(location, factor factorᵀ)."""

    model: GLM
    location: Array
    factor: Array
    num_nodes: int

    @property
    def width(self) -> int:
        return max(super().width, self.num_nodes)

    def embed(self, block: Block, *, reuse: bool = False) -> Ridges:
        """Cost: n·d² flops and n·num_nodes derivatives."""
        design, target = self.model.design(block), self.model.target(block)
        parts = [self._ridges(design[part], target[part])[0] for part in self._parts(len(block))]
        if len(parts) == 1:
            return parts[0]
        return Ridges(*(np.concatenate(entries) for entries in zip(*parts, strict=True)))

    def _ridges(self, design: Array, target: Array) -> tuple[Ridges, Array]:
        """The rows' polynomials, and their linear predictors at the quadrature nodes."""
        beta = design @ self.factor
        spread = np.sqrt(np.einsum("ni,ni->n", beta, beta))
        rule = gauss_hermite(self.num_nodes)
        predictor = (design @ self.location)[:, None] + spread[:, None] * rule.nodes
        known = min(self.order, 3)
        derivatives = self.model.derivatives(predictor, target[:, None], known)
        # c_k = E[∂^k f / ∂η^k]
        coefficients = np.empty((len(design), self.order))
        for degree, values in enumerate(derivatives):
            coefficients[:, degree] = values @ rule.weights
        # Beyond the derivatives at hand by parts: c_{k+j} = E[∂^k f / ∂η^k He_j(z)] / ‖β‖^j
        inverse = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0.0)
        for more in range(1, self.order - known + 1):
            weights = rule.weights * hermite_e.hermeval(rule.nodes, [0.0] * more + [1.0])
            coefficients[:, known + more - 1] = (derivatives[-1] @ weights) * inverse**more
        return Ridges(beta, coefficients), predictor

    def total(self, block: Block) -> Total:
        """By parts whose numbers at all nodes stay in a core's cache."""
        if len(block) <= ROWS_AT_ONCE:
            return self._total(block)
        starts = range(0, len(block), ROWS_AT_ONCE)
        parts = [self._total(block.take(slice(k, k + ROWS_AT_ONCE))) for k in starts]
        elements, means = zip(*parts, strict=True)
        return Total(np.sum(elements, axis=0), sum(means))

    def _total(self, block: Block) -> Total:
        counts = block.multiplicity()
        design, target = self.model.design(block), self.model.target(block)
        ridges, predictor = self._ridges(design, target)
        potentials = self.model.transform(predictor, target)
        mean = float(counts @ (potentials @ gauss_hermite(self.num_nodes).weights))
        return Total(self.combine(ridges, counts), mean)

    def free_energy(self, total: Total) -> float:
        posterior = Gaussian(self.location, self.factor)
        return gaussian_free_energy(self.model.gaussian_prior, posterior, total)


@dataclass(frozen=True, kw_only=True)
class Hermite(Geometry):
    """Tangent spaces of a GLM at its Laplace posterior. Cost of a total: N·d^order flops.

    Order 2 sees location and scale, which is all there is for large N; order 3 also skewness; the
    highest are for few parameters, where many points can match more than that.
    """

    order: int = 2
    num_nodes: int = 16

    def __post_init__(self) -> None:
        check_fields(self, num_nodes=2)
        if self.order > MAX_ORDER:
            raise ValueError(f"order must be 1 to {MAX_ORDER}, got {self.order}")

    def space(
        self, rng: Rng, problem: Problem, points: WeightedPoints, start: Array | None = None
    ) -> HermiteSpace:
        model = _require_glm(problem.model)
        sampler = Exact() if is_conjugate(problem.model) else Laplace()
        posterior = Posterior(model, points.rows, points.weights)
        return self.space_at(problem, sampler.fit(posterior, start))

    def space_at(self, problem: Problem, at: Gaussian) -> HermiteSpace:
        model = _require_glm(problem.model)
        return HermiteSpace(model.dim, self.order, model, *at, self.num_nodes)

    def kl(self, problem: Problem, space: HermiteSpace, residual: Array) -> Estimate:
        """½ Var_w r, the second-order KL; deterministic, so its standard error is zero."""
        return Estimate(half_square(residual), 0.0)


def _require_glm(model: Model) -> GLM:
    if not isinstance(model, GLM):
        raise TypeError(
            f"the Hermite space is for generalised linear models, not {type(model).__name__}; "
            "use MonteCarlo()"
        )
    return model
