"""Coordinates in which a mixed model's posterior is nearly a standard normal, for NUTS.

The Gaussian fit of π_w (`corebayes.arrow`) says what the rows know of every effect: a precision λ
beside the prior's e^{−2v}, v = log τ. Given v, an effect is nearly normal with the variance
1/(λ + e^{−2v}): it widens with τ where rows say little about it (the funnel, which the non-centred
form takes away) and does not where they say much (where that form would make a ridge). So with

    ρ(v) = (λ + e^{−2v̂}) / (λ + e^{−2v}),     b = ρ(v) x + √ρ(v) sd z,

x the mean of b at v̂ given what comes before it, z is nearly standard normal and free of v, for
every τ: the centred form where ρ = 1 and the non-centred one where ρ = τ²/τ̂².

Parameters come in blocks, each linear in the true values of those before it: scales, the effects of
one scale after the other (turned to the axes of λ, since rows may know all differences between
groups and nothing of their mean), coefficients, and last the effects of the main term, group by
group. So what rows know exactly stays a straight line whatever τ is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import rq, solve_triangular

from corebayes.arrow.fit import Fitting, fit
from corebayes.arrow.gaussian import ArrowGaussian
from corebayes.arrow.layout import Layout
from corebayes.arrow.start import beginning, fitting_of, sums_in_parts
from corebayes.models.compiled.frame import OwnBlock, WideBlock
from corebayes.models.mixed.prior import ScaledEffects
from corebayes.models.mixed.regression import MixedRegression
from corebayes.models.structure import is_structured
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Rng

# Newton's step, squared, for each parameter, at which the fit will do as a frame.
SETTLED = 1e-2
# Chains start this many times too far out in what all rows share; in thousands of effects together
# that would be nowhere.
DISPERSION = 2.0


@dataclass(frozen=True, eq=False)
class MixedFrame:
    """θ of z, block by block; z has the order of the layout: wide parameters, then groups."""

    layout: Layout
    wide_mean: Array
    own_mean: Array
    wide: tuple[WideBlock, ...]
    """In the order in which they are drawn."""
    own: tuple[OwnBlock, ...]

    @classmethod
    def around(cls, gaussian: ArrowGaussian, scales: tuple[ScaledEffects, ...]) -> MixedFrame:
        return cls(
            gaussian.layout,
            gaussian.wide_mean,
            gaussian.own_mean,
            _wide_blocks(gaussian, scales),
            _own_blocks(gaussian, scales),
        )

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
        wide = np.zeros((len(flat), self.layout.num_wide))
        with np.errstate(over="ignore", invalid="ignore"):
            for block in self.wide:
                rho = self._rho(block, wide)
                x = (self.wide_mean[block.places] + wide @ block.lean.T) @ block.turn
                y = rho * x + np.sqrt(rho) * block.sd * flat[:, block.places]
                wide[:, block.places] = y @ block.turn.T - self.wide_mean[block.places]
            effects, _ = self.effects(wide, self._noise(flat)[:, None])
        theta = np.empty((len(flat), self.dim))
        theta[:, self.layout.wide_positions] = self.wide_mean + wide
        theta[:, self.layout.own_positions] = effects[:, 0]
        return theta.reshape(z.shape)

    def effects(self, wide: Array, noise: Array) -> tuple[Array, Array]:
        """b (S, K, G, q) of noise (S, K, G, q) at wide parameters (S, P) from the fit, and the log
        of |db/dz| of each group, (S, G)."""
        moved, volume = np.zeros_like(noise), np.zeros((len(noise), len(self.own_mean)))
        for block in self.own:
            rho, mean = self._rho(block, wide), self.own_mean[:, block.effect]
            spread = np.sqrt(rho) * block.sd
            centre = rho * (mean + wide @ block.lean.T) - mean
            y = centre[:, None] + spread[:, None] * noise[..., block.effect]
            if block.siblings.any():
                beside = np.einsum("gq,skgq->skg", block.siblings, moved, optimize=True)
                y += rho[:, None] * beside
            moved[..., block.effect] = y
            volume += np.log(spread)
        moved += self.own_mean
        return moved, volume

    def pulled_back(self, z: Array, theta: Array, gradient: Array) -> tuple[float, Array]:
        """log |dθ/dz| up to a constant, and ∇ in z, with the Jacobian's, from ∇ in θ, at one z."""
        layout, pulled, total = self.layout, np.empty_like(z), 0.0
        noise = self._noise(z[None])[0]
        wide = theta[layout.wide_positions] - self.wide_mean
        moved = theta[layout.own_positions] - self.own_mean
        of_wide, of_own = gradient[layout.wide_positions], gradient[layout.own_positions]
        of_noise = np.empty_like(noise)
        for block in reversed(self.own):
            rho, own = self._rho(block, wide[None])[0], of_own[:, block.effect]
            spread = np.sqrt(rho) * block.sd
            x = self.own_mean[:, block.effect] + block.lean @ wide
            x = x + np.einsum("gq,gq->g", block.siblings, moved)
            of_noise[:, block.effect] = spread * own
            # d log ρ / dv = 2α with α = e^{−2v} / (λ + e^{−2v})
            alpha = self._alpha(block, wide)
            of_wide[block.scale] += alpha @ (
                own * (2.0 * rho * x + spread * noise[:, block.effect])
            )
            of_wide[block.scale] += alpha.sum()
            total += 0.5 * np.log(rho).sum()
            of_wide += (rho * own) @ block.lean
            of_own += (rho * own)[:, None] * block.siblings
        for block in reversed(self.wide):
            rho, own = self._rho(block, wide[None])[0], block.turn.T @ of_wide[block.places]
            spread = np.sqrt(rho) * block.sd
            pulled[block.places] = spread * own
            if block.scale >= 0:
                x = block.turn.T @ (self.wide_mean[block.places] + block.lean @ wide)
                alpha = self._alpha(block, wide)
                of_wide[block.scale] += alpha @ (own * (2.0 * rho * x + spread * z[block.places]))
                of_wide[block.scale] += alpha.sum()
                total += 0.5 * np.log(rho).sum()
            of_wide += (block.turn @ (rho * own)) @ block.lean
        pulled[layout.num_wide :] = of_noise.ravel()
        return total, pulled

    def _noise(self, z: Array) -> Array:
        """(S, G, q)."""
        return z[:, self.layout.num_wide :].reshape(len(z), *self.own_mean.shape)

    def _rho(self, block: WideBlock | OwnBlock, wide: Array) -> Array:
        """ρ of every entry at wide parameters (S, P) from the fit, (S, n)."""
        if block.scale < 0:
            return np.ones((len(wide), 1))
        # The prior's precision at the fit, and by how much it changes.
        here = np.exp(-2.0 * self.wide_mean[block.scale])
        change = np.exp(-2.0 * wide[:, block.scale, None])
        return (block.known + here) / (block.known + here * change)

    def _alpha(self, block: WideBlock | OwnBlock, wide: Array) -> Array:
        prior = np.exp(-2.0 * (self.wide_mean[block.scale] + wide[block.scale]))
        return prior / (block.known + prior)


