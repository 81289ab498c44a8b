"""Posteriors of several modes with KL known from a grid, and coresets right and wrong for them.

frequency   y ~ N(sin((2 + δ) t), 1), t near whole numbers: δ has aliases 2π apart
lost        rows of two kinds that share out −θ²/2 and a second mode some deviations away
cauchy      Cauchy noise around one location, rows in two clusters: a mode at each
labels      x ~ ½ N(a, 1) + ½ N(b, 1): exchanging a and b changes nothing
square      Cauchy noise around θ²: the sign of θ changes nothing
absolute    Gaussian noise around |θ|
product     Gaussian noise around a·b: two ridges
dims        as lost, in two to eight dimensions
banana      Gaussian noise around a + b²: a ridge that is bent
funnel      Gaussian noise around b, with b ~ N(0, e^a)
carried     a second mode that rests on one to fifty rows of up to 1e6 (`carried_modes.py`)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from benchmarks.carried_modes import carried_problem

import corebayes as cb
from corebayes.coreset import Coreset
from corebayes.rows import open_rows
from corebayes.types import Block

Array = np.ndarray

# Nats below everything else that count as nothing.
NOTHING = 30.0


class Case(NamedTuple):
    """A coreset and what is true of it."""

    name: str
    coreset: Coreset
    rows: Any
    kl: float


def frequency_likelihood(draws: Array, block: Block) -> Array:
    return -0.5 * np.square(block["y"][:, None] - np.sin((2.0 + draws[:, 0]) * block["t"][:, None]))


def lost_likelihood(draws: Array, block: Block) -> Array:
    """`kind` 0 is the first mode's row, 1 the second's; `share` of the whole, height, place."""
    return two_kinds(draws[:, 0], -0.5 * np.square(draws[:, 0]), block)


def two_kinds(along: Array, first: Array, block: Block) -> Array:
    """Rows that share out `first` and rows that share out a second mode, `place` along a line."""
    # The same in every row, so that a thousand rows cost no more than two.
    place, height = block["place"][0], block["height"][0]
    second = np.logaddexp(0.0, place * along - 0.5 * np.square(place) + height)
    return block["share"][:, None] * np.stack([first, second])[block["kind"].astype(int)]


def cauchy_likelihood(draws: Array, block: Block) -> Array:
    return -np.log1p(np.square(block["x"][:, None] - draws[:, 0]))


def labels_likelihood(draws: Array, block: Block) -> Array:
    x = block["x"][:, None]
    return np.logaddexp(-0.5 * np.square(x - draws[:, 0]), -0.5 * np.square(x - draws[:, 1]))


def square_likelihood(draws: Array, block: Block) -> Array:
    return -np.log1p(np.square(block["x"][:, None] - np.square(draws[:, 0])))


def absolute_likelihood(draws: Array, block: Block) -> Array:
    return -0.5 * np.square(block["x"][:, None] - np.abs(draws[:, 0]))


def product_likelihood(draws: Array, block: Block) -> Array:
    return -0.5 * np.square(block["x"][:, None] - draws[:, 0] * draws[:, 1])


def dims_likelihood(draws: Array, block: Block) -> Array:
    """As `lost_likelihood`, the second mode `place` deviations along a diagonal of all axes."""
    diagonal = draws.sum(axis=1) / np.sqrt(draws.shape[1])
    return two_kinds(diagonal, -0.5 * np.sum(np.square(draws), axis=1), block)


def banana_likelihood(draws: Array, block: Block) -> Array:
    return -0.5 * np.square(block["x"][:, None] - draws[:, 0] - np.square(draws[:, 1]))


def location_likelihood(draws: Array, block: Block) -> Array:
    return -0.5 * np.square(block["x"][:, None] - draws[:, 1])


def funnel_prior(draws: Array) -> Array:
    """θ_2 ~ N(0, e^θ_1) with θ_1 ~ N(0, 3²)."""
    scale = draws[:, 0]
    return -np.square(scale) / 18.0 - 0.5 * scale - 0.5 * np.square(draws[:, 1]) * np.exp(-scale)


def normal_prior(deviation: float) -> Callable[[Array], Array]:
    return lambda draws: -0.5 * np.sum(np.square(draws / deviation), axis=1)


def line(low: float, high: float, number: int) -> Array:
    return np.linspace(low, high, number)[:, None]


def plane(low: float, high: float, number: int) -> Array:
    axis = np.linspace(low, high, number)
    return np.column_stack([values.ravel() for values in np.meshgrid(axis, axis)])


def funnel_places() -> Array:
    axes = np.linspace(-14.0, 14.0, 141), np.linspace(-4.0, 6.0, 501)
    return np.column_stack([values.ravel() for values in np.meshgrid(*axes)])


def log_shares(model: Any, grid: Array, block: Block, weights: Array) -> Array:
    parts = np.array_split(grid, max(1, len(grid) * len(block) // 2**20))
    sums = np.concatenate([model.sum_potentials(part, block, weights) for part in parts])
    logs = sums + model.log_prior(grid)
    return logs - np.logaddexp.reduce(logs)


class Grid(NamedTuple):
    """Log masses of the cells of a grid under the posterior of all rows."""

    places: Array
    full: Array
    empty: Array | None = None
    """Cells where the posterior of all rows has nothing; what a coreset has there is off by at
    least this many nats."""

    def kl(self, coreset: Coreset) -> float:
        """KL(π_w ‖ π) by summing over the cells."""
        if self.empty is None:
            ours = log_shares(coreset.model, self.places, coreset.rows, coreset.weights)
            return float(np.exp(ours) @ (ours - self.full))
        places = np.concatenate([self.places, self.empty])
        ours = log_shares(coreset.model, places, coreset.rows, coreset.weights)
        near = ours[: len(self.places)]
        stray = float(np.exp(ours[len(self.places) :]).sum())
        return float(np.exp(near) @ (near - self.full)) + NOTHING * stray


def grid(model: Any, places: Array, block: Block, weights: Array) -> Grid:
    """`block` and its weights stand for all rows."""
    return Grid(places, log_shares(model, places, block, weights))


def of_rows(model: Any, rows: Any, indices: Array, weights: Array) -> Coreset:
    indices = np.asarray(indices, dtype=np.int64)
    return Coreset(
        indices, weights, rows.take(indices), model, rows.num_rows, float(rows.total_count)
    )


def weighted_rows(
    rng: np.random.Generator, model: Any, rows: Any, wrong: Array
) -> Iterator[tuple[str, Coreset]]:
    """Coresets of a few hundred rows: near the truth, further off, at random, and all wrong."""
    number = rows.num_rows
    everything = np.arange(number)
    near = np.exp(0.02 * rng.normal(size=number) / np.sqrt(number / 400.0))
    yield "near", of_rows(model, rows, everything, near)
    yield "off", of_rows(model, rows, everything, np.exp(0.3 * rng.normal(size=number)))
    few = np.sort(rng.choice(number, size=max(20, number // 8), replace=False))
    yield "random", of_rows(model, rows, few, np.full(few.size, number / few.size))
    yield "wrong", of_rows(model, rows, everything, wrong)


def frequency_problem(seed: int, number: int) -> tuple[Any, Any, Grid]:
    """Rows, the bound model, and the truth on a grid."""
    rng = np.random.default_rng(seed)
    t = rng.integers(0, 60, number) + 0.03 * rng.normal(size=number)
    rows = open_rows({"t": t, "y": np.sin(2.0 * t) + rng.normal(size=number)})
    model = cb.CustomModel(frequency_likelihood, normal_prior(3.0), 1).bind(rows)
    # Far from an alias all rows leave nothing, but a few may: up to where the prior has nothing.
    step = 1e-3 * np.sqrt(200.0 / number)
    aliases = 2.0 * np.pi * np.arange(-3, 4)
    places = np.concatenate([alias + np.arange(-0.05, 0.05, step) for alias in aliases])
    wide = np.arange(-60.0, 60.0, step)
    far = np.min(np.abs(wide[:, None] - aliases), axis=1) > 0.05
    block = rows.take(np.arange(number))
    if number <= 1000:
        # Aliases are not as narrow here.
        inside = far & (np.abs(wide) < 14.0)
        places, far = np.concatenate([places, wide[inside]]), far & ~inside
    truth = grid(model, places[:, None], block, np.ones(number))
    return rows, model, truth._replace(empty=wide[far, None])


def frequency(seed: int) -> Iterator[Case]:
    rng, number = np.random.default_rng(seed), (100, 200, 400)[seed % 3]
    rows, model, truth = frequency_problem(seed, number)
    # Rows that say of an alias what they say of the truth have more weight, others less.
    alias = np.array([[0.0], [2.0 * np.pi * rng.choice([-1, 1])]])
    at = model.potentials(alias, rows.take(np.arange(number)))
    wrong = np.exp(np.clip(2.0 * (at[:, 1] - at[:, 0]), -1.0, 1.0))
    for kind, coreset in weighted_rows(rng, model, rows, wrong):
        yield Case(f"frequency {kind} {number}", coreset, rows, truth.kl(coreset))


def lost(seed: int) -> Iterator[Case]:
    rng = np.random.default_rng(seed)
    number = (800, 4000, 20_000, 100_000)[seed % 4] if seed % 16 < 15 else 1_000_000
    place, share = rng.uniform(6.0, 14.0), rng.uniform(0.05, 0.5)
    height = np.log(share / (1.0 - share))
    kind = np.arange(number) % 2.0
    whole = np.ones(number)
    rows = open_rows(
        {
            "kind": kind,
            "share": whole * 2.0 / number,
            "place": place * whole,
            "height": height * whole,
        }
    )
    model = cb.CustomModel(lost_likelihood, normal_prior(20.0), 1).bind(rows)
    both = rows.take(np.arange(2))
    truth = grid(model, line(-15.0, 30.0, 20_001), both, np.full(2, number / 2.0))
    for name, indices, weights in (
        ("lost", [0], [number / 2.0]),
        ("near", [0, 1], [number / 2.0 * 1.001, number / 2.0 * 0.9995]),
        ("half", [0, 1], [number / 2.0, number / 2.2]),
    ):
        coreset = of_rows(model, rows, np.array(indices), np.array(weights))
        yield Case(f"lost {name} {number}", coreset, rows, truth.kl(coreset))


def dims(seed: int) -> Iterator[Case]:
    """Two modes in two to eight dimensions: across the diagonal all is as in one."""
    rng, dim, number = np.random.default_rng(seed), 2 + seed % 7, (800, 20_000)[seed % 2]
    place, mass = rng.uniform(6.0, 14.0), rng.choice([0.01, 0.06, 0.2, 0.5])
    whole = np.ones(number)
    fields = {
        "kind": np.arange(number) % 2.0,
        "share": whole * 2.0 / number,
        "place": place * whole,
        "height": np.log(mass / (1.0 - mass)) * whole,
    }
    rows = open_rows(fields)
    model = cb.CustomModel(dims_likelihood, normal_prior(20.0), dim).bind(rows)
    one = cb.CustomModel(dims_likelihood, normal_prior(20.0), 1).bind(rows)
    both = rows.take(np.arange(2))
    truth = grid(one, line(-15.0, 30.0, 20_001), both, np.full(2, number / 2.0))
    for name, indices, weights in (
        ("lost", [0], [number / 2.0]),
        ("near", [0, 1], [number / 2.0 * 1.001, number / 2.0 * 0.9995]),
        ("half", [0, 1], [number / 2.0, number / 2.2]),
    ):
        of_one = of_rows(one, rows, np.array(indices), np.array(weights))
        # The other axes: N(0, 1/(a + s²)) of precision a·weight, the same in each.
        ratio = (weights[0] * 2.0 / number + 1.0 / 400.0) / (1.0 + 1.0 / 400.0)
        across = 0.5 * (dim - 1) * (1.0 / ratio - 1.0 + np.log(ratio))
        coreset = of_rows(model, rows, np.array(indices), np.array(weights))
        yield Case(f"dims {name} {dim} {number}", coreset, rows, truth.kl(of_one) + across)


def carried(seed: int) -> Iterator[Case]:
    """Without the rows of the bump, and with one of them for all, at weights a little off."""
    rng = np.random.default_rng(seed)
    number = round(10.0 ** rng.uniform(2.9, 5.0)) if seed % 16 < 15 else 1_000_000
    bump = carried_problem(rng, number, int(np.ceil(50.0 ** rng.uniform())), 1 + seed % 8)
    few, dim = bump.carriers.size, bump.model.dim
    first, other = bump.carriers[0], np.setdiff1d(np.arange(few + 1), bump.carriers)[0]
    both, near = [first, other], (1.0 + 1e-3 * rng.normal(size=2)) * [few, number - few]
    order = np.argsort(both)
    for name, indices, weights in (
        ("lost", np.array([other]), np.array([float(number)])),
        ("near", np.array(both)[order], near[order]),
    ):
        coreset = of_rows(bump.model, bump.rows, indices, weights)
        yield Case(f"carried {name} {number} {few} {dim}", coreset, bump.rows, bump.kl(coreset))


def located(
    name: str,
    likelihood: Any,
    deviation: float | Callable[[Array], Array],
    dim: int,
    places: Array,
    make: Any,
) -> Callable[[int], Iterator[Case]]:
    """Cases of a likelihood of x alone; `make` gives x and weights that are wrong."""

    def cases(seed: int) -> Iterator[Case]:
        rng = np.random.default_rng(seed)
        x, wrong = make(rng, (60, 200, 2000 if dim == 1 else 120)[seed % 3])
        rows = open_rows({"x": x})
        prior = deviation if callable(deviation) else normal_prior(deviation)
        model = cb.CustomModel(likelihood, prior, dim).bind(rows)
        block = rows.take(np.arange(len(x)))
        truth = grid(model, places, block, np.ones(len(x)))
        for kind, coreset in weighted_rows(rng, model, rows, wrong):
            yield Case(f"{name} {kind} {len(x)}", coreset, rows, truth.kl(coreset))

    return cases


def clusters(rng: np.random.Generator, number: int) -> tuple[Array, Array]:
    # As many rows in each cluster, or the modes would have no masses to compare.
    number = min(number, 60)
    side = np.where(np.arange(number) % 2 == 0, -1.0, 1.0)
    x = side * rng.uniform(3.0, 7.0) + 0.5 * rng.standard_normal(number)
    return x, np.where(side > 0.0, 1.15, 0.85)


def two_means(rng: np.random.Generator, number: int) -> tuple[Array, Array]:
    x = rng.normal(size=number) + np.where(rng.random(number) < 0.5, -1.5, 2.0)
    return x, np.where(x > 0.0, 1.5, 0.7)


def wild(rng: np.random.Generator, number: int) -> tuple[Array, Array]:
    x = 1.5 + 0.7 * rng.normal(size=number)
    outside = rng.random(number) < 0.1
    x[outside] = 5.0 * rng.standard_cauchy(int(outside.sum()))
    return x, np.where(x > 1.5, 1.4, 0.8)


def plain(rng: np.random.Generator, number: int) -> tuple[Array, Array]:
    x = rng.uniform(0.5, 3.0) + rng.normal(size=number)
    return x, np.where(x > x.mean(), 1.2, 0.9)


FAMILIES: dict[str, Callable[[int], Iterator[Case]]] = {
    "frequency": frequency,
    "lost": lost,
    "cauchy": located("cauchy", cauchy_likelihood, 10.0, 1, line(-30, 30, 6001), clusters),
    "labels": located("labels", labels_likelihood, 5.0, 2, plane(-6, 6, 201), two_means),
    "square": located("square", square_likelihood, 5.0, 1, line(-8, 8, 8001), wild),
    "absolute": located("absolute", absolute_likelihood, 5.0, 1, line(-8, 8, 8001), plain),
    "product": located("product", product_likelihood, 2.0, 2, plane(-9, 9, 401), plain),
    "dims": dims,
    "carried": carried,
    "banana": located("banana", banana_likelihood, 2.0, 2, plane(-9, 9, 601), plain),
    "funnel": located("funnel", location_likelihood, funnel_prior, 2, funnel_places(), plain),
}
