"""Spikes: ways along which weighted rows raise π_w for ever, so that it is no distribution.

A row of weight w counts as w equal rows, and a density of all rows that is bounded may not be when
one of them counts so often: a mixture with a scale for every component has, as σ → 0 at a row,

    π_w ∝ σ^{−w} over a width of σ in the location,      ∫ σ^{−w} σ dσ = ∞      for w ≥ 2,

where the same row with w = 1 adds next to nothing. Chains and particles hardly ever come there, and
all that they show looks fine. So each of the heaviest rows leads, with the others held back, to
where it says most. From there the parameter that went furthest is moved on and on towards its end,
the others following to where π_w is highest; the mass at each of these stations,

    L = log π_w(θ) + Σ_c log (how far θ_c can go before π_w falls by half a nat),

is what counts, since a density may rise and its mass fall, as at the scale zero of a hierarchy.
Stations end where numbers have too few digits for the others; from there L is a parabola, to where
a scale is no number any more. What is beyond, such as beside a row of weight 2.1, is not looked at.
All of it is by values: derivatives by differences end where spikes begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from corebayes.deadline import check_time
from corebayes.samplers.laplace import prior_fit
from corebayes.samplers.modes.search import Mode
from corebayes.samplers.newton import newton
from corebayes.samplers.parts import squared_distances
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Indices, Model

# Rows that lead, and what all others say together while one does, in parts of what it says.
MOST_ROWS, HELD_BACK = 8, 0.1
# Steps of Newton's method to where a row leads, and with one parameter held.
LEAD_STEPS, HELD_STEPS = 40, 12
# Parameters that may be the one that runs away, and stations on its way: from half of how far it
# went to so many deviations of the prior, the first of them before anybody gives up.
MOST_AXES, FURTHEST, FIRST_STATIONS = 2, 64.0, 4
# Distances that are tried along each axis: powers of four of a deviation of the prior.
DISTANCES = np.power(4.0, np.arange(2.0, -28.0, -1.0))
# How often, for so many potentials, and what must be gained.
MOST_ROUNDS, MOST_POTENTIALS, LEAST_RISE = 30, 3_000_000, 1e-4
# Deviations of the prior that a parameter has gone that may be running away.
LEAST_AWAY = 2.0
# Digits of a parameter that must be left of how far it can go.
DIGITS = 64.0 * float(np.finfo(np.float64).eps)
# A spike with a smaller share of the mass than the modes have is none.
NEGLIGIBLE = 1e-3
# The logarithm of a scale beyond which it is zero.
LAST = 700.0
# Last digits by which a place is moved, how often, and nats that this may change.
JITTER, NUM_JITTERS, MOST_NOISE = 4.0 * float(np.finfo(np.float64).eps), 8, 0.5
# Deviations around a mode that are its flank.
FLANK = 10.0


class Way(NamedTuple):
    """Stations of a parameter on its way to an end, as far as numbers reach."""

    distances: Array
    """Of the parameter, (K,)."""
    stations: Array
    """Where the others are highest then, (K, d)."""
    log_masses: Array
    volumes: Array
    """What `log_masses` have beside the log density."""

    @property
    def peak(self) -> float:
        """The largest log mass, on the way or beyond it, where the parabola through the last three
        stations leads before numbers end."""
        highest, last = float(self.log_masses.max()), float(self.distances[-1])
        if len(self.distances) < 3:
            return highest
        near, far = np.diff(self.log_masses[-3:]) / np.diff(self.distances[-3:])
        bend = min(0.0, 2.0 * (far - near) / (last - self.distances[-3]))
        slope = far + 0.5 * bend * (last - self.distances[-2])
        if slope <= 0.0:
            return highest
        left = max(LAST - last, last)
        if bend < 0.0:
            left = min(left, -slope / bend)
        return max(highest, float(self.log_masses[-1] + left * (slope + 0.5 * bend * left)))

    @property
    def rising(self) -> bool:
        """Whether the mass still rises where numbers are too coarse to follow it."""
        return bool(self.peak > self.log_masses.max())


class Spike(NamedTuple):
    """A way along which π_w has as much mass as around its modes, or more and more."""

    way: Way
    axis: int
    """The parameter that runs away."""
    rises: bool
    """Whether it goes up."""
    row: int
    """The one of the weighted rows that says most for it."""

    def words(self, model: Model, indices: Indices, weights: Array) -> str:
        """What is wrong with the posterior of the weighted rows."""
        name = model.parameter_names[self.axis]
        end = "∞" if self.rises else "−∞"
        what = "its mass rises as far as numbers reach" if self.way.rising else "it has a spike"
        return (
            f"{what} as {name} goes to {end} beside row {indices[self.row]}, of weight "
            f"{weights[self.row]:.3g}, and what lies around its modes is next to nothing of it"
        )


def find_spike(
    posterior: Posterior, modes: Sequence[Mode], usual: int, *, leading: int = MOST_ROWS
) -> Spike | None:
    """The heaviest spike that rows lead into from one of the modes of π_w, that all rows have too,
    if there is one that counts.

    Cost: some forty Newton steps on M rows for each of eight rows, and some hundred densities for
    each parameter at up to a dozen places on each way.
    """
    scales = _scales(posterior)
    start, mass = modes[usual].fit.mean, modes[usual].log_mass
    enough = mass + 0.5 * posterior.dim * np.log(2.0 * np.pi) + np.log(NEGLIGIBLE)
    found = list[Spike]()
    for place in _leads(posterior, start, leading):
        away = (place - start) / scales
        for axis in np.argsort(-np.abs(away))[:MOST_AXES].tolist():
            if not abs(away[axis]) > max(LEAST_AWAY, 0.5 * np.abs(away).max()):
                continue
            way = _way(posterior, start, place, axis, scales)
            if way is None or way.peak <= enough:
                continue
            if way.rising or not _at_a_mode(way, modes):
                row = _carrier(posterior, start, way.stations[-1])
                found.append(Spike(way, axis, bool(away[axis] > 0.0), row))
    return max(found, key=lambda one: one.way.peak, default=None)


def _leads(posterior: Posterior, start: Array, number: int) -> Array:
    """Where each of the heaviest rows leads while the others are held back, (K, d)."""
    weights, places = posterior.weights, list[Array]()
    for row in np.argsort(-weights, kind="stable")[:number].tolist():
        check_time()
        others = max(float(weights.sum() - weights[row]), 1e-300)
        held = weights * min(1.0, HELD_BACK * weights[row] / others)
        held[row] = weights[row]
        alone = Posterior(posterior.model, posterior.rows, held)
        places.append(
            climbed_in(alone, start, np.arange(posterior.dim, dtype=np.int64), LEAD_STEPS)
        )
    return np.array(places).reshape(-1, posterior.dim)


def _scales(posterior: Posterior) -> Array:
    covariance = np.square(prior_fit(posterior.model, posterior.rows).factor).sum(axis=1)
    return np.sqrt(covariance)


def _at_a_mode(way: Way, modes: Sequence[Mode]) -> bool:
    """What lies around a mode that was found is counted there."""
    top = way.stations[int(np.argmax(way.log_masses))][None]
    return any(float(squared_distances(mode.fit, top)[0]) < FLANK**2 for mode in modes)


def _carrier(posterior: Posterior, start: Array, end: Array) -> int:
    both = posterior.model.potentials(np.stack([start, end]), posterior.rows)
    return int(np.argmax(posterior.weights * (both[:, 1] - both[:, 0])))


def _way(posterior: Posterior, start: Array, place: Array, axis: int, scales: Array) -> Way | None:
    """From half of the way to the place and beyond, as far as there are digits for the others."""
    gone, scale = place[axis] - start[axis], float(scales[axis])
    free = np.delete(np.arange(posterior.dim, dtype=np.int64), axis)
    distances, stations = list[float](), list[Array]()
    masses, widths = list[float](), list[Array]()
    distance = 0.5 * abs(gone)
    while distance < FURTHEST * scale and not _lost_digits(distance, distances, stations, widths):
        check_time()
        starts = np.array([place, *stations[-1:]])
        starts[:, axis] = start[axis] + np.sign(gone) * distance
        at, height = _highest(posterior, starts, free, scales)
        width = _widths(posterior, at, height, scales)[free]
        if not np.all(width > DIGITS * np.abs(at[free])) or _is_noise(posterior, at):
            break
        distances.append(distance)
        stations.append(at)
        widths.append(np.log(2.0 * width))
        masses.append(height + float(widths[-1].sum()))
        if len(masses) >= FIRST_STATIONS and masses[-1] < masses[-2] < masses[-3]:
            break
        distance *= np.sqrt(2.0)
    if not stations:
        return None
    volumes = np.array(widths).sum(axis=1)
    return Way(np.array(distances), np.array(stations), np.array(masses), volumes)


def _is_noise(posterior: Posterior, at: Array) -> bool:
    """Whether the last digits of the place decide how high it is."""
    digits = np.random.default_rng(0).uniform(-JITTER, JITTER, size=(NUM_JITTERS, at.size))
    with np.errstate(all="ignore"):
        heights = posterior.finite_log_density(at * (1.0 + digits))
    return not np.ptp(heights) < MOST_NOISE


def _lost_digits(
    distance: float, distances: list[float], stations: list[Array], widths: list[Array]
) -> bool:
    """Whether there will be none left at a distance if widths shrink as they did."""
    if len(distances) < 2:
        return False
    further = (distance - distances[-1]) / (distances[-1] - distances[-2])
    expected = widths[-1] + further * np.minimum(widths[-1] - widths[-2], 0.0)
    return bool(np.any(expected < np.log(DIGITS * np.maximum(np.abs(stations[-1]).max(), 1e-300))))


def climbed_in(posterior: Posterior, start: Array, free: Indices, max_steps: int) -> Array:
    """Where Newton's method leads with some parameters free, also where it ends at no mode."""
    at = start.copy()
    if free.size == 0:
        return at

    def full(theta: Array) -> Array:
        moved = start.copy()
        moved[free] = theta
        return moved

    def slopes(theta: Array) -> tuple[Array, Array]:
        gradient, hessian = posterior.gradient_and_hessian(full(theta))
        at[free] = theta
        return gradient[free], hessian[np.ix_(free, free)]

    with np.errstate(all="ignore"):
        with suppress(FloatingPointError, np.linalg.LinAlgError):
            newton(
                start[free],
                slopes,
                lambda theta: posterior.value(full(theta)),
                tolerance=1e-6,
                max_steps=max_steps,
            )
        if np.isfinite(posterior.value(at)):
            return at
    return start


