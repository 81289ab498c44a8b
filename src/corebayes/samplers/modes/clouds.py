"""Metropolis moves of many particles at once that know the shape of the cloud they form.

With m = Σ_k s_k N(μ_k, Σ_k) fitted to the particles, each is given a component k with its
probability m_k(θ)/m(θ), and its coordinates B (some, at random) go to

    θ_B′ = μ + √(1 − s²) (θ_B − μ) + s ξ,     ξ ~ N(0, Σ),     s between nothing and one,

with μ and Σ those of component k given the other coordinates: a step that leaves N(μ_k, Σ_k) as it
is (Neal 1999; Cotter et al. 2013). So with k a part of the state the ratio to accept by is that of
p/m, of p and the mixture alone, and nearly all steps are accepted where the cloud is like the
mixture, in any dimension; where single coordinates are like a comb, the steps without these are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg import lapack

from corebayes.samplers.parts import Part, log_mixture
from corebayes.types import Array, Gaussian, Indices

# Two halves of a normal cloud explain 2/π of the variance of its widest axis, of one with a gap
# more than this.
APART = 0.72
MOST_CLOUDS = 8
# Particles for each parameter, at least, of a cloud of its own.
LEAST_EACH = 4
SHORTEST = 0.05


class Clouds(NamedTuple):
    """The mixture m, and the precision of each component."""

    parts: list[Part]
    shares: Array
    precisions: list[Array]

    def log_density(self, draws: Array) -> Array:
        return log_mixture(self.parts, self.shares, draws)

    def components(self, rng: Generator, draws: Array) -> Indices:
        """k of every draw, with its probability given the draw."""
        if len(self.parts) == 1:
            return np.zeros(len(draws), dtype=np.int64)
        logs = np.stack([part.log_density(draws) for part in self.parts])
        logs += np.log(self.shares)[:, None]
        # The largest of logs with Gumbel noise is drawn in proportion to their exponentials.
        noisy: Array = logs + rng.gumbel(size=logs.shape)
        return np.argmax(noisy, axis=0)

    def propose(self, rng: Generator, draws: Array, chosen: NDArray[np.bool_]) -> Array:
        """Where each draw may go if the chosen coordinates move."""
        moved = draws.copy()
        which = self.components(rng, draws)
        for place, (part, precision) in enumerate(zip(self.parts, self.precisions, strict=True)):
            mine = which == place
            centred: Array = draws[mine] - part.fit.mean
            # N(θ_B | the others): precision P_BB, mean μ_B − P_BB⁻¹ P_BC (θ_C − μ_C)
            root = np.asarray(np.linalg.cholesky(precision[np.ix_(chosen, chosen)]), np.float64)
            pull: Array = precision[np.ix_(chosen, ~chosen)] @ centred[:, ~chosen].T
            mean: Array = -lapack.dpotrs(root, pull, lower=1)[0].T
            noise: Array = rng.standard_normal(pull.shape)
            noise = lapack.dtrtrs(root, noise, lower=1, trans=1)[0].T
            size = rng.uniform(SHORTEST, 1.0, size=(len(centred), 1))
            steps = np.sqrt(1.0 - np.square(size)) * (centred[:, chosen] - mean) + size * noise
            moved[np.ix_(mine, chosen)] = part.fit.mean[chosen] + mean + steps
        return moved


@dataclass
class Axes:
    """Which coordinates to move together: those that did not stand in the way before."""

    taken: Array
    tried: Array

    @classmethod
    def of(cls, dim: int) -> Axes:
        return cls(np.full(dim, 0.5), np.ones(dim))

    def choose(self, rng: Generator) -> NDArray[np.bool_]:
        rates = self.taken / self.tried
        chances = np.clip(rates / rates.max(), 0.1, 0.9)
        chosen = np.less(rng.random(int(chances.size)), chances)
        chosen[rng.integers(chances.size)] = True
        return chosen

    def learn(self, chosen: NDArray[np.bool_], rate: float) -> None:
        """`rate` of the moves of these coordinates were accepted; what is long ago counts less."""
        self.taken = np.where(chosen, 0.9 * self.taken + rate, self.taken)
        self.tried = np.where(chosen, 0.9 * self.tried + 1.0, self.tried)


def fit_clouds(draws: Array) -> Clouds | None:
    """Gaussians fitted to the clouds that particles form; None where they do not vary.

    Cost: S·d² flops, and d³ for each cloud.
    """
    size, dim = draws.shape
    everyone: Indices = np.arange(size, dtype=np.int64)
    groups = _split(draws, everyone)
    centred = np.concatenate([draws[mine] - draws[mine].mean(axis=0) for mine in groups])
    pooled = centred.T @ centred / size
    parts, precisions = list[Part](), list[Array]()
    for mine in groups:
        mean, number = draws[mine].mean(axis=0), mine.size
        within = (draws[mine] - mean).T @ (draws[mine] - mean)
        # As if by d more particles of the covariance that all clouds have in common.
        covariance: Array = (within + dim * pooled) / (number + dim)
        try:
            factor = np.asarray(np.linalg.cholesky(covariance), np.float64)
            inverse = np.asarray(np.linalg.inv(factor), np.float64)
        except np.linalg.LinAlgError:
            return None
        parts.append(Part(Gaussian(mean, factor)))
        precisions.append(inverse.T @ inverse)
    return Clouds(parts, np.array([mine.size for mine in groups]) / size, precisions)


def _split(draws: Array, mine: Indices, most: int = MOST_CLOUDS) -> list[Indices]:
    """The particles in groups, cut in two again and again along axes that have a gap."""
    size, dim = mine.size, draws.shape[1]
    if most < 2 or size < 2 * LEAST_EACH * (dim + 5):
        return [mine]
    cut = _widest_gap(draws[mine])
    if cut is None:
        return [mine]
    sides: list[Indices] = [mine[cut], mine[~cut]]
    if min(side.size for side in sides) < LEAST_EACH * (dim + 5):
        return [mine]
    return [group for side in sides for group in _split(draws, side, most // 2)]


def _widest_gap(draws: Array) -> NDArray[np.bool_] | None:
    """Which draws lie on one side of the widest gap along an axis, or along the principal ones."""
    scale = draws.std(axis=0)
    if not np.all(scale > 0.0):
        return None
    units = (draws - draws.mean(axis=0)) / scale
    _, vectors = np.linalg.eigh(units.T @ units / len(units))
    lines: Array = np.hstack([units, units @ vectors[:, -3:]])
    columns = np.sort(lines, axis=0)
    # Of the two means left and right of every place, what their distance explains.
    number = len(columns)
    left = np.arange(1.0, number)[:, None]
    sums = np.cumsum(columns, axis=0)
    below, above = sums[:-1] / left, (sums[-1] - sums[:-1]) / (number - left)
    between = left * (number - left) / number**2 * np.square(above - below)
    explained = between / columns.var(axis=0)
    place, axis = divmod(int(np.argmax(explained)), explained.shape[1])
    if explained[place, axis] < APART:
        return None
    return lines[:, axis] <= columns[place, axis]
