"""Vector algebra for rows that are polynomials in one linear predictor.

If π_w = N(μ, LLᵀ), θ = μ + Lz and f_n depends on θ through η = x_nᵀθ, then with β_n = Lᵀx_n

    g_n = Σ_k c_{n,k} ⟨β_n^{⊗k}, He_k(z)⟩ / k!,    ⟨g_n, g_m⟩ = Σ_k c_{n,k} c_{m,k} (β_n·β_m)^k / k!

(Mehler's formula). The coordinates c_{n,k} β_n^{⊗k} / √k! of one element (the total, a residual)
fit in d + d² + … + d^order numbers; those of many rows are never formed: every operation goes
through β (n, d) and c (n, order).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import factorial
from typing import NamedTuple

import numpy as np

from corebayes.models.special import scratch
from corebayes.scan.passes import rows_of_width
from corebayes.types import Array, Indices

ROOT_2, ROOT_6 = np.sqrt(2.0), np.sqrt(6.0)


class Ridges(NamedTuple):
    """β_n (n, d) and c_{n,k} (n, order) of some rows."""

    beta: Array
    coefficients: Array


@dataclass(frozen=True)
class RidgeAlgebra:
    """Inner products of ridge polynomials of degree at most `order` in d dimensions."""

    dim: int
    order: int

    @property
    def width(self) -> int:
        return self.dim ** max(self.order - 1, 1)

    def _parts(self, num_rows: int) -> list[slice]:
        """Rows at a time, so that their powers take no more memory than those of a pass."""
        step = rows_of_width(self.width)
        return [slice(start, start + step) for start in range(0, max(num_rows, 1), step)]

    def take(self, vectors: Ridges, positions: Indices | slice) -> Ridges:
        return Ridges(vectors.beta[positions], vectors.coefficients[positions])

    def combine(self, vectors: Ridges, weights: Array) -> Array:
        """Σ_n w_n g_n. Cost: n·d^order flops, as one product of matrices for each degree."""
        parts = self._parts(len(weights))
        total = self._combined(self.take(vectors, parts[0]), weights[parts[0]])
        for part in parts[1:]:
            total += self._combined(self.take(vectors, part), weights[part])
        return total

    def _combined(self, vectors: Ridges, weights: Array) -> Array:
        beta, coefficients = vectors
        scaled, columns = coefficients.T * weights, beta.T
        if not columns.flags.c_contiguous:
            columns = scratch("columns", columns.shape)
            np.copyto(columns, beta.T)
        weighted = scratch("weighted", columns.shape)
        parts = [columns @ scaled[0]]
        for degree, power in self._powers(beta):
            sums = power.T @ np.multiply(columns, scaled[degree - 1], out=weighted).T
            parts.append(sums.ravel() / np.sqrt(factorial(degree)))
            if degree == 2 and self.order == 3:
                cubes = _cubes(columns, scaled[2], weighted)
                return np.concatenate([*parts, cubes.ravel() / ROOT_6])
        return np.concatenate(parts)

    def project(self, vectors: Ridges, element: Array) -> Array:
        """⟨g_n, element⟩. Cost: n·d^order flops."""
        parts = self._parts(len(vectors.beta))
        return np.concatenate([self._projected(self.take(vectors, p), element) for p in parts])

    def _projected(self, vectors: Ridges, element: Array) -> Array:
        beta, coefficients = vectors
        parts = self._split(element)
        result = coefficients[:, 0] * (beta @ parts[0])
        for degree, power in self._powers(beta):
            form = np.einsum("ni,ni->n", power @ parts[degree - 1].reshape(-1, self.dim), beta)
            result += coefficients[:, degree - 1] * form / np.sqrt(factorial(degree))
        return result

    def squared_norms(self, vectors: Ridges) -> Array:
        lengths = np.einsum("ni,ni->n", vectors.beta, vectors.beta)
        squares = np.square(vectors.coefficients)
        result = np.zeros_like(lengths)
        for degree in range(self.order, 0, -1):
            result = lengths / degree * (squares[:, degree - 1] + result)
        return result

    def last_degree(self, vectors: Ridges) -> Array:
        """The share of the highest degree in ‖g_n‖², c_{n,k}² ‖β_n‖^{2k} / k!."""
        beta, coefficients = vectors
        powers = np.vecdot(beta, beta) ** self.order / factorial(self.order)
        return np.square(coefficients[:, -1]) * powers

    def gram(self, vectors: Ridges, others: Ridges | None = None) -> Array:
        """Cost: n·m·d flops, whatever the order."""
        others = vectors if others is None else others
        products = vectors.beta @ others.beta.T
        result = np.zeros_like(products)
        for degree in range(self.order, 0, -1):
            first, second = vectors.coefficients[:, degree - 1], others.coefficients[:, degree - 1]
            result = products / degree * (np.outer(first, second) + result)
        return result

    def third_moments(self, vectors: Ridges, element: Array) -> Array:
        """E[g_n g_m e] up to degree `order`, at most three, of each. Cost: n·d^order + n²·d flops.

        Of degrees a, b, c with half-sum s, Hermite polynomials pair off (s − c) indices between the
        first two, and so on; each such factor has (s − c)! equal ways.
        """
        beta, coefficients = vectors
        products = beta @ beta.T
        forms = self._forms(beta, element)
        result = np.zeros_like(products)
        for a, b, c in np.ndindex(*3 * (min(self.order, 3),)):
            first, second, third = a + 1, b + 1, c + 1
            half, odd = divmod(first + second + third, 2)
            if odd or half < max(first, second, third):
                continue
            shared, by_first, by_second = half - third, half - second, half - first
            ways = factorial(shared) * factorial(by_first) * factorial(by_second)
            pair = np.outer(coefficients[:, a], coefficients[:, b]) / ways
            result += pair * products**shared * forms[by_first, by_second]
        return result

    def _forms(self, beta: Array, element: Array) -> dict[tuple[int, int], Array]:
        """e_{p+q}(β_n, …, β_m, …) with β_n in p places and β_m in q, for every pair of rows.

        e_k is the symmetric tensor in e = Σ_k ⟨e_k, He_k⟩ / k!.
        """
        parts, dim = self._split(element), self.dim
        forms = {(1, 0): (beta @ parts[0])[:, None]}
        if self.order >= 2:
            forms[1, 1] = ROOT_2 * (beta @ parts[1].reshape(dim, dim)) @ beta.T
            forms[2, 0] = np.diag(forms[1, 1])[:, None]
        if self.order >= 3:
            pairs = (beta[:, :, None] * beta[:, None, :]).reshape(len(beta), -1)
            forms[2, 1] = ROOT_6 * (pairs @ parts[2].reshape(-1, dim)) @ beta.T
            forms[3, 0] = np.diag(forms[2, 1])[:, None]
        return forms | {(q, p): values.T for (p, q), values in forms.items()}

    def _powers(self, beta: Array) -> Iterator[tuple[int, Array]]:
        """The degrees k from 2 on, each with β_n^{⊗(k−1)} of every row, (n, d^(k−1))."""
        power = beta
        for degree in range(2, self.order + 1):
            yield degree, power
            if degree < self.order:
                power = (power[:, :, None] * beta[:, None, :]).reshape(-1, self.dim**degree)

    def _split(self, element: Array) -> list[Array]:
        """The parts of each degree."""
        lengths = [self.dim**degree for degree in range(1, self.order)]
        return np.split(element, np.cumsum(lengths))


def _cubes(columns: Array, weights: Array, weighted: Array) -> Array:
    """Σ_n w_n β_n ⊗ β_n ⊗ β_n, (d, d, d), with the rows along the last axis: those sums whose first
    index is the smallest, a product of matrices for each, stand for the others."""
    dim = len(columns)
    sums = np.empty((dim, dim, dim))
    for i in range(dim):
        np.multiply(columns[i:], columns[i] * weights, out=weighted[i:])
        np.matmul(weighted[i:], columns[i:].T, out=sums[i, i:, i:])
    return sums.reshape(-1)[_places(dim)]


@cache
def _places(dim: int) -> Indices:
    """Where the sum of indices i, j and k stands with the smallest in front, (d, d, d)."""
    i, j, k = np.sort(np.indices((dim, dim, dim)).reshape(3, -1), axis=0)
    return ((i * dim + j) * dim + k).reshape(dim, dim, dim)
