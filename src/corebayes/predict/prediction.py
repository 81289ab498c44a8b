"""What is predicted for every row: means, intervals and, where they were asked for, draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corebayes.types import Array

COLUMNS = ("mean", "mean_lower", "mean_upper", "sd", "lower", "upper")


@dataclass(frozen=True, kw_only=True, eq=False)
class Prediction:
    """Predictions of N rows: what `predict` returns.

    `mean` is E[y] of each row, `mean_lower` and `mean_upper` bound E[y | θ] over the draws θ (what
    is known about the mean), `lower` and `upper` bound y itself (where a new observation falls),
    and `sd` is the standard deviation of y. Intervals have equal tails. Of categories there are
    `likeliest` and, for each label k, `p[k]` with `p_lower[k]` and `p_upper[k]` instead.
    """

    columns: Mapping[str, Array]
    """By name, each (N,); empty when they were written to a file."""
    interval: float
    """The probability inside the intervals."""
    num_draws: int
    num_rows: int
    target_name: str = "y"
    draws: Array | None = field(default=None, repr=False)
    """Draws of y, (N, S); None unless they were asked for."""
    new_groups: Mapping[str, Sequence[Any]] = field(default_factory=dict[str, Sequence[Any]])
    """Groups that the model has not seen, by column: their effects were drawn from N(0, τ²)."""

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def __len__(self) -> int:
        return self.num_rows

    @property
    def mean(self) -> Array:
        return self.columns["mean"]

    @property
    def lower(self) -> Array:
        return self.columns["lower"]

    @property
    def upper(self) -> Array:
        return self.columns["upper"]

    def to_frame(self) -> Any:
        """A pandas frame with one line for each row."""
        import pandas

        return pandas.DataFrame(dict(self.columns))

    def __repr__(self) -> str:
        text = (
            f"Prediction of {self.target_name!r} in {self.num_rows:,} rows from {self.num_draws:,} "
            f"draws, intervals of {self.interval:.0%}"
        )
        said = new_groups_said(self.new_groups)
        return f"{text}; {said}" if said else text


def new_groups_said(new_groups: Mapping[str, Sequence[Any]]) -> str:
    """One line about groups that the model has not seen; empty without any."""
    parts: list[str] = []
    for column, groups in new_groups.items():
        some = ", ".join(map(str, groups[:3])) + ", …" * (len(groups) > 3)
        parts.append(f"{len(groups):,} of {column!r} ({some})")
    if not parts:
        return ""
    return f"new groups, whose effects are draws of N(0, τ²): {'; '.join(parts)}"


def summarised(
    means: Array, draws: Array, interval: float, labels: Sequence[float | str] = ()
) -> dict[str, Array]:
    """The columns of some rows, from means and draws (n, S)."""
    tails = [0.5 - 0.5 * interval, 0.5 + 0.5 * interval]
    if labels:
        return _of_categories(means, tails, labels)
    means = np.broadcast_to(means, draws.shape)
    mean_lower, mean_upper = np.quantile(means, tails, axis=1)
    # Ends that were drawn: of counts they are counts.
    lower, upper = np.quantile(draws, tails, axis=1, method="inverted_cdf")
    values = means.mean(axis=1), mean_lower, mean_upper, draws.std(axis=1), lower, upper
    return dict(zip(COLUMNS, values, strict=True))


def _of_categories(
    probabilities: Array, tails: Sequence[float], labels: Sequence[float | str]
) -> dict[str, Array]:
    """The likeliest category and, of each, its probability with an interval."""
    whole = probabilities.mean(axis=1)
    columns = {"likeliest": np.array(labels)[whole.argmax(axis=1)]}
    ends = np.quantile(probabilities, tails, axis=1)
    for place, label in enumerate(labels):
        name = label if isinstance(label, str) else f"{label:g}"
        columns[f"p[{name}]"] = whole[:, place]
        columns[f"p_lower[{name}]"] = ends[0][:, place]
        columns[f"p_upper[{name}]"] = ends[1][:, place]
    return columns
