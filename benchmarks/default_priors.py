"""Posteriors under default priors, against NUTS of NumPyro on all rows of the same model.

    python -m benchmarks.default_priors

Rows are like those of teaching packages: prices in dollars by carat, wages by age, defaults by
balance and income. For each: the largest difference of means in standard deviations, and the range
of the ratios of standard deviations, over all parameters.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import corebayes as cb

ROWS = {"diamonds": 5000, "default": 5000, "visits": 5000}


def data(name: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """A model without arguments, X and y."""
    rng, n = np.random.default_rng(0), ROWS[name]
    if name == "diamonds":
        X = np.column_stack([rng.gamma(3.0, 0.27, n), rng.normal(61.7, 1.4, n)])
        y = -2000.0 + 7800.0 * X[:, 0] - 20.0 * (X[:, 1] - 61.0) + 1500.0 * rng.normal(size=n)
        return cb.LinearRegression(intercept=True), X, y
    if name == "default":
        X = np.column_stack([rng.gamma(3.0, 280.0, n), rng.normal(33_500.0, 13_000.0, n)])
        eta = -8.0 + 0.0057 * X[:, 0] + 2e-6 * X[:, 1]
        return (
            cb.LogisticRegression(intercept=True),
            X,
            (rng.random(n) < 1 / (1 + np.exp(-eta))) * 1.0,
        )
    X = np.column_stack([rng.normal(45.0, 12.0, n), rng.random(n) < 0.2])
    mean = np.exp(0.2 + 0.01 * (X[:, 0] - 45.0) + 0.5 * X[:, 1])
    y = rng.negative_binomial(2.0, 2.0 / (2.0 + mean)) * 1.0
    return cb.NegativeBinomialRegression(intercept=True), X, y


def reference(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Draws of NumPyro, of the model written by hand in standardised columns."""
    import jax
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    numpyro.enable_x64()
    means, sds = X.mean(axis=0), X.std(axis=0)
    linear = isinstance(model, cb.LinearRegression)
    unit = y.std() if linear else 1.0
    middle = y.mean() if linear else np.log(y.mean())
    if isinstance(model, cb.LogisticRegression):
        middle = np.log(y.mean() / (1.0 - y.mean()))
    Z = (X - means) / sds

    def written() -> None:
        b = numpyro.sample("b", dist.Normal(0.0, 2.5 * np.ones(X.shape[1])))
        a = numpyro.sample("a", dist.Normal(0.0, 2.5))
        eta = middle + unit * (a + Z @ b)
        if linear:
            s = numpyro.sample("noise_sd", dist.FoldedDistribution(dist.StudentT(4.0, 0.0, 1.0)))
            numpyro.sample("y", dist.Normal(eta, unit * s), obs=y)
        elif isinstance(model, cb.LogisticRegression):
            numpyro.sample("y", dist.Bernoulli(logits=eta), obs=y)
        else:
            s = numpyro.sample("dispersion", dist.HalfNormal(1.0))
            numpyro.sample("y", dist.NegativeBinomial2(jax.numpy.exp(eta), 1.0 / s), obs=y)

    mcmc = MCMC(NUTS(written), num_warmup=500, num_samples=4000, progress_bar=False)
    mcmc.run(jax.random.PRNGKey(0))
    drawn = {name: np.asarray(values) for name, values in mcmc.get_samples().items()}
    beta = unit * drawn["b"] / sds
    result = {f"beta[{k}]": beta[:, k] for k in range(X.shape[1])}
    result["intercept"] = middle + unit * drawn["a"] - beta @ means
    if linear:
        result["noise_sd"] = unit * drawn["noise_sd"]
    elif "dispersion" in drawn:
        result["dispersion"] = drawn["dispersion"]
    return result


def main() -> None:
    for name in ROWS:
        model, X, y = data(name)
        began = time.process_time()
        coreset = cb.build(model, (X, y), tol=0.01, size=60, seed=0, progress=False)
        posterior = cb.sample(coreset, draws=2000, chains=4, seed=0).posterior
        seconds = time.process_time() - began
        theirs, off, ratios = reference(model, X, y), [], []
        for place, (parameter, draws) in enumerate(theirs.items()):
            if parameter in posterior:
                ours = posterior[parameter].values.ravel()
            else:
                ours = posterior["beta"].values[..., place].ravel()
            off.append(abs(ours.mean() - draws.mean()) / draws.std())
            ratios.append(ours.std() / draws.std())
        print(
            f"{name}: {coreset.size} of {len(y):,} rows, means within {max(off):.3f} sd, sds by "
            f"{min(ratios):.3f} to {max(ratios):.3f}, {seconds:.1f} CPU s"
        )
        print(coreset.model)


if __name__ == "__main__":
    main()
