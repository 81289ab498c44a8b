"""Draws of the coreset posterior as ArviZ data."""

from __future__ import annotations

import importlib
import json
import re
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from corebayes.samplers.nuts import NUTS, NutsResult
from corebayes.types import Array, Coreset
from corebayes.version import __version__

# nutpie's names of the statistics, and ArviZ's.
STATS = {
    "logp": "lp",
    "energy": "energy",
    "diverging": "diverging",
    "depth": "tree_depth",
    "n_steps": "n_steps",
    "step_size": "step_size",
    "mean_tree_accept": "acceptance_rate",
}


def sample(
    coreset: Coreset,
    *,
    draws: int = 1000,
    chains: int = 4,
    tune: int = 500,
    seed: int = 0,
    progress: bool | None = None,
) -> Any:
    """NUTS on the weighted rows: ArviZ `InferenceData` (a `DataTree` with ArviZ 1).

    Group `posterior`: one variable for each parameter, under its name; parameters called
    `beta[a]`, `beta[b]`, … become one vector `beta` with dimension `beta_dim` and these labels.
    (A `/`, which files cannot hold in a name, becomes `_`; `chain` and `draw` become `chain_`
    and `draw_`.) Group `sample_stats`: log density, energy, divergences, tree depth, steps.
    Group `coreset`: `row_id` and `weight` of the rows, and as attributes how it was built.
    A coreset without rows gives draws of the prior. `progress` is shown on a terminal by default.
    Cost: about 5 · chains · (tune + draws) gradients of M·d flops.
    """
    for name, value, least in (("draws", draws, 4), ("chains", chains, 1), ("tune", tune, 50)):
        if isinstance(value, bool) or int(value) != value or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    result = NUTS(num_tune=tune, chains=chains).run(
        np.random.default_rng(seed),
        coreset.model,
        coreset.rows,
        coreset.weights,
        num_draws=draws,
        progress=sys.stderr.isatty() if progress is None else progress,
    )
    _warn_if_not_converged(result)
    return _assemble(
        {
            "posterior": _posterior(coreset.model.parameter_names, result.draws),
            "sample_stats": _stats(coreset, result),
            "coreset": _rows(coreset),
        },
        {**_provenance(coreset), "sampling_seed": seed, "num_tune": tune},
    )


def _warn_if_not_converged(result: NutsResult) -> None:
    rhat = result.max_rhat if result.draws.shape[0] > 1 else 1.0
    if rhat > 1.05 or result.num_divergences:
        warnings.warn(
            f"NUTS did not converge on the coreset posterior (largest R̂ {rhat:.2f}, "
            f"{result.num_divergences} divergences): do not use these draws. Tune longer, "
            "or build a larger coreset",
            UserWarning,
            stacklevel=3,
        )


def _assemble(groups: Mapping[str, Any], attributes: Mapping[str, Any]) -> Any:
    """The groups as what this version of ArviZ works with (already imported, by nutpie)."""
    library = importlib.import_module("arviz")
    xarray = importlib.import_module("xarray")
    groups = {name: group.assign_attrs(attributes) for name, group in groups.items()}
    if hasattr(library, "InferenceData"):
        return library.InferenceData(attrs=dict(attributes), **groups)
    root = xarray.Dataset(attrs=dict(attributes))
    return xarray.DataTree.from_dict({"/": root, **groups})


def _posterior(names: tuple[str, ...], draws: Array) -> Any:
    """One variable for each scalar parameter, and one for each vector of them."""
    import xarray

    variables: dict[str, Any] = {}
    coordinates: dict[str, Any] = _draw_coordinates(draws)
    for name, members in _grouped(names).items():
        name = _safe(name, {*variables, *coordinates})
        positions = list(members.values())
        if "" in members:
            variables[name] = (("chain", "draw"), draws[:, :, positions[0]])
            continue
        dimension = f"{name}_dim"
        variables[name] = (("chain", "draw", dimension), draws[:, :, positions])
        labels = list(members)
        whole = all(label.isdecimal() for label in labels)
        coordinates[dimension] = [int(label) for label in labels] if whole else labels
    return xarray.Dataset(variables, coords=coordinates)


def _grouped(names: tuple[str, ...]) -> dict[str, dict[str, int]]:
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


def _safe(name: str, taken: set[str]) -> str:
    """A name that files can hold and no other variable or dimension has."""
    name = name.replace("/", "_")
    while name in taken:
        name += "_"
    return name


def _stats(coreset: Coreset, result: NutsResult) -> Any:
    import xarray

    variables = {ours: (("chain", "draw"), result.stats[name]) for name, ours in STATS.items()}
    # Potentials leave out what does not depend on θ: log p = f + log_base.
    constant = float(coreset.weights @ coreset.model.log_base(coreset.rows))
    variables["lp"] = (("chain", "draw"), result.stats["logp"] + constant)
    return xarray.Dataset(variables, coords=_draw_coordinates(result.draws))


def _rows(coreset: Coreset) -> Any:
    import xarray

    return xarray.Dataset(
        {"row_id": ("row", coreset.indices), "weight": ("row", coreset.weights)},
        coords={"row": np.arange(coreset.size)},
    )


def _draw_coordinates(draws: Array) -> dict[str, Any]:
    return {"chain": np.arange(draws.shape[0]), "draw": np.arange(draws.shape[1])}


def _provenance(coreset: Coreset) -> dict[str, Any]:
    """How the coreset came about, as numbers and strings that files can hold."""
    plain = {
        "model": type(coreset.model).__name__,
        "size": coreset.size,
        "num_rows": coreset.num_rows,
        "total_count": coreset.total_count,
        "reason": coreset.reason,
        "corebayes_version": __version__,
    }
    for name, value in coreset.provenance.items():
        simple = isinstance(value, (str, int, float)) and not isinstance(value, bool)
        plain[name] = value if simple else json.dumps(value, default=str)
    return plain
