"""Draws of π_w by importance resampling around its modes, and by NUTS where that does not do.

With many rows π_w is close to a Gaussian around each mode, and draws of a mixture of t
distributions there, resampled in proportion to π_w / q, are draws of π_w for the price of one
vectorised call of the model: a thousandth of what a Markov chain takes. The tail k̂ of the ratios
and their number of effective draws say whether the mixture covers π_w (Vehtari et al. 2024).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from corebayes.samplers.draws import Draws, Sampler
from corebayes.samplers.laplace import prior_fit
from corebayes.samplers.mixture import mixture_draws
from corebayes.samplers.modes.search import distinct_modes, find_modes, shares_of
from corebayes.samplers.nuts import NUTS
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array

# Means of the ratios converge up to here.
MAX_PARETO_K = 0.7
# Modes of a density that is not log-concave are also looked for from draws of the prior.
NUM_STARTS = 2
# No draws would be left of modes with a smaller share, which Laplace's is not off by.
NEGLIGIBLE = 1e-7


@dataclass(frozen=True, kw_only=True)
class Resampling:
    """Draws of π_w out of `oversampling` times as many proposals. Cost: M potentials for each.

    `otherwise` draws when the proposals do not cover π_w, or are worth fewer draws than wanted.
    The same random numbers at weights nearby give draws nearby, so looks can be compared.
    """

    oversampling: int = 4
    places: Array | None = None
    """Where modes are also looked for, (K, d)."""
    otherwise: Sampler = field(default_factory=NUTS)

    def draw(
        self, rng: Generator, posterior: Posterior, num_draws: int, start: Array | None = None
    ) -> Draws:
        model = posterior.model
        starts = [np.zeros(model.dim) if start is None else start]
        if not model.log_concave:
            starts.extend(prior_fit(model, posterior.rows).draw(rng, NUM_STARTS))
            starts.extend(() if self.places is None else self.places)
        modes = distinct_modes(find_modes(posterior, starts))
        if modes:
            shares = shares_of(modes)
            modes = [mode for mode, own in zip(modes, shares, strict=True) if own > NEGLIGIBLE]
            # The ratios of a t to a Gaussian spread with the dimension, and less so for a t that
            # is more like one.
            degrees = max(5.0, float(model.dim))
            number = self.oversampling * num_draws
            with np.errstate(all="ignore"):
                proposed = mixture_draws(rng, posterior, number, modes, degrees=degrees)
            if proposed.pareto_k <= MAX_PARETO_K and proposed.effective >= num_draws:
                chosen = proposed.equally_weighted(rng, num_draws)
                # A proposal that is taken twice comes twice in a row.
                distinct = bool(np.all(np.any(np.diff(chosen, axis=0), axis=1)))
                return Draws(
                    values=chosen[None],
                    location=proposed.location,
                    independent=distinct,
                    how="importance resampling",
                    modes=tuple(mode.fit for mode in modes) if len(modes) > 1 else (),
                )
        return self.otherwise.draw(rng, posterior, num_draws, start)
