"""Coordinates for NUTS around the Gaussian fit of a model whose rows touch few parameters.

The fit (`corebayes.arrow`) lies where the mass is, whereas the mode that Newton's method finds may
be the spike at scale zero.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from corebayes.arrow.gaussian import ArrowGaussian
from corebayes.deadline import check_time
from corebayes.models.custom.rescaling import Rescaling
from corebayes.models.custom.touching import LocalModel
from corebayes.samplers.density import Frame
from corebayes.samplers.mixed.frame import fit_of
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Indices, Rng

# The variance of an effect in units of its prior's, from which the non-centred form is better.
LITTLE_KNOWN = 0.5
# Up to so many parameters a gradient may cost d² flops more.
MOST_DENSE = 500


class LocalFrame(NamedTuple):
    """θ of z: affine coordinates, of which some effects are then divided by their scales."""

    affine: Frame
    rescaling: Rescaling
    log_density: Any
    """log π_w in the affine coordinates, of (x, rows, weights), in JAX; None by plain functions."""

    @property
    def mean(self) -> Array:
        """θ where z is zero."""
        return self.rescaling.theta(self.affine.mean)

    def theta(self, z: Array) -> Array:
        return self.rescaling.theta(self.affine.theta(z))


def local_frame(posterior: Posterior, model: LocalModel, start: Array | None) -> LocalFrame:
    """The frame at the fit. Effects that are known little better than by their prior stay in the
    non-centred form if the model has them so, others are sampled in the centred one."""
    gaussian = fit_of(posterior, start)
    loose = model.rescaling.only(_little_known(gaussian, model.rescaling))
    mean, factor = gaussian.mean, loose.factor(gaussian.mean, gaussian.dense_factor)
    if posterior.dim > MOST_DENSE:
        factor = np.sqrt(np.einsum("ij,ij->i", factor, factor))
    firm = model.rescaling.only(np.setdiff1d(model.rescaling.scaled, loose.scaled))
    return LocalFrame(Frame(loose.theta(mean), factor), firm, _density(model, tuple(firm.scaled)))


def _little_known(gaussian: ArrowGaussian, rescaling: Rescaling) -> Indices:
    """The effects of all scales whose effects are so for the most part."""
    scaled, scales = rescaling.scaled, rescaling.scales
    factor = gaussian.dense_factor[scaled]
    shares = np.einsum("ij,ij->i", factor, factor) * np.exp(-2.0 * gaussian.mean[scales])
    loose = [s for s in np.unique(scales) if np.median(shares[scales == s]) > LITTLE_KNOWN]
    return scaled[np.isin(scales, loose)]


@lru_cache(maxsize=8)
def _density(model: LocalModel, firm: tuple[int, ...]) -> Any:
    """Kept, since what is compiled of it is found by its identity."""
    rescaling = model.rescaling.only(np.array(firm, dtype=np.int64))
    own: Any = getattr(model, "jax_log_density", None)

    def log_density(x: Any, rows: Any, weights: Any) -> Any:
        return own(rescaling.traced(x), rows, weights) + rescaling.traced_log_volume(x)

    return log_density if firm and own is not None else own


def local_start(rng: Rng, posterior: Posterior, frame: LocalFrame) -> Array:
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
