"""Simulation-based calibration of `correct`, with coresets that are deliberately poor.

    python -m benchmarks.calibration [--replications 200] [--models logistic student-t]
                                     [--minutes 8]

Parameters are drawn from the prior and rows from the model, so ranks of the true parameters among
draws of the posterior are uniform (Talts et al. 2018) and 90 % intervals cover 90 % of them. The
coreset's weights are spoilt until KL(π_w ‖ π) is half a nat: too large, so that its posterior is
too narrow, and uneven, so that it lies elsewhere. Its own draws are then visibly off; corrected
ones must not be. Every replication is kept (`kept.py`), so that runs of a few minutes add up.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.kept import Kept
from scipy import stats

import corebayes as cb
from corebayes.diagnostics import gaussian_kl
from corebayes.exact.cover import coreset_draws
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.posterior import Posterior

KL, NUM_RANKED, COVERED = 0.5, 100, 0.9
DIM, GROUPS = 4, 6


@dataclass(frozen=True)
class Case:
    """A model, and rows of it with the parameters they come from."""

    model: Any
    simulate: Callable[[np.random.Generator], tuple[np.ndarray, Any]]
    size: int | None
    """Rows of the coreset before it is spoilt; None for all of them."""
    levels: Callable[[np.ndarray], np.ndarray] | None = None
    """Functions of the parameters (S, d) that are ranked too, where rows say more of these."""

    uneven: Callable[[Any], np.ndarray] | None = None
    """What weights are uneven in, of a block; None for chance, which many rows average out."""

    def ranked(self, draws: np.ndarray) -> np.ndarray:
        return draws if self.levels is None else np.hstack([draws, self.levels(draws)])


def regression(model: Any, respond: Callable[..., np.ndarray], num_rows: int = 300) -> Case:
    def simulate(rng: np.random.Generator) -> tuple[np.ndarray, Any]:
        theta = 0.7 * rng.standard_normal(DIM)
        X = rng.standard_normal((num_rows, DIM)) * [1.0, 0.5, 1.0, 0.8]
        return theta, (X, respond(rng, X @ theta).astype(float))

    return Case(model, simulate, DIM * (DIM + 3) // 2 + 1)


def _location(draws: np.ndarray, block: Any) -> tuple[np.ndarray, np.ndarray]:
    group = block["group"].astype(int)
    spread = np.exp(draws[:, 1])
    return group, draws[:, 0] + spread * draws[:, 2 + group].T


def hierarchical_likelihood(draws: np.ndarray, block: Any) -> np.ndarray:
    """y ~ N(μ + τ η_g, 1) with θ = (μ, log τ, η_1, …): a scale that few groups say little about."""
    _, location = _location(draws, block)
    return -0.5 * np.square(block["y"][:, None] - location) - 0.5 * np.log(2.0 * np.pi)


CENTRE, SCALE = np.r_[0.0, -0.5, np.zeros(GROUPS)], np.r_[1.0, 0.5, np.ones(GROUPS)]


def hierarchical_prior(draws: np.ndarray) -> np.ndarray:
    constant = np.sum(np.log(SCALE)) + 0.5 * SCALE.size * np.log(2.0 * np.pi)
    return -0.5 * np.sum(np.square((draws - CENTRE) / SCALE), axis=1) - constant


def hierarchical_gradient(theta: np.ndarray, block: Any, weights: np.ndarray) -> np.ndarray:
    group, location = _location(theta[None], block)
    pull = weights * (block["y"] - location[:, 0])
    sums = np.bincount(group, pull, GROUPS)
    spread = np.exp(theta[1])
    return np.r_[sums.sum(), spread * (sums @ theta[2:]), spread * sums]


def hierarchical_hessian(theta: np.ndarray, block: Any, weights: np.ndarray) -> np.ndarray:
    group, location = _location(theta[None], block)
    pull = np.bincount(group, weights * (block["y"] - location[:, 0]), GROUPS)
    counts, spread = np.bincount(group, weights, GROUPS), np.exp(theta[1])
    slopes = np.column_stack([np.ones(GROUPS), spread * theta[2:], spread * np.eye(GROUPS)])
    found = -slopes.T @ (counts[:, None] * slopes)
    found[1, 1] += spread * (pull @ theta[2:])
    found[1, 2:] += spread * pull
    found[2:, 1] += spread * pull
    return found


def hierarchical() -> Case:
    def simulate(rng: np.random.Generator) -> tuple[np.ndarray, Any]:
        theta = CENTRE + SCALE * rng.standard_normal(2 + GROUPS)
        group = np.repeat(np.arange(GROUPS), 20)
        y = theta[0] + np.exp(theta[1]) * theta[2 + group] + rng.standard_normal(group.size)
        return theta, {"group": group.astype(float), "y": y}

    model = cb.CustomModel(
        hierarchical_likelihood,
        hierarchical_prior,
        2 + GROUPS,
        gradient=hierarchical_gradient,
        hessian=hierarchical_hessian,
        log_prior_gradient=lambda theta: (CENTRE - theta) / SCALE**2,
        log_prior_hessian=lambda theta: -np.diag(SCALE**-2.0),
        names=("mu", "log_tau", *(f"eta[{k}]" for k in range(GROUPS))),
    )
    return Case(
        model,
        simulate,
        None,
        lambda draws: draws[:, :1] + np.exp(draws[:, 1:2]) * draws[:, 2:],
        high_and_low,
    )


def high_and_low(block: Any) -> np.ndarray:
    """y above or below what its group has on average, in deviations: levels are then too high."""
    group = block["group"].astype(int)
    return block["y"] - (np.bincount(group, block["y"]) / np.bincount(group))[group]


PRIOR = cb.Normal(0.0, 0.7)
CASES: dict[str, Callable[[], Case]] = {
    "logistic": lambda: regression(
        cb.LogisticRegression(prior=PRIOR),
        lambda rng, eta: rng.random(eta.size) < 1.0 / (1.0 + np.exp(-eta)),
    ),
    "poisson": lambda: regression(
        cb.PoissonRegression(link="log", prior=PRIOR), lambda rng, eta: rng.poisson(np.exp(eta))
    ),
    "student-t": lambda: regression(
        cb.StudentTRegression(df=4.0, scale=1.0, prior=PRIOR),
        lambda rng, eta: eta + rng.standard_t(4.0, eta.size),
    ),
    "hierarchical": hierarchical,
}


def spoil(rng: np.random.Generator, case: Case, coreset: Any, full: Any) -> Any:
    """The coreset with weights so wrong that KL(π_w ‖ π), between Laplace fits, is half a nat."""
    noise = rng.standard_normal(coreset.size)
    if case.uneven is not None:
        noise = case.uneven(coreset.rows)

    def spoilt(t: float) -> Any:
        return replace(coreset, weights=coreset.weights * (1.0 + 1.5 * t) * np.exp(0.5 * t * noise))

    low, high = 0.0, 2.0
    for _ in range(25):
        middle = 0.5 * (low + high)
        fit = Laplace().try_fit(Posterior.of(spoilt(middle)), full.mean)
        too_much = fit is None or gaussian_kl(fit, full) > KL
        low, high = (low, middle) if too_much else (middle, high)
    return spoilt(low)


def all_rows(model: Any, rows: Any) -> Any:
    """The coreset that has every row, once."""
    numbers = np.arange(rows.num_rows)
    weights = np.ones(rows.num_rows)
    return cb.Coreset(numbers, weights, rows.take(numbers), model, rows.num_rows, rows.total_count)


def flat_draws(draws: Any) -> np.ndarray:
    """The draws of ArviZ data, one parameter after the other."""
    columns = [
        draws.posterior[name].values.reshape(
            draws.posterior.sizes["chain"] * draws.posterior.sizes["draw"], -1
        )
        for name in draws.posterior.data_vars
    ]
    return np.concatenate(columns, axis=1)


def ranks_of(theta: np.ndarray, flat: np.ndarray) -> np.ndarray:
    """Of the true parameters among `NUM_RANKED` draws spread over the chains."""
    thinned = flat[:: len(flat) // NUM_RANKED][:NUM_RANKED]
    return np.sum(thinned < theta, axis=0)


def distance(everything: Any, poor: Any, draws: np.ndarray) -> float:
    """KL(π_w ‖ π) = log E_w[e^r] − E_w[r] at draws of π_w."""
    full, ours = (
        one.model.sum_potentials(draws, one.rows, one.weights) for one in (everything, poor)
    )
    ratios = full - ours
    return float(np.logaddexp.reduce(ratios) - np.log(len(ratios)) - ratios.mean())


def replicate(case: Case, seed: int, draws: int = 250) -> dict[str, Any]:
    """Ranks with and without correction, and what the correction took."""
    rng = np.random.default_rng(seed)
    theta, data = case.simulate(rng)
    rows = cb.open(data).check()
    everything = all_rows(case.model.bind(rows), rows)
    good = everything
    if case.size is not None:
        good = cb.build(case.model, data, size=case.size, seed=seed)
    full = Laplace().fit(Posterior.of(everything))
    poor = spoil(rng, case, good, full)
    # What `cb.sample` draws from, by the quickest way.
    ours = coreset_draws(rng, Posterior.of(poor), 4 * draws, 4)
    began = time.process_time()
    exact = cb.correct(poor, data, draws=draws, chains=4, seed=seed)
    seconds = time.process_time() - began
    truth = case.ranked(theta[None])[0]
    return {
        "sample": ranks_of(truth, case.ranked(ours.flat)).tolist(),
        "correct": ranks_of(truth, case.ranked(flat_draws(exact))).tolist(),
        "kl": distance(everything, poor, ours.flat),
        "correcting": seconds,
        "acceptance": float(exact.posterior.attrs["acceptance"]),
        "num_passes": int(exact.posterior.attrs["num_passes"]),
        "evaluations": float(exact.posterior.attrs["evaluations_per_draw"]),
    }


def uniformity(ranks: np.ndarray) -> float:
    """The smallest p-value over parameters that their ranks (R, d) are uniform, times d."""
    bins = 10
    counts = np.stack(
        [np.histogram(column, bins, range=(0, NUM_RANKED + 1))[0] for column in ranks.T]
    )
    return float(min(stats.chisquare(counts, axis=1).pvalue.min() * len(counts), 1.0))


def coverage(ranks: np.ndarray) -> float:
    """The share of parameters inside of their central 90 % interval."""
    return float(_inside(ranks).mean())


def coverage_error(ranks: np.ndarray) -> float:
    """Its standard error; parameters of one replication depend on each other."""
    return float(_inside(ranks).mean(axis=1).std() / np.sqrt(len(ranks)))


def _inside(ranks: np.ndarray) -> np.ndarray:
    margin = 0.5 * (1.0 - COVERED) * (NUM_RANKED + 1)
    return np.clip(np.minimum(ranks + 1.0, NUM_RANKED + 1.0 - ranks) - margin, 0.0, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--models", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=8.0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    print(f"{'model':<13} {'draws':<8} {'p uniform':>10} {'90 % covers':>12}")
    kept = Kept(Path("results") / "calibration.jsonl", arguments.minutes)
    for name in arguments.models:
        case = CASES[name]()
        seeds = range(arguments.seed, arguments.seed + arguments.replications)
        jobs = [(f"{name} {seed}", seed) for seed in seeds]
        found = list(kept.each(jobs, lambda seed, case=case: replicate(case, seed)))
        if not found:
            continue
        for draws in ("sample", "correct"):
            ranks = np.stack([one[draws] for one in found])
            print(
                f"{name:<13} {draws:<8} {uniformity(ranks):>10.2g} {coverage(ranks):>11.1%} "
                f"± {coverage_error(ranks):.1%}"
            )
        mean = {
            key: np.mean([one[key] for one in found])
            for key in ("kl", "acceptance", "num_passes", "evaluations", "correcting", "seconds")
        }
        print(
            f"{'':13} {len(found)} replications, KL {mean['kl']:.2f} on average, "
            f"{mean['acceptance']:.0%} accepted, "
            f"{mean['num_passes']:.1f} passes, {mean['evaluations']:.2f} evaluations a draw, "
            f"{mean['correcting']:.2f} CPU s each, {mean['seconds']:.2f} with all else",
            flush=True,
        )


if __name__ == "__main__":
    main()
