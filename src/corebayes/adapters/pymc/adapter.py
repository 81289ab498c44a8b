"""A coreset model from a PyMC model.

    log π_0(θ) = the log density of the free variables and potentials, with Jacobians,
    f_n(θ)     = the sum over the observed variables of the log density of row n,

both taken from the model's own graph. The data in that graph becomes an input, so that the
graph is for any rows, and JAX compiles it. Gradients are PyTensor's, which knows how to write them
stably; JAX would differentiate branches that are not taken and give NaN far out.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from corebayes.adapters.adapted import Parameter, as_rows, fields_of
from corebayes.adapters.flat import refuse_improper
from corebayes.adapters.jax_model import JaxModel, SiteTerms, float64, import_jax
from corebayes.adapters.local import learn_structure
from corebayes.adapters.pymc.graph import import_dispatch, leaves, rebuild, to_jax
from corebayes.adapters.pymc.rows import KnownArray, RowInputs, names_by_use
from corebayes.adapters.pymc.variables import (
    initial_point,
    length_of,
    number_of_rows,
    observations_of,
    refuse_free_variables,
)
from corebayes.adapters.rows_check import check_rows_alone
from corebayes.adapters.stated import pymc_rows, stated
from corebayes.adapters.tracing import one_at_a_time
from corebayes.extras import import_extra
from corebayes.models.priors.table import Row
from corebayes.rows import Rows

Adapting = TypeVar("Adapting", bound="PymcModel")


def from_pymc(model: Any) -> tuple[PymcModel, Rows]:
    """The pair (model, data) for `build` and everything after it, from a PyMC model.

    All constants and `pm.Data` that are as long as the observations are cut to rows. The rows must
    be independent given the free variables, none of which may belong to one row; a model that is
    otherwise is refused with the variable and the reason. The parameters are PyMC's
    unconstrained ones; `sample` gives the model's own.
    """
    return adapt(PymcModel, model)


class KnownProgram(NamedTuple):
    """What whoever wrote a PyMC model's program knows of it."""

    arrays: Sequence[KnownArray] = ()
    column_names: Sequence[str] = ()
    """Of the field X."""
    order: Callable[[str], int] | None = None
    """Where a free variable belongs; by default they are in the order of the model."""


@one_at_a_time
def adapt(
    kind: type[Adapting], model: Any, known: KnownProgram | None = None
) -> tuple[Adapting, Rows]:
    """The PyMC model as an adapted model of this kind, and its rows."""
    known = known or KnownProgram()
    import_pymc()
    import_jax("pymc")
    import_dispatch()
    if not hasattr(model, "free_RVs"):
        raise TypeError(f"from_pymc takes a PyMC model, got {model!r}")
    num_rows = number_of_rows(model)
    refuse_free_variables(model, num_rows)
    graph = _Graph(model, num_rows, known)
    data = as_rows(graph.rows.arrays, column_names=known.column_names)
    adapted = kind(model, graph, data)
    _try_rows(adapted, data)
    check_rows_alone(adapted, data)
    refuse_improper(adapted, data)
    learn_structure(adapted, data)
    return adapted, data


