"""Vector algebra for rows that are polynomials in one linear predictor.

If π_w = N(μ, LLᵀ), θ = μ + Lz and f_n depends on θ through η = x_nᵀθ, then with β_n = Lᵀx_n

    g_n = Σ_k c_{n,k} ⟨β_n^{⊗k}, He_k(z)⟩ / k!,    ⟨g_n, g_m⟩ = Σ_k c_{n,k} c_{m,k} (β_n·β_m)^k / k!

(Mehler's formula). The coordinates c_{n,k} β_n^{⊗k} / √k! of one element (the total, a residual)
fit in d + d² + … + d^order numbers; those of many rows are never formed: every operation goes
through β (n, d) and c (n, order).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement
from math import comb, factorial
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
        """Numbers of a row at once: its monomials, weighted and not where they are many."""
        if self.order <= 3:
            return comb(self.dim + max(self.order - 2, 0), max(self.order - 1, 1))
        half = (self.order + 1) // 2
        return 2 * comb(self.dim + half - 1, half)

    @property
    def num_numbers(self) -> int:
        """Of an element."""
        return sum(self.dim**degree for degree in range(1, self.order + 1))

    @property
    def sums(self) -> int:
        """Products of a row that the sum of the highest degree adds up."""
        low, high = self.order // 2, (self.order + 1) // 2
        return comb(self.dim + low - 1, low) * comb(self.dim + high - 1, high)

    def _parts(self, num_rows: int) -> list[slice]:
        """Rows at a time, so that their powers take no more memory than those of a pass."""
        step = rows_of_width(self.width)
        return [slice(start, start + step) for start in range(0, max(num_rows, 1), step)]

    def take(self, vectors: Ridges, positions: Indices | slice) -> Ridges:
        return Ridges(vectors.beta[positions], vectors.coefficients[positions])

    def combine(self, vectors: Ridges, weights: Array) -> Array:
        """Σ_n w_n g_n. Cost: n·d^order flops at most, a product of matrices for each degree."""
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
        parts = [columns @ scaled[0]]
        if self.order == 1:
            return parts[0]
        weighted = scratch("weighted", columns.shape)
        squares = np.multiply(columns, scaled[1], out=weighted) @ columns.T
        parts.append(squares.ravel() / ROOT_2)
        if self.order >= 3:
            parts.append(_cubes(columns, scaled[2], weighted).ravel() / ROOT_6)
        if self.order >= 4:
            monomials = _monomials(beta, (self.order + 1) // 2)
            for degree in range(4, self.order + 1):
                sums = _power_sums(monomials, scaled[degree - 1], degree)
                parts.append(sums / np.sqrt(factorial(degree)))
        return np.concatenate(parts)

    def project(self, vectors: Ridges, element: Array) -> Array:
        """⟨g_n, element⟩. Cost: n·d^order flops."""
        parts = self._parts(len(vectors.beta))
        return np.concatenate([self._projected(self.take(vectors, p), element) for p in parts])

    def _projected(self, vectors: Ridges, element: Array) -> Array:
        beta, coefficients = vectors
        parts = self._split(element)
        result = coefficients[:, 0] * (beta @ parts[0])
        monomials = _monomials(beta, (self.order + 1) // 2)
        for degree in range(2, self.order + 1):
            form = _forms_of(monomials, parts[degree - 1], degree)
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
        return self.by_degree(vectors)[-1]

    def by_degree(self, vectors: Ridges) -> list[Array]:
        """The shares of all degrees."""
        beta, coefficients = vectors
        lengths = np.einsum("ni,ni->n", beta, beta)
        shares, power = list[Array](), np.ones_like(lengths)
        for degree in range(1, self.order + 1):
            power *= lengths / degree
            shares.append(np.square(coefficients[:, degree - 1]) * power)
        return shares

    def squares_by_degree(self, element: Array) -> list[float]:
        """The share of each degree in ‖element‖²."""
        return [float(part @ part) for part in self._split(element)]

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


def _monomials(beta: Array, highest: int) -> list[Array]:
    """Products of the entries of β_n, each once, rows along the last axis: (C(d+k−1, k), n) for the
    degrees k = 0 (one row of ones), …, highest."""
    columns = np.ascontiguousarray(beta.T)
    found = [np.ones((1, len(beta))), columns]
    for degree in range(2, highest + 1):
        first, rest = _steps(beta.shape[1], degree)
        found.append(columns[first] * found[-1][rest])
    return found


def _power_sums(monomials: list[Array], weights: Array, degree: int) -> Array:
    """Σ_n w_n β_n^{⊗k}, (d^k,): a product of those of half the degree, each sum where it stands."""
    low, high = monomials[degree // 2], monomials[(degree + 1) // 2]
    return ((high * weights) @ low.T).reshape(-1)[_halves(len(monomials[1]), degree)[0]]


def _forms_of(monomials: list[Array], tensor: Array, degree: int) -> Array:
    """⟨β_n^{⊗k}, tensor⟩ of a symmetric one, (n,)."""
    low, high = monomials[degree // 2], monomials[(degree + 1) // 2]
    _, places, ways = _halves(len(monomials[1]), degree)
    return np.einsum("in,in->n", high, (tensor[places] * ways) @ low)


@cache
def _sorted(dim: int, degree: int) -> Indices:
    """Sorted indices of a symmetric tensor, (C(d+k−1, k), k), in the order of their numbers."""
    return np.array([*combinations_with_replacement(range(dim), degree)], dtype=np.int64)


@cache
def _steps(dim: int, degree: int) -> tuple[Indices, Indices]:
    """For each sorted index its first, and the place of the others among those of a degree less."""
    indices, places = _sorted(dim, degree), _ranks(dim, degree - 1)
    return indices[:, 0], places[_numbers(dim, indices[:, 1:])]


@cache
def _halves(dim: int, degree: int) -> tuple[Indices, Indices, Array]:
    """Of Σ β^{⊗k} as a product of halves: where every entry stands there, (d^k,); where every pair
    of halves stands in a tensor, (C_high, C_low), and how many entries it stands for."""
    low, high = degree // 2, (degree + 1) // 2
    indices = np.sort(np.indices((dim,) * degree).reshape(degree, -1), axis=0).T
    ranks = [_ranks(dim, part) for part in (high, low)]
    halves = indices[:, :high], indices[:, high:]
    first, second = (rank[_numbers(dim, half)] for rank, half in zip(ranks, halves, strict=True))
    lows, highs = _sorted(dim, low), _sorted(dim, high)
    places = _numbers(dim, highs)[:, None] * dim**low + _numbers(dim, lows)
    return first * len(lows) + second, places, np.outer(_ways(dim, highs), _ways(dim, lows))


@cache
def _ranks(dim: int, degree: int) -> Indices:
    """The place of an index among the sorted ones, by its number; −1 for those not sorted."""
    ranks = np.full(dim**degree, -1, dtype=np.int64)
    ranks[_numbers(dim, _sorted(dim, degree))] = np.arange(comb(dim + degree - 1, degree))
    return ranks


def _numbers(dim: int, indices: Indices) -> Indices:
    """Where indices (m, k) stand in a tensor that is written in a row."""
    numbers = np.zeros(len(indices), dtype=np.int64)
    for column in indices.T:
        numbers = numbers * dim + column
    return numbers


def _ways(dim: int, indices: Indices) -> Array:
    """In how many orders each of the sorted indices can be written: k! / Π m_i!."""
    ways = np.full(len(indices), float(factorial(indices.shape[1])))
    for number in range(dim):
        times = (indices == number).sum(axis=1)
        ways /= np.array([factorial(k) for k in range(indices.shape[1] + 1)])[times]
    return ways
