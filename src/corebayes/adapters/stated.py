"""The model of another library as people write it: what each row is given, and every prior."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from corebayes.models.priors.table import Row, table_lines

# Numbers of an array that are written out.
MOST_NUMBERS = 4
# What PyMC writes for an array, and for what is computed of variables.
ARRAY, COMPUTED = "<constant>", re.compile(r"f\(([^()]*)\)")
# Distributions of NumPyro that are another one, in other shapes.
WRAPPERS = ("Independent", "ExpandedDistribution", "MaskedDistribution")


def stated(likelihoods: Sequence[Row], rows: Sequence[Row]) -> str:
    """Likelihoods, then the table of priors."""
    first = "; ".join(f"{name} ~ {written}" for name, written, _ in likelihoods)
    return "\n".join([first, *table_lines(rows)])


def pymc_rows(variables: Sequence[Any], library: str) -> list[Row]:
    """Name, distribution and from where, as PyMC itself writes them."""
    return [(one.name, _pymc(one), f"the {library} model") for one in variables]


def _pymc(variable: Any) -> str:
    written = str(variable.str_repr()).partition(" ~ ")[2]
    owner = variable.owner
    parameters = owner.op.dist_params(owner) if hasattr(owner.op, "dist_params") else ()
    arrays = [one.data for one in parameters if getattr(one, "data", None) is not None]
    for array in arrays:
        if np.size(array) > 1:
            written = written.replace(ARRAY, _number(array), 1)
    # In an order that is the same in every process.
    return COMPUTED.sub(lambda found: f"f({', '.join(sorted(found[1].split(', ')))})", written)


def numpyro_rows(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Row]:
    """Name, distribution and from where of all variables, from two traces of the model at
    different places: what differs is computed of other variables."""
    values = {
        name: [np.asarray(trace[name]["value"]) for trace in (first, second)]
        for name, site in first.items()
        if site["type"] == "sample" and not site["is_observed"]
    }
    return [
        (name, _numpyro(first[name]["fn"], second[name]["fn"], values), "the NumPyro model")
        for name in first
        if first[name]["type"] == "sample" and not name.endswith("_log_det")
    ]


def _numpyro(first: Any, second: Any, values: Mapping[str, Any]) -> str:
    while type(first).__name__ in WRAPPERS:
        first, second = first.base_dist, second.base_dist
    kind = type(first).__name__
    if kind == "TransformedDistribution":
        transforms = ", ".join(type(one).__name__ for one in first.transforms)
        return f"{_numpyro(first.base_dist, second.base_dist, values)}, {transforms}"
    if kind == "Unit":
        return "a factor"
    parameters = [
        (getattr(first, name, None), getattr(second, name, None)) for name in first.arg_constraints
    ]
    written = [_parameter(*pair, values) for pair in parameters if pair[0] is not None]
    return f"{kind}({', '.join(written)})"


def _parameter(first: Any, second: Any, values: Mapping[str, Any]) -> str:
    one, other = np.asarray(first), np.asarray(second)
    if one.shape == other.shape and np.array_equal(one, other):
        return _number(one)
    for name, (here, there) in values.items():
        if _is(one, here) and _is(other, there):
            return name
    return "f(…)"


def _is(array: Any, value: Any) -> bool:
    """Whether an array is a variable, perhaps in another shape."""
    try:
        return bool(np.all(np.broadcast_to(value, array.shape) == array))
    except ValueError:
        return False


def _number(array: Any) -> str:
    different = np.unique(array)
    if different.size == 1:
        return f"{different[0]:g}"
    if array.size <= MOST_NUMBERS:
        return f"[{', '.join(f'{value:g}' for value in np.ravel(array))}]"
    return f"[{different[0]:g} to {different[-1]:g}]"
