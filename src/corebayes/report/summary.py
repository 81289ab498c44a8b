"""Posterior draws as one line of numbers for each parameter."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from corebayes.samplers.parameters import posterior_of
from corebayes.types import Array


def summarise(posterior: Any) -> list[dict[str, Any]]:
    """Mean, sd, 5 % and 95 % quantiles, effective sample size and split-R̂ of every parameter.

    `posterior` is an xarray Dataset with dimensions chain and draw, as `sample` returns it. With
    one chain R̂ compares its halves.
    """
    return [describe(name, values) for name, values in scalars(posterior)]


def scalars(posterior: Any) -> Iterator[tuple[str, Array]]:
    """Every number of the variables under its own name, (chains, draws)."""
    for name, variable in posterior.data_vars.items():
        values = np.asarray(variable.values, dtype=np.float64)
        labels = [variable[dimension].values for dimension in variable.dims[2:]]
        for place in np.ndindex(*values.shape[2:]):
            entry = ",".join(str(labels[axis][k]) for axis, k in enumerate(place))
            yield (f"{name}[{entry}]" if entry else str(name)), values[:, :, *place]


def describe(name: str, draws: Array) -> dict[str, Any]:
    """The line of one parameter, from draws of shape (chains, draws)."""
    stats: Any = importlib.import_module("arviz_stats.base").array_stats
    low, high = np.quantile(draws, [0.05, 0.95])
    return {
        "name": name,
        "mean": float(draws.mean()),
        "sd": float(draws.std(ddof=1)),
        "5%": float(low),
        "95%": float(high),
        "ess": float(stats.ess(draws, chain_axis=0, draw_axis=1)),
        "r_hat": float(stats.rhat(draws, chain_axis=0, draw_axis=1)),
    }


def summary(draws: Any, *, interval: float = 0.9, kind: str = "eti") -> Any:
    """Posterior draws as a pandas frame with a line for each parameter, under its real name.

    `draws` is what `sample`, `correct` or `laplace` returned. Columns: mean, sd, the ends of an
    interval that has the probability `interval` (`kind` "eti" has equal tails, "hdi" is the
    narrowest), effective sample sizes for means (ess_bulk) and for tails (ess_tail), and R̂.
    """
    if kind not in ("eti", "hdi"):
        raise ValueError(f'kind must be "eti" or "hdi", got {kind!r}')
    if not 0.0 < interval < 1.0:
        raise ValueError(f"interval must be a probability between 0 and 1, got {interval!r}")
    posterior = posterior_of(draws)
    posterior = draws if posterior is None else posterior
    if not hasattr(posterior, "data_vars"):
        raise TypeError(f"summary takes draws as `sample` returns them, got {type(draws).__name__}")
    stats: Any = importlib.import_module("arviz_stats.base").array_stats
    pandas: Any = importlib.import_module("pandas")
    lines: dict[str, dict[str, float]] = {}
    for name, values in scalars(posterior):
        tails = [0.5 - 0.5 * interval, 0.5 + 0.5 * interval]
        ends = np.quantile(values, tails) if kind == "eti" else _narrowest(values, interval)
        lines[name] = {
            "mean": float(values.mean()),
            "sd": float(values.std(ddof=1)),
            f"{kind}{100 * interval:g}_lower": float(ends[0]),
            f"{kind}{100 * interval:g}_upper": float(ends[1]),
            "ess_bulk": float(stats.ess(values, chain_axis=0, draw_axis=1)),
            "ess_tail": float(
                stats.ess(values, chain_axis=0, draw_axis=1, method="tail", prob=(0.05, 0.95))
            ),
            "r_hat": float(stats.rhat(values, chain_axis=0, draw_axis=1)),
        }
    return pandas.DataFrame.from_dict(lines, orient="index")


def _narrowest(values: Array, interval: float) -> Array:
    """The shortest interval with this share of the draws."""
    ordered = np.sort(values, axis=None)
    inside = int(np.ceil(interval * ordered.size))
    widths = ordered[inside - 1 :] - ordered[: ordered.size - inside + 1]
    first = int(np.argmin(widths))
    return ordered[[first, first + inside - 1]]
