"""Tangent spaces of mixed models: a Gaussian fit of π_w, and no draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from corebayes.arguments import check_fields
from corebayes.arrow.expectation import sums_of
from corebayes.arrow.fit import Fitting, fit
from corebayes.arrow.gaussian import ArrowGaussian
from corebayes.arrow.layout import Layout
from corebayes.arrow.prior import ArrowPrior
from corebayes.arrow.sums import ArrowSums
from corebayes.models.mixed_prior import MixedPrior
from corebayes.models.structure import StructuredModel, is_structured
from corebayes.problem import Problem
from corebayes.tangent.arrow.space import ArrowSpace
from corebayes.tangent.geometry import Geometry, half_square
from corebayes.types import Array, Block, Estimate, Model, Rng, WeightedPoints

# Rows whose sums are taken at once: some 100 MB with a hundred wide parameters.
ROWS_AT_ONCE = 16_384


def layout_of(model: Model) -> Layout:
    """The parts of a structured model's parameters, or an error that says what it lacks."""
    if not is_structured(model):
        raise TypeError(f"the rows of {type(model).__name__} are not known to touch few parameters")
    layout = Layout(model.structure)
    layout.check()
    return layout


def fitting_of(model: Model) -> Fitting:
    layout = layout_of(model)
    prior = getattr(model, "prior", None)
    if not isinstance(prior, MixedPrior):
        raise TypeError(f"{type(model).__name__} does not say what its prior is made of")
    return Fitting(layout, ArrowPrior(prior, layout))


def sums_in_parts(
    model: StructuredModel, layout: Layout, gaussian: ArrowGaussian, rows: Block, weights: Array
) -> ArrowSums:
    """Sums over rows in memory. Cost: that of a pass over them."""
    parts = (slice(first, first + ROWS_AT_ONCE) for first in range(0, len(rows), ROWS_AT_ONCE))
    total: ArrowSums | None = None
    for part in parts:
        sums = sums_of(model, layout, gaussian, rows.take(part), weights[part])
        total = sums if total is None else total.plus(sums)
    return total or sums_of(model, layout, gaussian, rows, weights)


@dataclass(frozen=True, kw_only=True)
class Arrow(Geometry):
    """Tangent spaces at the Gaussian closest to π_w, for models whose rows touch few parameters.

    Newton's method ends when its step is shorter than `tolerance` standard deviations, on average
    over the parameters. Cost of a space: some ten sums over the M rows; of a total: a pass of N·p²
    flops for p parameters that a row touches.
    """

    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        check_fields(self)

    def space(
        self, rng: Rng, problem: Problem, points: WeightedPoints, start: Array | None = None
    ) -> ArrowSpace:
        model = problem.model
        fitting = fitting_of(model)
        assert is_structured(model)
        begin = fitting.start(np.zeros(model.dim) if start is None else start)
        fitted = fit(
            fitting,
            begin,
            lambda q: sums_in_parts(model, fitting.layout, q, points.rows, points.weights),
            tolerance=self.tolerance**2,
        )
        return ArrowSpace(model, fitted.gaussian, fitting.prior)

    def kl(self, problem: Problem, space: ArrowSpace, residual: Array) -> Estimate:
        """½ Var_w r, the second-order KL."""
        return Estimate(half_square(residual), 0.0)
