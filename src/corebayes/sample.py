"""Draws of the coreset posterior as ArviZ data."""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
from numpy.random import Generator

from corebayes.arguments import checked_seed, checked_whole
from corebayes.coreset import Coreset, check_coreset
from corebayes.coreset.files import describe_model, plain_json
from corebayes.samplers.automatic import Automatic
from corebayes.samplers.chain import import_quietly
from corebayes.samplers.draws import Draws, Sampler
from corebayes.samplers.named import insisted
from corebayes.samplers.nuts import NUTS
from corebayes.samplers.parameters import safe_name, shown_names
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.worth import worth
from corebayes.scan.inline import one_blas_thread
from corebayes.types import Array
from corebayes.version import __version__


def sample(
    coreset: Coreset,
    *,
    draws: int = 1000,
    chains: int = 4,
    tune: int = 500,
    seed: int = 0,
    sampler: str | Sampler | None = None,
    progress: bool | None = None,
    log_likelihood: bool = False,
) -> Any:
    """Draws of the coreset posterior: ArviZ `InferenceData` (a `DataTree` with ArviZ 1).

    They come by the cheapest exact way that works (`Automatic`): in closed form, by independence
    Metropolis around the mode, or by NUTS with `tune` steps of tuning. `sampler` insists on one:
    "exact", "independence", "nuts", or a sampler such as `NUTS(target_accept=0.95)`.

    Group `posterior`: one variable for each parameter, under its name; parameters called
    `beta[a]`, `beta[b]`, … become one vector `beta` with dimension `beta_dim` and these labels.
    (A `/`, which files cannot hold in a name, becomes `_`; `chain` and `draw` become `chain_`
    and `draw_`.) Group `sample_stats`: log density, acceptance, divergences, and of NUTS energy,
    tree depth and steps. Attributes: the sampler, the share it accepted, and of the worst
    parameter R̂ and the effective sizes for means and for tails.
    Group `coreset`: `row_id` and `weight` of the rows, and as attributes how it was built.
    With `log_likelihood` a group `coreset_log_likelihood`: log p(x_i | θ) of every row of the
    coreset, each counted once; it takes `weight` of them to stand for all rows. ArviZ's own `loo`
    knows no weights, so it finds no group that it would take: `corebayes.loo` is of all rows.
    A model from another library has its own variables, constraints, dimensions and labels here.
    A coreset without rows gives draws of the prior. `progress` of NUTS is shown on a terminal by
    default. Cost: some thousand densities of M potentials; with NUTS about 5 · chains · (tune +
    draws) gradients of M·d flops.
    """
    check_coreset(coreset)
    for name, value, least in (("draws", draws, 4), ("chains", chains, 1), ("tune", tune, 50)):
        checked_whole(name, value, least)
    checked_seed(seed)
    chosen = (
        Automatic(chains=chains, num_tune=tune)
        if sampler is None
        else insisted(sampler, chains, tune)
    )
    posterior = Posterior.of(coreset)
    rng = np.random.default_rng(seed)
    with one_blas_thread():
        drawn = _draw(rng, chosen, posterior, (chains, draws), progress)
    described = _described(drawn)
    _warn_if_not_converged(drawn, described["max_rhat"])
    # Potentials leave out what does not depend on θ: log p = f + log_base.
    stats = {**drawn.stats, "lp": drawn.stats["lp"] + posterior.log_base}
    more = {"coreset_log_likelihood": _log_likelihood(coreset, drawn)} if log_likelihood else {}
    attributes = {**described, "sampling_seed": seed, "num_tune": tune}
    return arviz_data(coreset, drawn.values, stats, attributes, more)


def arviz_data(
    coreset: Coreset,
    values: Array,
    stats: Mapping[str, Array],
    attributes: Mapping[str, Any],
    more: Mapping[str, Any] | None = None,
) -> Any:
    """Draws (chains, draws, d), what was seen at each of them, and where they come from."""
    groups = {
        "posterior": variables(coreset.model, values),
        "sample_stats": draw_statistics(stats, values),
        "coreset": _rows(coreset),
        **model_group(coreset.model, coreset.provenance),
        **(more or {}),
    }
    return assembled(groups, {**_provenance(coreset), **attributes})


def _draw(
    rng: Generator,
    sampler: Sampler,
    posterior: Posterior,
    shape: tuple[int, int],
    progress: bool | None,
) -> Draws:
    """Equally weighted draws in chains, with the log density of each."""
    chains, number = shape[0], shape[0] * shape[1]
    if isinstance(sampler, Automatic | NUTS):
        shown = sys.stderr.isatty() if progress is None else progress
        drawn = sampler.draw(rng, posterior, number, progress=shown)
    else:
        drawn = sampler.draw(rng, posterior, number)
    if drawn.weights is not None:
        values = drawn.equally_weighted(rng, number)[None]
        drawn = replace(drawn, values=values, weights=None, independent=True, stats={})
    if drawn.independent and len(drawn.values) == 1:
        drawn = drawn.first(number).in_chains(chains)
    stats = dict(drawn.stats)
    if "lp" not in stats:
        with np.errstate(all="ignore"):
            stats["lp"] = posterior.log_density(drawn.flat).reshape(drawn.values.shape[:2])
    stats.setdefault("diverging", np.zeros(drawn.values.shape[:2], dtype=np.bool_))
    return replace(drawn, stats=stats)


