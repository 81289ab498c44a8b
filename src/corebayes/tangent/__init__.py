"""Tangent spaces at π_w: three ways to know the covariances of the potentials."""

from corebayes.tangent.closed_form import ClosedForm
from corebayes.tangent.default import default_geometry
from corebayes.tangent.geometry import Geometry, Moments, Restriction
from corebayes.tangent.hermite import Hermite
from corebayes.tangent.monte_carlo import MonteCarlo

__all__ = [
    "ClosedForm",
    "Geometry",
    "Hermite",
    "Moments",
    "MonteCarlo",
    "Restriction",
    "default_geometry",
]
