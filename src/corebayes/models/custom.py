"""A model from plain functions of (draws, block)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, Self

import numpy as np

from corebayes.models.autodiff import Derivatives, float64, jax_derivatives
from corebayes.models.finite_differences import (
    difference_gradient,
    difference_hessian,
    difference_jacobian,
)
from corebayes.types import Array, Block, Data

WeightedFunction = Callable[[Array, Block, Array], Array]
Function = Callable[[Array], Array]

ROWS_TRIED = 5


class CustomModel:
    """Any likelihood and prior on `dim` unconstrained parameters.

    `log_likelihood(draws, block)` takes draws (S, d) and rows and returns log p(x_n | θ_s) of
    shape (n, S); `log_prior(draws)` returns (S,). The block has the fields of the data, such as
    `block.X` and `block.y`. Derivatives are of Σ_n w_n log p(x_n | θ): `gradient(theta, block,
    weights)` (d,) and `hessian(theta, block, weights)` (d, d), and `log_prior_gradient(theta)`
    and `log_prior_hessian(theta)`. Those not given are taken by JAX when the functions are JAX
    functions, else by central differences, from 4·d draws for a gradient and about 2·d² for a
    Hessian. Functions must be defined at module
    level to be sent to other processes.
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
    ):
        if isinstance(dim, bool) or not isinstance(dim, (int, np.integer)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"dim must be a whole number, got {dim!r}")
        if dim < 1:
            raise ValueError(f"dim must be at least 1, got {dim}")
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
        self._first_rows: Block | None = None

    def __repr__(self) -> str:
        name = getattr(self._log_likelihood, "__name__", repr(self._log_likelihood))
        return f"CustomModel({name}, dim={self._dim})"

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
        """Try every given function on the first rows, so that a wrong shape shows at once."""
        block = data.take(np.arange(min(ROWS_TRIED, data.num_rows)))
        bound = copy.copy(self)
        bound._first_rows = block
        bound._try(block)
        return bound

    @cached_property
    def _by_jax(self) -> Derivatives | None:
        """Derivatives from JAX, if the model is bound and JAX can follow its functions."""
        if self._first_rows is None:
            return None
        return jax_derivatives(self._log_likelihood, self._log_prior, self._dim, self._first_rows)

    def __getstate__(self) -> dict[str, Any]:
        # Compiled functions cannot be sent to another process, which compiles its own.
        return {name: value for name, value in self.__dict__.items() if name != "_by_jax"}

    def _precisely(self) -> AbstractContextManager[Any]:
        return nullcontext() if self._by_jax is None else float64()

    def _try(self, block: Block) -> None:
        # Numbers of rows and draws differ, so that a transposed answer cannot pass.
        draws = np.zeros((len(block) + 1, self._dim))
        self.potentials(draws, block)
        self.log_prior(draws)
        theta, weights, dim = draws[0], np.ones(len(block)), self._dim
        if self._gradient is not None:
            _checked(self._gradient(theta, block, weights), (dim,), "gradient", "(d,)")
        if self._hessian is not None:
            _checked(self._hessian(theta, block, weights), (dim, dim), "hessian", "(d, d)")
        if self._log_prior_gradient is not None:
            _checked(self._log_prior_gradient(theta), (dim,), "log_prior_gradient", "(d,)")
        if self._log_prior_hessian is not None:
            _checked(self._log_prior_hessian(theta), (dim, dim), "log_prior_hessian", "(d, d)")

    def potentials(self, draws: Array, block: Block, out: Array | None = None) -> Array:
        shape = (len(block), draws.shape[0])
        with self._precisely():
            values = _checked(self._log_likelihood(draws, block), shape, "log_likelihood", "(n, S)")
        if out is not None:
            np.copyto(out, values)
            return out
        # Arrays of JAX are read-only; whoever asks for potentials may centre them in place.
        return values if values.flags.writeable else values.copy()

    def sum_potentials(self, draws: Array, block: Block, weights: Array | None = None) -> Array:
        if len(block) == 0:
            return np.zeros(len(draws))
        values = self.potentials(draws, block)
        return values.sum(axis=0) if weights is None else weights @ values

    def gradient(self, theta: Array, block: Block, weights: Array) -> Array:
        if len(block) == 0:
            return np.zeros(self._dim)
        if self._gradient is not None:
            return self._gradient(theta, block, weights)
        if self._by_jax is not None:
            return self._by_jax.gradient(theta, block, weights)
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
            return self._by_jax.hessian(theta, block, weights)
        return difference_hessian(lambda draws: self.sum_potentials(draws, block, weights), theta)

    def slopes(self, theta: Array, block: Block, weights: Array) -> tuple[Array, Array]:
        return self.gradient(theta, block, weights), self.hessian(theta, block, weights)

    def log_base(self, block: Block) -> Array:
        return np.zeros(len(block))

    def log_prior(self, draws: Array) -> Array:
        with self._precisely():
            return _checked(self._log_prior(draws), (draws.shape[0],), "log_prior", "(S,)")

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


def _checked(values: object, shape: tuple[int, ...], function: str, meaning: str) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(
            f"{function} must return an array of shape {meaning} = {shape}, got {array.shape}"
        )
    return array
