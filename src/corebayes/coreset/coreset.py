"""A few weighted rows, and where they come from: what `build` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from corebayes.coreset.check import check_parts
from corebayes.coreset.files import CorruptFile, read_coreset, write_coreset
from corebayes.files.reading import first_line
from corebayes.types import Array, Block, Indices, Model, WeightedPoints


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

    @property
    def size(self) -> int:
        return int(self.indices.size)

    @property
    def points(self) -> WeightedPoints:
        return WeightedPoints(self.indices, self.rows, self.weights)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        name = type(self.model).__name__
        return f"Coreset({self.size} of {self.num_rows:,} rows, {name}; stopped: {self.reason})"

    def save(self, path: str | PathLike[str]) -> None:
        """Write a Parquet table of the rows and their weights; see `corebayes.load`."""
        check_coreset(self, as_built=True)
        write_coreset(self, path)


def load(
    path: str | PathLike[str], model: Model | None = None, *, limit: str | int | None = None
) -> Coreset:
    """Read a coreset back bit for bit, or raise `CorruptFile`.

    A model made of Python functions is not in the file, since files hold no code: pass it as
    `model`. Tuples and arrays in trace and provenance come back as lists, as JSON has them.
    A file that would take more than `limit` bytes ("100MB", or what the environment variable
    COREBAYES_LIMIT says) is refused before they are allocated.
    """
    coreset = Coreset(**read_coreset(path, model, limit))
    try:
        check_parts(coreset, as_built=True)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CorruptFile(f"{path} does not hold a valid coreset: {first_line(error)}") from error
    return coreset


def check_coreset(coreset: Coreset, *, as_built: bool = False) -> None:
    """Whether it is one that `build` could have made; see `coreset.check`."""
    if not isinstance(coreset, Coreset):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"a coreset is needed, got {type(coreset).__name__}")
    check_parts(coreset, as_built=as_built)
