"""The evidence of all rows, log Z = log ∫ π_0(θ) ∏_n p(x_n | θ)^{c_n} dθ."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from corebayes.arguments import checked_seed, checked_whole
from corebayes.coreset import Coreset, nearer
from corebayes.exact.bridge import LIGHT, fitted_bridge, log_mean_ratio, log_normaliser
from corebayes.exact.correct import corrected
from corebayes.exact.cover import modes_of
from corebayes.exact.lost import LostModeError
from corebayes.exact.opening import opened
from corebayes.exact.residual import Residual
from corebayes.exact.smoothed import smoothed_draws
from corebayes.rows import Rows
from corebayes.samplers.exact import is_conjugate
from corebayes.samplers.independence import log_densities
from corebayes.samplers.modes.search import log_volume
from corebayes.samplers.posterior import Posterior
from corebayes.scan.passes import Executor
from corebayes.scan.query import Statistics
from corebayes.types import Array, Estimate, Rng

CHAINS = 4
# An error above this says that draws and density do not fit each other.
MAX_ERROR = 0.5


def log_evidence(
    coreset: Coreset,
    data: Any,
    *,
    draws: int = 4000,
    seed: int = 0,
    progress: bool | None = None,
    memory: str | int | None = None,
    executor: Executor | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    counts: Any = None,
    on_bad: str = "raise",
) -> Estimate:
    """The log marginal likelihood of all rows, with its standard error.

    log Z = log Z_w + log E_w[e^r]: the first from the rows of the coreset alone, by ratios to a
    mixture around its modes or by bridge sampling, the second from `draws` draws of its posterior
    in one pass. Where these ratios have too heavy a tail (k̂ > 0.5), a t is fitted to draws of the
    posterior of all rows (see `correct`) and bridged to them instead. Conjugate models have it in
    closed form, with an error of zero.

    Nothing is left out: neither what potentials leave out (factorials, 2π) nor the prior's
    constant, as far as the model's `log_prior` has it. `data` must be what the coreset was built
    from. Cost: one pass of N · draws potentials; two to four where the coreset is poor.
    """
    checked_whole("draws", draws, 100)
    checked_seed(seed)
    rng = np.random.default_rng(seed)
    opening = {
        "memory": memory,
        "executor": executor,
        "target": target,
        "features": features,
        "counts": counts,
        "on_bad": on_bad,
    }
    with opened(coreset, data, stage="evidence", progress=progress, **opening) as (rows, say):
        say("measuring the evidence")
        if is_conjugate(coreset.model):
            return _closed_form(coreset, rows)
        return _estimate(rng, coreset, rows, draws)


def _closed_form(coreset: Coreset, rows: Rows) -> Estimate:
    """log π_0(θ) + log p(x | θ) − log π(θ), at the mean of the Gaussian π."""
    model = coreset.model
    assert is_conjugate(model)
    fit = model.posterior(rows.ask(Statistics(model)))
    residual = Residual(coreset, rows, fit.mean)
    (height,) = _log_densities(residual, fit.mean[None])
    at_mean = -0.5 * fit.mean.size * np.log(2.0 * np.pi) - log_volume(fit)
    return Estimate(float(height - at_mean), 0.0)


def _estimate(rng: Rng, coreset: Coreset, rows: Rows, draws: int) -> Estimate:
    found = None
    with suppress(LostModeError):
        found = smoothed_draws(rng, coreset, rows, -(-draws // CHAINS), CHAINS)
    if found is not None and found.pareto_k <= LIGHT:
        posterior = Posterior.of(coreset)
        ours = log_normaliser(rng, posterior, modes_of(rng, posterior))
        rest = log_mean_ratio(found.ratios, independent=found.independent)
        constant = found.residual.at_anchor + found.residual.base
        error = float(np.hypot(ours.standard_error, rest.standard_error))
        return Estimate(float(ours.value + rest.value + constant), error)
    exactly = corrected(rng, coreset, rows, -(-draws // CHAINS), CHAINS)
    result = fitted_bridge(
        rng, exactly.values, lambda theta: _log_densities(exactly.residual, theta), draws
    )
    if not result.standard_error < MAX_ERROR:
        warnings.warn(
            f"the evidence is uncertain by {result.standard_error:.2g} nats, since the coreset "
            f"posterior is far from that of all rows: {nearer(coreset, sized=True)}",
            UserWarning,
            stacklevel=4,
        )
    return result


def _log_densities(residual: Residual, draws: Array) -> Array:
    """log π_0(θ) + Σ_n c_n log p(x_n | θ) at draws. Cost: one pass."""
    relative = residual.at(draws)
    ours = log_densities(Posterior.of(residual.coreset), draws)
    return ours + relative + residual.at_anchor + residual.base
