"""Which geometry a model gets when none is named."""

from __future__ import annotations

from corebayes.models.glm import GLM
from corebayes.samplers.exact import is_conjugate
from corebayes.tangent.closed_form import ClosedForm
from corebayes.tangent.geometry import Geometry
from corebayes.tangent.hermite import Hermite
from corebayes.tangent.monte_carlo import MonteCarlo
from corebayes.types import Model


def default_geometry(model: Model) -> Geometry:
    """The geometry without noise if there is one: closed form, Hermite for a GLM, else draws."""
    if is_conjugate(model):
        return ClosedForm()
    return Hermite() if isinstance(model, GLM) else MonteCarlo(num_draws=500)
