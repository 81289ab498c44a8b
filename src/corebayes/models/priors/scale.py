"""Priors of single numbers, as a model has them: on the whole line.

The parameter of a positive number τ (a standard deviation, a dispersion) is u = log τ, that of a
share p is u = log p/(1 − p), and the density is multiplied by the Jacobian:

    log p(u) = log p_τ(e^u) + u,     log p(u) = log p_p(σ(u)) + log σ(u) σ(−u)

All functions work entry by entry on arrays of any shape and neither overflow nor give NaN at any
finite u: far out a density is −inf or finite, as the prior has it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaln, expit

from corebayes.models.numbers import check_positive
from corebayes.types import Array

# The curves h of a `ScaleForm`: e^x, log(1 + e^x) and x²/2.
EXPONENTIAL, SOFT, SQUARE = 0, 1, 2


class ScaleForm(NamedTuple):
    """log p(u) = constant + slope·u − bend·h(rate·u − shift): what all priors here have in common,
    as numbers that compiled code takes."""

    constant: float
    slope: float
    bend: float
    rate: float
    shift: float
    curve: int = EXPONENTIAL
    """Which h."""


@dataclass(frozen=True)
class ScalePrior(ABC):
    """The prior of one number, at u: the logarithm of a positive one."""

    def __post_init__(self) -> None:
        for entry in fields(self):
            check_positive(getattr(self, entry.name), entry.name)

    @property
    @abstractmethod
    def form(self) -> ScaleForm:
        """log p(u), normalised, with the Jacobian, as numbers."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, num_draws: int) -> Array:
        """Draws of u, (num_draws,)."""

    def log_density(self, u: Array) -> Array:
        """log p(u), normalised, with the Jacobian."""
        constant, slope, bend, rate, shift, curve = self.form
        x = rate * u - shift
        if curve == SQUARE:
            return constant + slope * u - bend * 0.5 * np.square(x)
        return constant + slope * u - bend * (np.logaddexp(0.0, x) if curve == SOFT else _exp(x))

    def gradient(self, u: Array) -> Array:
        """d log p / du."""
        _, slope, bend, rate, shift, curve = self.form
        x = rate * u - shift
        if curve == SQUARE:
            return slope - bend * rate * x
        return slope - bend * rate * (expit(x) if curve == SOFT else _exp(x))

    def hessian(self, u: Array) -> Array:
        """d² log p / du²; never positive."""
        _, _, bend, rate, shift, curve = self.form
        x = rate * u - shift
        if curve == SQUARE:
            return -bend * rate**2 * np.ones_like(x)
        return -bend * rate**2 * (expit(x) * expit(-x) if curve == SOFT else _exp(x))

    @property
    def mode(self) -> float:
        """The most likely u, where slope = bend·rate·h'(x)."""
        _, slope, bend, rate, shift, curve = self.form
        x = slope / (bend * rate)
        if curve == EXPONENTIAL:
            x = math.log(x)
        elif curve == SOFT:
            x = math.log(x) - math.log1p(-x)
        return (x + shift) / rate

    def config(self) -> dict[str, Any]:
        """Constructor arguments as plain numbers, and the class as `kind`."""
        return {"kind": type(self).__name__, **{k: float(v) for k, v in asdict(self).items()}}

    def __str__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{v:g}' for v in asdict(self).values())})"


@dataclass(frozen=True)
class HalfNormal(ScalePrior):
    """τ = |z|, z ~ N(0, scale²)."""

    scale: float = 1.0

    @property
    def form(self) -> ScaleForm:
        # u − ½ (τ/scale)²
        width = math.log(self.scale)
        return ScaleForm(0.5 * math.log(2.0 / math.pi) - width, 1.0, 0.5, 2.0, 2.0 * width)

    def draw(self, rng: np.random.Generator, num_draws: int) -> Array:
        return np.log(self.scale * np.abs(rng.standard_normal(num_draws)))


@dataclass(frozen=True)
class HalfStudentT(ScalePrior):
    """τ = |t|·scale, t of `df` degrees of freedom; `df=1` is the half-Cauchy."""

    df: float = 4.0
    scale: float = 1.0

    @property
    def form(self) -> ScaleForm:
        # Of |t|·scale: 2 / (scale √df B(df/2, ½)) · (1 + z²/df)^{−(df + 1)/2}, z = τ/scale
        width = math.log(self.scale) + 0.5 * math.log(self.df)
        constant = math.log(2.0) - width - float(betaln(0.5 * self.df, 0.5))
        return ScaleForm(constant, 1.0, 0.5 * (self.df + 1.0), 2.0, 2.0 * width, SOFT)

    def draw(self, rng: np.random.Generator, num_draws: int) -> Array:
        return np.log(self.scale * np.abs(rng.standard_t(self.df, num_draws)))


