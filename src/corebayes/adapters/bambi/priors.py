"""Bambi's priors as built-in ones; what has no counterpart here is said by an exception."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from corebayes.models.priors.scale import Exponential, Gamma, HalfNormal, HalfStudentT, ScalePrior
from corebayes.types import Array


class NoCounterpart(Exception):  # noqa: N818 - the model goes another way, and nothing is wrong
    """A piece of a Bambi model that no built-in model has."""


# The arguments that Bambi gives a prior, in the order of the built-in one.
POSITIVE: dict[str, tuple[tuple[str, ...], Callable[..., ScalePrior]]] = {
    "HalfNormal": (("sigma",), HalfNormal),
    "HalfStudentT": (("nu", "sigma"), HalfStudentT),
    "HalfCauchy": (("beta",), partial(HalfStudentT, 1.0)),
    "Exponential": (("lam",), Exponential),
    "Gamma": (("alpha", "beta"), Gamma),
}


def scale_priors(prior: Any, size: int) -> list[ScalePrior]:
    """The priors of `size` positive numbers; arguments of a prior are numbers or arrays."""
    names, make = POSITIVE.get(getattr(prior, "name", ""), ((), HalfNormal))
    if not names or set(prior.args) != set(names):
        raise NoCounterpart
    arguments = [spread(prior.args[name], size) for name in names]
    return [make(*(float(values[place]) for values in arguments)) for place in range(size)]


def normal_prior(prior: Any, size: int) -> tuple[Array, Array]:
    """Means and standard deviations of `size` coefficients."""
    if getattr(prior, "name", "") != "Normal" or set(prior.args) != {"mu", "sigma"}:
        raise NoCounterpart
    return spread(prior.args["mu"], size), spread(prior.args["sigma"], size)


def number(value: Any) -> float:
    """A constant, which is positive."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise NoCounterpart
    return float(value)


def spread(value: Any, size: int) -> Array:
    """A number or array of plain numbers as `size` numbers."""
    try:
        values = np.asarray(value, dtype=np.float64)
        return np.broadcast_to(values, size).copy()
    except (TypeError, ValueError):
        raise NoCounterpart from None
