"""How long draws of a coreset posterior take, and what they are worth, against 0.1.0 in one run.

    python -m benchmarks.sampling [logistic numpyro pymc certify wide]

4 chains of 1,000 draws through `cb.sample`, ArviZ data and diagnostics included, in CPU seconds, by
the source of 0.1.0 and by this one (`before.py`). Of 0.1.0 one chain is run and its later time
taken four times, since chains follow each other there. Of each the first run (imports, compiling;
one chain of 0.1.0) and the best of the following are shown: the ratio is of the latter. `error` is
the largest difference of means in standard deviations, and has noise of about 3/√ESS. `certify` is
the default certificate of 65 rows of a million, d = 10.

`wide` is NUTS on a model with 1,000 parameters and 8,000 rows that offers `jax_log_density`.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from benchmarks.before import compare

import corebayes as cb
from corebayes.rows import open_rows
from corebayes.samplers.worth import worth


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


def draws(name: str) -> None:
    old, now = compare(name)
    error = np.max(np.abs(np.subtract(now["mean"], old["mean"])) / np.array(old["sd"]))
    ratio = old["later"] / now["later"]
    print(
        f"{name:9} 0.1.0 {old['later']:.2f} s, first {old['first']:.2f}; now {now['later']:.3f} s, "
        f"first {now['first']:.2f} (ESS {now['ess']:,.0f}): {ratio:.1f} times faster; "
        f"error {error:.3f} sd; {now['how']}",
        flush=True,
    )


def certify() -> None:
    old, now = compare("certify", repeats=1)
    shown = [
        f"{one['later']:.2f} s ({one['num_draws']:,} draws, KL {one['kl']:.1e}, "
        f"{'' if one['certified'] else 'not '}certified)"
        for one in (old, now)
    ]
    ratio = now["later"] / old["later"]
    print(f"certify   0.1.0 {shown[0]}; now {shown[1]}: {ratio:.2f} of the time", flush=True)


def main(names: list[str]) -> None:
    for name in names or ["logistic", "numpyro", "pymc", "certify", "wide"]:
        if name in ("certify", "wide"):
            {"certify": certify, "wide": wide}[name]()
        else:
            draws(name)


if __name__ == "__main__":
    main(sys.argv[1:])
