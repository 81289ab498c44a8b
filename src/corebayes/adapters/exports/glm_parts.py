"""A built-in regression taken apart for another library: y ~ family(X · coefficients)."""

from __future__ import annotations

from typing import NamedTuple

from corebayes.coreset import Coreset
from corebayes.models.families.glm import GLM


class GlmParts(NamedTuple):
    """A regression and what its coefficients are called elsewhere."""

    model: GLM
    name: str
    """Of the vector of coefficients."""
    columns: tuple[str, ...]
    """Of each coefficient, when they have names of their own."""


def glm_parts(coreset: Coreset, exporter: str) -> GlmParts:
    """The parts of a coreset's regression, or why it has none."""
    model = coreset.model
    if not isinstance(model, GLM) or model.stan is None:
        raise TypeError(
            f"{exporter} is for models of that library and for the built-in regressions; "
            f"{type(model).__name__} has no form there. Its weighted rows are coreset.rows and "
            "coreset.weights (weights multiply log-likelihoods)"
        )
    names = model.parameter_names
    vector = all(name == f"beta[{k}]" for k, name in enumerate(names))
    return GlmParts(model, "beta" if vector else "coefficients", () if vector else names)
