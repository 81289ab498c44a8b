"""Posteriors that do not exist, named before any work begins.

A flat prior leaves a coefficient to the rows. These do not know it where a direction δ of the flat
coefficients leaves every likelihood as it is, or raises it for ever:

    x_nᵀδ = 0 for all rows (dependent columns), or
    x_nᵀδ ≥ 0 where ℓ_n stays bounded as η grows, ≤ 0 where it does as η falls, = 0 elsewhere
    (separation: Albert and Anderson 1984, for any family; of categories (x_nᵀδ)_y ≥ (x_nᵀδ)_k
    for the own category y and every other k).

The second is a linear programme. It is solved for some rows, its direction held against all, and
rows that contradict it are added, until there is no direction or no row contradicts.
And noise that is learned has no posterior where more rows than coefficients lie on one plane.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebayes.models.design import SeenRows
from corebayes.models.priors.coefficient import Flat
from corebayes.models.priors.stated import StatedPriors
from corebayes.models.rank import TOLERANCE, describe_deficiency
from corebayes.types import Array, Data, Indices

# A predictor so far out that only a limit is left of ℓ'.
FAR = 30.0
SLOPE_OF_NONE = 1e-6
# Rows of the first programme, those added in a round, and rows read at once.
FIRST_ROWS, MORE_ROWS, AT_ONCE = 1000, 500, 1 << 15
MOST_ROUNDS = 50
REMEDY = "give it a proper prior, Normal(0, 2.5) say"


def check_proper(model: Any, data: Data, seen: SeenRows) -> None:
    """A ValueError that names the parameter whose posterior does not exist, and why.

    Cost: nothing without flat priors and learned noise; with flat ones a few passes at most.
    """
    stated: StatedPriors | None = model.known.stated
    if stated is not None:
        flat = [place for place, other in stated.others if isinstance(other, Flat)]
        if flat:
            _check_flat(model, data, seen, flat)
    _check_noise(model, data, seen)


def _check_flat(model: Any, data: Data, seen: SeenRows, flat: list[int]) -> None:
    names, width = model.fixed_names, model.num_columns
    for number in range(len(model.family.linear)):
        own = [place for place in flat if place // width == number]
        columns = [place % width for place in own]
        problem = describe_deficiency(
            seen.gram[np.ix_(columns, columns)], [names[place] for place in own]
        )
        if problem:
            raise ValueError(
                f"the prior of {_listed(own, names)} is flat and {problem}: the posterior does not "
                f"exist; {REMEDY}"
            )
    if model.family.location_family:
        return
    columns = np.array(flat) % width
    deviations = seen.moments.deviations[columns]
    units = np.where(deviations > 0.0, deviations, np.abs(seen.moments.mean[columns]))
    direction = _separating(model, data, np.array(flat), units)
    if direction is not None:
        involved = [place for place, share in zip(flat, direction, strict=True) if share]
        raise ValueError(
            f"the prior of {_listed(involved, names)} is flat and the rows are separated along it: "
            f"ever larger values are ever more likely, and the posterior does not exist; {REMEDY}"
        )


def _separating(model: Any, data: Data, flat: Indices, units: Array) -> Array | None:
    """A direction of the flat coefficients along which no row's likelihood falls, if there is."""
    rng = np.random.default_rng(0)
    chosen = data.some(rng, min(FIRST_ROWS, data.num_rows))
    for _ in range(MOST_ROUNDS):
        direction = _programme(*_sides(model, data, chosen, flat, units)[1:])
        if direction is None:
            return None
        against = list[Indices]()
        for first in range(0, data.num_rows, AT_ONCE):
            numbers = np.arange(first, min(first + AT_ONCE, data.num_rows), dtype=np.int64)
            whose, X, up, down = _sides(model, data, numbers, flat, units)
            slope = X @ direction
            wrong = ((slope < -1e-7) & ~down) | ((slope > 1e-7) & ~up)
            against.append(whose[np.flatnonzero(wrong)])
        found = np.unique(np.concatenate(against))
        if not found.size:
            return direction
        some = rng.choice(found, min(MORE_ROWS, found.size), replace=False)
        chosen = np.union1d(chosen, some)
    return None


