"""What a coreset changes about single parameters, and about those that all rows share.

A mixed model may have thousands of parameters, and then half a nat of KL over all of them is all
one needs. With draws of π_w and their log ratios r = log π/π_w, draws weighted by e^r are of π, so
every mean and standard deviation is known under both, from the same draws: differences have errors
as small as r is. The share of KL that the shared parameters φ have is what r has in common with
them,

    KL(π_w(φ) ‖ π(φ)) ≈ ½ Var E[r | φ] ≤ KL(π_w ‖ π),

with E[r | φ] a quadratic: the variance that it explains, less what as many random columns would.

Where r varies so much that the weights would be those of a few draws, what changes about a
parameter is taken from r itself: with z the parameter in its own standard deviations,

    E[r | z] ≈ a z + c (z² − 1),    a = E[r z],  c = ½ E[r (z² − 1)],

so that under π the mean moves by a/(1 − 2c) and the precision by the factor 1 − 2c. Of many such
estimates the largest are mostly noise: all are shrunk by the share of noise in their spread.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from corebayes.samplers.convergence import efficiency
from corebayes.types import Array, Estimate, Indices

# Quadratics of φ for every so many draws; with more the fit would follow the noise.
DRAWS_A_COLUMN = 4
# Weighted draws must be worth so many of those there are.
ENOUGH = 0.5
# A precision that r would make smaller than this is no first order.
LEAST_PRECISION = 0.1
# Standard deviations by which a mean may move before one would see it.
VISIBLE = 0.2


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
    num_parameters: int
    first_order: bool
    """Whether changes are taken from r itself and not from weighted draws."""

    def __str__(self) -> str:
        kl = f"{nats(self.shared_kl)}, the KL of these {self.num_shared}"
        shared = f"  {'shared parameters':<20}{kl}\n"
        return (
            f"{shared * (self.num_shared < self.num_parameters)}"
            f"  {'marginals':<20}means move by at most {self.shift.value:.3f} ± "
            f"{self.shift.standard_error:.3f} sd ({self.shifted}), sds by factors of "
            f"{self.smallest_sd:.3f} to {self.largest_sd:.3f}"
            f"{' (to first order)' if self.first_order else ''}"
        )

    def are_fine(self, tol: float) -> bool:
        """Whether the shared parameters are within the tolerance and no mean moves visibly."""
        shared = self.shared_kl.value + 2.0 * self.shared_kl.standard_error
        shift = self.shift.value + 2.0 * self.shift.standard_error
        return shared <= tol and shift <= VISIBLE

    @property
    def sentence(self) -> str:
        """What holds where the joint posterior is further away."""
        shared = self.shared_kl.value + 2.0 * self.shared_kl.standard_error
        shift = self.shift.value + 2.0 * self.shift.standard_error
        return (
            f"But the {self.num_shared} shared parameters are within {shared:.1g} nats, and of all "
            f"{self.num_parameters:,} parameters no mean moves by more than {shift:.2g} of its "
            "standard deviation: enough to read single parameters from."
        )


def nats(kl: Estimate) -> str:
    """Two digits of the error, and the value to the same place."""
    value, error = kl
    if error <= 0.0:
        return f"{value:.2g} nats"
    digits = 1 - int(np.floor(np.log10(error)))
    if 0 <= digits <= 6:
        return f"{value:.{digits}f} ± {error:.{digits}f} nats"
    return f"{value:.2e} ± {error:.0e} nats" if digits > 6 else f"{value:.0f} ± {error:.0f} nats"


def marginals(
    draws: Array, ratios: Array, names: tuple[str, ...], shared: Indices, independent: bool
) -> Marginals:
    """From draws (chains, draws, d) of π_w and their log ratios (chains, draws)."""
    flat = draws.reshape(-1, draws.shape[2])
    r = ratios.ravel() - ratios.mean()
    sd = flat.std(axis=0)
    z = (flat - flat.mean(axis=0)) / np.where(sd > 0.0, sd, 1.0)
    weights = np.exp(r - logsumexp(r))
    first_order = 1.0 / float(weights @ weights) < ENOUGH * r.size
    if first_order:
        shifts, errors, ratio_of_sds = _by_slopes(z, r)
    else:
        shifts, errors, ratio_of_sds = _by_weights(z, weights)
    worst = int(np.argmax(np.abs(shifts)))
    product = (r * z[:, worst]).reshape(ratios.shape)
    inflation = 1.0 / np.sqrt(min(1.0, efficiency(product, independent=independent)))
    return Marginals(
        Estimate(abs(float(shifts[worst])), float(inflation * errors[worst])),
        names[worst],
        float(ratio_of_sds.min()),
        float(ratio_of_sds.max()),
        _explained(z[:, shared], r),
        int(shared.size),
        len(names),
        first_order,
    )


def _by_weights(z: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Shifts of means with their errors, and ratios of standard deviations, from weighted draws."""
    number = weights.size
    shifts = weights @ z
    sds = np.sqrt(np.maximum(weights @ np.square(z - shifts), 1e-300))
    # The error of Σ w z; what is the same under both weights has none: u − 1 is what differs.
    influence = (weights * number)[:, None] * (z - shifts)
    different = (weights * number - 1.0)[:, None] * z
    errors = np.minimum(influence.std(axis=0), different.std(axis=0)) / np.sqrt(number)
    return shifts, errors, 1.0 / sds


def _by_slopes(z: Array, r: Array) -> tuple[Array, Array, Array]:
    """The same from what r has in common with each parameter."""
    slopes, errors = _shrunk(r[:, None] * z)
    bends, _ = _shrunk(0.5 * r[:, None] * (np.square(z) - 1.0))
    precisions = np.maximum(1.0 - 2.0 * bends, LEAST_PRECISION)
    return slopes / precisions, errors / precisions, np.sqrt(precisions)


def _shrunk(values: Array) -> tuple[Array, Array]:
    """Means over the first axis and their errors, less the share of noise in their spread."""
    means, noise = values.mean(axis=0), values.var(axis=0) / len(values)
    # E m² = τ² + noise
    spread = max(float((np.square(means) - noise).mean()), 0.0)
    share = spread / np.maximum(spread + noise, 1e-300)
    return share * means, np.sqrt(share * noise)


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