class _Graph:
    """The log density as graphs of the unconstrained vector θ and of rows."""

    def __init__(self, model: Any, num_rows: int, known: KnownProgram):
        tensor: Any = importlib.import_module("pytensor.tensor")
        start = initial_point(model)
        free: list[Any] = list(model.free_RVs)
        in_order = known.order
        if in_order is not None:
            free.sort(key=lambda variable: in_order(variable.name))
        self.parameters = [
            Parameter(variable.name, model.rvs_to_values[variable].name, start[value.name].shape)
            for variable in free
            for value in [model.rvs_to_values[variable]]
        ]
        self.theta = tensor.dvector("theta")
        unconstrained: dict[Any, Any] = {}
        place = 0
        for variable, parameter in zip(free, self.parameters, strict=True):
            values = self.theta[place : place + parameter.size].reshape(parameter.shape)
            unconstrained[model.rvs_to_values[variable]] = values
            place += parameter.size
        by_row = [rv for rv in model.observed_RVs if length_of(model, rv) == num_rows]
        others = [rv for rv in model.observed_RVs if rv not in by_row]
        likelihood = self._log_densities(model, by_row)
        called = {model.rvs_to_values[variable]: variable.name for variable in free}
        self.rows = RowInputs(
            num_rows,
            {observations_of(model, rv): rv.name for rv in model.observed_RVs},
            known.arrays,
            names_by_use(list(likelihood.values()), called),
        )
        # First, so that the rows are known when sizes elsewhere must follow them.
        built = rebuild(list(likelihood.values()), unconstrained, self.rows)
        self.likelihood = {
            name: _by_row(name, values) for name, values in zip(likelihood, built, strict=True)
        }
        prior = self._log_densities(model, [*free, *others, *model.potentials])
        built = rebuild(list(prior.values()), unconstrained, self.rows)
        self.prior: dict[str, Any] = {}
        for name, values in zip(prior, built, strict=True):
            if _has_rows(values, self.rows) and values.ndim and values.type.shape[0] is None:
                self.likelihood[name] = _by_row(name, values)
            else:
                self.prior[name] = values.sum()
        self.values = self._own_variables(model, [*free, *model.deterministics], unconstrained)

    def _log_densities(self, model: Any, variables: Sequence[Any]) -> dict[str, Any]:
        if not variables:
            return {}
        values = model.logp(vars=list(variables), sum=False)
        return {variable.name: value for variable, value in zip(variables, values, strict=True)}

    def _own_variables(
        self, model: Any, variables: Sequence[Any], unconstrained: Mapping[Any, Any]
    ) -> dict[str, Any]:
        """Free and deterministic variables that no row has a part in."""
        graphs = rebuild(model.replace_rvs_by_values(variables), unconstrained, self.rows)
        return {
            variable.name: graph
            for variable, graph in zip(variables, graphs, strict=True)
            if not _has_rows(graph, self.rows)
        }


