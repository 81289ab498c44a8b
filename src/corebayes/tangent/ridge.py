"""Vector algebra for rows that are polynomials in one linear predictor.

If π_w = N(μ, LLᵀ), θ = μ + Lz and f_n depends on θ through η = x_nᵀθ, then with β_n = Lᵀx_n

    g_n = Σ_k c_{n,k} ⟨β_n^{⊗k}, He_k(z)⟩ / k!,    ⟨g_n, g_m⟩ = Σ_k c_{n,k} c_{m,k} (β_n·β_m)^k / k!

(Mehler's formula). The coordinates c_{n,k} β_n^{⊗k} / √k! of one element (the total, a residual)
fit in d + d² + d³ numbers; those of many rows are never formed: every operation goes through
β (n, d) and c (n, order).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from corebayes.types import Array

ROOT_2, ROOT_6 = np.sqrt(2.0), np.sqrt(6.0)


class Ridges(NamedTuple):
    """β_n (n, d) and c_{n,k} (n, order) of some rows."""

    beta: Array
    coefficients: Array


@dataclass(frozen=True)
class RidgeAlgebra:
    """Inner products of ridge polynomials of total degree at most `order` ≤ 3 in d dimensions."""

    dim: int
    order: int

    @property
    def width(self) -> int:
        return self.dim**2 if self.order == 3 else self.dim

    def combine(self, vectors: Ridges, weights: Array) -> Array:
        """Σ_n w_n g_n. Cost: n·d^order flops, as one product of matrices for each degree."""
        beta, coefficients = vectors
        scaled = coefficients * weights[:, None]
        parts = [scaled[:, 0] @ beta]
        if self.order >= 2:
            parts.append(((beta * scaled[:, 1:2]).T @ beta).ravel() / ROOT_2)
        if self.order >= 3:
            parts.append((self._pairs(beta).T @ (beta * scaled[:, 2:3])).ravel() / ROOT_6)
        return np.concatenate(parts)

    def project(self, vectors: Ridges, element: Array) -> Array:
        """⟨g_n, element⟩. Cost: n·d^order flops."""
        beta, coefficients = vectors
        first, second, third = self._split(element)
        result = coefficients[:, 0] * (beta @ first)
        if self.order >= 2:
            quadratic = np.einsum("ni,ni->n", beta @ second, beta)
            result += coefficients[:, 1] * quadratic / ROOT_2
        if self.order >= 3:
            cubic = np.einsum("ni,ni->n", self._pairs(beta) @ third, beta)
            result += coefficients[:, 2] * cubic / ROOT_6
        return result

    def squared_norms(self, vectors: Ridges) -> Array:
        lengths = np.einsum("ni,ni->n", vectors.beta, vectors.beta)
        squares = np.square(vectors.coefficients)
        result = np.zeros_like(lengths)
        for degree in range(self.order, 0, -1):
            result = lengths / degree * (squares[:, degree - 1] + result)
        return result

    def gram(self, vectors: Ridges) -> Array:
        """Cost: n²·d flops, whatever the order."""
        products = vectors.beta @ vectors.beta.T
        result = np.zeros_like(products)
        for degree in range(self.order, 0, -1):
            column = vectors.coefficients[:, degree - 1]
            result = products / degree * (np.outer(column, column) + result)
        return result

    def _pairs(self, beta: Array) -> Array:
        return (beta[:, :, None] * beta[:, None, :]).reshape(len(beta), -1)

    def _split(self, element: Array) -> tuple[Array, Array, Array]:
        d = self.dim
        second = element[d : d + d * d].reshape(-1, d)
        third = element[d + d * d :].reshape(-1, d)
        return element[:d], second, third
