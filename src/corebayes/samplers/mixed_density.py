"""log π_w of a mixed model and its gradient, in the coordinates of its frame.

One compiled function where numba is installed and the family has kernels (and a learned constant is
a scale of y − η); a dozen calls of NumPy otherwise. Designs and groups of the M rows are looked up
once. Cost of a call: M·(p + q) flops, M potentials and their slopes, p·q numbers for each group.
"""

from __future__ import annotations

import numpy as np

from corebayes.models import compiled
from corebayes.models.compiled_mixed import MixedRows, mixed_density_address
from corebayes.models.groups import ONE
from corebayes.models.mixed import MixedRegression
from corebayes.samplers.density import Pointer
from corebayes.samplers.mixed_frame import MixedFrame
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Block, Indices


def mixed_density(posterior: Posterior, frame: MixedFrame) -> MixedDensity | Pointer:
    """The density in whatever form is quickest."""
    model = posterior.model
    assert isinstance(model, MixedRegression)
    family, kernels = model.family, model.family.density_kernels
    if kernels is None or not compiled.available():
        return MixedDensity(posterior, frame)
    if model.learned is not None and not family.location_family:
        return MixedDensity(posterior, frame)
    return Pointer(mixed_density_address(*kernels), _mixed_rows(posterior, frame).packed())


def _mixed_rows(posterior: Posterior, frame: MixedFrame) -> MixedRows:
    model, rows = posterior.model, posterior.rows
    assert isinstance(model, MixedRegression)
    family, prior = model.family, model.fixed_prior
    effects = _effects(model, rows)
    columns = [np.ones(len(rows)) if column is None else column for _, column in effects]
    learned = None
    if model.learned is not None:
        learned = list(family.constants).index(str(family.learnable)), model.learned
    return MixedRows(
        targets=rows.y if model.learned is not None else family.target(rows),
        weights=posterior.weights,
        design=model.fixed_design(rows),
        positions=np.array([places for places, _ in effects], np.int64).reshape(-1, len(rows)),
        columns=np.array(columns),
        constants=tuple(family.constants.values()),
        learned=learned,
        prior_mean=prior.mean,
        prior_precision=prior.precision,
        height=float(prior.log_density(prior.mean[None])[0]),
        scales=model.prior.scales,
        wide_positions=frame.layout.wide_positions,
        wide_mean=frame.wide_mean,
        own_positions=frame.layout.own_positions,
        own_mean=frame.own_mean,
        wide=frame.wide,
        own=frame.own,
    )


def _effects(model: MixedRegression, rows: Block) -> list[tuple[Indices, Array | None]]:
    """Where each row's effects are in θ, and what they are multiplied with (None for ones)."""
    groups, columns = model.groups(rows), model.effect_columns(rows)
    effects = list[tuple[Indices, Array | None]]()
    for place, (term, own) in enumerate(zip(model.structure.terms, model.terms, strict=True)):
        for effect, name in enumerate(own.effects):
            positions = term.positions[groups[:, place], effect]
            column = None if name == ONE else np.ascontiguousarray(columns[place][:, effect])
            effects.append((positions, column))
    return effects


class MixedDensity:
    """A value and a gradient in z at a time, for one posterior, in NumPy."""

    def __init__(self, posterior: Posterior, frame: MixedFrame):
        model = posterior.model
        assert isinstance(model, MixedRegression)
        rows = posterior.rows
        self._model, self._frame, self._weights = model, frame, posterior.weights
        self._fixed = np.ascontiguousarray(model.fixed_design(rows))
        self._y = rows.y if model.learned is not None else model.family.target(rows)
        self._effects = _effects(model, rows)

    def __call__(self, z: Array) -> tuple[float, Array]:
        with np.errstate(all="ignore"):
            theta = self._frame.theta(z)
            value, gradient = self._in_theta(theta)
            volume, pulled = self._frame.pulled_back(z, theta, gradient)
            return value + volume, pulled

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
