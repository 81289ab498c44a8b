"""Whether flat priors leave a direction that no row says anything about: an improper posterior.

A prior that is flat in some parameters has a gradient there that is the same at every θ. If the
gradients of all rows vanish along a direction v of those, the posterior does not fall along v, and
nothing that is drawn from it means anything. Flat priors under which every direction is seen by
some row are fine: nearly all of Stan's models have some.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from corebayes.adapters.jax_model import JaxModel
from corebayes.adapters.structure import row_slopes
from corebayes.rows import Rows
from corebayes.scan.passes import rows_of_width
from corebayes.types import Array, Block, Indices

# Rows to find directions with; what is found is held against all rows.
NUM_ROWS, NUM_POINTS, NUM_SUMS = 200, 3, 4
TOLERANCE = 1e-8


def refuse_improper(model: JaxModel, data: Rows) -> None:
    """An error that names the parameters, if a flat prior meets no row.

    Cost: three gradients of the prior; if any parameter has a flat one, some hundred rows'
    gradients, and a pass over the rows if those leave a direction out.
    """
    rng = np.random.default_rng(20191208)
    flat = _flat(model, rng)
    if flat.size == 0:
        return
    block = data.take(data.some(rng, min(NUM_ROWS, data.num_rows)))
    slopes = row_slopes(model.row_terms, block, model.dim, rng)
    seen = slopes.slopes.reshape(-1, model.dim)[:, flat]
    seen = seen[np.isfinite(seen).all(axis=1)]
    if seen.size == 0:
        return
    # Columns of one size, so that "nothing" is told from "little".
    sizes = np.abs(seen).max(axis=0)
    _, singular, right = np.linalg.svd(seen / np.where(sizes > 0.0, sizes, 1.0), full_matrices=True)
    values = np.zeros(flat.size)
    values[: singular.size] = singular
    empty = right[values <= TOLERANCE * max(values[0], 1e-300)]
    if empty.size == 0:
        return
    directions = np.zeros((len(empty), model.dim))
    directions[:, flat] = empty / np.where(sizes > 0.0, sizes, 1.0)
    totals = data.ask(_Sums(model, slopes.places[0]))
    changes = np.abs(totals @ directions.T).max(axis=0)
    within = np.linalg.norm(totals, axis=1).max() * np.linalg.norm(directions, axis=1)
    still = directions[changes <= TOLERANCE * np.maximum(within, 1e-300)]
    if len(still) == 0:
        return
    part = np.abs(still).max(axis=0)
    names = [n for n, p in zip(model.parameter_names, part, strict=True) if p > 1e-6 * part.max()]
    some = ", ".join(names[:6]) + ", …" * (len(names) > 6)
    raise ValueError(
        f"the posterior of the {model.library} model is improper: the prior of {some} is flat, and "
        f"{'no row depends on it' if len(names) == 1 else 'rows depend on them together only'}. "
        "Give it a proper prior, or leave it out of the model"
    )


def _flat(model: JaxModel, rng: np.random.Generator) -> Indices:
    """The parameters whose prior is flat, or falls at one rate for ever."""
    places = rng.normal(scale=2.0, size=(NUM_POINTS, model.dim))
    gradients = np.stack([model.log_prior_gradient(theta) for theta in places])
    same = np.isclose(gradients, gradients[0], rtol=1e-9, atol=1e-12).all(axis=0)
    return np.flatnonzero(same & np.isfinite(gradients).all(axis=0))


@dataclass(frozen=True)
class _Sums:
    """Gradients of all rows, added up with several sets of weights."""

    model: JaxModel
    theta: Array

    @property
    def block_rows(self) -> int:
        return rows_of_width(64)

    def answer(self, block: Block, numbers: Indices) -> Array:
        # Unequal weights, so that no slopes cancel.
        steps = np.sqrt(np.array([2.0, 3.0, 5.0, 7.0]))[:NUM_SUMS]
        weights = 1.0 + np.mod(numbers[None, :] * steps[:, None], 1.0)
        return np.stack([self.model.gradient(self.theta, block, one) for one in weights])

    def merge(self, first: Array, second: Array) -> Array:
        return first + second
