"""A family by a coreset, and by the likelihood of another library on all rows.

With a flat prior the posterior is about Gaussian around the other library's estimate, with its
standard errors; about, since posteriors are skewed. So there is a second comparison that has no
such slack: draws around the estimate get importance weights by the other library's likelihood of
all rows, times the prior, which makes them draws of the posterior of all rows.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from benchmarks.families.cases import Case, rows_of
from benchmarks.families.others import Other
from benchmarks.summaries import summary
from scipy import stats

import corebayes as cb

TOL, CERTIFIED_TOL = 0.002, 0.005
CHAINS, DRAWS = 4, 4000
# Importance draws: some to find where the posterior is, more to measure it.
ROUNDS, DEGREES = (1000, 2000, 6000), 5.0
WIDE = {"log": cb.HalfNormal(100.0), "logit": cb.Beta(1.0, 1.0), "identity": cb.Normal(0.0, 100.0)}


class Moments(NamedTuple):
    mean: np.ndarray
    sd: np.ndarray
    error: np.ndarray
    """Of the mean, by Monte Carlo."""


def model_of(case: Case, frame: Any) -> tuple[Any, Any]:
    """The model with priors as wide as nothing, and its rows."""
    flat = cb.Normal(0.0, 100.0)
    model, rows = cb.from_formula(case.formula, frame, family=case.family, prior=flat)
    family = model.bind(rows).family if isinstance(model, cb.MixedRegression) else model
    learned = {one.name: WIDE[one.transform] for one in family.learnable}
    if not learned:
        return model, rows
    return cb.from_formula(case.formula, frame, family=case.family, prior=flat, learned=learned)


def by_weights(other: Other, log_prior: Any, seed: int) -> tuple[Moments, float]:
    """The posterior of all rows by the other library's likelihood, and k̂ of the weights."""
    from arviz_stats.base import array_stats

    rng = np.random.default_rng(seed)
    centre, factor = other.estimate, np.linalg.cholesky(_curvature(other))
    pareto_k = np.nan
    weights, draws = np.empty(0), np.empty(0)
    for number in ROUNDS:
        z = stats.t.rvs(DEGREES, size=(number, centre.size), random_state=rng)
        draws = centre + z @ factor.T
        heights = np.array([other.log_likelihood(theta) for theta in draws]) + log_prior(draws)
        heights = np.where(np.isfinite(heights), heights, -np.inf)
        ratios = heights - stats.t.logpdf(z, DEGREES).sum(axis=1)
        # It wants what a weight divides by, as of log-likelihoods that are left out.
        smooth, pareto_k = array_stats.psislw(ratios.max() - ratios)
        weights = np.exp(smooth - np.max(smooth))
        weights /= weights.sum()
        centre = weights @ draws
        factor = np.linalg.cholesky(np.cov(draws.T, aweights=weights))
    gaps = draws - centre
    error = np.sqrt(np.square(weights) @ np.square(gaps))
    return Moments(centre, np.sqrt(weights @ np.square(gaps)), error), float(pareto_k)


def _curvature(other: Other) -> np.ndarray:
    """The inverse of minus the second derivatives at the estimate, by differences."""
    from statsmodels.tools.numdiff import approx_hess3

    steps = np.where(np.isfinite(other.error), 0.1 * other.error, 1e-3)
    return np.linalg.inv(-approx_hess3(other.estimate, other.log_likelihood, epsilon=steps))


def by_coreset(model: Any, rows: Any, seed: int) -> tuple[Any, Moments, dict[str, Any]]:
    began = time.process_time()
    coreset = cb.build(model, rows, tol=TOL, seed=seed, progress=False)
    built = time.process_time()
    posterior = cb.Posterior.of(coreset)
    sampler = cb.Automatic(chains=CHAINS)
    draws = sampler.draw(np.random.default_rng(seed), posterior, CHAINS * DRAWS).values
    sampled = time.process_time()
    certificate = cb.certify(coreset, rows, tol=CERTIFIED_TOL, seed=seed + 1)
    found = [summary(draws[:, :, k]) for k in range(coreset.model.dim)]
    values = np.array([one["values"] for one in found])
    errors = np.array([one["errors"] for one in found])
    kl = certificate.reverse_kl
    said = {
        "rows": coreset.size,
        "build": built - began,
        "sample": sampled - built,
        "kl": None if kl is None else list(kl),
        "certified": certificate.certified,
    }
    return coreset, Moments(values[:, 0], values[:, 1], errors[:, 0]), said


def measure(case: Case, seed: int) -> dict[str, Any]:
    frame, names, arrays = rows_of(case)
    other = case.other(arrays)
    model, rows = model_of(case, frame)
    coreset, ours, said = by_coreset(model, rows, seed)
    called = coreset.model.parameter_names
    if called[: len(names)] != names and not called[0].startswith(f"{names[0]}["):
        raise ValueError(f"columns are {called[: len(names)]}, and formulaic's are {names}")
    truth, pareto_k = by_weights(other, coreset.model.log_prior, seed + 2)
    off = np.abs(ours.mean - truth.mean) / truth.sd
    noise = np.hypot(ours.error, truth.error) / truth.sd
    worst = int(np.argmax(off - noise))
    known = np.isfinite(other.error)
    from_estimate = np.abs(ours.mean - other.estimate)[known] / other.error[known]
    ratios = (ours.sd / other.error)[known]
    return {
        "data": case.data,
        "formula": case.formula,
        "num_rows": arrays.y.size,
        "num_parameters": coreset.model.dim,
        **said,
        "other": other.called,
        "estimate_off": float(from_estimate.max()) if known.any() else None,
        "error_ratios": [float(ratios.min()), float(ratios.max())] if known.any() else None,
        "off": float(off[worst]),
        "noise": float(noise[worst]),
        "worst": called[worst],
        "sd_ratios": [float(np.min(ours.sd / truth.sd)), float(np.max(ours.sd / truth.sd))],
        "pareto_k": pareto_k,
        "seed": seed,
    }
