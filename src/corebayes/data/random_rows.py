"""Random row numbers without an array of all of them."""

from __future__ import annotations

import numpy as np

from corebayes.types import Indices

# Row numbers that may be shuffled at once: 8 MB.
AT_ONCE = 2**20
# NumPy's hypergeometric draws end there.
MOST_HYPERGEOMETRIC = 10**9


def random_rows(rng: np.random.Generator, num_rows: int, size: int) -> Indices:
    """`size` different numbers below `num_rows`, sorted. Memory: of order `size`, not N."""
    # NumPy shuffles all N numbers to choose more than a fiftieth of them.
    few = num_rows <= AT_ONCE or 50 * size <= num_rows
    if few or num_rows >= MOST_HYPERGEOMETRIC:
        return _chosen(rng, num_rows, size)
    starts = np.arange(0, num_rows, AT_ONCE)
    lengths = np.minimum(AT_ONCE, num_rows - starts)
    sizes = rng.multivariate_hypergeometric(lengths, size, method="marginals")
    ranges = zip(starts, lengths, sizes, strict=True)
    return np.concatenate([start + _chosen(rng, length, part) for start, length, part in ranges])


def _chosen(rng: np.random.Generator, num_rows: int, size: int) -> Indices:
    return np.sort(rng.choice(num_rows, size=size, replace=False, shuffle=False)).astype(np.int64)
