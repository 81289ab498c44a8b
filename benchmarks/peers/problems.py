"""The problems of the comparison: rows, a model, and how its truth is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from benchmarks.datasets import data_folder, logistic, regression
from benchmarks.dense import rare_rows
from benchmarks.flights import flights
from benchmarks.mixed import CASES
from benchmarks.reuse import counts

import corebayes as cb
from corebayes.build.groups import all_rows
from corebayes.types import Block


class Problem(NamedTuple):
    model: Any
    """Bound."""
    rows: cb.Rows
    size: int
    """Rows of the coreset."""

    @property
    def everything(self) -> cb.Coreset:
        """All rows as a coreset of themselves, to hand the model to other libraries."""
        return all_rows(self.model, self.rows)

    @property
    def block(self) -> Block:
        """All rows."""
        return self.rows.take(np.arange(self.rows.num_rows))

    def named(self, draws: np.ndarray) -> dict[str, np.ndarray]:
        """Draws (chains, draws, d) of the unconstrained parameters as variables that all
        libraries have, one entry each."""
        chains, number, dim = draws.shape
        if not hasattr(self.model, "constrain"):
            return {f"beta[{k}]": draws[:, :, k] for k in range(dim)}
        values = self.model.constrain(draws.reshape(-1, dim))
        return flattened(
            {name: own.reshape(chains, number, *own.shape[1:]) for name, own in values.items()}
        )


def flattened(values: dict[str, Any]) -> dict[str, np.ndarray]:
    """{"b": (chains, draws, 2)} as {"b[0]": (chains, draws), "b[1]": …}."""
    found: dict[str, np.ndarray] = {}
    for name, own in values.items():
        array = np.asarray(own)
        if array.ndim == 2:
            found[name] = array
            continue
        flat = array.reshape(*array.shape[:2], -1)
        found |= {f"{name}[{k}]": flat[:, :, k] for k in range(flat.shape[2])}
    return found


def glm(model: Any, rows: tuple[np.ndarray, np.ndarray], size: int) -> Problem:
    opened = cb.open(rows)
    return Problem(model.bind(opened), opened, size)


def mixed(name: str, size: int) -> Callable[[int], Problem]:
    def make(seed: int) -> Problem:
        case = CASES[name](seed)
        rows = case.rows()
        return Problem(case.model.bind(rows), rows, size)

    return make


# The paper's prior, whatever the default is.
UNIT = cb.Normal(0.0, 1.0)
LOGISTIC = cb.LogisticRegression(prior=UNIT)
COUNTS = cb.PoissonRegression(link="log", prior=UNIT)

TITLES = {
    "phishing": "phishing, logistic, 500 × 11",
    "counts": "counts with three rare indicators, Poisson, 1e5 × 10",
    "flights": "flights from New York, logistic, 292,138 × 12",
    "million": "generated rows, logistic, 1e6 × 10",
    "rare": "50 rare categories, logistic, 1e5 × 60",
    "few-groups": "(1 | g), 5 groups, logistic, 1e4 rows",
    "intercepts": "(1 | g), 100 groups, logistic, 1e5 rows",
}

PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "phishing": lambda seed: glm(LOGISTIC, regression(data_folder(), "phishing"), 80),
    "counts": lambda seed: glm(COUNTS, counts(seed, 100_000), 80),
    "flights": lambda seed: glm(LOGISTIC, flights()[:2], 90),
    "million": lambda seed: glm(LOGISTIC, logistic(seed, 1_000_000), 80),
    "rare": lambda seed: glm(LOGISTIC, rare_rows(seed), 800),
    "few-groups": mixed("few-groups", 60),
    "intercepts": mixed("intercepts", 500),
}
