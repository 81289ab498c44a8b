"""A built-in regression taken apart for another library: prior, design, target and family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from corebayes.models import (
    LinearRegression,
    LogisticRegression,
    NegativeBinomialRegression,
    PoissonRegression,
    StudentTRegression,
)
from corebayes.models.glm import GLM
from corebayes.types import Array, Block, Coreset

Family = Literal[
    "logistic", "poisson_log", "poisson_softplus", "linear", "student_t", "negative_binomial"
]


@dataclass(frozen=True, kw_only=True)
class GlmParts:
    """y ~ family(X · coefficients), coefficients ~ N(mean, covariance)."""

    model: GLM
    family: Family
    options: dict[str, float]
    """The family's known constants."""
    name: str
    """What the vector of coefficients is called."""
    columns: tuple[str, ...]
    """What each coefficient is called, when they have names of their own."""

    @property
    def mean(self) -> Array:
        return self.model.gaussian_prior.mean

    @property
    def covariance(self) -> Array:
        return self.model.gaussian_prior.covariance

    def design(self, rows: Block) -> Array:
        return self.model.design(rows)

    def target(self, rows: Block) -> NDArray[Any]:
        """y as other libraries take it: labels and counts are whole numbers."""
        if self.family == "logistic":
            return (self.model.target(rows) > 0.0).astype(np.int64)
        if self.family in ("linear", "student_t"):
            return rows.y
        return rows.y.astype(np.int64)


def glm_parts(coreset: Coreset, exporter: str) -> GlmParts:
    """The parts of a coreset's regression, or why it has none."""
    model = coreset.model
    family, options = _family(model)
    if family is None or not isinstance(model, GLM):
        raise TypeError(
            f"{exporter} is for models of that library and for the built-in regressions; "
            f"{type(model).__name__} has no form there. Its weighted rows are coreset.rows and "
            "coreset.weights (weights multiply log-likelihoods)"
        )
    names = model.parameter_names
    vector = all(name == f"beta[{k}]" for k, name in enumerate(names))
    return GlmParts(
        model=model,
        family=family,
        options=options,
        name="beta" if vector else "coefficients",
        columns=() if vector else names,
    )


def _family(model: Any) -> tuple[Family | None, dict[str, float]]:
    match model:
        case LogisticRegression():
            return "logistic", {}
        case PoissonRegression(link="log"):
            return "poisson_log", {}
        case PoissonRegression():
            return "poisson_softplus", {}
        case LinearRegression():
            return "linear", {"noise_sd": float(model.noise_sd)}
        case StudentTRegression():
            return "student_t", {"df": float(model.df), "scale": float(model.scale)}
        case NegativeBinomialRegression():
            return "negative_binomial", {"dispersion": float(model.dispersion)}
        case _:
            return None, {}
