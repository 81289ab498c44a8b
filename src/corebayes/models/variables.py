"""The variables that people see of a model's parameters θ: their names, shapes and scales.

θ is one flat vector on the whole real line; a person wants σ and not log σ, and the effects of all
groups as one variable whose axis has the groups' names. All of it is plain data, so that a file
can hold it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from corebayes.models.special import sigmoid_pair
from corebayes.types import Array, Indices

Scale = Literal["as it is", "exp", "exp(-)", "expit", "ordered"]
SCALES: tuple[Scale, ...] = ("as it is", "exp", "exp(-)", "expit", "ordered")


class Variable(NamedTuple):
    """Some entries of θ under one name."""

    name: str
    places: Indices
    """Positions in θ, in the shape of the variable."""
    scale: Scale = "as it is"
    """What is done to the entries: exp for logarithms, exp(-) for those of the reciprocal, expit
    for log odds, ordered for a number followed by the logarithms of the steps up from it."""
    dims: tuple[str, ...] = ()

    def unscaled(self, values: Array) -> Array:
        """The entries of θ that these values are of."""
        if self.scale == "as it is":
            return values
        if self.scale == "expit":
            return np.log(values) - np.log1p(-values)
        if self.scale == "ordered":
            return np.concatenate([values[..., :1], np.log(np.diff(values, axis=-1))], axis=-1)
        return np.log(values) if self.scale == "exp" else -np.log(values)


@dataclass(frozen=True)
class Variables:
    """All variables of a model, and the labels along their axes."""

    entries: tuple[Variable, ...]
    coords: Mapping[str, tuple[Any, ...]]

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        return {entry.name: entry.dims for entry in self.entries if entry.dims}

    def constrain(self, draws: Array) -> dict[str, Array]:
        """Draws (S, d) as variables (S, …)."""
        return {entry.name: _scaled(draws[:, entry.places], entry.scale) for entry in self.entries}

    def config(self) -> dict[str, Any]:
        entries = [
            [entry.name, np.asarray(entry.places).tolist(), entry.scale, list(entry.dims)]
            for entry in self.entries
        ]
        return {"entries": entries, "coords": {dim: list(v) for dim, v in self.coords.items()}}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], dim: int) -> Variables:
        """What `config` describes, if it is made of `dim` parameters."""
        entries: list[Variable] = []
        coords = {str(name): tuple(labels) for name, labels in config["coords"].items()}
        for name, places, scale, dims in config["entries"]:
            positions = np.asarray(places)
            lengths = tuple(len(coords[axis]) for axis in dims)
            inside = positions.dtype.kind == "i" and np.all((positions >= 0) & (positions < dim))
            if not inside or positions.shape != lengths or scale not in SCALES:
                raise ValueError(f"the variable {str(name)[:60]!r} is not made of parameters")
            entries.append(Variable(str(name), positions, scale, tuple(map(str, dims))))
        return cls(tuple(entries), coords)


def _scaled(values: Array, scale: Scale) -> Array:
    if scale == "as it is":
        return values
    if scale == "expit":
        return sigmoid_pair(values)[0]
    if scale == "ordered":
        return ordered(values)
    return np.exp(values if scale == "exp" else -values)


def ordered(values: Array) -> Array:
    """c_1 = u_1, c_j = c_{j−1} + e^{u_j} along the last axis."""
    return np.cumsum(np.concatenate([values[..., :1], np.exp(values[..., 1:])], axis=-1), axis=-1)
