"""Rows of a logistic regression that is not symmetric, in pieces."""

from __future__ import annotations

import numpy as np

import corebayes as cb

THETA = np.array([1.0, -0.5, 0.3])
MODEL = cb.LogisticRegression(prior=cb.Normal())


def piece(seed, num_rows=6000, shift=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(num_rows, THETA.size)) + np.array([shift, 0.0, 0.2])
    y = rng.random(num_rows) < 1.0 / (1.0 + np.exp(-X @ THETA))
    return X, y.astype(float)


def kl(coreset, data):
    """KL of the Laplace fits, which are near enough to Gaussian here."""
    return cb.diagnostics.laplace_kl(coreset, data)
