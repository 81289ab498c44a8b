"""log π_w of a mixed model and its gradient, in the coordinates of its frame.

One compiled function where numba is installed and the family has kernels; some calls of NumPy
otherwise. Designs and groups of the M rows are looked up once. Cost of a call: M·(p + q) flops, M
potentials and their slopes, p·q numbers for each group.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from corebayes.models.compiled import jit
from corebayes.models.compiled.mixed import (
    Entry,
    MixedRows,
    glm_density_address,
    jet_density_address,
)
from corebayes.models.compiled.prior import packed_further
from corebayes.models.compiled.rows import LinearRows
from corebayes.models.families.family import Jet
from corebayes.models.families.glm import GLM
from corebayes.models.mixed.groups import ONE
from corebayes.models.mixed.regression import MixedRegression
from corebayes.samplers.density import Pointer
from corebayes.samplers.mixed.frame import MixedFrame
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Block, Indices


def mixed_density(posterior: Posterior, frame: MixedFrame) -> MixedDensity | Pointer:
    """The density in whatever form is quickest."""
    model = posterior.model
    assert isinstance(model, MixedRegression)
    address, further = _address(model), packed_further(model.prior)
    if address is None or further is None:
        return MixedDensity(posterior, frame)
    return Pointer(address, _mixed_rows(posterior, frame, further).packed())


def _address(model: MixedRegression) -> int | None:
    """Of the compiled function, where the family has one."""
    if not jit.available():
        return None
    if (glm := model.as_glm) is not None:
        return None if glm.density_kernels is None else glm_density_address(*glm.density_kernels)
    kernels = model.family.jet_kernels
    return jet_density_address(kernels) if kernels else None


def _mixed_rows(posterior: Posterior, frame: MixedFrame, further: Array) -> MixedRows:
    model, rows = posterior.model, posterior.rows
    assert isinstance(model, MixedRegression)
    prior = model.fixed_prior
    if (glm := model.as_glm) is not None:
        row = glm.target(rows)[None]
        constants = tuple(map(Entry, glm.constants.values()))
    else:
        row = model.family.compiled_row({k: one[:, 0] for k, one in model.row(rows).items()})
        constants = tuple(_entries(model))
    return MixedRows(
        linear=len(model.family.linear),
        row=row,
        weights=posterior.weights,
        rows=_linear_rows(model, rows),
        constants=constants,
        prior_mean=prior.mean,
        prior_precision=prior.precision,
        height=float(prior.log_density(prior.mean[None])[0]),
        scales=model.prior.scales,
        further=further,
        wide_positions=frame.layout.wide_positions,
        wide_mean=frame.wide_mean,
        own_positions=frame.layout.own_positions,
        own_mean=frame.own_mean,
        wide=frame.wide,
        own=frame.own,
    )


def _entries(model: MixedRegression) -> Iterator[Entry]:
    """The family's constants, in its order."""
    known, learned = model.known_constants, enumerate(model.constants, model.num_fixed)
    for number in range(len(model.family.learnable)):
        if number in known:
            yield Entry(float(known[number][0, 0]))
        else:
            place, constant = next(learned)
            yield Entry(0.0, place, constant.prior)


def _linear_rows(model: MixedRegression, rows: Block) -> LinearRows:
    effects, offset = _effects(model, rows), model.offset(rows)
    columns = [np.ones(len(rows)) if one.column is None else one.column for one in effects]
    return LinearRows(
        np.zeros(len(rows)) if offset is None else offset,
        model.fixed_design(rows),
        np.array([one.positions for one in effects], np.int64).reshape(-1, len(rows)),
        np.array(columns),
        np.array([one.predictor for one in effects], np.int64),
    )


class RowEffect(NamedTuple):
    """One effect of all rows."""

    positions: Indices
    """Where each row's is in θ."""
    column: Array | None
    """What it is multiplied with; None for ones."""
    predictor: int


def _effects(model: MixedRegression, rows: Block) -> list[RowEffect]:
    groups, columns = model.groups(rows), model.effect_columns(rows)
    effects = list[RowEffect]()
    for place, (term, own) in enumerate(zip(model.structure.terms, model.terms, strict=True)):
        for number, effect in enumerate(model.effects_of(own)):
            positions = term.positions[groups[:, place], number]
            name, column = effect.name, np.ascontiguousarray(columns[place][:, number])
            effects.append(RowEffect(positions, None if name == ONE else column, effect.predictor))
    return effects


class MixedDensity:
    """A value and a gradient in z at a time, for one posterior, in NumPy."""

    def __init__(self, posterior: Posterior, frame: MixedFrame):
        model = posterior.model
        assert isinstance(model, MixedRegression)
        rows = posterior.rows
        self._model, self._frame, self._weights = model, frame, posterior.weights
        self._fixed = np.ascontiguousarray(model.fixed_design(rows))
        self._offset, self._effects = model.offset(rows), _effects(model, rows)
        self._row = {name: values[:, 0] for name, values in model.row(rows).items()}
        self._linear = len(model.family.linear)

    def __call__(self, z: Array) -> tuple[float, Array]:
        with np.errstate(all="ignore"):
            theta = self._frame.theta(z)
            value, gradient = self._in_theta(theta)
            volume, pulled = self._frame.pulled_back(z, theta, gradient)
            return value + volume, pulled

    def _in_theta(self, theta: Array) -> tuple[float, Array]:
        model = self._model
        jet = self._jet(self._etas(theta), theta)
        gradient = model.prior.gradient(theta)
        pulls = [self._weights * jet.first[number] for number in range(self._linear)]
        for number, pull in enumerate(pulls):
            gradient[model.coefficients(number)] += pull @ self._fixed
        for place, own in enumerate(model.wanted[self._linear :], model.num_fixed):
            slopes = np.broadcast_to(jet.first[own], self._weights.shape)
            gradient[place] += self._weights @ slopes
        for positions, column, number in self._effects:
            own = pulls[number] if column is None else pulls[number] * column
            gradient += np.bincount(positions, own, minlength=theta.size)
        value = self._weights @ jet.value + float(model.prior.log_density(theta[None])[0])
        return float(value), gradient

    def _etas(self, theta: Array) -> list[Array]:
        model = self._model
        etas = [self._fixed @ theta[model.coefficients(k)] for k in range(self._linear)]
        for positions, column, number in self._effects:
            own = theta[positions]
            etas[number] += own if column is None else own * column
        return etas if self._offset is None else [eta + self._offset for eta in etas]

    def _jet(self, etas: list[Array], theta: Array) -> Jet:
        """Potentials and their slopes in all predictors of the family."""
        model, family = self._model, self._model.family
        if isinstance(family, GLM) and not model.constants:
            (eta,), y = etas, family.own_target(self._row["y"])
            (slopes,) = family.derivatives(eta, y, 1)
            heights = family.log_density(eta[:, None], y[:, None], eta[:, None])[:, 0]
            return Jet(heights, (slopes,))
        learned = [theta[model.num_fixed + k, None] for k in range(len(model.constants))]
        at = model.complete(etas, learned)
        return family.jet([np.ravel(one) for one in at], self._row, 1)
