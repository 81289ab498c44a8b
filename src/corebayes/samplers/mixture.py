"""Draws for a π_w with separate modes, which no chain crosses between.

Every mode gets a multivariate t with its own location and scale, and draws of their mixture q are
weighted by π_w / q. The masses of the modes come out right whatever q gave them, the tail k̂ of the
ratios says whether q covers π_w (Vehtari et al. 2024), and since q has heavier tails than π_w, the
far ends of π_w are seen better than by draws of π_w itself. For few parameters: the ratios spread
with the dimension.
"""

from __future__ import annotations

import numpy as np

from corebayes.samplers.draws import Draws
from corebayes.samplers.modes.search import Mode, shares_of
from corebayes.samplers.pareto import pareto_k
from corebayes.samplers.parts import Part, draw_parts, log_mixture
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array

DEGREES = 5.0
# A mode gets at least this share of the proposals, since Laplace masses are rough.
LEAST_SHARE = 0.05


def mixture_draws(
    rng: np.random.Generator,
    posterior: Posterior,
    num_draws: int,
    modes: list[Mode],
    *,
    degrees: float = DEGREES,
) -> Draws:
    """Independent draws around these modes, weighted by π_w / q. Cost: M potentials for each."""
    draws, log_proposal = _propose(rng, modes, num_draws, degrees)
    log_ratios = posterior.finite_log_density(draws) - log_proposal
    # From the largest: beside ratios of 1e17 the logarithm of a sum would be lost.
    weights = np.exp(log_ratios - log_ratios.max())
    weights *= num_draws / weights.sum()
    finite = np.maximum(log_ratios, log_ratios.max() - 700.0)
    return Draws(
        values=draws[None],
        location=modes[0].fit.mean,
        independent=True,
        how=f"weighted draws around {len(modes)} modes",
        weights=weights[None],
        pareto_k=pareto_k(finite, 1.0),
    )


def _propose(
    rng: np.random.Generator, modes: list[Mode], number: int, degrees: float
) -> tuple[Array, Array]:
    """Draws of the mixture and the log of its density there."""
    shares = np.maximum(shares_of(modes), LEAST_SHARE)
    shares /= shares.sum()
    parts = [Part(mode.fit, degrees) for mode in modes]
    draws = draw_parts(rng, parts, rng.multinomial(number, shares).tolist())
    draws = rng.permutation(draws)
    return draws, log_mixture(parts, shares, draws)
