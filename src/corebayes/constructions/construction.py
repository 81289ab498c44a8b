"""What a construction is: hyperparameters with `init` and `step`; the loop is in build.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from corebayes.problem import Problem
from corebayes.types import Array, Estimate, Points

# Below this KL, in nats, the residual is round-off and has no direction worth following.
PRECISION = 1e-12


class State(Protocol):
    """What the next step needs; at least the coreset so far."""

    @property
    def points(self) -> Points: ...

    @property
    def weights(self) -> Array:
        """One weight for each point, all positive."""
        ...


class Info(NamedTuple):
    """What a person wants to see after a step."""

    kl: Estimate | None
    """KL(π_w ‖ π) after the step as the construction sees it, if it does."""
    done: str | None = None
    """Why nothing is left to do, in words; None to go on."""


class Construction(Protocol):
    """A frozen dataclass of hyperparameters that builds coresets step by step."""

    def init(self, rng: np.random.Generator, problem: Problem, size: int | None) -> Any:
        """The state before the first step, for a coreset of at most `size` rows (None: open)."""
        ...

    def step(self, rng: np.random.Generator, problem: Problem, state: Any) -> tuple[Any, Info]: ...


@runtime_checkable
class PathConstruction(Construction, Protocol):
    """A construction that can build coresets of several sizes in one run.

    Its states have `answers`: the coresets finished so far, smallest first, each with `points` and
    `weights`.
    """

    def init_path(
        self, rng: np.random.Generator, problem: Problem, sizes: Sequence[int]
    ) -> Any: ...


@runtime_checkable
class GrowingConstruction(Construction, Protocol):
    """A construction that can start from a coreset that is there already."""

    def init_from(
        self,
        rng: np.random.Generator,
        problem: Problem,
        size: int | None,
        points: Points,
        weights: Array,
    ) -> Any:
        """The state before the first step on from these weighted points."""
        ...


def expected_passes(method: object, size: int | None) -> tuple[float, float]:
    """How many passes a construction says it takes for a size, at least and at most.

    One that can tell has a method `passes(size)`.
    """
    passes: Any = getattr(method, "passes", None)
    return (1.0, float("inf")) if passes is None else passes(size)


def drop_zeros(points: Points, weights: Array) -> tuple[Points, Array]:
    """The points with a positive weight."""
    positive = np.flatnonzero(weights > 0.0)
    if positive.size == weights.size:
        return points, weights
    return points.take(positive), weights[positive]
