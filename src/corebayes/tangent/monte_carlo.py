"""The tangent space from draws: any model, covariances with Monte Carlo error 1/√S.

With θ_s ~ π_w the vector of a row is its centred potentials at the draws,

    g_n = (f_n(θ_s) − mean_s f_n) / √S,      ⟨g_n, g_m⟩ = the sample covariance,

exactly the ĝ of Algorithm 1 (Campbell and Beronov 2019). An element has S entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from corebayes.arguments import check_fields
from corebayes.deadline import check_time
from corebayes.models.special import scratch
from corebayes.problem import Problem
from corebayes.samplers.draws import Sampler
from corebayes.samplers.exact import Exact, is_conjugate
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.parts import squared_distances
from corebayes.samplers.posterior import Posterior
from corebayes.tangent.geometry import Geometry, LookCost
from corebayes.types import (
    Array,
    Block,
    Estimate,
    Gaussian,
    Indices,
    Model,
    Rng,
    Total,
    WeightedPoints,
)


def log_volume(draws: Array, modes: Sequence[Gaussian] = ()) -> float:
    """The entropy less ½ d log 2πe; −∞ when there are too few draws. Cost: S·d² for each mode.

    A Gaussian has the entropy ½ log |Σ|. Of two places far apart the covariance of all draws has
    their distance, and a spurious mode would make a distribution seem the widest of all. There
    H = Σ_k p_k (½ log |Σ_k| − log p_k), p_k the share of the draws that lie in place k. Errors of
    p_k and Σ_k cancel to first order in the free energy near π, since the same draws are in both
    of its terms.
    """
    if len(modes) < 2:
        return _half_log_determinant(draws)
    volumes = np.array([float(np.linalg.slogdet(fit.factor)[1]) for fit in modes])
    distances = np.stack([squared_distances(fit, draws) for fit in modes])
    nearest = np.argmin(distances + 2.0 * volumes[:, None], axis=0)
    total = 0.0
    for place, volume in enumerate(volumes):
        mine = draws[nearest == place]
        if len(mine) == 0:
            continue
        share = len(mine) / len(draws)
        # Few draws have no covariance, but then their share is small.
        own = _half_log_determinant(mine) if len(mine) > 4 * draws.shape[1] else volume
        total += share * (own - np.log(share))
    return total


def _half_log_determinant(draws: Array) -> float:
    covariance = np.atleast_2d(np.cov(draws, rowvar=False, bias=True))
    sign, log_determinant = np.linalg.slogdet(covariance)
    return 0.5 * float(log_determinant) if sign > 0.0 else -np.inf


# A potential that moves by less than this share of its size only shows round-off.
FLAT = 1e-13
EXACT = Exact()
# A hundredth of a standard deviation is far below the error of the draws' own mean.
ROUGH_LAPLACE = Laplace(tolerance=1e-4)


class Centred(NamedTuple):
    """Centred potentials (n, S), not divided by √S, and Var_w f_n."""

    values: Array
    squared_norms: Array


@dataclass(frozen=True)
class MonteCarloSpace:
    """Centred potentials at fixed draws."""

    model: Model
    draws: Array
    location: Array = field(default_factory=lambda: np.empty(0))
    modes: tuple[Gaussian, ...] = ()
    """Where the draws lie, if that is in several places."""

    @property
    def width(self) -> int:
        return self.draws.shape[0]

    @cached_property
    def _scale(self) -> float:
        return 1.0 / np.sqrt(self.draws.shape[0])

    @cached_property
    def _averaging(self) -> Array:
        return np.ones(len(self.draws)) / len(self.draws)

    def embed(self, block: Block, *, reuse: bool = False) -> Centred:
        """Cost: n·S potentials."""
        out = scratch("centred", (len(block), len(self.draws))) if reuse else None
        values = self.model.potentials(self.draws, block, out)
        num_draws = values.shape[1]
        level = np.abs(values[:, 0])
        # Centring first keeps the variance of a narrow posterior from cancelling.
        values -= (values @ self._averaging)[:, None]
        squared_norms = np.vecdot(values, values) / num_draws
        flat = squared_norms <= np.square(FLAT * level)
        if flat.any():
            values[flat] = 0.0
            squared_norms[flat] = 0.0
        return Centred(values, squared_norms)

    def take(self, vectors: Centred, positions: Indices) -> Centred:
        return Centred(vectors.values[positions], vectors.squared_norms[positions])

    def combine(self, vectors: Centred, weights: Array) -> Array:
        return (weights @ vectors.values) * self._scale

    def project(self, vectors: Centred, element: Array) -> Array:
        return vectors.values @ (element * self._scale)

    def squared_norms(self, vectors: Centred) -> Array:
        return vectors.squared_norms

    def gram(self, vectors: Centred, others: Centred | None = None) -> Array:
        others = vectors if others is None else others
        return (vectors.values @ others.values.T) * self._scale**2

    def third_moments(self, vectors: Centred, element: Array) -> Array:
        values = vectors.values
        return (values * (element * self._scale)) @ values.T

    def total(self, block: Block) -> Total:
        """Cost: n·S potentials, summed without keeping them."""
        sums = self.model.sum_potentials(self.draws, block, block.counts)
        mean = float(sums.sum()) / sums.size
        if not np.isfinite(mean):
            # The pass names the row; centring an infinity would only warn.
            return Total(sums, mean)
        return Total((sums - mean) * self._scale, mean)

    def free_energy(self, total: Total) -> float:
        """Entropy from the draws' covariance; infinite when there are too few draws for one."""
        volume = log_volume(self.draws, self.modes)
        return float(-total.mean - self.model.log_prior(self.draws).mean() - volume)


@dataclass(frozen=True, kw_only=True)
class MonteCarlo(Geometry):
    """Tangent spaces from `num_draws` draws of π_w by `sampler`.

    The sampler defaults to exact draws for conjugate models and Laplace for all others.
    Cost of a space: one sampler call; of a total: N·S potentials.
    """

    num_draws: int = 100
    sampler: Sampler | None = None

    def __post_init__(self) -> None:
        # Two to have a covariance.
        check_fields(self, num_draws=2)

    def look_cost(self, problem: Problem) -> LookCost:
        """Draws of a Gaussian fit cost next to nothing; those of any other sampler do."""
        of_a_fit = self.sampler is None or isinstance(self.sampler, Exact | Laplace)
        return LookCost(passes=1.0, draws=0 if of_a_fit else self.num_draws)

    def space(
        self, rng: Rng, problem: Problem, points: WeightedPoints, start: Array | None = None
    ) -> MonteCarloSpace:
        check_time()
        sampler = self.sampler or (EXACT if is_conjugate(problem.model) else ROUGH_LAPLACE)
        posterior = Posterior(problem.model, points.rows, points.weights)
        draws = sampler.draw(rng, posterior, self.num_draws, start)
        values = draws.equally_weighted(rng, self.num_draws)
        return MonteCarloSpace(problem.model, values, draws.location, draws.modes)

    def kl(self, problem: Problem, space: MonteCarloSpace, residual: Array) -> Estimate:
        """½ Var_w r, the second-order KL, with the standard error of the sample variance."""
        squares = np.square(residual) * residual.size
        half_variance = 0.5 * float(squares.mean())
        return Estimate(half_variance, 0.5 * float(squares.std()) / np.sqrt(residual.size))
