"""Subsamples that stand for all rows, and what few rows say that random ones do not.

What is made of rows at random lacks a mode that rests on a handful. So one pass looks for rows that
say much of places far from the mass and on the way there (`telling.py`), and they are in every
subsample.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from corebayes.rows import Rows
from corebayes.samplers.laplace import Laplace, prior_fit
from corebayes.samplers.modes.high_places import DEEP, FLANK
from corebayes.samplers.modes.holes import Holes, find_holes
from corebayes.samplers.modes.search import Mode
from corebayes.samplers.modes.telling import NUM_ALIKE, Tellers, find_tellers
from corebayes.samplers.parts import squared_distances
from corebayes.samplers.posterior import Posterior
from corebayes.scan.telling import TellingRows
from corebayes.types import Array, Gaussian, Indices, Model, Rng

# Rows of the subsample that is annealed (all rows, if they are no more than the second), and of the
# one on which its modes are weighed.
SUBSAMPLE_ROWS, ALL_ROWS, RACE_ROWS = 500, 1000, 10_000
# Rows for each place that may be all that it rests on.
CARRIERS = 64
# Draws between the prior and the mass, from how hot on, in orders of magnitude.
NUM_WARM, HOTTEST = 400, 5.0


class Sampled:
    """Subsamples of all rows, with the rows that say most of places far away."""

    def __init__(
        self, rng: Rng, model: Model, rows: Rows, anchor: Array, warm: Array | None
    ) -> None:
        """Cost: a pass of some 120 to 400 potentials a row, where rows are more than a thousand."""
        self.rng, self.model, self.rows = rng, model, rows
        self.tellers: Tellers | None = None
        if rows.num_rows > ALL_ROWS:
            self.tellers = find_tellers(rng, model, rows, anchor, warm)

    @classmethod
    def from_nothing(cls, rng: Rng, model: Model, rows: Rows) -> Sampled:
        """Where the mass lies is what Newton's method finds on rows at random."""
        prior = prior_fit(model, rows.template)
        if rows.num_rows <= ALL_ROWS:
            return cls(rng, model, rows, prior.mean, None)
        fit = Laplace().try_fit(subsample(rng, model, rows)[0], prior.mean)
        if fit is None:
            return cls(rng, model, rows, prior.mean, None)
        return cls(rng, model, rows, fit.mean, on_the_way(rng, prior, fit))

    def posterior(self, number: int) -> tuple[Posterior, bool]:
        """Of so many rows, and whether they are all there are."""
        if self.tellers is None or self.rows.num_rows <= number:
            return subsample(self.rng, self.model, self.rows, number)
        return self.tellers.subsample(self.rng, self.rows, number), False

    def high_places(self, modes: Sequence[Mode]) -> Array:
        """Where all rows were seen to be high and none of the modes has its flank."""
        if self.tellers is None:
            return np.empty((0, self.model.dim))
        left = self.tellers.high(DEEP)
        for mode in modes:
            left = left[squared_distances(mode.fit, left) > FLANK**2] if len(left) else left
        return left

    def holes(self, sample: Posterior, places: Array) -> Holes:
        """Where kinds of rows of a subsample say most, beyond these places; see `holes.py`."""
        alike = self.rows.take(self.rows.some(self.rng, min(NUM_ALIKE, self.rows.num_rows)))
        return find_holes(self.rng, sample, alike, places)

    def carriers(self, places: Array) -> Indices:
        """Of the rows that say much those that say most of each place, compared with the first.

        Cost: as many potentials for each place as there are such rows.
        """
        if self.tellers is None or len(places) < 2:
            return np.empty(0, dtype=np.int64)
        numbers = self.tellers.numbers
        said = TellingRows(self.model, places, 0, 0).gains(self.rows.take(numbers))
        best = np.argsort(-said, axis=0, kind="stable")[:CARRIERS]
        return np.unique(numbers[best][np.take_along_axis(said, best, axis=0) > 0.0])


def on_the_way(rng: Rng, prior: Gaussian, fit: Gaussian) -> Array:
    """Draws of Gaussians ∝ prior^{1−β} fit^β, log β uniform; (NUM_WARM, d)."""
    start, end = (np.linalg.inv(one.factor @ one.factor.T) for one in (prior, fit))
    beta = np.power(10.0, rng.uniform(-HOTTEST, 0.0, size=(NUM_WARM, 1)))
    precisions = (1.0 - beta)[:, :, None] * start + beta[:, :, None] * end
    pulls = (1.0 - beta) * (start @ prior.mean) + beta * (end @ fit.mean)
    # With P = L Lᵀ, P⁻¹(pull + L z) has mean P⁻¹ pull and covariance P⁻¹.
    z = rng.standard_normal((NUM_WARM, prior.mean.size, 1))
    noise: Array = np.linalg.cholesky(precisions) @ z
    found = np.linalg.solve(precisions, pulls[:, :, None] + noise)
    return np.asarray(found[:, :, 0], dtype=np.float64)


def subsample(rng: Rng, model: Model, rows: Rows, number: int = 0) -> tuple[Posterior, bool]:
    """The posterior of a subsample that stands for all rows, and whether it is all of them."""
    number = number or SUBSAMPLE_ROWS
    if rows.num_rows <= max(number, ALL_ROWS):
        block = rows.take(np.arange(rows.num_rows))
        return Posterior(model, block, block.multiplicity()), True
    block = rows.take(rows.some(rng, number))
    counts = block.multiplicity()
    scale = rows.total_count / max(float(counts.sum()), 1.0)
    return Posterior(model, block, counts * scale), False
