"""A coreset model from a NumPyro model.

    log π_0(θ) = Σ log p(z_s) + log |∂z_s/∂θ|  over the latent sites,   f_n = Σ log p(x_n | z)

with f_n the sum over the observed sites' terms of row n. Everything is computed by running the
user's own function on some of its rows.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from corebayes.adapters.adapted import RowField, as_rows, fields_of
from corebayes.adapters.flat import refuse_improper
from corebayes.adapters.jax_model import JaxModel, SiteTerms, float64, import_jax
from corebayes.adapters.local import learn_structure
from corebayes.adapters.numpyro.trace import (
    FEW,
    MORE,
    SiteStructure,
    find_structure,
    log_probabilities,
    substitute_unconstrained,
)
from corebayes.adapters.row_arguments import Arguments, candidates
from corebayes.adapters.rows_check import check_rows_alone
from corebayes.adapters.stated import numpyro_rows, stated
from corebayes.adapters.tracing import TRACING
from corebayes.extras import import_extra
from corebayes.models.priors.table import Row
from corebayes.rows import Rows
from corebayes.types import Block


def from_numpyro(model: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[NumpyroModel, Rows]:
    """The pair (model, data) for `build` and everything after it, from a NumPyro model.

    `model(*args, **kwargs)` is called with any of its rows: arrays whose first axis is as long as
    the observations are cut to them, and so is a whole number that equals that length, when the
    model does not run otherwise; everything else is passed on as it is. The rows must be
    independent given the latent variables, none of which may belong to one row; a model that is
    otherwise is refused with the site and the reason.

    The parameters are NumPyro's unconstrained ones; `sample` gives the model's own.
    """
    import_numpyro()
    if not callable(model):
        raise TypeError(f"from_numpyro takes a function that is a NumPyro model, got {model!r}")
    arguments, structure = _read(model, candidates(model, args, kwargs))
    arrays = arguments.row_arrays()
    data = as_rows(arrays)
    adapted = NumpyroModel(
        model, arguments.without_rows(), structure, fields_of(arrays), data.take(np.array([0]))
    )
    check_rows_alone(adapted, data)
    refuse_improper(adapted, data)
    learn_structure(adapted, data)
    return adapted, data


class NumpyroModel(JaxModel):
    """A `Model` that runs a NumPyro model; made by `from_numpyro`.

    It can be sent to other processes when the function it was made from can: one defined at
    module level.
    """

    library = "NumPyro"

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Arguments,
        sites: SiteStructure,
        fields: tuple[RowField, ...],
        template: Block,
    ):
        super().__init__(fields, sites.parameters)
        self.function = function
        self.arguments = arguments
        self.sites = sites
        self.template = template

    def run(self, theta: Any, rows: Mapping[str, Any]) -> dict[str, Any]:
        """The trace of the user's model at unconstrained θ (d,) on these rows."""
        numpyro = import_numpyro()
        number = next(iter(rows.values())).shape[0]
        args, kwargs = self.arguments.with_rows(typed_rows(rows, self.fields), number)
        model = substitute_unconstrained(self.function, self.split(theta))
        seeded = numpyro.handlers.seed(model, rng_seed=0)
        with TRACING:
            return numpyro.handlers.trace(seeded).get_trace(*args, **kwargs)

    @property
    def value_names(self) -> tuple[str, ...]:
        return (*(parameter.name for parameter in self.parameters), *self.sites.derived)

    def site_terms(self, theta: Any, rows: Mapping[str, Any]) -> SiteTerms:
        prior: dict[str, Any] = {}
        likelihood: dict[str, Any] = {}
        for name, site in self.run(theta, rows).items():
            if site["type"] != "sample":
                continue
            values, axis = log_probabilities(site), self.sites.row_axes.get(name)
            if axis is None:
                prior[name] = values.sum()
            else:
                others = tuple(k for k in range(-values.ndim, 0) if k != axis)
                likelihood[name] = values.sum(axis=others)
        return prior, likelihood

    def priors(self) -> list[Row]:
        """Every variable, its distribution and from where."""
        return [row for row in self._written() if row[0] not in self.sites.row_axes]

    def statement(self) -> str:
        """The likelihood, and the table of priors."""
        rows = self._written()
        return stated([row for row in rows if row[0] in self.sites.row_axes], self.priors())

    def _written(self) -> list[Row]:
        with float64():
            places = np.random.default_rng(0).normal(size=(2, self.dim))
            return numpyro_rows(*(self.run(place, self.template.fields) for place in places))

    def site_values(self, theta: Any) -> dict[str, Any]:
        sites = self.run(theta, self.template.fields)
        return {name: sites[name]["value"] for name in self.value_names}


