"""Targets that are categories: which there are, and their numbers 0, 1, …"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from corebayes.models.families.family import Family, Row
from corebayes.types import Array, Block

MOST_CATEGORIES = 100


@dataclass(frozen=True, kw_only=True, eq=False)
class CategoryRegression(Family):
    """A family whose targets are categories.

    `categories` are the labels, numbers in order; by default those that the rows have, which must
    be consecutive whole numbers. `category_names` are what people call them: a formula knows these,
    and coefficients and predictions have them.
    """

    categories: tuple[float, ...] | None = field(default=None, repr=False)
    category_names: tuple[str, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.category_names is not None:
            object.__setattr__(self, "category_names", tuple(map(str, self.category_names)))
        if self.categories is None:
            if self.category_names is not None:
                raise ValueError("category_names are those of categories: give these too")
            return
        names, number = self.category_names, len(self.categories)
        if names is not None and len(names) != number:
            raise ValueError(f"there are {len(names):,} category_names of {number:,} categories")
        labels = tuple(float(label) for label in self.categories)
        if len(labels) < 2 or not np.all(np.diff(labels) > 0.0):
            raise ValueError(
                f"categories must be two or more different numbers in order, got {self.categories}"
            )
        if len(labels) > MOST_CATEGORIES:
            raise ValueError(
                f"there are {len(labels):,} categories, and at most {MOST_CATEGORIES} can be told "
                "apart: is the target a measurement?"
            )
        object.__setattr__(self, "categories", labels)

    @property
    def labels(self) -> tuple[float, ...]:
        """The categories, none before the rows are known."""
        return self.categories or ()

    @property
    def called(self) -> tuple[str, ...]:
        """The categories as people call them."""
        return self.category_names or tuple(f"{label:g}" for label in self.labels)

    def codes(self, row: Row) -> NDArray[np.int64]:
        """0, 1, … of every target."""
        return np.searchsorted(np.array(self.labels), row["y"]).astype(np.int64)

    def compiled_row(self, row: Row) -> Array:
        return self.codes(row).astype(np.float64)[None]

    def check_target(self, y: Array, lowest: float) -> tuple[NDArray[np.bool_], str]:
        if self.categories is not None:
            return ~np.isin(y, self.labels), (
                f"the categories are {', '.join(f'{label:g}' for label in self.labels)}"
            )
        return ~(np.isfinite(y) & (np.floor(y) == y)), (
            "categories must be whole numbers; or give categories=(…), the numbers that there are"
        )

    def survey(self, row: Row) -> Array:
        return row["y"]

    def settled(self, values: Array) -> Self:
        if self.categories is not None or values.size == 0:
            return self
        if values.size < 2:
            raise ValueError(f"every row is in category {values[0]:g}: nothing can be told apart")
        missing = np.flatnonzero(np.diff(values) > 1.0)
        if missing.size:
            raise ValueError(
                f"no row is in category {values[missing[0]] + 1.0:g}, between "
                f"{values[missing[0]]:g} and {values[missing[0] + 1]:g}: number the categories "
                "that there are one after the other, or say categories=(…)"
            )
        return replace(self, categories=tuple(values.tolist()))

    def exported_target(self, block: Block) -> NDArray[Any]:
        """1, 2, … as Stan has it."""
        return self.codes({"y": block.y}) + 1

    def drawn(self, rng: np.random.Generator, probabilities: Array) -> Array:
        """Labels in proportion to probabilities (…, K)."""
        below = np.cumsum(probabilities, axis=-1)
        uniform = rng.uniform(size=below.shape[:-1])[..., None] * below[..., -1:]
        return np.array(self.labels)[np.sum(below[..., :-1] < uniform, axis=-1)]