def frame_of(posterior: Posterior, start: Array | None = None) -> MixedFrame:
    """The frame at the Gaussian fit of π_w. Cost: some ten sums over the M rows."""
    fitted = fit_of(posterior, start)
    model = posterior.model
    assert isinstance(model, MixedRegression)
    return MixedFrame.around(fitted, model.prior.scales)


def fit_of(
    posterior: Posterior, start: Array | None = None, *, tolerance: float = SETTLED
) -> ArrowGaussian:
    """The Gaussian closest to π_w, to a step of this length, squared, for each parameter."""
    model = posterior.model
    assert is_structured(model)
    fitting: Fitting = fitting_of(model)
    return fit(
        fitting,
        fitting.start(beginning(model, start)),
        lambda q: sums_in_parts(model, fitting.layout, q, posterior.rows, posterior.weights),
        tolerance=tolerance,
    ).gaussian


def _wide_blocks(
    gaussian: ArrowGaussian, scales: tuple[ScaledEffects, ...]
) -> tuple[WideBlock, ...]:
    layout, P = gaussian.layout, gaussian.wide_mean.size
    places = {position: place for place, position in enumerate(layout.wide_positions.tolist())}
    of_scales = [places[position] for position in layout.structure.scales.tolist()]
    blocks = [(np.array(of_scales, dtype=np.int64), -1)] if of_scales else []
    for scaled in scales:
        if int(scaled.effects[0]) in places:
            inside = np.array([places[position] for position in scaled.effects.tolist()])
            blocks.append((inside, places[scaled.place]))
    blocks.append((np.arange(layout.structure.shared.size), -1))
    # Σ = RRᵀ, R upper triangular: the last block, which is drawn first, depends on nothing.
    order = np.concatenate([inside for inside, _ in reversed(blocks)])
    R = np.asarray(rq(gaussian.factor[order], mode="economic")[0], dtype=np.float64)
    result, stop = list[WideBlock](), P
    for inside, scale in blocks:
        start = stop - inside.size
        lean = np.zeros((inside.size, P))
        # The mean given what comes before: R_{k,later} R_{later,later}⁻¹
        later = R[stop:, stop:]
        lean[:, order[stop:]] = solve_triangular(later, R[start:stop, stop:].T, trans="T").T
        turn, sd, _ = np.linalg.svd(R[start:stop, start:stop])
        known = np.zeros(inside.size)
        if scale >= 0:
            # What its own τ does to it is ρ.
            lean[:, scale] = 0.0
            known = _known(sd, gaussian.wide_mean[scale])
        result.append(WideBlock(inside, scale, turn, sd, known, lean))
        stop = start
    return tuple(result)


def _own_blocks(gaussian: ArrowGaussian, scales: tuple[ScaledEffects, ...]) -> tuple[OwnBlock, ...]:
    layout, (num_groups, q) = gaussian.layout, gaussian.own_mean.shape
    places = {position: place for place, position in enumerate(layout.wide_positions.tolist())}
    scale_of = {int(scaled.effects[0]): places[scaled.place] for scaled in scales}
    # b = m − E δ + R⁻ᵀ ζ, R⁻ᵀ upper triangular: the last effect depends on no other.
    T = gaussian.inverse_root.transpose(0, 2, 1)
    result = list[OwnBlock]()
    for effect in reversed(range(q)):
        siblings, later = np.zeros((num_groups, q)), slice(effect + 1, q)
        lean = -gaussian.slopes[:, effect]
        if effect + 1 < q:
            weights = np.linalg.solve(
                T[:, later, later].transpose(0, 2, 1), T[:, effect, later, None]
            )[:, :, 0]
            siblings[:, later] = weights
            lean = lean + np.einsum("gj,gjp->gp", weights, gaussian.slopes[:, later])
        scale = scale_of[int(layout.own_positions[0, effect])]
        lean = lean.copy()
        lean[:, scale] = 0.0
        sd = np.abs(T[:, effect, effect])
        known = _known(sd, gaussian.wide_mean[scale])
        result.append(OwnBlock(effect, scale, sd, known, lean, siblings))
    return tuple(result)


def _known(sd: Array, v: float) -> Array:
    """λ: what rows know beside the prior at v."""
    return np.maximum(0.0, sd**-2.0 - np.exp(-2.0 * v))
