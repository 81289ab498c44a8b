"""KL against size: coresets of several sizes from one run, and uniform subsamples beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from corebayes.build import build_path
from corebayes.coreset import Coreset
from corebayes.diagnostics import gaussian_kl
from corebayes.rows import Rows
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Gaussian, Model, Points

UNIFORM_SIZES = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
NUM_TRIALS = 5


class Curve(NamedTuple):
    """KL by the number of rows asked for; infinite where a fit collapsed."""

    sizes: list[int]
    kls: list[float]


def coreset_curve(
    coreset: Coreset,
    data: Rows,
    full: Gaussian,
    sizes: Sequence[int],
    seed: int,
    progress: bool | None = None,
) -> Curve:
    """KL between Laplace fits of coresets of these sizes, all from one run, and of this one.

    Cost: one build.
    """
    model, smaller = coreset.model, [size for size in sizes if size < coreset.size]
    built = [coreset]
    if smaller:
        path = build_path(model, data, sizes=smaller, seed=seed, progress=progress)
        built = [*path, coreset]
    points = [Points(one.indices, one.rows) for one in built]
    kls = [laplace_kl(model, p, one.weights, full) for p, one in zip(points, built, strict=True)]
    return Curve([*smaller[: len(built) - 1], coreset.size], kls)


def uniform_curve(
    model: Model, data: Rows, full: Gaussian, seed: int, sizes: Sequence[int] = UNIFORM_SIZES
) -> Curve:
    """KL between Laplace fits of uniform subsamples: the median of a few seeds."""
    sizes = [size for size in sizes if size <= data.num_rows // 4]
    kls: list[float] = []
    for size in sizes:
        generators = [np.random.default_rng([seed, size, trial]) for trial in range(NUM_TRIALS)]
        rows = [data.some(rng, size) for rng in generators]
        parts = [Points(part, data.take(part)) for part in rows]
        scale = data.num_rows / size
        values = [laplace_kl(model, p, scale * p.rows.multiplicity(), full) for p in parts]
        kls.append(float(np.median(values)))
    return Curve(sizes, kls)


def traced_curve(coreset: Coreset) -> Curve:
    """KL as the construction saw it while rows were added: the last figure at each size."""
    seen = {
        int(entry["size"]): float(entry["kl"])
        for entry in coreset.trace
        if entry.get("kl") is not None and entry["size"] > 0
    }
    return Curve(sorted(seen), [seen[size] for size in sorted(seen)])


def laplace_kl(model: Model, points: Points, weights: Array, full: Gaussian) -> float:
    """KL(π_w ‖ π) between Laplace fits."""
    fit = Laplace().fit(Posterior(model, points.rows, weights), full.mean)
    # A fit of too few rows can be flat to round-off; its KL is infinite, and that is the answer.
    with np.errstate(divide="ignore"):
        return gaussian_kl(fit, full)
