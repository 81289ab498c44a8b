"""Tangent spaces at π_w: three ways to know the covariances of the potentials."""

from corebayes.tangent.closed_form import ClosedForm
from corebayes.tangent.default import default_geometry
from corebayes.tangent.geometry import Geometry, Moments, Restriction
from corebayes.tangent.guarded import Guard
from corebayes.tangent.hermite import Hermite
from corebayes.tangent.monte_carlo import MonteCarlo
from corebayes.tangent.weighting import (
    FullPosterior,
    GivenDraws,
    Realistic,
    SubsamplePosterior,
    Weighting,
)

__all__ = [
    "ClosedForm",
    "FullPosterior",
    "Geometry",
    "GivenDraws",
    "Guard",
    "Hermite",
    "Moments",
    "MonteCarlo",
    "Realistic",
    "Restriction",
    "SubsamplePosterior",
    "Weighting",
    "default_geometry",
]
