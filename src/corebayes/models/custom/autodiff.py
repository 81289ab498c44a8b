"""A custom model compiled by JAX, when its functions are JAX functions.

Whether they are is found out by trying: a function that can be traced is compiled and gets its
gradients and Hessians from JAX, any other is called as it is and has differences. Compiled code is
for one number of rows and draws, so both are padded to a few sizes with copies of the first, rows
at weight zero; left alone, JAX would compile every operation again for every shape. All of it is
in float64: the flag is raised only around the calls from here, so the user's JAX stays as
configured.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from corebayes.models.custom.compiling import call, float64, pad
from corebayes.types import Array, Block

SMALLEST, LARGE = 32, 1024
SMALLEST_DRAWS = 8


class JaxDerivatives:
    """f_n and log π_0 at draws, gradient and Hessian of Σ_n w_n f_n at θ and of the log prior; and
    log π_0 + Σ_n w_n f_n as a function of θ, fields and weights for JAX to trace."""

    def __init__(
        self, jax: Any, likelihood: Callable[[Any, Block], Any], log_prior: Callable[[Any], Any]
    ):
        def potentials(draws: Any, fields: dict[str, Any]) -> Any:
            return likelihood(draws, Block(fields))

        def sums(draws: Any, fields: dict[str, Any], weights: Any) -> Any:
            return weights @ likelihood(draws, Block(fields))

        def weighted(theta: Any, fields: dict[str, Any], weights: Any) -> Any:
            return sums(theta[None, :], fields, weights)[0]

        def prior(theta: Any) -> Any:
            return log_prior(theta[None, :])[0]

        def log_density(theta: Any, fields: dict[str, Any], weights: Any) -> Any:
            return weighted(theta, fields, weights) + prior(theta)

        def both(theta: Any, fields: dict[str, Any], weights: Any) -> Any:
            at = theta, fields, weights
            return jax.grad(weighted)(*at), jax.hessian(weighted)(*at)

        self.log_density = log_density
        self._potentials, self._sums = jax.jit(potentials), jax.jit(sums)
        self._gradient, self._both = jax.jit(jax.grad(weighted)), jax.jit(both)
        self._prior = jax.jit(log_prior)
        self._prior_gradient = jax.jit(jax.grad(prior))
        self._prior_hessian = jax.jit(jax.hessian(prior))

    def potentials(self, draws: Array, block: Block) -> Array:
        fields, _ = padded(block, np.empty(len(block)))
        values = _call(self._potentials, padded_draws(draws), fields)
        return values[: len(block), : len(draws)]

    def sums(self, draws: Array, block: Block, weights: Array) -> Array:
        return _call(self._sums, padded_draws(draws), *padded(block, weights))[: len(draws)]

    def gradient(self, theta: Array, block: Block, weights: Array) -> Array:
        return _call(self._gradient, theta, *padded(block, weights))

    def gradient_and_hessian(
        self, theta: Array, block: Block, weights: Array
    ) -> tuple[Array, Array]:
        return _call(self._both, theta, *padded(block, weights))

    def log_prior(self, draws: Array) -> Array:
        return _call(self._prior, padded_draws(draws))[: len(draws)]

    def log_prior_gradient(self, theta: Array) -> Array:
        return _call(self._prior_gradient, theta)

    def log_prior_hessian(self, theta: Array) -> Array:
        return _call(self._prior_hessian, theta)


def jax_derivatives(
    log_likelihood: Callable[[Any, Block], Any],
    log_prior: Callable[[Any], Any],
    dim: int,
    block: Block,
) -> JaxDerivatives | None:
    """The derivatives by JAX; None when it is not in use or cannot follow the functions."""
    # Functions that call JAX have imported it.
    jax: Any = sys.modules.get("jax")
    if jax is None:
        return None

    def potentials(draws: Any) -> Any:
        return log_likelihood(draws, block)

    theta = np.zeros((1, dim))
    try:
        with float64():
            jax.eval_shape(potentials, theta)
            jax.eval_shape(log_prior, theta)
    except Exception:
        # NumPy functions raise errors of many kinds when they are handed a tracer.
        return None
    return JaxDerivatives(jax, log_likelihood, log_prior)


def _call(kernel: Any, *arguments: Any) -> Any:
    """Arrays in float64 that may be written to."""
    answer = call(kernel, *arguments)
    if isinstance(answer, tuple):
        return tuple(np.array(part, dtype=np.float64) for part in cast("tuple[Any, ...]", answer))
    return np.array(answer, dtype=np.float64)


def padded(block: Block, weights: Array) -> tuple[dict[str, Array], Array]:
    """Fields and weights of one of few numbers of rows: a power of two, or many times 1,024."""
    size = _size(len(block), SMALLEST)
    fields = {name: pad(values, size) for name, values in block.fields.items()}
    return fields, np.concatenate([weights, np.zeros(size - len(block))])


def padded_draws(draws: Array) -> Array:
    """Draws of one of few numbers."""
    return pad(draws, _size(len(draws), SMALLEST_DRAWS))


def _size(number: int, smallest: int) -> int:
    """A power of two, or many times 1,024."""
    size = max(smallest, 1 << (number - 1).bit_length())
    return size if size <= LARGE else -(-number // LARGE) * LARGE
