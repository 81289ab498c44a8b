"""Posterior predictive checks: whether data as the model would make them look like the data.

    p = P(T(y_rep) ≥ T(y)),    y_rep ~ ∫ p(· | θ) π(θ) dθ

for statistics T of all rows (Gelman, Meng and Stern 1996); near 0 or 1 the model makes other data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from corebayes.arguments import checked_seed, checked_whole
from corebayes.coreset import Coreset, GroupCoreset
from corebayes.exact.opening import opened
from corebayes.extras import import_pyplot
from corebayes.files.markup import notebook, plain_table
from corebayes.models.families.labels import LabelRegression
from corebayes.predict.known import known_of
from corebayes.predict.replicates import Replicates, ReplicateSums, edges_of, quantiles
from corebayes.rows import Rows
from corebayes.sample import sample
from corebayes.scan.passes import Executor
from corebayes.types import Array


class Bins(NamedTuple):
    """Where the bins are, and how high: the data, and the middle 90 % of the replicates."""

    places: Array
    data: Array
    low: Array
    high: Array
    roots: bool
    """Whether heights are roots of the shares: for counts, so that rare ones are seen."""

    @property
    def num_outside(self) -> int:
        """Bins in which the data are outside of what is replicated."""
        return int(np.count_nonzero((self.data < self.low) | (self.data > self.high)))


def bins_of(edges: Array, shares: Array) -> Bins:
    """The bins between the edges, and the open ones beyond them."""
    counts = bool(np.all(edges == np.rint(edges - 0.5) + 0.5))
    heights = np.sqrt(shares) if counts else shares
    step = float(np.median(np.diff(edges))) if edges.size > 1 else 1.0
    middle = 0.5 * (edges[1:] + edges[:-1])
    places = np.concatenate([[edges[0] - 0.5 * step], middle, [edges[-1] + 0.5 * step]])
    low, high = np.quantile(heights[1:], [0.05, 0.95], axis=0)
    return Bins(places, heights[0], low, high, counts)


def plot_bins(bins: Bins, target_name: str, axes: Any = None) -> Any:
    """By matplotlib, on these axes or new ones, which are returned."""
    if axes is None:
        pyplot = import_pyplot()
        _, axes = pyplot.subplots(figsize=(6.0, 3.6), layout="constrained")
    axes.vlines(
        bins.places, bins.low, bins.high, color="#56B4E9", linewidth=6.0, label="replicated, 90 %"
    )
    axes.plot(bins.places, bins.data, "o", color="#000000", markersize=4.0, label="data")
    axes.set(xlabel=target_name, ylabel="√ share of rows" if bins.roots else "share of rows")
    axes.set_ylim(bottom=0.0)
    axes.legend(frameon=False)
    return axes


# Rows that tell where the targets lie.
SPREAD_ROWS = 20_000
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
# Bins of the picture.
SHOWN_BINS = 40


class Statistic(NamedTuple):
    """One number of the data, and of the replicates: their mean, 5 % and 95 % quantiles, and p."""

    name: str
    observed: float
    replicated: float
    lower: float
    upper: float
    p: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Check:
    """What `check` found."""

    statistics: tuple[Statistic, ...]
    num_rows: int
    num_draws: int
    target_name: str = "y"
    edges: Array = field(repr=False)
    """Of the bins of the picture; the outer two are open."""
    shares: Array = field(repr=False)
    """The share of rows in each bin: of the data, then of every replicate, (1 + S, bins)."""

    @property
    def suspicious(self) -> tuple[Statistic, ...]:
        """Statistics whose p is below 0.01 or above 0.99."""
        return tuple(one for one in self.statistics if min(one.p, 1.0 - one.p) < 0.01)

    @property
    def verdict(self) -> str:
        """One sentence."""
        if not self.suspicious:
            return (
                f"Replicated data look like the {self.num_rows:,} rows in all "
                f"{len(self.statistics)} statistics."
            )
        names = ", ".join(one.name for one in self.suspicious)
        return f"The model makes other data than these {self.num_rows:,} rows: see {names}."

    def __str__(self) -> str:
        lines = [self.verdict, ""]
        width = max(len(one.name) for one in self.statistics)
        header = "  ".join(f"{word:>12}" for word in ("data", "replicated", "5 %", "95 %"))
        lines.append(f"  {'':<{width}}  {header}      p")
        for one in self.statistics:
            cells = "  ".join(f"{number:>12.5g}" for number in one[1:5])
            lines.append(f"  {one.name:<{width}}  {cells}  {one.p:.3f}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        header = ("statistic", "data", "replicated", "5 %", "95 %", "p")
        rows = [
            [one.name, *(f"{number:,.5g}" for number in one[1:5]), f"{one.p:.3f}"]
            for one in self.statistics
        ]
        return notebook(self.verdict, plain_table(header, rows))

    @property
    def bins(self) -> Bins:
        """What the picture shows."""
        return bins_of(self.edges, self.shares)

    def plot(self, axes: Any = None) -> Any:
        """Shares of rows by the target, of the data and of the replicates, by matplotlib: on these
        axes or new ones, which are returned. What lies beyond is in the first and last bins."""
        return plot_bins(self.bins, self.target_name, axes)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and texts, for JSON."""
        return {
            "verdict": self.verdict,
            "num_rows": self.num_rows,
            "num_draws": self.num_draws,
            "statistics": [one._asdict() for one in self.statistics],
        }


