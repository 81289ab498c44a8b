"""A subsample of all rows in which no row is missing that could make a mode by itself.

Rows at random stand for all that are alike. With them go rows that say much of some place far from
the mass (`scan/telling.py`), and every row has the weight c_n / p_n, p_n the probability that one
or the other way of choosing takes it: sums over rows are estimated without bias at any θ, and at
those places and around them with little noise, whether they come from all rows or from one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from corebayes.rows import Rows
from corebayes.samplers.laplace import prior_fit
from corebayes.samplers.parts import Part
from corebayes.samplers.posterior import Posterior
from corebayes.scan.telling import TellingRows, gains
from corebayes.types import Array, Block, Indices, Model, Rng

# Places as wide apart as the prior and a half and along the way from there; rows of each.
NUM_WIDE, NUM_WARM, ROWS_EACH = 80, 20, 64
DEGREES, WIDENING = 5.0, 1.5


@dataclass(frozen=True, eq=False)
class Tellers:
    """Rows that say much of some place, and how likely any row is to be among them."""

    model: Model
    places: Array
    thresholds: Array
    numbers: Indices

    def probabilities(self, block: Block) -> Array:
        """max_s min(1, g_ns / τ_s)."""
        found = gains(self.model, self.places, block)
        return np.max(np.minimum(found, self.thresholds) / self.thresholds, axis=1)

    def subsample(self, rng: Rng, rows: Rows, number: int) -> Posterior:
        """These and so many rows at random, weighted so that they stand for all."""
        chosen = np.union1d(self.numbers, rows.some(rng, number))
        block = rows.take(chosen)
        counts, alike = block.multiplicity(), number / rows.num_rows
        odds = 1.0 - (1.0 - alike) * (1.0 - self.probabilities(block))
        weights = counts / odds
        # Those that stand for others stand for all that are not there for certain.
        sure = odds >= 1.0 - 1e-12
        left = rows.total_count - float(counts[sure].sum())
        weights[~sure] *= max(left, 0.0) / max(float(weights[~sure].sum()), 1e-300)
        return Posterior(self.model, block, weights)


def find_tellers(
    rng: Rng, model: Model, rows: Rows, anchor: Array, warm: list[Array] | None = None
) -> Tellers:
    """What rows say at wide places and `warm` ones, compared with the anchor. Cost: one pass of
    some 100 potentials a row."""
    prior = prior_fit(model, rows.template)
    wide = Part(prior._replace(factor=WIDENING * prior.factor), DEGREES)
    places = [anchor[None], wide.draw(rng, NUM_WIDE)]
    if warm:
        path = np.concatenate(warm)
        places.append(path[rng.choice(len(path), size=min(NUM_WARM, len(path)), replace=False)])
    seed = int(rng.integers(2**62))
    query = TellingRows(model, np.concatenate(places), ROWS_EACH, seed)
    keys, numbers = rows.ask(query)
    thresholds = keys[-1] if len(keys) > ROWS_EACH else np.zeros(keys.shape[1])
    taken = numbers[:ROWS_EACH][keys[:ROWS_EACH] > 0.0]
    return Tellers(model, query.places, np.maximum(thresholds, 1e-300), np.unique(taken))
