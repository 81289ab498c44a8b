"""A mixed regression taken apart for another library.

    η = X·coefficients + Σ_e z_e · b_e[group],   b_e ~ N(0, τ_e²),   y ~ family(η; constants)

in the centred form, one vector b_e of all groups for each effect e. Every variable is named, with
its places in θ, so that a library's density can be compared with ours.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from corebayes.coreset import Coreset
from corebayes.models import MixedRegression
from corebayes.models.families.family import Family
from corebayes.models.mixed.groups import ONE
from corebayes.models.priors.scale import Reciprocal, ScalePrior
from corebayes.models.priors.shrinkage import HorseshoePrior
from corebayes.types import Array, Block, Indices


class Single(NamedTuple):
    """A variable of one number with its prior: a standard deviation, or the family's constant."""

    name: str
    prior: ScalePrior
    place: int
    """In θ: of its logarithm, its log odds, or itself."""
    constant: str = ""
    """What the family calls it; nothing for a standard deviation."""
    inverse: bool = False
    """Whether the variable is one over what the model has."""


class Effect(NamedTuple):
    """One effect of all groups of a term."""

    name: str
    scale: Single
    places: Indices
    """In θ, (groups,)."""
    labels: tuple[Any, ...]
    term: int
    column: int | None
    """Of X, which it is multiplied by; None for the constant."""
    predictor: int
    """Which linear predictor it is added to."""


class Shrinkage(NamedTuple):
    """A horseshoe and its variables: τ, and 1/c²."""

    of: HorseshoePrior
    tau: Single
    slab: Single


class MixedParts(NamedTuple):
    model: MixedRegression
    learned: list[Single]
    effects: list[Effect]
    shrinkages: list[Shrinkage]

    def scales(self) -> list[Single]:
        of_horseshoes = [one for shrunk in self.shrinkages for one in (shrunk.tau, shrunk.slab)]
        return [*self.learned, *(effect.scale for effect in self.effects), *of_horseshoes]

    def family(self, values: Sequence[Any]) -> Family:
        """The family with these values of the learned constants, be they numbers or symbols."""
        family = copy.copy(self.model.family)
        for one, value in zip(self.learned, values, strict=True):
            object.__setattr__(family, one.constant, 1.0 / value if one.inverse else value)
        return family

    def etas(self, X: Any, coefficients: Any, offset: Any) -> list[Any]:
        """The linear predictors without effects."""
        slices = map(self.model.coefficients, range(len(self.model.family.linear)))
        etas = [X @ coefficients[own] for own in slices]
        return etas if offset is None else [eta + offset for eta in etas]

    def row(self, rows: Block) -> dict[str, Array]:
        """What the family sees of rows beside the predictors, (n,) each."""
        return {name: values[:, 0] for name, values in self.model.row(rows).items()}

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
        for place, effect in enumerate(model.effects_of(term)):
            name = effect.called
            effects.append(
                Effect(
                    name,
                    Single(f"{name}_sigma", effect.prior, next(scales)),
                    found.positions[:, place],
                    labels,
                    number,
                    None if effect.name == ONE else columns[effect.name],
                    effect.predictor,
                )
            )
    return MixedParts(model, _learned(model), effects, _shrinkages(model))


def _shrinkages(model: MixedRegression) -> list[Shrinkage]:
    names = iter(model.horseshoe_names)
    return [
        Shrinkage(
            one,
            Single(next(names), one.horseshoe.tau, one.tau),
            Single(f"{next(names)}_inverse", one.horseshoe.slab.of, one.slab, inverse=True),
        )
        for one in model.horseshoes
    ]


def _learned(model: MixedRegression) -> list[Single]:
    """The family's constants, as the model's variables call them."""
    shown = {int(v.places): v for v in model.variables.entries if np.ndim(v.places) == 0}
    found: list[Single] = []
    for place, one in enumerate(model.constants, model.num_fixed):
        name = shown[place].name if place in shown else one.name
        if isinstance(one.prior, Reciprocal):
            own = name if shown[place].scale == "exp(-)" else f"{name}_inverse"
            found.append(Single(own, one.prior.of, place, one.name, inverse=True))
        else:
            found.append(Single(name, one.prior, place, one.name))
    return found
