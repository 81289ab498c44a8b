"""What Bambi knows of the PyMC model behind one of its models: names of data, order of variables.

Bambi's program has design matrices, group numbers, offsets and trials as constants without names.
Here they are the columns of X and fields of their own, called as Bambi calls them, and X holds the
columns as they are where Bambi's matrix is less their means. Bambi makes the variables of a family
(nu and sigma of a t) in the order of a set, which is another in every process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebayes.adapters.pymc.adapter import KnownProgram
from corebayes.adapters.pymc.rows import KnownArray
from corebayes.types import Array


def known_of(own: Any) -> KnownProgram:
    """Names and order for a built Bambi model. Cost: its design matrices once more."""
    designs: list[Array] = []
    names: list[str] = []
    others: list[KnownArray] = []
    spans: list[tuple[slice, Array | None]] = []
    for component in _distributional(own):
        if component.common_terms:
            start = len(names)
            terms = component.common_terms.values()
            data = np.column_stack([np.asarray(term.data) for term in terms])
            names += [name for term in terms for name in column_names(term)]
            centred = component.intercept_term is not None and own.center_predictors
            designs.append(data)
            spans.append((slice(start, len(names)), data.mean(0) if centred else None))
        others += _groups(component)
        for name, term in component.offset_terms.items():
            others.append(_plain(name, np.squeeze(term.data)))
    others += _response(own.response_component.term)
    together = np.column_stack(designs) if designs else np.empty((0, 0))
    for (columns, mean), data in zip(spans, designs, strict=True):
        values = data if mean is None else data - mean
        others.append(KnownArray(values, "X", together, columns, mean))
    return KnownProgram(others, names, _order(own))


def column_names(term: Any) -> list[str]:
    """The names of a term's columns: its own, or one for each of its levels."""
    name = str(term.alias or term.name)
    values = np.asarray(term.data)
    labels = next(iter(term.coords.values()), None)
    if labels is None or values.ndim < 2:
        return [name] if values.ndim < 2 else [f"{name}[{k}]" for k in range(values.shape[1])]
    return [f"{name}[{label}]" for label in labels]


def _distributional(own: Any) -> list[Any]:
    """The components with predictors, the parent first, the others by name."""
    parent = own.family.likelihood.parent
    named = sorted(own.distributional_components, key=lambda name: (name != parent, name))
    return [own.components[name] for name in named]


def _groups(component: Any) -> list[KnownArray]:
    found: list[KnownArray] = []
    for term in component.group_specific_terms.values():
        expression, _, factor = str(term.name).partition("|")
        found.append(_plain(factor, np.asarray(term.group_index)))
        found.append(_plain(expression, np.asarray(term.predictor)))
    return found


def _response(term: Any) -> list[KnownArray]:
    """What stands beside the observations: trials, bounds, weights."""
    data, name = np.asarray(term.data), str(term.alias or term.name)
    if data.ndim < 2 or data.shape[1] < 2:
        return []
    if getattr(term, "is_censored", False):
        observed, status = data[:, 0], data[:, 1]
        return [
            _plain(f"{name} lower", np.where(status == -1, observed, -np.inf)),
            _plain(f"{name} upper", np.where(status == 1, observed, np.inf)),
        ]
    beside = ["lower", "upper"] if data.shape[1] == 3 else ["trials"]
    if getattr(term, "is_weighted", False):
        beside = ["weight"]
    columns = zip(beside, data.T[1:], strict=False)
    return [_plain(f"{name} {what}", values) for what, values in columns]


def _plain(name: str, values: NDArray[Any]) -> KnownArray:
    return KnownArray(values, name, values)


def _order(own: Any) -> Callable[[str], int]:
    """The parent's variables first, then those of the other parameters of the family by name."""
    parent = own.family.likelihood.parent
    others = sorted(name for name in own.components if name != parent)
    called = [str(own.components[name].alias or name) for name in others]

    def place(variable: str) -> int:
        matching = (
            number
            for number, name in enumerate(called, start=1)
            if variable == name or variable.startswith(f"{name}_")
        )
        return next(matching, 0)

    return place
