"""The variables of a PyMC model: how long they are, and which no coreset can have."""

from __future__ import annotations

import importlib
from collections import Counter
from typing import Any

from corebayes.adapters.pymc.rows import value_of


def initial_point(model: Any) -> dict[str, Any]:
    """PyMC's unconstrained starting values, by name, computed without a C compiler."""
    pytensor: Any = importlib.import_module("pytensor")
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        return model.initial_point()


def length_of(model: Any, variable: Any) -> int | None:
    """How many observations an observed variable has."""
    values = value_of(observations_of(model, variable))
    return None if values is None or values.ndim == 0 else int(values.shape[0])


def observations_of(model: Any, variable: Any) -> Any:
    """The constant or shared variable behind an observed variable, under casts of its type."""
    found = model.rvs_to_values[variable]
    while found.owner is not None and len(found.owner.inputs) == 1:
        found = found.owner.inputs[0]
    return found


def number_of_rows(model: Any) -> int:
    """The length that most observed variables have, the longest of those."""
    missing = [rv.name for rv in model.free_RVs if rv.name.endswith("_unobserved")]
    if missing:
        name = missing[0].removesuffix("_unobserved")
        raise ValueError(
            f"the PyMC variable {name!r} has missing observations, which PyMC imputes: each is a "
            "latent variable of one row, which no coreset can keep. Leave out these rows"
        )
    lengths = Counter(length_of(model, rv) for rv in model.observed_RVs)
    lengths.pop(None, None)
    if not lengths:
        raise ValueError(
            "the PyMC model has no observed variable with one value for each row: give one "
            "observed=y, as an array or pm.Data"
        )
    return max(lengths, key=lambda length: (lengths[length], length or 0)) or 0


def refuse_free_variables(model: Any, num_rows: int) -> None:
    if importlib.import_module("pytensor").config.floatX != "float64":
        raise ValueError("the PyMC model must be made with pytensor.config.floatX = 'float64'")
    shapes = {name: values.shape for name, values in initial_point(model).items()}
    for variable in model.free_RVs:
        if variable.type.dtype.startswith(("int", "uint", "bool")):
            raise ValueError(
                f"the free PyMC variable {variable.name!r} is discrete: gradients need continuous "
                "parameters. Sum it out of the likelihood, for instance with pm.Mixture"
            )
        shape = shapes[model.rvs_to_values[variable].name]
        if num_rows > 1 and num_rows in shape:
            raise ValueError(
                f"the free PyMC variable {variable.name!r} has the shape {shape}, as long as the "
                f"{num_rows:,} rows: a latent variable of each row cannot be kept by a coreset. "
                "Marginalise it"
            )
