"""Whether a built-in model has the log density of the Bambi model that it was made from."""

from __future__ import annotations

from typing import Any

import numpy as np

from corebayes.models import MixedRegression
from corebayes.models.mixed.groups import ONE
from corebayes.rows import Rows
from corebayes.types import Array, Block

NUM_POINTS, TOLERANCE = 3, 1e-8


def same_density(own: Any, model: MixedRegression, rows: Rows) -> bool:
    """Whether the log density is that of Bambi's PyMC model at some points."""
    inner = own.backend.model
    density = inner.compile_logp(mode="FAST_COMPILE")
    block = rows.take(np.arange(rows.num_rows))
    points = np.random.default_rng(20251117).uniform(-0.7, 0.7, size=(NUM_POINTS, model.dim))
    points /= _sizes(model, rows.column_names, block)
    ours = model.log_prior(points) + model.sum_potentials(points, block)
    ours += model.log_base(block).sum()
    theirs = [bambis_density(own, model, density, theta) for theta in points]
    return bool(np.allclose(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE))


def _sizes(model: MixedRegression, names: tuple[str, ...], block: Block) -> Array:
    """The largest entry of the column of each coefficient and effect, or one.

    Predictors of thousands, as those of columns in dollars or miles, are lost in the rounding of a
    probability in one library and not in another.
    """
    largest = np.maximum(np.abs(block.X).max(axis=0, initial=1.0), 1.0)
    sizes = np.ones(model.dim)
    sizes[: model.num_fixed] = largest[: model.num_fixed]
    for term, found in zip(model.terms, model.structure.terms, strict=True):
        for place, effect in enumerate(term.effects):
            if effect != ONE:
                sizes[found.positions[:, place]] = largest[names.index(effect)]
    return sizes


def bambis_density(own: Any, model: MixedRegression, density: Any, theta: Array) -> float:
    """Bambi's log density at the parameters θ of the translated model."""
    inner, correction = own.backend.model, 0.0
    seen = {name: values[0] for name, values in model.constrain(theta[None]).items()}
    component = own.components[own.family.likelihood.parent]
    point: dict[str, Any] = {}
    for variable in inner.free_RVs:
        name, value = variable.name, inner.rvs_to_values[variable].name
        if name in seen:
            point[value] = np.log(seen[name]) if value.endswith("_log__") else seen[name]
        else:
            # An offset b/τ: dividing by τ multiplies the density by τ.
            effects = name.removesuffix("_offset")
            tau = seen[f"{effects}_sigma"]
            point[value] = seen[effects] / tau
            correction += np.log(np.broadcast_to(tau, seen[effects].shape)).sum()
    intercept = component.intercept_term
    if intercept is not None and own.center_predictors:
        # Bambi's intercept is the one at the mean of the columns.
        for term in component.common_terms.values():
            middle = np.asarray(term.data, dtype=np.float64).mean(axis=0)
            name = intercept.alias or intercept.name
            point[name] = point[name] + np.sum(middle * seen[str(term.alias or term.name)])
    return float(density(point)) - correction
