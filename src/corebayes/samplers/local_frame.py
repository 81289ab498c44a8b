"""Coordinates for NUTS around the Gaussian fit of a model whose rows touch few parameters.

The fit (`corebayes.arrow`) lies where the mass is, whereas the mode that Newton's method finds may
be the spike at scale zero.
"""

from __future__ import annotations

import numpy as np

from corebayes.deadline import check_time
from corebayes.models.touching import LocalModel
from corebayes.samplers.density import Frame
from corebayes.samplers.mixed_frame import fit_of
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Rng

# Up to so many parameters a gradient may cost d² flops more.
MOST_DENSE = 500


def local_frame(posterior: Posterior, model: LocalModel, start: Array | None) -> Frame:
    """θ = θ̂ + L z around the fit, L diagonal for very many parameters."""
    gaussian = fit_of(posterior, start)
    mean = gaussian.mean
    factor = model.own_factor(mean, gaussian.dense_factor)
    if posterior.dim > MOST_DENSE:
        factor = np.sqrt(np.einsum("ij,ij->i", factor, factor))
    return Frame(model.own_theta(mean), factor)


def local_start(rng: Rng, posterior: Posterior, frame: Frame) -> Array:
    """A draw of the fit; nearer where the density is not finite.

    Not wider: in hundreds of effects together that would be nowhere.
    """
    z = rng.standard_normal(posterior.dim)
    for _ in range(60):
        check_time()
        value, gradient = posterior.value_and_gradient(frame.theta(z))
        if np.isfinite(value) and np.all(np.isfinite(gradient)):
            return z
        z = 0.5 * z
    raise ValueError(
        "the log density of the coreset posterior is not finite near its Gaussian fit; check the "
        f"model's log likelihood and log prior at θ = {frame.mean}"
    )
