"""One trial of one method: its coresets of all sizes, their KL divergences and CPU seconds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import corebayes as cb
from corebayes.constructions import Construction
from corebayes.constructions.construction import PathConstruction
from corebayes.diagnostics import gaussian_kl
from corebayes.experiments.experiment import Experiment
from corebayes.problem import Problem
from corebayes.rows import Rows, open_rows
from corebayes.samplers.exact import Exact, is_conjugate
from corebayes.samplers.laplace import Laplace, full_posterior
from corebayes.scan.inline import one_blas_thread
from corebayes.types import Array, Block, Gaussian, Indices, Model

# Methods draw from another stream than the data of the trial.
METHOD_SEEDS = 1000
# Rows that suffice to compile and import everything before the clock runs.
WARM_UP_ROWS = 60


@dataclass(frozen=True)
class Row:
    """One coreset, as in the tables of results."""

    experiment: str
    data: str
    method: str
    trial: int
    seed: int
    size_asked: int
    """M: greedy iterations, or rows asked for. The coreset has no more rows than that."""
    size: int
    kl: float
    """KL(π_w ‖ π) in nats: exact for conjugate models, between Laplace fits for others."""
    kl_normalised: float
    """Divided by the KL of the prior."""
    cpu_seconds: float
    """CPU time of the process until this coreset was there, on one thread of BLAS."""


class Outcome(NamedTuple):
    """What is kept of a trial."""

    rows: list[dict[str, Any]]
    coresets: dict[str, dict[str, list[float]]]
    """Row numbers and weights by M, for the pictures of coresets."""


class Snapshot(NamedTuple):
    size_asked: int
    indices: Indices
    rows: Block
    weights: Array
    cpu_seconds: float


def run_trial(
    experiment: Experiment, name: str, path: Path | None, label: str, trial: int
) -> Outcome:
    """Build, then measure: the clock stands still while KL is computed."""
    method, seed = experiment.methods[label], METHOD_SEEDS + trial
    with one_blas_thread(), _dependent_columns():
        model, given = experiment.load(name, path, trial)
        data = open_rows(given)
        _warm_up(experiment, name, path, label)
        snapshots = [*_snapshots(experiment, model, data, method, seed)]
        yardstick = Yardstick.of(model, data)
    rows: list[dict[str, Any]] = []
    for snapshot in snapshots:
        kl = yardstick.kl(snapshot.rows, snapshot.weights)
        row = Row(
            experiment=experiment.name,
            data=name,
            method=label,
            trial=trial,
            seed=seed,
            size_asked=snapshot.size_asked,
            size=int(snapshot.weights.size),
            kl=kl,
            kl_normalised=kl / yardstick.prior_kl,
            cpu_seconds=snapshot.cpu_seconds,
        )
        rows.append(asdict(row))
    coresets = {str(snapshot.size_asked): _plain(snapshot) for snapshot in snapshots}
    return Outcome(rows, coresets if trial == 0 else {})


@contextmanager
def _dependent_columns() -> Generator[None]:
    """Hundreds of radial functions on one map are nearly dependent; here that is known."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "columns", UserWarning)
        yield


@dataclass(frozen=True)
class Yardstick:
    """The full posterior, and how far the prior is from it."""

    model: Model
    full: Gaussian
    prior_kl: float

    @classmethod
    def of(cls, model: Model, data: Rows) -> Yardstick:
        with _dependent_columns():
            problem = Problem(model.bind(data), data)
        bound = problem.model
        full = problem.full_posterior if is_conjugate(bound) else full_posterior(bound, data)
        nothing = cls(bound, full, 1.0).kl(problem.no_points().rows, np.empty(0))
        return cls(bound, full, nothing)

    def fit(self, rows: Block, weights: Array) -> Gaussian:
        sampler = Exact() if is_conjugate(self.model) else Laplace(tolerance=1e-20)
        return sampler.fit(self.model, rows, weights)

    def kl(self, rows: Block, weights: Array) -> float:
        return gaussian_kl(self.fit(rows, weights), self.full)


def _snapshots(
    experiment: Experiment, model: Model, data: Rows, method: Construction, seed: int
) -> Iterator[Snapshot]:
    empty = data.take(np.empty(0, dtype=np.int64))
    yield Snapshot(0, np.empty(0, dtype=np.int64), empty, np.empty(0), 0.0)
    if isinstance(method, PathConstruction) and experiment.shared_run:
        yield from _one_run(experiment, model, data, method, seed)
    elif isinstance(method, PathConstruction | cb.Uniform):
        yield from _one_build_a_size(experiment, model, data, method, seed)
    else:
        yield from _on_the_way(experiment, model, data, method, seed)


def _one_run(
    experiment: Experiment, model: Model, data: Rows, method: Construction, seed: int
) -> Iterator[Snapshot]:
    began = time.process_time()
    coresets = cb.build_path(
        model, data, sizes=experiment.sizes, method=method, seed=seed, progress=False
    )
    seconds = time.process_time() - began
    for size, coreset in zip(experiment.sizes, coresets, strict=True):
        yield Snapshot(size, coreset.indices, coreset.rows, coreset.weights, seconds)


def _one_build_a_size(
    experiment: Experiment, model: Model, data: Rows, method: Construction, seed: int
) -> Iterator[Snapshot]:
    for size in experiment.sizes:
        began = time.process_time()
        coreset = cb.build(model, data, size=size, method=method, seed=seed, progress=False)
        seconds = time.process_time() - began
        yield Snapshot(size, coreset.indices, coreset.rows, coreset.weights, seconds)


def _on_the_way(
    experiment: Experiment, model: Model, data: Rows, method: Construction, seed: int
) -> Iterator[Snapshot]:
    """The states of a greedy method after M iterations each."""
    rng, wanted = np.random.default_rng(seed), list(experiment.sizes)
    began = time.process_time()
    problem = Problem(model.bind(data), data)
    state = method.init(rng, problem, None)
    for iteration in range(1, wanted[-1] + 1):
        state, info = method.step(rng, problem, state)
        seconds = time.process_time() - began
        # A method that is done stays where it is.
        passed = wanted if info.done is not None else [size for size in wanted if size == iteration]
        for size in passed:
            if size >= iteration:
                yield Snapshot(
                    size, state.points.indices, state.points.rows, state.weights, seconds
                )
        if info.done is not None:
            return


@cache
def _warmed() -> set[tuple[str, str, str]]:
    """What this process has run before."""
    return set()


def _warm_up(experiment: Experiment, name: str, path: Path | None, label: str) -> None:
    """One step on few rows, so that nobody's time holds imports and compilation."""
    key = (experiment.name, name, label)
    if key in _warmed():
        return
    _warmed().add(key)
    model, given = experiment.load(name, path, 0)
    few = open_rows(given).take(np.arange(WARM_UP_ROWS))
    data = open_rows(dict(few.fields))
    method, rng = experiment.methods[label], np.random.default_rng(0)
    problem = Problem(model.bind(data), data)
    method.step(rng, problem, method.init(rng, problem, 2))


def _plain(snapshot: Snapshot) -> dict[str, list[float]]:
    return {"indices": snapshot.indices.tolist(), "weights": snapshot.weights.tolist()}


def coresets_of(outcome: Mapping[str, Any]) -> dict[int, tuple[Indices, Array]]:
    """Row numbers and weights by M of a trial that was kept."""
    return {
        int(size): (np.array(kept["indices"], dtype=np.int64), np.array(kept["weights"]))
        for size, kept in outcome["coresets"].items()
    }
