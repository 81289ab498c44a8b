"""A table of numbers, labels and counts for the tests of files."""

import numpy as np
import pyarrow as pa

from tests.problems import coins

NUM_ROWS = 3000


def make_table(num_rows=NUM_ROWS, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, num_rows))
    y = coins(rng, 1.5 * a - 0.5 * b)
    n = rng.integers(4, size=num_rows)
    return pa.table({"a": a, "b": b.astype(np.float32), "y": y, "n": n})
