"""One made-up data set for the models of every library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

DIM, NUM_GROUPS = 3, 4


def make_rows(num_rows: int, seed: int = 0) -> dict[str, Any]:
    """Features, groups and one target for each kind of likelihood."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(num_rows, DIM))
    group = rng.integers(0, NUM_GROUPS, size=num_rows)
    eta = X @ [0.8, -0.5, 0.3] + 0.2
    shifted = eta + np.array([-0.6, 0.1, 0.4, 1.0])[group]
    return {
        "X": X,
        "group": group,
        "binary": (rng.uniform(size=num_rows) < 1.0 / (1.0 + np.exp(-eta))).astype(np.int64),
        "grouped": (rng.uniform(size=num_rows) < 1.0 / (1.0 + np.exp(-shifted))).astype(np.int64),
        "count": rng.poisson(np.exp(0.5 * eta)),
        "real": eta + 0.5 * rng.normal(size=num_rows),
        "heavy": eta + 0.5 * rng.standard_t(3.0, size=num_rows),
        "pair": np.stack([eta, -0.5 * eta], axis=1) + 0.4 * rng.normal(size=(num_rows, 2)),
        "share": rng.beta(2.0, 5.0, size=num_rows),
        "label": rng.choice(3, p=[0.5, 0.3, 0.2], size=num_rows),
    }


class Adapted(NamedTuple):
    """An adapted model and its data, and what the library itself says."""

    model: Any
    data: Any
    log_density: Callable[[Any], float]
    """Of all rows at unconstrained θ, with Jacobians."""
    own_values: Callable[[Any], dict[str, Any]]
    """The model's variables at unconstrained θ."""
