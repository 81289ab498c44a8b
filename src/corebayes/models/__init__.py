"""Models: what the potential of a row is. A new family is one file and one export here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corebayes.models.base import NormalPriorModel
from corebayes.models.coefficient_prior import DoubleExponential, Flat, StudentT
from corebayes.models.custom import CustomModel
from corebayes.models.gaussian import GaussianMean
from corebayes.models.glm import GLM
from corebayes.models.groups import GroupTerm
from corebayes.models.linear import LinearRegression
from corebayes.models.logistic import LogisticRegression
from corebayes.models.mixed import MixedRegression
from corebayes.models.negative_binomial import NegativeBinomialRegression
from corebayes.models.poisson import PoissonRegression
from corebayes.models.prior import Normal
from corebayes.models.radial_basis import radial_basis
from corebayes.models.scale_prior import Exponential, Gamma, HalfNormal, HalfStudentT
from corebayes.models.student_t import StudentTRegression
from corebayes.models.units import Units, units_from_config

__all__ = [
    "GLM",
    "CustomModel",
    "DoubleExponential",
    "Exponential",
    "Flat",
    "Gamma",
    "GaussianMean",
    "GroupTerm",
    "HalfNormal",
    "HalfStudentT",
    "LinearRegression",
    "LogisticRegression",
    "MixedRegression",
    "NegativeBinomialRegression",
    "Normal",
    "PoissonRegression",
    "StudentT",
    "StudentTRegression",
    "radial_basis",
]

BUILT_IN: dict[str, type[NormalPriorModel]] = {
    name: model
    for name, model in ((name, globals()[name]) for name in __all__)
    if isinstance(model, type) and issubclass(model, NormalPriorModel) and model.command_line
}


# A model of rows on units of rows: it is made of another one.
UNITS = Units.__name__


def from_config(name: str, config: Mapping[str, Any]) -> Any:
    """The built-in model of class `name` that gave `config = model.config()`."""
    if name == UNITS:
        return units_from_config(config, from_config(str(config["model"]), config["config"]))
    if name == MixedRegression.__name__:
        family = config["family"]
        return MixedRegression.from_config(config, from_config(family["name"], family["config"]))
    if name not in BUILT_IN:
        raise ValueError(f"{name!r} is not a built-in model; those are {', '.join(BUILT_IN)}")
    return BUILT_IN[name].from_config(config)
