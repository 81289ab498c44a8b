"""A Gaussian whose groups are independent given the wide parameters.

    φ ~ N(μ, LLᵀ),    b_g | φ ~ N(m_g − E_g(φ − μ), D_g⁻¹),    D_g = R_gR_gᵀ

In whitened coordinates a predictor wideᵀφ + ownᵀb_g has p + q entries however many groups:

    a = Lᵀ(wide − E_gᵀ own),    e = R_g⁻¹ own,    variance ‖a‖² + ‖e‖².
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from corebayes.arrow.layout import Layout, Split
from corebayes.arrow.sums import ArrowSums
from corebayes.types import Array, Rng


class Whitened(NamedTuple):
    """Predictors of rows in whitened coordinates, and their means."""

    mean: Array
    """(n, k)."""
    wide: Array
    """(n, k, p): a, the scales' coordinates included."""
    own: Array
    """(n, k, q): e."""


@dataclass(frozen=True, eq=False)
class ArrowGaussian:
    """The Gaussian in its parts; see the file."""

    layout: Layout
    wide_mean: Array
    """μ, (p,)."""
    own_mean: Array
    """m, (G, q)."""
    factor: Array
    """L, (p, p)."""
    slopes: Array
    """E, (G, q, p)."""
    root: Array
    """R, (G, q, q)."""

    @classmethod
    def of_precision(
        cls,
        layout: Layout,
        wide_mean: Array,
        own_mean: Array,
        wide_wide: Array,
        own_wide: Array,
        own_own: Array,
    ) -> ArrowGaussian:
        """From the blocks of the precision. Cost: G(q³ + q²p + qp²) + p³ flops.

        A LinAlgError says that the precision is not positive definite, or no number.
        """
        if not (np.all(np.isfinite(wide_wide)) and np.all(np.isfinite(own_own))):
            raise np.linalg.LinAlgError("a precision is not finite")
        root: Array = np.linalg.cholesky(own_own).astype(np.float64, copy=False)
        # E = D⁻¹ C and the Schur complement Λ − Σ_g C_gᵀ E_g
        slopes: Array = np.asarray(np.linalg.solve(own_own, own_wide), dtype=np.float64)
        complement = wide_wide - np.einsum("gqp,gqr->pr", own_wide, slopes, optimize=True)
        lower: Array = np.asarray(np.linalg.cholesky(complement), dtype=np.float64)
        identity = np.eye(len(lower))
        factor: Array = solve_triangular(lower, identity, lower=True).T
        return cls(layout, wide_mean, own_mean, factor, slopes, root)

    def widened(self, times: float) -> ArrowGaussian:
        """The same with so many times the standard deviations."""
        factor, root = times * self.factor, self.root / times
        return replace(self, factor=factor, root=root)

    @cached_property
    def inverse_root(self) -> Array:
        """R⁻¹, (G, q, q)."""
        return np.asarray(np.linalg.inv(self.root), dtype=np.float64)

    @cached_property
    def own_variances(self) -> Array:
        """Marginal variances of the effects, (G, q)."""
        given = np.einsum("gij,gij->gj", self.inverse_root, self.inverse_root)
        spread = self.slopes @ self.factor
        return given + np.einsum("gqp,gqp->gq", spread, spread)

    @cached_property
    def wide_variances(self) -> Array:
        return np.einsum("ij,ij->i", self.factor, self.factor)

    @property
    def mean(self) -> Array:
        """θ's mean, (d,)."""
        theta = np.empty(self.layout.dim)
        theta[self.layout.wide_positions] = self.wide_mean
        theta[self.layout.own_positions] = self.own_mean
        return theta

    @cached_property
    def _leaning(self) -> Array:
        """E L, (G, q, p)."""
        return self.slopes @ self.factor

    def whiten(self, split: Split) -> Whitened:
        """Cost: n·k·(p² + pq) flops."""
        wide, own, groups = split
        touched = wide.shape[2]
        mean = wide @ self.wide_mean[:touched]
        a = wide @ self.factor[:touched]
        if own.shape[2] == 1:
            mean += own[:, :, 0] * self.own_mean[groups]
            a -= own * self._leaning[groups]
            return Whitened(mean, a, own * self.inverse_root[groups])
        if own.shape[2]:
            mean += np.einsum("nkq,nq->nk", own, self.own_mean[groups])
            a -= np.matmul(own, self._leaning[groups])
        return Whitened(mean, a, np.matmul(own, self.inverse_root[groups].transpose(0, 2, 1)))

    @cached_property
    def dense_factor(self) -> Array:
        """(d, d): θ's deviation from its mean, from (z, ε). Cost: d² numbers."""
        layout, p = self.layout, self.wide_mean.size
        num_groups, q = self.own_mean.shape
        factor = np.zeros((layout.dim, layout.dim))
        factor[layout.wide_positions, :p] = self.factor
        factor[layout.own_positions, :p] = -self._leaning
        columns = p + np.arange(num_groups * q, dtype=np.int64).reshape(num_groups, q)
        places = layout.own_positions
        factor[places[:, :, None], columns[:, None]] = self.inverse_root.transpose(0, 2, 1)
        return factor

    @cached_property
    def cubature(self) -> Array:
        """2(p + q) places, (R, d), for averages of sums of functions of φ and one group's effects.

        All groups move together, and each of them and φ as in the rule for p + q coordinates that
        is exact for cubic functions.
        """
        p, q = self.wide_mean.size, self.layout.num_own
        length = np.sqrt(p + q)
        z, noise = length * np.eye(p + q)[:, :p], length * np.eye(p + q)[:, p:]
        own = np.einsum("gji,rj->rgi", self.inverse_root, noise)
        own -= np.einsum("gqp,rp->rgq", self._leaning, z)
        shifts = np.empty((p + q, self.layout.dim))
        shifts[:, self.layout.wide_positions] = z @ self.factor.T
        shifts[:, self.layout.own_positions] = own
        return np.concatenate([self.mean + shifts, self.mean - shifts])

    def whitened_sums(self, sums: ArrowSums) -> ArrowSums:
        """Sums of derivatives in the parameters as sums in whitened coordinates.

        Cost: G(q²p + qp²) + p³ flops.
        """
        sums = sums.padded(self.wide_mean.size)
        L, E, inverse = self.factor, self.slopes, self.inverse_root
        leaning = np.einsum("gqp,gqr->pr", E, sums.own_wide, optimize=True)
        bent = np.matmul(sums.own_own, E)
        wide_wide = sums.wide_wide - leaning - leaning.T
        wide_wide += np.einsum("gqp,gqr->pr", E, bent, optimize=True)
        return ArrowSums(
            sums.value,
            L.T @ (sums.wide - np.einsum("gqp,gq->p", E, sums.own)),
            L.T @ wide_wide @ L,
            np.einsum("gij,gj->gi", inverse, sums.own),
            inverse @ sums.own_own @ inverse.transpose(0, 2, 1),
            inverse @ (sums.own_wide - bent) @ L,
            _turned(inverse, sums.own_cubes),
        )

    def log_volume(self) -> float:
        """½ log det of the covariance."""
        own = np.log(np.diagonal(self.root, axis1=1, axis2=2)).sum()
        return float(np.linalg.slogdet(self.factor)[1] - own)

    def draw(self, rng: Rng, num_draws: int) -> Array:
        """(S, d) draws. Cost: S·(p² + Gqp) flops."""
        z = rng.standard_normal((num_draws, self.wide_mean.size))
        shift = z @ self.factor.T
        noise = rng.standard_normal((num_draws, *self.own_mean.shape))
        # R⁻ᵀ ε has the variance D⁻¹
        own = np.einsum("gji,sgj->sgi", self.inverse_root, noise)
        own -= np.einsum("gqp,sp->sgq", self.slopes, shift, optimize=True)
        theta = np.empty((num_draws, self.layout.dim))
        theta[:, self.layout.wide_positions] = self.wide_mean + shift
        theta[:, self.layout.own_positions] = self.own_mean + own
        return theta


def _turned(inverse: Array, cubes: Array) -> Array:
    """Third derivatives in whitened coordinates."""
    if cubes.shape[1] == 0:
        return cubes
    return np.einsum("gai,gbj,gck,gijk->gabc", inverse, inverse, inverse, cubes, optimize=True)
