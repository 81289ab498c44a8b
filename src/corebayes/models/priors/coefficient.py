"""Priors of single coefficients that are not Normal: Student-t, double exponential, flat.

Each is one-dimensional. A Gaussian fit of a posterior asks for their averages under N(m, s²) and
for the derivatives of these in m, which exist where the density itself has a corner:

    E log p(b),    d/dm E log p(b) = E (log p)',    d²/dm² E log p(b) = E (log p)''.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaln, erf

from corebayes.models.numbers import check_finite, check_positive
from corebayes.models.quadrature import gauss_hermite
from corebayes.types import Array

# Nodes of the averages.
NUM_NODES = 24


class Averages(NamedTuple):
    """E log p under N(m, s²), and its two derivatives in m."""

    value: float
    first: float
    second: float


@dataclass(frozen=True)
class CoefficientPrior(ABC):
    """The prior of one real number."""

    @abstractmethod
    def log_density(self, values: Array) -> Array:
        """log p, normalised where it is proper, entry by entry."""

    @abstractmethod
    def gradient(self, values: Array) -> Array: ...

    @abstractmethod
    def hessian(self, values: Array) -> Array: ...

    @abstractmethod
    def draw(self, rng: np.random.Generator, num_draws: int) -> Array: ...

    def averages(self, mean: float, sd: float) -> Averages:
        """Under N(mean, sd²), by Gauss–Hermite quadrature unless there is a closed form."""
        if sd == 0.0:
            at = np.array(mean)
            values = self.log_density(at), self.gradient(at), self.hessian(at)
            return Averages(*(float(value) for value in values))
        nodes, weights = gauss_hermite(NUM_NODES)
        at = mean + sd * nodes
        values = self.log_density(at), self.gradient(at), self.hessian(at)
        return Averages(*(float(weights @ value) for value in values))

    def config(self) -> dict[str, Any]:
        """Constructor arguments as plain numbers, and the class as `kind`."""
        return {"kind": type(self).__name__, **{k: float(v) for k, v in asdict(self).items()}}

    def __str__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{v:g}' for v in asdict(self).values())})"


@dataclass(frozen=True)
class StudentT(CoefficientPrior):
    """b = mean + scale·t, t of `df` degrees of freedom: a Normal with wide tails."""

    df: float = 3.0
    mean: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_positive(self.df, "df")
        check_finite(self.mean, "mean")
        check_positive(self.scale, "scale")

    @property
    def _height(self) -> float:
        """log p at the mean."""
        width = math.log(self.scale) + 0.5 * math.log(self.df)
        return -width - float(betaln(0.5 * self.df, 0.5))

    def log_density(self, values: Array) -> Array:
        z = (values - self.mean) / self.scale
        return self._height - 0.5 * (self.df + 1.0) * np.log1p(np.square(z) / self.df)

    def gradient(self, values: Array) -> Array:
        z = (values - self.mean) / self.scale
        return -(self.df + 1.0) * z / (self.scale * (self.df + np.square(z)))

    def hessian(self, values: Array) -> Array:
        squares = np.square((values - self.mean) / self.scale)
        bend = (squares - self.df) / np.square(self.df + squares)
        return (self.df + 1.0) / self.scale**2 * bend

    def draw(self, rng: np.random.Generator, num_draws: int) -> Array:
        return self.mean + self.scale * rng.standard_t(self.df, num_draws)


@dataclass(frozen=True)
class DoubleExponential(CoefficientPrior):
    """Density e^{−|b − mean|/scale} / (2 scale): the Laplace distribution, whose mode is the lasso.

    `Laplace(mean, scale)` is the same; Laplace() without them is a sampler. Its corner is smoothed
    by nothing but the posterior: averages under a Gaussian have closed forms.
    """

    mean: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_finite(self.mean, "mean")
        check_positive(self.scale, "scale")

    @property
    def _height(self) -> float:
        return -math.log(2.0 * self.scale)

    def log_density(self, values: Array) -> Array:
        return self._height - np.abs(values - self.mean) / self.scale

    def gradient(self, values: Array) -> Array:
        return -np.sign(values - self.mean) / self.scale

    def hessian(self, values: Array) -> Array:
        return np.zeros_like(values)

    def averages(self, mean: float, sd: float) -> Averages:
        if sd == 0.0:
            return super().averages(mean, sd)
        off = mean - self.mean
        z = off / sd
        # E|x| = m (2Φ(z) − 1) + 2 s φ(z);  its derivatives are 2Φ(z) − 1 and 2φ(z)/s
        sign = float(erf(z / math.sqrt(2.0)))
        bump = math.sqrt(2.0 / math.pi) * math.exp(-0.5 * z * z)
        value = self._height - (off * sign + sd * bump) / self.scale
        return Averages(value, -sign / self.scale, -bump / (sd * self.scale))

    def draw(self, rng: np.random.Generator, num_draws: int) -> Array:
        return rng.laplace(self.mean, self.scale, num_draws)


@dataclass(frozen=True)
class Flat(CoefficientPrior):
    """The same density everywhere: improper, so the rows must know the coefficient."""

    def log_density(self, values: Array) -> Array:
        return np.zeros_like(values)

    def gradient(self, values: Array) -> Array:
        return np.zeros_like(values)

    def hessian(self, values: Array) -> Array:
        return np.zeros_like(values)

    def draw(self, rng: np.random.Generator, num_draws: int) -> Array:
        raise ValueError("a flat prior has no draws")


COEFFICIENT_PRIORS: dict[str, type[CoefficientPrior]] = {
    kind.__name__: kind for kind in (StudentT, DoubleExponential, Flat)
}


def coefficient_prior_from_config(config: Mapping[str, Any]) -> CoefficientPrior:
    """The prior that gave `config = prior.config()`."""
    arguments = dict(config)
    kind = arguments.pop("kind", None)
    if kind not in COEFFICIENT_PRIORS:
        known = ", ".join(COEFFICIENT_PRIORS)
        raise ValueError(f"{kind!r} is no prior of a coefficient; those are {known}")
    return COEFFICIENT_PRIORS[kind](**arguments)
