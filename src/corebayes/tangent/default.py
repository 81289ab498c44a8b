"""Which geometry a problem gets when none is named."""

from __future__ import annotations

from dataclasses import replace
from math import comb

from corebayes.models.families.glm import GLM
from corebayes.models.structure import is_structured
from corebayes.problem import Problem
from corebayes.samplers.draws import Sampler
from corebayes.samplers.exact import is_conjugate
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.modes.places import MOST_BUILT_DIM
from corebayes.samplers.nuts import NUTS
from corebayes.samplers.resampling import Resampling
from corebayes.tangent.arrow.geometry import Arrow
from corebayes.tangent.closed_form import ClosedForm
from corebayes.tangent.geometry import Geometry
from corebayes.tangent.guarded import Guard
from corebayes.tangent.hermite import MAX_ORDER, Hermite
from corebayes.tangent.monte_carlo import MonteCarlo
from corebayes.types import Model

# Up to here a posterior may be visibly skewed, and a pass of degree 3 or more is cheap.
SKEWED_ROWS, SKEWED_DIM = 20_000, 20
# Flops of a pass of degree 3 that are affordable.
AFFORDABLE = 5e10
# Numbers of an element at the highest degree, d^order, beyond which a degree is not worth it.
MAX_NUMBERS = 10_000
# A hundredth of a standard deviation is far below the error of covariances.
OF_A_FIT = Laplace(tolerance=1e-4, matched=True)
# A divergence among hundreds of draws changes no covariance; certificates tolerate none.
OF_THE_POSTERIOR = Resampling(otherwise=NUTS(num_tune=200, chains=4, tolerated=0.01))
# Of more parameters than a build can search the modes of (weights of a network, say, which may be
# exchanged) draws are local: one chain from where the last look was, of short trajectories, since
# chains in modes of their own would take minutes a look and tell no more of where the points are.
AROUND_ONE_PLACE = Resampling(otherwise=NUTS(num_tune=200, chains=1, tolerated=1.0, max_depth=4))


def default_geometry(
    problem: Problem, size: int | None = None, *, exact_draws: bool = False
) -> Geometry:
    """The geometry without noise if there is one: closed form, Hermite for a GLM, else draws.

    Draws are of the Laplace fit of π_w, with its moments, or with `exact_draws`, for a
    construction of few looks, of π_w itself. Points beyond the dimension of the space would have
    nothing to fit, so for a coreset of `size` rows the space is made large enough where that is
    cheap. Models that are not log-concave get guards against spurious modes.
    """
    if is_structured(problem.model):
        return Arrow()
    if problem.model.log_concave:
        return _plain(problem, size or 0, OF_THE_POSTERIOR if exact_draws else OF_A_FIT)
    sampler = OF_THE_POSTERIOR if _is_searched(problem.model) else AROUND_ONE_PLACE
    of_modes = replace(sampler, places=problem.watched)
    return Guard(geometry=_plain(problem, size or 0, of_modes if exact_draws else OF_A_FIT))


def _plain(problem: Problem, size: int, sampler: Sampler) -> Geometry:
    model = problem.model
    if is_conjugate(model):
        return ClosedForm()
    if isinstance(model, GLM):
        order = _order(problem, size)
        centred = order > 2 and model.dim > SKEWED_DIM and model.log_concave
        return Hermite(order=order, centred=centred)
    rank = max(size, model.dim * (model.dim + 3) // 2)
    if size and not (model.log_concave or _is_searched(model)):
        # Fewer rows cannot match all quadratics, and looks of what they can take minutes already.
        rank = size
    # The covariances of `rank` potentials need several times as many draws.
    return MonteCarlo(num_draws=max(500, 4 * rank), sampler=sampler)


def _is_searched(model: Model) -> bool:
    """Whether a build looks for all modes of a model that may have several."""
    return model.dim <= MOST_BUILT_DIM


def affordable_cubes(problem: Problem) -> bool:
    """Whether a pass of degree 3, N·d³ flops, takes no more than a second or two."""
    return problem.data.num_rows * float(problem.model.dim) ** 3 <= AFFORDABLE


def _order(problem: Problem, size: int) -> int:
    """The degree of polynomials that `size` points can make use of."""
    dim, count = problem.model.dim, problem.data.total_count
    if dim > SKEWED_DIM:
        return 3 if count <= SKEWED_ROWS and affordable_cubes(problem) else 2
    if count > SKEWED_ROWS and size <= comb(dim + 2, 2):
        return 2
    if problem.data.num_rows > SKEWED_ROWS:
        return 3
    orders = range(3, MAX_ORDER + 1)
    cheap = [order for order in orders if order == 3 or dim**order <= MAX_NUMBERS]
    enough = [order for order in cheap if comb(dim + order, order) > size]
    return min(enough, default=cheap[-1])
