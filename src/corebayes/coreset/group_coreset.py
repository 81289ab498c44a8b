"""A few weighted groups, their effects integrated out, and the rows that stand for every group."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike

from corebayes.coreset.coreset import Coreset
from corebayes.models.marginal import MarginalRegression


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

    def __repr__(self) -> str:
        rows = int((self.rows["w"] > 0.0).sum())
        return (
            f"GroupCoreset({self.size} of {self.num_rows:,} groups, {rows:,} rows; "
            f"stopped: {self.reason})"
        )

    def save(self, path: str | PathLike[str]) -> None:
        raise TypeError(
            "a coreset of groups has no file of its own: save its level_one, a coreset of rows, "
            "and choose the groups again with choose_groups"
        )