def check(
    coreset: Coreset,
    data: Any,
    *,
    draws: Any = None,
    num_draws: int = 200,
    seed: int = 0,
    progress: bool | None = None,
    memory: str | int | None = None,
    executor: Executor | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    counts: Any = None,
    on_bad: str = "raise",
) -> Check:
    """Compare all rows with `num_draws` replicates of them, drawn from the posterior predictive.

    Statistics: mean, standard deviation, quantiles, smallest and largest target, the share of zeros
    where there are any, and the share of rows in bins, for a picture (of counts a rootogram). Each
    has p, the share of replicates in which it is larger than in the data (ties count half). Draws
    are of the coreset posterior, or those given as for `predict`; `data` and the names of columns
    are those of `certify`. A row that counts c times is drawn once, with the weight c.
    Cost: one pass of N · num_draws draws of y, in blocks of rows.
    """
    checked_whole("num_draws", num_draws, 20)
    checked_seed(seed)
    opening = {
        "memory": memory,
        "executor": executor,
        "target": target,
        "features": features,
        "counts": counts,
        "on_bad": on_bad,
    }
    # Rows are those of the coreset of rows that groups were chosen from.
    of_rows = coreset.level_one if isinstance(coreset, GroupCoreset) else coreset
    with opened(of_rows, data, stage="check", progress=progress, **opening) as (rows, say):
        if draws is None:
            say("sampling the coreset posterior")
            draws = sample(coreset, draws=250, chains=4, seed=seed, progress=False)
        say("replicating the rows")
        return check_rows(coreset, rows, draws, num_draws=num_draws, seed=seed)


def check_rows(coreset: Coreset, rows: Rows, draws: Any, *, num_draws: int, seed: int) -> Check:
    """The same of rows that are known to be the coreset's."""
    known = known_of(coreset, draws, num_draws, seed)
    if "y" not in rows.template.fields or rows.template.y.ndim != 1:
        raise TypeError(
            f"check is for rows with one target, which those of {type(coreset.model).__name__} "
            "have not"
        )
    some = rows.take(rows.some(np.random.default_rng(0), min(SPREAD_ROWS, rows.num_rows))).y
    model: Any = getattr(known.predictive, "model", coreset.model)
    family: Any = getattr(model, "family", model)
    # Labels may be −1 and 1 there, and are 0 and 1 in what is drawn.
    binary = isinstance(family, LabelRegression)
    some = (some > 0.0).astype(np.float64) if binary else some
    edges = edges_of(some)
    query = Replicates(known.predictive, edges, float(np.median(some)), binary, seed)
    found: ReplicateSums = rows.ask(query)
    return Check(
        statistics=tuple(_statistics(query, found)),
        num_rows=rows.num_rows - rows.num_left_out,
        num_draws=known.predictive.num_draws,
        target_name=known.target_name,
        **_picture(edges, found),
    )


def _statistics(query: Replicates, found: ReplicateSums) -> list[Statistic]:
    mean = found.total / found.weight
    named: dict[str, Array] = {"mean": query.middle + mean}
    if found.zeros.any():
        named["share of zeros"] = found.zeros / found.weight
    if not query.binary:
        variance = np.maximum(found.squares / found.weight - np.square(mean), 0.0)
        named["standard deviation"] = np.sqrt(variance)
        inner = quantiles(found, query.edges, np.array(SHARES))
        named["smallest"] = found.lowest
        for share, values in zip(SHARES, inner.T, strict=True):
            named[f"{100 * share:g} % quantile"] = values
        named["largest"] = found.highest
    return [_compared(name, values[0], values[1:]) for name, values in named.items()]


def _compared(name: str, observed: float, replicated: Array) -> Statistic:
    above, same = np.count_nonzero(replicated > observed), np.count_nonzero(replicated == observed)
    p = (above + 0.5 * same) / replicated.size
    lower, upper = np.quantile(replicated, [0.05, 0.95])
    return Statistic(name, float(observed), float(replicated.mean()), float(lower), float(upper), p)


def _picture(edges: Array, found: ReplicateSums) -> dict[str, Array]:
    """Fewer bins than were counted, for people."""
    step = max(1, -(-(edges.size + 1) // SHOWN_BINS))
    starts = np.arange(0, edges.size + 1, step)
    heights = np.add.reduceat(found.histogram, starts, axis=1)
    return {"edges": edges[starts[1:] - 1], "shares": heights / found.weight}
