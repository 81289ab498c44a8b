"""The log density of weighted rows and its gradient as one function that C can call.

    log π = c + b·z − ½ zᵀQz + Σ_i w_i ℓ(o_i + a_iᵀz, y_i),
    ∇     = b − Qz + Σ_i w_i ℓ'(o_i + a_iᵀz, y_i) a_i

so that a sampler written in another language never comes back to Python. Everything it needs lies
in one vector of numbers, to which it carries the address.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from corebayes.models.compiled.jit import Kernel, compiled_once
from corebayes.types import Array

# M, the two constants of the family and c come first.
HEAD = 4


class WeightedRows(NamedTuple):
    """What the density is made of; d parameters, M rows."""

    offsets: Array
    """o, (M,)."""
    design: Array
    """a, (M, d)."""
    targets: Array
    weights: Array
    constants: tuple[float, ...]
    """Of the family, at most two."""
    height: float
    """c."""
    linear: Array
    """b, (d,)."""
    precision: Array
    """Q, (d, d)."""

    def packed(self) -> Array:
        """All numbers in the order in which the compiled function takes them."""
        p0, p1 = (*self.constants, 0.0, 0.0)[:2]
        head = np.array([self.offsets.size, p0, p1, self.height])
        # Both layouts of the design: one for η, one for the gradient, each read in order.
        parts = (head, self.offsets, self.targets, self.weights, self.design.T, self.design)
        return np.concatenate([np.ravel(part) for part in (*parts, self.linear, self.precision)])


def density_address(kernel: Kernel, slope_kernel: Kernel) -> int:
    """The address of int64 (uint64 d, double *z, double *gradient, double *value, void *data);
    it returns zero, or a positive number where the density is not finite."""
    kernels = kernel, slope_kernel
    return compiled_once("density", kernels, _make_density, c_density).address


def c_density(numba: Any, **options: Any) -> Any:
    types = numba.types
    doubles = types.CPointer(types.float64)
    signature = types.int64(types.uint64, doubles, doubles, doubles, types.voidptr)
    return numba.cfunc(signature, **options)


def _make_density(kernel: Kernel, slope_kernel: Kernel, checksum: int) -> Callable[..., int]:
    carray: Any = import_module("numba").carray

    def density(dim: int, z_: Any, gradient_: Any, value_: Any, data_: Any) -> int:
        _ = checksum
        d = np.int64(dim)
        z, gradient, value = carray(z_, d), carray(gradient_, d), carray(value_, 1)
        head = carray(data_, HEAD, np.float64)
        rows, p0, p1 = np.int64(head[0]), head[1], head[2]
        numbers = carray(data_, HEAD + rows * (3 + 2 * d) + d + d * d, np.float64)
        at = HEAD
        offsets, y = numbers[at : at + rows], numbers[at + rows : at + 2 * rows]
        weights = numbers[at + 2 * rows : at + 3 * rows]
        columns = at + 3 * rows
        design = columns + d * rows
        linear = design + d * rows
        precision = linear + d

        work = np.empty((4, rows))
        eta, slope, t, g = work[0], work[1], work[2], work[3]
        for i in range(rows):
            eta[i] = offsets[i]
        for k in range(d):
            column = numbers[columns + k * rows : columns + (k + 1) * rows]
            for i in range(rows):
                eta[i] += column[i] * z[k]
        for i in range(rows):
            slope[i] = eta[i]
        kernel(eta, y, p0, p1, t, g)
        slope_kernel(slope, y, p0, p1, t, g)

        # The prior: c + b·z − ½ zᵀQz
        total = head[3]
        for k in range(d):
            bent = 0.0
            for j in range(d):
                bent += numbers[precision + k * d + j] * z[j]
            total += z[k] * (numbers[linear + k] - 0.5 * bent)
            gradient[k] = numbers[linear + k] - bent
        for i in range(rows):
            if weights[i] != 0.0:
                total += weights[i] * eta[i]
                pull = weights[i] * slope[i]
                row = numbers[design + i * d : design + (i + 1) * d]
                for k in range(d):
                    gradient[k] += pull * row[k]
        value[0] = total
        if not np.isfinite(total):
            return 1
        for k in range(d):
            if not np.isfinite(gradient[k]):
                return 2
        return 0

    return density


def copy_address() -> int:
    """The address of a function that hands z over as it is: int64 (uint64 d, uint64 d, double *z,
    double *out, void *data)."""
    return compiled_once("hand_over", (_same,), _make_copy, _c_copy).address


def _same(eta: Array, y: Array, p0: float, p1: float, t: Array, g: Array) -> None:
    """The kernel that changes nothing."""


def _c_copy(numba: Any, **options: Any) -> Any:
    types = numba.types
    doubles = types.CPointer(types.float64)
    signature = types.int64(types.uint64, types.uint64, doubles, doubles, types.voidptr)
    return numba.cfunc(signature, **options)


def _make_copy(_: Kernel, checksum: int) -> Callable[..., int]:
    carray: Any = import_module("numba").carray

    def hand_over(dim: int, length: int, z_: Any, out_: Any, data_: Any) -> int:
        _ = checksum
        d = np.int64(dim)
        z, out = carray(z_, d), carray(out_, d)
        for k in range(d):
            out[k] = z[k]
        return 0

    return hand_over
