"""The prior of every coefficient by name, and where it is from: what a model is bound with.

The coefficients' own priors stand side by side; the default prior of the intercept is not of the
intercept itself but of the predictor at the means x̄ of all other columns (as rstanarm, brms and
Bambi have it), so that it does not depend on where a column's zero is:

    c·β₀ + x̄ᵀβ ~ N(m, s²),    c the constant in the intercept's column, mostly one.

All Normal priors together are one Gaussian, with a precision that may be singular where others
(Student-t, flat, …) stand beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from corebayes.models.covariance import Covariance
from corebayes.models.priors.coefficient import CoefficientPrior, coefficient_prior_from_config
from corebayes.models.priors.horseshoe import (
    Horseshoe,
    Shrunk,
    horseshoe_from_config,
    is_horseshoe,
)
from corebayes.models.priors.normal import GaussianPrior, Normal
from corebayes.types import Array

DEFAULT, GIVEN = "default", "given"
LOG_2PI = float(np.log(2.0 * np.pi))


class Stated(NamedTuple):
    """The prior of one coefficient."""

    name: str
    prior: Normal | CoefficientPrior | Shrunk
    """A Normal of one number, another prior of one number, or a share of a horseshoe."""
    source: str
    """default or given."""
    column_mean: float = 0.0
    """x̄ of its column; for the intercept the constant c."""


class Placed(NamedTuple):
    """A prior that is not Normal, and the coefficient that it is of."""

    place: int
    prior: CoefficientPrior


@dataclass(frozen=True, eq=False)
class PartialGaussian:
    """−½ (θ − m)ᵀQ(θ − m) + constant, Q singular where a coefficient has another prior."""

    mean: Array
    precision: Array
    constant: float

    @property
    def dim(self) -> int:
        return self.mean.size

    def log_density(self, draws: Array) -> Array:
        off = draws - self.mean
        return self.constant - 0.5 * np.einsum("si,ij,sj->s", off, self.precision, off)

    def gradient(self, theta: Array) -> Array:
        return self.precision @ (self.mean - theta)

    def hessian(self, theta: Array) -> Array:
        return -self.precision


@dataclass(frozen=True, eq=False)
class StatedPriors:
    """The priors of all coefficients, in their order."""

    entries: tuple[Stated, ...]
    centred: tuple[int, ...] = ()
    """The coefficients whose prior is of the predictor at the columns' means; see above."""
    num_predictors: int = 1
    """Each has as many coefficients as the others, those of the first come first."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(entry.name for entry in self.entries)

    @property
    def shares(self) -> Iterator[tuple[int, Horseshoe, float]]:
        """The coefficients under a horseshoe, with their units."""
        for place, entry in enumerate(self.entries):
            if isinstance(entry.prior, Shrunk):
                yield place, entry.prior.of, entry.prior.unit

    @property
    def horseshoes(self) -> tuple[Horseshoe, ...]:
        """Those that differ, in the order of their first coefficients."""
        return tuple(dict.fromkeys(horseshoe for _, horseshoe, _ in self.shares))

    @cached_property
    def others(self) -> tuple[Placed, ...]:
        """Those that are not Normal and of one coefficient alone."""
        return tuple(
            Placed(place, entry.prior)
            for place, entry in enumerate(self.entries)
            if isinstance(entry.prior, CoefficientPrior)
        )

    @property
    def normal(self) -> GaussianPrior | PartialGaussian:
        """All Normal priors together; a proper Gaussian when there are no others. Cost: d³."""
        dim = len(self.entries)
        # Terms −½ (W θ − m)² of the coefficients that have a Normal prior.
        whitening, middles = np.zeros((dim, dim)), np.zeros(dim)
        places, deviations = list[int](), np.ones(dim)
        for place, entry in enumerate(self.entries):
            if not isinstance(entry.prior, Normal):
                continue
            places.append(place)
            mean, sd = entry.prior.numbers
            deviations[place] = sd
            whitening[place, place], middles[place] = 1.0 / sd, mean / sd
            if place in self.centred:
                whitening[place] = self._columns(place) / sd
        if len(places) == dim:
            return self._proper(whitening, middles * deviations, deviations)
        rows, wanted = whitening[places], middles[places]
        # The mean of what is not Normal is anything: the precision is zero there.
        mean = np.asarray(np.linalg.lstsq(rows, wanted)[0], dtype=np.float64)
        constant = -0.5 * len(places) * LOG_2PI - float(np.log(deviations).sum())
        # β₀ itself has the density of c·β₀ times |c|.
        constants = [self.entries[place].column_mean for place in self.centred if place in places]
        constant += float(np.log(np.abs(constants)).sum())
        return PartialGaussian(mean, rows.T @ rows, constant)

    def _proper(self, whitening: Array, means: Array, deviations: Array) -> GaussianPrior:
        """Mean and covariance in closed form, since a Cholesky factor of a covariance of columns
        that are far from zero would not exist in floating point."""
        mean, factor = means.copy(), np.diag(deviations)
        for at in self.centred:
            columns = self._columns(at)
            constant, columns[at] = columns[at], 0.0
            # β₀ = (m + s z − x̄ᵀβ) / c
            mean[at] = (means[at] - columns @ mean) / constant
            factor[at] = -columns * deviations / constant
            factor[at, at] = deviations[at] / constant
        precision = whitening.T @ whitening
        log_determinant = 2.0 * float(np.log(np.abs(np.diagonal(factor))).sum())
        parts = Covariance(factor @ factor.T, factor, precision, whitening, log_determinant)
        return GaussianPrior(mean, parts)

    def _columns(self, place: int) -> Array:
        """The means of the columns of the predictor that the coefficient at `place` is of."""
        width = len(self.entries) // self.num_predictors
        own = np.arange(len(self.entries)) // width == place // width
        return np.where(own, [entry.column_mean for entry in self.entries], 0.0)

    def of(self, names: Sequence[str]) -> StatedPriors:
        """The priors of some of the coefficients, in this order."""
        entries = {entry.name: entry for entry in self.entries}
        centred = {self.entries[place].name for place in self.centred}
        places = tuple(place for place, name in enumerate(names) if name in centred)
        return StatedPriors(tuple(entries[name] for name in names), places, self.num_predictors)

    def rows(self) -> list[tuple[str, str, str]]:
        """Parameter, prior, source: a table for people."""
        rows = list[tuple[str, str, str]]()
        for place, entry in enumerate(self.entries):
            centred = " at the means of all columns" if place in self.centred else ""
            rows.append((entry.name, f"{entry.prior}{centred}", entry.source))
        return rows

    def config(self) -> dict[str, Any]:
        """As JSON has it."""
        entries = [
            [entry.name, prior_config(entry.prior), entry.source, float(entry.column_mean)]
            for entry in self.entries
        ]
        return {
            "entries": entries,
            "centred": list(self.centred),
            "num_predictors": self.num_predictors,
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> StatedPriors:
        entries = tuple(
            Stated(str(name), _one_from_config(prior), str(source), float(mean))
            for name, prior, source, mean in config["entries"]
        )
        centred, many = tuple(map(int, config["centred"])), int(config["num_predictors"])
        if many < 1 or len(entries) % many:
            raise ValueError("its predictors do not have as many coefficients as each other")
        for place in centred:
            if not 0 <= place < len(entries) or not entries[place].column_mean:
                raise ValueError("its intercept is none of its coefficients")
        return cls(entries, centred, many)


def normal_rows(
    names: Sequence[str], prior: GaussianPrior | PartialGaussian
) -> list[tuple[str, str, str]]:
    """The table of one Normal for all; a mean and a standard deviation for each."""
    deviations = 1.0 / np.sqrt(np.diagonal(prior.precision))
    if isinstance(prior, GaussianPrior):
        deviations = np.sqrt(np.diagonal(prior.covariance))
    return [
        (name, f"Normal({mean:g}, {deviation:g})", GIVEN)
        for name, mean, deviation in zip(names, prior.mean, deviations, strict=True)
    ]


def prior_config(prior: Normal | CoefficientPrior | Horseshoe | Shrunk) -> dict[str, Any]:
    """The prior of one coefficient as JSON has it."""
    if isinstance(prior, Normal):
        return {"kind": Normal.__name__, **prior.config()}
    return prior.config()


def prior_from_config(
    config: Mapping[str, Any],
) -> Normal | CoefficientPrior | Horseshoe | Shrunk:
    """The prior that gave `prior_config(prior)`."""
    if config.get("kind") == Normal.__name__:
        return Normal(config["mean"], config["sd_or_cov"])
    if is_horseshoe(config):
        return horseshoe_from_config(config)
    return coefficient_prior_from_config(config)


def _one_from_config(config: Mapping[str, Any]) -> Normal | CoefficientPrior | Shrunk:
    prior = prior_from_config(config)
    if isinstance(prior, Horseshoe):
        raise ValueError("a coefficient under a horseshoe has no unit")
    return prior
