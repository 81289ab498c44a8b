"""The log density of a NumPyro model, taken apart by one run of the model.

Unconstrained values are substituted as NumPyro's own `potential_energy` does it, with the
Jacobian of each transform as a factor site beside its variable. What every site adds is then split
by whether its log probabilities have an axis of rows: those that have are the likelihood.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from corebayes.adapters.adapted import Parameter

Sites = Mapping[str, Any]
Run = Callable[..., Any]

# Two numbers of rows to run the model on: an axis whose length follows is the axis of rows.
FEW, MORE = 5, 7


class SiteStructure(NamedTuple):
    """What a model is made of."""

    parameters: tuple[Parameter, ...]
    row_axes: dict[str, int]
    """The axis of rows, counted from the end, in the log probabilities of every observed site."""
    derived: tuple[str, ...]
    """Deterministic sites that are the same whatever the rows."""


def find_structure(few: Sites, more: Sites) -> SiteStructure:
    """The structure, from traces of the model on `FEW` and on `MORE` rows; or why there is none."""
    latent = [s for s in few.values() if s["type"] == "sample" and not s["is_observed"]]
    for site in few.values():
        _refuse_plate(site)
    for site in latent:
        _refuse_latent(site, more)
    row_axes: dict[str, int] = {}
    for name, site in few.items():
        if site["type"] == "sample" and site["is_observed"]:
            axis = _row_axis(site, more[name])
            if axis is not None:
                row_axes[name] = axis
    if not row_axes:
        raise ValueError(
            "the NumPyro model has no observed site with one log probability for each row: "
            "pass the observations, sample(..., obs=y), in a plate as long as the rows"
        )
    derived = tuple(
        name
        for name, site in few.items()
        if site["type"] == "deterministic" and _shape(site) == _shape(more[name])
    )
    return SiteStructure(tuple(map(_parameter, latent)), row_axes, derived)


def substitute_unconstrained(model: Run, values: Mapping[str, Any]) -> Run:
    """The model at unconstrained values, each with the log Jacobian as the site _<name>_log_det."""
    numpyro: Any = importlib.import_module("numpyro")

    def value_of(site: Any) -> Any:
        name = site["name"]
        if site["type"] != "sample" or name not in values:
            return None
        unconstrained, support = values[name], site["fn"].support
        if _is_real(support):
            return unconstrained
        transform = _transform(support)
        value = transform(unconstrained)
        log_determinant = transform.log_abs_det_jacobian(unconstrained, value)
        # One number for each entry of the batch, as the log probability has.
        extra = log_determinant.ndim - (value.ndim - len(site["fn"].event_shape))
        if extra > 0:
            log_determinant = log_determinant.sum(axis=tuple(range(-extra, 0)))
        numpyro.factor(f"_{name}_log_det", log_determinant)
        return value

    return numpyro.handlers.substitute(model, substitute_fn=value_of)


def log_probabilities(site: Any) -> Any:
    """What a site adds to the log density, entry by entry, with its scale and mask."""
    if site["intermediates"]:
        values = site["fn"].log_prob(site["value"], site["intermediates"])
    else:
        values = site["fn"].log_prob(site["value"])
    return values if site["scale"] is None else site["scale"] * values


def _transform(support: Any) -> Any:
    distributions: Any = importlib.import_module("numpyro.distributions")
    return distributions.biject_to(support)


def _is_real(support: Any) -> bool:
    constraints: Any = importlib.import_module("numpyro.distributions.constraints")
    base = getattr(support, "base_constraint", support)
    return support is constraints.real or base is constraints.real


def _parameter(site: Any) -> Parameter:
    name, support = site["name"], site["fn"].support
    shape = _transform(support).inverse_shape(_shape(site))
    return Parameter(name, name if _is_real(support) else f"{name}_unconstrained", tuple(shape))


def _shape(site: Any) -> tuple[int, ...]:
    return tuple(np.shape(site["value"]))


def _refuse_plate(site: Any) -> None:
    if site["type"] == "plate" and site["args"][1] not in (None, site["args"][0]):
        raise ValueError(
            f"the NumPyro plate {site['name']!r} takes a random subsample of {site['args'][1]} of "
            f"{site['args'][0]} rows at every run: leave out subsample_size, the coreset is the "
            "subsample"
        )


def _refuse_latent(site: Any, more: Sites) -> None:
    name, shape = site["name"], _shape(site)
    other = more.get(name)
    if name.endswith("_unobserved"):
        raise ValueError(
            f"the NumPyro site {name.removesuffix('_unobserved')!r} imputes observations "
            "(obs_mask): a missing observation is a latent variable of one row, which no coreset "
            "can keep. Leave out the rows where it is missing"
        )
    if other is None or _shape(other) != shape:
        found = "missing" if other is None else f"{_shape(other)}"
        raise ValueError(
            f"the latent NumPyro site {name!r} has a shape that changes with the number of rows, "
            f"{shape} for {FEW} rows and {found} for {MORE}: it is a latent variable of each row "
            "(marginalise it; or pass the observations, if it is one), or its length is computed "
            "from the rows (pass the number of groups as an argument instead)"
        )
    if site["fn"].support.is_discrete:
        raise ValueError(
            f"the latent NumPyro site {name!r} is discrete ({type(site['fn']).__name__}): "
            "gradients need continuous parameters. Sum it out of the likelihood, for instance "
            "with MixtureSameFamily"
        )


def _row_axis(site: Any, other: Any) -> int | None:
    """The axis of rows of an observed site's log probabilities; None if they have none."""
    name = site["name"]
    first, second = (np.shape(log_probabilities(one)) for one in (site, other))
    axes = [
        axis - len(first)
        for axis, (a, b) in enumerate(zip(first, second, strict=len(first) == len(second)))
        if a != b
    ]
    if len(axes) > 1 or len(first) != len(second):
        raise ValueError(
            f"the NumPyro site {name!r} has log probabilities of shape {first} for {FEW} rows and "
            f"{second} for {MORE}: they must have one axis of rows"
        )
    if axes:
        return axes[0]
    if _shape(site) != _shape(other):
        raise ValueError(
            f"the NumPyro site {name!r} puts all rows into one event (to_event, or a multivariate "
            "distribution over rows): a coreset needs one log probability for each row. Use a "
            "plate over the rows instead"
        )
    return None
