"""The log density of a mixed model in a sampler's coordinates, as one function that C can call.

    z ↦ θ = (β, log σ, log τ, b), see `compiled_frame`;
    log π = Σ_i w_i ℓ(η_i, y_i; σ) + log N(β) + log p(log σ)
            + Σ_v [log p(v) + Σ log N(b; 0, e^{2v})] + priors that are not Normal

and log |dθ/dz|; the gradient goes the same way back. Cost of a call: M·(p + effects of a row)
flops, M potentials and slopes, and the coordinates.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corebayes.models import compiled_frame, compiled_prior
from corebayes.models.compiled import OPTIONS, Kernel, compiled_once
from corebayes.models.compiled_density import c_density
from corebayes.models.compiled_frame import (
    OwnBlock,
    WideBlock,
    own_backward,
    own_forward,
    wide_backward,
    wide_forward,
)
from corebayes.models.compiled_prior import (
    FORM,
    SCALE,
    fixed_prior,
    form_slope,
    form_value,
    further_priors,
    scales_prior,
)
from corebayes.models.scale_prior import ScalePrior
from corebayes.types import Array, Indices

# Counts, the family's constants and the prior's height come first: see `MixedRows.packed`.
HEAD = 14


class MixedRows(NamedTuple):
    """What the density is made of; M rows, p fixed effects, P wide parameters, G groups of q."""

    targets: Array
    weights: Array
    design: Array
    """Of the fixed effects, (M, p)."""
    positions: Indices
    """Where the effects of a row are in θ, (effects, M)."""
    columns: Array
    """What they are multiplied with, (effects, M)."""
    constants: tuple[float, ...]
    """Of the family, at most two."""
    learned: tuple[int, ScalePrior] | None
    """Which of them is e^u with u = θ[p], a scale of y − η, and its prior."""
    prior_mean: Array
    prior_precision: Array
    height: float
    """The log density of the fixed effects' prior at its mean."""
    scales: tuple[tuple[ScalePrior, int, Indices], ...]
    """Priors of v, where v is in θ, and its effects."""
    further: Array
    """Priors of coefficients that are not Normal; see `compiled_prior.packed_further`."""
    wide_positions: Indices
    wide_mean: Array
    own_positions: Indices
    """(G, q)."""
    own_mean: Array
    wide: tuple[WideBlock, ...]
    own: tuple[OwnBlock, ...]

    def packed(self) -> Array:
        """All numbers in the order in which the compiled function takes them."""
        p0, p1 = (*self.constants, 0.0, 0.0)[:2]
        place, form = -1, np.zeros(FORM)
        if self.learned is not None:
            place, form = self.learned[0], np.array(self.learned[1].form, dtype=np.float64)
        (rows, fixed), (groups, own) = self.design.shape, self.own_positions.shape
        effects = [effects for _, _, effects in self.scales]
        sizes = (rows, fixed, len(self.positions), self.wide_mean.size, groups, own)
        counts = len(self.scales), sum(map(len, effects)), len(self.wide)
        scales = [[*prior.form, place, effects.size] for prior, place, effects in self.scales]
        parts: tuple[Any, ...] = (
            [*sizes, *counts, place, p0, p1, self.height, self.further.size],
            *(self.targets, self.weights, self.design.T, self.design),
            *(self.positions, self.columns, self.prior_mean, self.prior_precision, form),
            *(np.array(scales), *effects, self.further),
            *(self.wide_positions, self.wide_mean, self.own_positions, self.own_mean),
            *(numbers for block in self.own for numbers in block.packed()),
            *(numbers for block in self.wide for numbers in block.packed()),
        )
        return np.concatenate([np.ravel(part).astype(np.float64) for part in parts])


def mixed_density_address(kernel: Kernel, slope_kernel: Kernel) -> int:
    """The address of a function as `compiled_density.density_address` has it."""
    kernels = kernel, slope_kernel
    return compiled_once("mixed_density", kernels, _make_density, c_density).address


HELPERS = (*compiled_prior.HELPERS, *compiled_frame.HELPERS)


