"""Tangent spaces of mixed models: a Gaussian fit of π_w, and no draws."""

from __future__ import annotations

from dataclasses import dataclass

from corebayes.arguments import check_fields
from corebayes.arrow.fit import fit
from corebayes.arrow.gaussian import ArrowGaussian
from corebayes.arrow.start import beginning, fitting_of, sums_in_parts
from corebayes.models.structure import StructuredModel, is_structured
from corebayes.problem import Problem
from corebayes.tangent.arrow.space import ArrowSpace
from corebayes.tangent.geometry import Geometry, half_square
from corebayes.types import Array, Estimate, Rng, WeightedPoints


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
        assert is_structured(model)
        gaussian = closest_arrow(model, points, start, self.tolerance)
        return ArrowSpace(model, gaussian, fitting_of(model).prior)

    def kl(self, problem: Problem, space: ArrowSpace, residual: Array) -> Estimate:
        """½ Var_w r, the second-order KL."""
        return Estimate(half_square(residual), 0.0)


def closest_arrow(
    model: StructuredModel,
    points: WeightedPoints,
    start: Array | None = None,
    tolerance: float = Arrow.tolerance,
) -> ArrowGaussian:
    """The Gaussian closest to π_w. Cost: some ten sums over the M rows."""
    fitting = fitting_of(model)
    fitted = fit(
        fitting,
        fitting.start(beginning(model, start)),
        lambda q: sums_in_parts(model, fitting.layout, q, points.rows, points.weights),
        tolerance=tolerance**2,
    )
    return fitted.gaussian
