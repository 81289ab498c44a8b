"""The rows of all trials as one tidy table, and their quartiles by method and size."""

from __future__ import annotations

import importlib
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corebayes.data.atomic import write_atomically
from corebayes.experiments.measure import Row
from corebayes.types import Array

COLUMNS = tuple(field.name for field in fields(Row))


class Curve(NamedTuple):
    """Quartiles over the trials, by M."""

    sizes: Array
    lower: Array
    median: Array
    upper: Array
    seconds: Array
    """Median CPU seconds."""

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
        rows = (row for row in self.rows if row["experiment"] == experiment)
        return list(dict.fromkeys(row["data"] for row in rows))

    def num_trials(self, experiment: str) -> int:
        return len({row["trial"] for row in self.rows if row["experiment"] == experiment})

    def curves(self, experiment: str, data: str, column: str = "kl") -> dict[str, Curve]:
        """By method."""
        rows = [r for r in self.rows if (r["experiment"], r["data"]) == (experiment, data)]
        methods = dict.fromkeys(row["method"] for row in rows)
        return {
            method: _curve([row for row in rows if row["method"] == method], column)
            for method in methods
        }

    def write(self, folder: Path) -> list[Path]:
        """results.csv and results.parquet."""
        pyarrow = importlib.import_module("pyarrow")
        csv: Any = importlib.import_module("pyarrow.csv")
        parquet: Any = importlib.import_module("pyarrow.parquet")
        table = pyarrow.table({name: [row[name] for row in self.rows] for name in COLUMNS})
        paths = [folder / "results.csv", folder / "results.parquet"]
        for path, write in zip(paths, (csv.write_csv, parquet.write_table), strict=True):
            buffer = io.BytesIO()
            write(table, buffer)
            write_atomically(path, buffer.getvalue())
        return paths


def collect(outcomes: Iterable[Mapping[str, Any]]) -> Results:
    """The rows of all outcomes."""
    return Results([row for outcome in outcomes for row in outcome["rows"]])


def _curve(rows: Sequence[Mapping[str, Any]], column: str) -> Curve:
    sizes = sorted({int(row["size_asked"]) for row in rows})
    values = [[row[column] for row in rows if row["size_asked"] == size] for size in sizes]
    seconds = [
        float(np.median([row["cpu_seconds"] for row in rows if row["size_asked"] == size]))
        for size in sizes
    ]
    lower, median, upper = np.array([_quartiles(group) for group in values]).T
    return Curve(np.array(sizes, dtype=np.float64), lower, median, upper, np.array(seconds))


def _quartiles(values: Sequence[float]) -> Array:
    """Order statistics without interpolation where a KL is infinite: inf − inf is no number."""
    method = "linear" if np.all(np.isfinite(values)) else "lower"
    return np.quantile(values, [0.25, 0.5, 0.75], method=method)