class PymcModel(JaxModel):
    """A `Model` that evaluates the graph of a PyMC model; made by `from_pymc`.

    It is sent to other processes as the PyMC model it was made from.
    """

    library = "PyMC"

    def __init__(self, model: Any, graph: _Graph, data: Rows):
        super().__init__(fields_of(graph.rows.arrays), graph.parameters)
        self.model = model
        self.template = data.take(np.array([0]))
        self._graph = graph

    def __reduce__(self) -> Any:
        return _again, (self.model,)

    @property
    def dims(self) -> Mapping[str, tuple[str, ...]]:
        named: dict[str, Any] = self.model.named_vars_to_dims
        return {name: tuple(dims) for name, dims in named.items() if None not in dims}

    @property
    def coords(self) -> Mapping[str, Sequence[Any]]:
        coords: Mapping[str, Sequence[Any] | None] = self.model.coords
        return {name: list(labels) for name, labels in coords.items() if labels is not None}

    @property
    def value_names(self) -> tuple[str, ...]:
        return tuple(self._graph.values)

    @property
    def prior_names(self) -> tuple[str, ...]:
        """The variables and potentials that are the prior's."""
        return tuple(self._graph.prior)

    @property
    def likelihood_names(self) -> tuple[str, ...]:
        """The variables and potentials with a term for each row."""
        return tuple(self._graph.likelihood)

    def priors(self) -> list[Row]:
        """Every variable that no row has a part in, its distribution and from where."""
        model = self.model
        variables = [*model.free_RVs, *model.observed_RVs, *model.potentials]
        own = [one for one in variables if one.name in self.prior_names]
        return pymc_rows(own, self.library)

    def statement(self) -> str:
        """The likelihood, and the table of priors."""
        variables = [*self.model.observed_RVs, *self.model.potentials]
        by_row = [one for one in variables if one.name in self.likelihood_names]
        return stated(pymc_rows(by_row, self.library), self.priors())

    @property
    def row_inputs(self) -> RowInputs:
        """The arrays of rows in the model's graph."""
        return self._graph.rows

    def site_terms(self, theta: Any, rows: Mapping[str, Any]) -> SiteTerms:
        names = (*self._graph.prior, *self._graph.likelihood)
        terms = dict(zip(names, self._site_terms(theta, *self._typed(rows)), strict=True))
        return (
            {name: terms[name] for name in self._graph.prior},
            {name: terms[name] for name in self._graph.likelihood},
        )

    def site_values(self, theta: Any) -> dict[str, Any]:
        return dict(zip(self._graph.values, self._site_values(theta), strict=True))

    def weighted_gradient(self, theta: Any, rows: Mapping[str, Any], weights: Any) -> Any:
        if not self._gradients_translate:
            return super().weighted_gradient(theta, rows, weights)
        return self._weighted_gradient(theta, weights, *self._typed(rows))[0]

    def prior_gradient(self, theta: Any) -> Any:
        if not self._gradients_translate:
            return super().prior_gradient(theta)
        return self._prior_gradient(theta)[0]

    @cached_property
    def _gradients_translate(self) -> bool:
        """Whether JAX can compile PyTensor's gradients: it cannot when a size in them is computed
        in a way it does not follow, or an operation has no counterpart. Then they are JAX's own."""
        jax = import_jax("pymc")

        def weighted(theta: Any) -> Any:
            # PyTensor takes one row for one that is to be repeated: as everywhere, more than one.
            rows = {name: np.repeat(row, 2, axis=0) for name, row in self.template.fields.items()}
            return self._weighted_gradient(theta, np.ones(2), *self._typed(rows))

        try:
            with float64():
                jax.eval_shape(weighted, np.zeros(self.dim))
                jax.eval_shape(self._prior_gradient, np.zeros(self.dim))
        except (AttributeError, TypeError, ValueError, NotImplementedError):
            return False
        return True

    def _typed(self, rows: Mapping[str, Any]) -> list[Any]:
        numpy: Any = import_jax("pymc").numpy
        return [numpy.asarray(rows[field.name]).astype(field.dtype) for field in self.fields]

    @property
    def _inputs(self) -> list[Any]:
        return [self._graph.rows.inputs[field.name] for field in self.fields]

    @cached_property
    def _site_terms(self) -> Any:
        graph = self._graph
        outputs = [*graph.prior.values(), *graph.likelihood.values()]
        return to_jax([graph.theta, *self._inputs], outputs)

    @cached_property
    def _site_values(self) -> Any:
        return to_jax([self._graph.theta], list(self._graph.values.values()))

    @cached_property
    def _weighted_gradient(self) -> Any:
        tensor: Any = importlib.import_module("pytensor.tensor")
        theta, weights = self._graph.theta, tensor.dvector("weights")
        total = (weights * sum(self._graph.likelihood.values())).sum()
        return to_jax([theta, weights, *self._inputs], [_gradient(total, theta)])

    @cached_property
    def _prior_gradient(self) -> Any:
        theta = self._graph.theta
        return to_jax([theta], [_gradient(sum(self._graph.prior.values()), theta)])


def import_pymc() -> Any:
    """pymc, or an error that says what to install."""
    return import_extra("pymc", "PyMC models need", "pymc")


def _again(model: Any) -> PymcModel:
    return from_pymc(model)[0]


def _gradient(value: Any, theta: Any) -> Any:
    pytensor: Any = importlib.import_module("pytensor")
    return pytensor.grad(value, theta, disconnected_inputs="ignore")


def _by_row(name: str, values: Any) -> Any:
    """One term for each row: the first axis is the rows'."""
    if values.ndim == 0:
        raise ValueError(
            f"the PyMC variable {name!r} puts all rows into one density (a multivariate "
            "distribution over rows): a coreset needs one term for each row"
        )
    return values.sum(axis=tuple(range(1, values.ndim))) if values.ndim > 1 else values


def _has_rows(graph: Any, rows: RowInputs) -> bool:
    inputs = set(rows.inputs.values())
    return any(leaf in inputs for leaf in leaves([graph]))


def _try_rows(model: PymcModel, data: Rows) -> None:
    """Whether the graph can be evaluated for a few rows at all."""
    try:
        model.terms(np.zeros(model.dim), data.take(np.arange(min(3, data.num_rows))))
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else ""
        raise ValueError(
            f"the PyMC model cannot be evaluated on a few of its {data.num_rows:,} rows "
            f"({type(error).__name__}: {reason}): data with an entry for each row must have the "
            "rows as its first axis, and no operation may join rows"
        ) from error
