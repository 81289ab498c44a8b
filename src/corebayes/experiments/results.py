"""The rows of all trials as one tidy table, and their quartiles by method and size."""

from __future__ import annotations

import importlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corebayes.files.atomic import write_atomically
from corebayes.types import Array


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
