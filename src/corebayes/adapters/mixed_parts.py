"""A mixed regression taken apart for another library.

    η = X·coefficients + Σ_e z_e · b_e[group],   b_e ~ N(0, τ_e²),   y ~ family(η; constant)

in the centred form, one vector b_e of all groups for each effect e. Every variable is named, with
its places in θ, so that a library's density can be compared with ours.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from corebayes.coreset import Coreset
from corebayes.models import MixedRegression
from corebayes.models.glm import GLM
from corebayes.models.groups import ONE
from corebayes.models.scale_prior import Reciprocal, ScalePrior
from corebayes.types import Array, Block, Indices


class Positive(NamedTuple):
    """A positive variable with its prior: a standard deviation, or the family's constant."""

    name: str
    prior: ScalePrior
    place: int
    """Of its logarithm in θ."""
    inverse: bool = False
    """Whether the variable is one over what the model has."""


class Effect(NamedTuple):
    """One effect of all groups of a term."""

    name: str
    scale: Positive
    places: Indices
    """In θ, (groups,)."""
    labels: tuple[Any, ...]
    term: int
    column: int | None
    """Of X, which it is multiplied by; None for the constant."""


class MixedParts(NamedTuple):
    model: MixedRegression
    learned: Positive | None
    effects: list[Effect]

    def scales(self) -> list[Positive]:
        return [*([] if self.learned is None else [self.learned]), *(e.scale for e in self.effects)]

    def family(self, value: Any) -> GLM:
        """The family with this value of its constant, be it a number or a symbol."""
        family = copy.copy(self.model.family)
        if self.learned is not None:
            constant = 1.0 / value if self.learned.inverse else value
            object.__setattr__(family, str(family.learnable), constant)
        return family

    def columns(self, rows: Block) -> list[Array]:
        """What each effect is multiplied by, (n,) each."""
        one = np.ones(len(rows))
        return [one if e.column is None else rows.X[:, e.column] for e in self.effects]

    def unconstrained(self, theta: Any) -> dict[str, Any]:
        """θ by variable, on the unconstrained scale that every library has: logarithms."""
        effects = {effect.name: theta[effect.places] for effect in self.effects}
        return self.unconstrained_shared(theta) | effects

    def unconstrained_shared(self, theta: Any) -> dict[str, Any]:
        """The same without effects."""
        values = {"coefficients": theta[: self.model.num_fixed]}
        for scale in self.scales():
            values[scale.name] = -theta[scale.place] if scale.inverse else theta[scale.place]
        return values

    def order(self) -> tuple[list[str], Indices, Array]:
        """The variables' names, their places in θ laid end to end, and the signs there."""
        places = [np.arange(self.model.num_fixed)]
        places += [np.array([scale.place]) for scale in self.scales()]
        places += [effect.places for effect in self.effects]
        signs = np.ones(self.model.dim)
        for scale in self.scales():
            signs[scale.place] = -1.0 if scale.inverse else 1.0
        joined = np.concatenate(places)
        names = ["coefficients", *(s.name for s in self.scales()), *(e.name for e in self.effects)]
        return names, joined, signs[joined]


def mixed_parts(coreset: Coreset) -> MixedParts | None:
    """The parts of a coreset's mixed regression; None for other models."""
    model = coreset.model
    if not isinstance(model, MixedRegression):
        return None
    columns = {name: place for place, name in enumerate(model.column_names)}
    scales = iter(model.structure.scales.tolist())
    effects: list[Effect] = []
    for number, (term, found, labels) in enumerate(
        zip(model.terms, model.structure.terms, model.group_labels, strict=True)
    ):
        for place, (effect, prior) in enumerate(zip(term.effects, term.scales, strict=True)):
            name = term.called(effect)
            effects.append(
                Effect(
                    name,
                    Positive(f"{name}_sigma", prior, next(scales)),
                    found.positions[:, place],
                    labels,
                    number,
                    None if effect == ONE else columns[effect],
                )
            )
    return MixedParts(model, _learned(model), effects)


def _learned(model: MixedRegression) -> Positive | None:
    """The family's constant, as the model's variables call it."""
    if model.learned is None:
        return None
    place = model.num_fixed
    shown = next(v for v in model.variables.entries if np.array_equal(v.places, place))
    if not isinstance(model.learned, Reciprocal):
        return Positive(shown.name, model.learned, place)
    name = shown.name if shown.scale == "exp(-)" else f"{shown.name}_inverse"
    return Positive(name, model.learned.of, place, inverse=True)
