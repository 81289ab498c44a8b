"""The kernels of an adapted model, compiled by JAX from the model's own terms.

A library says what every site adds to the log density at one θ for some rows; the rest follows by
`vmap`, `grad` and `jit`. Compiled code is for one shape, so rows and draws are padded to a few
sizes: a coreset that grows does not compile again. All of it is in float64: the flag is raised only
around the calls from here and only in the calling thread, so the user's JAX stays as configured.
"""

from __future__ import annotations

import importlib
import os
from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from corebayes.adapters.adapted import MOST_ROWS, AdaptedModel, Answer, RowPart, Terms
from corebayes.extras import import_extra
from corebayes.models.custom.compiling import call, pad
from corebayes.models.custom.compiling import float64 as float64
from corebayes.models.custom.touching import TouchingModel
from corebayes.types import Array, Block

SiteTerms = tuple[dict[str, Any], dict[str, Any]]
# Sizes of parts of rows and of draws: to compile a likelihood with its derivatives for one more
# takes seconds, and a call that is half empty next to nothing. More draws are taken in turn.
ROW_SIZES, DRAW_SIZES = (64, MOST_ROWS), (1, 64, 256)


def import_jax(extra: str) -> Any:
    """jax, or an error that says what to install."""
    jax = import_extra("jax", "this model needs", extra)
    _answer_in_the_calling_thread(jax)
    return jax


def _answer_in_the_calling_thread(jax: Any) -> None:
    """On a CPU, let a compiled function run where it is called, unless the user has said otherwise.

    By default JAX hands it to a thread of its own and we wait for that: for the thousands of small
    calls of a sampler twice the time, and on a busy machine many times. It changes no result, and
    has no effect once the user's program has used JAX.
    """
    if "JAX_CPU_ENABLE_ASYNC_DISPATCH" not in os.environ:
        jax.config.update("jax_cpu_enable_async_dispatch", False)


