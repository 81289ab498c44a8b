"""Proposals for posteriors that are as wide as their prior in some directions and walled there.

The coefficient of a level whose few rows all agree is free up to a wall and then, on the side that
they rule out, gone within one unit of the predictor, where its prior is hundreds wide. No Gaussian
is like that, and a Markov chain takes steps as short as the wall is thin. With H the curvature of
−log π_w at its mode, of which Λ is the prior's, and H = L⁻ᵀL⁻¹,

    LᵀΛL = Q diag(σ) Qᵀ,    θ = θ̂ + U ψ + V t,    U and V the columns of LQ with small and large σ,

the data say little of t at the mode (σ is the share of the prior), and all about ψ. So

    q(ψ, t) = t_ν(ψ) Π_j q(t_j | ψ, t_1, …, t_{j−1}),

each q(t_j | …) the conditional density itself, on a grid of cells that are fine at the wall and
coarse far from it. V is turned so that rows see one of the t each, and the rows of one level do not
touch those of another: then q is all but π_w. Directions that are wide because columns are nearly
dependent are not walled, since no row sees much of them: they belong to U.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeGuard

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.special import gammaln

from corebayes.deadline import check_time
from corebayes.models.families.glm import GLM
from corebayes.models.fewer_columns import design_of
from corebayes.models.mixed.regression import MixedRegression
from corebayes.models.priors.normal import GaussianPrior
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Block, Gaussian, Indices, Model

# The prior's share of the curvature from which a direction is wide; how many walls there may be.
WIDE, MOST_WALLS = 0.02, 40
# Cells of a grid; how far it goes, in deviations of the prior, and its finest cells, in units of
# the predictor.
CELLS, FAR, FINEST = 160, 8.0, 0.05
# What a row sees of a walled direction, at least, in units of the predictor a deviation at the
# mode; and the rows that see any, together, which all cost their cells.
WALLED, MOST_ROWS = 0.5, 2_000
# Parameters of a dense fit, at most.
MOST_PARAMETERS = 200
# A row that sees less than this share of the most of a direction does not count for its grid: what
# is proposed is weighed with all rows.
UNTOUCHED = 1e-3
# Potentials at once.
VALUES_AT_ONCE = 1 << 21


class Direction(NamedTuple):
    """One of the t: where it leads, the edges of its cells, and the rows that see it."""

    along: Array
    edges: Array
    rows: Block
    weights: Array


@dataclass(frozen=True, eq=False)
class WideProposal:
    """q. Cost of a draw or a density: CELLS potentials of the rows that see each direction."""

    model: GLM | MixedRegression
    fit: Gaussian
    """At the mode; its factor is (U, V), V before it is turned."""
    turn: Array
    """From t to coordinates along V."""
    directions: tuple[Direction, ...]
    degrees: float

    @property
    def dim(self) -> int:
        return self.fit.mean.size

    @property
    def location(self) -> Array:
        return self.fit.mean

    @property
    def _num_narrow(self) -> int:
        return self.dim - len(self.directions)

    def sees(self, rows: Block) -> bool:
        """Whether one of these rows sees one of the directions, as much as most rows of a level."""
        wide = self.fit.factor[:, self._num_narrow :] @ self.turn
        return bool(np.abs(_seen(self.model, rows, wide)).max(initial=0.0) > 0.5)

    def draw(self, rng: Generator, number: int) -> Array:
        """Independent draws of q, (number, d)."""
        narrow = self._num_narrow
        squares = rng.chisquare(self.degrees, size=(number, 1)) / self.degrees
        psi = rng.standard_normal((number, narrow)) / np.sqrt(squares)
        at = self.fit.mean + psi @ self.fit.factor[:, :narrow].T
        for direction in self.directions:
            cells, inside = rng.random(number), rng.random(number)
            t = np.empty(number)
            for part, masses in self._masses(direction, at):
                sums = np.cumsum(masses, axis=1)
                found = np.sum(sums < cells[part, None] * sums[:, -1:], axis=1)
                lower, upper = direction.edges[found], direction.edges[found + 1]
                t[part] = lower + inside[part] * (upper - lower)
            at += t[:, None] * direction.along
        return at

    def log_density(self, draws: Array) -> Array:
        """log q, normalised, (S,); −∞ beyond the grids."""
        narrow = self._num_narrow
        z = np.linalg.solve(self.fit.factor, (draws - self.fit.mean).T)
        squares = np.einsum("is,is->s", z[:narrow], z[:narrow])
        nu = self.degrees
        result = -0.5 * (nu + narrow) * np.log1p(squares / nu)
        result += gammaln(0.5 * (nu + narrow)) - gammaln(0.5 * nu)
        result -= 0.5 * narrow * np.log(nu * np.pi)
        # θ = θ̂ + Uψ + V'·t
        volume = np.linalg.slogdet(self.fit.factor)[1] + np.linalg.slogdet(self.turn)[1]
        result -= float(volume)
        at = self.fit.mean + z[:narrow].T @ self.fit.factor[:, :narrow].T
        t: list[Array] = list(np.linalg.solve(self.turn, z[narrow:]))
        for values, direction in zip(t, self.directions, strict=True):
            edges = direction.edges
            found = np.digitize(values, edges) - 1
            outside = (values < edges[0]) | (values >= edges[-1])
            cells: Indices = np.clip(found, 0, edges.size - 2)
            widths = np.diff(edges)[cells]
            for part, masses in self._masses(direction, at):
                own = np.take_along_axis(masses, cells[part, None], axis=1)[:, 0]
                with np.errstate(divide="ignore"):
                    result[part] += np.log(own / masses.sum(axis=1)) - np.log(widths[part])
            result[outside] = -np.inf
            at = at + values[:, None] * direction.along
        return result

    def _masses(self, direction: Direction, at: Array) -> Iterator[tuple[slice, Array]]:
        """Of the cells, (s, cells), up to a factor, for some places at a time."""
        edges = direction.edges
        middles, widths = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)
        per = middles.size * max(1, direction.weights.size)
        step = max(1, VALUES_AT_ONCE // per)
        for first in range(0, len(at), step):
            check_time()
            part = slice(first, first + step)
            heights = _heights(self.model, direction, at[part], middles)
            heights = np.nan_to_num(heights, nan=-np.inf)
            heights -= heights.max(axis=1, keepdims=True)
            yield part, np.exp(heights) * widths


def _heights(model: Model, direction: Direction, at: Array, steps: Array) -> Array:
    """log π_w of places that many steps along a direction, (S, G), up to a constant of each."""
    along, rows, weights = direction.along, direction.rows, direction.weights
    if not isinstance(model, GLM):
        places = (at[:, None, :] + steps[:, None] * along).reshape(-1, at.shape[1])
        heights = Posterior(model, rows, weights).log_density(places)
        return heights.reshape(len(at), steps.size)
    # Along a line predictors are lines, and the log of a Gaussian prior is a parabola.
    design, prior = model.design(rows), model.gaussian_prior
    eta = (design @ at.T)[:, :, None] + (design @ along)[:, None, None] * steps
    values = model.transform(eta.reshape(len(design), -1), model.target(rows))
    pull = prior.precision @ along
    heights = (weights @ values).reshape(len(at), steps.size)
    return heights - np.outer((at - prior.mean) @ pull, steps) - 0.5 * (along @ pull) * steps**2


def is_walled(model: Model) -> TypeGuard[GLM | MixedRegression]:
    """Whether it is a regression with one mode and Normal priors, beyond which nothing is."""
    if isinstance(model, GLM):
        return model.log_concave
    if not isinstance(model, MixedRegression) or model.terms or model.horseshoes:
        return False
    return model.family.log_concave and isinstance(model.fixed_prior, GaussianPrior)


def wide_proposal(posterior: Posterior, start: Array | None = None) -> WideProposal | None:
    """Around the mode; None where no direction is wide, or there is no mode. Cost: some d³."""
    model = posterior.model
    if not is_walled(model) or posterior.dim > MOST_PARAMETERS:
        return None
    fit = Laplace().try_fit(posterior, start)
    if fit is None:
        return None
    share = fit.factor.T @ -model.log_prior_hessian(fit.mean) @ fit.factor
    values, vectors = np.linalg.eigh(share)
    number = int(np.count_nonzero(values > WIDE))
    if number == 0:
        return None
    # Eigenvalues rise: the wide directions come last.
    factor = fit.factor @ vectors
    seen = _seen(model, posterior.rows, factor[:, -number:])
    walls = _walls(seen, len(posterior.rows), min(MOST_WALLS, posterior.dim - 1))
    if walls is None:
        return None
    # The wide directions that no wall is seen in go to the others.
    factor[:, -number:] @= walls.basis
    number = len(walls.turn)
    directions = tuple(
        _direction(posterior, fit.mean, along, own)
        for along, own in zip((factor[:, -number:] @ walls.turn).T, walls.seen.T, strict=True)
    )
    degrees = max(10.0, float(posterior.dim))
    return WideProposal(model, Gaussian(fit.mean, factor), walls.turn, directions, degrees)


class _Walls(NamedTuple):
    """Coordinates of the wide directions in which each wall has rows of its own."""

    basis: Array
    """Orthonormal, (m, m): those in which there are walls come last."""
    turn: Array
    """From t to coordinates along these last."""
    seen: Array
    """What every row sees of each of the t, (n, k)."""


def _walls(seen: Array, num_rows: int, most: int) -> _Walls | None:
    """Of the rows that see most of the wide directions, as many as there are walls are to see one
    each; the others of their levels then do, too. None where nothing is seen much, or all is by
    too many rows."""
    if not np.all(np.isfinite(seen)):
        return None
    triangle, pivots = qr(seen.T, mode="r", pivoting=True)
    number = int(np.count_nonzero(np.abs(np.diagonal(triangle)) > WALLED))
    for first in range(min(number, most), 0, -1):
        rows = seen[pivots[:first]]
        # The directions that these rows do not see come first.
        basis = np.linalg.svd(rows)[2][::-1].T
        turn = np.linalg.inv(rows @ basis[:, -first:])
        own = np.abs(seen @ basis[:, -first:] @ turn).reshape(-1, num_rows, first).max(axis=0)
        if np.count_nonzero(_touched(own)) <= MOST_ROWS:
            return _Walls(basis, np.asarray(turn, dtype=np.float64), own)
    return None


def _touched(seen: Array) -> NDArray[np.bool_]:
    """Whether rows see enough of a direction to count for its grid."""
    return seen > UNTOUCHED * seen.max(axis=0)


def _seen(model: GLM | MixedRegression, rows: Block, wide: Array) -> Array:
    """What the linear predictors of every row see of the directions, (n·k, m)."""
    design = design_of(model, rows)
    width = design.shape[1]
    number = 1 if isinstance(model, GLM) else len(model.family.linear)
    parts = [design @ wide[k * width : (k + 1) * width] for k in range(number)]
    return np.vstack(parts)


def _direction(posterior: Posterior, mode: Array, along: Array, seen: Array) -> Direction:
    """The grid is fine at the mode, which lies at the wall; from there cells grow by a share."""
    precision = float(along @ -posterior.model.log_prior_hessian(mode) @ along)
    far = FAR / np.sqrt(precision)
    # sinh is a line near zero, and grows by the same share from cell to cell further out.
    finest = min(FINEST, far / CELLS)
    end = float(np.arcsinh(far / finest))
    edges = finest * np.sinh(np.linspace(-end, end, CELLS + 1))
    touched = np.flatnonzero(_touched(seen))
    rows = posterior.rows.take(touched)
    return Direction(along, edges, rows, posterior.weights[touched])
