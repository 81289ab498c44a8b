"""Ratios of normalising constants: importance and bridge sampling.

With draws of p and of q and l = log p̃ − log q̃ at both, the bridge that is best for draws of both
(Meng and Wong 1996; Bennett 1976) is the fixed point of

    Z = mean_q[p̃ / (s_p p̃ + s_q Z q̃)] / mean_p[q̃ / (s_p p̃ + s_q Z q̃)],    Z = Z_p / Z_q,

where s_p and s_q are the shares of the draws, as many as they are worth. The error is the one of
Frühwirth-Schnatter (2004): the relative variances of the two means.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit, logsumexp

from corebayes.exact.cover import covering
from corebayes.samplers.convergence import efficiency, standard_error
from corebayes.samplers.independence import log_densities
from corebayes.samplers.modes.search import Mode
from corebayes.samplers.nuts import NUTS
from corebayes.samplers.pareto import pareto_k
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.proposal import Component, Proposal
from corebayes.samplers.worth import worth
from corebayes.types import Array, Estimate, Gaussian, Rng

# A mean of ratios has a variance up to here.
LIGHT = 0.5
NUM_CANDIDATES, NUM_DRAWS = 20_000, 4000
CLOSE, MOST_ITERATIONS = 1e-10, 1000


def log_mean_ratio(log_ratios: Array, *, independent: bool) -> Estimate:
    """log E e^l from draws (chains, draws), with the error of the mean."""
    log_mean = float(logsumexp(log_ratios)) - np.log(log_ratios.size)
    relative = np.exp(log_ratios - log_mean)
    return Estimate(float(log_mean), standard_error(relative, independent=independent))


def bridge(of_p: Array, of_q: Array, *, share: float = 1.0) -> Estimate:
    """log Z_p/Z_q from l at draws of p (chains, draws), which are worth a `share` of independent
    ones, and at independent draws of q (S,). Cost: some iterations over both."""
    number = share * of_p.size
    s_p, s_q = np.log([number, of_q.size]) - np.log(number + of_q.size)
    log_z = float(np.median(of_p))
    for _ in range(MOST_ITERATIONS):
        # In terms of x = l − log Z: means of e^x / (s_p e^x + s_q) and of 1 / (s_p e^x + s_q)
        top = logsumexp(_log_share(of_q - log_z, s_p, s_q)) - np.log(of_q.size)
        bottom = logsumexp(_log_share(log_z - of_p, s_q, s_p)) - np.log(of_p.size)
        step = float(top - bottom)
        log_z += step
        if abs(step) < CLOSE:
            break
    first = np.asarray(expit(of_q - log_z + s_p - s_q), dtype=np.float64)
    second = np.asarray(expit(log_z - of_p + s_q - s_p), dtype=np.float64)
    variance = float(first.var() / first.mean() ** 2) / of_q.size
    # Of the means under p only this one has autocorrelation.
    dependence = 1.0 / efficiency(second, independent=False) if second.ndim == 2 else 1.0
    variance += float(second.var() / second.mean() ** 2) / second.size * max(dependence, 1.0)
    return Estimate(log_z, float(np.sqrt(variance)))


def _log_share(x: Array, s_first: float, s_second: float) -> Array:
    """log e^x / (s_first e^x + s_second), from logarithms of the shares."""
    return x - np.logaddexp(s_first + x, s_second)


def log_normaliser(rng: Rng, posterior: Posterior, modes: list[Mode]) -> Estimate:
    """log ∫ π_0 e^{Σ w f} dθ of few rows.

    From ratios to a mixture of t distributions around the modes where it covers the posterior,
    else by a bridge between draws of NUTS and a t that is fitted to half of them.
    Cost: 20,000 · M potentials; or 4,000 draws of NUTS.
    """
    with np.errstate(all="ignore"):
        pilot = covering(rng, posterior, modes)
        if pilot is not None and pilot.pareto_k <= LIGHT:
            draws = pilot.proposal.draw(rng, NUM_CANDIDATES)
            log_ratios = log_densities(posterior, draws) - pilot.proposal.log_density(draws)
            if pareto_k(np.maximum(log_ratios, log_ratios.max() - 700.0), 1.0) <= LIGHT:
                return log_mean_ratio(log_ratios[None], independent=True)
    sampled = NUTS(chains=4).draw(rng, posterior, NUM_DRAWS, modes[0].fit.mean if modes else None)
    return fitted_bridge(rng, sampled.values, lambda draws: log_densities(posterior, draws))


def fitted_bridge(
    rng: Rng, values: Array, log_density: Callable[[Array], Array], num_draws: int = NUM_DRAWS
) -> Estimate:
    """log of the integral of a density from draws of it (chains, draws, d).

    A t is fitted to the first half of every chain and bridged to the second, so that it does not
    depend on the draws it is compared with. Cost: as many densities as there are draws, and half.
    """
    dim, half = values.shape[-1], values.shape[1] // 2
    first, second = values[:, :half].reshape(-1, dim), values[:, half:]
    covariance = np.atleast_2d(np.cov(first, rowvar=False))
    fit = Gaussian(first.mean(axis=0), np.asarray(np.linalg.cholesky(covariance), dtype=np.float64))
    proposal = Proposal((Component(fit, 1.0, max(5.0, float(dim))),))
    candidates = proposal.draw(rng, num_draws)
    flat = second.reshape(-1, dim)
    heights = log_density(np.concatenate([flat, candidates]))
    of_p = heights[: len(flat)] - proposal.log_density(flat)
    of_q = heights[len(flat) :] - proposal.log_density(candidates)
    share = min(worth(second).min_ess_bulk / len(flat), 1.0)
    return bridge(of_p.reshape(second.shape[:2]), of_q, share=share)
