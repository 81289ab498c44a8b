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
from typing import Any, NamedTuple

import numpy as np

from corebayes.models.compiling import call
from corebayes.models.compiling import float64 as float64
from corebayes.types import Array, Block

SMALLEST, LARGE = 32, 1024
SMALLEST_DRAWS = 8


class JaxDerivatives(NamedTuple):
    """f_n and log π_0 at draws, gradient and Hessian of Σ_n w_n f_n at θ and of the log prior; and
    log π_0 + Σ_n w_n f_n as a function of θ, fields and weights for JAX to trace."""

    potentials: Callable[[Array, Block], Array]
    sums: Callable[[Array, Block, Array], Array]
    log_prior: Callable[[Array], Array]
    gradient: Callable[[Array, Block, Array], Array]
    hessian: Callable[[Array, Block, Array], Array]
    gradient_and_hessian: Callable[[Array, Block, Array], tuple[Array, Array]]
    log_prior_gradient: Callable[[Array], Array]
    log_prior_hessian: Callable[[Array], Array]
    log_density: Callable[[Any, Any, Any], Any]


def jax_derivatives(
    log_likelihood: Callable[[Any, Block], Any],
    log_prior: Callable[[Any], Any],
    dim: int,
    block: Block,
) -> JaxDerivatives | None:
    """The derivatives by JAX; None when it is not in use or cannot follow the functions."""
    # Functions that call JAX have imported it.
    jax: Any = sys.modules.get("jax")
    if jax is None or not _can_trace(jax, log_likelihood, log_prior, dim, block):
        return None

    def weighted(theta: Any, fields: dict[str, Any], weights: Any) -> Any:
        return weights @ log_likelihood(theta[None, :], Block(fields))[:, 0]

    def log_density(theta: Any, fields: dict[str, Any], weights: Any) -> Any:
        return weighted(theta, fields, weights) + prior(theta)

    def prior(theta: Any) -> Any:
        return log_prior(theta[None, :])[0]

    functions = [
        jax.jit(derivative(function))
        for function in (weighted, prior)
        for derivative in (jax.grad, jax.hessian)
    ]

    def potentials_of(draws: Any, fields: dict[str, Any]) -> Any:
        return log_likelihood(draws, Block(fields))

    def sums_of(draws: Any, fields: dict[str, Any], weights: Any) -> Any:
        return weights @ log_likelihood(draws, Block(fields))

    compiled_potentials, compiled_sums = jax.jit(potentials_of), jax.jit(sums_of)
    compiled_prior = jax.jit(log_prior)

    def potentials(draws: Array, block: Block) -> Array:
        fields, _ = padded(block, np.empty(len(block)))
        values = call(compiled_potentials, padded_draws(draws), fields)
        return np.array(values, dtype=np.float64)[: len(block), : len(draws)]

    def sums(draws: Array, block: Block, weights: Array) -> Array:
        values = call(compiled_sums, padded_draws(draws), *padded(block, weights))
        return np.array(values, dtype=np.float64)[: len(draws)]

    def prior_of(draws: Array) -> Array:
        values = call(compiled_prior, padded_draws(draws))
        return np.array(values, dtype=np.float64)[: len(draws)]

    def of_rows(function: Any) -> Callable[[Array, Block, Array], Array]:
        def evaluate(theta: Array, block: Block, weights: Array) -> Array:
            fields, filled = padded(block, weights)
            return np.asarray(call(function, theta, fields, filled), dtype=np.float64)

        return evaluate

    def of_prior(function: Any) -> Callable[[Array], Array]:
        def evaluate(theta: Array) -> Array:
            return np.asarray(call(function, theta), dtype=np.float64)

        return evaluate

    slopes, bends = jax.grad(weighted), jax.hessian(weighted)

    def both_of(theta: Any, fields: dict[str, Any], weights: Any) -> Any:
        return slopes(theta, fields, weights), bends(theta, fields, weights)

    compiled_both = jax.jit(both_of)

    def both(theta: Array, block: Block, weights: Array) -> tuple[Array, Array]:
        slope, bend = call(compiled_both, theta, *padded(block, weights))
        return np.asarray(slope, dtype=np.float64), np.asarray(bend, dtype=np.float64)

    return JaxDerivatives(
        potentials,
        sums,
        prior_of,
        of_rows(functions[0]),
        of_rows(functions[1]),
        both,
        of_prior(functions[2]),
        of_prior(functions[3]),
        log_density,
    )


def _can_trace(
    jax: Any,
    log_likelihood: Callable[[Any, Block], Any],
    log_prior: Callable[[Any], Any],
    dim: int,
    block: Block,
) -> bool:
    theta = np.zeros((1, dim))
    try:
        with float64():
            jax.eval_shape(_of_draws(log_likelihood, block), theta)
            jax.eval_shape(log_prior, theta)
    except Exception:
        # NumPy functions raise errors of many kinds when they are handed a tracer.
        return False
    return True


def _of_draws(log_likelihood: Callable[[Any, Block], Any], block: Block) -> Callable[[Any], Any]:
    def evaluate(draws: Any) -> Any:
        return log_likelihood(draws, block)

    return evaluate


def padded(block: Block, weights: Array) -> tuple[dict[str, Array], Array]:
    """Fields and weights of one of few numbers of rows: a power of two, or many times 1,024."""
    missing = _size(len(block), SMALLEST) - len(block)
    fields = {
        name: np.concatenate([values, np.repeat(values[:1], missing, axis=0)])
        for name, values in block.fields.items()
    }
    return fields, np.concatenate([weights, np.zeros(missing)])


def padded_draws(draws: Array) -> Array:
    """Draws of one of few numbers."""
    missing = _size(len(draws), SMALLEST_DRAWS) - len(draws)
    return np.concatenate([draws, np.repeat(draws[:1], missing, axis=0)])


def _size(number: int, smallest: int) -> int:
    """A power of two, or many times 1,024."""
    size = max(smallest, 1 << (number - 1).bit_length())
    return size if size <= LARGE else -(-number // LARGE) * LARGE
