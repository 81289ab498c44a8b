"""What a step of NUTS costs on the coreset and on all rows, measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from corebayes.coreset import Coreset
from corebayes.models.structure import is_structured
from corebayes.rows import Rows
from corebayes.scan.inline import one_blas_thread
from corebayes.types import Array, Block, Model

# Rows on which the price of all rows is measured; more would only take longer.
MEASURED_ROWS = 20_000
# What `corebayes.laplace` takes by default; and draws at which potentials are timed.
LAPLACE_PASSES, LAPLACE_DRAWS, FEW_DRAWS = 6, 1000, 20


class Cost(NamedTuple):
    """Seconds of one log density with its gradient; those of all rows scaled up from some."""

    coreset_seconds: float
    full_seconds: float
    num_measured: int
    laplace_seconds: float | None
    """Of `corebayes.laplace` on all rows, where that is for such a model."""


def gradient_costs(coreset: Coreset, data: Rows, theta: Array) -> Cost:
    """The price at θ, in memory: what it takes to read the rows comes on top."""
    number = min(MEASURED_ROWS, data.num_rows)
    block = data.take(data.some(np.random.default_rng(0), number))
    some = gradient_seconds(coreset.model, block, block.multiplicity(), theta, repeats=5)
    ours = gradient_seconds(coreset.model, coreset.rows, coreset.weights, theta, repeats=50)
    scale = data.num_rows / len(block)
    laplace = None
    if coreset.model.log_concave and not is_structured(coreset.model):
        laplace = scale * _laplace_seconds(coreset.model, block, theta)
    return Cost(ours, some * scale, len(block), laplace)


def _laplace_seconds(model: Model, block: Block, theta: Array) -> float:
    """Of Newton's passes, and of potentials at draws, measured at a few of them."""
    weights, few = block.multiplicity(), np.tile(theta, (FEW_DRAWS, 1))
    passes = shortest_seconds(lambda: model.gradient_and_hessian(theta, block, weights), 3)
    draws = shortest_seconds(lambda: model.sum_potentials(few, block, weights), 3)
    return LAPLACE_PASSES * passes + LAPLACE_DRAWS / FEW_DRAWS * draws


def gradient_seconds(
    model: Model, rows: Block, weights: Array, theta: Array | None = None, *, repeats: int
) -> float:
    """What NUTS pays for a step: the log density and its gradient."""
    place = np.zeros(model.dim) if theta is None else theta.copy()

    def step() -> None:
        # A model may remember the last answer, so every step asks somewhere else.
        place[:] += 1e-9
        model.sum_potentials(place[None, :], rows, weights)
        model.gradient(place, rows, weights)

    return shortest_seconds(step, repeats)


def shortest_seconds(step: Callable[[], object], repeats: int) -> float:
    """Seconds of the quickest run: what else the machine does can only add."""
    seconds: list[float] = []
    with one_blas_thread():
        for _ in range(repeats):
            began = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - began)
    return min(seconds)


def duration(seconds: float) -> str:
    """In the unit that a person would use."""
    if seconds < 1e-3:
        return f"{1e6 * seconds:.0f} µs"
    units = ((1.0, 1e-3, "ms"), (120.0, 1.0, "s"), (7200.0, 60.0, "min"), (172_800, 3600, "hours"))
    _, length, unit = next((one for one in units if seconds < one[0]), (0, 86_400, "days"))
    value = seconds / length
    return f"{value:,.{0 if value >= 99.95 else 1}f} {unit}"
