"""What the likelihood of a built-in model is, apart from priors, columns and constants."""

from __future__ import annotations

from typing import Any

from corebayes.models.base import NormalPriorModel
from corebayes.models.mixed.marginal import MarginalRegression
from corebayes.models.mixed.regression import MixedRegression
from corebayes.models.units import Units


def likelihood_of(model: Any) -> str | None:
    """The family with its link and what its rows have beside y ("PoissonRegression with log link
    and exposure"); None for models that are functions, of which nothing can be told.

    Constants may be known or learned and coefficients differ from group to group: these are larger
    and smaller models of one family.
    """
    if isinstance(model, Units):
        model = model.model
    if isinstance(model, MarginalRegression):
        model = model.mixed
    family = model.family if isinstance(model, MixedRegression) else model
    if not isinstance(family, NormalPriorModel):
        return None
    link: Any = getattr(family, "link", None)
    columns: Any = getattr(family, "row_columns", {})
    parts = [f"{link} link"] * (link is not None) + list(columns)
    return type(family).__name__ + (f" with {' and '.join(parts)}" if parts else "")
