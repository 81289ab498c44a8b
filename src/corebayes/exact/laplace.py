"""Laplace's approximation of the posterior of all rows, made exact by importance weights.

    q = N(θ̂, (−∇² log π(θ̂))⁻¹) with a share of t,    weights ∝ π(θ_s) / q(θ_s),    θ_s ~ q

Newton's method takes a pass a step, from the mode of a subsample; all draws are weighed in one
more. For one fit of one model whose posterior is nearly Gaussian nothing is cheaper, and k̂ says
whether it was: where weights have a heavy tail, or to fit again and again, build a coreset.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from corebayes.arguments import checked_seed, checked_whole
from corebayes.exact.bridge import log_mean_ratio
from corebayes.exact.cover import modes_of
from corebayes.exact.residual import LogLikelihoods
from corebayes.exact.smoothed import MAX_PARETO_K
from corebayes.models.structure import is_hierarchical
from corebayes.problem import Problem
from corebayes.rows import Rows, open_rows
from corebayes.sample import assembled, draw_statistics, model_group, variables
from corebayes.samplers.draws import systematic
from corebayes.samplers.exact import is_conjugate
from corebayes.samplers.laplace import asked_posterior
from corebayes.samplers.modes.search import Mode, distinct_modes, log_volume, shares_of
from corebayes.samplers.pareto import smooth, tail_length
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.proposal import Component, Proposal
from corebayes.samplers.remembered import Remembered
from corebayes.scan.passes import Executor
from corebayes.scan.query import Derivatives
from corebayes.tangent.geometry import random_points
from corebayes.types import Array, Gaussian, Model, Rng
from corebayes.version import __version__
from corebayes.watch.progress import show_steps

# Rows whose modes Newton's method starts from: 20 a parameter, and no fewer than these.
FEWEST_ROWS, ROWS_A_PARAMETER = 5_000, 20
# The share of the proposals that has heavier tails, and of a mode that is hardly there.
HEAVY, LEAST_SHARE = 0.2, 0.05
MOST_MODES = 4
# Independent draws are of any number of chains; what summarises them wants to compare some.
CHAINS = 4
# On the squared distance to the mode, in posterior standard deviations.
TOLERANCE = 1e-8
# Log weights that differ by less are the same.
SAME = 1e-6


def laplace(
    model: Model,
    data: Any,
    *,
    draws: int = 1000,
    seed: int = 0,
    resample: bool = True,
    progress: bool | None = None,
    memory: str | int | None = None,
    executor: Executor | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    counts: Any = None,
    on_bad: str = "raise",
) -> Any:
    """Draws of the posterior of all rows around Laplace's fit: ArviZ data, as `sample` gives, of
    four chains.

    `data` is what `build` takes. The draws are weighed by π/q with all rows, smoothed, and drawn
    again in proportion (with `resample=False` the weights are in `sample_stats.log_weight`). The
    attributes have `pareto_k` of the weights, `effective_draws`, `log_evidence` with
    `log_evidence_se`, nothing left out (a flat prior counts as one everywhere, so that only models
    with the same ones can be compared), and `num_passes`. Above k̂ = 0.7 there is a warning: the
    posterior is not nearly Gaussian, and a coreset is the better tool. So it is to fit more than
    once, with other priors or with fewer columns. Cost: about five passes of N·d² flops, one of
    N · draws potentials.
    """
    checked_whole("draws", draws, 100)
    rng = np.random.default_rng(checked_seed(seed))
    rows = open_rows(
        data,
        target=target,
        features=features,
        counts=counts,
        on_bad=on_bad,
        memory=memory,
        executor=executor,
    )
    problem = Problem(model.bind(rows), rows.check())
    if is_hierarchical(problem.model):
        raise ValueError(
            "laplace is for models whose rows touch all parameters, and the mode of a model with "
            "groups, or with scales that only its prior has, is far from its mass: build a "
            "coreset, and sample or correct it"
        )
    with show_steps(progress) as steps, rows.stage("laplace"):
        rows.executor = steps.watch(rows.executor)
        steps.begin("fitting all rows")
        fitted = _Fitted(problem)
        proposal = fitted.proposal(rng)
        steps.begin("weighing the draws")
        number = CHAINS * -(-draws // CHAINS)
        return _weighted(rng, problem, proposal, number, fitted.num_passes, seed, resample=resample)


class _Fitted:
    """Newton's method on all rows, from the modes of some of them."""

    def __init__(self, problem: Problem):
        self._problem = problem
        self._ask = Remembered(problem.ask)

    @property
    def num_passes(self) -> int:
        # Sufficient statistics take one.
        return max(1, self._ask.num_passes)

    def proposal(self, rng: Rng) -> Proposal:
        problem = self._problem
        if is_conjugate(problem.model):
            return Proposal((Component(problem.full_posterior, 1.0),))
        modes = [self._mode(mode.fit.mean) for mode in self._starts(rng)]
        modes = distinct_modes(modes)
        degrees = max(5.0, float(problem.model.dim))
        parts: list[Component] = []
        for mode, share in zip(modes, np.maximum(shares_of(modes), LEAST_SHARE), strict=True):
            parts.append(Component(mode.fit, (1.0 - HEAVY) * share))
            parts.append(Component(mode.fit, HEAVY * share, degrees))
        return Proposal(tuple(parts))

    def _starts(self, rng: Rng) -> list[Mode]:
        """The modes of a subsample that counts for all rows."""
        problem = self._problem
        wanted = max(FEWEST_ROWS, ROWS_A_PARAMETER * problem.model.dim)
        points = random_points(rng, problem, wanted)
        points = points.scaled(problem.data.total_count / points.weights.sum())
        found = modes_of(rng, Posterior(problem.model, points.rows, points.weights))
        if not found:
            raise ValueError(
                "Newton's method finds no mode of the posterior: there is no Laplace fit. Build a "
                "coreset, and sample it"
            )
        return found[:MOST_MODES]

    def _mode(self, start: Array) -> Mode:
        model = self._problem.model
        fit = asked_posterior(model, self._ask, start=start, tolerance=TOLERANCE)
        height = self._ask(Derivatives(model, fit.mean)).value
        return Mode(fit, height + float(model.log_prior(fit.mean[None])[0]) + log_volume(fit))


