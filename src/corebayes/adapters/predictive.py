"""The distribution of new observations in models of other libraries, by their own means."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from corebayes.adapters.adapted import AdaptedModel, as_rows
from corebayes.adapters.bambi.adapter import BambiModel
from corebayes.adapters.jax_model import float64, import_jax
from corebayes.adapters.numpyro.adapter import NumpyroModel, import_numpyro, typed_rows
from corebayes.adapters.pymc.adapter import PymcModel
from corebayes.adapters.pymc.predictive import compile_draws
from corebayes.adapters.tracing import TRACING
from corebayes.rows import Rows
from corebayes.types import Array, Block, Indices, Rng


def adapted_predictive(model: Any, posterior: Any, chosen: Indices) -> Any:
    """The predictive distribution at the chosen draws of an ArviZ posterior; None if there is no
    way to one."""
    if isinstance(model, BambiModel):
        return BambiPredictive(model, posterior, chosen)
    if isinstance(model, NumpyroModel):
        return NumpyroPredictive(model, _values(model, posterior, chosen))
    if isinstance(model, PymcModel):
        return PymcPredictive(model, _values(model, posterior, chosen))
    return None


def _values(model: Any, posterior: Any, chosen: Indices) -> dict[str, Array]:
    """Draws of the latent variables, (S, …)."""
    found: dict[str, Array] = {}
    for parameter in model.parameters:
        name = parameter.name.replace("/", "_")
        if name not in posterior:
            raise ValueError(
                f"the draws have no variable {name!r}, which the model has: they are of another"
            )
        values = np.asarray(posterior[name].values, dtype=np.float64)
        found[parameter.name] = values.reshape(-1, *values.shape[2:])[chosen]
    return found


def _with_observations(model: AdaptedModel, rows: Any, observed: set[str]) -> Rows:
    """Named arrays as the model's rows; observations that are not known yet are filled up."""
    if isinstance(rows, Rows):
        return rows
    if not isinstance(rows, Mapping):
        wanted = ", ".join(repr(field.name) for field in model.fields if field.name not in observed)
        raise TypeError(
            f"new rows of a {model.library} model are a mapping of names to arrays, {{{wanted}: …}}"
            f", got {type(rows).__name__}"
        )
    named = cast("Mapping[Any, Any]", rows)
    given: dict[str, Any] = {str(name): np.asarray(values) for name, values in named.items()}
    arrays: dict[str, Any] = {}
    for field in model.fields:
        if field.name in given:
            arrays[field.name] = given[field.name].astype(np.float64)
        elif field.name not in observed:
            names = ", ".join(repr(field.name) for field in model.fields)
            raise ValueError(f"the new rows have no {field.name!r}; the model takes {names}")
    if not arrays:
        raise ValueError("the new rows have none of the arrays that the model takes")
    number = len(next(iter(arrays.values())))
    for field in model.fields:
        if field.name not in arrays:
            arrays[field.name] = np.ones((number, *field.shape))
    return as_rows(arrays)


