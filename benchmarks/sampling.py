"""How long draws of a coreset posterior take, and what they are worth, against 0.1.0 in one run.

    python -m benchmarks.sampling [logistic numpyro pymc wide]

4 chains of 1,000 draws through `cb.sample`, ArviZ data and diagnostics included, in CPU seconds.
0.1.0 drew with NUTS through Python callbacks whatever the model; that path is still there, as
`NUTS(compiled=False)`, and is entered anew for each call as it was then. Of each way the first run
(imports, compiling) and the best of the following are shown: the ratio is of the latter, and beside
it that of the first runs. `error` is the largest difference of means from long runs of the old way,
in standard deviations, and has noise of about 3/√ESS.

`wide` is NUTS on a model with 1,000 parameters and 8,000 rows that offers `jax_log_density`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import corebayes as cb
from corebayes.coreset import Coreset
from corebayes.rows import open_rows
from corebayes.samplers import chain
from corebayes.samplers.worth import worth

CHAINS, TUNE = 4, 500
REPEATS = 3


class Timing(NamedTuple):
    """One way to draw."""

    first: float
    later: float
    ess: float
    means: np.ndarray
    deviations: np.ndarray
    how: str


def logistic() -> Coreset:
    """65 rows, d = 10, of 200,000."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 10))
    theta = rng.normal(size=10)
    y = (rng.random(len(X)) < 1.0 / (1.0 + np.exp(-X @ theta))).astype(float)
    return cb.build(cb.LogisticRegression(prior=cb.Normal()), (X, y), size=65, seed=0)


def grouped(num_rows: int = 3000, num_groups: int = 27) -> tuple[Any, ...]:
    """x, groups, labels and the number of groups."""
    rng = np.random.default_rng(1)
    groups, x = rng.integers(0, num_groups, num_rows), rng.normal(size=num_rows)
    eta = 0.5 + 0.7 * rng.normal(size=num_groups)[groups] + 0.8 * x
    y = (rng.random(num_rows) < 1.0 / (1.0 + np.exp(-eta))).astype(np.int64)
    return x, groups, y, num_groups


def subset(model: Any, data: Any, size: int = 500) -> Coreset:
    """Every so many rows, which is all that a benchmark of draws needs."""
    rows = np.linspace(0, data.num_rows - 1, size).astype(np.int64)
    return Coreset(
        model=model.bind(data),
        rows=data.take(rows),
        indices=rows,
        weights=np.full(size, data.num_rows / size),
        num_rows=data.num_rows,
        total_count=data.total_count,
        reason="every so many rows",
    )


def numpyro_groups(x: Any, groups: Any, y: Any, num_groups: int) -> None:
    import numpyro
    from numpyro import distributions

    mean = numpyro.sample("mean", distributions.Normal(0.0, 2.0))
    slope = numpyro.sample("slope", distributions.Normal(0.0, 1.0))
    scale = numpyro.sample("scale", distributions.HalfNormal(1.0))
    with numpyro.plate("groups", num_groups):
        offset = numpyro.sample("offset", distributions.Normal(0.0, 1.0))
    with numpyro.plate("rows", len(y)):
        logits = mean + scale * offset[groups] + slope * x
        numpyro.sample("y", distributions.Bernoulli(logits=logits), obs=y)


def numpyro() -> Coreset:
    """Random intercepts: 30 parameters, 500 rows."""
    return subset(*cb.from_numpyro(numpyro_groups, *grouped()))


def pymc() -> Coreset:
    """The same in PyMC."""
    import pymc as pm

    x, groups, y, num_groups = grouped()
    with pm.Model() as model:
        mean, slope = pm.Normal("mean", 0.0, 2.0), pm.Normal("slope", 0.0, 1.0)
        scale = pm.HalfNormal("scale", 1.0)
        offset = pm.Normal("offset", 0.0, 1.0, shape=num_groups)
        pm.Bernoulli("y", logit_p=mean + scale * offset[groups] + slope * x, observed=y)
    return subset(*cb.from_pymc(model))


