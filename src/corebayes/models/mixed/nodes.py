"""Nodes of adaptive Gauss–Hermite quadrature, for many integrals at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from corebayes.types import Array


class Nodes(NamedTuple):
    """Where the integrals of n groups at S draws are evaluated: b = centre + spread x, x the K
    points of a rule for standard normals."""

    centre: Array
    """(n, S, q)."""
    spread: Array
    """(n, S, q, q), upper triangular."""
    points: Array
    """(K, q)."""
    log_rule: Array
    """Of the rule, for an integral without the normal density, (K,)."""

    @property
    def effects(self) -> Array:
        """(n, S, K, q)."""
        return self.centre[:, :, None] + np.einsum("gsij,kj->gski", self.spread, self.points)

    @property
    def log_weights(self) -> Array:
        """(n, S, K): of the quadrature, for the density of the effects itself."""
        diagonal = np.diagonal(self.spread, axis1=-2, axis2=-1)
        return self.log_rule + np.log(np.abs(diagonal)).sum(axis=-1)[:, :, None]

    def moved(self, logs: Array) -> tuple[Nodes, float]:
        """Nodes around the mean of the integrand, logs (n, S, K) with the weights in it, as wide
        as its standard deviation, and by how much they differ: of x, the largest distance of a
        mean from zero, or of a standard deviation from one."""
        shares = np.exp(logs - logsumexp(logs, axis=2, keepdims=True))
        mean = shares @ self.points
        off = self.points - mean[:, :, None]
        covariance = np.einsum("gsk,gski,gskj->gsij", shares, off, off, optimize=True)
        # All weight may lie on one node.
        covariance += 1e-2 * np.eye(self.points.shape[1])
        # An upper root: the lower one of the reversed order.
        lower: Array = np.asarray(np.linalg.cholesky(covariance[:, :, ::-1, ::-1]), np.float64)
        root = lower[:, :, ::-1, ::-1]
        diagonal = np.diagonal(root, axis1=-2, axis2=-1)
        differ = max(float(np.abs(mean).max()), float(np.abs(diagonal - 1.0).max()))
        centre = self.centre + np.einsum("gsij,gsj->gsi", self.spread, mean)
        return self._replace(centre=centre, spread=self.spread @ root), differ
