"""Whether a structure that was found on some rows holds for all, and leads to one mode.

The slopes of all rows must have the directions of their predictors at further places, near zero and
not so near. A Gaussian fit from several places shows whether the posterior has modes that one fit
would not know of, such as those of labels that may be exchanged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from corebayes.arrow.fit import Fitted, fit
from corebayes.arrow.start import fitting_of, sums_in_parts
from corebayes.models.custom.touching import LocalModel, is_touching
from corebayes.rows import Rows
from corebayes.scan.passes import rows_of_width
from corebayes.types import Array, Block, Indices, Model

# Places, in units in which rows change by a fraction of a nat, and what differs by round-off.
UNITS, ROUND_OFF = (1.0, 6.0), 1e-7
# Slopes, of the largest that a row has, whose direction may be round-off.
FLAT = 1e-6
# Rows, starts beside zero and how far out they are in the same units; how far Newton goes.
NUM_ROWS, NUM_STARTS, FAR, SETTLED = 500, 5, 10.0, 1e-2
# Nats below the highest fit from which on a mode does not count: some hundred rows say much less of
# which is higher than all do.
LOWER = 20.0


def sees_no_more(model: Model, data: Rows) -> bool:
    """Whether no row sees anything but its predictors. Cost: a pass of 3·m potentials a row."""
    assert is_touching(model) and model.row_structure is not None
    known = model.row_structure
    if known.num_predictors == known.predictor_of.size:
        return True
    steps = known.places[0]
    places = steps * np.random.default_rng(10).normal(size=(len(UNITS), steps.size))
    apart = Apart(model, places * np.array(UNITS)[:, None])
    return bool(data.ask(apart) <= ROUND_OFF)


def has_one_mode(model: Model, data: Rows) -> bool:
    """Whether fits to some rows from several places end in one, and that from zero too.

    Cost: some dozen sums over 500 rows for each.
    """
    assert is_touching(model)
    rng = np.random.default_rng(11)
    block = data.take(data.some(rng, min(NUM_ROWS, data.num_rows)))
    starts = [np.zeros((1, model.dim)), _places(rng, model, FAR, NUM_STARTS)]
    fits = [_fitted(model, block, start) for start in np.concatenate(starts)]
    if fits[0] is None:
        return False
    first, highest = fits[0], max(one.bound for one in fits if one is not None)
    others = [one for one in fits if one is not None and one.bound >= highest - LOWER]
    return first.bound >= highest - LOWER and all(_same(first, one) for one in others)


def _fitted(model: LocalModel, block: Block, start: Array) -> Fitted | None:
    fitting, weights = fitting_of(model), block.multiplicity()
    try:
        with np.errstate(all="ignore"):
            return fit(
                fitting,
                fitting.start(start),
                lambda q: sums_in_parts(model, fitting.layout, q, block, weights),
                tolerance=SETTLED,
            )
    except (FloatingPointError, np.linalg.LinAlgError):
        return None


def _same(one: Fitted, other: Fitted) -> bool:
    """Whether the mean of a fit lies where draws of another do."""
    dim = one.gaussian.mean.size
    shift = other.gaussian.mean - one.gaussian.mean
    z = np.linalg.solve(one.gaussian.dense_factor, shift)
    return float(z @ z) <= dim + 4.0 * np.sqrt(2.0 * dim)


def _places(rng: np.random.Generator, model: LocalModel, units: float, number: int) -> Array:
    """Coordinates (number, d) around zero, each parameter on the scale that it has in rows."""
    known = model.row_structure
    assert known is not None
    steps = np.append(np.abs(known.places[0]), np.median(np.abs(known.places[0])))
    scales = units * steps[known.column_of]
    return scales * rng.normal(size=(number, scales.size))


@dataclass(frozen=True)
class Apart:
    """How far slopes lead away from the predictors, at touched parameters (K, m)."""

    model: LocalModel
    places: Array

    @property
    def block_rows(self) -> int:
        return rows_of_width(64 + 8 * self.places.shape[1] * self.model.num_predictors)

    def answer(self, block: Block, numbers: Indices) -> float:
        loads, known = self.model.loads(block), self.model.row_structure
        assert known is not None
        slopes = np.array([self.model.touched_slopes(place, block) for place in self.places])
        slopes = slopes[:, :, None] * known.members
        sizes = np.abs(slopes).max(axis=3, keepdims=True)
        # Nothing is said where slopes are zero, or no numbers, or so small beside those elsewhere
        # (a probability of nearly one) that round-off turns them.
        sizes = np.where(np.isfinite(sizes), sizes, 0.0)
        told = sizes > FLAT * sizes.max(axis=0)
        units = np.divide(slopes, sizes, out=np.zeros_like(slopes), where=told)
        away = units - loads * np.einsum("jnkm,nkm->jnk", units, loads)[..., None]
        return float(np.abs(away).max(initial=0.0))

    def merge(self, first: float, second: float) -> float:
        return max(first, second)
