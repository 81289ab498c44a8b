"""An adapted model told which parameters its rows touch, if they touch few.

The structure comes from the rows' derivatives (`structure`), or from what a custom model says
(`declared`); here it is held against the prior, whose Hessian must be an arrow as well: groups
independent given everything that is no effect. Then it is held against all rows (`seen_through`).
"""

from __future__ import annotations

import numpy as np

from corebayes.adapters.declared import declared_structure
from corebayes.adapters.jax_model import JaxModel
from corebayes.adapters.seen_through import has_one_mode, sees_no_more
from corebayes.adapters.structure import find_row_structure
from corebayes.arrow.expectation import expected
from corebayes.arrow.layout import MOST_WIDE, Layout
from corebayes.arrow.start import fitting_of
from corebayes.arrow.traced_prior import TracedPrior
from corebayes.models.custom.model import CustomModel
from corebayes.models.custom.touching import RowStructure, TouchingModel, is_touching
from corebayes.rows import Rows
from corebayes.types import Array, Indices, Model

# With fewer parameters the dense way is as good.
LEAST_DIM = 6
# How far a parameter is moved to see what it changes.
MOVED = 0.7


def bound_with_structure(model: Model, data: Rows) -> Model:
    """A model of plain JAX functions bound to its data, with its `row_structure` if it has one;
    any other model as it is."""
    if not isinstance(model, CustomModel):
        return model
    bound = model.bind(data)
    if bound.groups:
        _take_declared(bound, data)
    elif bound.jax_log_density is not None:
        learn_structure(bound, data)
    return bound


def _take_declared(model: CustomModel, data: Rows) -> None:
    found = declared_structure(model, data)
    model.row_structure = found
    model.row_structure = _with_means(model, found)
    Layout(model.row_structure.structure).check()
    if not _is_arrow(model):
        raise ValueError(
            "log_prior ties effects of different groups to each other: with groups they must be "
            "independent given the parameters of no group"
        )
    if not _has_jets(model, data):
        raise ValueError("log_likelihood has no finite derivatives at θ = 0")


def learn_structure(model: JaxModel | CustomModel, data: Rows) -> None:
    """Set the model's `row_structure`, if its rows touch few parameters."""
    if model.dim < LEAST_DIM:
        return
    try:
        found = find_row_structure(model, model.row_terms, data)
        if found is None or Layout(found.structure).num_wide > MOST_WIDE:
            return
        model.row_structure = found
        model.row_structure = _with_means(model, found)
        holds = _is_arrow(model) and _has_jets(model, data) and sees_no_more(model, data)
        # Without groups there is another way, which is made for several modes.
        if holds and (found.structure.terms or has_one_mode(model, data)):
            return
    except (TypeError, NotImplementedError):
        # Some functions have no derivatives in forward mode.
        pass
    model.row_structure = None


def _with_means(model: TouchingModel, found: RowStructure) -> RowStructure:
    """The prior's own parameters taken apart: scales change how the prior of others bends."""
    structure = found.structure
    dim, alone = found.scale_of.size, structure.scales
    others = np.setdiff1d(np.arange(dim), alone)
    means = np.array([s for s in alone if not _bends(model, int(s), others)], dtype=np.int64)
    # A mean's own scale bends no more than the mean.
    means = np.array(
        [s for s in means if not _bends(model, int(s), np.union1d(others, means[means != s]))],
        dtype=np.int64,
    )
    return found._replace(
        structure=structure._replace(
            shared=np.concatenate([structure.shared, means]),
            scales=np.setdiff1d(alone, means),
        ),
        untouched=means,
    )


def _bends(model: TouchingModel, place: int, others: Indices) -> bool:
    """Whether a parameter changes the Hessian of log π_0 among others."""
    rng = np.random.default_rng(7)
    dim = int(model.row_structure.scale_of.size) if model.row_structure else 0
    theta, probe = rng.normal(scale=0.3, size=(1, dim)), np.zeros((1, dim))
    probe[0, others] = rng.normal(size=others.size)
    moved = theta.copy()
    moved[0, place] += MOVED
    first, second = (model.prior_products(at, probe)[1][0, others] for at in (theta, moved))
    return not np.allclose(first, second, rtol=model.precision, atol=model.precision)


def _is_arrow(model: JaxModel | CustomModel) -> bool:
    """Whether the Hessian of log π_0 has no entries but an arrow's, by a random product."""
    assert is_touching(model)
    structure = model.structure
    assert structure is not None
    layout, rng = Layout(structure), np.random.default_rng(8)
    theta, probe = rng.normal(scale=0.3, size=(2, layout.dim))
    probe[structure.scales] = 0.0
    exact = model.prior_products(theta[None], probe[None])[1][0]
    sums = TracedPrior(model, layout).sums(theta)
    wide, own = probe[layout.wide_positions], probe[layout.own_positions]
    product = np.zeros(layout.dim)
    product[layout.wide_positions] = sums.wide_wide @ wide
    product[layout.wide_positions] += np.einsum("gqp,gq->p", sums.own_wide, own)
    product[layout.own_positions] = sums.own_wide @ wide
    product[layout.own_positions] += np.einsum("gqr,gr->gq", sums.own_own, own)
    compared: Array = np.delete(exact - product, structure.scales)
    return bool(np.all(np.abs(compared) <= model.precision * (1.0 + np.abs(exact).max())))


def _has_jets(model: JaxModel | CustomModel, data: Rows) -> bool:
    """Whether derivatives are finite, at a few rows."""
    assert is_touching(model)
    fitting, block = fitting_of(model), data.take(np.arange(min(8, data.num_rows)))
    split, start = fitting.layout.split(model, block), fitting.start(np.zeros(model.dim))
    jets = expected(model, block, start, start.whiten(split))
    return all(bool(np.isfinite(part).all()) for part in jets[:3])
