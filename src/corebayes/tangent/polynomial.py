"""A polynomial of θ seen from one Gaussian or another: what a reserve misses, after a move.

At N(μ, LLᵀ), with z = L⁻¹(θ − μ), a polynomial has the Hermite coefficients c_k = E[∂^k p / ∂z^k],
the coordinates √k! · (element of degree k) of `ridge.py`. At another N(μ', L'L'ᵀ), z = a + B z',

    c'_j = Bᵀ ⊗ … ⊗ Bᵀ Σ_{i, l} ⟨c_{j+i+2l}, a^{⊗i} ⊗ (BBᵀ − I)^{⊗l}⟩ / (i! l! 2^l)

exactly: the shift a is Taylor's formula, the change of width BBᵀ − I that of the heat equation.
Cost: a few d^{order+1} flops.
"""

from __future__ import annotations

from functools import cache
from math import factorial

import numpy as np

from corebayes.coreset.missed import Missed
from corebayes.types import Array, Gaussian, Indices, Total


def polynomial_of(at: Gaussian, order: int, element: Array) -> Missed:
    """From the coordinates of an element of `RidgeAlgebra(d, order)` at the Gaussian."""
    dim, parts, start = at.mean.size, list[Array](), 0
    for degree in range(1, order + 1):
        part = element[start : start + dim**degree] * np.sqrt(factorial(degree))
        parts.append(part[_distinct(dim, degree)[0]])
        start += dim**degree
    return Missed(at, order, np.concatenate(parts))


def element_at(polynomial: Missed, at: Gaussian, order: int) -> Array:
    """The coordinates in `RidgeAlgebra(d, order)` at another Gaussian; degrees beyond the
    polynomial's own are zero there."""
    return total_at(polynomial, at, order).element


def total_at(polynomial: Missed, at: Gaussian, order: int) -> Total:
    """The same, and how much larger the polynomial's mean is there than where it was made."""
    (mean, factor), dim = polynomial.at, at.mean.size
    shift = np.asarray(np.linalg.solve(factor, at.mean - mean), dtype=np.float64)
    turn = np.asarray(np.linalg.solve(factor, at.factor), dtype=np.float64)
    constant, *tensors = _widened(
        _shifted(_tensors(polynomial), shift), turn @ turn.T - np.eye(dim)
    )
    parts = [
        _turned(tensor, turn).ravel() / np.sqrt(factorial(degree))
        for degree, tensor in enumerate(tensors[:order], start=1)
    ]
    missing = [np.zeros(dim**degree) for degree in range(len(parts) + 1, order + 1)]
    return Total(np.concatenate([*parts, *missing]), float(constant))


def values_at(polynomial: Missed, places: Array) -> Array:
    """Of each of some θ, up to a constant."""
    mean, factor = polynomial.at
    z = np.asarray(np.linalg.solve(factor, (places - mean).T), dtype=np.float64).T
    # Powers of z instead of Hermite polynomials: the widening from a point.
    _, *tensors = _widened(_tensors(polynomial), -np.eye(mean.size))
    values = np.zeros(len(z))
    for degree, tensor in enumerate(tensors, start=1):
        # One index after the other, the last first.
        form = np.tensordot(z, tensor, axes=([1], [tensor.ndim - 1]))
        for _ in range(degree - 1):
            form = np.einsum("s...i,si->s...", form, z)
        values += form / factorial(degree)
    return values


def _shifted(tensors: list[Array], shift: Array) -> list[Array]:
    """exp(⟨a, ∂⟩): every degree gets what the higher ones are at a."""
    result = [tensor.copy() for tensor in tensors]
    for degree, tensor in enumerate(tensors):
        for times in range(1, degree + 1):
            tensor = tensor @ shift / times
            result[degree - times] += tensor
    return result


def _widened(tensors: list[Array], wider: Array) -> list[Array]:
    """exp(½ ⟨BBᵀ − I, ∂²⟩)."""
    result = [tensor.copy() for tensor in tensors]
    for degree, tensor in enumerate(tensors):
        for times in range(1, degree // 2 + 1):
            tensor = np.tensordot(tensor, wider, axes=2) / (2 * times)
            result[degree - 2 * times] += tensor
    return result


def _turned(tensor: Array, turn: Array) -> Array:
    """B on every index: each step takes the first one and puts what comes of it last."""
    for _ in range(tensor.ndim):
        tensor = np.tensordot(tensor, turn, axes=([0], [0]))
    return tensor


def _tensors(polynomial: Missed) -> list[Array]:
    """By degree, the constant first, which is zero."""
    dim, start = polynomial.at.mean.size, 0
    tensors: list[Array] = [np.zeros(())]
    for degree in range(1, polynomial.order + 1):
        first, back = _distinct(dim, degree)
        part = polynomial.numbers[start : start + first.size]
        tensors.append(part[back].reshape((dim,) * degree))
        start += first.size
    return tensors


@cache
def _distinct(dim: int, degree: int) -> tuple[Indices, Indices]:
    """Where the entries of sorted indices stand in a symmetric tensor, and for every entry which of
    them it is."""
    indices = np.sort(np.indices((dim,) * degree).reshape(degree, -1), axis=0)
    places = np.ravel_multi_index(tuple(indices), (dim,) * degree)
    first, back = np.unique(places, return_inverse=True)
    return first, back
