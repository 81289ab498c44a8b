"""One posterior of posteriordb by a coreset, and by NUTS on all rows.

CPU seconds are from opened rows to draws, with compilation; imports are made before. A coreset is
built to `TOL` nats, of a mixed model to the size of the counting argument. A mean that is off by δ
standard deviations costs about δ²/2 nats: a certificate at 0.005 leaves no room for more than 0.1.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from benchmarks.summaries import summaries

import corebayes as cb

TOL, CERTIFIED_TOL = 0.002, 0.005
CHAINS, DRAWS = 4, 4000
# Draws of each chain of NUTS on all rows after half as many to warm up; more where they are the
# reference too.
NUTS_DRAWS, REFERENCE_DRAWS, WARMUP = 500, 1500, 500


def by_coreset(posterior: Any, seed: int) -> dict[str, Any]:
    began = time.process_time()
    model, rows = posterior.in_corebayes()
    # A tolerance takes certificates on the way; of a mixed model the counting argument is the size.
    asked: dict[str, Any] = {"tol": TOL} if posterior.size is None else {"size": posterior.size}
    coreset = cb.build(model, rows, **asked, seed=seed, progress=False)
    built = time.process_time()
    sampler = cb.Automatic(chains=CHAINS)
    draws = sampler.draw(
        np.random.default_rng(seed), cb.Posterior.of(coreset), CHAINS * DRAWS
    ).values
    sampled = time.process_time()
    certificate = cb.certify(coreset, rows, tol=CERTIFIED_TOL, seed=seed + 1)
    certified = time.process_time()
    named = posterior.named(coreset.model, draws.reshape(-1, draws.shape[-1]))
    shaped = {name: values.reshape(draws.shape[:2]) for name, values in named.items()}
    kl = certificate.reverse_kl
    return {
        "num_rows": posterior.num_rows,
        "num_parameters": coreset.model.dim,
        "size": coreset.size,
        "reason": coreset.reason,
        "build": built - began,
        "sample": sampled - built,
        "certify": certified - sampled,
        "certified": certificate.certified,
        "kl": None if kl is None else list(kl),
        "verdict": certificate.verdict,
        "parameters": summaries(shaped),
    }


def by_numpyro_model(posterior: Any, seed: int) -> dict[str, Any]:
    """The same from the NumPyro function, flat priors and all, as a user of NumPyro would have it:
    what the detour through JAX costs."""
    import numpyro

    numpyro.enable_x64()
    began = time.process_time()
    model, rows = cb.from_numpyro(posterior.numpyro_function(), *posterior.numpyro_arrays())
    coreset = cb.build(model, rows, tol=TOL, seed=seed, progress=False)
    built = time.process_time()
    draws = cb.Automatic(chains=CHAINS).draw(
        np.random.default_rng(seed), cb.Posterior.of(coreset), CHAINS * DRAWS
    )
    sampled = time.process_time()
    certificate = cb.certify(coreset, rows, tol=CERTIFIED_TOL, seed=seed + 1)
    values = coreset.model.constrain(draws.flat)
    shaped = {name: np.reshape(v, (CHAINS, -1, *v.shape[1:])) for name, v in values.items()}
    return {
        "size": coreset.size,
        "build": built - began,
        "sample": sampled - built,
        "certified": certificate.certified,
        "parameters": summaries(posterior.named_from_numpyro(shaped)),
    }


def by_nuts(posterior: Any, seed: int, *, long: bool) -> dict[str, Any]:
    """NumPyro's NUTS as it comes, with more draws if they are the reference too."""
    import jax
    import numpyro

    numpyro.enable_x64()
    began = time.process_time()
    draws = REFERENCE_DRAWS if long else NUTS_DRAWS
    run = numpyro.infer.MCMC(
        numpyro.infer.NUTS(posterior.in_numpyro()),
        num_warmup=WARMUP,
        num_samples=draws,
        num_chains=CHAINS,
        chain_method="sequential",
        progress_bar=False,
    )
    run.run(jax.random.PRNGKey(seed), extra_fields=("diverging", "num_steps"))
    values = {name: np.asarray(v) for name, v in run.get_samples(group_by_chain=True).items()}
    spent = time.process_time() - began
    extra = run.get_extra_fields()
    return {
        "seconds": spent,
        "warmup": WARMUP,
        "draws": draws,
        "divergences": int(np.sum(extra["diverging"])),
        "steps": float(np.mean(extra["num_steps"])),
        "parameters": summaries(posterior.named_from_numpyro(values)),
    }


def by_importance(posterior: Any, seed: int) -> tuple[dict[str, Any], float]:
    """Draws around Laplace's fit, weighed by all rows: no coreset; and k̂ of the weights."""
    model, rows = posterior.in_corebayes()
    found = cb.laplace(model, rows, draws=20_000, seed=seed, progress=False)
    draws = np.concatenate(
        [
            np.atleast_3d(values.values.reshape(CHAINS, -1, *values.shape[2:]))
            for values in found.posterior.data_vars.values()
        ],
        axis=2,
    )
    named = posterior.named(model.bind(rows), draws.reshape(-1, draws.shape[2]))
    shaped = {name: own.reshape(draws.shape[:2]) for name, own in named.items()}
    return summaries(shaped), float(found.attrs["pareto_k"])
