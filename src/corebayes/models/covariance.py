"""Covariance matrices: checked once, with the forms of them that formulas need."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from corebayes.types import Array


class Covariance(NamedTuple):
    """A positive definite matrix C = factor factorᵀ with its inverse and its log determinant."""

    matrix: Array
    factor: Array
    precision: Array
    whitening: Array
    """factor⁻¹, so that precision = whiteningᵀ whitening."""
    log_determinant: float


def from_variances(variances: Array) -> Covariance:
    """The diagonal matrix of these variances, without a rounding error from factorising it."""
    deviations = np.sqrt(variances)
    return Covariance(
        np.diag(variances),
        np.diag(deviations),
        np.diag(1.0 / variances),
        np.diag(1.0 / deviations),
        float(np.log(variances).sum()),
    )


def from_matrix(matrix: Array) -> Covariance:
    """The parts of a checked covariance matrix. Cost: d³."""
    factor = np.linalg.cholesky(matrix).astype(np.float64, copy=False)
    whitening = np.tril(lapack.dtrtri(factor, lower=1)[0])
    precision = whitening.T @ whitening
    return Covariance(
        matrix, factor, precision, whitening, float(2.0 * np.log(np.diag(factor)).sum())
    )


def check_scales(values: Array, argument: str) -> None:
    """Refuse standard deviations or variances that are not positive and finite."""
    for position, value in np.ndenumerate(values):
        where = argument if values.ndim == 0 else f"{argument}[{position[0]}]"
        if np.isposinf(value):
            raise ValueError(
                f"{where} is infinite: a flat prior is refused, because any d or fewer rows "
                "are linearly separable and the coreset posterior would not exist; "
                "give a large finite value"
            )
        if not value > 0.0:
            raise ValueError(f"{where} must be positive, got {value}")


def check_matrix(matrix: Array, argument: str) -> None:
    """Refuse a matrix that is not square, finite, symmetric and positive definite."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{argument} must be a square matrix, got shape {matrix.shape}")
    bad = np.argwhere(~np.isfinite(matrix))
    if bad.size:
        i, j = bad[0]
        raise ValueError(
            f"{argument}[{i}, {j}] is {matrix[i, j]}: a covariance must be finite "
            "(a flat prior is refused)"
        )
    gap = np.abs(matrix - matrix.T)
    if gap.max() > 1e-10 * np.abs(matrix).max():
        i, j = np.unravel_index(int(gap.argmax()), gap.shape)
        raise ValueError(
            f"{argument} must be symmetric: [{i}, {j}] is {matrix[i, j]} "
            f"but [{j}, {i}] is {matrix[j, i]}"
        )
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        smallest = float(np.linalg.eigvalsh(matrix)[0])
        raise ValueError(
            f"{argument} must be positive definite, its smallest eigenvalue is {smallest:.3g}"
        ) from None
