"""The mean of y and draws of y in new rows of a regression, from draws of its parameters.

    E[y_n | θ_s] and y_n ~ p(· | θ_s),    η_ns = x_nᵀβ_s + Σ_t z_{n,t}ᵀ b_{t,g(n),s}

A group that the model has not seen has the effects b ~ N(0, τ_s²) of the population that the groups
are of: one draw for each θ_s, the same for all rows of that group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corebayes.models import GLM, MixedRegression
from corebayes.models.families.categories import CategoryRegression
from corebayes.models.mixed.groups import ONE
from corebayes.types import Array, Block, Rng


@dataclass
class RegressionPredictive:
    """Of a GLM or a mixed regression, at draws θ (S, d)."""

    model: GLM | MixedRegression
    theta: Array
    seed: int
    new_groups: dict[str, set[float]] = field(default_factory=dict[str, set[float]])
    """Groups that the model has not seen, by their column."""

    @property
    def num_draws(self) -> int:
        return len(self.theta)

    def predict(self, rng: Rng, block: Block) -> tuple[Array, Array]:
        """Means and draws of y, each (n, S); of categories the means are the probabilities of their
        labels, (n, S, K). Cost: n·S·d flops and n·S draws."""
        model = self.model
        if isinstance(model, GLM):
            family, row, at = model, model.row(block), model.predictors(self.theta, block)
        else:
            family, row, at = model.family, model.row(block), self._predictors(model, block)
        return family.mean(at, row), family.draw(rng, at, row)

    @property
    def labels(self) -> tuple[float | str, ...]:
        """Of the categories; empty where targets are numbers."""
        family: Any = getattr(self.model, "family", self.model)
        if not isinstance(family, CategoryRegression):
            return ()
        return family.category_names or family.labels

    def _predictors(self, model: MixedRegression, block: Block) -> tuple[Array, ...]:
        etas = model.fixed_predictors(self.theta, block)
        for effects, columns, number in self._effects(block):
            etas[number] += effects * columns[:, None]
        return model.complete(etas, model.learned_at(self.theta))

    def _effects(self, block: Block) -> Iterator[tuple[Array, Array, int]]:
        """Effects (n, S) of each row's groups, what they are multiplied with, (n,), and the linear
        predictor that they are added to."""
        model: Any = self.model
        scales = iter(model.structure.scales.tolist())
        columns = model.effect_columns(block)
        for place, term in enumerate(model.terms):
            codes = block.X[:, model.column_names.index(term.group)]
            values, own = model.known.values[place], model.structure.terms[place]
            positions = np.minimum(np.searchsorted(values, codes), values.size - 1)
            new = np.flatnonzero(values[positions] != codes)
            if new.size:
                self.new_groups.setdefault(term.group, set()).update(codes[new].tolist())
            for effect, (name, number, _, _) in enumerate(model.effects_of(term)):
                result = self.theta[:, own.positions[:, effect]].T[positions]
                tau = np.exp(self.theta[:, next(scales)])
                for code in np.unique(codes[new]):
                    # A function of the group alone, whichever block its rows are in.
                    rng = np.random.default_rng([self.seed, place, effect, *_words(code)])
                    result[codes == code] = tau * rng.standard_normal(self.num_draws)
                own_column = np.ones(len(block)) if name == ONE else columns[place][:, effect]
                yield result, own_column, number


def _words(code: float) -> list[int]:
    """A number as seeds of a generator."""
    return np.frombuffer(np.float64(code).tobytes(), dtype=np.uint32).tolist()
