"""Places that one kind of row alone makes high: holes that no particle falls into.

A few rows may make a mode so narrow that no particle and no random place comes near it, in many
dimensions least of all: elsewhere these rows say what others say. But only to some digits. With x'
the row x with another row's value in one column,

    δ(θ) = f(θ; x) − f(θ; x')

is what x says because of that value, and wherever δ is not lost in rounding its logarithm leads to
where it is largest. So of every column the rows of the largest and the smallest value climb, each
on its own δ and on −δ, and Newton's method goes on from there with all rows. A row unlike others
whose δ is nowhere more than rounding is `silent`: what its value is for, no search can tell.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from numpy.random import Generator

from corebayes.deadline import check_time
from corebayes.samplers.laplace import prior_fit
from corebayes.samplers.parts import Part
from corebayes.samplers.posterior import Posterior
from corebayes.scan.unlike import number_columns
from corebayes.types import Array, Block, Indices, Model

# Columns that are looked at, those of the furthest values first.
MOST_COLUMNS = 8
# Potentials for places to begin from, these at least and at most; over how many orders of magnitude
# they are apart.
MOST_POTENTIALS, LEAST_PLACES, MOST_PLACES, SHORTEST = 1_000_000, 3_000, 100_000, 2.0
# Trials at a time around the best, how often, and the step below which it is the best.
NUM_TRIALS, MOST_STEPS, LEAST_STEP = 16, 100, 1e-4
# Deviations from the rows of some set at random, of so many, at which a value is rare.
RARE, NUM_SETS = 4.0, 16
# Degrees and width of the t that climbs are held by, in deviations of the prior.
DEGREES, WIDENING = 5.0, 1.5
# Rounding of a potential, in units of its last digit.
ROUNDING = 64.0 * float(np.finfo(np.float64).eps)


class Holes(NamedTuple):
    """Where kinds of rows say most, (K, d), and the column of a rare value that says nothing."""

    places: Array
    silent: str | None


class _Pairs(NamedTuple):
    """Rows x and after them as many x', the columns they differ in, and which values are rare."""

    rows: Block
    columns: Indices
    rare: Array

    def differences(self, model: Model, draws: Array) -> tuple[Array, Array]:
        """δ and its rounding, (R, S) each; zero where it is not finite."""
        with np.errstate(all="ignore"):
            one, other = np.split(model.potentials(draws, self.rows), 2)
            found, rounding = one - other, ROUNDING * (np.abs(one) + np.abs(other))
        finite = np.isfinite(found)
        return np.where(finite, found, 0.0), np.where(finite, rounding, 0.0)


