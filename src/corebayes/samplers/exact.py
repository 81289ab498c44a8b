"""Exact draws of π_w for conjugate models, whose coreset posteriors are Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TypeGuard

from numpy.random import Generator

from corebayes.models.conjugate import Conjugate, ConjugateModel
from corebayes.samplers.draws import Draws
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Gaussian, Model


def is_conjugate(model: Model) -> TypeGuard[ConjugateModel]:
    """Whether π_w is Gaussian for all weights, with additive sufficient statistics."""
    return _is_conjugate_type(type(model))


@cache
def _is_conjugate_type(kind: type) -> bool:
    # Asked before every draw, and a protocol check takes as long as drawing does.
    return issubclass(kind, Conjugate)


@dataclass(frozen=True, kw_only=True)
class Exact:
    """Draws of π_w = N(μ_w, Σ_w). Cost: M·d² + d³."""

    def fit(self, posterior: Posterior, start: Array | None = None) -> Gaussian:
        model = posterior.model
        if not is_conjugate(model):
            raise TypeError(
                f"{type(model).__name__} is not conjugate, so π_w has no closed form; "
                "use the Laplace or NUTS sampler"
            )
        return model.posterior(model.statistics(posterior.rows, posterior.weights))

    def draw(
        self, rng: Generator, posterior: Posterior, num_draws: int, start: Array | None = None
    ) -> Draws:
        fit = self.fit(posterior)
        values = fit.draw(rng, num_draws)[None]
        return Draws(values=values, location=fit.mean, independent=True, how="exact draws")
