"""log π_w of a mixed model and its gradient, in the coordinates of its frame.

Designs and groups of the M rows are looked up once. Cost of a call: M·(p + q) flops, M potentials
and their slopes, and p·q numbers for each group.
"""

from __future__ import annotations

import numpy as np

from corebayes.models.groups import ONE
from corebayes.models.mixed import MixedRegression
from corebayes.samplers.mixed_frame import MixedFrame
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Indices


class MixedDensity:
    """A value and a gradient in z at a time, for one posterior."""

    def __init__(self, posterior: Posterior, frame: MixedFrame):
        model = posterior.model
        assert isinstance(model, MixedRegression)
        rows = posterior.rows
        self._model, self._frame, self._weights = model, frame, posterior.weights
        self._fixed = np.ascontiguousarray(model.fixed_design(rows))
        self._y = rows.y if model.learned is not None else model.family.target(rows)
        groups = model.groups(rows)
        # Where each row's effects are in θ, and what they are multiplied with (None for ones).
        self._effects: list[tuple[Indices, Array | None]] = []
        columns = model.effect_columns(rows)
        for place, (term, own) in enumerate(zip(model.structure.terms, model.terms, strict=True)):
            for effect, name in enumerate(own.effects):
                positions = term.positions[groups[:, place], effect]
                column = None if name == ONE else np.ascontiguousarray(columns[place][:, effect])
                self._effects.append((positions, column))

    def __call__(self, z: Array) -> tuple[float, Array]:
        with np.errstate(all="ignore"):
            theta = self._frame.theta(z)
            value, gradient = self._in_theta(theta)
            return value + self._frame.log_jacobian(theta), self._frame.pulled_back(theta, gradient)

    def _in_theta(self, theta: Array) -> tuple[float, Array]:
        model, num_fixed = self._model, self._model.num_fixed
        eta = self._fixed @ theta[:num_fixed]
        for positions, column in self._effects:
            own = theta[positions]
            eta += own if column is None else own * column
        heights, slopes, of_constant = self._heights(eta, theta)
        pull = self._weights * slopes
        gradient = model.prior.gradient(theta)
        gradient[:num_fixed] += pull @ self._fixed
        if of_constant is not None:
            gradient[num_fixed] += self._weights @ of_constant
        for positions, column in self._effects:
            own = pull if column is None else pull * column
            gradient += np.bincount(positions, own, minlength=theta.size)
        value = self._weights @ heights + float(model.prior.log_density(theta[None])[0])
        return float(value), gradient

    def _heights(self, eta: Array, theta: Array) -> tuple[Array, Array, Array | None]:
        """Potentials, their slopes in η and, where a constant is learned, in its logarithm."""
        model, family = self._model, self._model.family
        if model.learned is not None:
            jet = family.learned_jet(eta, theta[model.num_fixed], self._y)
            return jet.value, jet.eta, jet.u
        (slopes,) = family.derivatives(eta, self._y, 1)
        heights = family.log_density(eta[:, None], self._y[:, None], eta[:, None])[:, 0]
        return heights, slopes, None