@dataclass
class NumpyroPredictive:
    """Runs the model at every draw and takes its observed distribution."""

    model: NumpyroModel
    values: dict[str, Array]

    @property
    def num_draws(self) -> int:
        return len(next(iter(self.values.values())))

    def open(self, rows: Any) -> Rows:
        return _with_observations(self.model, rows, self._observed)

    @cached_property
    def _observed(self) -> set[str]:
        """Fields whose values are those of an observed site."""
        numpyro, model = import_numpyro(), self.model
        values = {name: draws[0] for name, draws in self.values.items()}
        with float64():
            rows = typed_rows(model.template.fields, model.fields)
            args, kwargs = model.arguments.with_rows(rows, 1)
            fixed = numpyro.handlers.substitute(model.function, data=values)
            with TRACING:
                seeded = numpyro.handlers.seed(fixed, rng_seed=0)
                trace = numpyro.handlers.trace(seeded).get_trace(*args, **kwargs)
        observed = [trace[name]["value"] for name in model.sites.row_axes]
        return {name for name, array in rows.items() if any(array is one for one in observed)}

    def predict(self, rng: Rng, block: Block) -> tuple[Array, Array]:
        jax = import_jax("numpyro")
        with float64():
            keys = jax.random.split(jax.random.PRNGKey(int(rng.integers(2**31))), self.num_draws)
            fields = {name: jax.numpy.asarray(values) for name, values in block.fields.items()}
            means, draws = self._compiled(self.values, keys, fields)
            return np.array(means, dtype=np.float64).T, np.array(draws, dtype=np.float64).T

    @cached_property
    def _compiled(self) -> Any:
        jax = import_jax("numpyro")

        def one(values: Any, key: Any, rows: Any) -> Any:
            return self._site(values, key, rows)

        return jax.jit(jax.vmap(one, in_axes=(0, 0, None)))

    def _site(self, values: Any, key: Any, rows: Any) -> Any:
        numpyro = import_numpyro()
        model = self.model
        names = list(model.sites.row_axes)
        if len(names) != 1:
            raise TypeError(f"predict is for models with one observed site, not {', '.join(names)}")
        number = next(iter(rows.values())).shape[0]
        args, kwargs = model.arguments.with_rows(typed_rows(rows, model.fields), number)
        fixed = numpyro.handlers.substitute(model.function, data=values)
        seeded = numpyro.handlers.seed(fixed, rng_seed=0)
        with TRACING:
            trace = numpyro.handlers.trace(seeded).get_trace(*args, **kwargs)
        distribution = trace[names[0]]["fn"]
        drawn = distribution.sample(key)
        if drawn.shape != (number,):
            raise TypeError(f"predict is for one number in each row, and {names[0]!r} has more")
        try:
            mean = distribution.mean
        except NotImplementedError:
            mean = drawn
        return mean * np.ones(number), drawn


@dataclass
class PymcPredictive:
    """Draws the observed variable of the model's graph at every draw."""

    model: PymcModel
    values: dict[str, Array]

    @property
    def num_draws(self) -> int:
        return len(next(iter(self.values.values())))

    def open(self, rows: Any) -> Rows:
        return _with_observations(
            self.model, rows, {rv.name for rv in self.model.model.observed_RVs}
        )

    def predict(self, rng: Rng, block: Block) -> tuple[Array, Array]:
        return self._drawn(rng, self.values, block)

    @cached_property
    def _drawn(self) -> Any:
        return compile_draws(self.model)


@dataclass
class BambiPredictive:
    """Bambi's own `predict`, on some rows of a frame at a time."""

    model: BambiModel
    posterior: Any
    chosen: Indices

    @property
    def num_draws(self) -> int:
        return self.chosen.size

    def open(self, rows: Any) -> FrameRows:
        if not hasattr(rows, "iloc"):
            raise TypeError(
                f"new rows of a Bambi model are a pandas frame, got {type(rows).__name__}"
            )
        return FrameRows(rows)

    def predict(self, rng: Rng, frame: Any) -> tuple[Array, Array]:
        own = self.model.bambi
        found = own.predict(
            self._idata,
            kind="response",
            data=frame,
            inplace=False,
            random_seed=int(rng.integers(2**31)),
        )
        response = own.response_component.term
        drawn = found.posterior_predictive[str(response.alias or response.name)]
        means = found.posterior[own.family.likelihood.parent]
        if means.ndim != 3:
            raise TypeError("predict is for one number in each row: use Bambi's own predict")
        return _last_first(means, len(frame)), _last_first(drawn, len(frame))

    @cached_property
    def _idata(self) -> Any:
        """The chosen draws as one chain."""
        arviz: Any = importlib.import_module("arviz")
        stacked = self.posterior.stack(one=("chain", "draw")).isel(one=self.chosen)
        plain = stacked.reset_index("one", drop=True).drop_vars(["chain", "draw"], errors="ignore")
        chain = plain.rename(one="draw").assign_coords(draw=np.arange(self.chosen.size))
        chain = chain.expand_dims(chain=[0]).transpose("chain", "draw", ...)
        return arviz.InferenceData(posterior=chain)


def _last_first(values: Any, num_rows: int) -> Array:
    """(chain, draw, n) as (n, S)."""
    return np.asarray(values.values, dtype=np.float64).reshape(-1, num_rows).T


@dataclass
class FrameRows:
    """Rows that only their library can read."""

    frame: Any

    @property
    def num_rows(self) -> int:
        return len(self.frame)

    def check(self) -> None:
        """Bambi does, when it makes its columns."""

    def blocks(self, block_rows: int) -> Iterator[Any]:
        for first in range(0, len(self.frame), block_rows):
            yield self.frame.iloc[first : first + block_rows]