def find_holes(rng: Generator, posterior: Posterior, alike: Block, places: Array) -> Holes:
    """From rows of a subsample, rows at random to compare with and places of a search.

    Cost: 1e6 potentials to begin from, and as many as a hundred times some 20,000 to climb.
    """
    none = Holes(np.empty((0, posterior.dim)), None)
    pairs = _pairs(posterior.rows, alike)
    if pairs is None:
        return none
    prior = prior_fit(posterior.model, posterior.rows)
    wide = Part(prior._replace(factor=WIDENING * prior.factor), DEGREES)
    number = int(np.clip(MOST_POTENTIALS // len(pairs.rows), LEAST_PLACES, MOST_PLACES))
    starts = places[rng.integers(len(places), size=number)]
    away = wide.draw(rng, number) - prior.mean
    starts = starts + away * np.power(10.0, -rng.uniform(0.0, SHORTEST, size=(number, 1)))
    found, rounding = pairs.differences(posterior.model, starts)
    # What the value says everywhere is no place.
    usual = np.median(found, axis=1, keepdims=True)
    gains = np.concatenate([found - usual, usual - found])
    heights = _log_gain(gains, np.concatenate([rounding, rounding])) + wide.log_density(starts)
    best = np.argmax(heights, axis=1)
    heard = np.isfinite(heights[np.arange(len(heights)), best])
    silent = ~heard[: len(found)] & ~heard[len(found) :] & (pairs.rare > RARE)
    words = _words(posterior.rows, int(pairs.columns[silent][0])) if silent.any() else None
    climbing = np.flatnonzero(heard)
    if climbing.size == 0:
        return none._replace(silent=words)
    climb = _Climb(posterior.model, pairs, usual, wide, climbing)
    return Holes(climb.climb(rng, starts[best[climbing]]), words)


class _Climb(NamedTuple):
    """Climbs on log ±(δ − usual), the first R upwards and the others downwards."""

    model: Model
    pairs: _Pairs
    usual: Array
    wide: Part
    which: Indices

    def heights(self, draws: Array) -> Array:
        """Of draws (K, S, d) the heights, (K, S); the rows of all climbs are asked at once."""
        count, number, dim = draws.shape
        flat = draws.reshape(-1, dim)
        found, rounding = self.pairs.differences(self.model, flat)
        gains = np.concatenate([found - self.usual, self.usual - found])[self.which]
        logs = _log_gain(gains, np.concatenate([rounding, rounding])[self.which])
        own = logs.reshape(count, count, number)[np.arange(count), np.arange(count)]
        return own + self.wide.log_density(flat).reshape(count, number)

    def climb(self, rng: Generator, best: Array) -> Array:
        """Each to the best of some trials around it, with steps that grow where they lead up."""
        count, dim = best.shape
        at, steps = self.heights(best[:, None])[:, 0], np.full(count, 0.3)
        for _ in range(MOST_STEPS):
            check_time()
            z = rng.standard_normal((count, NUM_TRIALS, dim)) / np.sqrt(dim)
            z *= np.power(10.0, -rng.uniform(0.0, 1.0, size=(count, NUM_TRIALS, 1)))
            trials = best[:, None] + steps[:, None, None] * (z @ self.wide.fit.factor.T)
            heights = self.heights(trials)
            top = np.argmax(heights, axis=1)
            reached = heights[np.arange(count), top]
            better = reached > at
            best = np.where(better[:, None], trials[np.arange(count), top], best)
            at, steps = np.where(better, reached, at), steps * np.where(better, 1.5, 0.6)
            steps = np.minimum(steps, 1.0)
            if np.all(steps < LEAST_STEP):
                break
        return best


def _log_gain(gains: Array, rounding: Array) -> Array:
    return np.log(gains, out=np.full(gains.shape, -np.inf), where=gains > rounding)


def _pairs(block: Block, alike: Block) -> _Pairs | None:
    """Of each column the rows of the largest and the smallest value, beside the usual one."""
    columns, others = number_columns(block), number_columns(alike)
    if columns is None or others is None or len(others) < 2:
        return None
    usual, scale = np.sort(others, axis=0)[len(others) // 2], others.std(axis=0)
    scale = np.maximum(scale, 1e-9 * np.maximum(np.abs(usual), 1.0))
    furthest = np.max(np.abs(columns - usual) / scale, axis=0)
    chosen = np.argsort(-furthest, kind="stable")[:MOST_COLUMNS]
    who = cast(Indices, np.concatenate([columns.argmax(axis=0), columns.argmin(axis=0)]))
    who, chosen = who.reshape(2, -1)[:, chosen].ravel(), np.tile(chosen, 2)
    differ = columns[who, chosen] != usual[chosen]
    who, chosen = who[differ], chosen[differ]
    if who.size == 0:
        return None
    rare = [
        _distance(others[:, column], float(columns[row, column])) / scale[column]
        for row, column in zip(who.tolist(), chosen.tolist(), strict=True)
    ]
    rows = block.take(who)
    changed = _with_values(rows, chosen, usual[chosen])
    return _Pairs(Block(rows.fields).append(changed), chosen, np.array(rare))


def _distance(values: Array, value: float) -> float:
    """From the nearest of the rows of a set, of the set that is furthest."""
    sets = np.array_split(values, min(NUM_SETS, len(values)))
    return max(float(np.min(np.abs(one - value))) for one in sets)


def _with_values(rows: Block, columns: Indices, values: Array) -> Block:
    """The rows with another value in one column each."""
    fields, first = dict(rows.fields), 0
    for name, field in rows.fields.items():
        if field.dtype.kind not in "fiub":
            continue
        flat = field.reshape(len(rows), -1).copy()
        here = np.flatnonzero((columns >= first) & (columns < first + flat.shape[1]))
        flat[here, columns[here] - first] = values[here]
        fields[name] = flat.reshape(field.shape)
        first += flat.shape[1]
    return Block(fields)


def _words(rows: Block, column: int) -> str:
    first = 0
    for name, field in rows.fields.items():
        width = int(np.prod(field.shape[1:])) if field.dtype.kind in "fiub" else 0
        if first <= column < first + width:
            place = f"column {column - first} of {name!r}" if width > 1 else f"column {name!r}"
            break
        first += width
    else:
        place = f"column {column}"
    return place
