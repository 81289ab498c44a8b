"""Models whose log density is concave in all but a few parameters, given these few.

Where rows see parameters through linear predictors (`models/custom/touching.py`) and log-likelihood
and prior are concave in some of these while the parameters ψ of the others stand still, π has one
top at every ψ. So all its modes lie on the ridge

    ψ ↦ argmax_β log π(β, ψ),

which has no more dimensions than ψ: the dispersion of a negative binomial, the noise of a Gaussian,
nothing at all for a logistic regression. Newton's method finds each top from anywhere, and starts
along the ridge lead to every mode, where particles would have to be annealed through all of θ.

That it is so is looked at, not told: in all rows and in the prior, at places between the prior and
the mass, curvatures must be nowhere positive and slopes fall from each place to the next. Nothing
is said of what rows do between these places; but what hides there hides from particles too, and the
other looks of a search (`high_places.py`, `holes.py`, `telling.py`) are taken all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from corebayes.arrow.expectation import num_places
from corebayes.deadline import check_time
from corebayes.models.custom.touching import LocalModel, is_touching
from corebayes.rows import Rows
from corebayes.samplers.laplace import prior_fit
from corebayes.samplers.modes.spikes import climbed_in
from corebayes.samplers.parts import Part
from corebayes.samplers.posterior import Posterior
from corebayes.scan.passes import rows_of_width
from corebayes.types import Array, Block, Gaussian, Indices, Model

# Parameters that may be left: starts along a ridge of more dimensions would leave gaps.
MOST_GIVEN = 3
# Starts along a ridge for each of its dimensions, and of the t that they are quantiles of.
STARTS_EACH, DEGREES, WIDENING = 20, 5.0, 1.5
# Values of ψ at which some rows are looked at, and all rows for so many jets.
LEVELS, MOST_JETS = 8, 300_000
# Rows that are looked at first, at all of them.
FIRST_ROWS = 500
# Curvatures and slopes that are round-off, of those beside them; and what they come to, in nats
# over all rows and places, that is nothing.
ROUND_OFF, NOTHING = 1e-9, 1e-3
# The share of rows and places at which there must be numbers.
LEAST_SEEN = 0.5
# Steps of Newton's method to a top.
MOST_STEPS = 60


def concave_given(rng: Generator, model: Model, rows: Rows, fit: Gaussian) -> Indices | None:
    """The parameters ψ given which π is concave in all others; None where none or too many are
    known. `fit` is of where the mass lies. Cost: one pass of 3e5 jets, or of a dozen a row."""
    if not (is_touching(model) and model.has_jets):
        return None
    known = model.row_structure
    if known is None or known.structure.terms:
        return None
    number = num_places(model.num_predictors)
    # The first are the furthest, the last around the mass.
    every = -(-LEVELS * number * rows.num_rows // MOST_JETS)
    touched = known.structure.shared[known.columns]
    free = np.arange(model.dim)
    for count in range(model.num_predictors, 0, -1):
        free = touched[known.predictor_of < count]
        given = np.setdiff1d(np.arange(model.dim), free)
        if given.size > MOST_GIVEN:
            break
        places = _places(rng, prior_fit(model, rows.template), fit, given, (LEVELS, number))
        if not _prior_bends_down(model, places, free):
            continue
        some = rows.some(rng, min(FIRST_ROWS, rows.num_rows))
        bent = Bent(model, places, count, rows.total_count)
        if not bent.answer(rows.take(some), some).is_down:
            continue
        if rows.ask(replace(bent, places=places[:: min(every, LEVELS)])).is_down:
            return given
    return None


def ridge_starts(rng: Generator, posterior: Posterior, given: Indices) -> Array:
    """Of the tops of the log density at values of ψ wide apart those that are higher than what is
    beside them, the highest first, (S, d). Cost: some five Newton steps for each of at most 60."""
    prior = prior_fit(posterior.model, posterior.rows)
    at = prior.mean
    free = np.setdiff1d(np.arange(at.size), given)
    tops: list[Array] = []
    for psi in _values(rng, prior, given):
        check_time()
        start = at.copy()
        start[given] = psi
        # The next is near: values come in order.
        at = climbed_in(posterior, start, free, MOST_STEPS)
        tops.append(at)
    found = np.array(tops)
    with np.errstate(all="ignore"):
        heights = posterior.finite_log_density(found)
    highest = np.flatnonzero(_nowhere_higher(found[:, given] / _scales(prior, given), heights))
    return found[highest[np.argsort(-heights[highest], kind="stable")]]


def _nowhere_higher(psi: Array, heights: Array) -> NDArray[np.bool_]:
    """Whether none of the nearest, two for each dimension, is higher: a climb from any other would
    only lead past those."""
    number = 2 * psi.shape[1] + 1
    distances = np.sum(np.square(psi[:, None] - psi), axis=2)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :number]
    return heights >= heights[nearest].max(axis=1)


def _scales(prior: Gaussian, given: Indices) -> Array:
    return np.linalg.norm(prior.factor[given], axis=1)


def _values(rng: Generator, prior: Gaussian, given: Indices) -> Array:
    """Values of ψ, (S, q), in order of the first."""
    wide = Part(prior._replace(factor=WIDENING * prior.factor), DEGREES)
    number = max(1, STARTS_EACH * given.size)
    draws = np.sort(wide.draw(rng, 50 * number)[:, given], axis=0)
    # Of one parameter evenly over quantiles, so that chance leaves no gap; of several each is.
    middles = draws[25::50]
    for column in range(1, given.size):
        middles[:, column] = rng.permutation(middles[:, column])
    return middles if given.size else np.empty((1, 0))


def _places(
    rng: Generator, prior: Gaussian, fit: Gaussian, given: Indices, shape: tuple[int, int]
) -> Array:
    """(levels, places, d): some β for each of some ψ, from as wide apart as the prior to the mass
    and not quite as far as from there."""
    levels, number = shape
    wide = Part(prior._replace(factor=WIDENING * prior.factor), DEGREES)
    away = wide.draw(rng, levels * number).reshape(levels, number, -1)
    # The share of the way that is left, log-uniform but for the first ones.
    left = np.power(10.0, -rng.uniform(0.0, 3.0, size=(levels, number, 1)))
    left[:, : number // 2] = 1.0
    places = fit.mean + left * (away - fit.mean)
    psi = fit.mean + np.power(np.linspace(1.0, 0.0, levels), 2)[:, None] * (away[:, 0] - fit.mean)
    places[:, :, given] = psi[:, None, given]
    return places


def _prior_bends_down(model: Model, places: Array, free: Indices) -> bool:
    """Whether the log prior is concave in the free parameters, as far as places show."""
    flat = places.reshape(-1, model.dim)
    gradients = np.array([model.log_prior_gradient(theta)[free] for theta in flat])
    hessians = np.array([model.log_prior_hessian(theta)[np.ix_(free, free)] for theta in flat])
    finite = np.isfinite(gradients).all(axis=1) & np.isfinite(hessians).all(axis=(1, 2))
    if finite.mean() < LEAST_SEEN:
        return False
    largest = np.abs(hessians[finite]).max(axis=(1, 2), initial=0.0)
    if np.any(_highest(hessians[finite]) > ROUND_OFF * largest):
        return False
    shape = (*places.shape[:2], free.size)
    rises, scale = _rises(gradients.reshape(shape), places[:, :, free])
    return not np.any(rises > ROUND_OFF * scale)


def _highest(hessians: Array) -> Array:
    """The largest eigenvalue of each matrix (…, m, m)."""
    if hessians.shape[-1] == 1:
        return hessians[..., 0, 0]
    return np.asarray(np.linalg.eigvalsh(hessians)[..., -1], dtype=np.float64)


def _rises(slopes: Array, at: Array) -> tuple[Array, Array]:
    """Δslope · Δplace from each of the places (…, R, m) to the next, where a concave function has
    none above zero, and what they may be off by, relatively."""
    steps, changes = (np.diff(one, axis=-2, append=one[..., :1, :]) for one in (at, slopes))
    sizes = np.abs(slopes) + np.abs(np.roll(slopes, -1, axis=-2))
    return np.sum(steps * changes, axis=-1), np.sum(np.abs(steps) * sizes, axis=-1)


class HowBent(NamedTuple):
    """By how much the worst curvature is above what is nothing, and how many were finite."""

    worst: float
    seen: float
    asked: float

    @property
    def is_down(self) -> bool:
        return self.worst <= 0.0 and self.seen >= LEAST_SEEN * self.asked


@dataclass(frozen=True)
class Bent:
    """Whether rows bend down in their first `count` predictors, at places (levels, R, d)."""

    model: LocalModel
    places: Array
    count: int
    total: float
    """Rows in all, as often as they count."""

    @property
    def block_rows(self) -> int:
        return rows_of_width(8 * int(self.places.shape[1]) * (1 + self.model.num_predictors) ** 2)

    def answer(self, block: Block, numbers: Indices) -> HowBent:
        designs, structure = self.model.touch(block).designs, self.model.structure
        assert structure is not None
        some, found = self.count, HowBent(-np.inf, 0.0, 0.0)
        for level in self.places:
            at = designs @ level[:, structure.shared].T
            with np.errstate(all="ignore"):
                jets = self.model.jets(at, block)
                curves = jets.second[:, :some, :some].transpose(0, 3, 1, 2)
                slopes, where = (one[:, :some].transpose(0, 2, 1) for one in (jets.first, at))
                found = self.merge(found, self._judged(curves, slopes, where))
        return found

    def _judged(self, curves: Array, slopes: Array, where: Array) -> HowBent:
        bad = np.any(~np.isfinite(slopes), axis=2), np.any(~np.isfinite(curves), axis=(2, 3))
        finite: NDArray[np.bool_] = ~np.logical_or(*bad)
        curves = np.where(finite[:, :, None, None], curves, 0.0)
        spread = np.sum(np.var(where, axis=1), axis=1, keepdims=True)
        nothing = NOTHING / (self.total * np.maximum(spread, 1e-300))
        largest = np.abs(curves).max(axis=(2, 3))
        above = _highest(curves) - ROUND_OFF * largest - nothing
        rises, scale = _rises(slopes, where)
        both = finite & np.roll(finite, -1, axis=1)
        rises = np.where(both, rises - ROUND_OFF * scale - NOTHING / self.total, -np.inf)
        worst = max(float(np.max(one, initial=-np.inf)) for one in (above, rises))
        return HowBent(worst, float(finite.sum()), float(finite.size))

    def merge(self, first: HowBent, second: HowBent) -> HowBent:
        worst = max(first.worst, second.worst)
        return HowBent(worst, first.seen + second.seen, first.asked + second.asked)
