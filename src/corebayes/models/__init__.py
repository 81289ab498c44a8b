"""Models: what the potential of a row is. A new family is one file and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from corebayes.models.base import NormalPriorModel as NormalPriorModel
from corebayes.models.custom.model import CustomModel as CustomModel
from corebayes.models.families.beta import BetaRegression as BetaRegression
from corebayes.models.families.binomial import BinomialRegression as BinomialRegression
from corebayes.models.families.categorical import CategoricalRegression as CategoricalRegression
from corebayes.models.families.cloglog import CloglogRegression as CloglogRegression
from corebayes.models.families.exponential import ExponentialRegression as ExponentialRegression
from corebayes.models.families.gamma import GammaRegression as GammaRegression
from corebayes.models.families.glm import GLM as GLM
from corebayes.models.families.hurdle import (
    HurdleNegativeBinomialRegression as HurdleNegativeBinomialRegression,
)
from corebayes.models.families.hurdle import HurdlePoissonRegression as HurdlePoissonRegression
from corebayes.models.families.linear import LinearRegression as LinearRegression
from corebayes.models.families.logistic import LogisticRegression as LogisticRegression
from corebayes.models.families.lognormal import LogNormalRegression as LogNormalRegression
from corebayes.models.families.negative_binomial import (
    NegativeBinomialRegression as NegativeBinomialRegression,
)
from corebayes.models.families.ordinal import OrdinalRegression as OrdinalRegression
from corebayes.models.families.poisson import PoissonRegression as PoissonRegression
from corebayes.models.families.probit import ProbitRegression as ProbitRegression
from corebayes.models.families.student_t import StudentTRegression as StudentTRegression
from corebayes.models.families.weibull import WeibullRegression as WeibullRegression
from corebayes.models.families.zero_inflated import (
    ZeroInflatedNegativeBinomialRegression as ZeroInflatedNegativeBinomialRegression,
)
from corebayes.models.families.zero_inflated import (
    ZeroInflatedPoissonRegression as ZeroInflatedPoissonRegression,
)
from corebayes.models.gaussian import GaussianMean as GaussianMean
from corebayes.models.mixed.groups import GroupTerm as GroupTerm
from corebayes.models.mixed.regression import MixedRegression as MixedRegression
from corebayes.models.priors.coefficient import DoubleExponential as DoubleExponential
from corebayes.models.priors.coefficient import Flat as Flat
from corebayes.models.priors.coefficient import StudentT as StudentT
from corebayes.models.priors.horseshoe import Horseshoe as Horseshoe
from corebayes.models.priors.normal import Normal as Normal
from corebayes.models.priors.scale import Beta as Beta
from corebayes.models.priors.scale import Exponential as Exponential
from corebayes.models.priors.scale import Gamma as Gamma
from corebayes.models.priors.scale import HalfNormal as HalfNormal
from corebayes.models.priors.scale import HalfStudentT as HalfStudentT
from corebayes.models.radial_basis import radial_basis as radial_basis
from corebayes.models.units import Units as _Units
from corebayes.models.units import units_from_config

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
