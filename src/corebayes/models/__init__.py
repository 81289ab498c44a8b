"""Models: what the potential of a row is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corebayes.models.conjugate import Conjugate
from corebayes.models.custom import CustomModel
from corebayes.models.gaussian import GaussianMean
from corebayes.models.glm import GLM
from corebayes.models.linear import LinearRegression
from corebayes.models.logistic import LogisticRegression
from corebayes.models.negative_binomial import NegativeBinomialRegression
from corebayes.models.poisson import PoissonRegression
from corebayes.models.prior import GaussianPrior, Normal
from corebayes.models.radial_basis import RadialBasis, paper_radial_basis, radial_basis
from corebayes.models.student_t import StudentTRegression

__all__ = [
    "GLM",
    "Conjugate",
    "CustomModel",
    "GaussianMean",
    "GaussianPrior",
    "LinearRegression",
    "LogisticRegression",
    "NegativeBinomialRegression",
    "Normal",
    "PoissonRegression",
    "RadialBasis",
    "StudentTRegression",
    "from_config",
    "paper_radial_basis",
    "radial_basis",
]

BUILT_IN: dict[str, type[GaussianMean] | type[GLM]] = {
    model.__name__: model
    for model in (
        GaussianMean,
        LinearRegression,
        LogisticRegression,
        NegativeBinomialRegression,
        PoissonRegression,
        StudentTRegression,
    )
}


def from_config(name: str, config: Mapping[str, Any]) -> GaussianMean | GLM:
    """The built-in model of class `name` that gave `config = model.config()`."""
    if name not in BUILT_IN:
        raise ValueError(f"{name!r} is not a built-in model; those are {', '.join(BUILT_IN)}")
    return BUILT_IN[name].from_config(config)
