"""From a model to its arrow: which parts it has, and sums over rows in memory."""

from __future__ import annotations

import numpy as np

from corebayes.arrow.expectation import sums_of
from corebayes.arrow.fit import Fitting
from corebayes.arrow.gaussian import ArrowGaussian
from corebayes.arrow.layout import Layout
from corebayes.arrow.prior import ArrowPrior
from corebayes.arrow.sums import ArrowSums
from corebayes.arrow.traced_prior import TracedPrior
from corebayes.deadline import check_time
from corebayes.models.custom.touching import is_touching
from corebayes.models.mixed.prior import MixedPrior
from corebayes.models.structure import StructuredModel, is_structured
from corebayes.types import Array, Block, Model

# Rows whose sums are taken at once: some 100 MB with a hundred wide parameters.
ROWS_AT_ONCE = 16_384


def layout_of(model: Model) -> Layout:
    """The parts of a structured model's parameters, or an error that says what it lacks."""
    if not is_structured(model):
        raise TypeError(f"the rows of {type(model).__name__} are not known to touch few parameters")
    layout = Layout(model.structure)
    layout.check()
    return layout


def fitting_of(model: Model) -> Fitting:
    layout = layout_of(model)
    if is_touching(model):
        return Fitting(layout, TracedPrior(model, layout))
    prior = getattr(model, "prior", None)
    if not isinstance(prior, MixedPrior):
        raise TypeError(f"{type(model).__name__} does not say what its prior is made of")
    return Fitting(layout, ArrowPrior(prior, layout))


def beginning(model: Model, start: Array | None = None) -> Array:
    """Where a fit starts, in the coordinates of the arrow: at `start`, or in the middle of the
    prior where that is known."""
    if start is None:
        prior = getattr(model, "prior", None)
        start = prior.middle if isinstance(prior, MixedPrior) else np.zeros(model.dim)
    return model.rescaling.coordinates(start) if is_touching(model) else start


def sums_in_parts(
    model: StructuredModel, layout: Layout, gaussian: ArrowGaussian, rows: Block, weights: Array
) -> ArrowSums:
    """Sums over rows in memory. Cost: that of a pass over them."""
    parts = (slice(first, first + ROWS_AT_ONCE) for first in range(0, len(rows), ROWS_AT_ONCE))
    total: ArrowSums | None = None
    for part in parts:
        check_time()
        sums = sums_of(model, layout, gaussian, rows.take(part), weights[part])
        total = sums if total is None else total.plus(sums)
    return total or sums_of(model, layout, gaussian, rows, weights)