class JaxModel(AdaptedModel, TouchingModel):
    """An adapted model whose terms are JAX functions of θ (d,) and rows."""

    template: Block
    """One row, to evaluate what does not depend on rows."""

    @abstractmethod
    def site_terms(self, theta: Any, rows: Mapping[str, Any]) -> SiteTerms:
        """By site: numbers that are the prior's, and (n,) log-likelihoods of these rows."""

    @property
    @abstractmethod
    def value_names(self) -> tuple[str, ...]:
        """The model's own variables that no row has a part in, latent ones first."""

    @abstractmethod
    def site_values(self, theta: Any) -> dict[str, Any]:
        """The model's own variables at unconstrained θ."""

    def row_terms(self, theta: Any, rows: Mapping[str, Any]) -> Any:
        """f_n(θ) of these rows, (n,)."""
        return sum(self.site_terms(theta, rows)[1].values())

    def prior_term(self, theta: Any) -> Any:
        """log π_0(θ)."""
        return sum(self.site_terms(theta, self.template.fields)[0].values())

    def weighted_sum(self, theta: Any, rows: Mapping[str, Any], weights: Any) -> Any:
        """Σ_n w_n f_n(θ); a row of weight zero says nothing, whatever its potential."""
        terms = weights * self.row_terms(theta, rows)
        return _jax().numpy.where(weights == 0.0, 0.0, terms).sum()

    def weighted_gradient(self, theta: Any, rows: Mapping[str, Any], weights: Any) -> Any:
        """∇ Σ_n w_n f_n(θ)."""
        return _jax().grad(self.weighted_sum)(theta, rows, weights)

    def prior_gradient(self, theta: Any) -> Any:
        """∇ log π_0(θ)."""
        return _jax().grad(self.prior_term)(theta)

    @property
    def jax_log_density(self) -> Any:
        """log π_0 + Σ_n w_n f_n of (theta, rows, weights), for NUTS to compile as a whole."""
        return self._jax_log_density

    @cached_property
    def _jax_log_density(self) -> Any:
        # The gradient is what the model says it is, which is not always JAX's own.
        def value(theta: Any, rows: Mapping[str, Any], weights: Any) -> Any:
            return self.weighted_sum(theta, rows, weights) + self.prior_term(theta)

        def forward(*arguments: Any) -> Any:
            return value(*arguments), arguments

        def backward(arguments: Any, slope: Any) -> Any:
            theta, rows, weights = arguments
            gradient = self.weighted_gradient(*arguments) + self.prior_gradient(theta)
            others = _jax().tree_util.tree_map(_jax().numpy.zeros_like, (rows, weights))
            return slope * gradient, *others

        log_density = _jax().custom_vjp(value)
        log_density.defvjp(forward, backward)
        return log_density

    def constrain(self, draws: Array) -> dict[str, Array]:
        """Cost: one run of the model on one row for each draw."""
        values = _by_draws(self._compiled_values, draws)
        return {name: values[name] for name in self.value_names}

    def terms(self, theta: Array, block: Block) -> Terms:
        prior, rows = _call(self._compiled_terms, theta, dict(block.fields))
        return Terms({name: float(value) for name, value in prior.items()}, rows)

    def part(self, block: Block, rows: slice) -> RowPart:
        # The last part of many has the size of the others.
        size = MOST_ROWS if len(block) > MOST_ROWS else _size(rows.stop - rows.start, ROW_SIZES)
        padded = {field.name: pad(block[field.name][rows], size) for field in self.fields}
        with float64():
            return RowPart(rows, size, _jax().device_put(padded))

    def part_potentials(self, draws: Array, part: RowPart) -> Array:
        values = _by_draws(self._compiled_potentials, draws, part.arrays)
        return values[:, : part.rows.stop - part.rows.start].T

    def part_sums(self, draws: Array, part: RowPart, weights: Array) -> Array:
        return _by_draws(self._compiled_sums, draws, part.arrays, _filled(weights, part))

    def part_value_gradient(
        self, theta: Array, part: RowPart, weights: Array
    ) -> tuple[float, Array]:
        """The prior's value and gradient come with it and are remembered: whoever asks for a
        density needs both, and what a call takes is mostly the calling."""
        kernel = self._compiled_value_gradient
        values, gradients = _call(kernel, theta, part.arrays, _filled(weights, part))
        self._prior_answer = Answer((theta.tobytes(),), float(values[1]), gradients[1])
        return float(values[0]), gradients[0]

    def part_gradient_and_hessian(
        self, theta: Array, part: RowPart, weights: Array
    ) -> tuple[Array, Array]:
        return _call(
            self._compiled_gradient_and_hessian, theta, part.arrays, _filled(weights, part)
        )

    def prior_values(self, draws: Array) -> Array:
        return _by_draws(self._compiled_prior, draws)

    def prior_value_gradient(self, theta: Array) -> tuple[float, Array]:
        value, gradient = _call(self._compiled_prior_value_gradient, theta)
        return float(value), gradient

    def log_prior_hessian(self, theta: Array) -> Array:
        return _call(self._compiled_prior_hessian, theta)

    @cached_property
    def _compiled_terms(self) -> Any:
        return _jax().jit(self.site_terms)

    @cached_property
    def _compiled_values(self) -> Any:
        return _jax().jit(_jax().vmap(self.site_values))

    @cached_property
    def _compiled_potentials(self) -> Any:
        return _jax().jit(_jax().vmap(self.row_terms, in_axes=(0, None)))

    @cached_property
    def _compiled_sums(self) -> Any:
        return _jax().jit(_jax().vmap(self.weighted_sum, in_axes=(0, None, None)))

    @cached_property
    def _compiled_value_gradient(self) -> Any:
        stack = _jax().numpy.stack

        def kernel(theta: Any, rows: Mapping[str, Any], weights: Any) -> Any:
            values = self.weighted_sum(theta, rows, weights), self.prior_term(theta)
            gradients = self.weighted_gradient(theta, rows, weights), self.prior_gradient(theta)
            return stack(values), stack(gradients)

        return _jax().jit(kernel)

    @cached_property
    def _compiled_gradient_and_hessian(self) -> Any:
        hessian = _jax().jacfwd(self.weighted_gradient)
        return _jax().jit(_both(self.weighted_gradient, hessian))

    @cached_property
    def _compiled_prior(self) -> Any:
        return _jax().jit(_jax().vmap(self.prior_term))

    @cached_property
    def _compiled_prior_value_gradient(self) -> Any:
        return _jax().jit(_both(self.prior_term, self.prior_gradient))

    @cached_property
    def _compiled_prior_hessian(self) -> Any:
        return _jax().jit(_jax().jacfwd(self.prior_gradient))


def _jax() -> Any:
    return importlib.import_module("jax")


def _both(first: Any, second: Any) -> Any:
    """θ, … ↦ (first, second): what they share is compiled once."""

    def both(*arguments: Any) -> Any:
        return first(*arguments), second(*arguments)

    return both


def _call(kernel: Any, *arguments: Any) -> Any:
    """A compiled function in float64, its answers as NumPy arrays that nobody else holds."""
    return _jax().tree_util.tree_map(np.array, call(kernel, *arguments))


def _by_draws(kernel: Any, draws: Array, *arguments: Any) -> Any:
    """The kernel's answers at draws (S, d), whose first axis is theirs."""
    step, answers = DRAW_SIZES[-1], list[Any]()
    for first in range(0, len(draws), step):
        some = draws[first : first + step]
        answers.append(_call(kernel, pad(some, _size(len(some), DRAW_SIZES)), *arguments))

    def joined(*parts: Array) -> Array:
        return (parts[0] if len(parts) == 1 else np.concatenate(parts))[: len(draws)]

    return _jax().tree_util.tree_map(joined, *answers)


def _size(number: int, sizes: tuple[int, ...]) -> int:
    """The first of the sizes that is large enough."""
    return next(size for size in sizes if size >= number)


def _filled(weights: Array, part: RowPart) -> Array:
    """Weights of zero for the rows that only fill up the part."""
    filled = np.zeros(part.size)
    filled[: weights.size] = weights
    return filled
