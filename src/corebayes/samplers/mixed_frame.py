"""Coordinates in which a mixed model's posterior is nearly a standard normal, for NUTS.

The Gaussian fit of π_w (`corebayes.arrow`) gives affine coordinates z that cost p + q numbers a
group. A term whose groups have few rows is better in the non-centred form, c = b/τ, since there
its prior does not narrow with τ: around the fit c moves by (δb − b̄ δv)/τ̂ with v = log τ, so the
same affine coordinates serve. A term is non-centred where its effects are known little better than
by their prior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from corebayes.arrow.fit import Fitting, fit
from corebayes.arrow.gaussian import ArrowGaussian
from corebayes.arrow.layout import Layout
from corebayes.arrow.start import fitting_of, sums_in_parts
from corebayes.models.mixed import MixedRegression
from corebayes.models.mixed_prior import ScaledEffects
from corebayes.models.structure import is_structured
from corebayes.models.touching import is_touching
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Rng

# The variance of an effect in units of its prior's, from which the non-centred form is better.
LITTLE_KNOWN = 0.5
# Newton's step, squared, for each parameter, at which the fit will do as a frame.
SETTLED = 1e-2
# Chains start this many times too far out in what all rows share; in thousands of effects together
# that would be nowhere.
DISPERSION = 2.0


@dataclass(frozen=True, eq=False)
class MixedFrame:
    """θ of z: affine in (φ, c or b), then b = τ c for the terms that are not centred."""

    layout: Layout
    affine: ArrowGaussian
    """Of the coordinates that z makes."""
    loose: tuple[ScaledEffects, ...]
    """The scales whose effects are not centred."""

    @classmethod
    def around(cls, gaussian: ArrowGaussian, scales: tuple[ScaledEffects, ...]) -> MixedFrame:
        loose = tuple(scaled for scaled in scales if _is_little_known(gaussian, scaled))
        affine = gaussian
        for scaled in loose:
            affine = _non_centred(affine, scaled)
        return cls(gaussian.layout, affine, loose)

    @property
    def dim(self) -> int:
        return self.layout.dim

    @property
    def mean(self) -> Array:
        """θ where z is zero."""
        return self.theta(np.zeros(self.dim))

    def start(self, rng: Rng) -> Array:
        z = rng.standard_normal(self.dim)
        z[: self.layout.num_wide] *= DISPERSION
        return z

    def theta(self, z: Array) -> Array:
        """θ of every z (…, d)."""
        flat = z.reshape(-1, self.dim)
        theta = self._affine(flat)
        for _, place, effects in self.loose:
            with np.errstate(over="ignore"):
                theta[:, effects] *= np.exp(theta[:, place])[:, None]
        return theta.reshape(z.shape)

    def _affine(self, z: Array) -> Array:
        q, layout = self.affine, self.layout
        shift = z[:, : layout.num_wide] @ q.factor.T
        noise = z[:, layout.num_wide :].reshape(len(z), *q.own_mean.shape)
        if q.own_mean.shape[1] == 1:
            own = noise * self._inverse_root[:, :, 0]
        else:
            own = np.einsum("gij,sgj->sgi", self._inverse_root, noise)
        own = own - np.tensordot(shift, q.slopes, axes=(1, 2))
        theta = np.empty((len(z), self.dim))
        theta[:, layout.wide_positions] = q.wide_mean + shift
        theta[:, layout.own_positions] = q.own_mean + own
        return theta

    @cached_property
    def _inverse_root(self) -> Array:
        """R⁻ᵀ, (G, q, q)."""
        return np.ascontiguousarray(self.affine.inverse_root.transpose(0, 2, 1))

    def pulled_back(self, theta: Array, gradient: Array) -> Array:
        """∇ in z from ∇ in θ, with the Jacobian of the terms that are not centred."""
        gradient = gradient.copy()
        for _, place, effects in self.loose:
            # b = e^v c, and log |db/dc| = v for every effect
            gradient[place] += gradient[effects] @ theta[effects] + effects.size
            gradient[effects] *= np.exp(theta[place])
        own = gradient[self.layout.own_positions]
        wide = gradient[self.layout.wide_positions]
        wide = wide - np.tensordot(own, self.affine.slopes, axes=([0, 1], [0, 1]))
        pulled = np.einsum("gji,gj->gi", self._inverse_root, own)
        return np.concatenate([self.affine.factor.T @ wide, pulled.ravel()])

    def log_jacobian(self, theta: Array) -> float:
        """log |dθ/dz| up to a constant."""
        return float(sum(theta[place] * effects.size for _, place, effects in self.loose))


def frame_of(posterior: Posterior, start: Array | None = None) -> MixedFrame:
    """The frame at the Gaussian fit of π_w. Cost: some ten sums over the M rows."""
    fitted = fit_of(posterior, start)
    model = posterior.model
    assert isinstance(model, MixedRegression)
    return MixedFrame.around(fitted, model.prior.scales)


def fit_of(posterior: Posterior, start: Array | None = None) -> ArrowGaussian:
    """The Gaussian closest to π_w."""
    model = posterior.model
    assert is_structured(model)
    fitting: Fitting = fitting_of(model)
    at = np.zeros(model.dim) if start is None else start
    if is_touching(model):
        at = model.rescaling.coordinates(at)
    return fit(
        fitting,
        fitting.start(at),
        lambda q: sums_in_parts(model, fitting.layout, q, posterior.rows, posterior.weights),
        tolerance=SETTLED,
    ).gaussian


def _is_little_known(gaussian: ArrowGaussian, scaled: ScaledEffects) -> bool:
    variances = np.empty(gaussian.layout.dim)
    variances[gaussian.layout.wide_positions] = gaussian.wide_variances
    variances[gaussian.layout.own_positions] = gaussian.own_variances
    prior = np.exp(2.0 * gaussian.mean[scaled.place])
    return bool(np.median(variances[scaled.effects]) > LITTLE_KNOWN * prior)


def _non_centred(affine: ArrowGaussian, scaled: ScaledEffects) -> ArrowGaussian:
    """The affine coordinates with c = b/τ in the place of these effects."""
    layout, mean = affine.layout, affine.mean
    tau = float(np.exp(mean[scaled.place]))
    of_scale = int(np.flatnonzero(layout.wide_positions == scaled.place)[0])
    places = {position: place for place, position in enumerate(layout.wide_positions.tolist())}
    if int(scaled.effects[0]) in places:
        rows = np.array([places[position] for position in scaled.effects.tolist()])
        factor, wide_mean = affine.factor.copy(), affine.wide_mean.copy()
        # δc = (δb − b̄ δv)/τ̂
        factor[rows] = (factor[rows] - np.outer(wide_mean[rows], factor[of_scale])) / tau
        wide_mean[rows] /= tau
        # What leans on the wide parameters leans on the new ones: b̄ + τ̂ δc + b̄ δv = b
        slopes = affine.slopes.copy()
        slopes[:, :, of_scale] += slopes[:, :, rows] @ affine.wide_mean[rows]
        slopes[:, :, rows] *= tau
        return replace(affine, factor=factor, wide_mean=wide_mean, slopes=slopes)
    groups, effects = np.nonzero(np.isin(layout.own_positions, scaled.effects))
    own_mean, slopes = affine.own_mean.copy(), affine.slopes.copy()
    slopes[groups, effects, of_scale] += own_mean[groups, effects]
    slopes[groups, effects] /= tau
    own_mean[groups, effects] /= tau
    # c = … + τ̂⁻¹ R⁻ᵀ ζ
    root = affine.root.copy()
    root[groups, effects] *= tau
    return replace(affine, own_mean=own_mean, slopes=slopes, root=root)
