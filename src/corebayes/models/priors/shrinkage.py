"""The density of coefficients under a horseshoe, with the local scales integrated out.

    p(x | τ, c) = ∫ N(x; 0, v(λ)) p(λ) dλ,    q = 1/v = A + C,   A = 1/(τλ)²,   C = 1/c²

by the trapezoidal rule in log λ, whose error falls exponentially: a mixture of 42 normals, the same
for all coefficients. The density has a pole at x = 0, of hardly any mass, that no step of a sampler
could follow; so local scales below a tenth count as a tenth, where a coefficient is as good as
zero. With r_i the posterior weights of the nodes and L_i = ½ log q_i − ½ x² q_i in t = log τ and
k = log c²,

    ∇ log p = E_r ∇L,     ∇² log p = E_r ∇²L + Cov_r(∇L).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from corebayes.models.priors.horseshoe import Horseshoe
from corebayes.models.priors.scale import HalfStudentT
from corebayes.types import Array, Indices

# Nodes of log λ: half-Cauchy mass of 0.06 is below, of 5e-7 above.
LOWEST, HIGHEST, STEP = -2.4, 14.0, 0.4
AT_ONCE = 1 << 20
LEAST_BEND = 1e-3


class HorseshoeJet(NamedTuple):
    """log p(x | τ, c) of single coefficients, and its derivatives in (x, t, k)."""

    value: Array
    """(…, D)."""
    first: Array
    """(…, D, 3)."""
    second: Array
    """(…, D, 3, 3)."""


@dataclass(frozen=True, eq=False)
class HorseshoePrior:
    """The coefficients that share a τ and a c, and where all of these are in θ."""

    horseshoe: Horseshoe
    places: Indices
    units: Array
    tau: int
    """Of log τ."""
    slab: int
    """Of log c²."""

    @cached_property
    def nodes(self) -> Array:
        """log λ."""
        return np.arange(LOWEST, HIGHEST + 0.5 * STEP, STEP)

    @cached_property
    def log_weights(self) -> Array:
        """Of the nodes, with the constant of the normal density."""
        local = HalfStudentT(self.horseshoe.local_df, 1.0)
        masses = np.exp(local.log_density(self.nodes))
        # What is below the first node counts as it.
        below = np.array([LOWEST - STEP * number for number in range(1, 80)])
        masses[0] += np.exp(local.log_density(below)).sum()
        return np.log(masses / masses.sum()) - 0.5 * np.log(2.0 * np.pi)

    @cached_property
    def log_units(self) -> float:
        return float(np.log(self.units).sum())

    def log_density(self, draws: Array) -> Array:
        """Of coefficients, τ and c at draws (S, d), (S,). Cost: 61·S·D exponentials."""
        t, k = draws[:, self.tau], draws[:, self.slab]
        result = self.horseshoe.tau.log_density(t) + self.horseshoe.slab.log_density(k)
        result -= self.log_units
        step = max(1, AT_ONCE // (self.places.size * self.nodes.size))
        for start in range(0, len(draws), step):
            part = slice(start, start + step)
            x = draws[part, self.places] / self.units
            with np.errstate(over="ignore", invalid="ignore"):
                _, _, logs = self._logs(x, t[part, None], k[part, None])
            result[part] += _log_sum(logs).sum(axis=1)
        return result

    def add_gradient(self, theta: Array, gradient: Array) -> None:
        """Cost: 61·D exponentials."""
        x, t, k = self._at(theta)
        q, A, logs = self._logs(x, t, k)
        r = np.exp(logs - _log_sum(logs)[..., None])
        C = np.exp(-k)
        # E_r of q, A, A/q and 1/q
        precision, local, share, variance = (r @ np.stack([q, A, A / q, 1.0 / q], axis=1)).T
        gradient[self.places] -= x * precision / self.units
        squares = x**2
        slopes = self._slopes(t, k)
        gradient[self.tau] += float((squares * local - share).sum()) + slopes[0]
        gradient[self.slab] += 0.5 * C * float((squares - variance).sum()) + slopes[1]

    def add_hessian(self, theta: Array, hessian: Array) -> None:
        x, t, k = self._at(theta)
        second = self.jet(x, t, k).second
        hessian[self.places, self.places] += second[:, 0, 0] / self.units**2
        scales = np.array([self.tau, self.slab])
        cross = second[:, 0, 1:] / self.units[:, None]
        hessian[np.ix_(self.places, scales)] += cross
        hessian[np.ix_(scales, self.places)] += cross.T
        hessian[np.ix_(scales, scales)] += second[:, 1:, 1:].sum(axis=0) + self._bends(t, k)

    def averaged(self, theta: Array, deviations: Array) -> HorseshoeJet:
        """A lower bound of E of the jet at coefficients N(θ, deviations²), in β's own units.

        With one distribution r_i of the nodes for all values of a coefficient,
        E log p(x) ≥ log p(√(m² + s²)), and it bends by −E_r q in m: smooth whatever the corner.
        """
        x, t, k = self._at(theta)
        # A point has no spread, and the corner would hold it where it is.
        spread = np.where(deviations > 0.0, deviations / self.units, np.exp(t))
        size = np.sqrt(np.square(x) + np.square(spread))
        jet = self.jet(size, t, k)
        first, second = jet.first, jet.second
        lean, shrinks = x / (size * self.units), first[:, 0] / size
        second[:, 0, 1:] *= lean[:, None]
        second[:, 1:, 0] *= lean[:, None]
        second[:, 0, 0] = shrinks / np.square(self.units)
        first[:, 0] = shrinks * x / self.units
        return HorseshoeJet(jet.value - np.log(self.units), first, second)

    def change(self, theta: Array, jet: HorseshoeJet) -> float:
        """E log p of an averaged jet, less log p at θ itself."""
        x, t, k = self._at(theta)
        return float(jet.value.sum()) + self.log_units - float(self.jet(x, t, k).value.sum())

    def best_scales(self, theta: Array, deviations: Array) -> Array:
        """(t, k) where the density is largest on average over such coefficients, by Newton."""
        at = theta.copy()
        for _ in range(50):
            jet = self.averaged(at, deviations)
            t, k = float(at[self.tau]), float(at[self.slab])
            slope = jet.first[:, 1:].sum(axis=0) + self._slopes(t, k)
            bend = downward(jet.second[:, 1:, 1:].sum(axis=0) + self._bends(t, k))
            newton: Array = np.asarray(np.linalg.solve(bend, slope), dtype=np.float64)
            step = np.clip(-newton, -1.0, 1.0)
            at[[self.tau, self.slab]] += step
            if np.max(np.abs(step)) < 1e-6:
                break
        return at[[self.tau, self.slab]]

    def scale_bends(self, theta: Array, jet: HorseshoeJet) -> Array:
        """∇² in (t, k), made to bend down, of an averaged jet and the priors of τ and c."""
        bends = self._bends(float(theta[self.tau]), float(theta[self.slab]))
        return downward(jet.second[:, 1:, 1:].sum(axis=0) + bends)

    def jet(self, x: Array, t: float, k: float) -> HorseshoeJet:
        """At coefficients x (…, D), in units."""
        q, A, logs = self._logs(x, t, k)
        C, value = np.exp(-k), _log_sum(logs)
        r = np.exp(logs - value[..., None])
        at, squares = x[..., None], np.square(x)[..., None]
        slopes = np.stack([-at * q, squares * A - A / q, 0.5 * C * (squares - 1.0 / q)], axis=-1)
        first = np.einsum("...i,...ia->...a", r, slopes)
        second = np.einsum("...i,...ia,...ib->...ab", r, slopes, slopes)
        second -= first[..., :, None] * first[..., None, :]
        share, slab = A / q, C / q
        second[..., 0, 0] -= r @ q
        for place, bend in (
            ((0, 1), 2.0 * x * (r @ A)),
            ((0, 2), x * C),
            ((1, 2), -(r @ (share * slab))),
        ):
            second[..., place[0], place[1]] += bend
            second[..., place[1], place[0]] += bend
        second[..., 1, 1] += r @ (2.0 * share * (1.0 - share)) - 2.0 * np.square(x) * (r @ A)
        second[..., 2, 2] += r @ (0.5 * slab * (1.0 - slab)) - 0.5 * C * np.square(x)
        return HorseshoeJet(value, first, second)

    def draw(self, rng: np.random.Generator, draws: Array) -> None:
        """Draws of the prior, into the places of (S, d) draws."""
        t = self.horseshoe.tau.draw(rng, len(draws))
        k = self.horseshoe.slab.draw(rng, len(draws))
        shape = len(draws), self.places.size
        u = HalfStudentT(self.horseshoe.local_df, 1.0).draw(rng, shape[0] * shape[1]).reshape(shape)
        precision = np.exp(-2.0 * (t[:, None] + u)) + np.exp(-k)[:, None]
        draws[:, self.tau], draws[:, self.slab] = t, k
        draws[:, self.places] = self.units * rng.standard_normal(shape) / np.sqrt(precision)

    def _at(self, theta: Array) -> tuple[Array, float, float]:
        return theta[self.places] / self.units, float(theta[self.tau]), float(theta[self.slab])

    def _logs(self, x: Array, t: Array | float, k: Array | float) -> tuple[Array, Array, Array]:
        """q and A of the nodes, and log N(x; 0, 1/q) with their weights, (…, D, nodes)."""
        A = np.exp(-2.0 * (t + self.nodes))
        q = A + np.exp(-np.asarray(k))
        heights = self.log_weights + 0.5 * np.log(q)
        if np.ndim(t):
            return q, A, heights[:, None] - 0.5 * np.square(x)[:, :, None] * q[:, None]
        return q, A, heights - 0.5 * np.square(x)[..., None] * q

    def _slopes(self, t: float, k: float) -> Array:
        prior = self.horseshoe
        at = np.array([t]), np.array([k])
        return np.concatenate([prior.tau.gradient(at[0]), prior.slab.gradient(at[1])])

    def _bends(self, t: float, k: float) -> Array:
        prior = self.horseshoe
        at = np.array([t]), np.array([k])
        return np.diag(np.concatenate([prior.tau.hessian(at[0]), prior.slab.hessian(at[1])]))


def downward(bend: Array) -> Array:
    """A symmetric matrix with no eigenvalue above −1e-3, its signs turned where they are up."""
    values, vectors = np.linalg.eigh(bend)
    return np.asarray((vectors * -np.maximum(np.abs(values), LEAST_BEND)) @ vectors.T)


def _log_sum(logs: Array) -> Array:
    """log Σ exp over the nodes."""
    top = logs.max(axis=-1)
    return top + np.log(np.exp(logs - top[..., None]).sum(axis=-1))


def horseshoe_names(number: int) -> list[str]:
    """Of the τ and c² of so many horseshoes."""
    ends = ["" if one == 1 else f"_{one}" for one in range(1, number + 1)]
    return [f"horseshoe_{name}{end}" for end in ends for name in ("tau", "slab")]


def horseshoe_priors(
    shares: Iterator[tuple[int, Horseshoe, float]], first: int
) -> tuple[HorseshoePrior, ...]:
    """One for each different horseshoe, of its coefficients' places and units; the τ and c of
    each are at `first` and behind it."""
    found = dict[Horseshoe, list[tuple[int, float]]]()
    for place, horseshoe, unit in shares:
        found.setdefault(horseshoe, []).append((place, unit))
    return tuple(
        HorseshoePrior(
            horseshoe,
            np.array([place for place, _ in own], dtype=np.int64),
            np.array([unit for _, unit in own]),
            first + 2 * number,
            first + 2 * number + 1,
        )
        for number, (horseshoe, own) in enumerate(found.items())
    )
