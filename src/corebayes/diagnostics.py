"""How far π_w is from π: the estimators and bounds of the paper, and KL between Gaussians.

With the path γ(t) = (1 − t) w + t c from the coreset to the full posterior, the residual
r = Σ_n (c_n − w_n) f_n and the Fisher metric G(w) = Cov_w[f] (Campbell and Beronov 2019,
appendix A),

    KL(π_w ‖ π)                  = ½ E[Var_γ(T) r],  T ~ Beta(1, 2)     "reverse"
    KL(π ‖ π_w)                  = ½ E[Var_γ(T) r],  T ~ Beta(2, 1)     "forward"
    KL(π_w ‖ π) + KL(π ‖ π_w)    =   E[Var_γ(T) r],  T ~ U[0, 1]        "symmetric"
                                 ≤ C · J   (Proposition 2: `metric_constant`, `hilbert_objective`)

The lemma as printed has 2 for ½; its proof gives ∫ (1 − t) Var_γ(t) r dt, and Beta(1, 2)
has density 2 (1 − t). Only with ½ do the first two lines add up to the third.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from corebayes.arguments import checked_whole
from corebayes.coreset import Coreset
from corebayes.problem import Problem
from corebayes.rows import open_rows
from corebayes.samplers.draws import Sampler
from corebayes.samplers.exact import is_conjugate
from corebayes.samplers.laplace import Laplace, full_posterior
from corebayes.samplers.posterior import Posterior
from corebayes.scan.passes import Executor
from corebayes.scan.query import Totals
from corebayes.tangent.closed_form import ClosedForm
from corebayes.tangent.gaussian import gaussian_kl as gaussian_kl
from corebayes.tangent.geometry import Geometry
from corebayes.tangent.monte_carlo import MonteCarlo, MonteCarloSpace
from corebayes.types import Array, Estimate, Gaussian, WeightedPoints

Direction = Literal["reverse", "forward", "symmetric"]

# Draws of one pass: blocks of 512 rows at this many draws take 16 MB.
PASS_DRAWS = 4096


def laplace_kl(
    coreset: Coreset,
    data: Any,
    *,
    direction: Direction = "reverse",
    normalise: bool = False,
    executor: Executor | None = None,
) -> float:
    """KL between the Laplace fits of π_w and π, as in the paper's figures; exact if conjugate.

    With `normalise` it is divided by its value for the prior (no rows at all).
    Cost: about eight passes of N·d² flops.
    """
    ours = Posterior.of(coreset)
    full = full_posterior(coreset.model, data, executor)
    fit = Laplace(tolerance=1e-20).fit(ours)
    value = _directed(fit, full, direction)
    if normalise:
        value /= _directed(Laplace().fit(ours.prior), full, direction)
    return value


def path_kl(
    rng: np.random.Generator,
    coreset: Coreset,
    data: Any,
    *,
    direction: Direction = "reverse",
    num_temperatures: int = 64,
    num_draws: int = 64,
    sampler: Sampler | None = None,
    executor: Executor | None = None,
) -> Estimate:
    """The unbiased path estimator of KL (lemma of appendix A), with its standard error.

    Draws of π_γ(t) are exact for conjugate models, from their sufficient statistics. For others
    they weight all rows, which must fit in memory, and come from `sampler`: the Laplace
    approximation unless another is given. Cost: num_temperatures · num_draws · N potentials.
    """
    # Two to have a variance.
    checked_whole("num_temperatures", num_temperatures, 2)
    checked_whole("num_draws", num_draws, 2)
    factor, temperatures = _temperatures(rng, direction, num_temperatures)
    problem = _problem(coreset, data, executor)
    draws = np.stack(list(_path_draws(rng, coreset, problem, temperatures, num_draws, sampler)))
    ratios = log_ratios(coreset, data, draws.reshape(-1, coreset.model.dim), executor)
    # (c − w)ᵀ G(γ(t)) (c − w) = Var_γ(t) r
    variances = ratios.reshape(num_temperatures, num_draws).var(axis=1, ddof=1)
    error = variances.std(ddof=1) / np.sqrt(num_temperatures)
    return Estimate(factor * float(variances.mean()), factor * float(error))


def log_ratios(
    coreset: Coreset,
    data: Any,
    draws: Array,
    executor: Executor | None = None,
) -> Array:
    """r(θ_s) = Σ_n c_n f_n(θ_s) − Σ_i w_i f_i(θ_s), less its mean: log π/π_w up to a constant.

    The rows are checked on the way, as `build` does. Cost: one pass of N·S potentials for every
    4,096 draws.
    """
    model, rows = coreset.model, open_rows(data, executor=executor)
    row_check = getattr(model, "row_check", None)
    rows.check(None if row_check is None else row_check())
    parts: list[Array] = []
    for first in range(0, len(draws), PASS_DRAWS):
        # Potentials are centred before they are summed; a draw all parts share ties them together.
        part = np.concatenate([draws[:1], draws[first : first + PASS_DRAWS]])
        space = MonteCarloSpace(model, part)
        ratio = rows.ask(Totals(space)).total
        if coreset.size:
            ratio = ratio - space.combine(space.embed(coreset.rows), coreset.weights)
        parts.append((ratio[1:] - ratio[0]) * np.sqrt(len(part)))
    ratios = np.concatenate(parts)
    return ratios - ratios.mean()


def dense_weights(coreset: Coreset) -> Array:
    """The weight of every row, zero outside the coreset, shape (N,)."""
    if coreset.indices.min(initial=0) < 0:
        raise ValueError(
            "the coreset's rows were learned and are none of the data's: "
            "no row of the data has a weight"
        )
    weights = np.zeros(coreset.num_rows)
    weights[coreset.indices] = coreset.weights
    return weights


def fisher_metric(
    rng: np.random.Generator,
    problem: Problem,
    weights: Array,
    geometry: Geometry | None = None,
) -> Array:
    """G(w) = Cov_w[f] over all rows, shape (N, N), at weights of shape (N,). For small N only.

    In closed form for conjugate models; from the draws of a `MonteCarlo` geometry otherwise, of
    which there must be many more than G has rank. Cost: N² covariances.
    """
    rows = problem.data.take(np.arange(problem.data.num_rows))
    active = np.flatnonzero(weights)
    points = WeightedPoints(active, rows.take(active), weights[active])
    space = _geometry(problem, geometry).space(rng, problem, points)
    return space.gram(space.embed(rows))


def hilbert_objective(
    rng: np.random.Generator,
    coreset: Coreset,
    data: Any,
    reference: Array,
    *,
    geometry: Geometry | None = None,
) -> float:
    """J(w) = (c − w)ᵀ G(ŵ) (c − w), the Hilbert coreset objective with π̂ = π_ŵ, ŵ = `reference`."""
    problem = _problem(coreset, data)
    missing = _counts(problem) - dense_weights(coreset)
    return float(missing @ fisher_metric(rng, problem, reference, geometry) @ missing)


def metric_constant(
    rng: np.random.Generator,
    coreset: Coreset,
    data: Any,
    reference: Array,
    *,
    geometry: Geometry | None = None,
    num_nodes: int = 16,
    rank_tolerance: float = 1e-10,
) -> float:
    """C = E_U[λ_max(G(ŵ)^{-½} G((1 − U) w + U c) G(ŵ)^{-½})], U ~ U[0, 1] (Proposition 2).

    The expectation by Gauss–Legendre quadrature. Directions in which G(ŵ) vanishes are
    combinations of potentials that are constant in θ, under every π_w: they are left out.
    Cost: num_nodes metrics of N² covariances, and an eigendecomposition of N³ flops.
    """
    problem = _problem(coreset, data)
    weights, counts = dense_weights(coreset), _counts(problem)
    values, vectors = np.linalg.eigh(fisher_metric(rng, problem, reference, geometry))
    kept = values > rank_tolerance * values[-1]
    # G(ŵ)^{-½} on its range, up to a rotation that leaves λ_max alone
    root = vectors[:, kept] / np.sqrt(values[kept])
    nodes, quadrature = np.polynomial.legendre.leggauss(num_nodes)
    largest: list[float] = []
    for t in 0.5 * (nodes + 1.0):
        metric = fisher_metric(rng, problem, (1.0 - t) * weights + t * counts, geometry)
        largest.append(float(np.linalg.eigvalsh(root.T @ metric @ root)[-1]))
    return float(0.5 * quadrature @ np.array(largest))


def _directed(coreset: Gaussian, full: Gaussian, direction: Direction) -> float:
    reverse = gaussian_kl(coreset, full) if direction != "forward" else 0.0
    forward = gaussian_kl(full, coreset) if direction != "reverse" else 0.0
    return reverse + forward


def _temperatures(
    rng: np.random.Generator, direction: Direction, number: int
) -> tuple[float, Array]:
    """The factor in front of E[Var_γ(T) r], and draws of T."""
    if direction == "reverse":
        return 0.5, rng.beta(1.0, 2.0, size=number)
    if direction == "forward":
        return 0.5, rng.beta(2.0, 1.0, size=number)
    return 1.0, rng.random(number)


def _path_draws(
    rng: np.random.Generator,
    coreset: Coreset,
    problem: Problem,
    temperatures: Array,
    num_draws: int,
    sampler: Sampler | None,
) -> Iterator[Array]:
    """Draws of π_γ(t) for each temperature t."""
    model, data = coreset.model, problem.data
    if sampler is None and is_conjugate(model):
        full: Any = problem.statistics
        ours: Any = model.statistics(coreset.rows, coreset.weights)
        for t in temperatures:
            mixed = type(full)(*((1 - t) * a + t * b for a, b in zip(ours, full, strict=True)))
            yield model.posterior(mixed).draw(rng, num_draws)
        return
    sampler = sampler or Laplace()
    rows, location = data.take(np.arange(data.num_rows)), None
    counts, weights = _counts(problem), dense_weights(coreset)
    for t in temperatures:
        # γ(t) = (1 − t) w + t c
        gamma = (1.0 - t) * weights + t * counts
        draws = sampler.draw(rng, Posterior(model, rows, gamma), num_draws, location)
        location = draws.location
        yield draws.equally_weighted(rng, num_draws)


def _problem(coreset: Coreset, data: Any, executor: Executor | None = None) -> Problem:
    return Problem(coreset.model, open_rows(data, executor=executor))


def _geometry(problem: Problem, geometry: Geometry | None) -> Geometry:
    if geometry is not None:
        return geometry
    return ClosedForm() if is_conjugate(problem.model) else MonteCarlo(num_draws=2000)


def _counts(problem: Problem) -> Array:
    return problem.data.take(np.arange(problem.data.num_rows)).multiplicity()
