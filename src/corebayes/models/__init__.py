"""Models: what the potential of a row is. A new family is one file and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from corebayes.models.base import NormalPriorModel as NormalPriorModel
from corebayes.models.beta import BetaRegression as BetaRegression
from corebayes.models.binomial import BinomialRegression as BinomialRegression
from corebayes.models.categorical import CategoricalRegression as CategoricalRegression
from corebayes.models.cloglog import CloglogRegression as CloglogRegression
from corebayes.models.coefficient_prior import DoubleExponential as DoubleExponential
from corebayes.models.coefficient_prior import Flat as Flat
from corebayes.models.coefficient_prior import StudentT as StudentT
from corebayes.models.custom import CustomModel as CustomModel
from corebayes.models.exponential import ExponentialRegression as ExponentialRegression
from corebayes.models.gamma import GammaRegression as GammaRegression
from corebayes.models.gaussian import GaussianMean as GaussianMean
from corebayes.models.glm import GLM as GLM
from corebayes.models.groups import GroupTerm as GroupTerm
from corebayes.models.horseshoe import Horseshoe as Horseshoe
from corebayes.models.hurdle import (
    HurdleNegativeBinomialRegression as HurdleNegativeBinomialRegression,
)
from corebayes.models.hurdle import HurdlePoissonRegression as HurdlePoissonRegression
from corebayes.models.linear import LinearRegression as LinearRegression
from corebayes.models.logistic import LogisticRegression as LogisticRegression
from corebayes.models.lognormal import LogNormalRegression as LogNormalRegression
from corebayes.models.mixed import MixedRegression as MixedRegression
from corebayes.models.negative_binomial import (
    NegativeBinomialRegression as NegativeBinomialRegression,
)
from corebayes.models.ordinal import OrdinalRegression as OrdinalRegression
from corebayes.models.poisson import PoissonRegression as PoissonRegression
from corebayes.models.prior import Normal as Normal
from corebayes.models.probit import ProbitRegression as ProbitRegression
from corebayes.models.radial_basis import radial_basis as radial_basis
from corebayes.models.scale_prior import Beta as Beta
from corebayes.models.scale_prior import Exponential as Exponential
from corebayes.models.scale_prior import Gamma as Gamma
from corebayes.models.scale_prior import HalfNormal as HalfNormal
from corebayes.models.scale_prior import HalfStudentT as HalfStudentT
from corebayes.models.student_t import StudentTRegression as StudentTRegression
from corebayes.models.units import Units as _Units
from corebayes.models.units import units_from_config
from corebayes.models.weibull import WeibullRegression as WeibullRegression
from corebayes.models.zero_inflated import (
    ZeroInflatedNegativeBinomialRegression as ZeroInflatedNegativeBinomialRegression,
)
from corebayes.models.zero_inflated import (
    ZeroInflatedPoissonRegression as ZeroInflatedPoissonRegression,
)

BUILT_IN: dict[str, type[NormalPriorModel]] = {
    name: model
    for name, model in globals().items()
    if isinstance(model, type) and issubclass(model, NormalPriorModel) and model.command_line
}

if not TYPE_CHECKING:
    # A type checker reads the lines above instead.
    _not_exported = ("Mapping", "Any", "NormalPriorModel", "units_from_config")
    __all__ = sorted(
        name
        for name, value in globals().items()
        if callable(value) and not name.startswith("_") and name not in _not_exported
    )


# A model of rows on units of rows: it is made of another one.
UNITS = _Units.__name__


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
