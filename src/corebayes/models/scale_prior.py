"""Priors of positive numbers (standard deviations, dispersions), as a model has them: on the log.

A model's parameter is u = log τ, so the density of τ is multiplied by the Jacobian dτ/du = τ:

    log p(u) = log p_τ(e^u) + u

All functions work entry by entry on arrays of any shape and neither overflow nor give NaN at any
finite u: far out a density is −inf or finite, as the prior has it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from scipy.special import betaln, expit, gammaln

from corebayes.models.base import check_positive
from corebayes.types import Array


@dataclass(frozen=True)
class ScalePrior(ABC):
    """The prior of one positive number, at u = its logarithm."""

    def __post_init__(self) -> None:
        for entry in fields(self):
            check_positive(getattr(self, entry.name), entry.name)

    @abstractmethod
    def log_density(self, u: Array) -> Array:
        """log p(u), normalised, with the Jacobian."""

    @abstractmethod
    def gradient(self, u: Array) -> Array:
        """d log p / du."""

    @abstractmethod
    def hessian(self, u: Array) -> Array:
        """d² log p / du²; never positive."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, num_draws: int) -> Array:
        """Draws of u, (num_draws,)."""

    def config(self) -> dict[str, Any]:
        """Constructor arguments as plain numbers, and the class as `kind`."""
        return {"kind": type(self).__name__, **{k: float(v) for k, v in asdict(self).items()}}


@dataclass(frozen=True)
class HalfNormal(ScalePrior):
    """τ = |z|, z ~ N(0, scale²)."""

    scale: float = 1.0

    def log_density(self, u: Array) -> Array:
        constant = 0.5 * np.log(2.0 / np.pi) - np.log(self.scale)
        return constant + u - 0.5 * self._square(u)

    def gradient(self, u: Array) -> Array:
        return 1.0 - self._square(u)

    def hessian(self, u: Array) -> Array:
        return -2.0 * self._square(u)

    def draw(self, rng: np.random.Generator, num_draws: int) -> Array:
        return np.log(self.scale * np.abs(rng.standard_normal(num_draws)))

    def _square(self, u: Array) -> Array:
        """(τ/scale)²."""
        return _exp(2.0 * (u - np.log(self.scale)))


@dataclass(frozen=True)
class HalfStudentT(ScalePrior):
    """τ = |t|·scale, t of `df` degrees of freedom; `df=1` is the half-Cauchy."""

    df: float = 4.0
    scale: float = 1.0

    def log_density(self, u: Array) -> Array:
        # Of |t|·scale: 2 / (scale √df B(df/2, ½)) · (1 + z²/df)^{−(df + 1)/2}
        width = np.log(self.scale) + 0.5 * np.log(self.df)
        constant = np.log(2.0) - width - betaln(0.5 * self.df, 0.5)
        return constant + u - 0.5 * (self.df + 1.0) * np.logaddexp(0.0, self._logit(u))

    def gradient(self, u: Array) -> Array:
        return 1.0 - (self.df + 1.0) * expit(self._logit(u))

    def hessian(self, u: Array) -> Array:
        logit = self._logit(u)
        return -2.0 * (self.df + 1.0) * expit(logit) * expit(-logit)

    def draw(self, rng: np.random.Generator, num_draws: int) -> Array:
        return np.log(self.scale * np.abs(rng.standard_t(self.df, num_draws)))

    def _logit(self, u: Array) -> Array:
        """log(z²/df), z = τ/scale."""
        return 2.0 * (u - np.log(self.scale)) - np.log(self.df)


@dataclass(frozen=True)
class Gamma(ScalePrior):
    """Density ∝ τ^{shape − 1} e^{−rate·τ}: mean shape/rate."""

    shape: float = 2.0
    rate: float = 1.0

    def log_density(self, u: Array) -> Array:
        constant = self.shape * np.log(self.rate) - gammaln(self.shape)
        return constant + self.shape * u - self.rate * _exp(u)

    def gradient(self, u: Array) -> Array:
        return self.shape - self.rate * _exp(u)

    def hessian(self, u: Array) -> Array:
        return -self.rate * _exp(u)

    def draw(self, rng: np.random.Generator, num_draws: int) -> Array:
        # Γ(a) = Γ(a + 1) U^{1/a}: in logarithms, so that a small shape does not give log 0.
        larger = np.log(rng.standard_gamma(self.shape + 1.0, num_draws))
        return larger - rng.standard_exponential(num_draws) / self.shape - np.log(self.rate)


@dataclass(frozen=True)
class Exponential(ScalePrior):
    """Density rate·e^{−rate·τ}: mean 1/rate."""

    rate: float = 1.0

    def log_density(self, u: Array) -> Array:
        return self._gamma.log_density(u)

    def gradient(self, u: Array) -> Array:
        return self._gamma.gradient(u)

    def hessian(self, u: Array) -> Array:
        return self._gamma.hessian(u)

    def draw(self, rng: np.random.Generator, num_draws: int) -> Array:
        return self._gamma.draw(rng, num_draws)

    @property
    def _gamma(self) -> Gamma:
        return Gamma(1.0, self.rate)


@dataclass(frozen=True)
class Reciprocal(ScalePrior):
    """1/τ has the prior `of`: for a dispersion whose reciprocal another library has."""

    of: ScalePrior

    def __post_init__(self) -> None:
        if not isinstance(self.of, ScalePrior):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"of must be a prior such as HalfNormal(1.0), got {self.of!r}")

    def log_density(self, u: Array) -> Array:
        return self.of.log_density(-u)

    def gradient(self, u: Array) -> Array:
        return -self.of.gradient(-u)

    def hessian(self, u: Array) -> Array:
        return self.of.hessian(-u)

    def draw(self, rng: np.random.Generator, num_draws: int) -> Array:
        return -self.of.draw(rng, num_draws)

    def config(self) -> dict[str, Any]:
        return {"kind": type(self).__name__, "of": self.of.config()}


SCALE_PRIORS: dict[str, type[ScalePrior]] = {
    kind.__name__: kind for kind in (HalfNormal, HalfStudentT, Gamma, Exponential, Reciprocal)
}


def scale_prior_from_config(config: Mapping[str, Any]) -> ScalePrior:
    """The prior that gave `config = prior.config()`."""
    arguments = dict(config)
    kind = arguments.pop("kind", None)
    if kind not in SCALE_PRIORS:
        raise ValueError(f"{kind!r} is no prior of a scale; those are {', '.join(SCALE_PRIORS)}")
    if kind == Reciprocal.__name__:
        return Reciprocal(scale_prior_from_config(arguments["of"]))
    return SCALE_PRIORS[kind](**arguments)


def _exp(u: Array) -> Array:
    """e^u, infinite where it is too large for a number."""
    with np.errstate(over="ignore"):
        return np.exp(u)
