"""Where the chosen rows lie among all rows, seen along the two widest directions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corebayes.coreset import Coreset
from corebayes.rows import Rows
from corebayes.types import Array, Block

NUM_SHOWN = 2000


def flat(values: Array) -> Array:
    """A field as columns, also of no rows at all."""
    return values.reshape(len(values), int(np.prod(values.shape[1:])))


class Landscape(NamedTuple):
    """Places (n, 2) of some rows of the data and of the coreset's, and what the axes are."""

    some: Array
    chosen: Array
    axes: tuple[str, str]


def landscape(rng: np.random.Generator, coreset: Coreset, data: Rows) -> Landscape | None:
    """Rows in units of their columns' standard deviations, on their first two principal axes.

    One column is shown against the target. None when no column varies. Cost: 2,000 rows are read.
    """
    number = min(NUM_SHOWN, data.num_rows)
    sampled = data.take(data.some(rng, number))
    sampled = sampled.take(np.flatnonzero(sampled.multiplicity() > 0.0))
    features, ours = _features(sampled), _features(coreset.rows)
    scale = features.std(axis=0)
    varying = scale > 0.0
    if not np.any(varying):
        return None
    if varying.sum() == 1:
        return _one_column(coreset, data, sampled, int(np.flatnonzero(varying)[0]))
    center, scale = features.mean(axis=0)[varying], scale[varying]
    standard = (features[:, varying] - center) / scale
    # The principal axes are the right singular vectors of the standardised rows.
    _, spread, directions = np.linalg.svd(standard, full_matrices=False)
    share = np.square(spread) / np.sum(np.square(spread))
    plane = directions[:2].T
    return Landscape(
        standard @ plane,
        (ours[:, varying] - center) / scale @ plane,
        (
            f"first principal axis ({100 * share[0]:.0f} % of the variance)",
            f"second principal axis ({100 * share[1]:.0f} %)",
        ),
    )


def _one_column(coreset: Coreset, data: Rows, sampled: Block, column: int) -> Landscape:
    names = data.column_names
    name = names[column] if column < len(names) else f"column {column}"
    pairs: list[Array] = []
    for block in (sampled, coreset.rows):
        target = block.fields.get("y")
        upright = np.zeros(len(block)) if target is None else flat(target)[:, 0]
        pairs.append(np.column_stack([_features(block)[:, column], upright]))
    return Landscape(pairs[0], pairs[1], (name, data.target_name if "y" in sampled.fields else ""))


def _features(block: Block) -> Array:
    """The columns of X; of a model with other fields all of them but y."""
    names = ["X"] if "X" in block.fields else [name for name in block.fields if name != "y"]
    return np.column_stack([flat(block.fields[name]) for name in names or list(block.fields)])
