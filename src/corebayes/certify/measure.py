"""How far the coreset posterior is from the full one, measured on fresh draws in one pass.

For θ_s ~ π_w the log importance ratio log π/π_w is r(θ_s) = Σ_n c_n f_n(θ_s) − Σ_i w_i f_i(θ_s)
up to a constant, so with r centred and u_s = e^{r_s} / mean e^r,

    KL(π_w ‖ π) = log mean e^r                           ("reverse", what a coreset minimises)
    KL(π ‖ π_w) = mean u r − log mean e^r                ("forward")

Both are never negative (Jensen; a discrete relative entropy) and, because r is centred, as exact
at 1e-12 nats as at 1. Their bias is a share 1/S of their size. Standard errors are those of the
means of the influence functions u − 1 − r and u (r − mean u r) − (u − 1), with the autocorrelation
of the draws, and larger where the tail of e^r slows down convergence. The shape k̂ of that tail
(Vehtari et al., "Pareto smoothed importance sampling", 2024) says whether these means can be
trusted at all; if not, no number is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np

from corebayes.arguments import checked_positive, checked_seed, checked_whole
from corebayes.certify import certificate
from corebayes.certify.certificate import Certificate
from corebayes.certify.modes import NEGLIGIBLE, prior_starts, unvisited_mode
from corebayes.certify.steps import certificate_of_steps
from corebayes.coreset import Coreset, check_coreset
from corebayes.diagnostics import log_ratios
from corebayes.formula.rows import as_built
from corebayes.rows import Rows
from corebayes.samplers.convergence import (
    HEAVY,
    efficiency,
    max_rhat,
    pareto_k,
    standard_error,
    tail_counts,
    tail_inflation,
)
from corebayes.samplers.draws import Draws, Sampler
from corebayes.samplers.exact import Exact, is_conjugate
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.mixture import mixture_draws
from corebayes.samplers.mode_search import distinct_modes, find_modes, shares_of
from corebayes.samplers.nuts import NUTS
from corebayes.samplers.posterior import Posterior
from corebayes.scan.passes import Executor
from corebayes.types import Array, Estimate

# Chains disagree beyond this R̂, tails are too heavy beyond this k̂, and fewer draws than this
# cannot be told from one another.
MAX_RHAT, MAX_PARETO_K, MIN_EFFECTIVE = 1.05, 0.7, 100.0
MIN_CHAIN = 300


def certify(
    coreset: Coreset,
    data: Any = None,
    *,
    draws: int = 1000,
    seed: int = 1,
    tol: float = 0.02,
    sampler: Sampler | None = None,
    memory: str | int | None = None,
    executor: Executor | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    counts: Any = None,
    on_bad: str = "raise",
) -> Certificate:
    """Measure KL between the coreset posterior and the posterior of all rows, on fresh draws.

    `data` must be what the coreset was built from (`target`, `features`, `counts` and `on_bad` as
    there); of an updated or merged coreset all its sources, in a list. Without `data` the certified
    errors of the steps that led to it are added up, which is no measurement (`certify/steps.py`).
    `memory`, such as "500MB", is what the passes may bring the process to in all.
    The coreset is certified when KL(π_w ‖ π) is at most `tol` nats with two standard errors to
    spare; at 0.02 no probability is off by more than 0.1. Draws are exact for conjugate models
    and otherwise come from four NUTS chains; where these stay in separate modes, from a mixture
    around the modes, weighted. A `sampler` of one's own must draw from π_w itself; unless it says
    that its draws are independent, errors have their autocorrelation and its chains must agree.
    No number is given when the chains disagree, draws diverge, the ratios have heavy tails
    (k̂ > 0.7) or few effective draws, or a posterior has a mode that the draws never visit.
    Cost: one pass of N · draws potentials; models that are not log-concave also search for
    modes, on a subsample first.
    """
    _check_arguments(draws, tol, seed, sampler)
    check_coreset(coreset)
    if data is None:
        return certificate_of_steps(coreset, tol)
    rows = as_built(
        coreset,
        data,
        target=target,
        features=features,
        counts=counts,
        on_bad=on_bad,
        memory=memory,
        executor=executor,
    )
    if not is_conjugate(coreset.model):
        # Before anything is read.
        rows.with_sampling()
    check_same_data(coreset, rows)
    return measure(coreset, rows, draws=draws, seed=seed, tol=tol, sampler=sampler)


def measure(
    coreset: Coreset,
    rows: Rows,
    *,
    draws: int = 1000,
    seed: int = 1,
    tol: float = 0.02,
    sampler: Sampler | None = None,
) -> Certificate:
    """The certificate of a coreset that is known to be of these rows; see `certify`."""
    rng = np.random.default_rng(seed)
    if sampler is None and not is_conjugate(coreset.model):
        rows = rows.with_sampling()
    sampled = _draw(rng, Posterior.of(coreset), draws, sampler)
    if sampler is None and not coreset.model.log_concave:
        sampled = _draw_modes(rng, coreset, sampled) or sampled
    flat = sampled.flat
    ratios = log_ratios(coreset, rows, flat)
    ratios = ratios.reshape(sampled.values.shape[:2])
    if not sampled.independent:
        sampled = replace(sampled, max_rhat=max(sampled.max_rhat, max_rhat(ratios)))
    trouble = _sampling_trouble(sampled)
    if trouble is not None:
        return _withheld(coreset, sampled, tol, trouble)
    result = _certificate(coreset, sampled, tol, ratios)
    if result.reverse_kl is not None and not coreset.model.log_concave:
        trouble = unvisited_mode(rng, coreset, rows, flat)
        if trouble is not None:
            return _withheld(coreset, sampled, tol, trouble)
    return result


def check_same_data(coreset: Coreset, data: Rows) -> None:
    """A coreset stands for the rows it was built from, so only these can judge it.

    Its model must have a density for every row. Cost: one pass, unless it was made before.
    """
    # Learned rows have negative numbers: there is nothing in the data to compare them with.
    taken = np.flatnonzero((coreset.indices >= 0) & (coreset.indices < data.num_rows))
    data.want(coreset.indices[taken])
    row_check = getattr(coreset.model, "row_check", None)
    data.check(None if row_check is None or data.num_rows != coreset.num_rows else row_check())
    # Sums of fractional counts differ in their last digits from one way of reading to another.
    same_count = np.isclose(data.total_count, coreset.total_count, rtol=1e-9, atol=0.0)
    if data.num_rows != coreset.num_rows or not same_count:
        raise ValueError(
            f"the coreset was built from {coreset.num_rows:,} rows with a total count of "
            f"{coreset.total_count:,g}; this data has {data.num_rows:,} rows and "
            f"{data.total_count:,g}: pass the data it was built from"
        )
    _check_names(coreset.provenance.get("column_names", ()), data.column_names)
    rows = data.take(coreset.indices[taken])
    for name, ours in coreset.rows.take(taken).fields.items():
        theirs = rows.fields.get(name)
        if theirs is None or theirs.shape != ours.shape:
            shape = "missing" if theirs is None else f"of shape {theirs.shape[1:]}"
            raise ValueError(
                f"the coreset's rows have a field {name!r} of shape {ours.shape[1:]}, which in "
                f"this data is {shape}: pass the data the coreset was built from"
            )
        # Files may round the last digit; that changes no verdict.
        other = np.argwhere(~np.isclose(ours, theirs, rtol=1e-9, atol=0.0))
        if other.size:
            row = coreset.indices[taken[other[0, 0]]]
            raise ValueError(
                f"row {row} of this data differs from the coreset's in "
                f"{name!r}: pass the data the coreset was built from, in its order"
            )


def _check_names(built: Sequence[str], given: Sequence[str]) -> None:
    """Where both sides have names for the columns of X, they must be the same."""
    if not built or not given:
        return
    for place, (theirs, ours) in enumerate(zip_longest(built, given), start=1):
        if theirs != ours:
            raise ValueError(
                f"feature {place} of this data is {'missing' if ours is None else repr(ours)}, "
                f"where the coreset was built on {'no more' if theirs is None else repr(theirs)}: "
                "name the same features, in the same order"
            )


def _draw(
    rng: np.random.Generator, posterior: Posterior, num_draws: int, sampler: Sampler | None
) -> Draws:
    if sampler is None:
        sampler = Exact() if is_conjugate(posterior.model) else NUTS(chains=4)
    if not isinstance(sampler, NUTS):
        return sampler.draw(rng, posterior, num_draws).diagnosed()
    # Draws cost M rows each but N in the pass, so chains run longer and are thinned for it; they
    # must be long anyway for R̂ to tell disagreement from chance.
    each = -(-num_draws // sampler.chains)
    thin = max(2, -(-MIN_CHAIN // each))
    return sampler.draw(rng, posterior, thin * each * sampler.chains).diagnosed().thinned(thin)


def _draw_modes(rng: np.random.Generator, coreset: Coreset, chains: Draws) -> Draws | None:
    """Draws from all modes of π_w if it has several, since a chain may stay in one of them."""
    posterior = Posterior.of(coreset)
    starts = np.vstack([prior_starts(rng, coreset), chains.values[:, -1]])
    modes = distinct_modes(find_modes(posterior, starts))
    if len(modes) < 2 or shares_of(modes)[1] < NEGLIGIBLE:
        return None
    mixture = mixture_draws(rng, posterior, len(chains.flat), modes).diagnosed()
    return mixture if mixture.pareto_k <= MAX_PARETO_K else None


def _sampling_trouble(sampled: Draws) -> str | None:
    if sampled.max_rhat > MAX_RHAT:
        return (
            f"the chains on the coreset ({sampled.how}) disagree (R̂ = {sampled.max_rhat:.3f}, "
            f"above {MAX_RHAT}): π_w has several modes or a difficult shape. Build with a larger "
            "size, or sample longer with sampler=NUTS(num_tune=2000, chains=4) and more draws"
        )
    if sampled.num_divergences:
        return (
            f"{sampled.num_divergences} draws ({sampled.how}) diverged also with a smaller step, "
            "so parts of π_w are not explored. Reparametrise the model, or build with a larger size"
        )
    return None


def _ratio_trouble(k: float, effective: float, num_draws: int) -> str | None:
    # Finite samples need lighter tails than 0.7 when there are fewer than 2,200 of them.
    limit = min(MAX_PARETO_K, 1.0 - 1.0 / np.log10(num_draws))
    if k > limit:
        # As many digits as it takes to see the difference.
        digits = next(n for n in range(2, 18) if f"{k:.{n}f}" != f"{limit:.{n}f}")
        found = f"have too heavy a tail (Pareto k̂ = {k:.{digits}f}, above {limit:.{digits}f})"
    elif effective < min(MIN_EFFECTIVE, 0.1 * num_draws):
        found = f"leave only {effective:.0f} effective draws of {num_draws:,}"
    else:
        return None
    return (
        f"the importance ratios π/π_w {found}: π_w is far from π, or misses part of it. "
        "Build with a larger size"
    )


def _certificate(coreset: Coreset, sampled: Draws, tol: float, ratios: Array) -> Certificate:
    """The estimates from log ratios r of shape (chains, draws)."""
    weights = np.ones_like(ratios) if sampled.weights is None else sampled.weights
    ratios = ratios - np.mean(weights * ratios)
    log_mean = _log_mean_exp(ratios, weights)
    u = np.exp(ratios - log_mean)
    share = efficiency(u, independent=sampled.independent)
    # Against what the draws are of: π / π_w, or π / q.
    drawn = ratios + np.log(np.maximum(weights, np.exp(-700.0)))
    shape = pareto_k(drawn, share)
    # A tail that cannot count is none, but the error of so small a KL has it all the same.
    k = shape if tail_counts(drawn, share * ratios.size) else min(shape, 0.0)
    effective = share * ratios.size / float(np.mean(np.square(weights * u)))
    trouble = _ratio_trouble(k, effective, ratios.size)
    if trouble is not None:
        withheld = _withheld(coreset, sampled, tol, trouble)
        return replace(withheld, pareto_k=k, effective_sample_size=effective)
    mean_ur = float(np.mean(weights * u * ratios))
    influence = {
        "reverse": weights * (u - 1.0 - ratios),
        "forward": weights * (u * (ratios - mean_ur) - (u - 1.0)),
        "symmetrised": weights * (u * (ratios - mean_ur) - ratios),
    }
    inflation = tail_inflation(min(shape, HEAVY), ratios.size)
    error = {
        name: inflation * standard_error(values, independent=sampled.independent)
        for name, values in influence.items()
    }
    reverse = Estimate(log_mean, error["reverse"])
    forward = Estimate(max(mean_ur - log_mean, 0.0), error["forward"])
    symmetrised = Estimate(max(mean_ur, 0.0), error["symmetrised"])
    upper = [kl.value + 2.0 * kl.standard_error for kl in (reverse, forward)]
    variation = _total_variation(min(upper))
    certified = upper[0] <= tol
    return Certificate(
        reverse_kl=reverse,
        forward_kl=forward,
        symmetrised_kl=symmetrised,
        total_variation=variation,
        pareto_k=k,
        effective_sample_size=effective,
        num_draws=ratios.size,
        max_rhat=sampled.max_rhat,
        num_divergences=sampled.num_divergences,
        tol=tol,
        certified=certified,
        verdict=certificate.measured(coreset, reverse, variation, tol, certified=certified),
    )


def _withheld(coreset: Coreset, sampled: Draws, tol: float, trouble: str) -> Certificate:
    return Certificate(
        num_draws=len(sampled.flat),
        max_rhat=sampled.max_rhat,
        num_divergences=sampled.num_divergences,
        tol=tol,
        certified=False,
        verdict=certificate.withheld(coreset, trouble),
    )


def _total_variation(kl: float) -> float:
    """min(√(KL/2), √(1 − e^−KL)): Pinsker for small KL, Bretagnolle and Huber for large."""
    return float(np.sqrt(min(kl / 2.0, -np.expm1(-kl))))


def _log_mean_exp(ratios: Array, weights: Array) -> float:
    """log mean e^r ≥ 0 of centred r, exact also where r is tiny, safe where it is huge."""
    top = float(ratios.max())
    if top < 1.0:
        # mean e^r = 1 + mean(e^r − 1 − r), since mean r = 0
        return float(np.log1p(np.mean(weights * (np.expm1(ratios) - ratios))))
    return top + float(np.log(np.mean(weights * np.exp(ratios - top))))


def _check_arguments(draws: int, tol: float, seed: int, sampler: Sampler | None) -> None:
    checked_whole("draws", draws, 100)
    checked_positive("tol", tol)
    checked_seed(seed)
    if isinstance(sampler, Laplace):
        raise ValueError(
            "Laplace() draws from an approximation of π_w, which would certify the approximation; "
            "leave sampler out, or pass NUTS()"
        )
