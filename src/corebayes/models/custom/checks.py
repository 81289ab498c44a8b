"""What a custom model's functions are tried on, and the shapes of their answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from corebayes.types import Array, Block, Data, Indices

WeightedFunction = Callable[[Array, Block, Array], Array]
Function = Callable[[Array], Array]

ROWS_TRIED, ROWS_DIFFERENCED = 5, 24


def copied(block: Block) -> Block:
    return Block({name: values.copy() for name, values in block.fields.items()}, block.counts)


def spread_rows(data: Data) -> Indices:
    """A few rows from all over the data."""
    return data.some(np.random.default_rng(0), min(ROWS_DIFFERENCED, data.num_rows))


def of_rows(function: WeightedFunction | None, block: Block, weights: Array) -> Function | None:
    return None if function is None else lambda theta: function(theta, block, weights)


def checked(values: object, shape: tuple[int, ...], function: str, meaning: str) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(
            f"{function} must return an array of shape {meaning} = {shape}, got {array.shape}"
        )
    return array


def places_of_effects(groups: Mapping[str, Any], dim: int) -> dict[str, Indices]:
    """(groups, effects) places in θ for each column of groups; no parameter is there twice."""
    if not isinstance(groups, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            "groups must say for each column of group numbers where the effects are in θ, "
            f'groups={{"store": range(3, 23)}}, got {groups!r}'
        )
    found, taken = dict[str, Indices](), dict[int, str]()
    for name, given in groups.items():
        places = np.asarray(given)
        if places.dtype.kind not in "iu" or places.ndim not in (1, 2) or len(places) < 2:
            raise ValueError(
                f"groups[{name!r}] must be the places in θ of two or more groups' effects, whole "
                f"numbers of shape (groups,) or (groups, effects), got {given!r}"
            )
        places = places.reshape(len(places), -1).astype(np.int64)
        for place in places.ravel().tolist():
            if not 0 <= place < dim:
                raise ValueError(f"groups[{name!r}] has {place}, which is none of 0 to {dim - 1}")
            if place in taken:
                raise ValueError(
                    f"parameter {place} is in groups[{taken[place]!r}] and again in "
                    f"groups[{name!r}]: each belongs to one group"
                )
            taken[place] = name
        found[name] = places
    return found
