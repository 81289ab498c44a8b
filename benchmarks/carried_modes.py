"""A second mode that rests on a handful of rows among many, in any number of dimensions.

All rows share out −|θ|²/2, and those that `carry` add a bump each at `place` along a direction u,

    log(1 + e^{height − |θ − place·u|² / (2 squares)}),

so narrow that it is a hole in a plain: in five dimensions no random place comes near it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

import corebayes as cb
from corebayes.coreset import Coreset
from corebayes.rows import open_rows
from corebayes.types import Block

Array = np.ndarray

PRIOR = 20.0


def likelihood(draws: Array, block: Block) -> Array:
    # The same in every row.
    direction = np.array([block[f"u{axis}"][0] for axis in range(draws.shape[1])])
    place, squares = block["place"][0], block["squares"][0]
    whole = np.sum(np.square(draws), axis=1)
    away = whole - 2.0 * place * (draws @ direction) + np.square(place)
    bump = np.logaddexp(0.0, block["height"][0] - 0.5 * away / squares)
    return block["carries"][:, None] * bump - 0.5 * block["share"][:, None] * whole


def log_prior(draws: Array) -> Array:
    return -0.5 * np.sum(np.square(draws / PRIOR), axis=1)


class Bump(NamedTuple):
    """Masses on a grid of (θ·u, |θ − (θ·u) u|), which know of any number of dimensions."""

    dim: int
    place: float
    squares: float

    @property
    def along(self) -> Array:
        return np.linspace(-8.0, self.place + 8.0 * max(1.0, np.sqrt(self.squares)), 1500)

    def logs(self, height: float, carried: float, shared: float) -> Array:
        """Log masses of the cells where `carried` bumps count, and all rows by `shared`."""
        along, across = self.along[:, None], np.zeros((1, 1))
        if self.dim > 1:
            across = ((np.arange(300) + 0.5) * (9.0 + np.sqrt(self.dim)) / 300)[None]
        squares = np.square(along) + np.square(across)
        away = np.square(along - self.place) + np.square(across)
        found = carried * np.logaddexp(0.0, height - 0.5 * away / self.squares)
        found = found - 0.5 * (shared + PRIOR**-2) * squares
        if self.dim > 2:
            found = found + (self.dim - 2) * np.log(across)
        return found - np.logaddexp.reduce(found, axis=None)

    def height(self, carriers: int, mass: float) -> float:
        """The height at which the mode of so many rows has this share of the mass."""
        # What all rows share pulls the mode back from the bumps' own place.
        middle = 0.5 * self.place / (1.0 + self.squares / carriers)

        def share(height: float) -> float:
            return float(np.exp(self.logs(height, carriers, 1.0))[self.along > middle].sum())

        # A mode nearby has the tail of the first one in its half, however low it is.
        wanted = max(mass, share(-20.0) + 0.05)
        most = (0.6 * self.place**2 + 60.0) / carriers
        return float(brentq(lambda height: share(height) - wanted, -20.0, most, xtol=1e-6))


class Carried(NamedTuple):
    """Rows and their model, the rows that carry the second mode, and the truth."""

    rows: Any
    model: Any
    carriers: Array
    bump: Bump
    height: float

    def kl(self, coreset: Coreset) -> float:
        weights, block = coreset.weights, coreset.rows
        sums = float(weights @ block["carries"]), float(weights @ block["share"])
        full = self.bump.logs(self.height, self.carriers.size, 1.0)
        ours = self.bump.logs(self.height, *sums)
        return float(np.sum(np.exp(ours) * (ours - full)))


def carried_problem(rng: np.random.Generator, number: int, carriers: int, dim: int) -> Carried:
    """A mode 5 to 30 deviations away with 5 to 50 % of the mass, on so many of the rows."""
    bump = Bump(dim, rng.uniform(5.0, 30.0), rng.uniform(0.3, 1.5))
    height = bump.height(carriers, rng.uniform(0.05, 0.5))
    direction = rng.standard_normal(dim)
    direction /= np.linalg.norm(direction)
    who = np.sort(rng.choice(number, carriers, replace=False))
    constants = {
        "place": bump.place,
        "height": height,
        "squares": bump.squares,
        "share": 1.0 / number,
        **{f"u{axis}": value for axis, value in enumerate(direction)},
    }
    fields = {name: np.full(number, value) for name, value in constants.items()}
    rows = open_rows({"carries": np.isin(np.arange(number), who).astype(float), **fields})
    return Carried(rows, cb.CustomModel(likelihood, log_prior, dim).bind(rows), who, bump, height)
