"""Linear predictors of a mixed model's rows and back, in loops that numba compiles.

    η_k = offset + X β_k + Σ_e c_e b[g_e]      over the effects e of predictor k

The fixed effects of the linear predictors come one after the other, p each. Cost of both ways:
M·(k·p + effects of a row).
"""

from __future__ import annotations

from typing import NamedTuple

from corebayes.types import Array, Indices


class LinearRows(NamedTuple):
    """M rows of p columns that are the same for all k predictors."""

    offset: Array
    """(M,)."""
    design: Array
    """Of the fixed effects, (M, p)."""
    positions: Indices
    """Where the effects of a row are in θ, (effects, M)."""
    columns: Array
    """What they are multiplied with, (effects, M)."""
    predictors: Indices
    """Which predictor an effect is in, (effects,)."""

    def packed(self) -> list[Array | Indices]:
        # Both layouts of the design: one for each way, each read in order.
        both = self.design.T, self.design
        return [self.offset, *both, self.predictors, self.positions, self.columns]


def rows_length(rows: int, p: int, touched: int) -> int:
    return rows + 2 * p * rows + touched * (1 + 2 * rows)


def linear_predictors(theta: Array, numbers: Array, p: int, touched: int, etas: Array) -> None:
    """η of all rows, (k, M)."""
    linear, rows = etas.shape
    at_effects = rows + 2 * p * rows
    at_positions = at_effects + touched
    at_factors = at_positions + touched * rows
    for number in range(linear):
        eta = etas[number]
        for i in range(rows):
            eta[i] = numbers[i]
        for k in range(p):
            column, beta = numbers[rows + k * rows : rows + (k + 1) * rows], theta[number * p + k]
            for i in range(rows):
                eta[i] += column[i] * beta
    for k in range(touched):
        eta = etas[int(numbers[at_effects + k])]
        positions = numbers[at_positions + k * rows : at_positions + (k + 1) * rows]
        factors = numbers[at_factors + k * rows : at_factors + (k + 1) * rows]
        for i in range(rows):
            eta[i] += factors[i] * theta[int(positions[i])]


def pulled_rows(
    pulls: Array, linear: int, numbers: Array, p: int, touched: int, slope: Array
) -> None:
    """Slopes in θ, added, from those in the predictors, of which the first are linear."""
    rows = pulls.shape[1]
    at_design = rows + p * rows
    at_effects = rows + 2 * p * rows
    at_positions = at_effects + touched
    at_factors = at_positions + touched * rows
    for number in range(linear):
        pull, own = pulls[number], slope[number * p : (number + 1) * p]
        for i in range(rows):
            row = numbers[at_design + i * p : at_design + (i + 1) * p]
            for k in range(p):
                own[k] += pull[i] * row[k]
    for k in range(touched):
        pull = pulls[int(numbers[at_effects + k])]
        positions = numbers[at_positions + k * rows : at_positions + (k + 1) * rows]
        factors = numbers[at_factors + k * rows : at_factors + (k + 1) * rows]
        for i in range(rows):
            slope[int(positions[i])] += factors[i] * pull[i]


HELPERS = (rows_length, linear_predictors, pulled_rows)
