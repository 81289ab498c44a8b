"""A coreset as a PyMC model for `pm.sample`.

The user's model without its observed variables, and instead of them one potential

    Σ_i w_i log p(x_i | free variables)

over the coreset's rows, which are `pm.Data` like the weights: both can be replaced with
`pm.set_data` without building the model again.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from corebayes.adapters.exports import coefficient_parts, prior_forms
from corebayes.adapters.exports.density_check import check_density
from corebayes.adapters.exports.glm_parts import GlmParts, glm_parts
from corebayes.adapters.exports.marginal_pymc import marginal_potential
from corebayes.adapters.exports.mixed_parts import MixedParts, Single, mixed_parts
from corebayes.adapters.exports.symbols import of_pytensor
from corebayes.adapters.jax_model import float64, import_jax
from corebayes.adapters.pymc.adapter import PymcModel, import_pymc
from corebayes.adapters.pymc.graph import import_dispatch, rebuild, to_jax
from corebayes.adapters.pymc.rows import RowInputs
from corebayes.adapters.pymc.variables import initial_point
from corebayes.adapters.tracing import one_at_a_time
from corebayes.coreset import Coreset, GroupCoreset, as_rows
from corebayes.models.families.family import Family
from corebayes.types import Array

WEIGHTS, POTENTIAL = "coreset_weight", "coreset_log_likelihood"


@one_at_a_time
def to_pymc(coreset: Coreset) -> Any:
    """A `pm.Model` whose posterior is the coreset's, ready for `pm.sample(model=...)`.

    For a coreset of `from_pymc` it has the user's own free variables, priors, potentials and
    deterministics (but for those with a value for each row); for a built-in regression it is
    that regression. Its log density is compared with ours before it is handed over.
    """
    import_pymc()
    import_jax("pymc")
    import_dispatch()
    coreset = as_rows(coreset)
    if isinstance(coreset.model, PymcModel):
        exported = _weighted(coreset.model, coreset)
        names = [parameter.name for parameter in coreset.model.parameters]
    elif isinstance(coreset, GroupCoreset):
        exported, names, signs = _marginal(coreset)
        density = density_of(exported, names)
        check_density(coreset, lambda theta: density(signs * theta), "PyMC")
        return exported
    elif mixed := mixed_parts(coreset):
        exported = _mixed(mixed, coreset)
        names, places, signs = mixed.order()
        density = density_of(exported, names)
        check_density(coreset, lambda theta: density(signs * theta[places]), "PyMC")
        return exported
    else:
        parts = glm_parts(coreset, "to_pymc")
        exported = _regression(parts, coreset)
        names = [parts.name]
    check_density(coreset, density_of(exported, names), "PyMC")
    return exported


def _weighted(model: PymcModel, coreset: Coreset) -> Any:
    pymc = import_pymc()
    exported = _without_rows(model)
    with exported:
        rows = {
            field.name: pymc.Data(
                f"coreset_{field.name}", coreset.rows[field.name].astype(field.dtype)
            )
            for field in model.fields
        }
        weights = pymc.Data(WEIGHTS, coreset.weights)
        terms = _row_terms(model, exported, rows)
        pymc.Potential(POTENTIAL, (weights * sum(terms)).sum())
    return exported


def _without_rows(model: PymcModel) -> Any:
    """The user's model without all that has an axis of rows."""
    fgraphs: Any = importlib.import_module("pymc.model.fgraph")
    graph, _ = fgraphs.fgraph_from_model(model.model)
    kept = {parameter.name for parameter in model.parameters}
    kept |= {*model.value_names, *model.prior_names}
    for position in reversed(range(len(graph.outputs))):
        if graph.outputs[position].name not in kept:
            graph.remove_output(position)
    return fgraphs.model_from_fgraph(graph, mutate_fgraph=True)


def _row_terms(model: PymcModel, exported: Any, rows: Mapping[str, Any]) -> list[Any]:
    """log p(x_i | free variables) of the coreset's rows, one vector for each observed variable."""
    own = model.model
    replaced = {own[parameter.name]: exported[parameter.name] for parameter in model.parameters}
    graphs = [_row_term(own, name) for name in model.likelihood_names]
    inputs = _GivenRows(model, rows)
    built = rebuild(graphs, replaced, inputs)
    return [term.sum(axis=tuple(range(1, term.ndim))) if term.ndim > 1 else term for term in built]


def _row_term(own: Any, name: str) -> Any:
    """The log density of one observed variable or potential."""
    if name in _names(own.potentials):
        return own[name]
    try:
        with warnings.catch_warnings():
            # It warns where random variables are left in the density.
            warnings.filterwarnings("error", message="RandomVariables")
            return import_pymc().logp(own[name], own.rvs_to_values[own[name]])
    except (NotImplementedError, UserWarning):
        raise ValueError(
            f"PyMC gives the density of {name!r} (censored, truncated or the like) in its own "
            "model only, so there is none to weight: use cb.sample(coreset), or to_numpyro of a "
            "model written there"
        ) from None


