"""NumPyro on all rows: NUTS, energy-conserving subsampling, and variational fits.

The model is what `corebayes.to_numpyro` makes of all rows; for HMCECS, which subsamples rows inside
the model, it is written out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.peers.problems import Problem, flattened
from benchmarks.peers.result import ENOUGH, Clock, Result, smallest_ess

import corebayes as cb
from corebayes.samplers.laplace import full_posterior

WARMUP = 300
# Every part is compiled again, which is worth it where a draw costs more.
FEW_ROWS, LARGE_PART, SMALL_PART = 20_000, 1000, 100
STEPS, PART, VI_DRAWS = 3000, 50, 4000
# The length of Adam's first step, and by how much the last is shorter.
FIRST_STEP, SHORTER = 0.05, 0.01
SUBSAMPLE, BLOCKS = 1000, 100


def _on_all_rows(problem: Problem) -> Any:
    import numpyro

    numpyro.enable_x64()
    return cb.to_numpyro(problem.everything)


def _variables(problem: Problem, values: dict[str, Any]) -> dict[str, np.ndarray]:
    """Those that corebayes has too: not, say, effects divided by their standard deviation."""
    known = problem.named(np.zeros((1, 1, problem.model.dim)))
    return {name: own for name, own in flattened(values).items() if name in known}


def _until_enough(
    problem: Problem, kernel: Any, seed: int, limit: float, clock: Clock, enough: float = ENOUGH
) -> Result:
    """One chain, in parts, until there are enough effective draws or time is up."""
    import jax
    import numpyro

    part = LARGE_PART if problem.rows.num_rows <= FEW_ROWS else SMALL_PART
    run = numpyro.infer.MCMC(
        kernel, num_warmup=WARMUP, num_samples=part, num_chains=1, progress_bar=False
    )
    run.run(jax.random.PRNGKey(seed))
    parts: list[dict[str, np.ndarray]] = []
    warm = clock.seconds
    while True:
        parts.append({name: np.asarray(own)[None] for name, own in run.get_samples().items()})
        joined = {name: np.concatenate([one[name] for one in parts], 1) for name in parts[0]}
        draws = _variables(problem, joined)
        ess = smallest_ess(draws)
        if ess >= enough or clock.seconds + (clock.seconds - warm) / len(parts) > limit:
            break
        run.post_warmup_state = run.last_state
        run.run(run.post_warmup_state.rng_key)
    note = f"{part * len(parts):,} draws of one chain after {WARMUP} to warm up"
    return Result(draws, clock.seconds, note, ess=int(ess))


def nuts(problem: Problem, seed: int, limit: float, enough: float = ENOUGH) -> Result:
    import numpyro

    model, clock = _on_all_rows(problem), Clock()
    return _until_enough(problem, numpyro.infer.NUTS(model), seed, limit, clock, enough)


def hmcecs(problem: Problem, seed: int, limit: float) -> Result:
    """Started at the mode, with the Taylor proxy around it."""
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    if not isinstance(problem.model, cb.GLM):
        raise ValueError("subsampling of rows is for models without groups here")
    numpyro.enable_x64()
    poisson = isinstance(problem.model, cb.PoissonRegression)
    X, y = jnp.asarray(problem.block.X), jnp.asarray(problem.block.y)
    # Labels may be −1 and 1.
    y = y if poisson else (y > 0.0).astype(float)

    def model() -> None:
        beta = numpyro.sample("beta", dist.Normal().expand([X.shape[1]]).to_event(1))
        with numpyro.plate("rows", len(y), subsample_size=min(SUBSAMPLE, len(y) // 2)):
            eta = numpyro.subsample(X, event_dim=1) @ beta
            seen = numpyro.subsample(y, event_dim=0)
            of_row = dist.Poisson(jnp.exp(eta)) if poisson else dist.BernoulliLogits(eta)
            numpyro.sample("y", of_row, obs=seen)

    clock = Clock()
    mode = full_posterior(problem.model, problem.rows, tolerance=1e-8).mean
    proxy = numpyro.infer.HMCECS.taylor_proxy({"beta": jnp.asarray(mode)})
    start = numpyro.infer.init_to_value(values={"beta": jnp.asarray(mode)})
    inner = numpyro.infer.NUTS(model, init_strategy=start)
    kernel = numpyro.infer.HMCECS(inner, num_blocks=BLOCKS, proxy=proxy)
    return _until_enough(problem, kernel, seed, limit, clock)


def _variational(problem: Problem, guide: str, seed: int, limit: float) -> Result:
    """Adam on the evidence bound, in parts, so that it stops in time."""
    import jax
    import numpyro

    model, clock = _on_all_rows(problem), Clock()
    # From random places counts of e²⁰ are expected, and Adam never forgets so large a gradient.
    start = numpyro.infer.init_to_median
    made = getattr(numpyro.infer.autoguide, guide)(model, init_loc_fn=start)
    # Steps of one length would stay as far from the optimum as they are long.
    optimiser = numpyro.optim.Adam(lambda step: FIRST_STEP * SHORTER ** (step / STEPS))
    fit = numpyro.infer.SVI(model, made, optimiser, numpyro.infer.Trace_ELBO())
    key = jax.random.PRNGKey(seed)
    state, taken = fit.init(key), 0
    steps = jax.jit(lambda s: jax.lax.fori_loop(0, PART, lambda _, one: fit.update(one)[0], s))
    while taken < STEPS and clock.seconds < limit:
        state, taken = jax.block_until_ready(steps(state)), taken + PART
    parameters = fit.get_params(state)
    values = made.sample_posterior(key, parameters, sample_shape=(VI_DRAWS,))
    shaped = {name: np.asarray(own).reshape(4, -1, *own.shape[1:]) for name, own in values.items()}
    note = f"{taken:,} steps of Adam" + ("" if taken >= STEPS else ", stopped at the limit")
    return Result(_variables(problem, shaped), clock.seconds, note, ess=VI_DRAWS)


def mean_field(problem: Problem, seed: int, limit: float) -> Result:
    return _variational(problem, "AutoNormal", seed, limit)


def full_rank(problem: Problem, seed: int, limit: float) -> Result:
    return _variational(problem, "AutoMultivariateNormal", seed, limit)


def pathfinder(problem: Problem, seed: int, limit: float) -> Result:
    """blackjax's, on the potential of the NumPyro model."""
    import blackjax
    import jax
    import numpyro

    model = _on_all_rows(problem)
    key = jax.random.PRNGKey(seed)
    clock = Clock()
    begun = numpyro.infer.util.initialize_model(key, model, dynamic_args=False)
    potential, start = begun.potential_fn, begun.param_info.z
    find = blackjax.vi.pathfinder.approximate
    state, _ = jax.jit(lambda z: find(key, lambda at: -potential(at), z))(start)
    found, _ = blackjax.vi.pathfinder.sample(key, state, VI_DRAWS)
    values = jax.vmap(begun.postprocess_fn)(found)
    shaped = {name: np.asarray(own).reshape(4, -1, *own.shape[1:]) for name, own in values.items()}
    return Result(_variables(problem, shaped), clock.seconds, "blackjax", ess=VI_DRAWS)
