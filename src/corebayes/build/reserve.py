"""More rows beside a coreset, for whoever will add to it or merge it."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path

import numpy as np

from corebayes.build.around import FINE
from corebayes.build.run import Run, Tolerance
from corebayes.constructions import AnnealedSparseVI
from corebayes.coreset import Coreset


def with_reserve(
    run: Run, coreset: Coreset, size: int, checkpoint: str | PathLike[str] | None
) -> Coreset:
    """The coreset with a reserve of `size` rows, chosen around its posterior.

    Without one when it was interrupted, or none finer is found. Cost: a few more passes.
    """
    if coreset.reason == "interrupted" or coreset.indices.min(initial=0) < 0:
        return coreset
    problem = replace(run.problem, data=run.problem.data.using())
    rng = np.random.default_rng(run.seed)
    finer = Run(
        problem, AnnealedSparseVI(tolerance=FINE), run.seed, rng, run.limit, run.fingerprint
    )
    size = min(size, problem.data.num_rows)
    folder = None if checkpoint is None else Path(checkpoint) / "reserve"
    with finer.recorded(folder, [size]):
        finer.init(size, run.points)
        finer.until(Tolerance(None), lambda *_: None)
    points = finer.points
    if points.size <= coreset.size:
        return coreset
    return replace(coreset, reserve=points.take(np.argsort(points.indices)))
