"""A bound regression on some of its columns: the same family, the same priors of what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from corebayes.models.families.glm import GLM
from corebayes.models.mixed.design import column_name
from corebayes.models.mixed.fixed_part import FixedPart
from corebayes.models.mixed.regression import MixedRegression
from corebayes.models.priors.normal import GaussianPrior, Normal
from corebayes.types import Array, Block, Indices

Regression = GLM | MixedRegression


def design_of(model: Regression, block: Block) -> Array:
    """The columns that every linear predictor has, (n, p)."""
    return model.design(block) if isinstance(model, GLM) else FixedPart(model).design(block)


def droppable(model: Regression) -> Indices:
    """Where the columns of the design are in X, (p,); −1 for one that cannot be left out: the
    intercept that is no column of X, and what effects of groups are multiplied with."""
    if isinstance(model, GLM):
        places = np.arange(model.dim - model.intercept)
        return np.append(places, -1) if model.intercept else places
    names, slopes = model.column_names, model.slopes()
    places = [-1 if names[place] in slopes else int(place) for place in model.fixed_columns]
    return np.array([*places, -1] if model.family.intercept else places, dtype=np.int64)


def with_columns(model: Any, columns: Sequence[int]) -> Any:
    """The bound model on these columns of X, in their order. No row is looked at."""
    return _glm(model, columns) if isinstance(model, GLM) else _mixed(model, columns)


def _glm(model: GLM, columns: Sequence[int]) -> GLM:
    bound = model.bound
    assert bound is not None
    places = [*columns, model.dim - 1] if model.intercept else list(columns)
    names = tuple(bound.names[place] for place in places)
    if bound.stated is not None:
        return model.with_priors(bound.stated.of(names)).with_target(bound.target)
    normal = _marginal(bound.prior, places)
    own = bound._replace(names=names, prior=normal.bind(len(places)), given=normal)
    return replace(model, prior=normal, bound=own)


def _mixed(model: MixedRegression, columns: Sequence[int]) -> MixedRegression:
    known = model.known
    # What was named by its position has another one now.
    named = {
        meaning: column_name(column, known.columns)
        for meaning, column in model.family.row_columns.items()
    }
    family = replace(model.family, **named)
    left = tuple(known.columns[place] for place in columns)
    bare = replace(model, family=family, bound=known._replace(columns=left))
    names = bare.fixed_names
    if known.stated is not None:
        stated = known.stated.of(names)
        return replace(bare, bound=bare.known._replace(prior=stated.normal, stated=stated))
    assert isinstance(known.prior, GaussianPrior)
    normal = _marginal(known.prior, [model.fixed_names.index(name) for name in names])
    bound = bare.known._replace(prior=normal.bind(len(names)), given=normal)
    return replace(bare, family=replace(family, prior=normal), bound=bound)


def _marginal(prior: GaussianPrior, places: Sequence[int]) -> Normal:
    covariance = prior.covariance[np.ix_(places, places)]
    variances = np.diagonal(covariance)
    independent = np.count_nonzero(covariance) == variances.size
    return Normal(prior.mean[list(places)], np.sqrt(variances) if independent else covariance)
