"""Posterior draws as one line of numbers for each parameter."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from corebayes.types import Array


def summarise(posterior: Any) -> list[dict[str, Any]]:
    """Mean, sd, 5 % and 95 % quantiles, effective sample size and split-R̂ of every parameter.

    `posterior` is an xarray Dataset with dimensions chain and draw, as `sample` returns it. With
    one chain R̂ compares its halves.
    """
    lines: list[dict[str, Any]] = []
    for name, variable in posterior.data_vars.items():
        values = np.asarray(variable.values, dtype=np.float64)
        labels = [variable[dimension].values for dimension in variable.dims[2:]]
        for place in np.ndindex(*values.shape[2:]):
            entry = ",".join(str(labels[axis][k]) for axis, k in enumerate(place))
            label = f"{name}[{entry}]" if entry else str(name)
            lines.append(describe(label, values[:, :, *place]))
    return lines


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
