"""Which parameters a row touches, found from the derivatives of any JAX model.

A gather such as `b[g]` shows exactly: ∂f_n/∂θ_k is zero at every θ unless parameter k is of row n's
group. So the touched parameters of some random rows at some random θ are looked at, and a group
term is a whole-number column v of the data with

    row n touches, of the parameters {a + s·v : all values v}, none but a + s·v_n,

for some first place a and stride s: s = 1 for a vector b[g], s = q for rows of a matrix b[g] with q
effects. What is found on some rows is verified on others. Parameters of no group that a row
touches are shared; those that no row of all touches are the prior's alone: scales and, if they do
not change how the others' prior bends, means, which are fitted with what is shared.

A log scale u that rows see only as e^u z_g, ∂f/∂u = z_g ∂f/∂z_g, is a scale as well: the structure
then holds in the coordinates b_g = e^u z_g (`models.touching`). Without groups rows that see many
parameters through few predictors (`predictors`) have a structure, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corebayes.adapters.predictors import find_predictors
from corebayes.models.custom.compiling import float64
from corebayes.models.custom.touching import Driver, RowStructure
from corebayes.models.structure import Effects, Structure
from corebayes.rows import Rows
from corebayes.scan.passes import rows_of_width
from corebayes.types import Array, Block, Indices, Model

RowTerms = Callable[[Any, Mapping[str, Any]], Any]
Bools = NDArray[np.bool_]

# Rows that are looked at: half to find with, all to verify; each at so many θ.
NUM_ROWS, NUM_POINTS = 384, 3
# How far from zero, and where it is seen how steep rows are.
STEP, NEAR = 0.3, 1e-4
# Rows of a matrix of effects have a few at most.
MAX_STRIDE = 16
# A slope may be multiplied by zero in a row, but not in most rows nor in all rows of a group.
LEAST_ROWS, LEAST_GROUPS = 0.5, 0.8
# Effects that one scale may multiply together.
MOST_SCALED = 3
# Predictors of rows without groups, at most, and parameters for each of them at least.
MOST_PREDICTORS, LEAST_SEEN = 8, 2
# How near zero slopes of rows are looked at that have none further out, where they are flat.
NEARER = (1.0, 1e-2, 1e-4)


def find_row_structure(
    model: Model, row_terms: RowTerms, data: Rows, *, seed: int = 0
) -> RowStructure | None:
    """The structure of a bound model whose potentials of some rows are `row_terms(theta, fields)`,
    (n,), in JAX; None when rows have no parameters of groups and see most others one by one.

    Cost: a pass over the rows with one gradient, and some hundred rows' gradients of d numbers.
    """
    rng = np.random.default_rng(seed)
    block = data.take(data.some(rng, min(NUM_ROWS, data.num_rows)))
    seen = row_slopes(row_terms, block, model.dim, rng)
    touched = np.any(seen.slopes != 0.0, axis=0)
    if not np.isfinite(seen.slopes).all():
        return None
    if touched.all() and not _sees_little(find_predictors(seen.slopes)):
        return None
    overview = data.ask(_Overview(model, seen.places[0]))
    taken, names = np.zeros(model.dim, dtype=bool), data.column_names
    terms: list[tuple[Driver, Indices]] = []
    for (field, column), extent in overview.extents.items():
        label = names[column] if field == "X" and column is not None and names else ""
        driver = Driver(field, column, int(extent.lowest), int(extent.highest), label)
        # Two values in one of many columns are a dummy variable.
        fewest = 1 if column is None else 2
        if not extent.whole or not fewest <= driver.last - driver.first < model.dim:
            continue
        positions = _positions(touched, block, driver, taken)
        if positions.size:
            terms.append((driver, positions))
    found = row_structure(terms, overview.touched & ~taken, block, seen)
    return found if terms or _sees_little(found.predictor_of) else None


def _sees_little(predictor_of: Indices) -> bool:
    """Whether many parameters are seen through few predictors."""
    number = int(predictor_of.max(initial=-1)) + 1
    return 0 < number <= min(MOST_PREDICTORS, predictor_of.size // LEAST_SEEN)


def row_structure(
    terms: Sequence[tuple[Driver, Indices]], shared: Bools, block: Block, seen: RowSlopes | None
) -> RowStructure:
    """Group terms with the places of their effects, and what else rows touch; `seen` of the block
    tells which of that are scales of effects, and what is seen together."""
    shared, taken = shared.copy(), np.zeros(shared.size, dtype=bool)
    lines = [
        (line, driver.values(block).astype(np.int64) - driver.first)
        for driver, positions in terms
        for line in positions.T
    ]
    scale_of = np.full(shared.size, -1, dtype=np.int64)
    if seen is not None:
        for scale in np.flatnonzero(shared):
            free = [pair for pair in lines if scale_of[pair[0][0]] < 0]
            for line in _scaled_lines(seen, int(scale), free):
                scale_of[line] = scale
                shared[scale] = False
    for line, _ in lines:
        taken[line] = True
    effects = tuple(
        Effects(driver.name, int(positions[0, 0]), len(positions), positions.shape[1], positions)
        for driver, positions in terms
    )
    structure = Structure(np.flatnonzero(shared), np.flatnonzero(~shared & ~taken), effects)
    drivers = tuple(driver for driver, _ in terms)
    number = structure.shared.size + len(lines)
    predictor_of, places = np.arange(number), np.empty((0, number))
    if seen is not None:
        slopes = _touched_slopes(seen, structure.shared, lines, scale_of)
        predictor_of = find_predictors(slopes)
        rng, shape = np.random.default_rng(9), (len(NEARER), number)
        signs = np.where(rng.uniform(size=shape) < 0.5, -1.0, 1.0)
        places = signs * rng.uniform(0.5, 1.5, size=shape) * _steps(np.concatenate(slopes))
        places *= np.array(NEARER)[:, None]
    nothing = np.empty(0, dtype=np.int64)
    return RowStructure(structure, drivers, scale_of, nothing, predictor_of, places)


def _touched_slopes(
    seen: RowSlopes, shared: Indices, lines: Sequence[tuple[Indices, Indices]], scale_of: Indices
) -> Array:
    """(K, n, m): slopes in the touched parameters, those of effects in the coordinates e^u z."""
    rows = np.arange(int(seen.slopes.shape[1]), dtype=np.int64)
    parts = [seen.slopes[:, :, shared]]
    for line, groups in lines:
        scale = scale_of[line[0]]
        factor = np.ones(len(seen.places)) if scale < 0 else np.exp(-seen.places[:, scale])
        parts.append((factor[:, None] * seen.slopes[:, rows, line[groups]])[:, :, None])
    return np.concatenate(parts, axis=2)


class RowSlopes(NamedTuple):
    """Gradients of some rows at some θ."""

    places: Array
    """(K, d)."""
    slopes: Array
    """(K, n, d)."""


def row_slopes(row_terms: RowTerms, block: Block, dim: int, rng: np.random.Generator) -> RowSlopes:
    """Exact ones: a row that does not touch a parameter has a zero there."""
    jax: Any = sys.modules["jax"]
    jacobian = jax.jit(jax.jacrev(row_terms))
    with float64():
        near = np.asarray(jacobian(NEAR * rng.normal(size=dim), dict(block.fields)))
        places = rng.normal(size=(NUM_POINTS, dim)) * _steps(near)
        slopes = [np.asarray(jacobian(theta, dict(block.fields))) for theta in places]
    return RowSlopes(places, np.stack(slopes))


def _steps(slopes: Array) -> Array:
    """How far each parameter may go from zero before rows go flat, where slopes are zero too: a
    coefficient of miles or dollars a thousandth of what another may."""
    sizes = np.sqrt(np.mean(np.square(slopes), axis=0))
    return STEP / np.maximum(1.0, 2.0 * np.where(np.isfinite(sizes), sizes, 0.0))


def _scaled_lines(
    seen: RowSlopes, scale: int, lines: Sequence[tuple[Indices, Indices]]
) -> list[Indices]:
    """The effects that rows see only multiplied by e^u, u the parameter `scale`: the fewest lines
    with ∂f/∂u = Σ z ∂f/∂z over them, at every row."""
    rows = np.arange(int(seen.slopes.shape[1]), dtype=np.int64)
    pulls = [
        seen.places[:, line[groups]] * seen.slopes[:, rows, line[groups]] for line, groups in lines
    ]
    own = seen.slopes[:, :, scale]
    for number in range(1, min(len(lines), MOST_SCALED) + 1):
        for chosen in combinations(range(len(lines)), number):
            total = sum(pulls[place] for place in chosen)
            if np.any(own) and np.allclose(own, total, rtol=1e-9, atol=1e-12):
                return [lines[place][0] for place in chosen]
    return []


def _positions(touched: Bools, block: Block, driver: Driver, taken: Bools) -> Indices:
    """(groups, effects) positions of all effects that the driver decides on; they are `taken`."""
    values = driver.values(block).astype(np.int64)
    found: list[Indices] = []
    while True:
        lines = max(
            (_lines(touched, values, driver, taken, stride) for stride in range(1, MAX_STRIDE + 1)),
            key=len,
        )
        if not lines:
            return np.stack(found, axis=1) if found else np.empty((0, 0), dtype=np.int64)
        for line in lines:
            taken[line] = True
        found += lines


def _lines(
    touched: Bools, values: Indices, driver: Driver, taken: Bools, stride: int
) -> list[Indices]:
    """Positions first + stride·value of single effects, for all values, found on half the rows."""
    half = len(values) // 2
    rows, places = np.nonzero(touched[:half] & ~taken)
    firsts, counts = np.unique(places - stride * values[rows], return_counts=True)
    lines: list[Indices] = []
    free = ~taken
    for first in firsts[counts >= LEAST_ROWS * half]:
        line = first + stride * np.arange(driver.first, driver.last + 1)
        inside = line[0] >= 0 and line[-1] < taken.size and free[line].all()
        if inside and _is_gather(touched[:, line], values - driver.first):
            lines.append(line)
            free[line] = False
    return lines


def _is_gather(touched: Bools, groups: Indices) -> bool:
    """Whether each row touches its own group's entry of (n, groups) and no other's."""
    own = touched[np.arange(len(groups)), groups]
    if not np.array_equal(touched.sum(axis=1), own) or own.mean() < LEAST_ROWS:
        return False
    present = np.unique(groups)
    return np.unique(groups[own]).size >= max(2.0, LEAST_GROUPS * present.size)


class _Extent(NamedTuple):
    """Of one column: its range, and whether it holds whole numbers."""

    lowest: float
    highest: float
    whole: bool

    def joined(self, other: _Extent) -> _Extent:
        lowest, highest = min(self.lowest, other.lowest), max(self.highest, other.highest)
        return _Extent(lowest, highest, self.whole and other.whole)


class _Seen(NamedTuple):
    touched: Bools
    """Which parameters any row touches."""
    extents: dict[tuple[str, int | None], _Extent]


@dataclass(frozen=True)
class _Overview:
    """What all rows touch together, and the range of every column."""

    model: Model
    theta: Array

    @property
    def block_rows(self) -> int:
        return rows_of_width(64)

    def answer(self, block: Block, numbers: Indices) -> _Seen:
        # Unequal weights, so that no slopes cancel.
        weights = 1.0 + np.mod(numbers * 0.6180339887498949, 1.0)
        gradient = self.model.gradient(self.theta, block, weights)
        extents = {
            place: _Extent(float(v.min()), float(v.max()), bool(np.all(v == np.rint(v))))
            for place in _columns(block)
            for v in [_values(block, *place)]
        }
        return _Seen(gradient != 0.0, extents)

    def merge(self, first: _Seen, second: _Seen) -> _Seen:
        extents = {
            place: extent.joined(second.extents[place]) for place, extent in first.extents.items()
        }
        return _Seen(first.touched | second.touched, extents)


def _columns(block: Block) -> Iterator[tuple[str, int | None]]:
    for name, values in block.fields.items():
        if values.ndim == 1:
            yield name, None
        elif values.ndim == 2:
            yield from ((name, column) for column in range(values.shape[1]))


def _values(block: Block, field: str, column: int | None) -> Array:
    values = block[field]
    return values if column is None else values[:, column]
