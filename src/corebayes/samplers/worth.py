"""R̂ and effective sizes of all parameters at once, as arviz-stats has them for one.

Vehtari et al., "Rank-normalization, folding, and localization: an improved R̂ for assessing
convergence of MCMC" (2021). With chains split in halves, W the mean variance within them and B the
variance of their means, V = W (n − 1)/n + B and

    R̂ = √(V / W),     ESS = K n / τ,     τ = −1 + 2 Σ_t ρ_t,     ρ_t = 1 − (W − γ_t) / V

with γ the mean autocovariance and the sum over Geyer's initial monotone sequence. R̂ is the larger
one of ranks and of folded ranks; the bulk ESS is of ranks, the tail ESS of being below the 5 % and
the 95 % quantile. One parameter after the other, as the library goes, this takes longer than the
draws of a small coreset. Values are (chains, draws, d).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.fft import next_fast_len
from scipy.special import ndtri

from corebayes.types import Array, Indices


class Worth(NamedTuple):
    """Of the parameter that is worst off."""

    max_rhat: float
    min_ess_bulk: float
    min_ess_tail: float


def worth(values: Array) -> Worth:
    """What draws are worth; parameters that never change are passed over. Cost: S log S · d."""
    flat = values.reshape(*values.shape[:2], -1)
    flat = flat[:, :, np.ptp(flat, axis=(0, 1)) > 0.0]
    if flat.size == 0 or flat.shape[1] < 4 or not np.all(np.isfinite(flat)):
        return Worth(np.nan, np.nan, np.nan)
    halves = _split(flat)
    ranks = _normal_ranks(halves)
    folded = _normal_ranks(np.abs(halves - np.median(halves, axis=(0, 1))))
    quantiles = np.quantile(flat, (0.05, 0.95), axis=(0, 1))
    below = [(halves <= quantile).astype(np.float64) for quantile in quantiles]
    # A chain that never moves agrees with no other.
    stuck = np.ptp(flat, axis=1).min(axis=0) == 0.0
    rhats = np.where(stuck, np.inf, np.maximum(_rhat(ranks), _rhat(folded)))
    tails = np.minimum(_effective(below[0]), _effective(below[1]))
    return Worth(float(rhats.max()), float(_effective(ranks).min()), float(tails.min()))


def _split(values: Array) -> Array:
    """Every chain as two; of an odd number of draws the middle one is left out."""
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]])


def _normal_ranks(values: Array) -> Array:
    """Ranks among all draws, as normal quantiles; equal draws share the mean of their ranks."""
    number = values.shape[0] * values.shape[1]
    columns = np.ascontiguousarray(values.reshape(number, -1).T)
    order = np.argsort(columns, axis=1)
    ordered = np.take_along_axis(columns, order, axis=1)
    places: Indices = np.arange(number, dtype=np.int64)
    new = np.diff(ordered, axis=1, prepend=-np.inf) > 0.0
    last = np.diff(ordered, axis=1, append=np.inf) > 0.0
    first = np.maximum.accumulate(np.where(new, places, 0), axis=1)
    final = np.minimum.accumulate(np.where(last, places, number)[:, ::-1], axis=1)[:, ::-1]
    ranks = np.empty_like(columns)
    np.put_along_axis(ranks, order, 0.5 * (first + final) + 1.0, axis=1)
    quantiles = np.asarray(ndtri((ranks - 0.375) / (number + 0.25)), dtype=np.float64)
    return quantiles.T.reshape(values.shape)


def _rhat(halves: Array) -> Array:
    number = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(between / within + (number - 1.0) / number)


def _effective(halves: Array) -> Array:
    """ESS of the mean of every parameter."""
    chains, number, dim = halves.shape
    means = halves.mean(axis=1)
    length = next_fast_len(2 * number, real=True)
    spectrum = np.fft.rfft(halves - means[:, None], n=length, axis=1)
    power = np.mean(np.square(spectrum.real) + np.square(spectrum.imag), axis=0)
    covariances = np.fft.irfft(power, n=length, axis=0)[:number] / number
    within = covariances[0] * number / (number - 1.0)
    total = covariances[0] + means.var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlations = 1.0 - (within - covariances) / total
    correlations[0] = 1.0
    sizes = [_size(correlations[:, k], chains * number) for k in range(dim)]
    return np.where(total > 0.0, np.array(sizes), chains * number)


def _size(correlations: Array, number: int) -> float:
    """Geyer's initial monotone sequence: sums of pairs, while they are positive, never rising."""
    # The last lags are known from next to nothing.
    num_pairs = max(1, (correlations.size - 1) // 2)
    pairs = correlations[: 2 * num_pairs].reshape(-1, 2).sum(axis=1)
    # Of the pair that ends the sequence the first lag counts once, if it is positive.
    last = int(np.argmax(np.append(~(pairs[:-1] > 0.0), True)))
    monotone = np.minimum.accumulate(pairs[:last])
    time = -1.0 + 2.0 * monotone.sum() + max(float(correlations[2 * last]), 0.0)
    return float(number / max(time, 1.0 / np.log10(number)))
