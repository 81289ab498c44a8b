"""A model from plain functions of (draws, block)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, Self

import numpy as np

from corebayes.arguments import checked_whole
from corebayes.files.markup import model_html
from corebayes.models.custom.autodiff import JaxDerivatives, jax_derivatives
from corebayes.models.custom.checks import (
    ROWS_TRIED,
    Function,
    WeightedFunction,
    checked,
    copied,
    of_rows,
    places_of_effects,
    spread_rows,
)
from corebayes.models.custom.compiling import float64
from corebayes.models.custom.derivative_check import Given, check_given
from corebayes.models.custom.finite_differences import (
    difference_gradient,
    difference_hessian,
    difference_jacobian,
)
from corebayes.models.custom.named_rows import Naming, OnNamedRows, named
from corebayes.models.custom.touching import TouchingModel
from corebayes.types import Array, Block, Data


class CustomModel(TouchingModel):
    """Any likelihood and prior on `dim` unconstrained parameters.

    `log_likelihood(draws, block)` takes draws (S, d) and rows and returns log p(x_n | θ_s) of
    shape (n, S); `log_prior(draws)` returns (S,). The block has the fields of the data, such as
    `block.X` and `block.y`, and every column of a frame by its name: `block.event`,
    `block["age in years"]`, also those that are not among the `features` of `build`.

    Derivatives are of Σ_n w_n log p(x_n | θ): `gradient(theta, block,
    weights)` (d,) and `hessian(theta, block, weights)` (d, d), and `log_prior_gradient(theta)`
    and `log_prior_hessian(theta)`. Those given are compared with differences when the model is
    bound; those not given are taken by JAX when the functions are JAX functions, else by central
    differences, from 4·d draws for a gradient and about 2·d² for a Hessian. Functions must be
    defined at module level to be sent to other processes.

    Rows that touch few parameters, as with effects b[g] of groups, are a mixed model. Functions of
    JAX show that themselves; for others `groups` says it: for every column with the numbers
    0, 1, … of groups the places of their effects in θ, one for each group, or (groups, effects).
    """

    def __init__(
        self,
        log_likelihood: Callable[[Array, Block], Array],
        log_prior: Function,
        dim: int,
        *,
        gradient: WeightedFunction | None = None,
        hessian: WeightedFunction | None = None,
        log_prior_gradient: Function | None = None,
        log_prior_hessian: Function | None = None,
        names: Sequence[str] | None = None,
        log_concave: bool = False,
        groups: Mapping[str, Any] | None = None,
    ):
        dim = checked_whole("dim", dim)
        functions = {
            "log_likelihood": log_likelihood,
            "log_prior": log_prior,
            "gradient": gradient or print,
            "hessian": hessian or print,
            "log_prior_gradient": log_prior_gradient or print,
            "log_prior_hessian": log_prior_hessian or print,
        }
        for name, function in functions.items():
            if not callable(function):
                raise TypeError(f"{name} must be a function, got {function!r}")
        if names is not None and len(names) != dim:
            raise ValueError(f"names has {len(names)} entries for {dim} parameters")
        self._log_likelihood = log_likelihood
        self._log_prior = log_prior
        self._dim = int(dim)
        self._gradient = gradient
        self._hessian = hessian
        self._log_prior_gradient = log_prior_gradient
        self._log_prior_hessian = log_prior_hessian
        self._names: tuple[str, ...] = tuple(names or (f"theta[{k}]" for k in range(dim)))
        self._log_concave = log_concave
        self.groups = places_of_effects(groups or {}, self._dim)
        """Places (groups, effects) in θ of the effects of each column's groups."""
        self._first_rows: Block | None = None

    def __repr__(self) -> str:
        name = getattr(self._log_likelihood, "__name__", repr(self._log_likelihood))
        return f"CustomModel({name}, dim={self._dim})"

    def _repr_html_(self) -> str:
        return model_html(self)

    @property
    def dim(self) -> int:
        return self._dim

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return self._names

    @property
    def log_concave(self) -> bool:
        return self._log_concave

    def bind(self, data: Data) -> Self:
        """Try every given function on a few rows: shapes, rows that look at each other, arguments
        that are changed, and given derivatives against differences."""
        block = copied(data.take(np.arange(min(ROWS_TRIED, data.num_rows))))
        bound = self.named(data.column_names, data.target_name)
        bound._first_rows = block
        bound._try(block)
        # Functions may have imported JAX only now, when they were called for the first time.
        bound.__dict__.pop("_by_jax", None)
        again = data.take(np.arange(len(block)))
        for name, values in block.fields.items():
            if not np.array_equal(values, again[name], equal_nan=True):
                raise ValueError(f"a function of the model changes block[{name!r}]: copy it")
        bound._try_rows_alone(block)
        bound._try_derivatives(data)
        return bound

    @property
    def likelihood(self) -> Callable[[Array, Block], Array]:
        return self._log_likelihood

    @property
    def is_named(self) -> bool:
        """Whether it knows what the columns of its rows are called."""
        return isinstance(self._log_likelihood, OnNamedRows)

    @property
    def num_features(self) -> int | None:
        """Columns of X that the functions see as X; None for all."""
        own = self._log_likelihood
        return own.naming.num_features if isinstance(own, OnNamedRows) else None

    def named(
        self, columns: Sequence[str], target: str = "y", num_features: int | None = None
    ) -> Self:
        """This model for rows whose columns have these names; `X` has the first `num_features`."""
        kept = self.num_features if num_features is None else num_features
        naming = Naming(tuple(columns), target, kept)
        other = copy.copy(self)
        other.__dict__.pop("_by_jax", None)
        other.__dict__.pop("_compiled_kernels", None)
        other._log_likelihood = named(self._log_likelihood, naming)
        other._gradient = named(self._gradient, naming)
        other._hessian = named(self._hessian, naming)
        return other

    @cached_property
    def _by_jax(self) -> JaxDerivatives | None:
        """Derivatives from JAX, if the model is bound and JAX can follow its functions."""
        if self._first_rows is None:
            return None
        return jax_derivatives(self._log_likelihood, self._log_prior, self._dim, self._first_rows)

    @property
    def jax_log_density(self) -> Callable[[Any, Any, Any], Any] | None:
        """log π_0 + Σ_n w_n f_n of (theta, fields, weights), if JAX can follow the functions."""
        return None if self._by_jax is None else self._by_jax.log_density

    @property
    def is_traced(self) -> bool:
        return self._by_jax is not None

    def row_terms(self, theta: Any, rows: Mapping[str, Any]) -> Any:
        """f_n(θ) of these rows, (n,), for JAX to trace."""
        return self._log_likelihood(theta[None, :], Block(dict(rows)))[:, 0]

    def prior_term(self, theta: Any) -> Any:
        """log π_0(θ), for JAX to trace."""
        return self._log_prior(theta[None, :])[0]

    def __getstate__(self) -> dict[str, Any]:
        # Compiled functions cannot be sent to another process, which compiles its own.
        return {
            name: value
            for name, value in self.__dict__.items()
            if name != "_by_jax" and not name.startswith("_compiled")
        }

    def _precisely(self) -> AbstractContextManager[Any]:
        return nullcontext() if self._by_jax is None else float64()

    def _try(self, block: Block) -> None:
        # Numbers of rows and draws differ, so that a transposed answer cannot pass.
        draws = np.zeros((len(block) + 1, self._dim))
        self._plain_potentials(draws, block)
        self._plain_prior(draws)
        theta, weights, dim = draws[0], np.ones(len(block)), self._dim
        if self._gradient is not None:
            checked(self._gradient(theta, block, weights), (dim,), "gradient", "(d,)")
        if self._hessian is not None:
            checked(self._hessian(theta, block, weights), (dim, dim), "hessian", "(d, d)")
        if self._log_prior_gradient is not None:
            checked(self._log_prior_gradient(theta), (dim,), "log_prior_gradient", "(d,)")
        if self._log_prior_hessian is not None:
            checked(self._log_prior_hessian(theta), (dim, dim), "log_prior_hessian", "(d, d)")
        if np.any(draws) or np.any(weights != 1.0):
            raise ValueError(
                "a function of the model changes the θ or weights it is given: copy it"
            )

    def _try_rows_alone(self, block: Block) -> None:
        """A coreset is a sum over rows of terms that know nothing of each other."""
        draws = np.random.default_rng(20190101).uniform(-1.0, 1.0, (3, self._dim))
        with np.errstate(all="ignore"):
            together = self.potentials(draws.copy(), block)
            for row in range(len(block)):
                alone = self.potentials(draws.copy(), block.take(slice(row, row + 1)))[0]
                if not np.allclose(alone, together[row], rtol=1e-6, atol=1e-6, equal_nan=True):
                    place = int(np.argmax(np.abs(alone - together[row])))
                    raise ValueError(
                        f"log_likelihood of row {row} is {together[row, place]:.10g} beside others "
                        f"and {alone[place]:.10g} alone: a row must not look at other rows. "
                        "Compute what it takes from them beforehand and pass it as a field"
                    )

    def _try_derivatives(self, data: Data) -> None:
        if self._gradient is not None or self._hessian is not None:
            block = data.take(spread_rows(data))
            weights = np.random.default_rng(20190101).uniform(0.5, 3.0, len(block))

            def terms(draws: Array) -> Array:
                return self.potentials(draws, block).T * weights

            likelihood = Given(
                name="log_likelihood",
                meaning="Σ_n w_n log p(x_n | θ), with the given weights and without the prior",
                prefix="",
                values=terms,
                gradient=of_rows(self._gradient, block, weights),
                hessian=of_rows(self._hessian, block, weights),
            )
            check_given(likelihood, self._names)

        def log_prior(draws: Array) -> Array:
            return self.log_prior(draws)[:, None]

        prior = Given(
            name="log_prior",
            meaning="log π_0(θ)",
            prefix="log_prior_",
            values=log_prior,
            gradient=self._log_prior_gradient,
            hessian=self._log_prior_hessian,
        )
        check_given(prior, self._names)

    def potentials(self, draws: Array, block: Block, out: Array | None = None) -> Array:
        if self._by_jax is not None and len(block) and len(draws):
            values = self._by_jax.potentials(draws, block)
        else:
            values = self._plain_potentials(draws, block)
        if out is not None:
            np.copyto(out, values)
            return out
        # Arrays of JAX are read-only; whoever asks for potentials may centre them in place.
        return values if values.flags.writeable else values.copy()

    def _plain_potentials(self, draws: Array, block: Block) -> Array:
        """By the function as it was given."""
        shape = (len(block), draws.shape[0])
        with self._precisely():
            return checked(self._log_likelihood(draws, block), shape, "log_likelihood", "(n, S)")

    def _plain_prior(self, draws: Array) -> Array:
        with self._precisely():
            return checked(self._log_prior(draws), (draws.shape[0],), "log_prior", "(S,)")

    def sum_potentials(self, draws: Array, block: Block, weights: Array | None = None) -> Array:
        if len(block) == 0:
            return np.zeros(len(draws))
        if self._by_jax is not None and len(draws):
            of_row = np.ones(len(block)) if weights is None else weights
            return self._by_jax.sums(draws, block, of_row)
        values = self.potentials(draws, block)
        return values.sum(axis=0) if weights is None else weights @ values

    def gradient(self, theta: Array, block: Block, weights: Array) -> Array:
        if len(block) == 0:
            return np.zeros(self._dim)
        if self._gradient is not None:
            return self._gradient(theta, block, weights)
        if self._by_jax is not None:
            return self._by_jax.gradient(theta, block, weights)
        if self.row_structure is not None:
            return self.touched_gradient(theta, block, weights)
        return difference_gradient(lambda draws: self.sum_potentials(draws, block, weights), theta)

    def hessian(self, theta: Array, block: Block, weights: Array) -> Array:
        """∇² Σ_n w_n f_n(θ), without the prior, shape (d, d)."""
        if len(block) == 0:
            return np.zeros((self._dim, self._dim))
        if self._hessian is not None:
            return self._hessian(theta, block, weights)
        if self._gradient is not None:
            given = self._gradient
            return difference_jacobian(lambda point: given(point, block, weights), theta)
        if self._by_jax is not None:
            return self._by_jax.gradient_and_hessian(theta, block, weights)[1]
        return difference_hessian(lambda draws: self.sum_potentials(draws, block, weights), theta)

    def gradient_and_hessian(
        self, theta: Array, block: Block, weights: Array
    ) -> tuple[Array, Array]:
        given = self._gradient is not None or self._hessian is not None
        if self._by_jax is not None and len(block) and not given:
            return self._by_jax.gradient_and_hessian(theta, block, weights)
        return self.gradient(theta, block, weights), self.hessian(theta, block, weights)

    def log_base(self, block: Block) -> Array:
        return np.zeros(len(block))

    def log_prior(self, draws: Array) -> Array:
        if self._by_jax is not None and len(draws):
            return self._by_jax.log_prior(draws)
        return self._plain_prior(draws)

    def log_prior_gradient(self, theta: Array) -> Array:
        if self._log_prior_gradient is not None:
            return self._log_prior_gradient(theta)
        if self._by_jax is not None:
            return self._by_jax.log_prior_gradient(theta)
        return difference_gradient(self.log_prior, theta)

    def log_prior_hessian(self, theta: Array) -> Array:
        if self._log_prior_hessian is not None:
            return self._log_prior_hessian(theta)
        if self._log_prior_gradient is not None:
            return difference_jacobian(self._log_prior_gradient, theta)
        if self._by_jax is not None:
            return self._by_jax.log_prior_hessian(theta)
        return difference_hessian(self.log_prior, theta)
