"""A few weighted rows, and where they come from: what `build` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from corebayes.coreset.check import check_parts
from corebayes.coreset.files import write_coreset
from corebayes.coreset.missed import Missed
from corebayes.coreset.shown import plot, to_frame, to_html
from corebayes.coreset.sources import Source, origins_of, sources_of
from corebayes.models.priors.table import title_of
from corebayes.types import Array, Block, Indices, Model, WeightedPoints

# Names that would say that a file holds something else than it does.
OTHER_FORMATS = (".csv", ".feather", ".json", ".nc", ".npy", ".npz", ".pkl", ".txt", ".xlsx")


@dataclass(frozen=True)
class Coreset:
    """A few weighted rows whose posterior stands for the posterior of all rows.

    `weights` multiply log-likelihoods: the coreset log-density is
    log_prior(θ) + Σ_i weights[i] · log p(rows[i] | θ). `indices` are the rows' numbers in the data;
    rows that were learned and are none of the data's have the numbers −1, −2, ….
    """

    indices: Indices
    weights: Array
    rows: Block
    model: Model
    num_rows: int
    total_count: float
    reason: str = ""
    trace: tuple[dict[str, Any], ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict[str, Any])
    reserve: WeightedPoints | None = field(default=None, repr=False)
    """More rows, with weights of their own, that stand for the data more finely than these: what
    `update` and `merge` go on from. None when there are no finer ones."""
    missed: Missed | None = field(default=None, repr=False)
    """What the reserve misses, as a polynomial, for when the posterior has moved; nothing without a
    reserve, or where it is not known."""

    @property
    def data_rows(self) -> Block:
        """Rows with the columns of the data, whatever a row of this coreset is."""
        return self.rows

    @property
    def noun(self) -> str:
        """What the numbers count: rows, or units of several rows."""
        return "rows" if self.provenance.get("unit") is None else "units"

    @property
    def num_counted(self) -> int:
        """The rows that it stands for: all but those that count zero times, such as rows that
        were left out for a missing value."""
        return self.num_rows - int(self.provenance.get("left_out", 0))

    @property
    def size(self) -> int:
        return int(self.indices.size)

    @property
    def points(self) -> WeightedPoints:
        return WeightedPoints(self.indices, self.rows, self.weights)

    @property
    def finest(self) -> Coreset:
        """The reserve as a coreset, or this one without a reserve."""
        if self.reserve is None:
            return self
        return replace(self, **self.reserve._asdict(), reserve=None, missed=None)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The tables that it stands for, in the order of its row numbers."""
        return sources_of(self)

    @property
    def origins(self) -> list[tuple[str, int]]:
        """For every row the name of its source and its number there."""
        return origins_of(self.sources, self.indices)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        name = title_of(self.model)
        what = f"{self.size} of {self.num_counted:,} {self.noun}"
        return f"Coreset({what}, {name}; stopped: {self.reason})"

    def to_frame(self) -> Any:
        """A pandas frame: `row_id` (numbered from 0), `weight`, and the columns of the rows, which
        for a coreset of a formula are those that the formula was given, as far as they can be read
        off its own."""
        return to_frame(self)

    def plot(self, axes: Any = None) -> Any:
        """Two pictures by matplotlib, on these two `axes` or new ones, which are returned: the
        weights, largest first, and the rows in two of their columns, with areas as weights."""
        return plot(self, axes)

    def _repr_html_(self) -> str:
        return to_html(self)

    def save(self, path: str | PathLike[str], *, reserve: bool = True) -> None:
        """Write a Parquet table of the rows and their weights; see `corebayes.load`.

        Rows of the reserve stand below them with the weight zero and a weight of their own in
        another column; with `reserve=False` they are left out, and `update` and `merge` of what is
        loaded go on from the rows of the coreset alone.
        """
        if Path(path).suffix.lower() in OTHER_FORMATS:
            raise ValueError(
                f"a coreset is saved as Parquet, with its model: end the name in .parquet, not as "
                f"in {path}; corebayes.to_csv(coreset, path) writes a table for other tools"
            )
        check_coreset(self, as_built=True)
        write_coreset(self if reserve else replace(self, reserve=None, missed=None), path)


def check_coreset(coreset: Coreset, *, as_built: bool = False) -> None:
    """Whether it is one that `build` could have made; see `coreset.check`."""
    if not isinstance(coreset, Coreset):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"a coreset is needed, got {type(coreset).__name__}")
    check_parts(coreset, as_built=as_built)
