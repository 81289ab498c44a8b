"""Group terms of a mixed model, (1 + x | g), and the groups that the rows have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from corebayes.models.priors.scale import HalfNormal, ScalePrior, scale_prior_from_config
from corebayes.types import Array, Block, Indices

# What stands for a constant among the effects.
ONE = "1"
# More different values than this are no groups: even their names would not fit anywhere.
MAX_GROUPS = 2_000_000


@dataclass(frozen=True, kw_only=True)
class GroupTerm:
    """Effects that differ from group to group: b_g ~ N(0, τ²), each effect with its own τ.

    `group` names the column of X that says which group a row is in (whole numbers); `effects` are
    "1" for an intercept of each group, or names of columns of X for slopes. `scale` is the prior of
    τ, one for all effects or one for each. `labels` are what people call the groups, for groups
    that are numbered 0, 1, … in this order; without labels the numbers themselves.
    """

    group: str
    effects: Sequence[str] = (ONE,)
    scale: ScalePrior | Sequence[ScalePrior] = field(default_factory=HalfNormal)
    labels: Sequence[Any] | None = None
    by_default: bool = False
    """Whether nobody gave `scale`, which is on the scale of some rows then."""

    def __post_init__(self) -> None:
        effects = (self.effects,) if isinstance(self.effects, str) else tuple(self.effects)
        if not effects:
            raise ValueError(f"the group term of {self.group!r} has no effects: give ('1',)")
        if len(set(effects)) < len(effects):
            raise ValueError(f"the group term of {self.group!r} has an effect twice: {effects}")
        scale = self.scale
        given = isinstance(scale, Sequence)
        scales = tuple(scale) if given else (scale,) * len(effects)
        if len(scales) != len(effects) or not all(isinstance(one, ScalePrior) for one in scales):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"scale of the group term {self.group!r} must be a prior such as HalfNormal(1.0), "
                f"or one for each of its {len(effects)} effects, got {scale!r}"
            )
        object.__setattr__(self, "effects", effects)
        object.__setattr__(self, "scale", scales)
        if self.labels is not None:
            object.__setattr__(self, "labels", tuple(self.labels))

    @property
    def scales(self) -> tuple[ScalePrior, ...]:
        return tuple(self.scale) if isinstance(self.scale, tuple) else ()

    def called(self, effect: str) -> str:
        """What Bambi and lme4 call the effect: 1|g, x|g."""
        return f"{effect}|{self.group}"

    def config(self) -> dict[str, Any]:
        return {
            "group": self.group,
            "effects": list(self.effects),
            "scale": [prior.config() for prior in self.scales],
            "labels": None if self.labels is None else list(self.labels),
            **({"by_default": True} if self.by_default else {}),
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> GroupTerm:
        scale = tuple(scale_prior_from_config(prior) for prior in config["scale"])
        return cls(
            group=str(config["group"]),
            effects=tuple(map(str, config["effects"])),
            scale=scale,
            labels=config["labels"],
            by_default=bool(config.get("by_default", False)),
        )


class FoundGroups(NamedTuple):
    """Values of the group columns that rows have, sorted, and the first row with a bad one."""

    values: tuple[Array, ...]
    bad: tuple[int, int, float] | None
    """Row number, place among the group columns, value."""
    more: Any
    """The answer to the question that was asked beside this one."""


@dataclass
class Groups:
    """Finds the groups of all rows, in the pass that asks every row the `beside` question.

    Cost: N log N comparisons; memory for the different values only.
    """

    columns: tuple[int, ...]
    """Of X."""
    names: tuple[str, ...]
    beside: Any
    """Another question that is asked in the same pass."""
    values: tuple[Array, ...] = ()
    """What was found."""
    key: Any = field(default_factory=object)
    """No other question's: what was found is wanted every time."""

    @property
    def block_rows(self) -> int:
        return int(self.beside.block_rows)

    def answer(self, block: Block, numbers: Indices) -> FoundGroups:
        more = self.beside.answer(block, numbers)
        if block.counts is not None:
            counted = np.flatnonzero(block.counts > 0.0)
            block, numbers = block.take(counted), numbers[counted]
        values, bad = list[Array](), None
        for place, column in enumerate(self.columns):
            codes = block.X[:, column]
            wrong = np.flatnonzero(codes != np.rint(codes))
            if wrong.size and bad is None:
                bad = int(numbers[wrong[0]]), place, float(codes[wrong[0]])
            values.append(np.unique(codes))
        return FoundGroups(tuple(values), bad, more)

    def merge(self, first: FoundGroups, second: FoundGroups) -> FoundGroups:
        values = tuple(np.union1d(a, b) for a, b in zip(first.values, second.values, strict=True))
        for name, found in zip(self.names, values, strict=True):
            if found.size > MAX_GROUPS:
                raise ValueError(f"column {name!r} has more than {MAX_GROUPS:,} groups")
        return FoundGroups(
            values, first.bad or second.bad, self.beside.merge(first.more, second.more)
        )

    def conclude(self, answer: FoundGroups | None, target_name: str) -> Any:
        if answer is None:
            return None
        concluded = self.beside.conclude(answer.more, target_name)
        if answer.bad is not None:
            row, place, value = answer.bad
            raise ValueError(
                f"row {row}, column {self.names[place]!r}: {value!r} is not the number of a group: "
                "groups are whole numbers or, in a formula, categories; cut a measurement into "
                "ranges first"
            )
        self.values = answer.values
        return concluded


def group_numbers(codes: Array, values: Array, name: str) -> Indices:
    """The position of every row's group among the sorted values."""
    positions = np.searchsorted(values, codes)
    positions = np.minimum(positions, values.size - 1)
    if not np.array_equal(values[positions], codes):
        row = int(np.argmax(values[positions] != codes))
        raise ValueError(
            f"a row has the group {codes[row]:g} in column {name!r}, which the rows that the model "
            "was bound to do not have"
        )
    return positions.astype(np.int64)
