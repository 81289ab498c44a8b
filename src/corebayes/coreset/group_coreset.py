"""A few weighted groups, their effects integrated out, and the rows that stand for every group."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from os import PathLike

import numpy as np

from corebayes.coreset.coreset import Coreset
from corebayes.models.mixed.marginal import NUM_NODES, MarginalRegression
from corebayes.models.mixed.regression import MixedRegression
from corebayes.types import Array, Block, Indices

# Where the provenance of a file says which groups are kept.
GROUPS = "groups"


@dataclass(frozen=True)
class GroupCoreset(Coreset):
    """A coreset whose rows are groups: what `build(..., unit="group")` returns.

    `indices` are numbers of groups and `num_rows` is how many there are; `rows` has the rows of
    level one of the groups that are kept, padded to one length. The model is one of
    φ = (β, log σ, log τ) alone.
    """

    level_one: Coreset = field(kw_only=True)
    """Weighted rows of all groups: for effects of any of them, and to place quadratures."""

    @property
    def marginal(self) -> MarginalRegression:
        assert isinstance(self.model, MarginalRegression)
        return self.model

    @property
    def data_rows(self) -> Block:
        return self.level_one.rows

    @property
    def noun(self) -> str:
        return "groups"

    @property
    def num_counted(self) -> int:
        return self.num_rows

    def __repr__(self) -> str:
        rows = int((self.rows["w"] > 0.0).sum())
        return (
            f"GroupCoreset({self.size} of {self.num_rows:,} groups, {rows:,} rows; "
            f"stopped: {self.reason})"
        )

    def save(self, path: str | PathLike[str], *, reserve: bool = True) -> None:
        """Write the rows of level one, and which groups of them are kept; see `corebayes.load`."""
        kept = {
            "indices": self.indices.tolist(),
            "weights": self.weights.tolist(),
            "num_nodes": self.marginal.num_nodes,
            "reason": self.reason,
        }
        provenance = {name: value for name, value in self.provenance.items() if name != "unit"}
        replace(self.level_one, provenance={**provenance, GROUPS: kept}).save(path, reserve=reserve)


def grouped(
    level_one: Coreset, model: MarginalRegression, kept: Indices, weights: Array, reason: str
) -> GroupCoreset:
    """The coreset of these groups, in order, as the rows of level one have them."""
    groups = model.group_block(level_one.rows, level_one.weights)
    return GroupCoreset(
        indices=kept,
        weights=weights,
        rows=_trimmed(groups, kept),
        model=model,
        num_rows=len(groups),
        total_count=float(len(groups)),
        reason=reason,
        trace=level_one.trace,
        provenance={**level_one.provenance, "unit": model.mixed.terms[0].group},
        level_one=level_one,
    )


def with_groups(saved: Coreset) -> GroupCoreset:
    """What `save` wrote, made again and checked like anything that a stranger wrote."""
    provenance = dict(saved.provenance)
    described = provenance.pop(GROUPS)
    level_one, mixed = replace(saved, provenance=provenance), saved.model
    if not isinstance(mixed, MixedRegression):
        raise ValueError(f"{type(mixed).__name__} has no groups to keep")
    nodes, reason = described["num_nodes"], described["reason"]
    if type(nodes) is not int or not 1 <= nodes <= NUM_NODES or type(reason) is not str:
        raise ValueError("its groups have no quadrature")
    kept = np.array(described["indices"])
    weights = np.array(described["weights"], dtype=np.float64)
    num_groups = MarginalRegression(mixed, nodes).mixed.structure.terms[0].num_groups
    known = kept.ndim == 1 and kept.size > 0 and kept.dtype.kind == "i"
    if not known or kept[0] < 0 or kept[-1] >= num_groups or not np.all(np.diff(kept) > 0):
        raise ValueError("its groups are not numbers of groups, in order")
    if weights.shape != kept.shape or not np.all(np.isfinite(weights) & (weights > 0.0)):
        raise ValueError("its groups have not each a positive weight")
    model = MarginalRegression(mixed, nodes)
    return grouped(level_one, model, kept.astype(np.int64), weights, reason)


def _trimmed(groups: Block, kept: Indices) -> Block:
    """The kept groups, no longer than the longest of them."""
    block = groups.take(kept)
    longest = max(1, int((block["w"] > 0.0).sum(axis=1).max(initial=1)))
    fields = {
        name: values if values.ndim == 1 else values[:, :longest]
        for name, values in block.fields.items()
    }
    return Block(fields)