def import_numpyro() -> Any:
    """numpyro, or an error that says what to install."""
    return import_extra("numpyro", "NumPyro models need", "numpyro")


def typed_rows(rows: Mapping[str, Any], fields: tuple[RowField, ...]) -> dict[str, Any]:
    """Rows are float64 everywhere here; the model gets whole numbers and booleans back.

    Where an exported model is run in float32, they are of what JAX has instead.
    """
    jax = import_jax("numpyro")

    def typed(values: Any, dtype: np.dtype[Any]) -> Any:
        dtype = np.dtype(np.float64) if dtype.kind == "f" else dtype
        return jax.numpy.asarray(values).astype(jax.dtypes.canonicalize_dtype(dtype))

    return {field.name: typed(rows[field.name], field.dtype) for field in fields}


def _read(model: Callable[..., Any], readings: list[Arguments]) -> tuple[Arguments, SiteStructure]:
    """The first reading of the arguments under which the model runs on any of its rows."""
    if not readings:
        raise ValueError(
            "the NumPyro model was given no arrays: pass the observations and all other data with "
            "an entry for each row as arguments, from_numpyro(model, X, y)"
        )
    failures: list[ValueError] = []
    for arguments in readings:
        try:
            return arguments, _structure(model, arguments)
        except ValueError as error:
            failures.append(error)
    raise failures[0]


def _structure(model: Callable[..., Any], arguments: Arguments) -> SiteStructure:
    """The structure of the model, from runs that compute shapes only."""
    found: list[SiteStructure] = []

    def run() -> None:
        few, more = (_trace(model, arguments, number) for number in (FEW, MORE))
        found.append(find_structure(few, more))

    with float64():
        import_jax("numpyro").eval_shape(run)
    return found[0]


def _start_of_flat(site: Any) -> Any:
    distributions: Any = importlib.import_module("numpyro.distributions")
    if site["type"] != "sample" or not isinstance(site["fn"], distributions.ImproperUniform):
        return None
    initialization: Any = importlib.import_module("numpyro.infer.initialization")
    return initialization.init_to_uniform(site)


def _trace(model: Callable[..., Any], arguments: Arguments, number: int) -> dict[str, Any]:
    """The model run on its first rows (again and again if there are too few)."""
    numpyro = import_numpyro()
    arrays: Any = import_jax("numpyro").numpy
    rows = {
        name: arrays.asarray(array[np.arange(number) % len(array)])
        for name, array in arguments.row_arrays().items()
    }
    args, kwargs = arguments.with_rows(rows, number)
    try:
        # A flat prior has no draws: its variable is where NumPyro's own samplers would start it.
        seeded = numpyro.handlers.seed(model, rng_seed=0)
        started = numpyro.handlers.substitute(seeded, substitute_fn=_start_of_flat)
        with TRACING:
            return cast(
                "dict[str, Any]", numpyro.handlers.trace(started).get_trace(*args, **kwargs)
            )
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"the NumPyro model does not run on {number} of its {arguments.num_rows:,} rows: "
            f"{type(error).__name__}: {reason}. All data with an entry for each row must be "
            "arguments (not taken from outside the function), and plates must be as long as "
            "these: numpyro.plate('rows', X.shape[0])"
        ) from error
