"""Coordinates in which some parameters are multiplied by scales: θ_i = x_i exp(−x_{s(i)})."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from corebayes.types import Array, Indices


@dataclass(frozen=True, eq=False)
class Rescaling:
    """θ of x: effects z_g = b_g / τ of b_g, where log τ is a parameter itself."""

    scale_of: Indices
    """(d,): which log scale divides an entry of x; −1 for none."""

    @cached_property
    def scaled(self) -> Indices:
        return np.flatnonzero(self.scale_of >= 0)

    @property
    def scales(self) -> Indices:
        """The log scales of the entries that have one."""
        return self.scale_of[self.scaled]

    def only(self, places: Indices) -> Rescaling:
        """That of these entries alone."""
        return Rescaling(
            np.where(np.isin(np.arange(self.scale_of.size), places), self.scale_of, -1)
        )

    def theta(self, x: Array) -> Array:
        """θ of x (…, d)."""
        theta = x.copy()
        with np.errstate(over="ignore"):
            theta[..., self.scaled] *= np.exp(-x[..., self.scales])
        return theta

    def coordinates(self, theta: Array) -> Array:
        """x of θ (…, d)."""
        x = theta.copy()
        x[..., self.scaled] *= np.exp(theta[..., self.scales])
        return x

    def factor(self, x: Array, factor: Array) -> Array:
        """(d, K) directions at x as directions of θ."""
        scaled, scales = self.scaled, self.scales
        turned = factor.copy()
        # δθ_i = (δx_i − x_i δv) e^{−v}
        moved = factor[scaled] - x[scaled, None] * factor[scales]
        turned[scaled] = np.exp(-x[scales])[:, None] * moved
        return turned

    def traced(self, x: Any) -> Any:
        """θ of x (d,), in JAX."""
        if not self.scaled.size:
            return x
        numpy: Any = importlib.import_module("jax").numpy
        # Gathered, not scattered: NUTS calls this, and the gradient of a scatter is three more.
        logs = numpy.where(self.scale_of >= 0, x[np.maximum(self.scale_of, 0)], 0.0)
        return x * numpy.exp(-logs)

    def traced_log_volume(self, x: Any) -> Any:
        """log |dθ/dx|, in JAX."""
        return -x @ np.bincount(self.scales, minlength=self.scale_of.size).astype(np.float64)
