"""Two numbers of a Gaussian π_w: its KL from another Gaussian, and its free energy."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from corebayes.models.priors.normal import GaussianPrior
from corebayes.types import Array, Gaussian, Total


def gaussian_kl(p: Gaussian, q: Gaussian) -> float:
    """KL(p ‖ q) = ½ [‖L_q⁻¹ L_p‖² − d − 2 Σ log diag(L_q⁻¹ L_p) + ‖L_q⁻¹(μ_p − μ_q)‖²].

    Written in the difference E = L_q⁻¹(L_p − L_q), so that nothing cancels: exactly zero for equal
    arguments and to full relative precision for close ones. Cost: d³ flops.
    """
    root_p, root_q = _lower(p.factor), _lower(q.factor)
    difference: Array = solve_triangular(root_q, root_p - root_q, lower=True)
    shift: Array = solve_triangular(root_q, p.mean - q.mean, lower=True)
    diagonal = np.diag(difference)
    if not np.all(diagonal > -1.0):
        # p has no width in some direction, to working precision.
        return np.inf
    # Σ_i (1 + e_i)² − 1 − 2 log(1 + e_i) = Σ_i e_i² + 2 (e_i − log(1 + e_i))
    squares = np.sum(np.square(difference)) + np.sum(np.square(shift))
    return float(0.5 * squares + np.sum(_minus_log1p(diagonal)))


def gaussian_free_energy(prior: GaussianPrior, posterior: Gaussian, total: Total) -> float:
    """−Σ_n c_n E f_n − E log π_0 − entropy for a Gaussian π_w, up to a constant free of w."""
    away = posterior.mean - prior.mean
    spread = np.einsum("ij,ij->", prior.precision @ posterior.factor, posterior.factor)
    log_prior = -0.5 * (away @ prior.precision @ away + spread)
    entropy = np.linalg.slogdet(posterior.factor)[1]
    return float(-total.mean - log_prior - entropy)


def _lower(factor: Array) -> Array:
    """The lower triangular L with positive diagonal and L Lᵀ = factor factorᵀ."""
    if np.all(np.triu(factor, 1) == 0.0) and np.all(np.diag(factor) > 0.0):
        return factor
    # factorᵀ = Q R  ⇒  factor factorᵀ = Rᵀ R
    root = np.linalg.qr(factor.T).R.T
    return root * np.where(np.diag(root) < 0.0, -1.0, 1.0)


def _minus_log1p(x: Array) -> Array:
    """x − log(1 + x) without cancellation for small x."""
    small = np.abs(x) < 0.1
    near, far = np.where(small, x, 0.0), np.where(small, 0.0, x)
    # log(1 + x) = 2 artanh(y), y = x/(2 + x); x − 2y = x²/(2 + x)
    y = near / (2.0 + near)
    series = sum((y**k / k for k in range(3, 17, 2)), start=np.zeros_like(y))
    return near * y - 2.0 * series + (far - np.log1p(far))
