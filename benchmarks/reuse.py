"""One build, many models: fifty priors, and columns left out, each against its own full posterior.

    python -m benchmarks.reuse

Counts with a log link, 1e5 rows and ten columns, three of them rare indicators (PEERS: case c). One
coreset is built for the model with the standard normal prior; a second one, with `models=[…]`, for
five of the priors and three of the nested models as well. Under each of fifty priors (20 scales, 15
shifts, 15 mixtures of both), and without each column, the error is KL(π'_w ‖ π') from importance
ratios of all rows at draws of π'_w (Laplace draws corrected by their own ratios). CPU seconds.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import corebayes as cb
from corebayes.compose.refit import changed_coreset
from corebayes.data.narrowed import Narrowed, narrowing
from corebayes.diagnostics import log_ratios
from corebayes.rows import open_rows
from corebayes.samplers.laplace import Laplace, full_posterior
from corebayes.samplers.posterior import Posterior


def counts(seed: int, num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Seven normal columns, of which the last is one, and three indicators of rare things."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [
            rng.normal(size=(num_rows, 6)),
            (rng.random((num_rows, 3)) < [0.002, 0.0005, 0.0002]).astype(float),
            np.ones(num_rows),
        ]
    )
    theta = np.array([0.3, -0.2, 0.1, 0.03, -0.01, 0.0, 0.5, -0.4, 0.8, 0.2])
    return X, rng.poisson(np.exp(X @ theta)).astype(float)


def priors(dim: int, seed: int) -> list[cb.Normal]:
    rng = np.random.default_rng(seed)
    scales = [cb.Normal(0.0, sd) for sd in np.geomspace(0.05, 20.0, 20)]
    shifts = [cb.Normal(rng.normal(scale=0.5, size=dim), 1.0) for _ in range(15)]
    both = [
        cb.Normal(rng.normal(scale=0.3, size=dim), np.diag(rng.uniform(0.1, 2.0, dim) ** 2))
        for _ in range(15)
    ]
    return [*scales, *shifts, *both]


def kl_of(coreset: cb.Coreset, data: Any, draws: int) -> tuple[float, float]:
    """KL(π_w ‖ π) by ratios at draws of the Laplace fit of π_w, which are weighted by how π_w
    differs from the fit; and the seconds of the fit, which are what a refit costs."""
    began = time.process_time()
    posterior = Posterior.of(coreset)
    fit = Laplace(tolerance=1e-12).fit(posterior)
    seconds = time.process_time() - began
    rng = np.random.default_rng(3)
    noise = rng.standard_normal((draws, fit.mean.size))
    theta = fit.mean + noise @ fit.factor.T
    own = posterior.log_density(theta) + 0.5 * np.square(noise).sum(axis=1)
    weights = np.exp(own - own.max())
    weights /= weights.mean()
    ratios = log_ratios(coreset, data, theta)
    ratios = ratios - np.mean(weights * ratios)
    return float(np.log1p(np.mean(weights * (np.expm1(ratios) - ratios)))), seconds


def line(name: str, values: list[float]) -> None:
    found = np.array(values)
    print(f"  {name:<34} KL median {np.median(found):.1e}, largest {found.max():.1e}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--size", type=int, default=80)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    X, y = counts(asked.seed, asked.rows)
    rows, dim = cb.open((X, y)), X.shape[1]
    model, others = (
        cb.PoissonRegression(link="softplus", prior=cb.Normal()),
        priors(X.shape[1], asked.seed),
    )
    nested = [[k for k in range(dim) if k != gone] for gone in range(dim)]
    fit = full_posterior(model.bind(rows), rows)
    z = np.abs(fit.mean) / np.sqrt(np.diag(fit.factor @ fit.factor.T))
    several: list[Any] = [
        cb.PoissonRegression(prior=p, link="softplus") for p in (others[0], *others[20:24])
    ]
    several += [cb.Variant(features=nested[k]) for k in np.argsort(-z)[:3]]
    for name, models, size in (
        ("one model", None, asked.size),
        ("nine models", several, asked.size),
        ("nine models, twice the rows", several, 2 * asked.size),
    ):
        began = time.process_time()
        coreset = cb.build(model, rows, size=size, models=models, seed=asked.seed)
        print(f"built for {name}: {coreset.size} rows, {time.process_time() - began:.1f} CPU s")
        errors, seconds = [], 0.0
        for prior in others:
            changed = changed_coreset(coreset, cb.PoissonRegression(prior=prior, link="softplus"))
            kl, spent = kl_of(changed, rows, asked.draws)
            errors.append(kl)
            seconds += spent
        line("20 scales", errors[:20])
        line("15 shifts", errors[20:35])
        line("15 of both", errors[35:])
        print(f"  fifty fits: {seconds:.2f} CPU s")
        for gone in np.argsort(z):
            shown = narrowing(rows.template, (), nested[gone], None)
            changed = changed_coreset(coreset, None, features=nested[gone])
            fewer = open_rows(Narrowed(table=rows.table, narrowing=shown))
            line(
                f"without column {gone} (z = {z[gone]:.1f})",
                [kl_of(changed, fewer, asked.draws)[0]],
            )


if __name__ == "__main__":
    main()