def _sides(
    model: Any, data: Data, numbers: Indices, flat: Indices, units: Array
) -> tuple[Indices, Array, NDArray[np.bool_], NDArray[np.bool_]]:
    """Row numbers, their flat columns, and whether ℓ stays bounded as η grows and as it falls."""
    block, family = data.take(numbers), model.family
    row, passed = model.row(block), block.multiplicity() == 0.0
    X = model.fixed_design(block)
    if len(family.linear) > 1:
        numbers, passed, differences = _above_others(family, row, numbers, passed, X)
        return numbers, differences[:, flat] / units, np.ones_like(passed), passed
    learned = {one.name: one.prior.mode for one in model.constants}
    constants = [
        np.full((1, 1), learned[one.name]) if one.name in learned else model.known_constants[place]
        for place, one in enumerate(family.learnable)
    ]

    def rises(eta: float, further: float) -> Array:
        at = (np.full((len(block), 1), place) for place in (eta, further))
        first, second = (family.log_likelihood([one, *constants], row) for one in at)
        return np.asarray(second - first).ravel()

    with np.errstate(all="ignore"):
        up = rises(FAR, FAR + 1.0) > -SLOPE_OF_NONE
        down = rises(-FAR, -FAR - 1.0) > -SLOPE_OF_NONE
    return numbers, X[:, flat] / units, up | passed, down | passed


def _above_others(
    family: Any, row: Any, numbers: Indices, passed: NDArray[np.bool_], X: Array
) -> tuple[Indices, NDArray[np.bool_], Array]:
    """For every row and every other category: η of its own less that one's, as a row of all
    coefficients (the first category has none)."""
    number, (rows, width) = len(family.linear) + 1, X.shape
    codes = family.codes({"y": row["y"].ravel()})
    own = np.eye(number)[codes]
    differences = own[:, None, :] - np.eye(number)[None]
    others = np.flatnonzero(np.arange(number) != codes[:, None])
    kept = differences.reshape(-1, number)[others, 1:]
    wide = kept[:, :, None] * np.repeat(X, number - 1, axis=0)[:, None, :]
    stacked = wide.reshape(rows * (number - 1), (number - 1) * width)
    return np.repeat(numbers, number - 1), np.repeat(passed, number - 1), stacked


def _programme(X: Array, up: NDArray[np.bool_], down: NDArray[np.bool_]) -> Array | None:
    """max Σ |x_nᵀδ| over directions in a box that no row is against; None where that is zero."""
    from scipy.optimize import linprog

    bound = X[~(up & down)]
    values, vectors = np.linalg.eigh(bound.T @ bound)
    if values[0] <= 1e-12 * max(values[-1], 1.0):
        # Rows that mind have nothing to say of it.
        largest = np.abs(vectors[:, 0]).max()
        return np.where(np.abs(vectors[:, 0]) > 1e-5 * largest, vectors[:, 0] / largest, 0.0)
    one_way = up != down
    signed = np.where(up & ~down, 1.0, -1.0)[one_way, None] * X[one_way]
    fixed = X[~up & ~down]
    solved = linprog(
        -signed.sum(axis=0),
        A_ub=-signed if len(signed) else None,
        b_ub=np.zeros(len(signed)) if len(signed) else None,
        A_eq=fixed if len(fixed) else None,
        b_eq=np.zeros(len(fixed)) if len(fixed) else None,
        bounds=(-1.0, 1.0),
        method="highs",
    )
    direction = np.zeros(X.shape[1]) if solved.x is None else np.asarray(solved.x, np.float64)
    if float((signed @ direction).sum()) <= 1e-6:
        return None
    return np.where(np.abs(direction) > 1e-7, direction, 0.0)


def _check_noise(model: Any, data: Data, seen: SeenRows) -> None:
    """Residuals of zero of more rows than coefficients: the density of small noise is infinite."""
    scales = [one.name for one in model.constants if one.in_units_of_target]
    if not scales or model.terms or not model.family.location_family:
        return
    num_columns = model.num_columns
    if data.num_rows <= num_columns:
        return
    gram = seen.gram
    norms = np.sqrt(np.diag(gram))
    if not np.all(np.isfinite(gram)):
        return
    norms[norms == 0.0] = 1.0
    shares = gram / np.outer(norms, norms)
    inside = shares[:num_columns, num_columns]
    explained = inside @ np.linalg.pinv(shares[:num_columns, :num_columns], hermitian=True) @ inside
    if shares[-1, -1] - explained > 1e3 * TOLERANCE * max(num_columns, 10):
        return
    # Near enough to zero for rounding to have made it: look at some rows themselves.
    some = data.some(np.random.default_rng(0), min(data.num_rows, 20 * num_columns + 1000))
    block = data.take(some)
    offset = model.offset(block)
    y = block.y if offset is None else block.y - offset
    design = model.fixed_design(block)
    scaled = design / norms[:num_columns]
    coefficients = np.asarray(np.linalg.lstsq(scaled, y)[0], dtype=np.float64)
    left = np.abs(y - scaled @ coefficients).max(initial=0.0)
    if left <= 1e-11 * np.abs(y).max(initial=0.0):
        raise ValueError(
            f"the target is an exact linear function of the columns: a {scales[0]} of zero fits "
            f"infinitely well and the posterior does not exist; give {scales[0]} a number"
        )


def _listed(places: list[int], names: tuple[str, ...]) -> str:
    return ", ".join(repr(names[place]) for place in places[:10])
