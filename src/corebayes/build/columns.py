"""Columns beside features and target that a model of a person's own asks for by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corebayes.data import frames
from corebayes.data.parquet_files import is_parquet, parquet_batches, parquet_names
from corebayes.models import CustomModel
from corebayes.models.custom.named_rows import NamedBlock, Naming

# Rows that the functions are tried on to see which columns they want.
FEW = 5


def with_asked_columns(
    model: Any, source: Any, target: Any, features: Sequence[Any] | None
) -> tuple[Any, Sequence[Any] | None]:
    """The model and the columns to read: its features, then those that it asks for by name.

    Only these are read, so that other columns may hold what they like.
    """
    if not isinstance(model, CustomModel) or features is None or isinstance(features, str):
        return model, features
    frame = frames.as_frame(source)
    if frame is None and is_parquet(source):
        names = parquet_names(source)
        frame = frames.as_frame(next(parquet_batches(source, names, FEW)))
    wanted = [str(name) for name in features]
    if frame is None or not set(wanted) <= set(frame.names):
        return model, features
    fields = _Asked(frame, wanted, None if target is None else str(target))
    try:
        with np.errstate(all="ignore"):
            model.likelihood(np.zeros((FEW + 1, model.dim)), NamedBlock(fields, None, Naming()))
    except Exception:
        # Whatever is wrong with the function is said when it is bound.
        pass
    every = [*wanted, *(name for name in fields.asked if name not in wanted)]
    return model.named(every, fields.target or "y", len(wanted)), every


class _Asked(dict[str, Any]):
    """The fields of a few rows; remembers the columns that were asked for by name."""

    def __init__(self, frame: frames.FrameColumns, features: list[str], target: str | None) -> None:
        first = {"X": np.column_stack([self._read(frame, name) for name in features])}
        if target is not None and target in frame.names:
            first["y"] = self._read(frame, target)
        super().__init__(first)
        self.frame, self.target, self.asked = frame, target, list[str]()

    @staticmethod
    def _read(frame: frames.FrameColumns, name: str) -> Any:
        return frame.column(frame.names.index(name))[:FEW]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.frame.names

    def __getitem__(self, name: str) -> Any:
        if super().__contains__(name):
            return super().__getitem__(name)
        if name != self.target:
            self.asked.append(name)
        return self._read(self.frame, name)
