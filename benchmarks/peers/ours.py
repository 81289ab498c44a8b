"""corebayes and what it has beside coresets: Laplace's fit, importance sampling, subsamples."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from benchmarks.peers.problems import Problem
from benchmarks.peers.result import Clock, Result, independent

import corebayes as cb
from corebayes.exact.correct import corrected
from corebayes.models.structure import is_structured
from corebayes.samplers.laplace import full_posterior
from corebayes.samplers.posterior import Posterior
from corebayes.types import Gaussian

CHAINS, DRAWS = 4, 1000
# Rows of a uniform subsample, at most a fifth of all.
SUBSAMPLE = 10_000
WIDE = 1e4
# Of the truth: values of single rows, and effective draws that are enough.
TRUTH_POTENTIALS, TRUTH_DRAWS = 1.2e10, 8000
# Rows up to which NumPyro's NUTS, which owes nothing to a Laplace fit, is affordable, and with
# groups the quicker one.
FEW_ROWS, CORRECTED_POTENTIALS = 20_000, 6e8
# Imports are nobody's time, and corebayes makes these only where they are used.
for library in ("arviz", "arviz_stats", "numba", "scipy.optimize", "scipy.stats"):
    with suppress(ImportError):
        import_module(library)


def coreset(problem: Problem, seed: int, limit: float) -> Result:
    """Build, sample, certify."""
    clock = Clock()
    built = cb.build(problem.model, problem.rows, size=problem.size, seed=seed, progress=False)
    at_build = clock.seconds
    draws = cb.Automatic(chains=CHAINS).draw(
        np.random.default_rng(seed), Posterior.of(built), CHAINS * DRAWS
    )
    at_draws = clock.seconds
    found = cb.certify(built, problem.rows, seed=seed + 1)
    kl = "withheld" if found.reverse_kl is None else f"{found.reverse_kl.value:.1e}"
    word = "certified" if found.certified else "not certified"
    note = (
        f"{built.size:,} rows; build {at_build:.1f}, sample {at_draws - at_build:.1f}, certify "
        f"{clock.seconds - at_draws:.1f}; KL {kl}, {word}"
    )
    return Result(problem.named(draws.values), clock.seconds, note, found.pareto_k)


def laplace(problem: Problem, seed: int, limit: float) -> Result:
    if is_structured(problem.model):
        raise ValueError("no Laplace fit of a model with groups: its mode is far from its mass")
    clock = Clock()
    fit = full_posterior(problem.model, problem.rows, tolerance=1e-8)
    return independent(problem, fit, clock.seconds, seed)


def quadratic(problem: Problem, seed: int, limit: float) -> Result:
    """The likelihood as the quadratic at its own maximum, times the prior."""
    model = problem.model
    if is_structured(model):
        raise ValueError("no quadratic for a model with groups")
    clock = Clock()
    stored = full_posterior(
        replace(model, prior=cb.Normal(0.0, WIDE)).bind(problem.rows), problem.rows, tolerance=1e-8
    )
    fit = with_prior(stored, model.gaussian_prior)
    return independent(problem, fit, clock.seconds, seed)


def with_prior(stored: Gaussian, prior: Any) -> Gaussian:
    """The stored quadratic of the likelihood times a normal prior."""
    precision = np.linalg.inv(stored.factor @ stored.factor.T)
    total = precision + prior.precision
    mean = np.linalg.solve(total, precision @ stored.mean + prior.precision @ prior.mean)
    return Gaussian(mean, np.linalg.cholesky(np.linalg.inv(total)))


def laplace_is(problem: Problem, seed: int, limit: float) -> Result:
    clock = Clock()
    found = cb.laplace(problem.model, problem.rows, draws=1500, seed=seed, progress=False)
    values = problem.named(found.posterior["beta"].values)
    note = f"{found.attrs['effective_draws']:,.0f} effective draws of 1,500"
    effective = int(found.attrs["effective_draws"])
    return Result(values, clock.seconds, note, found.attrs["pareto_k"], ess=effective)


def uniform(problem: Problem, seed: int, limit: float) -> Result:
    """Rows at random, each counting for as many as it stands for."""
    clock, number = Clock(), problem.rows.num_rows
    size = min(SUBSAMPLE, number // 5)
    rng = np.random.default_rng(seed)
    block = problem.rows.take(np.sort(rng.choice(number, size, replace=False)))
    posterior = Posterior(problem.model, block, np.full(size, number / size))
    draws = cb.Automatic(chains=CHAINS).draw(rng, posterior, CHAINS * DRAWS)
    return Result(problem.named(draws.values), clock.seconds, f"{size:,} rows")


def truth(problem: Problem, seed: int, limit: float) -> Result:
    """The longest run that is affordable: NUTS of others on all rows, NumPyro's, or nutpie's of
    many rows with groups, and where that gets nowhere in minutes a coreset of twice the rows,
    corrected by all of them; of a GLM with many rows draws of Laplace's fit with importance
    weights of all rows."""
    if is_structured(problem.model) or problem.rows.num_rows <= FEW_ROWS:
        return _by_nuts(problem, seed, limit)
    clock = Clock()
    number = int(min(40_000, max(2_000, TRUTH_POTENTIALS / problem.rows.num_rows)))
    found = cb.laplace(problem.model, problem.rows, draws=number, seed=seed + 100, progress=False)
    shape = found.attrs["pareto_k"]
    return Result(
        problem.named(found.posterior["beta"].values),
        clock.seconds,
        f"Laplace with importance weights of all rows, k̂ {shape:.2f}",
        shape,
        ess=int(found.attrs["effective_draws"]),
    )


def _by_nuts(problem: Problem, seed: int, limit: float) -> Result:
    if problem.rows.num_rows <= FEW_ROWS:
        from benchmarks.peers.numpyro_methods import nuts

        found = nuts(problem, seed + 100, limit, enough=TRUTH_DRAWS)
        return found._replace(note=f"NumPyro NUTS on all rows, {found.note}")
    from benchmarks.peers.others import nutpie

    try:
        found = nutpie(problem, seed + 100, limit, low_rank=True)
    except ValueError:
        return _corrected(problem, seed)
    return found._replace(note=f"nutpie on all rows, low-rank mass matrix, {found.note}")


def _corrected(problem: Problem, seed: int) -> Result:
    clock = Clock()
    built = cb.build(
        problem.model, problem.rows, size=2 * problem.size, seed=seed + 100, progress=False
    )
    each = int(min(4_000, CORRECTED_POTENTIALS / (CHAINS * problem.rows.num_rows)))
    exactly = corrected(np.random.default_rng(seed + 101), built, problem.rows, each, CHAINS)
    note = (
        f"{built.size:,} rows, corrected by all of them: {exactly.acceptance:.0%} of the moves "
        "accepted"
    )
    return Result(problem.named(exactly.values), clock.seconds, note)