@dataclass(frozen=True)
class Gamma(ScalePrior):
    """Density ∝ τ^{shape − 1} e^{−rate·τ}: mean shape/rate."""

    shape: float = 2.0
    rate: float = 1.0

    @property
    def form(self) -> ScaleForm:
        log_rate = math.log(self.rate)
        constant = self.shape * log_rate - math.lgamma(self.shape)
        return ScaleForm(constant, self.shape, 1.0, 1.0, -log_rate)

    def draw(self, rng: np.random.Generator, num_draws: int) -> Array:
        # Γ(a) = Γ(a + 1) U^{1/a}: in logarithms, so that a small shape does not give log 0.
        larger = np.log(rng.standard_gamma(self.shape + 1.0, num_draws))
        return larger - rng.standard_exponential(num_draws) / self.shape - np.log(self.rate)


@dataclass(frozen=True)
class Exponential(ScalePrior):
    """Density rate·e^{−rate·τ}: mean 1/rate."""

    rate: float = 1.0

    @property
    def form(self) -> ScaleForm:
        return Gamma(1.0, self.rate).form

    def draw(self, rng: np.random.Generator, num_draws: int) -> Array:
        return Gamma(1.0, self.rate).draw(rng, num_draws)


@dataclass(frozen=True)
class Reciprocal(ScalePrior):
    """1/τ has the prior `of`: for a dispersion whose reciprocal another library has."""

    of: ScalePrior

    def __post_init__(self) -> None:
        if not isinstance(self.of, ScalePrior):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"of must be a prior such as HalfNormal(1.0), got {self.of!r}")

    @property
    def form(self) -> ScaleForm:
        # At −u
        form = self.of.form
        return form._replace(slope=-form.slope, rate=-form.rate)

    def draw(self, rng: np.random.Generator, num_draws: int) -> Array:
        return -self.of.draw(rng, num_draws)

    def config(self) -> dict[str, Any]:
        return {"kind": type(self).__name__, "of": self.of.config()}

    def __str__(self) -> str:
        return f"Reciprocal({self.of})"


@dataclass(frozen=True)
class Beta(ScalePrior):
    """Of a share p, density ∝ p^{a − 1} (1 − p)^{b − 1}, at u = log p/(1 − p)."""

    a: float = 1.0
    b: float = 1.0

    @property
    def form(self) -> ScaleForm:
        # a log σ(u) + b log σ(−u) = a u − (a + b) log(1 + e^u)
        constant = -float(betaln(self.a, self.b))
        return ScaleForm(constant, self.a, self.a + self.b, 1.0, 0.0, SOFT)

    def draw(self, rng: np.random.Generator, num_draws: int) -> Array:
        # In logarithms, since p may be as close to 0 or 1 as one likes.
        return Gamma(self.a, 1.0).draw(rng, num_draws) - Gamma(self.b, 1.0).draw(rng, num_draws)


@dataclass(frozen=True)
class OnLine(ScalePrior):
    """Of a number anywhere on the line: N(mean, sd²)."""

    mean: float = 0.0
    sd: float = 1.0

    def __post_init__(self) -> None:
        check_positive(self.sd, "sd")
        if not math.isfinite(self.mean):
            raise ValueError(f"mean must be a finite number, got {self.mean!r}")

    @property
    def form(self) -> ScaleForm:
        constant = -0.5 * math.log(2.0 * math.pi) - math.log(self.sd)
        return ScaleForm(constant, 0.0, 1.0, 1.0 / self.sd, self.mean / self.sd, SQUARE)

    def draw(self, rng: np.random.Generator, num_draws: int) -> Array:
        return self.mean + self.sd * rng.standard_normal(num_draws)

    def __str__(self) -> str:
        return f"Normal({self.mean:g}, {self.sd:g})"


SCALE_PRIORS: dict[str, type[ScalePrior]] = {
    kind.__name__: kind
    for kind in (HalfNormal, HalfStudentT, Gamma, Exponential, Reciprocal, Beta, OnLine)
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
