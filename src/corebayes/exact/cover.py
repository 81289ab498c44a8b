"""A mixture that covers a posterior of few rows, so that draws of it can be proposed at random.

Around the modes where Laplace's fit is right. A hierarchy has its mass elsewhere than its mode, so
then many short chains look where the mass is, and Gaussian mixtures of a few components are fitted
to where they end. Whether a mixture covers is always asked of fresh draws of it: the chains need
not be right.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from corebayes.deadline import check_time
from corebayes.samplers.automatic import MOST_PARAMETERS, Automatic
from corebayes.samplers.draws import Draws
from corebayes.samplers.exact import is_conjugate
from corebayes.samplers.independence import Independence, Pilot, try_proposal
from corebayes.samplers.kernel import HitAndRun
from corebayes.samplers.laplace import prior_fit
from corebayes.samplers.modes.search import Mode, distinct_modes, find_modes
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.proposal import Component, Proposal
from corebayes.types import Array, Gaussian, Rng

# Candidates on few rows cost little, so a mixture may fit worse than where draws are all there is.
INDEPENDENCE = Independence(max_time=25.0, max_pareto_k=0.7)
NUM_STARTS = 12
# Chains that look around, the steps of each that are kept, and those before.
NUM_CHAINS, NUM_KEPT, NUM_TUNE, TUNE_EACH = 50, 60, 200, 20
NUM_COMPONENTS, NUM_ITERATIONS = (1, 3, 6), 30
# The share of the mixture that has heavier tails.
HEAVY = 0.2
# A particle is left out where π_w / q is so many times its mean; a larger share is not by chance.
UNCOVERED, LEFT_OUT = 20.0, 0.01


def modes_of(rng: Rng, posterior: Posterior) -> list[Mode]:
    """The modes of π_w, from the origin and, where there may be several, from wide places."""
    starts = [np.zeros(posterior.dim)]
    if not posterior.model.log_concave:
        starts.extend(prior_fit(posterior.model, posterior.rows).draw(rng, NUM_STARTS))
    return distinct_modes(find_modes(posterior, starts))


def covering(
    rng: Rng, posterior: Posterior, modes: list[Mode], near: Array | None = None
) -> Pilot | None:
    """A mixture that covers the density, and what it is worth; None when none is found.

    `near` are draws (S, d) of about this density, where there are any already.

    Cost: some thousand densities, or twenty thousand and more where chains must look around.
    """
    if posterior.dim > MOST_PARAMETERS:
        return None
    with np.errstate(all="ignore"):
        best = INDEPENDENCE.fit_modes(rng, posterior, modes)
        if best is not None and INDEPENDENCE.covers(best):
            return best
        if posterior.model.log_concave and not modes:
            return None
        draws = _look_around(rng, posterior, modes) if near is None else near
        for number in NUM_COMPONENTS:
            proposal = fit_mixture(rng, draws, number)
            if proposal is None:
                continue
            other = try_proposal(rng, posterior, proposal)
            if INDEPENDENCE.covers(other) and (best is None or other.time < best.time):
                best = other
    return best if best is not None and INDEPENDENCE.covers(best) else None


def covering_all(
    rng: Rng, posterior: Posterior, modes: list[Mode], particles: Array | None
) -> Pilot | None:
    """A mixture that also covers where particles of the density lie, if there are any: fresh draws
    of a mixture never show what it leaves out, and Newton's method passes over plateaus."""
    pilot = covering(rng, posterior, modes, particles)
    if pilot is None or particles is None or not _leaves_out(posterior, pilot, particles):
        return pilot
    pilot = covering(rng, posterior, [], particles)
    return None if pilot is None or _leaves_out(posterior, pilot, particles) else pilot


