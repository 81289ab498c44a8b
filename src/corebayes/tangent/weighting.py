"""Weighting distributions π̂: where the constructions with one fixed tangent space stand.

Hilbert coresets (Campbell and Broderick 2019) measure all potentials under one distribution π̂,
chosen before the rows are,

    ⟨g_n, g_m⟩ = Cov_π̂[f_n, f_m],

and so are as good as π̂ is close to the posterior. A weighting makes that fixed tangent space: from
`num_draws` draws of π̂ (the random projection to S dimensions), or, with `num_draws=None`, with
exact inner products where the model has them. Any class with the one method `space` will do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from corebayes.arguments import check_fields
from corebayes.models.priors.normal import frozen_array
from corebayes.problem import Problem
from corebayes.samplers.draws import Sampler
from corebayes.samplers.exact import Exact, is_conjugate
from corebayes.samplers.laplace import Laplace, asked_posterior
from corebayes.samplers.posterior import Posterior
from corebayes.tangent.default import default_geometry
from corebayes.tangent.geometry import random_points
from corebayes.tangent.monte_carlo import MonteCarloSpace
from corebayes.types import Array, Gaussian, Rng, TangentSpace


class Weighting(Protocol):
    """Makes the tangent space at a π̂ that does not move."""

    def space(self, rng: Rng, problem: Problem) -> TangentSpace: ...


@dataclass(frozen=True, kw_only=True)
class GaussianWeighting(ABC):
    """A Gaussian π̂. A subclass says which."""

    num_draws: int | None = 500
    """S; None for exact inner products."""

    def __post_init__(self) -> None:
        # Two draws to have a covariance.
        check_fields(self, num_draws=2, moment_draws=2, noise=0.0)

    @abstractmethod
    def gaussian(self, rng: Rng, problem: Problem) -> Gaussian: ...

    def space(self, rng: Rng, problem: Problem) -> TangentSpace:
        at = self.gaussian(rng, problem)
        if self.num_draws is None:
            return default_geometry(problem).space_at(problem, at)
        return MonteCarloSpace(problem.model, at.draw(rng, self.num_draws), at.mean)


@dataclass(frozen=True, kw_only=True)
class FullPosterior(GaussianWeighting):
    """π̂ with the mean and covariance of the full posterior: the paper's Optimal.

    Exact for conjugate models and the Laplace fit of all rows for others, in about eight passes of
    N·d² flops. With a `sampler` the moments come from its draws instead; then all rows must fit in
    memory.
    """

    sampler: Sampler | None = None
    """How to draw from the full posterior, for example `NUTS()`."""
    moment_draws: int = 2000
    """Draws that the moments are taken from when there is a sampler."""

    def gaussian(self, rng: Rng, problem: Problem) -> Gaussian:
        if self.sampler is None:
            return _full_posterior(problem)
        rows = problem.data.take(np.arange(problem.data.num_rows))
        counts = rows.multiplicity()
        posterior = Posterior(problem.model, rows, counts)
        draws = self.sampler.draw(rng, posterior, self.moment_draws)
        return _moments(draws.equally_weighted(rng, self.moment_draws))


@dataclass(frozen=True, kw_only=True)
class Realistic(GaussianWeighting):
    """π̂ between prior and posterior, and noisy: the paper's stand-in for a guess of the posterior.

    With u uniform on [0, 1], mean and covariance are a share u of the way from the prior's to the
    full posterior's; then every entry of the mean is multiplied by 1 + noise · z_j and the
    covariance by exp(noise · z), with standard normal z. (The paper says "75 % relative noise" and
    no more.) It knows the posterior, so it is for experiments.
    """

    noise: float = 0.75

    def gaussian(self, rng: Rng, problem: Problem) -> Gaussian:
        prior, full = _prior(problem), _full_posterior(problem)
        share = rng.uniform()
        mean = (1.0 - share) * prior.mean + share * full.mean
        covariance = (1.0 - share) * _covariance(prior) + share * _covariance(full)
        mean = mean * (1.0 + self.noise * rng.standard_normal(mean.size))
        covariance = covariance * np.exp(self.noise * rng.standard_normal())
        return Gaussian(mean, np.linalg.cholesky(covariance))


@dataclass(frozen=True, kw_only=True)
class SubsamplePosterior(GaussianWeighting):
    """π̂ the posterior of a few random rows, each counted as often as it is in the data.

    Wider than the full posterior and about where it is: what one can have without all rows.
    Exact for conjugate models, Laplace for others. Cost: num_rows · d² flops a Newton step.
    """

    num_rows: int = 1000

    def gaussian(self, rng: Rng, problem: Problem) -> Gaussian:
        _, rows, counts = random_points(rng, problem, self.num_rows)
        sampler = Exact() if is_conjugate(problem.model) else Laplace()
        return sampler.fit(Posterior(problem.model, rows, counts))


@dataclass(frozen=True, eq=False, repr=False)
class GivenDraws:
    """π̂ by draws that are at hand: (S, d), of any sampler and any distribution."""

    draws: ArrayLike

    def __post_init__(self) -> None:
        draws = frozen_array(self.draws)
        if draws.ndim != 2 or draws.shape[0] < 2:
            raise ValueError(
                f"draws must have shape (S, d) with at least 2 draws, got {draws.shape}"
            )
        if not np.all(np.isfinite(draws)):
            bad = int(np.flatnonzero(~np.isfinite(draws).all(axis=1))[0])
            raise ValueError(f"draw {bad} has a NaN or infinite entry: {draws[bad]}")
        object.__setattr__(self, "draws", draws)

    def space(self, rng: Rng, problem: Problem) -> MonteCarloSpace:
        draws = np.asarray(self.draws)
        if draws.shape[1] != problem.model.dim:
            raise ValueError(
                f"draws are of {draws.shape[1]} parameters, but the model has {problem.model.dim}"
            )
        return MonteCarloSpace(problem.model, draws, draws.mean(axis=0))

    def __repr__(self) -> str:
        num_draws, dim = np.shape(self.draws)
        return f"GivenDraws({num_draws} draws of {dim} parameters)"


def _full_posterior(problem: Problem) -> Gaussian:
    if is_conjugate(problem.model):
        return problem.full_posterior
    return asked_posterior(problem.model, problem.ask)


def _prior(problem: Problem) -> Gaussian:
    """The prior, or its Laplace approximation where it is not Gaussian."""
    return Laplace().fit(Posterior(problem.model, problem.no_points().rows, np.empty(0)))


def _moments(draws: Array) -> Gaussian:
    root = np.linalg.cholesky(np.atleast_2d(np.cov(draws, rowvar=False)))
    return Gaussian(draws.mean(axis=0), root.astype(np.float64))


def _covariance(gaussian: Gaussian) -> Array:
    return gaussian.factor @ gaussian.factor.T