class _GivenRows(RowInputs):
    """The arrays of rows in a graph, replaced by variables that are there already."""

    def __init__(self, model: PymcModel, rows: Mapping[str, Any]):
        known = model.row_inputs
        super().__init__(known.num_rows, known.names, known.known)
        self.inputs.update(rows)
        self.arrays.update(known.arrays)


def _names(variables: Any) -> set[str]:
    return {variable.name for variable in variables}


def density_of(exported: Any, names: Sequence[str]) -> Callable[[Array], float]:
    """The exported model's own log density at the unconstrained values of these variables."""
    tensor: Any = importlib.import_module("pytensor.tensor")
    start = initial_point(exported)
    theta = tensor.dvector("theta")
    values: dict[Any, Any] = {}
    place = 0
    for name in names:
        variable = exported.rvs_to_values[exported[name]]
        shape = start[variable.name].shape
        size = int(start[variable.name].size)
        values[variable] = theta[place : place + size].reshape(shape)
        place += size
    (graph,) = rebuild([exported.logp()], values, RowInputs(-1, {}))
    function = to_jax([theta], [graph])

    def density(point: Array) -> float:
        with float64():
            return float(function(import_jax("pymc").numpy.asarray(point))[0])

    return density


def _regression(parts: GlmParts, coreset: Coreset) -> Any:
    pymc, model = import_pymc(), parts.model
    prior = model.gaussian_prior
    with pymc.Model(coords={"coefficient": list(coreset.model.parameter_names)}) as exported:
        coefficients = pymc.MvNormal(
            parts.name, prior.mean, cov=prior.covariance, dims="coefficient"
        )
        X = pymc.Data("coreset_X", model.design(coreset.rows))
        y = pymc.Data("coreset_y", model.exported_target(coreset.rows))
        weights = pymc.Data(WEIGHTS, coreset.weights)
        eta = pymc.math.dot(X, coefficients)
        terms = _terms(model, [eta], y, {"y": coreset.rows.y})
        pymc.Potential(POTENTIAL, (weights * terms).sum())
    return exported


def _terms(family: Family, etas: list[Any], y: Any, row: Mapping[str, Array]) -> Any:
    """log p(y_i | …) of every row."""
    pymc, eta = import_pymc(), etas[0] if len(etas) == 1 else etas
    if family.has_distribution:
        return pymc.logp(family.in_pymc(pymc, eta), y)
    return family.in_arrays(of_pytensor(), eta, row)


def _mixed(parts: MixedParts, coreset: Coreset) -> Any:
    pymc, model, rows = import_pymc(), parts.model, coreset.rows
    groups = model.groups(coreset.rows)
    with pymc.Model(coords={"coefficient": list(model.fixed_names)}) as exported:
        coefficients = coefficient_parts.in_pymc(
            pymc, parts, "coefficients", "coefficient", _single
        )
        for position, name in enumerate(model.fixed_names):
            pymc.Deterministic(name, coefficients[position])
        constants = [_single(one) for one in parts.learned]
        offset = model.offset(rows)
        added = None if offset is None else pymc.Data("coreset_offset", offset)
        etas = parts.etas(pymc.Data("coreset_X", model.fixed_design(rows)), coefficients, added)
        for effect, column in zip(parts.effects, parts.columns(rows), strict=True):
            axis = f"{model.terms[effect.term].group}__factor_dim"
            exported.add_coord(axis, list(effect.labels))
            effects = pymc.Normal(effect.name, 0.0, _single(effect.scale), dims=axis)
            own = column * effects[groups[:, effect.term]]
            etas[effect.predictor] = etas[effect.predictor] + own
        y = pymc.Data("coreset_y", model.family.exported_target(rows))
        weights = pymc.Data(WEIGHTS, coreset.weights)
        terms = _terms(parts.family(constants), etas, y, parts.row(rows))
        pymc.Potential(POTENTIAL, (weights * terms).sum())
    return exported


def _marginal(coreset: GroupCoreset) -> tuple[Any, list[str], Array]:
    """The model of what all groups share, its variables in the order of φ, and signs there."""
    pymc, parts = import_pymc(), mixed_parts(coreset.level_one)
    assert parts is not None
    model = parts.model
    with pymc.Model(coords={"coefficient": list(model.fixed_names)}) as exported:
        coefficients = coefficient_parts.in_pymc(
            pymc, parts, "coefficients", "coefficient", _single
        )
        for position, name in enumerate(model.fixed_names):
            pymc.Deterministic(name, coefficients[position])
        values = [_single(one) for one in parts.scales()]
        constants, scales = values[: len(parts.learned)], values[len(parts.learned) :]
        total = marginal_potential(coreset, parts, coefficients, constants, scales)
        pymc.Potential(POTENTIAL, total)
    signs = np.ones(coreset.model.dim)
    for one in parts.scales():
        signs[one.place] = -1.0 if one.inverse else 1.0
    return exported, ["coefficients", *(one.name for one in parts.scales())], signs


def _single(variable: Single) -> Any:
    """A variable of one number of the model that is being made."""
    return prior_forms.in_pymc(import_pymc(), variable.prior, variable.name)
