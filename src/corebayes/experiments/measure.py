"""One trial of one method: its coresets of all sizes, their KL divergences and CPU seconds."""

from __future__ import annotations

import importlib
import io
import time
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import corebayes as cb
from corebayes.constructions import Construction
from corebayes.diagnostics import gaussian_kl
from corebayes.experiments.catalogue import Experiment
from corebayes.files.atomic import write_atomically
from corebayes.problem import Problem
from corebayes.rows import Rows, open_rows
from corebayes.samplers.exact import Exact, is_conjugate
from corebayes.samplers.laplace import Laplace, full_posterior
from corebayes.samplers.posterior import Posterior
from corebayes.scan.inline import one_blas_thread
from corebayes.types import Array, Block, Gaussian, Indices, Model


class Quartiles(NamedTuple):
    """Over the trials of one method, by M; seconds are median CPU seconds."""

    sizes: Array
    lower: Array
    median: Array
    upper: Array
    seconds: Array

    def at(self, size: int) -> float:
        """The median at one M."""
        return float(self.median[np.flatnonzero(self.sizes == size)[0]])

    @property
    def last(self) -> float:
        return float(self.median[-1])


@dataclass(frozen=True)
class Results:
    """Rows of trials."""

    rows: Sequence[Mapping[str, Any]]

    def experiments(self) -> list[str]:
        return list(dict.fromkeys(row["experiment"] for row in self.rows))

    def sets(self, experiment: str) -> list[str]:
        return list(dict.fromkeys(r["data"] for r in self.rows if r["experiment"] == experiment))

    def num_trials(self, experiment: str) -> int:
        return len({row["trial"] for row in self.rows if row["experiment"] == experiment})

    def curves(self, experiment: str, data: str, column: str = "kl") -> dict[str, Quartiles]:
        """By method."""
        by_method: dict[str, list[Mapping[str, Any]]] = {}
        for row in self.rows:
            if (row["experiment"], row["data"]) == (experiment, data):
                by_method.setdefault(row["method"], []).append(row)
        return {method: _quartiles(rows, column) for method, rows in by_method.items()}

    def write(self, folder: Path) -> None:
        """results.csv and results.parquet."""
        pyarrow = importlib.import_module("pyarrow")
        csv: Any = importlib.import_module("pyarrow.csv")
        parquet: Any = importlib.import_module("pyarrow.parquet")
        table = pyarrow.table({name: [row[name] for row in self.rows] for name in self.rows[0]})
        for suffix, write in (("csv", csv.write_csv), ("parquet", parquet.write_table)):
            buffer = io.BytesIO()
            write(table, buffer)
            write_atomically(folder / f"results.{suffix}", buffer.getvalue())


def _quartiles(rows: Sequence[Mapping[str, Any]], column: str) -> Quartiles:
    sizes = sorted({int(row["size_asked"]) for row in rows})
    found: list[Array] = []
    for size in sizes:
        here = [row for row in rows if row["size_asked"] == size]
        values = [row[column] for row in here]
        # No interpolation where a KL is infinite: inf − inf is no number.
        method = "linear" if np.all(np.isfinite(values)) else "lower"
        seconds = np.median([row["cpu_seconds"] for row in here])
        found.append(np.append(np.quantile(values, [0.25, 0.5, 0.75], method=method), seconds))
    return Quartiles(np.array(sizes, dtype=np.float64), *np.array(found).T)


# Methods draw from another stream than the data of the trial.
METHOD_SEEDS = 1000
# Rows that suffice to compile and import everything before the clock runs.
WARM_UP_ROWS = 60
# What this process has run before.
_warmed: set[tuple[str, str, str]] = set()


class Outcome(NamedTuple):
    """What is kept of a trial: a row of the results for each size, and coresets for the pictures.

    `size_asked` is M, greedy iterations or rows asked for; the coreset has no more rows. `kl` is
    KL(π_w ‖ π) in nats, exact for conjugate models, between Laplace fits for others;
    `kl_normalised` is divided by the KL of the prior. `cpu_seconds` are those of the process until
    the coreset was there, on one thread of BLAS.
    """

    rows: list[dict[str, Any]]
    coresets: dict[str, dict[str, list[float]]]
    """Row numbers and weights by M."""


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
        rows.append(
            {
                "experiment": experiment.name,
                "data": name,
                "method": label,
                "trial": trial,
                "seed": seed,
                "size_asked": snapshot.size_asked,
                "size": int(snapshot.weights.size),
                "kl": kl,
                "kl_normalised": kl / yardstick.prior_kl,
                "cpu_seconds": snapshot.cpu_seconds,
            }
        )
    coresets: dict[str, dict[str, list[float]]] = {
        str(one.size_asked): {"indices": one.indices.tolist(), "weights": one.weights.tolist()}
        for one in (snapshots if trial == 0 else ())
    }
    return Outcome(rows, coresets)


def coresets_of(outcome: Mapping[str, Any]) -> dict[int, tuple[Indices, Array]]:
    """Row numbers and weights by M of a trial that was kept."""
    return {
        int(size): (np.array(kept["indices"], dtype=np.int64), np.array(kept["weights"]))
        for size, kept in outcome["coresets"].items()
    }


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
        return sampler.fit(Posterior(self.model, rows, weights))

    def kl(self, rows: Block, weights: Array) -> float:
        return gaussian_kl(self.fit(rows, weights), self.full)


def _snapshots(
    experiment: Experiment, model: Model, data: Rows, method: Construction, seed: int
) -> Iterator[Snapshot]:
    """The empty coreset, then one of each size: from one run, or from a build each."""
    nothing = np.empty(0, dtype=np.int64)
    yield Snapshot(0, nothing, data.take(nothing), np.empty(0), 0.0)
    if not isinstance(method, cb.AnnealedSparseVI | cb.Uniform):
        yield from _on_the_way(experiment, model, data, method, seed)
        return
    one_run = experiment.shared_run and isinstance(method, cb.AnnealedSparseVI)
    for sizes in [experiment.sizes] if one_run else [(size,) for size in experiment.sizes]:
        began = time.process_time()
        if one_run:
            built = cb.build_path(
                model, data, sizes=sizes, method=method, seed=seed, progress=False
            )
        else:
            built = [cb.build(model, data, size=sizes[0], method=method, seed=seed, progress=False)]
        seconds = time.process_time() - began
        for size, coreset in zip(sizes, built, strict=True):
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
        for size in wanted:
            # A method that is done stays where it is.
            if size == iteration or (info.done is not None and size > iteration):
                indices, rows, weights = state.points
                yield Snapshot(size, indices, rows, weights, seconds)
        if info.done is not None:
            return


def _warm_up(experiment: Experiment, name: str, path: Path | None, label: str) -> None:
    """One step on few rows, so that nobody's time holds imports and compilation."""
    key = (experiment.name, name, label)
    if key in _warmed:
        return
    _warmed.add(key)
    model, given = experiment.load(name, path, 0)
    few = open_rows(given).take(np.arange(WARM_UP_ROWS))
    data = open_rows(dict(few.fields))
    method, rng = experiment.methods[label], np.random.default_rng(0)
    problem = Problem(model.bind(data), data)
    method.step(rng, problem, method.init(rng, problem, 2))


@contextmanager
def _dependent_columns() -> Generator[None]:
    """Hundreds of radial functions on one map are nearly dependent; here that is known."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "columns", UserWarning)
        yield
