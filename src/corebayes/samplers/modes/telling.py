"""A subsample of all rows in which no row is missing that could make a mode by itself.

Rows at random stand for all that are alike. With them go rows that say much of some place far from
the mass, or are unlike the others (`scan/telling.py`), and every row has the weight c_n / p_n, p_n
the probability that one or the other way of choosing takes it: sums over rows are estimated without
bias at any θ, and at those places and around them with little noise, whether they come from all
rows or from one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from corebayes.rows import Rows
from corebayes.samplers.laplace import prior_fit
from corebayes.samplers.parts import Part
from corebayes.samplers.posterior import Posterior
from corebayes.scan.telling import TellingRows
from corebayes.scan.unlike import Likeness
from corebayes.types import Array, Block, Indices, Model, Rng

# Potentials that may be spent, places at least and at most, and rows of all places.
MOST_POTENTIALS, LEAST_PLACES, MOST_PLACES, NUM_ROWS = 20_000_000, 120, 400, 6400
# The share of the places on the way from the prior to the mass; the others are as wide apart as
# the prior and a half.
WARM_SHARE = 0.5
DEGREES, WIDENING = 5.0, 1.5
# Rows at random that others are compared with.
NUM_ALIKE = 256


@dataclass(frozen=True, eq=False)
class Tellers:
    """Rows that say much of some place, and how likely any row is to be among them."""

    query: TellingRows
    thresholds: Array
    numbers: Indices
    heights: Array
    """How high all rows together make each place, above the first."""

    def probabilities(self, block: Block) -> Array:
        """max_s min(1, g_ns / τ_s)."""
        found = self.query.gains(block)
        return np.max(np.minimum(found, self.thresholds) / self.thresholds, axis=1)

    def high(self, depth: float) -> Array:
        """The places where the posterior of all rows is within `depth` of the highest that is
        known, the highest first. A subsample may be off by more than all of its height there."""
        places = self.query.places
        logs = np.append(0.0, self.heights) + self.query.model.log_prior(places)
        logs = np.where(np.isfinite(logs), logs, -np.inf)
        order = np.argsort(-logs)
        return places[order][logs[order] > logs.max() - depth]

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
        return Posterior(self.query.model, block, weights)


def find_tellers(
    rng: Rng, model: Model, rows: Rows, anchor: Array, warm: Array | None = None
) -> Tellers:
    """What rows say at wide places and at some of the `warm` ones, compared with the anchor.

    Cost: one pass of 120 to 400 potentials a row.
    """
    prior = prior_fit(model, rows.template)
    wide = Part(prior._replace(factor=WIDENING * prior.factor), DEGREES)
    number = int(np.clip(MOST_POTENTIALS // rows.num_rows, LEAST_PLACES, MOST_PLACES))
    num_warm = 0 if warm is None else min(int(WARM_SHARE * number), len(warm))
    places = [anchor[None], wide.draw(rng, number - num_warm)]
    if warm is not None:
        places.append(warm[rng.choice(len(warm), size=num_warm, replace=False)])
    likeness = Likeness.of(rows.take(rows.some(rng, min(NUM_ALIKE, rows.num_rows))))
    each, seed = NUM_ROWS // number, int(rng.integers(2**62))
    query = TellingRows(model, np.concatenate(places), each, seed, likeness)
    keys, numbers, heights = rows.ask(query)
    thresholds = keys[-1] if len(keys) > each else np.zeros(keys.shape[1])
    taken = numbers[:each][keys[:each] > 0.0]
    return Tellers(query, np.maximum(thresholds, 1e-300), np.unique(taken), heights)
