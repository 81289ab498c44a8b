"""What a coreset changes about single parameters, and about those that all rows share.

A mixed model may have thousands of parameters, and then half a nat of KL over all of them is all
one needs. With draws of π_w and their log ratios r = log π/π_w, draws weighted by e^r are of π, so
every mean and standard deviation is known under both, from the same draws: differences have errors
as small as r is. The share of KL that the shared parameters φ have is what r has in common with
them,

    KL(π_w(φ) ‖ π(φ)) ≈ ½ Var E[r | φ] ≤ KL(π_w ‖ π),

with E[r | φ] a quadratic: the variance that it explains, less what as many random columns would.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from corebayes.samplers.convergence import efficiency
from corebayes.types import Array, Estimate, Indices

# Quadratics of φ for every so many draws; with more the fit would follow the noise.
DRAWS_A_COLUMN = 4


class Marginals(NamedTuple):
    """Changes of marginals from π_w to π."""

    shift: Estimate
    """The largest change of a mean, in standard deviations of its parameter."""
    shifted: str
    """Its parameter."""
    smallest_sd: float
    """The smallest ratio of a standard deviation under π_w to that under π."""
    largest_sd: float
    shared_kl: Estimate
    """KL(π_w ‖ π) of the parameters that all rows share and of the scales."""
    num_shared: int

    def __str__(self) -> str:
        value, error = self.shared_kl
        return (
            f"  {f'{self.num_shared} shared parameters':<20}KL {value:.1e} ± {error:.0e} nats\n"
            f"  {'marginals':<20}means move by at most {self.shift.value:.3f} ± "
            f"{self.shift.standard_error:.3f} sd ({self.shifted}), sds by factors of "
            f"{self.smallest_sd:.3f} to {self.largest_sd:.3f}"
        )


def marginals(
    draws: Array, ratios: Array, names: tuple[str, ...], shared: Indices, independent: bool
) -> Marginals:
    """From draws (chains, draws, d) of π_w and their log ratios (chains, draws)."""
    flat = draws.reshape(-1, draws.shape[2])
    r = ratios.ravel() - ratios.mean()
    weights = np.exp(r - logsumexp(r))
    mean, sd = flat.mean(axis=0), flat.std(axis=0)
    z = (flat - mean) / np.where(sd > 0.0, sd, 1.0)
    shifts = weights @ z
    sds = np.sqrt(np.maximum(weights @ np.square(z - shifts), 1e-300))
    worst = int(np.argmax(np.abs(shifts)))
    # The error of Σ w z, with the autocorrelation of the chains.
    influence = (weights * r.size * (z[:, worst] - shifts[worst])).reshape(ratios.shape)
    inflation = 1.0 / np.sqrt(min(1.0, efficiency(influence, independent=independent)))
    error = float(inflation * influence.std() / np.sqrt(r.size))
    # What is the same under both weights has no error: u − 1 is what differs.
    different = ((weights * r.size - 1.0) * z[:, worst]).reshape(ratios.shape)
    error = min(error, float(inflation * different.std() / np.sqrt(r.size)))
    return Marginals(
        Estimate(abs(float(shifts[worst])), error),
        names[worst],
        float(1.0 / sds.max()),
        float(1.0 / sds.min()),
        _explained(z[:, shared], r),
        int(shared.size),
    )


def _explained(z: Array, r: Array) -> Estimate:
    """½ of the variance of r that quadratics of z explain, less that of chance."""
    number, p = z.shape
    i, j = np.triu_indices(p)
    columns = np.hstack([z, z[:, i] * z[:, j]])
    if columns.shape[1] * DRAWS_A_COLUMN > number:
        columns = np.hstack([z, np.square(z)])[:, : number // DRAWS_A_COLUMN]
    columns = columns - columns.mean(axis=0)
    basis = np.linalg.qr(columns)[0]
    squares = np.square(basis.T @ r)
    explained, k = float(squares.sum()), basis.shape[1]
    left = max(float(r @ r) - explained, 0.0)
    noise = left / max(number - k - 1, 1)
    value = 0.5 * max(explained - k * noise, 0.0) / number
    # Squares of k normal numbers around their means.
    error = np.sqrt(2.0 * k * noise**2 + 4.0 * noise * explained) * 0.5 / number
    return Estimate(value, float(error))
