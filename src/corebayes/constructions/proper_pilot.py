"""A pilot's prior where coefficients have a flat one.

All rows are known to be enough for a flat prior (`models.improper`), but those of a pilot need not
be: the few rows that keep classes apart may not be among them. So a pilot's flat priors are wide
ones, on the scale of its columns; the passes over all rows that follow have the flat ones.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from corebayes.arrow.fit import Fitting
from corebayes.arrow.prior import ArrowPrior
from corebayes.models.mixed.regression import MixedRegression
from corebayes.models.priors.coefficient import Flat, StudentT
from corebayes.models.priors.stated import Placed
from corebayes.types import Block, Model

# How wide, in units of the predictor for a deviation of the column, and its degrees of freedom.
WIDTH, DEGREES = 10.0, 7.0


def proper(fitting: Fitting, model: Model, rows: Block) -> Fitting:
    """The fitting with proper priors instead of flat ones; itself where there are none."""
    arrow = fitting.prior
    if not isinstance(arrow, ArrowPrior) or not isinstance(model, MixedRegression):
        return fitting
    if not any(isinstance(one.prior, Flat) for one in arrow.prior.others):
        return fitting
    design = model.fixed_design(rows)
    sizes = np.sqrt(np.mean(np.square(design), axis=0))
    unit = float(np.std(rows.y)) if model.family.location_family else 1.0
    widths = WIDTH * (unit or 1.0) / np.where(sizes > 0.0, sizes, 1.0)
    others = tuple(
        Placed(place, StudentT(DEGREES, 0.0, float(widths[place % widths.size])))
        if isinstance(prior, Flat)
        else Placed(place, prior)
        for place, prior in arrow.prior.others
    )
    return replace(fitting, prior=replace(arrow, prior=replace(arrow.prior, others=others)))