def _leaves_out(posterior: Posterior, pilot: Pilot, particles: Array) -> bool:
    """Whether many particles lie where π_w / q is many times what it is elsewhere."""
    with np.errstate(all="ignore"):
        heights = posterior.finite_log_density(particles)
        logs: Array = heights - pilot.proposal.log_density(particles)
    # E_w[q / π_w] = 1 / Z, whatever q leaves out
    log_evidence = np.log(logs.size) - float(logsumexp(-logs))
    num_out = np.count_nonzero(logs > log_evidence + np.log(UNCOVERED))
    return bool(num_out > LEFT_OUT * logs.size)


def coreset_draws(
    rng: Rng, posterior: Posterior, number: int, chains: int, modes: list[Mode] | None = None
) -> Draws:
    """Draws of π_w by the quickest way that is exact; its `modes` where they are known."""
    if not is_conjugate(posterior.model):
        pilot = covering(rng, posterior, modes_of(rng, posterior) if modes is None else modes)
        if pilot is not None:
            with np.errstate(all="ignore"):
                return Independence(chains=chains).run(rng, posterior, pilot, number)
    return Automatic(chains=chains).draw(rng, posterior, number)


def _look_around(rng: Rng, posterior: Posterior, modes: list[Mode]) -> Array:
    """Where short chains from around the heaviest mode end, (S, d)."""
    steps = max(NUM_TUNE, TUNE_EACH * posterior.dim)
    kernel = HitAndRun(num_chains=NUM_CHAINS, num_tune=steps)
    start = modes[0].fit.mean if modes else None
    drawn = kernel.draw(rng, posterior, NUM_CHAINS * NUM_KEPT, start)
    return drawn.thinned(2).flat


def fit_mixture(rng: Rng, draws: Array, number: int) -> Proposal | None:
    """Gaussians fitted to draws (S, d) by expectation maximisation, and t in the same places.

    Covariances are drawn towards that of all draws as if by d more of them. None when the draws
    are too few or do not vary. Cost: 30 · S·d² flops a component.
    """
    size, dim = draws.shape
    if size < 4 * number * dim or not np.all(np.isfinite(draws)):
        return None
    centre, spread = draws.mean(axis=0), draws.std(axis=0)
    if not np.all(spread > 0.0):
        return None
    try:
        root = spread[:, None] * np.linalg.cholesky(np.atleast_2d(np.corrcoef(draws.T)))
        z = np.asarray(np.linalg.solve(root, (draws - centre).T), dtype=np.float64).T
        fits, shares = _expectation_maximisation(rng, z, number)
    except np.linalg.LinAlgError:
        return None
    parts: list[Component] = []
    for fit, share in zip(fits, shares, strict=True):
        moved = Gaussian(centre + root @ fit.mean, root @ fit.factor)
        parts.append(Component(moved, (1.0 - HEAVY) * float(share)))
        parts.append(Component(moved, HEAVY * float(share), max(5.0, float(dim))))
    return Proposal(tuple(parts))


def _expectation_maximisation(rng: Rng, z: Array, number: int) -> tuple[list[Gaussian], Array]:
    size, dim = z.shape
    unit = np.eye(dim)
    fits = [Gaussian(z[k], unit) for k in rng.choice(size, number, replace=False)]
    shares = np.full(number, 1.0 / number)
    for _ in range(NUM_ITERATIONS if number > 1 else 1):
        check_time()
        mixture = Proposal(tuple(map(Component, fits, shares.tolist())))
        log_parts = mixture.log_parts(z)
        belongs = np.exp(log_parts - np.logaddexp.reduce(log_parts, axis=0))
        counts = belongs.sum(axis=1) + 1e-9
        shares = counts / counts.sum()
        means = (belongs @ z) / counts[:, None]
        fits = [_fit(z, *part) for part in zip(means, belongs, counts, strict=True)]
    return fits, shares


def _fit(z: Array, mean: Array, mine: Array, count: float) -> Gaussian:
    dim, centred = mean.size, z - mean
    # A third of a unit covariance, as if by d more draws, keeps it positive definite.
    covariance = ((centred.T * mine) @ centred + 0.3 * dim * np.eye(dim)) / (count + dim)
    return Gaussian(mean, np.asarray(np.linalg.cholesky(covariance), dtype=np.float64))
