"""Every family on real data, beside maximum likelihood of all rows with SciPy's own densities.

    python -m benchmarks.families [name ...]

21,613 houses sold in King County: prices by place, censored at a million, their quarters, shares of
dear houses in a grid of places, and counts of sales in all its cells, most of them empty. With flat
priors and thousands of rows the posterior is Gaussian around the maximum, so that `off` (the
largest distance of a posterior mean from it, in standard deviations) and `sd` (the ratios of
standard deviations) say whether coreset, sampler and family are right. Seconds are CPU seconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, stats

import corebayes as cb
from corebayes.experiments import registry

FLAT = cb.Normal(0.0, 100.0)
NUM_ROWS, CELLS, LIMIT = 4000, 40, 1e6


class Trial(NamedTuple):
    family: Any
    frame: dict[str, Any]
    log_density: Callable[..., Any]
    """Of the frame and all predictors, constants on the line."""
    num_linear: int = 1
    num_constants: int = 0
    intercept: bool = True


def expit(u: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-u))


def negative_binomial(y: Any, eta: Any, u: Any) -> Any:
    return stats.nbinom.logpmf(y, np.exp(-u), 1.0 / (1.0 + np.exp(u + eta)))


def censored(f: Any, distribution: Any) -> Any:
    return np.where(f["seen"] > 0.0, distribution.logpdf(f["y"]), distribution.logsf(f["y"]))


def between(f: Any, eta: Any, first: Any, *logs: Any) -> Any:
    cuts = np.cumsum([first, *np.exp(logs)])
    ends = np.r_[-np.inf, cuts, np.inf]
    code = f["y"].astype(int)
    below = stats.logistic.cdf
    return np.log(below(ends[code + 1] - eta) - below(ends[code] - eta))


def softmax(f: Any, *etas: Any) -> Any:
    every = np.array([np.zeros_like(etas[0]), *etas])
    own = every[f["y"].astype(int), np.arange(len(f["y"]))]
    return own - np.logaddexp.reduce(every, axis=0)


def inflated(y: Any, v: Any, log_counts: Any) -> Any:
    return np.log(expit(v) * (y == 0.0) + expit(-v) * np.exp(log_counts(y)))


def hurdle(y: Any, v: Any, log_counts: Any) -> Any:
    more = np.log(expit(-v)) + log_counts(y) - np.log1p(-np.exp(log_counts(0.0 * y)))
    return np.where(y > 0.0, more, np.log(expit(v)))


def houses() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Houses, cells with sales, and all cells; columns x and z are the place."""
    with np.load(registry.locate("king_county_sales", registry.data_folder())) as stored:
        data = {name: stored[name] for name in ("latitude", "longitude", "price")}
    some = np.random.default_rng(0).choice(data["price"].size, NUM_ROWS, replace=False)
    place = {"x": data["latitude"], "z": data["longitude"]}
    scaled = {k: (v - v.mean()) / v.std() for k, v in place.items()}
    rows = {k: v[some] for k, v in scaled.items()} | {"price": data["price"][some]}
    edges = [np.linspace(-1.8, 1.8, CELLS + 1)] * 2
    counts, *_ = np.histogram2d(scaled["x"], scaled["z"], bins=edges)
    dear = data["price"] > np.median(data["price"])
    high, *_ = np.histogram2d(scaled["x"][dear], scaled["z"][dear], bins=edges)
    middle = 0.5 * (edges[0][1:] + edges[0][:-1])
    x, z = (one.ravel() for one in np.meshgrid(middle, middle, indexing="ij"))
    cells = {"x": x, "z": z, "n": counts.ravel(), "high": high.ravel()}
    sold = {k: v[cells["n"] > 4.0] for k, v in cells.items()}
    return rows, sold, cells


