"""Independent draws of π_w where thousands of groups would make every step of NUTS short.

φ, what rows of many groups share, is drawn from π_w(φ) with the effects integrated out: proposals
of a mixture q around its Gaussian fit stay with the probability (π_w/q) / c, c the largest ratio of
all of them. Then all groups draw their effects given φ at once (`integrated.py`). Exact but for c,
which is the largest ratio that was seen, for the quadrature, and for what the groups' chains still
remember of their start; each is checked, and NUTS draws where a check fails.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.random import Generator

from corebayes.deadline import check_time
from corebayes.models.mixed.regression import MixedRegression
from corebayes.samplers.draws import Draws
from corebayes.samplers.independence import Independence, Pilot, log_densities
from corebayes.samplers.mixed.frame import MixedFrame, fit_of
from corebayes.samplers.mixed.integrated import STEPS, Integrated
from corebayes.samplers.modes.search import Mode
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.quadratic_fit import quadratic_fit
from corebayes.types import Array, Gaussian

# Parameters from which on NUTS takes longer, and the most wide ones that a mixture is for.
LEAST_PARAMETERS, MOST_WIDE = 2_000, 40
# Effects of a group that are integrated over, and nodes for each: as few of these as will do.
MOST_EFFECTS, NODES = 2, (5, 9, 15)
# The next number of nodes must not change a log density by more than these nats from one draw to
# another; of so many draws.
MOST_CHANGE, CHECKED = 0.02, 12
# The step at which the fit of all parameters will do, squared, for each: what thousands of groups
# share must not be many of its own deviations off.
SETTLED = 1e-4
# Proposals that a mixture is tried on: few parameters, all but Gaussian with so many groups.
NUM_PILOT = 250
# What a group's chain may remember of where it began, which is itself one of the better tries: of
# any group, and on average over all.
REMEMBERED_BY_ONE, REMEMBERED = 0.2, 1e-3
# Rounds of proposals, and the share of them that must be accepted: less often, the ratios have a
# tail, and chains are quicker.
MOST_ROUNDS, LEAST_ACCEPTED = 12, 0.1


def group_by_group(
    rng: Generator, posterior: Posterior, num_draws: int, start: Array | None = None
) -> Draws | None:
    """Independent draws of π_w; None where it is no such model, or one of the checks fails.

    Cost: some three densities a draw, each of M·K^q potentials with K = 5 or 9, and M·20 potentials
    for the effects.
    """
    if not is_many_groups(posterior):
        return None
    model = posterior.model
    assert isinstance(model, MixedRegression)
    gaussian = fit_of(posterior, start, tolerance=SETTLED)
    frame = MixedFrame.around(gaussian, model.prior.scales)
    independence = Independence(num_pilot=NUM_PILOT)
    with np.errstate(all="ignore"):
        found = _around_mode(rng, posterior, frame, Gaussian(gaussian.wide_mean, gaussian.factor))
        if found is None:
            return None
        integrated, fit = found
        pilot = independence.fit_modes(rng, integrated, [Mode(fit, 0.0)])
        if pilot is None or not independence.covers(pilot):
            return None
        phi = _accepted(rng, integrated, pilot, num_draws)
        if phi is None:
            return None
        theta, moves = integrated.draw(rng, phi)
    remembered = (1.0 - moves) ** STEPS
    if remembered.max() > REMEMBERED_BY_ONE or remembered.mean() > REMEMBERED:
        return None
    return Draws(
        values=theta[None],
        location=gaussian.mean,
        independent=True,
        how="independent draws, group by group",
        pareto_k=pilot.pareto_k,
        acceptance=float(moves.mean()),
    )


def is_many_groups(posterior: Posterior) -> bool:
    """Whether effects of thousands of groups can be integrated over."""
    model = posterior.model
    if not isinstance(model, MixedRegression) or model.dim < LEAST_PARAMETERS:
        return False
    main = model.structure.main
    if main is None or not posterior.weights.size:
        return False
    term = model.structure.terms[main]
    few = model.dim - term.size <= MOST_WIDE
    return few and term.num_effects <= MOST_EFFECTS


def _around_mode(
    rng: Generator, posterior: Posterior, frame: MixedFrame, fit: Gaussian
) -> tuple[Integrated, Gaussian] | None:
    """π_w(φ) with as many nodes as it needs, and its own Gaussian fit; None where it has none.

    That of φ and all effects together has effects of the same width whatever τ is, and so says too
    little of how wide τ is: the fewer rows a group has, the more so.
    """
    for few, more in pairwise(NODES):
        integrated = Integrated(posterior, frame, few)
        better = quadratic_fit(rng, integrated.finite_log_density, fit)
        if better is None:
            return None
        fit = better
        draws = fit.draw(rng, CHECKED)
        finer = Integrated(posterior, frame, more)
        change = finer.finite_log_density(draws) - integrated.finite_log_density(draws)
        if np.ptp(change) <= MOST_CHANGE:
            return integrated, fit
    return None


def _accepted(rng: Generator, integrated: Integrated, pilot: Pilot, num_draws: int) -> Array | None:
    """Draws (S, p) of π_w(φ) by rejection; None if too few are accepted."""
    proposals, log_ratios = pilot.draws, pilot.log_ratios
    thresholds = np.log(rng.uniform(size=len(proposals)))
    for _ in range(MOST_ROUNDS):
        check_time()
        # The bound is that of all ratios, also for those that came before.
        kept = np.flatnonzero(thresholds < log_ratios - log_ratios.max())
        if kept.size >= num_draws:
            return proposals[kept[:num_draws]]
        share = kept.size / len(proposals)
        if share < LEAST_ACCEPTED:
            return None
        fresh = pilot.proposal.draw(rng, int(1.1 * (num_draws - kept.size) / share) + 10)
        found = log_densities(integrated, fresh) - pilot.proposal.log_density(fresh)
        proposals = np.concatenate([proposals, fresh])
        log_ratios = np.concatenate([log_ratios, found])
        thresholds = np.concatenate([thresholds, np.log(rng.uniform(size=len(fresh)))])
    return None