def _highest(
    posterior: Posterior, starts: Array, free: Indices, scales: Array
) -> tuple[Array, float]:
    """From the best of some starts after Newton's method to the best of places along the axes,
    again and again; steps are of all sizes, as a row may be met only to the last digit."""
    climbed: Array = np.array([climbed_in(posterior, start, free, HELD_STEPS) for start in starts])
    moves = _moves(scales)[:, free].reshape(-1, scales.size)
    with np.errstate(all="ignore"):
        heights = posterior.finite_log_density(climbed)
        at, height = climbed[int(np.argmax(heights))], float(heights.max())
        cost = max(1, len(moves) * posterior.weights.size)
        rounds = int(np.clip(MOST_POTENTIALS // cost, 3, MOST_ROUNDS)) if len(moves) else 0
        for _ in range(rounds):
            heights = posterior.finite_log_density(at + moves)
            best = int(np.argmax(heights))
            if not heights[best] > height + LEAST_RISE:
                break
            at, height = at + moves[best], float(heights[best])
    return at, height


def _widths(posterior: Posterior, at: Array, height: float, scales: Array) -> Array:
    """How far each parameter can go alone before the density has fallen by half a nat; zero where
    nothing is that near."""
    dim, number = at.size, DISTANCES.size
    with np.errstate(all="ignore"):
        heights = posterior.finite_log_density(at + _moves(scales).reshape(-1, dim))
        falls = np.maximum(height - heights, 0.0).reshape(2, dim, number).max(axis=0)
    # The largest distance up to which all fall by less, and as much further as a parabola goes.
    inside = np.logical_and.accumulate((falls < 0.5)[:, ::-1], axis=1).sum(axis=1)
    last = np.maximum(number - inside, 0).clip(max=number - 1)
    further = np.sqrt(0.5 / np.maximum(falls[np.arange(dim), last], 0.5 / 16.0))
    return np.where(inside > 0, scales * DISTANCES[last] * further, 0.0)


def _moves(scales: Array) -> Array:
    """Steps up and down every axis, (2, d, K, d)."""
    up = np.einsum("ac,k,a->akc", np.eye(scales.size), DISTANCES, scales)
    return np.stack([up, -up])
