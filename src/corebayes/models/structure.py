"""Which parameters a row touches, when it touches few: mixed models.

Row n sees θ through k predictors, f_n(θ) = ℓ_n(A_n θ) with A_n of k rows, whose columns are zero
but for the parameters that all rows share and, of each group term, the effects of the row's group.
So sums over rows of gradients A_nᵀc_n and Hessians A_nᵀC_nA_n have few nonzeros, and so does
everything that a coreset must match:

    p + p(p + 1)/2  numbers of the p shared parameters, and for each group
    q + q(q + 1)/2 + pq  of its q effects, alone and beside the shared parameters.

Scales τ of the effects are parameters that no row touches: they are in the prior only.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from corebayes.types import Array, Block, Indices, Model


class Effects(NamedTuple):
    """The effects of one group term: effect j of group g is parameter start + g·num_effects + j,
    unless `places` says where they are."""

    name: str
    start: int
    num_groups: int
    num_effects: int
    places: Indices | None = None
    """(groups, effects) positions in θ, where a model of one's own has them otherwise."""

    @property
    def size(self) -> int:
        return self.num_groups * self.num_effects

    @property
    def positions(self) -> Indices:
        """(groups, effects) positions in θ."""
        if self.places is not None:
            return self.places
        numbers = np.arange(self.start, self.start + self.size)
        return numbers.reshape(self.num_groups, self.num_effects)


class Structure(NamedTuple):
    """Where the parameters are: those of all rows, those of no row, and the effects of groups."""

    shared: Indices
    """Positions in θ of what every row touches: coefficients, log σ, …"""
    scales: Indices
    """Positions of what only the prior touches: log τ."""
    terms: tuple[Effects, ...]
    num_predictors: int | None = None
    """Through how many predictors rows see what they touch, where that was found out."""

    @property
    def main(self) -> int | None:
        """The term with the most effects, whose groups are fitted one beside the other; None where
        no term has two groups, since nothing tells effects of one group from coefficients."""
        sizes = [term.size if term.num_groups > 1 else 0 for term in self.terms]
        return int(np.argmax(sizes)) if any(sizes) else None

    @property
    def num_matched(self) -> int:
        """Rows that can match every quadratic that rows touch: one more than these numbers."""
        q = [term.num_effects for term in self.terms]
        p, matched = self.shared.size, 1
        matched += p * (p + 3) // 2
        for place, term in enumerate(self.terms):
            own = q[place]
            matched += term.num_groups * (own * (own + 3) // 2 + p * own)
            for other in self.terms[:place]:
                # Each pair of groups of two crossed terms is a quadratic of its own.
                matched += term.size * other.size
        return matched

    def describe(self) -> str:
        """As a person would say it."""
        dim = self.shared.size + self.scales.size + sum(term.size for term in self.terms)
        # Where there is nothing else, nobody asks what is shared.
        parts = [f"{self.shared.size:,} shared by all rows"] if self.shared.size < dim else []
        if self.scales.size:
            parts.append(f"{self.scales.size:,} of the prior only")
        for term in self.terms:
            groups = f"{term.num_groups:,} groups of {term.name}"
            many = "" if term.num_effects == 1 else f", {term.num_effects} for each"
            parts.append(f"{term.size:,} of the {groups}{many}")
        through = ""
        if self.num_predictors is not None:
            many = (
                "a linear predictor"
                if self.num_predictors == 1
                else f"{self.num_predictors} linear predictors"
            )
            through = f"; rows see them through {many}"
        return f"{dim:,} parameters{': ' * bool(parts)}{', '.join(parts)}{through}"


class Touch(NamedTuple):
    """The rows' predictors in the parameters that they touch."""

    designs: Array
    """(n, k, m): A_n on the m touched parameters, the shared ones first, then each term's."""
    groups: NDArray[np.intp]
    """(n, terms): the row's group in each term."""


class Jets(NamedTuple):
    """Potentials of rows and their derivatives in the k predictors, at R places each."""

    value: Array
    """(n, R)."""
    first: Array
    """(n, k, R)."""
    second: Array
    """(n, k, k, R)."""


class StructuredModel(Model, Protocol):
    """A model whose rows touch few parameters, through predictors."""

    @property
    def structure(self) -> Structure: ...

    @property
    def num_predictors(self) -> int:
        """k."""
        ...

    def touch(self, block: Block) -> Touch: ...

    def jets(self, predictors: Array, block: Block) -> Jets:
        """At predictors (n, k, R)."""
        ...


def is_structured(model: Model) -> TypeGuard[StructuredModel]:
    """Whether the rows of a bound model are known to touch few parameters."""
    return getattr(model, "structure", None) is not None


def is_hierarchical(model: Model) -> bool:
    """Whether some parameters are known through others: effects of groups, scales of a prior."""
    return is_structured(model) and bool(model.structure.terms or model.structure.scales.size)
