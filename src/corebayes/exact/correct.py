"""Draws of the posterior of all rows, from draws of a coreset's."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from corebayes.arguments import checked_seed, checked_whole
from corebayes.coreset import Coreset, nearer
from corebayes.exact.chains import draw_exactly
from corebayes.exact.exactly import ENOUGH, Exactly
from corebayes.exact.opening import opened
from corebayes.exact.smoothed import smoothed_draws
from corebayes.exact.surrogate import TooManyPassesError
from corebayes.rows import Rows
from corebayes.sample import arviz_data
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.worth import Worth, worth
from corebayes.scan.passes import Executor
from corebayes.types import Array, Rng

METHODS = ("surrogate", "psis")
# Chains disagree beyond this R̂; fewer effective draws than these of a chain say little.
MAX_RHAT, LEAST_ESS = 1.05, 100


def correct(
    coreset: Coreset,
    data: Any,
    *,
    draws: int = 1000,
    chains: int = 4,
    seed: int = 0,
    method: str = "surrogate",
    resample: bool = True,
    progress: bool | None = None,
    memory: str | int | None = None,
    executor: Executor | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    counts: Any = None,
    on_bad: str = "raise",
) -> Any:
    """Draws of the posterior of all rows, as `sample` gives those of the coreset's.

    `data` must be what the coreset was built from (`target`, `features`, `counts` and `on_bad` as
    there); `memory`, such as "500MB", is what the passes may bring the process to in all.

    `method="surrogate"` is exact whatever the coreset: moves made on the coreset are accepted with
    min(1, e^{r(θ′) − r(θ)}), r = Σ c_n f_n − Σ w_i f_i, which leaves the posterior of all rows
    invariant. Moves are made ahead and judged for all chains in one pass. A poor coreset costs
    passes and acceptance, and a warning says so, and what size would help; draws that have not
    mixed are never returned without one. Conjugate models are drawn from in closed form. Of a model
    that is not log-concave, modes that the coreset lost are searched for as `certify` does, and
    drawn from around the modes of all rows; where that is not possible, there is an error.

    `method="psis"` weighs draws of the coreset posterior by Pareto-smoothed e^r and draws again in
    proportion (with `resample=False` the weights are in `sample_stats.log_weight` instead); k̂ of
    the weights is in the attributes and k̂ of every variable in the group `pareto_k`; above 0.7
    there is a warning, since then the draws miss part of the posterior.

    `sample_stats` has the log density of all rows `lp`, `log_ratio`, which is r up to a constant,
    and `accepted`; the attributes have what it took (`num_passes`, `evaluations_per_draw`) and how
    it went (`acceptance`, `pareto_k`, `max_rhat`, `min_ess_bulk`, `min_ess_tail`).
    Cost: about 1.05·N potentials for each draw, in one pass, where the coreset is good; two to
    three times that where it is poor. PSIS: N potentials for each draw, in one pass.
    """
    checked_whole("draws", draws, 4)
    checked_whole("chains", chains)
    checked_seed(seed)
    if method not in METHODS:
        raise ValueError(f'method must be "surrogate" or "psis", got {method!r}')
    rng = np.random.default_rng(seed)
    opening = {
        "memory": memory,
        "executor": executor,
        "target": target,
        "features": features,
        "counts": counts,
        "on_bad": on_bad,
    }
    with opened(coreset, data, stage="correcting", progress=progress, **opening) as (rows, say):
        say("drawing from the posterior of all rows")
        if method == "psis":
            return _weighted(rng, coreset, rows, draws, chains, seed, resample=resample)
        exactly = corrected(rng, coreset, rows, draws, chains)
    known = warn_if_poor(coreset, exactly)
    lp = _log_density(coreset, exactly.values, exactly.residuals, exactly)
    stats = {"lp": lp, "log_ratio": exactly.residuals, "accepted": exactly.accepted}
    residual = exactly.residual
    attributes = {
        "sampler": exactly.how,
        "surrogate": exactly.surrogate,
        "sampling_seed": seed,
        "acceptance": exactly.acceptance,
        "pareto_k": exactly.pareto_k,
        "num_passes": residual.num_passes,
        "evaluations_per_draw": residual.num_evaluations / (draws * chains),
        **known._asdict(),
    }
    kept = {name: values for name, values in stats.items() if np.all(np.isfinite(values))}
    return arviz_data(coreset, exactly.values, kept, attributes)


def corrected(rng: Rng, coreset: Coreset, rows: Rows, draws: int, chains: int) -> Exactly:
    """Draws of π from opened rows, or one sentence on why there are none."""
    try:
        return draw_exactly(rng, coreset, rows, draws, chains)
    except TooManyPassesError as error:
        raise ValueError(
            f"the coreset posterior ({coreset.size:,} rows) is too far from that of all rows to "
            f"draw from it ({error}): {nearer(coreset, sized=True)}"
        ) from None


def _weighted(
    rng: Rng, coreset: Coreset, rows: Rows, draws: int, chains: int, seed: int, *, resample: bool
) -> Any:
    found = smoothed_draws(rng, coreset, rows, draws, chains)
    values, ratios = found.values, found.ratios
    if found.pareto_k > found.limit:
        warnings.warn(
            f"the importance ratios of all rows to the coreset have a heavy tail (Pareto k̂ = "
            f"{found.pareto_k:.2f}, above {found.limit:.2f}): the weighted draws miss part of the "
            'posterior. Use method="surrogate", or '
            f"{nearer(coreset, sized=True)}",
            UserWarning,
            stacklevel=3,
        )
    stats: dict[str, Array] = {}
    if resample:
        chosen = found.chosen(rng)
        values = found.flat[chosen].reshape(values.shape)
        ratios = ratios.ravel()[chosen].reshape(ratios.shape)
    else:
        stats["log_weight"] = found.log_weights
    stats |= {"lp": _log_density(coreset, values, ratios, found), "log_ratio": ratios}
    attributes = {
        "sampler": f"{found.how}, Pareto-smoothed importance sampling",
        "sampling_seed": seed,
        "pareto_k": found.pareto_k,
        "effective_draws": found.effective,
        "num_passes": found.residual.num_passes,
        "evaluations_per_draw": 1.0,
    }
    return arviz_data(coreset, values, stats, attributes, {"pareto_k": found.shapes(coreset.model)})


def _log_density(coreset: Coreset, values: Array, residuals: Array, found: Any) -> Array:
    """log π_0(θ) + Σ_n c_n log p(x_n | θ), (chains, draws)."""
    flat = values.reshape(-1, values.shape[-1])
    ours = Posterior.of(coreset).log_density(flat).reshape(residuals.shape)
    return ours + residuals + found.residual.at_anchor + found.residual.base


def warn_if_poor(coreset: Coreset, exactly: Exactly) -> Worth:
    """Say what is wrong with the draws, and what they are worth."""
    chains, draws, _ = exactly.values.shape
    found = worth(exactly.values)
    rhat, ess = found.max_rhat, min(found.min_ess_bulk, found.min_ess_tail)
    help_ = nearer(coreset, sized=True)
    if rhat > MAX_RHAT or ess < min(LEAST_ESS * chains, 0.1 * chains * draws):
        warnings.warn(
            f"the draws of the posterior of all rows have not mixed (largest R̂ {rhat:.2f}, "
            f"{ess:,.0f} effective of {chains * draws:,}; {exactly.acceptance:.0%} of the moves "
            f"were accepted): do not use them. Take more draws, or {help_}",
            UserWarning,
            stacklevel=3,
        )
    elif not exactly.good:
        trouble = (
            f"only {exactly.acceptance:.0%} of the moves on the coreset were accepted"
            if exactly.time > ENOUGH
            else f"the ratios to what was proposed have a heavy tail (k̂ = {exactly.pareto_k:.2f})"
        )
        warnings.warn(
            f"{trouble}, since its posterior is far from that of all rows: the chains agree "
            f"(R̂ {rhat:.2f}) but the draws are worth only {ess:,.0f}. For better ones {help_}",
            UserWarning,
            stacklevel=3,
        )
    return found
