"""The single weight update: scale all weights, move one (Campbell and Beronov 2019, appendix D.1).

Only two numbers are free, whatever the size of the coreset: with n* the row just selected,

    w ← ω(α*, β*),   ω(α, β) = β w + α 1_{n*},   (α*, β*) = argmin_{α, β ≥ 0} KL(π_{ω(α,β)} ‖ π),

and by the chain rule its derivatives are those of KL times the columns of B = [w, 1_{n*}]:

    gradient Bᵀ∇KL,    covariances Bᵀ Cov_w[f] B,    Hessian Bᵀ ∇²KL B.

So (β, α) are the weights of two potentials, Σ_n w_n f_n and f_{n*}, and any weight update can find
them: `LineSearch(update=SGD())` is the paper's stochastic form, `LineSearch(update=Quadratic())`
its single quadratic update (appendix D.2). A row that was active before counts as zero in w, so
its weight may fall as well as rise.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from corebayes.arguments import check_fields
from corebayes.tangent.geometry import Curvature, Moments, Restriction
from corebayes.types import Array, Rng
from corebayes.weights.natural_gradient import NaturalGradient
from corebayes.weights.optimiser import WeightUpdate


@dataclass(frozen=True, kw_only=True)
class LineSearch:
    """The best multiple of the weights and the best weight of the row just selected.

    Cost: that of `update` on an active set of two.
    """

    update: WeightUpdate = field(default_factory=lambda: NaturalGradient(num_steps=50))
    """How α and β are found."""

    def __post_init__(self) -> None:
        check_fields(self)

    def run(self, rng: Rng, restriction: Restriction, weights: Array) -> Array:
        others = weights.copy()
        others[-1] = 0.0
        selected = np.zeros_like(weights)
        selected[-1] = 1.0
        if not others.any():
            line = Plane(restriction, selected[:, None])
            return line.basis @ self.update.run(rng, line, weights[-1:])
        plane = Plane(restriction, np.column_stack([others, selected]))
        return plane.basis @ self.update.run(rng, plane, np.array([1.0, weights[-1]]))


@dataclass(frozen=True)
class Plane:
    """A restriction whose weights are coordinates in the cone spanned by the basis' columns."""

    restriction: Restriction
    basis: Array

    def gradient(self, rng: Rng, weights: Array) -> Array:
        return self.basis.T @ self.restriction.gradient(rng, self.basis @ weights)

    def moments(self, rng: Rng, weights: Array) -> Moments:
        moments = self.restriction.moments(rng, self.basis @ weights)
        return moments._replace(
            gram=self.basis.T @ moments.gram @ self.basis, cross=self.basis.T @ moments.cross
        )

    def curvature(self, rng: Rng, weights: Array) -> Curvature:
        gradient, metric, third = self.restriction.curvature(rng, self.basis @ weights)
        return Curvature(
            self.basis.T @ gradient,
            self.basis.T @ metric @ self.basis,
            self.basis.T @ third @ self.basis,
        )
