"""Means, standard deviations and quantiles of draws with their Monte Carlo errors, and how far two
such summaries are apart."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

QUANTILES = (0.05, 0.5, 0.95)
# Of a parameter, in this order.
PLACES = ("mean", "sd", *(f"q{100 * q:g}" for q in QUANTILES))


def summary(draws: np.ndarray) -> dict[str, Any]:
    """Values and errors of `PLACES`, and the effective sizes, of draws (chains, draws)."""
    from arviz_stats.base import array_stats

    def ask(what: Any, values: np.ndarray = draws, **how: Any) -> float:
        return float(np.ravel(what(values, chain_axis=0, draw_axis=1, **how))[0])

    values = [draws.mean(), draws.std(ddof=1), *np.quantile(draws, QUANTILES)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Of √m₂ by the delta method, with the effective size of the squares: ArviZ's own is half of
        # what repeated runs of NUTS differ by.
        squares = (draws - draws.mean()) ** 2
        of_sd = ask(array_stats.mcse, squares, method="mean") / (2.0 * draws.std())
        errors = [ask(array_stats.mcse, method="mean"), of_sd]
        errors += [ask(array_stats.mcse, method="quantile", prob=q) for q in QUANTILES]
        bulk = ask(array_stats.ess, method="bulk")
        tail = ask(array_stats.ess, method="tail", prob=(0.05, 0.95))
        rhat = ask(array_stats.rhat)
    return {
        "values": [float(f"{value:.7g}") for value in values],
        "errors": [float(f"{one:.3g}") for one in errors],
        "ess": round(min(bulk, tail)),
        "rhat": round(rhat, 4),
    }


def summaries(draws: Mapping[str, np.ndarray]) -> dict[str, dict[str, Any]]:
    """Of every parameter that moves."""
    return {name: summary(own) for name, own in draws.items() if np.ptp(own) > 0.0}


def smallest_ess(found: Mapping[str, Mapping[str, Any]], names: Iterable[str]) -> int:
    return min(found[name]["ess"] for name in names if name in found)


def apart(
    ours: Mapping[str, Mapping[str, Any]],
    truth: Mapping[str, Mapping[str, Any]],
    names: Iterable[str],
) -> dict[str, Any]:
    """The largest differences over these parameters.

    `mean` and `quantile` are in posterior standard deviations, `sd` is the ratio that is furthest
    from one; `noise` is the Monte Carlo error of that mean in the same unit, and `errors` the
    largest of all differences in units of its own Monte Carlo error.
    """
    mean, quantile, ratio, noise, errors, worst = 0.0, 0.0, 1.0, 0.0, 0.0, ""
    for name in names:
        if name not in ours or name not in truth:
            continue
        a, b = np.array(ours[name]["values"]), np.array(truth[name]["values"])
        both = np.hypot(ours[name]["errors"], truth[name]["errors"])
        sd, gap = b[1], np.abs(a - b)
        if gap[0] / sd > mean:
            mean, noise, worst = gap[0] / sd, both[0] / sd, name
        quantile = max(quantile, float(gap[2:].max() / sd))
        if abs(np.log(a[1] / sd)) > abs(np.log(ratio)):
            ratio = a[1] / sd
        errors = max(errors, float(np.max(gap / both)))
    return {
        "mean": float(mean),
        "noise": float(noise),
        "worst": worst,
        "quantile": quantile,
        "sd": float(ratio),
        "errors": errors,
    }
