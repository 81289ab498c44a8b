"""Leave-one-out cross-validation of all rows, in one pass that never holds N × S numbers.

For draws θ_s of the posterior of all rows, what row n would be worth to one that has not seen it is

    elpd_n = log Σ_s u_ns p(x_n | θ_s) / Σ_s u_ns,    u_ns = Pareto-smoothed 1 / p(x_n | θ_s)

(Vehtari, Gelman and Gabry 2017). A row that counts c times leaves out one of its c copies.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from corebayes.arguments import checked_seed, checked_whole
from corebayes.coreset import Coreset
from corebayes.exact.correct import corrected, warn_if_poor
from corebayes.exact.opening import opened
from corebayes.extras import import_extra
from corebayes.samplers.convergence import mean_ess
from corebayes.samplers.pareto import smooth, tail_length
from corebayes.scan.every_row import joined
from corebayes.scan.passes import Executor
from corebayes.scan.query import BadPotentialError, OfWidth
from corebayes.types import Array, Block, Indices, Model


class Elpd(NamedTuple):
    """Of some rows: Σ c, Σ c elpd, Σ c (elpd − mean)², Σ c lppd, and every row's where wanted."""

    weight: float
    total: float
    squares: float
    lppd: float
    num_bad: int
    """Rows whose k̂ is above the limit."""
    elpds: tuple[Array, ...]
    shapes: tuple[Array, ...]


@dataclass(frozen=True)
class LeaveOneOut(OfWidth):
    """PSIS-LOO of every row at draws (S, d) of π. Cost: N·S potentials and as many comparisons."""

    model: Model
    draws: Array
    num_tail: int
    limit: float
    pointwise: bool

    @property
    def width(self) -> int:
        return len(self.draws)

    def answer(self, block: Block, numbers: Indices) -> Elpd:
        values = self.model.potentials(self.draws, block)
        values += self.model.log_base(block)[:, None]
        counts = block.multiplicity()
        bad = (counts > 0.0) & ~np.isfinite(values).all(axis=1)
        if bad.any():
            raise BadPotentialError(int(numbers[int(np.argmax(bad))]))
        weights, shapes = smooth(-values, self.num_tail)
        elpds = _log_sums(weights + values)
        lppds = _log_sums(values) - np.log(len(self.draws))
        kept = counts > 0.0
        weight, total = float(counts.sum()), float(counts @ elpds)
        squares = float(counts @ np.square(elpds - total / max(weight, 1e-300)))
        return Elpd(
            weight,
            total,
            squares,
            float(counts @ lppds),
            int(np.count_nonzero(shapes[kept] > self.limit)),
            (counts * elpds,) if self.pointwise else (),
            (np.where(kept, shapes, 0.0),) if self.pointwise else (),
        )

    def merge(self, first: Elpd, second: Elpd) -> Elpd:
        both: Any = zip(first, second, strict=True)
        added = Elpd(*(a + b for a, b in both))
        if first.weight == 0.0 or second.weight == 0.0:
            return added
        # Sums of squares around the common mean (Chan, Golub and LeVeque 1983)
        gap = first.total / first.weight - second.total / second.weight
        apart = gap**2 * first.weight * second.weight / added.weight
        return added._replace(squares=added.squares + apart)


def loo(
    coreset: Coreset,
    data: Any,
    *,
    draws: int = 250,
    chains: int = 4,
    seed: int = 0,
    pointwise: bool = True,
    reff: float | None = None,
    progress: bool | None = None,
    memory: str | int | None = None,
    executor: Executor | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    counts: Any = None,
    on_bad: str = "raise",
) -> Any:
    """PSIS-LOO of all rows as ArviZ's `ELPDData`, which `arviz.compare` takes.

    Draws are those that `correct` makes with the same `draws`, `chains` and `seed`. With
    `pointwise` there are N values `loo_i` and N shapes `pareto_k`, which `arviz.compare` needs;
    without, only sums are kept. `reff` is the relative efficiency of the draws; by default
    measured, as in `arviz.loo`. A row that counts c times has c times its value in `loo_i`.
    A warning says how many rows have a k̂ above the limit for so many draws: they are influential,
    and their values uncertain.
    Cost: that of `correct`, then one pass of N · chains · draws potentials, in blocks of rows.
    """
    checked_whole("draws", draws, 25)
    checked_whole("chains", chains)
    checked_seed(seed)
    if reff is not None and not 0.0 < reff <= 10.0:
        raise ValueError(f"reff must be a positive number, about 1 at most, got {reff!r}")
    elpd_type = _elpd_type()
    rng = np.random.default_rng(seed)
    opening = {
        "memory": memory,
        "executor": executor,
        "target": target,
        "features": features,
        "counts": counts,
        "on_bad": on_bad,
    }
    with opened(coreset, data, stage="loo", progress=progress, **opening) as (rows, say):
        say("drawing from the posterior of all rows")
        exactly = corrected(rng, coreset, rows, draws, chains)
        warn_if_poor(coreset, exactly)
        number = draws * chains
        if reff is None:
            reff = 1.0 if chains == 1 else mean_ess(exactly.values) / number
        limit = min(1.0 - 1.0 / np.log10(number), 0.7)
        say("leaving out every row")
        flat = exactly.values.reshape(number, -1)
        query = LeaveOneOut(coreset.model, flat, tail_length(number, reff), limit, pointwise)
        found = rows.ask(query)
    if found.num_bad:
        warnings.warn(
            f"{found.num_bad:,} of {coreset.num_rows:,} rows have a Pareto k̂ above {limit:.2f}: "
            "they change the posterior so much that their values are uncertain. Take more draws, "
            "or a model with heavier tails",
            UserWarning,
            stacklevel=2,
        )
    return _elpd_data(elpd_type, found, number, limit)


def _log_sums(values: Array) -> Array:
    """log Σ_s e^{v_ns} of every row, whose values are written over."""
    top = values.max(axis=1)
    values -= top[:, None]
    np.exp(values, out=values)
    return top + np.log(values.sum(axis=1))


def _elpd_type() -> Any:
    """What this version of ArviZ works with; missing, it is an error before any pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_extra("arviz", "loo returns a type of", "sample")
        try:
            return importlib.import_module("arviz.stats.stats_utils").ELPDData
        except ImportError:
            return importlib.import_module("arviz_stats.utils").ELPDData


def _elpd_data(kind: Any, found: Elpd, num_draws: int, limit: float) -> Any:
    error = float(np.sqrt(found.squares))
    fields: dict[str, Any] = {
        "elpd_loo": found.total,
        "se": error,
        "p_loo": found.lppd - found.total,
        "n_samples": num_draws,
        "n_data_points": round(found.weight),
        "warning": found.num_bad > 0,
    }
    if found.elpds:
        xarray: Any = importlib.import_module("xarray")
        values = joined(found.elpds)
        rows = {"row": np.arange(values.size)}
        fields["loo_i"] = xarray.DataArray(values, dims="row", coords=rows, name="loo_i")
        fields["pareto_k"] = xarray.DataArray(
            joined(found.shapes), dims="row", coords=rows, name="pareto_shape"
        )
    fields |= {"scale": "log", "good_k": limit}
    if hasattr(kind, "__dataclass_fields__"):
        # ArviZ 1 has other names for the same.
        renamed = {"elpd_loo": "elpd", "p_loo": "p", "loo_i": "elpd_i"}
        return kind(kind="loo", **{renamed.get(name, name): v for name, v in fields.items()})
    return kind(data=list(fields.values()), index=list(fields))
