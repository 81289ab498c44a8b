"""Whether rows are independent given the parameters: rows together against rows alone.

A coreset is a sum over rows of terms that know nothing of each other. Centring inside the model,
autoregressive terms and priors that look at the data break that silently, and evaluating a few rows
together and each of them alone, at a random point, shows all three.
"""

from __future__ import annotations

import numpy as np

from corebayes.adapters.adapted import AdaptedModel, Terms
from corebayes.types import Array, Data

NUM_ROWS = 4
TOLERANCE = 1e-8
# A point where all is infinite shows nothing; another one is tried.
NUM_POINTS = 5


def check_rows_alone(model: AdaptedModel, data: Data) -> None:
    """Refuse a model whose terms depend on which other rows are there. Cost: a few rows."""
    rng = np.random.default_rng(20190101)
    num_rows = min(NUM_ROWS, data.num_rows)
    rows = np.sort(rng.choice(data.num_rows, size=num_rows, replace=False))
    block = data.take(rows)
    for _ in range(NUM_POINTS):
        theta = rng.uniform(-1.0, 1.0, size=model.dim)
        together = model.terms(theta, block)
        for position, row in enumerate(rows):
            alone = model.terms(theta, block.take(slice(position, position + 1)))
            _compare_prior(model, together, alone)
            _compare_rows(model, together, alone, position, int(row))
        if all(np.all(np.isfinite(values)) for values in together.rows.values()):
            return


def _compare_prior(model: AdaptedModel, together: Terms, alone: Terms) -> None:
    for site, value in together.prior.items():
        if not _same(value, alone.prior[site]):
            raise ValueError(
                f"the {model.library} site {site!r} has no term for each row, yet its log density "
                f"changes with the rows: {value:.10g} with {NUM_ROWS} of them, "
                f"{alone.prior[site]:.10g} with one. A coreset needs a prior that does not look at "
                "the data and a likelihood with one term for each row: compute what the prior "
                "takes from the data beforehand and pass it as a number"
            )


def _compare_rows(
    model: AdaptedModel, together: Terms, alone: Terms, position: int, row: int
) -> None:
    for site, values in together.rows.items():
        if not _same(values[position], alone.rows[site][0]):
            raise ValueError(
                f"the {model.library} site {site!r} depends on other rows: the log-likelihood of "
                f"row {row} is {values[position]:.10g} beside others and {alone.rows[site][0]:.10g}"
                " alone. Centring or scaling inside the model and autoregressive terms do that: "
                "compute what a row takes from other rows beforehand and pass it as an array"
            )


def _same(first: float | Array, second: float | Array) -> bool:
    return bool(np.isclose(first, second, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True))