def _make_density(kernel: Kernel, slope_kernel: Kernel, checksum: int) -> Callable[..., int]:
    carray: Any = import_module("numba").carray
    extending: Any = import_module("numba.extending")
    for helper in HELPERS:
        extending.register_jitable(**OPTIONS)(helper)
    # numba keeps what it compiled as long as this file is the same, whatever the others are.
    others = (compiled_frame, compiled_prior)
    helpers = sum(zlib.crc32(Path(str(one.__file__)).read_bytes()) for one in others)

    def density(dim: int, z_: Any, gradient_: Any, value_: Any, data_: Any) -> int:
        _ = checksum + helpers
        d = int(dim)
        z, gradient, value = carray(z_, d), carray(gradient_, d), carray(value_, 1)
        head = carray(data_, HEAD, np.float64)
        rows, p, touched = int(head[0]), int(head[1]), int(head[2])
        P, groups, q = int(head[3]), int(head[4]), int(head[5])
        num_scales, num_effects = int(head[6]), int(head[7])
        num_blocks, place, p0, p1 = int(head[8]), int(head[9]), head[10], head[11]
        at_columns = HEAD + 2 * rows
        at_design = at_columns + p * rows
        at_positions = at_design + p * rows
        at_factors = at_positions + touched * rows
        at_prior = at_factors + touched * rows
        at_form = at_prior + p + p * p
        at_scales = at_form + FORM
        at_further = at_scales + num_scales * SCALE + num_effects
        at_wide = at_further + int(head[13])
        at_own = at_wide + 2 * P
        at_own_blocks = at_own + 2 * groups * q
        at_blocks = at_own_blocks + q * (2 + groups * (2 + 2 * P + q))
        # The blocks of wide parameters come last; their places are at most P, turns at most P².
        longest = at_blocks + num_blocks * 2 + P * (3 + 2 * P)
        numbers = carray(data_, longest, np.float64)
        y, weights = numbers[HEAD : HEAD + rows], numbers[HEAD + rows : at_columns]
        scales, own_blocks = numbers[at_scales:at_further], numbers[at_own_blocks:at_blocks]
        wide_mean, own_mean = numbers[at_wide + P : at_own], numbers[at_own + groups * q :]
        blocks = numbers[at_blocks:]

        theta, slope = np.empty(d), np.zeros(d)
        wide, moved, x, rho = np.empty(P), np.empty((groups, q)), np.empty(d), np.empty(d)
        wide_forward(z, wide_mean, blocks, num_blocks, wide, x, rho)
        own_forward(z[P:], own_mean, wide_mean, own_blocks, wide, moved, x[P:], rho[P:])
        for k in range(P):
            theta[int(numbers[at_wide + k])] = wide_mean[k] + wide[k]
        for i in range(groups * q):
            theta[int(numbers[at_own + i])] = own_mean[i] + moved[i // q, i % q]

        work = np.empty((5, rows))
        eta, height, pull, t, g = work[0], work[1], work[2], work[3], work[4]
        for i in range(rows):
            eta[i] = 0.0
        for k in range(p):
            column = numbers[at_columns + k * rows : at_columns + (k + 1) * rows]
            for i in range(rows):
                eta[i] += column[i] * theta[k]
        for k in range(touched):
            positions = numbers[at_positions + k * rows : at_positions + (k + 1) * rows]
            factors = numbers[at_factors + k * rows : at_factors + (k + 1) * rows]
            for i in range(rows):
                eta[i] += factors[i] * theta[int(positions[i])]
        for i in range(rows):
            height[i] = eta[i]
            pull[i] = eta[i]
        constant = 0.0
        if place >= 0:
            # A scale: f = −u + h((y − η) e^{−u}), so ∂f/∂u = (y − η) ∂f/∂η − 1
            constant = theta[p]
            p0 = math.exp(constant) if place == 0 else p0
            p1 = math.exp(constant) if place == 1 else p1
        kernel(height, y, p0, p1, t, g)
        slope_kernel(pull, y, p0, p1, t, g)

        total = head[12] + fixed_prior(theta[:p], slope, numbers[at_prior:at_form])
        of_constant = 0.0
        for i in range(rows):
            weight = weights[i]
            pull[i] = weight * pull[i] if weight != 0.0 else 0.0
            if weight != 0.0:
                total += weight * (height[i] - constant)
                of_constant += pull[i] * (y[i] - eta[i]) - weight
                row = numbers[at_design + i * p : at_design + (i + 1) * p]
                for k in range(p):
                    slope[k] += pull[i] * row[k]
        for k in range(touched):
            positions = numbers[at_positions + k * rows : at_positions + (k + 1) * rows]
            factors = numbers[at_factors + k * rows : at_factors + (k + 1) * rows]
            for i in range(rows):
                slope[int(positions[i])] += factors[i] * pull[i]
        if place >= 0:
            form = numbers[at_form:at_scales]
            total += form_value(form, constant)
            slope[p] += of_constant + form_slope(form, constant)
        total += scales_prior(theta, slope, scales, num_scales)
        total += further_priors(theta, slope, numbers[at_further:at_wide])

        of_wide, of_own = np.empty(P), np.empty(groups * q)
        for k in range(P):
            of_wide[k] = slope[int(numbers[at_wide + k])]
        for i in range(groups * q):
            of_own[i] = slope[int(numbers[at_own + i])]
        total += own_backward(
            z[P:],
            wide_mean,
            own_blocks,
            wide,
            x[P:],
            rho[P:],
            of_own,
            of_wide,
            gradient[P:],
            groups,
        )
        total += wide_backward(z, wide_mean, blocks, num_blocks, wide, x, rho, of_wide, gradient)
        value[0] = total
        if not np.isfinite(total):
            return 1
        for k in range(d):
            if not np.isfinite(gradient[k]):
                return 2
        return 0

    return density
