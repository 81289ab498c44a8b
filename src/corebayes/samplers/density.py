"""log π_w in the coordinates θ = θ̂ + L z of a sampler, as quick as the model allows.

In this order:

1. A built-in GLM, where numba is installed: one compiled function for rows, prior and gradient. The
   design in z is X L, so that the frame costs nothing.
2. A model with `jax_log_density`: log π_0(θ) + Σ_i w_i f_i(θ) as a function of (theta, rows,
   weights) that JAX can trace, where `rows` are the fields of a block and a row of weight zero says
   nothing (rows are padded with such). Adapted and custom JAX models have it, and any model may:
   NUTS then takes one call of compiled code for a value with its gradient. The attribute must be
   the same function each time, or None where JAX cannot follow.
3. A GLM in NumPy, and every other model by its own methods.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from corebayes.models.base import NormalPriorModel
from corebayes.models.compiled import jit
from corebayes.models.compiled.density import WeightedRows, density_address
from corebayes.models.custom.autodiff import padded
from corebayes.models.custom.compiling import call, float64
from corebayes.models.families.glm import GLM
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array

# Up to so many numbers what a JAX density needs is handed over as one array.
PACKED = 50_000

# log π_w and its gradient at z.
Callback = Callable[[Array], tuple[float, Array]]


class Frame(NamedTuple):
    """Coordinates θ = θ̂ + L z; for very many parameters L is diagonal, and only that is kept."""

    mean: Array
    factor: Array
    """L, (d, d) or (d,)."""

    def theta(self, z: Array) -> Array:
        """θ of every z (…, d)."""
        return self.mean + (z * self.factor if self.factor.ndim == 1 else z @ self.factor.T)

    def z(self, theta: Array) -> Array:
        """z of one θ."""
        if self.factor.ndim == 1:
            return (theta - self.mean) / self.factor
        return np.asarray(np.linalg.solve(self.factor, theta - self.mean), dtype=np.float64)

    def pulled_back(self, gradient: Array) -> Array:
        """∇ in z, from ∇ in θ."""
        return self.factor * gradient if self.factor.ndim == 1 else self.factor.T @ gradient


class Pointer(NamedTuple):
    """A density that is called without Python: the function's address, and its numbers."""

    address: int
    numbers: Array


def quickest_density(posterior: Posterior, frame: Frame) -> Callback | Pointer:
    """log π_w(θ̂ + L z), in whatever form is quickest."""
    model = posterior.model
    if isinstance(model, GLM) and _has_normal_prior(model) and frame.factor.ndim == 2:
        return _glm_density(model, posterior, frame)
    # Without rows there is nothing to pad with.
    traced: Any = getattr(model, "jax_log_density", None)
    if traced is not None and posterior.weights.size:
        return jax_density(traced, posterior, frame)
    return plain_density(posterior, frame)


def _has_normal_prior(model: GLM) -> bool:
    return type(model).log_prior is NormalPriorModel.log_prior


def plain_density(posterior: Posterior, frame: Frame) -> Callback:
    """By the model's own methods, a value and then a gradient."""

    def density(z: Array) -> tuple[float, Array]:
        value, gradient = posterior.value_and_gradient(frame.theta(z))
        return value, frame.pulled_back(gradient)

    return density


def _glm_density(model: GLM, posterior: Posterior, frame: Frame) -> Callback | Pointer:
    rows = _whitened(model, posterior, frame)
    kernel, slope_kernel = model.kernel, model.slope_kernel
    if kernel is not None and slope_kernel is not None and jit.available():
        return Pointer(density_address(kernel, slope_kernel), rows.packed())

    def density(z: Array) -> tuple[float, Array]:
        with np.errstate(all="ignore"):
            eta = rows.offsets + rows.design @ z
            (slope,) = model.derivatives(eta, rows.targets, 1)
            heights = model.log_density(eta[:, None], rows.targets[:, None], eta[:, None])[:, 0]
            bent = rows.precision @ z
            value = rows.height + z @ (rows.linear - 0.5 * bent) + rows.weights @ heights
            return float(value), rows.linear - bent + (rows.weights * slope) @ rows.design

    return density


def _whitened(model: GLM, posterior: Posterior, frame: Frame) -> WeightedRows:
    """The rows and the prior in z. Cost: M·d² + d³ flops."""
    design, prior = model.design(posterior.rows), model.gaussian_prior
    pulled = frame.factor.T @ prior.precision
    return WeightedRows(
        offsets=design @ frame.mean,
        design=design @ frame.factor,
        targets=model.target(posterior.rows),
        weights=posterior.weights,
        constants=tuple(model.constants.values()),
        height=float(prior.log_density(frame.mean[None])[0]),
        linear=pulled @ (prior.mean - frame.mean),
        precision=pulled @ frame.factor,
    )


def jax_density(log_density: Any, posterior: Posterior, frame: Frame) -> Callback:
    """That of (coordinates, rows, weights), compiled for the posterior's rows and the frame."""
    jax: Any = import_module("jax")
    fields, weights = padded(posterior.rows, posterior.weights)
    arrays, tree = jax.tree_util.tree_flatten((frame.mean, frame.factor, fields, weights))
    with float64():
        if sum(array.size for array in arrays) <= PACKED:
            # Every argument of a compiled function costs a microsecond.
            kernel = _jax_kernel(log_density, tree, tuple(a.shape for a in arrays))
            fixed = (jax.device_put(np.concatenate([np.ravel(array) for array in arrays])),)
        else:
            kernel, fixed = _jax_kernel(log_density, tree), jax.device_put(arrays)
        # Compiled here and not in a sampler's thread.
        call(kernel, np.zeros(posterior.dim), *fixed)

    def density(z: Array) -> tuple[float, Array]:
        with float64():
            answer = np.asarray(kernel(z, *fixed))
        return float(answer[-1]), answer[:-1]

    return density


# Compiled code is kept for the last few models, whatever coresets they are sampled with.
@lru_cache(maxsize=8)
def _jax_kernel(
    log_density: Callable[..., Any], tree: Any, shapes: tuple[tuple[int, ...], ...] | None = None
) -> Any:
    """z and the arrays of (θ̂, L, rows, weights) ↦ the gradient in z and, behind it, the value.

    With `shapes` the arrays come end to end as one.
    """
    jax: Any = import_module("jax")

    def whitened(z: Any, arrays: Any) -> Any:
        mean, factor, rows, weights = jax.tree_util.tree_unflatten(tree, arrays)
        step = factor * z if factor.ndim == 1 else factor @ z
        return log_density(mean + step, rows, weights)

    def kernel(z: Any, *arrays: Any) -> Any:
        if shapes is not None:
            arrays = _taken_apart(arrays[0], shapes)
        value, gradient = jax.value_and_grad(whitened)(z, arrays)
        return jax.numpy.append(gradient, value)

    return jax.jit(kernel)


def _taken_apart(packed: Any, shapes: tuple[tuple[int, ...], ...]) -> tuple[Any, ...]:
    arrays: list[Any] = []
    for shape in shapes:
        size = math.prod(shape)
        arrays.append(packed[:size].reshape(shape))
        packed = packed[size:]
    return tuple(arrays)