def _described(drawn: Draws) -> dict[str, Any]:
    """How the draws were come by and what they are worth, for the attributes."""
    accepted = 1.0 if drawn.independent else np.nan
    return {
        "sampler": drawn.how,
        "acceptance": accepted if drawn.acceptance is None else drawn.acceptance,
        "num_divergences": drawn.num_divergences,
        **worth(drawn.values)._asdict(),
    }


def _warn_if_not_converged(drawn: Draws, rhat: float) -> None:
    rhat = rhat if len(drawn.values) > 1 else 1.0
    if rhat > 1.05 or drawn.num_divergences:
        warnings.warn(
            f"the draws ({drawn.how}) did not converge on the coreset posterior (largest R̂ "
            f"{rhat:.2f}, {drawn.num_divergences} divergences): do not use them. Tune longer, "
            "or build a larger coreset",
            UserWarning,
            stacklevel=3,
        )
    elif drawn.pareto_k > 0.7:
        warnings.warn(
            f"the proposals ({drawn.how}) do not cover the coreset posterior (k̂ "
            f'{drawn.pareto_k:.2f}, {drawn.acceptance or 0.0:.0%} accepted): use sampler="nuts"',
            UserWarning,
            stacklevel=3,
        )


def assembled(groups: Mapping[str, Any], attributes: Mapping[str, Any]) -> Any:
    """The groups as what this version of ArviZ works with."""
    library: ModuleType = import_quietly("arviz", "sample")
    xarray = importlib.import_module("xarray")
    groups = {name: group.assign_attrs(attributes) for name, group in groups.items()}
    # Not by asking for the attribute: ArviZ 1, which has none, warns whoever does.
    inference_data: Any = vars(library).get("InferenceData")
    if inference_data is not None:
        return inference_data(attrs=dict(attributes), **groups)
    root = xarray.Dataset(attrs=dict(attributes))
    return xarray.DataTree.from_dict({"/": root, **groups})


def variables(model: Any, draws: Array) -> Any:
    """The model's variables, or θ where the model has no others."""
    if hasattr(model, "constrain"):
        return _own_variables(model, draws)
    return _parameters(model.parameter_names, draws)


def _own_variables(model: Any, draws: Array) -> Any:
    """The variables of a model from another library, with its dimensions and labels."""
    import xarray

    chains, number, dim = draws.shape
    variables: dict[str, Any] = {}
    coordinates: dict[str, Any] = _draw_coordinates(draws)
    for own_name, values in model.constrain(draws.reshape(-1, dim)).items():
        name = safe_name(own_name, {*variables, *coordinates})
        shape = values.shape[1:]
        dims = model.dims.get(own_name, tuple(f"{name}_dim_{k}" for k in range(len(shape))))
        for dimension, length in zip(dims, shape, strict=True):
            coordinates[dimension] = list(model.coords.get(dimension, range(length)))
        variables[name] = (("chain", "draw", *dims), values.reshape(chains, number, *shape))
    return xarray.Dataset(variables, coords=coordinates)


def _parameters(names: tuple[str, ...], draws: Array) -> Any:
    """One variable for each scalar parameter, and one for each vector of them."""
    import xarray

    variables: dict[str, Any] = {}
    coordinates: dict[str, Any] = _draw_coordinates(draws)
    for name, members in shown_names(names).items():
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


def model_group(model: Any, provenance: Mapping[str, Any]) -> dict[str, Any]:
    """The group `model`: what `predict` needs beside the draws; nothing for a model whose functions
    no file can hold."""
    import xarray

    described = describe_model(model)
    if described["config"] is None:
        return {}
    kept = {name: provenance.get(name) for name in ("column_names", "target_name", "design")}
    text = json.dumps(plain_json({"model": described, **kept}, "model"))
    # A variable and no attribute, whose length netCDF limits.
    return {"model": xarray.Dataset({"json": ((), np.array(text, dtype=object))})}


def draw_statistics(stats: Mapping[str, Array], draws: Array) -> Any:
    """What was seen at each draw, (chains, draws)."""
    import xarray

    variables = {name: (("chain", "draw"), values) for name, values in stats.items()}
    return xarray.Dataset(variables, coords=_draw_coordinates(draws))


def _log_likelihood(coreset: Coreset, drawn: Draws) -> Any:
    """log p(x_i | θ) of the coreset's rows, (chains, draws, rows)."""
    import xarray

    shape = (*drawn.values.shape[:2], coreset.size)
    model, rows = coreset.model, coreset.rows
    values = model.potentials(drawn.flat, rows) + model.log_base(rows)[:, None]
    name = safe_name(str(coreset.provenance.get("target_name") or "y"), {"chain", "draw", "row"})
    return xarray.Dataset(
        {name: (("chain", "draw", "row"), values.T.reshape(shape))},
        coords={**_draw_coordinates(drawn.values), "row": np.arange(coreset.size)},
    )


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
