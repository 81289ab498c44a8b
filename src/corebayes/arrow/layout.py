"""Which parameters are wide, touched by rows of many groups, and which are one group's own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from corebayes.arrow.sparse import SparseWide
from corebayes.models.structure import Effects, Structure, StructuredModel
from corebayes.types import Array, Block, Indices

# Wide parameters whose pairs still fit: 600 of them have 180,000 quadratics.
MOST_WIDE = 600
# From so many on, a row's zeros among them are left out.
SPARSE = 96


class Split(NamedTuple):
    """Rows' predictors in the wide parameters (without scales) and in their group's own."""

    wide: Array | SparseWide
    """(n, k, p)."""
    own: Array
    """(n, k, q)."""
    groups: Indices
    """(n,): the group in the main term."""


@dataclass(frozen=True)
class Layout:
    """θ in two parts: wide parameters φ, and effects of the main term's groups.

    φ is what all rows share, the effects of all other terms, and last the scales, which no row
    touches.
    """

    structure: Structure

    @cached_property
    def main(self) -> Effects | None:
        place = self.structure.main
        return None if place is None else self.structure.terms[place]

    @property
    def num_groups(self) -> int:
        """Groups of the main term; one without effects where there is no term."""
        return 1 if self.main is None else self.main.num_groups

    @property
    def num_own(self) -> int:
        return 0 if self.main is None else self.main.num_effects

    @cached_property
    def others(self) -> list[tuple[int, Effects]]:
        """The terms that are not the main one, with their places."""
        main = self.structure.main
        return [pair for pair in enumerate(self.structure.terms) if pair[0] != main]

    @cached_property
    def wide_positions(self) -> Indices:
        """Where φ is in θ."""
        parts = [term.positions.ravel() for _, term in self.others]
        return np.concatenate([self.structure.shared, *parts, self.structure.scales])

    @cached_property
    def own_positions(self) -> Indices:
        """Where the effects are in θ, (groups, effects)."""
        return np.empty((1, 0), dtype=np.int64) if self.main is None else self.main.positions

    @property
    def num_wide(self) -> int:
        return self.wide_positions.size

    @property
    def num_touched(self) -> int:
        """Wide parameters that rows touch: all but the scales."""
        return self.num_wide - self.structure.scales.size

    @property
    def dim(self) -> int:
        return self.num_wide + self.own_positions.size

    def check(self) -> None:
        """Refuse what has too many pairs of parameters that meet."""
        if self.num_wide > MOST_WIDE:
            sizes = " × ".join(f"{term.num_groups:,}" for term in self.structure.terms)
            raise ValueError(
                f"{self.num_wide:,} parameters meet in rows of many groups ({sizes} groups, and "
                f"{self.structure.shared.size} shared parameters), more than {MOST_WIDE}: each "
                "pair of them is a quadratic of its own. Make the smaller group terms coarser, or "
                "leave one out"
            )

    def split(self, model: StructuredModel, block: Block) -> Split:
        """Cost: n·k·p numbers, or those that are not zero."""
        designs, groups = model.touch(block)
        starts = np.cumsum(
            [self.structure.shared.size, *(term.num_effects for term in self.structure.terms)]
        )
        wide, main = self._wide(designs, groups, starts), self.structure.main
        if main is None:
            nothing = np.empty((*designs.shape[:2], 0))
            return Split(wide, nothing, np.zeros(len(designs), dtype=np.int64))
        own = designs[:, :, starts[main] : starts[main + 1]]
        return Split(wide, own, np.asarray(groups[:, main], dtype=np.int64))

    def _wide(self, designs: Array, groups: Indices, starts: Indices) -> Array | SparseWide:
        shared = designs[:, :, : self.structure.shared.size]
        if not self.others:
            return shared
        column, columns, values = shared.shape[2], list[Indices](), list[Array]()
        for place, term in self.others:
            first = column + groups[:, place] * term.num_effects
            columns.extend(first + effect for effect in range(term.num_effects))
            values.append(designs[:, :, starts[place] : starts[place + 1]])
            column += term.size
        sparse = SparseWide(
            shared, np.concatenate(values, axis=2), np.stack(columns, axis=1), self.num_touched
        )
        return sparse if self.num_touched > SPARSE else sparse.dense()
