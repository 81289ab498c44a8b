"""Exact draws of a linear regression: σ from its marginal posterior on a grid, then β given σ.

    p(σ | y) ∝ p(σ) σ^{−N} |Λ_σ|^{−½} exp(½ b_σᵀ Λ_σ⁻¹ b_σ − yᵀy / 2σ²),
    β | σ, y ~ N(Λ_σ⁻¹ b_σ, Λ_σ⁻¹),    Λ_σ = XᵀX / σ² + diag(s⁻²),    b_σ = Xᵀy / σ²

A reference that no sampler made, where posteriordb has no draws. Cost: a few hundred d³.
"""

from __future__ import annotations

import numpy as np
from benchmarks.posteriordb.regression import Regression

GRID, CHAINS, DRAWS = 2000, 10, 1000


def exact_draws(model: Regression, seed: int) -> dict[str, np.ndarray]:
    """{parameter: (chains, draws)}, independent; σ has the prior of the model, flat as flat."""
    if model.sigma is None or model.terms:
        raise ValueError("only linear regressions without groups have exact draws")
    X, y, sigma = model.X, model.y, model.sigma
    scale = np.linalg.norm(X, axis=0)
    Z = X / scale
    gram, cross, square = Z.T @ Z, Z.T @ y, float(y @ y)
    sd = np.inf if model.beta_sd is None else np.asarray(model.beta_sd)
    prior = np.diag(np.broadcast_to(1.0 / (sd * scale) ** 2, scale.shape))
    rest = np.sqrt(np.linalg.lstsq(Z, y)[1][0] / max(1, len(y) - len(scale)))
    # ± 12 standard errors of log σ
    half = min(3.0, 12.0 / np.sqrt(2.0 * max(2, len(y) - len(scale))))
    grid = rest * np.exp(np.linspace(-half, half, GRID))
    heights = np.empty(GRID)
    for k, s in enumerate(grid):
        lower = np.linalg.cholesky(gram / s**2 + prior)
        white = np.linalg.solve(lower, cross / s**2)
        heights[k] = 0.5 * (white @ white - square / s**2) - len(y) * np.log(s)
        # The grid is even in log σ.
        heights[k] += np.log(s) - np.log(np.diag(lower)).sum() + sigma.log_density(s)
    rng = np.random.default_rng(seed)
    shares = np.exp(heights - heights.max())
    # Linear between the points of the grid.
    bounds = np.concatenate([[0.0], np.cumsum(shares)])
    drawn = np.interp(rng.random(CHAINS * DRAWS) * bounds[-1], bounds[1:], np.log(grid))
    noise = rng.standard_normal((CHAINS * DRAWS, len(scale)))
    beta = np.empty_like(noise)
    for k, s in enumerate(np.exp(drawn)):
        precision = gram / s**2 + prior
        lower = np.linalg.cholesky(precision)
        mean = np.linalg.solve(precision, cross / s**2)
        beta[k] = (mean + np.linalg.solve(lower.T, noise[k])) / scale
    found = dict(zip(model.names, beta.T, strict=True))
    found[model.sigma_name] = np.exp(drawn)
    return {name: values.reshape(CHAINS, DRAWS) for name, values in found.items()}
