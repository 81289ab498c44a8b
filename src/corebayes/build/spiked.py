"""Whether rows that count more than once have a posterior, asked before a tolerance is built for.

Under some models they have none (`samplers/modes/spikes.py`): no coreset of few rows can be
certified, and a build would grow until it has found that out. So a quarter of the rows, or 256 of
them, counts for all, and two of these lead to where they say most. If the mass rises there without
an end, a few thousand rows are kept as they are, which is the posterior itself; of more rows a
coreset is built without certificates.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from corebayes.build.run import ALL_ROWS, Begun, Run
from corebayes.build.tolerance import Tolerance
from corebayes.constructions.annealed import AnnealedSparseVI
from corebayes.constructions.construction import Info
from corebayes.deadline import OutOfTimeError
from corebayes.models.custom.touching import may_have_modes
from corebayes.problem import Problem
from corebayes.samplers.laplace import prior_fit
from corebayes.samplers.modes.places import MOST_BUILT_DIM
from corebayes.samplers.modes.search import distinct_modes, find_modes
from corebayes.samplers.modes.spikes import find_spike
from corebayes.samplers.posterior import Posterior
from corebayes.types import Estimate
from corebayes.watch.logs import say
from corebayes.watch.progress import Progress

# Rows that stand for all at the most and at the least, each for four or more; how many of them
# lead; draws of the prior, and how many of the highest Newton's method starts from.
MOST_ROWS, LEAST_ROWS, SHARE, LEADING = 256, 16, 4, 2
PRIOR_DRAWS, STARTS = 256, 2
# Rows that are kept whole: chains on so many take no longer than a build.
KEPT_WHOLE = 5000


def spike_of_few(problem: Problem) -> str | None:
    """Where the posterior of fewer rows rises without end, in words; None where nothing is found.

    Cost: two fits and some thousand densities of 256 rows.
    """
    model, data = problem.model, problem.data
    number = min(MOST_ROWS, (data.num_rows - data.num_left_out) // SHARE)
    if number < LEAST_ROWS:
        return None
    rng = np.random.default_rng(0)
    rows = data.take(data.some(rng, number))
    weights = rows.multiplicity()
    posterior = Posterior(model, rows, weights * (data.total_count / max(weights.sum(), 1.0)))
    prior = prior_fit(model, rows)
    draws = prior.mean + rng.normal(size=(PRIOR_DRAWS, model.dim)) @ prior.factor.T
    with np.errstate(all="ignore"):
        heights = posterior.finite_log_density(draws)
    modes = distinct_modes(find_modes(posterior, draws[np.argsort(-heights)[:STARTS]]))
    spike = find_spike(posterior, modes, 0, leading=LEADING) if modes else None
    if spike is None or not spike.way.rising:
        return None
    end = "∞" if spike.rises else "−∞"
    return (
        f"rows that count {posterior.weights[spike.row]:.3g} times have no posterior under this "
        f"model, whose mass rises without end as {model.parameter_names[spike.axis]} goes to {end} "
        "beside one of them"
    )


def foresee_spikes(run: Run, tolerance: Tolerance, bar: Progress) -> str | None:
    """Said before the work where no few rows can be certified; where all rows are a few thousand,
    they are taken, and this is the reason."""
    problem = run.problem
    searched = isinstance(run.method, AnnealedSparseVI) and may_have_modes(problem.model)
    if not searched or problem.model.dim > MOST_BUILT_DIM:
        return None
    found = None
    # What comes next knows what to do without time.
    with problem.data.stage("starting"), suppress(OutOfTimeError):
        found = spike_of_few(problem)
    if found is None:
        return None
    tolerance.hopeless = True
    say("spike", found)
    bar.note(found)
    if problem.data.num_rows > KEPT_WHOLE:
        return None
    run.state = Begun(problem.points(np.arange(problem.data.num_rows)))
    run.record(Info(Estimate(0.0, 0.0)))
    return f"{ALL_ROWS}; {found}"