def trials() -> dict[str, Trial]:
    rows, sold, cells = houses()
    place = {"x": rows["x"], "z": rows["z"]}
    thousands = {**place, "y": rows["price"] / 1e5}
    label = {**place, "y": (rows["price"] > np.median(rows["price"])) * 1.0}
    late = {
        **place,
        "seen": (rows["price"] < LIMIT) * 1.0,
        "y": np.minimum(rows["price"], LIMIT) / 1e5,
    }
    quarters = np.quantile(rows["price"], [0.25, 0.5, 0.75])
    grade = {**place, "y": np.searchsorted(quarters, rows["price"]) * 1.0}
    share = (sold["high"] * (sold["n"] - 1.0) + 0.5) / sold["n"] / sold["n"]
    shares = {"x": sold["x"], "z": sold["z"], "y": share}
    dear = {"x": sold["x"], "z": sold["z"], "n": sold["n"], "y": sold["high"]}
    empty = {"x": cells["x"], "z": cells["z"], "y": cells["n"]}
    logs = {**place, "y": np.log(rows["price"]) - 13.0}

    def poisson(eta: Any) -> Any:
        return lambda y: stats.poisson.logpmf(y, np.exp(eta))

    def counts(eta: Any, u: Any) -> Any:
        return lambda y: negative_binomial(y, eta, u)

    learned = {"scale": cb.HalfNormal(5.0), "df": cb.Gamma(2.0, 0.1)}
    student = cb.MixedRegression(
        family=cb.StudentTRegression(prior=FLAT, intercept=True), learned=learned
    )
    with_one = {"prior": FLAT, "intercept": True}
    return {
        "student-t": Trial(
            student,
            logs,
            lambda f, eta, u, v: stats.t.logpdf(f["y"], np.exp(v), eta, np.exp(u)),
            1,
            2,
        ),
        "probit": Trial(
            cb.ProbitRegression(**with_one),
            label,
            lambda f, eta: stats.norm.logcdf((2.0 * f["y"] - 1.0) * eta),
        ),
        "cloglog": Trial(
            cb.CloglogRegression(**with_one),
            label,
            lambda f, eta: stats.bernoulli.logpmf(f["y"], -np.expm1(-np.exp(eta))),
        ),
        "gamma": Trial(
            cb.GammaRegression(**with_one),
            thousands,
            lambda f, eta, u: stats.gamma.logpdf(f["y"], np.exp(u), scale=np.exp(eta - u)),
            1,
            1,
        ),
        "lognormal": Trial(
            cb.LogNormalRegression(event="seen", **with_one),
            late,
            lambda f, eta, u: censored(f, stats.lognorm(np.exp(u), scale=np.exp(eta))),
            1,
            1,
        ),
        "weibull": Trial(
            cb.WeibullRegression(event="seen", **with_one),
            late,
            lambda f, eta, u: censored(f, stats.weibull_min(np.exp(u), scale=np.exp(eta))),
            1,
            1,
        ),
        "exponential": Trial(
            cb.ExponentialRegression(event="seen", **with_one),
            late,
            lambda f, eta: censored(f, stats.expon(scale=np.exp(eta))),
        ),
        "ordinal": Trial(cb.OrdinalRegression(prior=FLAT), grade, between, 1, 3, False),
        "categorical": Trial(cb.CategoricalRegression(**with_one), grade, softmax, 3),
        "binomial": Trial(
            cb.BinomialRegression(trials="n", **with_one),
            dear,
            lambda f, eta: stats.binom.logpmf(f["y"], f["n"], expit(eta)),
        ),
        "beta": Trial(
            cb.BetaRegression(**with_one),
            shares,
            lambda f, eta, u: stats.beta.logpdf(
                f["y"], expit(eta) * np.exp(u), expit(-eta) * np.exp(u)
            ),
            1,
            1,
        ),
        "zero-inflated-poisson": Trial(
            cb.ZeroInflatedPoissonRegression(**with_one),
            empty,
            lambda f, eta, v: inflated(f["y"], v, poisson(eta)),
            1,
            1,
        ),
        "zero-inflated-negative-binomial": Trial(
            cb.ZeroInflatedNegativeBinomialRegression(**with_one),
            empty,
            lambda f, eta, u, v: inflated(f["y"], v, counts(eta, u)),
            1,
            2,
        ),
        "hurdle-poisson": Trial(
            cb.HurdlePoissonRegression(**with_one),
            empty,
            lambda f, eta, v: hurdle(f["y"], v, poisson(eta)),
            1,
            1,
        ),
        "hurdle-negative-binomial": Trial(
            cb.HurdleNegativeBinomialRegression(**with_one),
            empty,
            lambda f, eta, u, v: hurdle(f["y"], v, counts(eta, u)),
            1,
            2,
        ),
    }


def maximum(trial: Trial) -> tuple[Any, Any]:
    """Where SciPy's density of all rows is largest, and the standard deviations there."""
    f = trial.frame
    columns = [f["x"], f["z"], *([np.ones_like(f["x"])] if trial.intercept else [])]
    X = np.column_stack(columns)
    width = X.shape[1]

    def height(theta: Any) -> float:
        slopes = theta[: trial.num_linear * width].reshape(trial.num_linear, width)
        with np.errstate(all="ignore"):
            total = trial.log_density(f, *(X @ slopes.T).T, *theta[slopes.size :]).sum()
        return -total if np.isfinite(total) else 1e12

    start = np.zeros(trial.num_linear * width + trial.num_constants)
    found = optimize.minimize(height, start, method="Nelder-Mead", options={"maxfev": 2000})
    found = optimize.minimize(height, found.x, method="BFGS")
    h, dim = 1e-3, start.size
    steps = h * np.eye(dim)
    hessian = np.empty((dim, dim))
    for i in range(dim):
        for j in range(dim):
            signs = ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))
            values = (s * height(found.x + a * steps[i] + b * steps[j]) for a, b, s in signs)
            hessian[i, j] = sum(values) / (4.0 * h * h)
    return found.x, np.sqrt(np.diag(np.linalg.inv(hessian)))


def run(name: str, trial: Trial) -> str:
    import pandas

    from corebayes.samplers.automatic import Automatic
    from corebayes.samplers.posterior import Posterior

    frame = pandas.DataFrame(trial.frame)
    start = time.process_time()
    size = 60
    coreset = cb.build(trial.family, frame, target="y", size=size, seed=0)
    seconds = time.process_time() - start
    draws = Automatic().draw(np.random.default_rng(1), Posterior.of(coreset), 2000)
    values = draws.values.reshape(-1, coreset.model.dim)
    mean, sd = values.mean(axis=0), values.std(axis=0)
    best, error = maximum(trial)
    off, ratio = np.max(np.abs(mean - best) / error), sd / error
    return (
        f"{name:32} {len(frame):6,} {coreset.size:5} {seconds:7.1f} {off:6.2f} "
        f"{ratio.min():6.2f} {ratio.max():5.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    every = trials()
    names = parser.parse_args().names or list(every)
    print(f"{'family':32} {'rows':>6} {'size':>5} {'build s':>7} {'off':>6} {'sd from':>6} to")
    for name in names:
        print(run(name, every[name]), flush=True)


if __name__ == "__main__":
    main()
