"""nutpie on the PyMC model of all rows, and stochastic gradient Langevin dynamics."""

from __future__ import annotations

import numpy as np
from benchmarks.full_nuts import nutpie_on_all_rows
from benchmarks.peers.problems import Problem, flattened
from benchmarks.peers.result import ENOUGH, Clock, Result, smallest_ess

import corebayes as cb
from corebayes.samplers.laplace import full_posterior

TUNE = 300
# Every chain is tuned from the start, so there is one where draws are expensive, as for NumPyro.
FEW_ROWS, MANY_CHAINS, DRAWS = 20_000, 4, 2000
BATCH, STEP, CHECKED = 1000, 0.2, 2000


def nutpie(problem: Problem, seed: int, limit: float, *, low_rank: bool = False) -> Result:
    """Chains in threads; stopped at the limit, what they have so far counts."""
    chains = MANY_CHAINS if problem.rows.num_rows <= FEW_ROWS else 1
    run = nutpie_on_all_rows(
        problem.everything,
        seed=seed,
        tune=TUNE,
        draws=DRAWS // chains,
        chains=chains,
        limit=limit,
        low_rank=low_rank,
    )
    values = {name: own.values for name, own in run.trace.posterior.data_vars.items()}
    known = problem.named(np.zeros((1, 1, problem.model.dim)))
    draws = {name: own for name, own in flattened(values).items() if name in known}
    # Chains that are stopped are of unequal lengths, and the shorter ones end in NaN.
    whole = np.all([np.isfinite(own).all(axis=0) for own in draws.values()], axis=0)
    number = int(np.count_nonzero(whole))
    if number < 10:
        raise ValueError(f"no draws within {limit:g} CPU s of sampling: still tuning")
    draws = {name: own[:, whole] for name, own in draws.items()}
    note = f"{chains} × {number} draws after {TUNE} to tune"
    note += ", stopped at the limit" if run.stopped else ""
    return Result(draws, run.seconds, note)


def sgld(problem: Problem, seed: int, limit: float) -> Result:
    """Langevin steps with gradients of 1,000 rows, and the mode's as control variates.

        θ += ½ ε Σ g + √ε L ξ,   g = (N/m) Σ_{n in batch} (∇f_n(θ) − ∇f_n(θ̂)) + ∇(π − prior at θ̂)

    started at the mode θ̂ with Laplace's covariance Σ = LLᵀ as its preconditioner.
    """
    model = problem.model
    if not isinstance(model, cb.GLM):
        raise ValueError("gradients of single rows are for models without groups here")
    X, y = problem.block.X, model.target(problem.block)
    clock = Clock()
    fit = full_posterior(model, problem.rows, tolerance=1e-8)
    rng, number = np.random.default_rng(seed), len(y)
    batch = min(BATCH, number // 2)
    covariance = fit.factor @ fit.factor.T
    at_mode = model.log_prior_gradient(fit.mean)
    theta, kept = fit.mean.copy(), list[np.ndarray]()

    def slopes(at: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return model.derivatives((X[rows] @ at)[:, None], y[rows][:, None], 1)[0][:, 0]

    while True:
        for _ in range(CHECKED):
            rows = rng.integers(number, size=batch)
            change = slopes(theta, rows) - slopes(fit.mean, rows)
            gradient = X[rows].T @ change * (number / batch)
            gradient += model.log_prior_gradient(theta) - at_mode
            noise = fit.factor @ rng.standard_normal(theta.size)
            theta = theta + 0.5 * STEP * covariance @ gradient + np.sqrt(STEP) * noise
            kept.append(theta)
        draws = problem.named(np.array(kept)[None])
        ess = smallest_ess(draws)
        if ess >= ENOUGH or clock.seconds * (1.0 + CHECKED / len(kept)) > limit:
            break
    note = f"{len(kept):,} steps of {batch:,} rows"
    return Result(draws, clock.seconds, note, ess=int(ess))
