"""Exact draws of π_w for conjugate models, whose coreset posteriors are Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TypeGuard

import numpy as np

from corebayes.models.conjugate import Conjugate, ConjugateModel
from corebayes.types import Array, Block, Gaussian, Model


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

    def fit(
        self, model: Model, rows: Block, weights: Array, start: Array | None = None
    ) -> Gaussian:
        if not is_conjugate(model):
            raise TypeError(
                f"{type(model).__name__} is not conjugate, so π_w has no closed form; "
                "use the Laplace or NUTS sampler"
            )
        return model.posterior(model.statistics(rows, weights))

    def draw(
        self,
        rng: np.random.Generator,
        model: Model,
        rows: Block,
        weights: Array,
        num_draws: int,
        start: Array | None = None,
    ) -> tuple[Array, Array]:
        posterior = self.fit(model, rows, weights)
        return posterior.draw(rng, num_draws), posterior.mean
