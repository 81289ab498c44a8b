"""Regressions of labels of two classes: 0 and 1, or −1 and 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebayes.models.families.glm import GLM
from corebayes.types import Array, Block


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelRegression(GLM):
    """Labels are 0 and 1, or −1 and 1, or bool; y = ±1 in the family's own form."""

    of_labels = True

    def own_target(self, y: Array) -> Array:
        return signs(y)

    def exported_target(self, block: Block) -> NDArray[Any]:
        return (self.target(block) > 0.0).astype(np.int64)

    def check_target(self, y: Array, lowest: float) -> tuple[NDArray[np.bool_], str]:
        bad = ~((y == 1.0) | (y == 0.0) | (y == -1.0))
        negatives = y[y < 1.0]
        if np.any(bad) or negatives.size == 0:
            return bad, (
                "labels must be 0 and 1, or -1 and 1, or bool; other numbers have another family, "
                "such as gaussian or poisson"
            )
        negative = lowest if lowest < 1.0 else negatives[0]
        return (y < 1.0) & (y != negative), (
            f"earlier rows have {negative:g} for the same class; "
            "labels must be 0 and 1, or -1 and 1, not both"
        )


def signs(y: Array) -> Array:
    """Labels as ±1."""
    return np.copysign(1.0, y - 0.5)


def share_of_ones(mean: float, count: float) -> float:
    """From the mean of ±1 of `count` rows; never 0 or 1."""
    return (0.5 * (mean + 1.0) * count + 0.5) / (count + 1.0)
