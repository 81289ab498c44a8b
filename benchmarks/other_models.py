"""The part of `benchmarks.annealed` on models that are no plain GLM, two of them one's own."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import corebayes as cb

Check = tuple[str, bool]
"""What was asked for, with what was measured, and whether it holds."""


def student_likelihood(draws: Any, block: Any) -> Any:
    """Log density of a regression with t errors of four degrees of freedom, up to a constant."""
    return -2.5 * np.log1p(np.square(block.y[:, None] - block.X @ draws.T) / 4.0)


def student_in_jax(draws: Any, block: Any) -> Any:
    import jax.numpy as jnp

    return -2.5 * jnp.log1p(jnp.square(block.y[:, None] - block.X @ draws.T) / 4.0)


def normal_prior(draws: Any) -> Any:
    return -0.5 * (draws**2).sum(axis=1)


def families() -> list[Check]:
    import jax  # The custom model finds JAX only where it is in use.

    rng, num_rows, dim = np.random.default_rng(3), 20_000, 6
    X, theta = rng.normal(size=(num_rows, dim)), np.linspace(-1.0, 1.0, dim)
    counts = rng.poisson(np.exp(0.5 * X @ theta) * rng.gamma(2.0, 0.5, size=num_rows)) * 1.0
    errors = rng.standard_t(4, size=num_rows)
    cases: dict[str, tuple[Any, Any]] = {
        "Student-t": (
            cb.StudentTRegression(df=4.0, scale=0.5, prior=cb.Normal()),
            X @ theta + 0.5 * errors,
        ),
        "negative binomial": (
            cb.NegativeBinomialRegression(dispersion=0.5, prior=cb.Normal()),
            counts,
        ),
        "custom, NumPy": (
            cb.CustomModel(student_likelihood, normal_prior, dim),
            X @ theta + errors,
        ),
        f"custom, JAX {jax.__version__}": (
            cb.CustomModel(student_in_jax, normal_prior, dim),
            X @ theta + errors,
        ),
    }
    print("\nOther models, N = 20,000, d = 6, 28 rows")
    checks: list[Check] = []
    for name, (model, y) in cases.items():
        began = time.process_time()
        coreset = cb.build(model, (X, y), size=28, progress=False)
        seconds = time.process_time() - began
        certificate = cb.certify(coreset, (X, y), tol=0.05)
        print(f"{name:20} {seconds:5.1f} CPU s  {certificate.verdict}")
        checks.append((f"{name}: certified KL at most 0.05", certificate.certified))
    return checks
