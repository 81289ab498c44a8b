"""Fifty priors on one data set: what each way of refitting costs, and how far it is off.

    20 normal scales, 15 shifts, 15 of both, on the counts with three rare indicators

The truth of each prior is Laplace's fit with importance weights of all rows, made afresh; its own
cost is the cost of having no shortcut. Errors are of posterior means, in posterior standard
deviations, the largest over the parameters of each prior, without the noise of draws where a method
has an exact mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from benchmarks.peers.ours import WIDE, with_prior
from benchmarks.peers.result import Clock
from benchmarks.reuse import counts, priors

import corebayes as cb
from corebayes.compose.refit import changed_coreset
from corebayes.samplers.laplace import Laplace, full_posterior
from corebayes.samplers.posterior import Posterior

ROWS, SIZE, DRAWS = 100_000, 80, 600
METHODS = ("laplace-is", "coreset", "quadratic", "reweighted")

Moments = list[list[float]]


def weighted_moments(draws: np.ndarray, logs: np.ndarray) -> list[list[float]]:
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    mean = shares @ draws
    return [mean.tolist(), np.sqrt(shares @ (draws - mean) ** 2).tolist()]


def by_laplace_is(rows: Any, model: Any, seed: int) -> Iterator[Moments]:
    """A fit and a pass of draws for every prior; draws are matched to the fit's moments."""
    start = None
    for prior in priors(rows.template.X.shape[1], seed):
        bound = type(model)(link="log", prior=prior).bind(rows)
        fit = full_posterior(bound, rows, start=start, tolerance=1e-8)
        start = fit.mean
        draws = fit.draw_matched(np.random.default_rng(seed), DRAWS)
        block = rows.take(np.arange(rows.num_rows))
        z = np.linalg.solve(fit.factor, (draws - fit.mean).T)
        heights = bound.sum_potentials(draws, block) + bound.log_prior(draws)
        yield weighted_moments(draws, heights + 0.5 * np.square(z).sum(axis=0))


def by_coreset(rows: Any, model: Any, seed: int) -> Iterator[Moments]:
    """One build; then weights of the coreset's rows in place of all."""
    coreset = cb.build(model, rows, size=SIZE, seed=seed, progress=False)
    for prior in priors(model.dim, seed):
        changed = changed_coreset(coreset, cb.PoissonRegression(link="log", prior=prior))
        posterior = Posterior.of(changed)
        fit = Laplace().fit(posterior)
        draws = fit.draw_matched(np.random.default_rng(seed), DRAWS)
        z = np.linalg.solve(fit.factor, (draws - fit.mean).T)
        logs = posterior.log_density(draws) + 0.5 * np.square(z).sum(axis=0)
        yield weighted_moments(draws, logs)


def by_quadratic(rows: Any, model: Any, seed: int) -> Iterator[Moments]:
    """The likelihood's quadratic at its maximum, stored."""
    wide = cb.PoissonRegression(link="log", prior=cb.Normal(0.0, WIDE)).bind(rows)
    stored = full_posterior(wide, rows, tolerance=1e-8)
    for prior in priors(model.dim, seed):
        fit = with_prior(stored, prior.bind(model.dim))
        yield [fit.mean.tolist(), np.sqrt(np.square(fit.factor).sum(axis=1)).tolist()]


def by_reweighting(rows: Any, model: Any, seed: int) -> Iterator[Moments]:
    """4,000 draws under the first prior, weighed by the new prior over the first."""
    found = cb.laplace(model, rows, draws=4000, seed=seed, progress=False)
    draws = found.posterior["beta"].values.reshape(-1, model.dim)
    for prior in priors(model.dim, seed):
        logs = prior.bind(model.dim).log_density(draws) - model.log_prior(draws)
        yield weighted_moments(draws, logs)


def measure(method: str, seed: int) -> dict[str, Any]:
    rows = cb.open(counts(seed, ROWS))
    model = cb.PoissonRegression(link="log", prior=cb.Normal(0.0, 1.0)).bind(rows)
    ways = dict(
        zip(METHODS, (by_laplace_is, by_coreset, by_quadratic, by_reweighting), strict=True)
    )
    clock, moments, first = Clock(), list[Moments](), 0.0
    for found in ways[method](rows, model, seed):
        first = first or clock.seconds
        moments.append(found)
    return {"seconds": clock.seconds, "first": first, "moments": moments}


def compared(row: dict[str, Any], truth: dict[str, Any]) -> tuple[float, float, float, float]:
    """Median and largest error of a mean, smallest and largest ratio of standard deviations."""
    ours, exact = np.array(row["moments"]), np.array(truth["moments"])
    off = (np.abs(ours[:, 0] - exact[:, 0]) / exact[:, 1]).max(axis=1)
    ratios = ours[:, 1] / exact[:, 1]
    return float(np.median(off)), float(off.max()), float(ratios.min()), float(ratios.max())
