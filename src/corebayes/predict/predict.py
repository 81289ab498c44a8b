"""Predictions for new rows: means, intervals and draws, block by block and never N × S at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Self

import numpy as np

from corebayes.arguments import checked_seed, checked_whole
from corebayes.coreset import Coreset, check_coreset
from corebayes.data.frames import import_pyarrow
from corebayes.files.atomic import replacing
from corebayes.predict.known import Known, known_of
from corebayes.predict.prediction import Prediction, new_groups_said, summarised
from corebayes.sample import sample
from corebayes.samplers.parameters import posterior_of
from corebayes.scan.passes import rows_of_width
from corebayes.types import Array
from corebayes.watch.logs import say
from corebayes.watch.progress import show_steps

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


# Numbers that draws may take in memory when no file was named: 2 GB.
MOST_DRAWN = 1 << 28
CHAINS, FEWEST = 4, 250


def predict(
    coreset: Any,
    rows: Any,
    *,
    draws: Any = None,
    interval: float = 0.9,
    num_draws: int = 1000,
    keep_draws: bool = False,
    out: str | os.PathLike[str] | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Prediction:
    """What the posterior says about new rows: E[y] and intervals of every row.

    `coreset` is a coreset, of whose posterior draws are taken, or the draws themselves as `sample`,
    `correct` or `laplace` gave them or a file kept them: these know the model if it is a built-in
    one. With `draws`, ArviZ data or θ (…, d), a coreset is predicted with those. At most
    `num_draws` are used, evenly spaced.

    `rows` are like those that the coreset was built from, and need no target: arrays, a frame or
    Parquet files; named arrays for NumPyro and PyMC, a pandas frame for Bambi. A coreset of a
    formula computes its columns again. A group that the model has not seen has effects of the
    population, b ~ N(0, τ²), the same in all of its rows; the result says which these are. Of a
    coreset of whole groups effects are drawn as `group_effects` does. A model of another library is
    asked for its own predictive distribution.

    `interval` is the probability inside the intervals. `keep_draws` keeps draws of y, (N, S). With
    `out`, a .parquet file, every block is written as it is done, one line for each row, and with
    `keep_draws` a column of lists; memory is that of a block, and the result has no rows itself.
    Cost: N·S·d flops and N·S draws of y.
    """
    checked_whole("num_draws", num_draws)
    checked_seed(seed)
    if not 0.0 < interval < 1.0:
        raise ValueError(f"interval must be a probability between 0 and 1, got {interval!r}")
    if isinstance(coreset, Coreset):
        check_coreset(coreset)
        if draws is None:
            # Enough to tell whether they converged, however few are used.
            drawn = max(-(-num_draws // CHAINS), FEWEST)
            draws = sample(coreset, draws=drawn, chains=CHAINS, seed=seed, progress=False)
    elif posterior_of(coreset) is None:
        raise TypeError(
            "predict needs a coreset, or draws as `sample` returns them, got "
            f"{type(coreset).__name__}"
        )
    known = known_of(coreset, draws, num_draws, seed)
    opened = known.open(rows)
    with show_steps(progress) as steps:
        steps.begin("checking the rows")
        opened.check()
        steps.begin("predicting")
        blocks = _blocks(known, opened, interval, seed)
        if out is None:
            return _collected(known, opened, blocks, interval, keep_draws=keep_draws)
        with PredictionFile(out, known.predictive.num_draws if keep_draws else 0) as file:
            for columns, drawn in blocks:
                file.write(columns, drawn)
    return _result(known, opened, {}, None, interval)


def _blocks(
    known: Known, opened: Any, interval: float, seed: int
) -> Iterator[tuple[dict[str, Array], Array]]:
    rng = np.random.default_rng(seed)
    predictive = known.predictive
    labels: Any = getattr(predictive, "labels", ())
    block_rows = rows_of_width(predictive.num_draws * max(len(labels), 1))
    for block in opened.blocks(block_rows):
        means, drawn = predictive.predict(rng, block)
        yield summarised(means, drawn, interval, labels), drawn


def _collected(
    known: Known,
    opened: Any,
    blocks: Iterator[tuple[dict[str, Array], Array]],
    interval: float,
    *,
    keep_draws: bool,
) -> Prediction:
    number = opened.num_rows * known.predictive.num_draws
    if keep_draws and number > MOST_DRAWN:
        raise ValueError(
            f"draws of {opened.num_rows:,} rows are {number:,} numbers: name a file to write "
            'them to, out="predictions.parquet", or take fewer, num_draws=100'
        )
    columns, kept = list[dict[str, Array]](), list[Array]()
    for one, drawn in blocks:
        columns.append(one)
        if keep_draws:
            kept.append(drawn)
    joined = {name: np.concatenate([one[name] for one in columns]) for name in columns[0]}
    return _result(known, opened, joined, np.concatenate(kept) if keep_draws else None, interval)


def _result(
    known: Known,
    opened: Any,
    columns: dict[str, Array],
    drawn: Array | None,
    interval: float,
) -> Prediction:
    seen = getattr(known.predictive, "new_groups", {})
    new_groups = {column: opened.labels(column, codes) for column, codes in seen.items()}
    if new_groups:
        say("new groups", new_groups_said(new_groups))
    return Prediction(
        columns=columns,
        interval=interval,
        num_draws=known.predictive.num_draws,
        num_rows=opened.num_rows,
        target_name=known.target_name,
        draws=drawn,
        new_groups=new_groups,
    )
