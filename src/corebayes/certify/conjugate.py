"""KL between a coreset posterior and the full one where both are Gaussian: exact, from one pass."""

from __future__ import annotations

from typing import NamedTuple

from corebayes.coreset import Coreset
from corebayes.models.conjugate import ConjugateModel
from corebayes.problem import Problem
from corebayes.rows import Rows
from corebayes.tangent.gaussian import gaussian_kl


class ExactKL(NamedTuple):
    reverse: float
    """KL(π_w ‖ π)."""
    forward: float
    """KL(π ‖ π_w)."""


def exact_kl(model: ConjugateModel, coreset: Coreset, rows: Rows) -> ExactKL:
    """KL both ways from sufficient statistics. Cost: one pass of N·d² flops at most, and d³."""
    ours = model.posterior(model.statistics(coreset.rows, coreset.weights))
    full = Problem(model, rows).full_posterior
    return ExactKL(gaussian_kl(ours, full), gaussian_kl(full, ours))
