"""Exact tangent spaces of conjugate models (Campbell and Beronov 2019, appendix B).

Sufficient statistics are taken once; after that a space, its total and a weight step cost
nothing in N. Only selection looks at the rows again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from corebayes.models.families.linear import LinearRegression
from corebayes.models.gaussian import GaussianMean
from corebayes.problem import Problem
from corebayes.tangent.gaussian import gaussian_kl
from corebayes.tangent.gaussian_mean import GaussianMeanForm
from corebayes.tangent.geometry import Geometry, LookCost, Restriction
from corebayes.tangent.linear import LinearForm
from corebayes.types import (
    Array,
    Estimate,
    Gaussian,
    Indices,
    Rng,
    TangentSpace,
    Total,
    WeightedPoints,
)


@dataclass(frozen=True, kw_only=True)
class ClosedForm(Geometry):
    """Exact covariances for `GaussianMean` and `LinearRegression`."""

    def look_cost(self, problem: Problem) -> LookCost:
        return LookCost(passes=0.0)

    def space(
        self, rng: Rng, problem: Problem, points: WeightedPoints, start: Array | None = None
    ) -> TangentSpace:
        return _form(problem).space(points)

    def space_at(self, problem: Problem, at: Gaussian) -> TangentSpace:
        return _form(problem).space_at(at)

    def total(self, problem: Problem, space: Any, rows: Indices | None = None) -> Total:
        """From the sufficient statistics: exact and free of N, so `rows` is not needed."""
        return _form(problem).total(space)

    def restrict(
        self,
        problem: Problem,
        points: WeightedPoints,
        start: Array | None = None,
        num_rows: int | None = None,
    ) -> Restriction:
        return _form(problem).restrict(points)

    def kl(self, problem: Problem, space: Any, residual: Array) -> Estimate:
        """KL between the Gaussians π_w and π: exact."""
        return Estimate(gaussian_kl(_form(problem).posterior(space), problem.full_posterior), 0.0)


def _form(problem: Problem) -> GaussianMeanForm | LinearForm:
    """What the model and the statistics of all rows fix once and for all, kept on the problem."""
    if problem.closed_form is None:
        model = problem.model
        if isinstance(model, GaussianMean):
            problem.closed_form = GaussianMeanForm.of(model, problem.statistics)
        elif isinstance(model, LinearRegression):
            problem.closed_form = LinearForm.of(model, problem.statistics)
        else:
            raise TypeError(
                f"{type(model).__name__} has no closed-form tangent space; "
                "use Hermite() for a GLM or MonteCarlo() for any model"
            )
    return problem.closed_form
