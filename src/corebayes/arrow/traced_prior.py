"""Any prior in JAX in the parts of an arrow; see `prior` for what a fit asks of it.

Groups are independent given the wide parameters, so the Hessian's blocks come from few products
with probes: one for every wide parameter, and one for each effect, of all groups at once. Averages
over the Gaussian are over its cubature, which is exact for priors that are cubic in everything but
the scales: all that are normal there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from corebayes.arrow.gaussian import ArrowGaussian
from corebayes.arrow.layout import Layout
from corebayes.arrow.prior import NO_CUBES
from corebayes.arrow.sums import ArrowSums
from corebayes.models.custom.touching import LocalModel
from corebayes.types import Array, Indices

# The least curvature that a scale has in the fit.
LEAST_BEND = 1e-3
# How far a scale is moved to see what it bends, and by how much at least; how far it is raised.
RAISED, LEAST_RATE, MOST_RAISED = 0.1, 0.1, 10.0


@dataclass(frozen=True, eq=False)
class TracedPrior:
    """log π_0 around a Gaussian, and its scales. Cost: p + q gradients of the prior."""

    model: LocalModel
    layout: Layout

    @property
    def _scales(self) -> Indices:
        return self.layout.structure.scales

    @cached_property
    def _probes(self) -> Array:
        """(p + q, d): the wide parameters that are no scales, then the effects."""
        layout = self.layout
        touched, effects = layout.num_touched, layout.own_positions.T
        probes = np.zeros((touched + len(effects), layout.dim))
        probes[np.arange(touched), layout.wide_positions[:touched]] = 1.0
        for probe, places in zip(probes[touched:], effects, strict=True):
            probe[places] = 1.0
        return probes

    def sums(
        self,
        theta: Array,
        *,
        spread: ArrowGaussian | None = None,
        coupled: ArrowGaussian | None = None,
    ) -> ArrowSums:
        """Gradient and Hessian of log π_0 at θ, the scales held fixed.

        With `coupled`, a Gaussian at θ, also the scales' own entries, expected under it.
        """
        layout = self.layout
        p, touched, own = layout.num_wide, layout.num_touched, layout.own_positions
        slope, bends = self.model.prior_products(theta[None], self._probes)
        wide_wide = np.zeros((p, p))
        own_wide = np.zeros((*own.shape, p))
        wide_wide[:, :touched] = bends[:touched, layout.wide_positions].T
        own_wide[:, :, :touched] = bends[:touched, own].transpose(1, 2, 0)
        own_own = bends[touched:, own].transpose(1, 2, 0)
        wide, places = slope[layout.wide_positions], np.arange(touched, p)
        # A scale that is held fixed has no share in the fit.
        wide[touched:] = 0.0
        wide_wide[touched:] = 0.0
        wide_wide[places, places] = -1.0
        if coupled is not None and places.size:
            self._couple(wide_wide, own_wide, theta, coupled)
        return ArrowSums(0.0, wide, wide_wide, slope[own], own_own, own_wide, NO_CUBES)

    def _couple(
        self, wide_wide: Array, own_wide: Array, theta: Array, coupled: ArrowGaussian
    ) -> None:
        touched, scales = self.layout.num_touched, self._scales
        probes = np.zeros((scales.size, self.layout.dim))
        probes[np.arange(scales.size), scales] = 1.0
        _, bends = self.model.prior_products(self._places(coupled, theta[scales]), probes)
        wide_wide[touched:] = bends[:, self.layout.wide_positions]
        wide_wide[:, touched:] = wide_wide[touched:].T
        corner = wide_wide[touched:, touched:]
        # The average over places need not bend down in all directions.
        values, vectors = np.linalg.eigh(corner)
        corner[...] = (vectors * np.minimum(values, -LEAST_BEND)) @ vectors.T
        own_wide[:, :, touched:] = bends[:, self.layout.own_positions].transpose(1, 2, 0)

    def _places(self, gaussian: ArrowGaussian, scales: Array) -> Array:
        places = gaussian.cubature.copy()
        places[:, self._scales] = scales
        return places

    def expected_log_density(self, gaussian: ArrowGaussian) -> float:
        """E log π_0 with the scales where they are."""
        return self.model.prior_mean(self._places(gaussian, gaussian.mean[self._scales]))

    def lifted(self, theta: Array, sums: ArrowSums) -> Array:
        """θ with scales raised until the prior of their effects bends no more than what rows say
        of these; the effects of a scale are those whose prior it bends."""
        theta, known = theta.copy(), _diagonals(sums.padded(self.layout.num_wide))
        for scale in self._scales:
            here, moved = _diagonals(self.sums(theta)), theta.copy()
            moved[scale] += RAISED
            with np.errstate(all="ignore"):
                # τ^−2 for a scale τ = e^v
                rate = np.log(here / _diagonals(self.sums(moved))) / RAISED
                lacking = np.log(here / known) / rate
            lacking = lacking[np.isfinite(lacking) & (rate > LEAST_RATE)]
            if lacking.size:
                theta[scale] += np.clip(np.median(lacking), 0.0, MOST_RAISED)
        return theta

    def best_scales(self, gaussian: ArrowGaussian) -> Array:
        """The scales that go with this Gaussian of the effects; one step of EM."""
        scales = gaussian.mean[self._scales]
        places = self._places(gaussian, scales)
        jet = self.model.prior_of_scales(places, scales)
        for _ in range(50):
            values, vectors = np.linalg.eigh(-jet.bend)
            # Uphill, whatever the curvature.
            step = vectors @ ((vectors.T @ jet.slope) / np.maximum(np.abs(values), LEAST_BEND))
            step *= min(1.0, 1.0 / max(float(np.max(np.abs(step))), 1e-300))
            while np.max(np.abs(step)) > 1e-12:
                trial = self.model.prior_of_scales(places, scales + step)
                if trial.value >= jet.value - 1e-9 * abs(jet.value):
                    break
                step *= 0.5
            else:
                break
            scales, jet = scales + step, trial
            if np.max(np.abs(step)) < 1e-6:
                break
        return scales


def _diagonals(sums: ArrowSums) -> Array:
    """The diagonal of −H: wide parameters, then effects."""
    own = np.diagonal(sums.own_own, axis1=1, axis2=2)
    return -np.concatenate([np.diagonal(sums.wide_wide), own.ravel()])
