"""What a certificate of a mixed model would say, without a chain.

A choice is judged where the posterior of all rows lies, and few rows may have modes of their own
beside it (a row of a t is a mode of its group's effect if it weighs enough). The Gaussian that is
closest to π_w, found without knowledge of π, is where a chain would go.
"""

from __future__ import annotations

import numpy as np

from corebayes.coreset import Coreset
from corebayes.models.custom.touching import is_touching
from corebayes.rows import Rows
from corebayes.samplers.mixed.frame import fit_of
from corebayes.samplers.posterior import Posterior
from corebayes.scan.heights import Heights
from corebayes.types import Estimate, Rng

# Draws of the fit: half of their variance to within a sixth.
JUDGES = 64


def foreseen_kl(rng: Rng, coreset: Coreset, rows: Rows) -> Estimate:
    """½ Var log π/π_w at draws of the Gaussian closest to π_w: KL(π_w ‖ π) to second order.

    Cost: the fit of M rows, and N potentials at each of 64 draws.
    """
    model = coreset.model
    try:
        gaussian = fit_of(Posterior.of(coreset))
    except FloatingPointError:
        # There is none.
        return Estimate(np.inf, 0.0)
    draws = gaussian.draw(rng, JUDGES)
    draws = model.rescaling.theta(draws) if is_touching(model) else draws
    with np.errstate(all="ignore"):
        ratios = rows.ask(Heights(model, draws))
        ratios = ratios - model.sum_potentials(draws, coreset.rows, coreset.weights)
    if not np.all(np.isfinite(ratios)):
        return Estimate(np.inf, 0.0)
    squares = np.square(ratios - ratios.mean())
    return Estimate(0.5 * float(squares.mean()), 0.5 * float(squares.std()) / np.sqrt(JUDGES))