def _weighted(
    rng: Rng,
    problem: Problem,
    proposal: Proposal,
    number: int,
    num_passes: int,
    seed: int,
    *,
    resample: bool,
) -> Any:
    """The draws of the proposal as draws of π, with what they are worth."""
    model, rows = problem.model, problem.data
    fit = proposal.components[0].fit
    values = proposal.draw(rng, number)
    heights = _log_densities(model, rows, fit, values)
    ratios = heights - proposal.log_density(values)
    evidence = log_mean_ratio(ratios[None], independent=True)
    smoothed, shape = smooth(ratios[None].copy(), tail_length(number))
    # Equal up to round-off, as of a conjugate model, they have no tail.
    pareto_k = float(shape[0]) if np.ptp(ratios) > SAME else 0.0
    log_weights = smoothed[0]
    effective = 1.0 / float(np.sum(np.exp(2.0 * log_weights)))
    _warn_if_poor(pareto_k, effective, number)
    stats = {"lp": heights}
    if resample:
        chosen = rng.permutation(systematic(rng, np.exp(log_weights), number))
        values, stats = values[chosen], {"lp": heights[chosen]}
    else:
        stats["log_weight"] = log_weights
    attributes = {
        "model": type(model).__name__,
        "sampler": "Laplace's fit of all rows, Pareto-smoothed importance sampling",
        "sampling_seed": seed,
        "num_rows": rows.num_rows,
        "total_count": rows.total_count,
        "pareto_k": pareto_k,
        "effective_draws": effective,
        "log_evidence": evidence.value,
        "log_evidence_se": evidence.standard_error,
        "num_passes": num_passes + 1,
        "corebayes_version": __version__,
    }
    known = {
        "column_names": list(rows.column_names),
        "target_name": rows.target_name,
        "design": rows.design,
    }
    shaped = values.reshape(CHAINS, -1, model.dim)
    in_chains = {name: seen.reshape(CHAINS, -1) for name, seen in stats.items()}
    groups = {
        "posterior": variables(model, shaped),
        "sample_stats": draw_statistics(in_chains, shaped),
        **model_group(model, known),
    }
    return assembled(groups, attributes)


def _log_densities(model: Model, rows: Rows, fit: Gaussian, draws: Array) -> Array:
    """log π_0(θ) + Σ_n c_n log p(x_n | θ) at draws; −∞ where it is not finite. One pass."""
    found = rows.ask(LogLikelihoods(model, fit.mean, draws))
    with np.errstate(all="ignore"):
        values = found.relative + model.log_prior(draws) + found.at_anchor + found.base
    return np.where(np.isfinite(values), values, -np.inf)


def _warn_if_poor(pareto_k: float, effective: float, number: int) -> None:
    limit = min(MAX_PARETO_K, 1.0 - 1.0 / np.log10(number))
    if pareto_k > limit:
        warnings.warn(
            f"the posterior of all rows is not close to Laplace's fit (Pareto k̂ = {pareto_k:.2f}, "
            f"above {limit:.2f}; {effective:,.0f} effective draws of {number:,}): the weighted "
            "draws miss part of it. Build a coreset, and sample or correct it",
            UserWarning,
            stacklevel=4,
        )
