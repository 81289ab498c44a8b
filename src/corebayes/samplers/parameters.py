"""θ of draws, from whatever a person has them in: arrays, or ArviZ data with named variables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from corebayes.models.variables import Variables
from corebayes.types import Array


def parameters_of(model: Any, draws: Any) -> Array:
    """θ (…, d) of an array, or of ArviZ data that has every variable of the model."""
    posterior = posterior_of(draws)
    if posterior is None:
        theta = np.asarray(draws, dtype=np.float64)
        if theta.ndim < 2 or theta.shape[-1] != model.dim:
            raise ValueError(
                f"draws must be what sample gave, or an array (…, {model.dim}), got the shape "
                f"{theta.shape}"
            )
        return theta
    shown: Any = getattr(model, "variables", None)
    if isinstance(shown, Variables):
        return _of_variables(shown, model.dim, posterior)
    if hasattr(model, "constrain"):
        raise TypeError(
            f"the draws of a {type(model).__name__} are its own variables, not its parameters θ"
        )
    return _of_names(model.parameter_names, posterior)


def posterior_of(draws: Any) -> Any:
    """The group `posterior` of ArviZ data; None for anything else."""
    try:
        return None if isinstance(draws, np.ndarray | list | tuple) else draws["posterior"]
    except (KeyError, TypeError, IndexError, AttributeError):
        return None


def grouped_names(names: tuple[str, ...]) -> dict[str, dict[str, int]]:
    """{"beta": {"0": 0, "1": 1}, "sigma": {"": 2}} from ("beta[0]", "beta[1]", "sigma")."""
    scalars = set(names)
    groups: dict[str, dict[str, int]] = {}
    for position, name in enumerate(names):
        matched = re.fullmatch(r"(.+)\[(.+)\]", name)
        # A scalar of the same name keeps it, and beta[0] stays a scalar beside it.
        if matched is None or matched[1] in scalars:
            groups[name] = {"": position}
        else:
            groups.setdefault(matched[1], {})[matched[2]] = position
    return groups


def safe_name(name: str, taken: Set[str]) -> str:
    """A name that files can hold and no other variable or dimension has."""
    name = name.replace("/", "_")
    while name in taken:
        name += "_"
    return name


def shown_names(names: tuple[str, ...]) -> dict[str, dict[str, int]]:
    """The variables that `sample` makes of parameter names, and where their entries are in θ."""
    shown: dict[str, dict[str, int]] = {}
    taken = {"chain", "draw"}
    for name, members in grouped_names(names).items():
        called = safe_name(name, taken)
        shown[called] = members
        taken |= {called} if "" in members else {called, f"{called}_dim"}
    return shown


def _of_names(names: tuple[str, ...], posterior: Any) -> Array:
    theta: Array | None = None
    for name, members in shown_names(names).items():
        values = _values(posterior, name)
        if theta is None:
            theta = np.empty((*values.shape[:2], len(names)))
        places = list(members.values())
        _check_length(name, values, 0 if "" in members else len(places))
        theta[:, :, places] = values[:, :, None] if "" in members else values
    assert theta is not None
    return theta


def _of_variables(shown: Variables, dim: int, posterior: Any) -> Array:
    theta: Array | None = None
    for entry in shown.entries:
        values = _values(posterior, safe_name(entry.name, {"chain", "draw"}))
        if theta is None:
            theta = np.empty((*values.shape[:2], dim))
        if values.shape[2:] != np.shape(entry.places):
            raise ValueError(
                f"the draws have {entry.name!r} in the shape {values.shape[2:]}, and the model in "
                f"{np.shape(entry.places)}: they are of another model"
            )
        theta[:, :, entry.places] = entry.unscaled(values)
    assert theta is not None
    return theta


def _values(posterior: Mapping[str, Any], name: str) -> Array:
    if name not in posterior:
        raise ValueError(
            f"the draws have no variable {name!r}, which the model has: they are of another model"
        )
    return np.asarray(posterior[name].values, dtype=np.float64)


def _check_length(name: str, values: Array, length: int) -> None:
    if values.shape[2:] != ((length,) if length else ()):
        raise ValueError(
            f"the draws have {name!r} in the shape {values.shape[2:]}, and the model has "
            f"{length or 1} of them: they are of another model"
        )