def wide() -> None:
    """NUTS on 1,000 parameters: 998 groups, centred, 8,000 rows."""
    import jax.numpy as jnp

    rng = np.random.default_rng(2)
    num_groups, num_rows = 998, 8000
    groups = rng.integers(0, num_groups, num_rows)
    y = rng.poisson(np.exp(0.3 + 0.6 * rng.normal(size=num_groups)[groups])).astype(float)

    def eta(theta: Any, group: Any) -> Any:
        return theta[:, 0] + theta[:, 2:][:, group.astype(int)].T

    def log_likelihood(draws: Any, block: Any) -> Any:
        rates = eta(draws, block["group"])
        return block["y"][:, None] * rates - jnp.exp(rates)

    def log_prior(draws: Any) -> Any:
        scale = jnp.exp(draws[:, 1])
        effects = -0.5 * jnp.sum(jnp.square(draws[:, 2:] / scale[:, None]), axis=1)
        hyper = -0.5 * jnp.sum(jnp.square(draws[:, :2]), axis=1)
        return effects - num_groups * draws[:, 1] + hyper

    data = open_rows({"group": groups.astype(float), "y": y})
    model = cb.CustomModel(log_likelihood, log_prior, num_groups + 2).bind(data)
    posterior = cb.Posterior(model, data.take(np.arange(num_rows)), np.ones(num_rows))
    began = time.process_time()
    drawn = cb.Automatic(chains=2, num_tune=300).draw(np.random.default_rng(0), posterior, 1000)
    seconds = time.process_time() - began
    rhat, bulk, tail = worth(drawn.values)
    print(
        f"wide      {drawn.how}, d = 1,000, 8,000 rows, 2 x 500 draws: {seconds:.1f} CPU s, "
        f"ESS {bulk:,.0f} (tails {tail:,.0f}), R-hat {rhat:.3f}, "
        f"{drawn.num_divergences} divergences, {drawn.stats['n_steps'].mean():.0f} steps a draw"
    )


def as_in_0_1_0(coreset: Coreset, seed: int) -> Any:
    """NUTS through Python callbacks, entered from outside of Python each time."""
    enter = chain.Thread.enter
    chain.Thread.enter = lambda self: None
    try:
        sampler = cb.NUTS(compiled=False, num_tune=TUNE, chains=CHAINS)
        return cb.sample(coreset, sampler=sampler, seed=seed, progress=False)
    finally:
        chain.Thread.enter = enter


def now(coreset: Coreset, seed: int) -> Any:
    return cb.sample(coreset, tune=TUNE, chains=CHAINS, seed=seed, progress=False)


def timed(draw: Callable[[Coreset, int], Any], coreset: Coreset, repeats: int) -> Timing:
    seconds: list[float] = []
    draws: list[np.ndarray] = []
    trace = None
    for seed in range(1 + repeats):
        began = time.process_time()
        trace = draw(coreset, seed)
        seconds.append(time.process_time() - began)
        values = [v.values.reshape(CHAINS, 1000, -1) for v in trace.posterior.data_vars.values()]
        draws.append(np.concatenate(values, axis=2))
    assert trace is not None
    flat = np.concatenate(draws).reshape(-1, draws[0].shape[2])
    attributes = trace.attrs
    return Timing(
        seconds[0],
        min(seconds[1:]),
        attributes["min_ess_bulk"],
        flat.mean(axis=0),
        flat.std(axis=0),
        attributes["sampler"],
    )


def compare(name: str, coreset: Coreset) -> None:
    # The old way last, when all that both import and compile is there: its first run is cheaper.
    ours = timed(now, coreset, REPEATS)
    old = timed(as_in_0_1_0, coreset, 1)
    error = float(np.max(np.abs(ours.means - old.means) / old.deviations))
    ratios = f"{old.later / ours.later:.0f} times faster ({old.first / ours.first:.1f} first runs)"
    print(
        f"{name:9} 0.1.0 {old.later:.2f} s, first {old.first:.2f} (ESS {old.ess:,.0f}); "
        f"now {ours.later:.3f} s, first {ours.first:.2f} (ESS {ours.ess:,.0f}): {ratios}; "
        f"error {error:.3f} sd; {ours.how}",
        flush=True,
    )


def main(names: list[str]) -> None:
    coresets = {"logistic": logistic, "numpyro": numpyro, "pymc": pymc}
    for name in names or [*coresets, "wide"]:
        if name == "wide":
            wide()
        else:
            compare(name, coresets[name]())


if __name__ == "__main__":
    main(sys.argv[1:])
