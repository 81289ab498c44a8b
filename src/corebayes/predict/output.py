"""Predictions as a Parquet file that grows block by block and is there when it is whole."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Any, Self

import numpy as np

from corebayes.data.frames import import_pyarrow
from corebayes.files.atomic import replacing
from corebayes.types import Array

# Rows of a row group without draws.
GROUP_ROWS = 131_072


class PredictionFile:
    """Writes columns of numbers and, with `num_draws`, lists of that many draws a row."""

    def __init__(self, path: str | os.PathLike[str], num_draws: int) -> None:
        if not str(os.fspath(path)).endswith(".parquet"):
            raise ValueError(f"out must be a .parquet file, got {os.fspath(path)!r}")
        self._pyarrow, self._parquet = import_pyarrow(), import_pyarrow("pyarrow.parquet")
        self._path, self._num_draws = path, num_draws
        self._most = max(1, GROUP_ROWS // max(num_draws, 1))
        self._waiting: list[Any] = []
        self._rows = 0
        self._writer: Any = None

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self._target = self._stack.enter_context(replacing(self._path))
        return self

    def write(self, columns: dict[str, Array], draws: Array) -> None:
        """Some rows, after those that were written."""
        arrays: dict[str, Any] = dict(columns)
        if self._num_draws:
            values = self._pyarrow.array(np.ascontiguousarray(draws).ravel())
            arrays["draws"] = self._pyarrow.FixedSizeListArray.from_arrays(values, draws.shape[1])
        table = self._pyarrow.table(arrays)
        self._waiting.append(table)
        self._rows += table.num_rows
        if self._rows >= self._most:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        table = self._pyarrow.concat_tables(self._waiting)
        if self._writer is None:
            self._writer = self._parquet.ParquetWriter(str(self._target), table.schema)
        self._writer.write_table(table)
        self._waiting, self._rows = [], 0

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if kind is None:
                self._flush()
        finally:
            if self._writer is not None:
                self._writer.close()
            self._stack.__exit__(kind, error, trace)
