"""A mixed model's prior in the parts of an arrow, and the scales that go with a Gaussian fit.

Scales are not fitted with the rest: the joint density has a spike at τ = 0, where all effects
vanish together. They maximise the marginal instead, by EM: given a Gaussian of the effects,

    v ← argmax  −½ e^{−2v} Σ_g E b_g² − G v + log p(v)      for every scale τ = e^v.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from corebayes.arrow.gaussian import ArrowGaussian
from corebayes.arrow.layout import Layout
from corebayes.arrow.sums import ArrowSums
from corebayes.models.mixed.prior import MixedPrior, ScaledEffects
from corebayes.models.priors.coefficient import Averages
from corebayes.models.priors.scale import ScalePrior
from corebayes.models.priors.shrinkage import HorseshoeJet, HorseshoePrior
from corebayes.types import Array, Indices

# A Gaussian has no third derivatives; zero adds to any number of them.
NO_CUBES = np.zeros((1, 1, 1, 1))


class PriorParts(Protocol):
    """What a fit asks of a prior."""

    def sums(
        self,
        theta: Array,
        *,
        spread: ArrowGaussian | None = None,
        coupled: ArrowGaussian | None = None,
    ) -> ArrowSums:
        """Gradient and Hessian at θ with the scales held fixed; `coupled` adds their own entries,
        expected under this Gaussian. What is not Gaussian is averaged over `spread` around θ."""
        ...

    def expected_log_density(self, gaussian: ArrowGaussian) -> float: ...

    def lifted(self, theta: Array, sums: ArrowSums) -> Array:
        """θ with no scale smaller than what rows, of these sums, can tell from zero."""
        ...

    def best_scales(self, gaussian: ArrowGaussian) -> Array:
        """A step of EM."""
        ...


@dataclass(frozen=True, eq=False)
class ArrowPrior:
    """log π_0 around a Gaussian, and its scales."""

    prior: MixedPrior
    layout: Layout

    @cached_property
    def _places(self) -> Indices:
        """Where each parameter of θ is: among the wide ones, or behind them the effects."""
        places = np.empty(self.layout.dim, dtype=np.int64)
        places[self.layout.wide_positions] = np.arange(self.layout.num_wide)
        own = self.layout.own_positions
        places[own] = self.layout.num_wide + np.arange(own.size).reshape(own.shape)
        return places

    def sums(
        self,
        theta: Array,
        *,
        spread: ArrowGaussian | None = None,
        coupled: ArrowGaussian | None = None,
    ) -> ArrowSums:
        """Value, gradient and Hessian of log π_0 at θ, the scales held fixed.

        Of coefficients whose prior is not Normal they are averages over the `spread` around θ.
        With `coupled`, a Gaussian at θ, also the scales' own entries, expected under it.
        """
        layout, fixed = self.layout, self.prior.fixed
        p, (num_groups, q) = layout.num_wide, layout.own_positions.shape
        gradient = np.zeros(layout.dim)
        diagonal = np.zeros(layout.dim)
        wide_wide = np.zeros((p, p))
        own_wide = np.zeros((num_groups, q, p))
        wide_wide[: fixed.dim, : fixed.dim] = -fixed.precision
        gradient[: fixed.dim] = fixed.gradient(theta[: fixed.dim])
        for place, average in self._averages(theta, spread):
            gradient[place] += average.first
            wide_wide[place, place] += average.second
        for place, learned in enumerate(self.prior.learned, fixed.dim):
            gradient[place] = learned.gradient(theta[place])
            wide_wide[place, place] = learned.hessian(theta[place])
        for scaled in self.prior.scales:
            precision = np.exp(-2.0 * theta[scaled.place])
            gradient[scaled.effects] = -precision * theta[scaled.effects]
            diagonal[scaled.effects] = -precision
            place = self._places[scaled.place]
            # A scale that is held fixed has no share in the fit.
            wide_wide[place, place] = -1.0
            if coupled is not None:
                squares = _squares(coupled, scaled, self._places)
                curvature = -2.0 * precision * squares + float(
                    scaled.prior.hessian(theta[scaled.place])
                )
                wide_wide[place, place] = min(curvature, -1e-3)
                self._couple(wide_wide, own_wide, scaled, 2.0 * precision * theta)
        for horseshoe, jet in self._horseshoes(theta, spread):
            self._shrink(wide_wide, gradient, horseshoe, jet, theta if coupled else None)
        wide_positions = layout.wide_positions
        wide_wide[np.diag_indices(p)] += diagonal[wide_positions]
        own_own = np.zeros((num_groups, q, q))
        own_own[:, np.arange(q), np.arange(q)] = diagonal[layout.own_positions]
        own_gradient = gradient[layout.own_positions]
        wide_gradient = gradient[wide_positions]
        return ArrowSums(0.0, wide_gradient, wide_wide, own_gradient, own_own, own_wide, NO_CUBES)

    def _averages(self, theta: Array, spread: ArrowGaussian | None) -> list[tuple[int, Averages]]:
        """E log p of the priors that are not Normal, under their share of the spread."""
        others = self.prior.others
        if not others:
            return []
        variances = np.zeros(theta.size) if spread is None else spread.wide_variances
        # Coefficients come first, in θ as among the wide parameters.
        return [
            (place, prior.averages(float(theta[place]), float(np.sqrt(variances[place]))))
            for place, prior in others
        ]

    def _horseshoes(
        self, theta: Array, spread: ArrowGaussian | None
    ) -> list[tuple[HorseshoePrior, HorseshoeJet]]:
        """Horseshoes, averaged over the spread of their coefficients."""
        if not self.prior.horseshoes:
            return []
        variances = np.zeros(theta.size) if spread is None else spread.wide_variances
        return [
            (one, one.averaged(theta, np.sqrt(variances[one.places])))
            for one in self.prior.horseshoes
        ]

    def _shrink(
        self,
        wide_wide: Array,
        gradient: Array,
        horseshoe: HorseshoePrior,
        jet: HorseshoeJet,
        coupled: Array | None,
    ) -> None:
        """Coefficients under a horseshoe; its τ and c too where they are not held fixed."""
        places, scales = horseshoe.places, self._places[[horseshoe.tau, horseshoe.slab]]
        gradient[places] += jet.first[:, 0]
        wide_wide[places, places] += jet.second[:, 0, 0]
        wide_wide[scales, scales] = -1.0
        if coupled is not None:
            wide_wide[np.ix_(scales, scales)] = horseshoe.scale_bends(coupled, jet)
            wide_wide[np.ix_(places, scales)] = jet.second[:, 0, 1:]
            wide_wide[np.ix_(scales, places)] = jet.second[:, 0, 1:].T

    def _couple(
        self, wide_wide: Array, own_wide: Array, scaled: ScaledEffects, entries: Array
    ) -> None:
        """∂²/∂b∂v = 2 e^{−2v} b."""
        place, p = self._places[scaled.place], self.layout.num_wide
        where = self._places[scaled.effects]
        if where[0] < p:
            wide_wide[where, place] = wide_wide[place, where] = entries[scaled.effects]
            return
        groups, effects = np.divmod(where - p, self.layout.num_own)
        own_wide[groups, effects, place] = entries[scaled.effects]

    def expected_log_density(self, gaussian: ArrowGaussian) -> float:
        """E log π_0 with the scales where they are; learned constants' at their means."""
        theta, variances = gaussian.mean, np.empty(self.layout.dim)
        variances[self.layout.wide_positions] = gaussian.wide_variances
        variances[self.layout.own_positions] = gaussian.own_variances
        value = float(self.prior.log_density(theta[None])[0])
        fixed = self.prior.fixed
        for (place, prior), (_, average) in zip(
            self.prior.others, self._averages(theta, gaussian), strict=True
        ):
            value += average.value - float(prior.log_density(theta[place]))
        for horseshoe, jet in self._horseshoes(theta, gaussian):
            value += horseshoe.change(theta, jet)
        factor = gaussian.factor[: fixed.dim]
        value -= 0.5 * float(np.einsum("ij,jk,ik->", fixed.precision, factor, factor))
        for scaled in self.prior.scales:
            precision = np.exp(-2.0 * theta[scaled.place])
            value -= 0.5 * precision * float(variances[scaled.effects].sum())
        return value

    def lifted(self, theta: Array, sums: ArrowSums) -> Array:
        """θ with every scale at least as large as the error with which rows know its effects."""
        theta, known = theta.copy(), np.zeros(self.layout.dim)
        touched = self.layout.num_touched
        known[:touched] = -np.diagonal(sums.wide_wide)[:touched]
        known[self.layout.num_wide :] = -np.diagonal(sums.own_own, axis1=1, axis2=2).ravel()
        for scaled in self.prior.scales:
            own = known[self._places[scaled.effects]]
            own = own[own > 0.0]
            if own.size:
                lowest = -0.5 * np.log(np.median(own))
                theta[scaled.place] = max(theta[scaled.place], lowest)
        return theta

    def best_scales(self, gaussian: ArrowGaussian) -> Array:
        """The v that go with this Gaussian of the effects; one step of EM."""
        theta, variances = gaussian.mean, gaussian.wide_variances
        of_effects = np.array(
            [
                _best_scale(
                    scaled.prior,
                    _squares(gaussian, scaled, self._places),
                    scaled.effects.size,
                    float(theta[scaled.place]),
                )
                for scaled in self.prior.scales
            ]
        )
        of_horseshoes = [
            one.best_scales(theta, np.sqrt(variances[one.places])) for one in self.prior.horseshoes
        ]
        return np.concatenate([of_effects, *of_horseshoes])


def _squares(gaussian: ArrowGaussian, scaled: ScaledEffects, places: Indices) -> float:
    """Σ_g E b_g² of the effects of a scale."""
    layout = gaussian.layout
    variances = np.empty(layout.dim)
    variances[: layout.num_wide] = gaussian.wide_variances
    variances[layout.num_wide :] = gaussian.own_variances.ravel()
    b = gaussian.mean[scaled.effects]
    return float(b @ b + variances[places[scaled.effects]].sum())


def _best_scale(prior: ScalePrior, squares: float, number: int, start: float) -> float:
    """Newton's method for a concave function of one number."""
    v = start
    for _ in range(50):
        pull = squares * np.exp(-2.0 * v)
        at = np.array([v])
        slope = pull - number + float(prior.gradient(at)[0])
        bend = 2.0 * pull - float(prior.hessian(at)[0])
        step = float(np.clip(slope / max(bend, 1e-12), -1.0, 1.0))
        v += step
        if abs(step) < 1e-8:
            break
    return v
