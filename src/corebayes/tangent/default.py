"""Which geometry a problem gets when none is named."""

from __future__ import annotations

from corebayes.models.glm import GLM
from corebayes.problem import Problem
from corebayes.samplers.exact import is_conjugate
from corebayes.tangent.closed_form import ClosedForm
from corebayes.tangent.geometry import Geometry
from corebayes.tangent.hermite import Hermite
from corebayes.tangent.monte_carlo import MonteCarlo

# Up to here a posterior may be visibly skewed, and the d³ numbers of degree 3 are cheap.
SKEWED_ROWS, SKEWED_DIM = 20_000, 20


def default_geometry(problem: Problem) -> Geometry:
    """The geometry without noise if there is one: closed form, Hermite for a GLM, else draws."""
    model = problem.model
    if is_conjugate(model):
        return ClosedForm()
    if isinstance(model, GLM):
        skewed = problem.data.total_count <= SKEWED_ROWS and problem.model.dim <= SKEWED_DIM
        return Hermite(order=3 if skewed else 2)
    return MonteCarlo(num_draws=500)
