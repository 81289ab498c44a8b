"""π_w of a mixed model of thousands of groups, with the groups' effects integrated out.

Given the wide parameters φ the effects of different groups are independent, so

    π_w(φ) ∝ π_0(φ) Π_g ∫ exp(Σ_{i ∈ g} w_i f_i(φ, b)) N(b; 0, τ²) db

has few parameters however many groups there are, and every group's integral is quadrature over one
or two effects, in the coordinates z in which they are nearly standard normal whatever φ is
(`frame.py`).

Effects given φ are drawn by chains of independence Metropolis, one a group, each from the best of
some tries: what such a chain still remembers of its start falls geometrically with its steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import logsumexp

from corebayes.deadline import check_time
from corebayes.models.mixed.prior import LOG_2PI
from corebayes.models.mixed.regression import MixedRegression
from corebayes.models.quadrature import product_rule
from corebayes.samplers.mixed.frame import MixedFrame
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Indices, Rng

# Effects are proposed by a t of so many degrees of freedom, wider than the fit by a factor, so that
# ratios are bounded: a group starts from one of some tries, and then makes so many steps.
DEGREES, WIDER, TRIES, STEPS = 5.0, 1.1, 8, 12
# Potentials at once.
VALUES_AT_ONCE = 1 << 21


@dataclass(frozen=True, eq=False)
class Integrated:
    """log π_w(φ), and draws of θ given φ.

    Cost: M·K^q potentials for a density, K nodes for each of a group's q effects, and M·20 for a
    draw of all effects.
    """

    posterior: Posterior
    frame: MixedFrame
    num_nodes: int

    @property
    def dim(self) -> int:
        """Of φ."""
        return self.frame.layout.num_wide

    @property
    def weights(self) -> Array:
        return self.posterior.weights

    @cached_property
    def _model(self) -> MixedRegression:
        model = self.posterior.model
        assert isinstance(model, MixedRegression)
        return model

    @cached_property
    def _sums(self) -> Any:
        """Weighted sums over the rows of each group, (G, M)."""
        layout, model, rows = self.frame.layout, self._model, self.posterior.rows
        assert layout.structure.main is not None
        groups = model.groups(rows)[:, layout.structure.main]
        entries = (self.weights, (groups, np.arange(groups.size)))
        return csr_array(entries, shape=(layout.num_groups, groups.size))

    @cached_property
    def _scales(self) -> Indices:
        """Where in φ the log scale of each of a group's effects is."""
        layout = self.frame.layout
        places = {place: k for k, place in enumerate(layout.wide_positions.tolist())}
        of = {int(one.effects[0]): places[one.place] for one in self._model.prior.scales}
        return np.array([of[int(place)] for place in layout.own_positions[0]], dtype=np.int64)

    def finite_log_density(self, draws: Array) -> Array:
        """log π_w(φ) at draws (S, p), −∞ where it is not finite."""
        values = self.log_density(draws)
        return np.where(np.isfinite(values), values, -np.inf)

    def log_density(self, draws: Array) -> Array:
        points, log_rule = product_rule(self.num_nodes, self.frame.layout.num_own)
        result = np.empty(len(draws))
        for part in self._parts(len(draws), len(points)):
            phi = draws[part]
            shape = (len(phi), len(points), *self.frame.own_mean.shape)
            effects, volume = self._effects(phi, np.broadcast_to(points[:, None], shape))
            heights = self._heights(phi, effects) + log_rule[:, None]
            # ∫ … db = |db/dz| ∫ … dz
            result[part] = (logsumexp(heights, axis=1) + volume).sum(axis=1)
            result[part] += self._rest_of_prior(phi)
        return result

    def draw(self, rng: Rng, draws: Array) -> tuple[Array, Array]:
        """θ (S, d) with effects given each φ (S, p), and how often each group's chain moved."""
        theta = np.empty((len(draws), self._model.dim))
        theta[:, self.frame.layout.wide_positions] = draws
        moved = np.zeros(self.frame.layout.num_groups)
        for part in self._parts(len(draws), TRIES + STEPS):
            effects, moves = self._draw_effects(rng, draws[part])
            theta[part, self.frame.layout.own_positions.ravel()] = effects.reshape(len(effects), -1)
            moved += moves
        return theta, moved / (max(len(draws), 1) * STEPS)

    def _draw_effects(self, rng: Rng, phi: Array) -> tuple[Array, Array]:
        num_groups, q = self.frame.own_mean.shape
        shape = (len(phi), TRIES + STEPS, num_groups)
        noise = rng.standard_normal((*shape, q))
        noise *= np.sqrt(DEGREES / rng.chisquare(DEGREES, size=shape))[..., None]
        effects, _ = self._effects(phi, WIDER * noise)
        # log of the density over the proposal's
        logs = self._heights(phi, effects)
        logs += 0.5 * (DEGREES + q) * np.log1p(np.square(noise).sum(axis=3) / DEGREES)
        # The largest weight over a standard exponential is a draw in proportion to the weights.
        races = logs[:, :TRIES] - np.log(rng.standard_exponential((len(phi), TRIES, num_groups)))
        chosen = np.argmax(races, axis=1)
        thresholds = -rng.standard_exponential((len(phi), STEPS, num_groups))
        current = np.take_along_axis(logs, chosen[:, None], axis=1)[:, 0]
        moved = np.zeros(num_groups)
        for step in range(STEPS):
            proposed = logs[:, TRIES + step]
            moves = proposed - current > thresholds[:, step]
            chosen = np.where(moves, TRIES + step, chosen)
            current = np.where(moves, proposed, current)
            moved += moves.sum(axis=0)
        return np.take_along_axis(effects, chosen[:, None, :, None], axis=1)[:, 0], moved

    def _parts(self, num_draws: int, places: int) -> list[slice]:
        each = places * max(self.weights.size, self.frame.own_mean.size)
        step = max(1, VALUES_AT_ONCE // each)
        return [slice(first, first + step) for first in range(0, num_draws, step)]

    def _effects(self, phi: Array, z: Array) -> tuple[Array, Array]:
        return self.frame.effects(phi - self.frame.wide_mean, z)

    def _heights(self, phi: Array, effects: Array) -> Array:
        """Σ_{i ∈ g} w_i f_i + log N(b; 0, τ²) of every group, (S, K, G)."""
        check_time()
        layout, places = self.frame.layout, effects.shape[1]
        theta = np.empty((len(phi) * places, self._model.dim))
        theta[:, layout.wide_positions] = np.repeat(phi, places, axis=0)
        theta[:, layout.own_positions.ravel()] = effects.reshape(len(theta), -1)
        with np.errstate(all="ignore"):
            values = self._model.potentials(theta, self.posterior.rows)
            heights = (self._sums @ values).T.reshape(effects.shape[:3])
            v = phi[:, self._scales]
            squares = np.square(effects) * np.exp(-2.0 * v)[:, None, None]
            heights -= 0.5 * squares.sum(axis=3)
        heights -= (v + 0.5 * LOG_2PI).sum(axis=1)[:, None, None]
        return np.where(np.isnan(heights), -np.inf, heights)

    def _rest_of_prior(self, phi: Array) -> Array:
        """log π_0 of θ without that of the effects integrated over: what it is where they are
        zero, less their share."""
        layout = self.frame.layout
        theta = np.zeros((len(phi), self._model.dim))
        theta[:, layout.wide_positions] = phi
        at_zero = layout.num_groups * (phi[:, self._scales] + 0.5 * LOG_2PI).sum(axis=1)
        return self._model.log_prior(theta) + at_zero
