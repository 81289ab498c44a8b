"""What a construction is: hyperparameters with `init` and `step`; the loop is in `build/run.py`."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple, Protocol

from corebayes.arguments import check_fields
from corebayes.problem import Problem
from corebayes.types import Estimate, Rng, WeightedPoints

# Below this KL, in nats, the residual is round-off and has no direction worth following.
PRECISION = 1e-12
# Passes at the most of a build to a tolerance, certificates included, where a method keeps to one;
# and rows that are gone over beside them, since few rows take no time.
OPEN_PASSES, CHEAP_ROWS = 120.0, 1_000_000
EXACT = "the coreset posterior equals the full posterior to working precision"


class State(Protocol):
    """What the next step needs; at least the coreset so far."""

    @property
    def points(self) -> WeightedPoints:
        """The coreset, all its weights positive."""
        ...


class Info(NamedTuple):
    """What a person wants to see after a step."""

    kl: Estimate | None
    """KL(π_w ‖ π) after the step as the construction sees it, if it does."""
    done: str | None = None
    """Why nothing is left to do, in words; None to go on."""
    warning: str | None = None
    """What whoever takes this coreset should know."""


class Plan(NamedTuple):
    """What is known of a run before its first pass."""

    text: str
    num_matched: int
    """Rows that match all that the construction compares."""


class Style(NamedTuple):
    """How a construction looks in every figure: colour, marker, dashes, filling of the markers."""

    color: str
    marker: str
    dashes: str = "-"
    fill: str = "full"


class Construction(ABC):
    """A frozen dataclass of hyperparameters that builds coresets step by step.

    `init` and `step` make it one; the other methods say what else it can do.
    """

    style: ClassVar[Style] = Style("#9A9A9A", ".")
    ranges: ClassVar[Mapping[str, float | tuple[float, float]]] = {}
    """Numbers among the fields that need not be whole and at least one, or positive: what they must
    be at least, or lie between."""
    can_start: ClassVar[bool] = False
    """Whether it can go on from a coreset: then it has `init_from`."""

    def __post_init__(self) -> None:
        check_fields(self, **self.ranges)

    @abstractmethod
    def init(self, rng: Rng, problem: Problem, size: int | None) -> Any:
        """The state before the first step, for a coreset of at most `size` rows (None: open)."""

    @abstractmethod
    def step(self, rng: Rng, problem: Problem, state: Any) -> tuple[Any, Info]:
        """The next state."""

    @property
    def may_see_fewer_rows(self) -> bool:
        """Whether rows of rare levels may be kept beside what it works on; see `build/rest.py`."""
        return False

    def check_open_geometry(self, purpose: str) -> None:
        """An error unless it has a `geometry` that is left to choose."""
        own: Any = self
        if all(entry.name != "geometry" for entry in fields(own)) or own.geometry is not None:
            raise TypeError(
                f"{type(self).__name__} cannot {purpose}: it needs a tangent space that is left to "
                "choose, as AnnealedSparseVI() and SparseVI() have"
            )

    def init_from(
        self, rng: Rng, problem: Problem, size: int | None, points: WeightedPoints
    ) -> Any:
        """The state before the first step on from these weighted points."""
        raise TypeError(f"{type(self).__name__} begins from nothing and cannot go on")

    def init_path(self, rng: Rng, problem: Problem, sizes: Sequence[int]) -> Any:
        """The state before the first step to coresets of all these sizes, smallest first."""
        return self.init(rng, problem, sizes[-1])

    def reached(self, state: Any, sizes: Sequence[int]) -> Mapping[int, WeightedPoints]:
        """The coresets of a path that this state has; those of later states count instead."""
        points: WeightedPoints = state.points
        return {size: points for size in sizes if 0 < points.size <= size}

    def passes(self, size: int | None) -> tuple[float, float]:
        """How many passes it takes for a size as a rule, from and to; None is a build to a
        tolerance, with its certificates, which ends there (`build.tolerance`)."""
        return (1.0, float("inf"))

    def plan(self, problem: Problem) -> Plan | None:
        """What whoever waits for it may want to know before the work; None: nothing."""
        return None

    @classmethod
    def command_name(cls) -> str:
        """What it is called on the command line: `sparse-vi` for SparseVI."""
        words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", cls.__name__)
        return words.lower()

    def require(self, size: int | None) -> int:
        """The size, for a construction that cannot do without."""
        if size is None:
            name = type(self).__name__
            raise ValueError(f"{name} needs a size: build(..., size=100, method={name}())")
        return size


def no_direction(where: str = "") -> ValueError:
    return ValueError(
        "no row says anything about the parameters: every potential is constant in θ" + where
    )
