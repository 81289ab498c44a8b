"""The check of every exporter: the model that was handed over has the coreset's log density."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from corebayes.coreset import Coreset
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array

NUM_POINTS = 5
# Of a sum: gamma functions of other libraries agree with ours to eight digits or so.
TOLERANCE = 1e-7


def log_density(coreset: Coreset, theta: Array) -> float:
    """log π_0(θ) + Σ_i w_i log p(x_i | θ)."""
    posterior = Posterior.of(coreset)
    return posterior.value(theta) + posterior.log_base


def check_density(coreset: Coreset, exported: Callable[[Array], float], library: str) -> None:
    """Raise unless both log densities differ by one constant at random points.

    A constant changes no posterior, and libraries leave out different ones.
    """
    rng = np.random.default_rng(20190102)
    points = rng.uniform(-1.0, 1.0, size=(NUM_POINTS, coreset.model.dim))
    ours = np.array([log_density(coreset, theta) for theta in points])
    theirs = np.array([exported(theta) for theta in points])
    differences = theirs - ours
    # Sums of large terms are only known to their own round-off.
    allowed = TOLERANCE * max(1.0, float(np.abs(ours).max()))
    spread = float(np.ptp(differences))
    if not spread <= allowed:
        raise RuntimeError(
            f"the {library} model does not have the coreset's log density: at {NUM_POINTS} random "
            f"points their difference varies by {spread:.3g}, which may be {allowed:.1g} at most. "
            "It was not handed over; please report this with the model"
        )
