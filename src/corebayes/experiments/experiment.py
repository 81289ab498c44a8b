"""What an experiment is, and the methods that all of them compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import corebayes as cb
from corebayes.constructions import Construction
from corebayes.types import Model
from corebayes.weights import Adam

# Dimensions of the random projection of GIGA.
PROJECTION = 100
# What the labels mean, for legends and tables; the labels are those of `method_plots`.
NAMES = {
    "AnnealedSparseVI": "AnnealedSparseVI (our default)",
    "SparseVI": "SparseVI",
    "GIGA": "GIGA (optimal)",
    "GIGA, realistic": "GIGA (realistic)",
    "Uniform": "Uniform",
}
# SparseVI takes hours of a run and must not be what is left at its end.
SLOWEST_FIRST = ("SparseVI", "AnnealedSparseVI", "GIGA", "GIGA, realistic", "Uniform")


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Coresets of growing size by several methods, on one or more data sets."""

    name: str
    title: str
    sets: tuple[str, ...]
    sizes: tuple[int, ...]
    """M: the numbers of greedy iterations, or of rows asked for, that are measured."""
    methods: Mapping[str, Construction]
    load: Callable[[str, Path | None, int], tuple[Model, Any]]
    """The model and the rows of (set, its file if it has one, seed of the trial)."""
    files: tuple[str, ...] = ()
    """Sets that are files of the registry."""
    shared_run: bool = False
    """Whether our default builds all sizes in one run; its CPU time is then that of the run."""


def compared_methods(sparse_vi: cb.SparseVI, num_iterations: int) -> dict[str, Construction]:
    """The paper's four methods and our default."""

    def giga(weighting: Any) -> cb.GIGA:
        return cb.GIGA(weighting=weighting, num_iterations=num_iterations)

    methods: dict[str, Construction] = {
        "AnnealedSparseVI": cb.AnnealedSparseVI(),
        "SparseVI": sparse_vi,
        "GIGA": giga(cb.FullPosterior(num_draws=PROJECTION)),
        "GIGA, realistic": giga(cb.Realistic(num_draws=PROJECTION)),
        "Uniform": cb.Uniform(),
    }
    return {label: methods[label] for label in SLOWEST_FIRST}


def exact_sparse_vi(num_iterations: int) -> cb.SparseVI:
    """SparseVI with covariances in closed form: T = 100, γ_t = 1/t."""
    return cb.SparseVI(update=Adam(num_steps=100, rate=1.0), num_iterations=num_iterations)
