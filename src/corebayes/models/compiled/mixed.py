"""The log density of a mixed model in a sampler's coordinates, as one function that C can call.

    z ↦ θ = (β, u, log τ, b), see `frame`;
    log π = Σ_i w_i ℓ(η_i, u; row_i) + log N(β) + log p(u)
            + Σ_v [log p(v) + Σ log N(b; 0, e^{2v})] + priors that are not Normal

and log |dθ/dz|; the gradient goes the same way back. ℓ is a family's `jet_kernels`, or the two
kernels of a GLM. Cost of a call: M·(k·p + effects of a row) flops for k linear predictors, M
potentials and slopes, and the coordinates.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corebayes.models.compiled import frame as compiled_frame
from corebayes.models.compiled import prior as compiled_prior
from corebayes.models.compiled import rows as compiled_rows
from corebayes.models.compiled.density import c_density
from corebayes.models.compiled.frame import (
    OwnBlock,
    WideBlock,
    own_backward,
    own_forward,
    wide_backward,
    wide_forward,
)
from corebayes.models.compiled.jit import OPTIONS, JetKernel, Kernel, Kernels, compiled_once
from corebayes.models.compiled.prior import (
    FORM,
    SCALE,
    fixed_prior,
    form_slope,
    form_value,
    further_priors,
    scales_prior,
)
from corebayes.models.compiled.rows import (
    LinearRows,
    linear_predictors,
    pulled_rows,
    rows_length,
)
from corebayes.models.priors.scale import ScalePrior
from corebayes.types import Array, Indices

# Counts and the prior's height come first: see `MixedRows.packed`.
HEAD = 14
# Place in θ, value where it is known, and prior of a constant of the family.
CONSTANT = 2 + FORM


class Entry(NamedTuple):
    """A constant of the family: known, or learned as θ[place]."""

    value: float = 0.0
    place: int = -1
    prior: ScalePrior | None = None

    def packed(self) -> list[float]:
        form = [0.0] * FORM if self.prior is None else list(map(float, self.prior.form))
        return [float(self.place), self.value, *form]


class MixedRows(NamedTuple):
    """What the density is made of; M rows, p columns, P wide parameters, G groups of q."""

    linear: int
    """Linear predictors."""
    row: Array
    """What the family sees of rows, (columns, M)."""
    weights: Array
    rows: LinearRows
    constants: tuple[Entry, ...]
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
        (rows, fixed), (groups, own) = self.rows.design.shape, self.own_positions.shape
        effects = [effects for _, _, effects in self.scales]
        sizes = (rows, fixed, self.linear, len(self.rows.positions), len(self.row))
        more = (len(self.constants), self.wide_mean.size, groups, own)
        counts = len(self.scales), sum(map(len, effects)), len(self.wide)
        scales = [[*prior.form, place, effects.size] for prior, place, effects in self.scales]
        parts: tuple[Any, ...] = (
            [*sizes, *more, *counts, self.height, self.further.size],
            *(self.row, self.weights, *self.rows.packed()),
            *(number for one in self.constants for number in one.packed()),
            *(self.prior_mean, self.prior_precision, np.array(scales), *effects, self.further),
            *(self.wide_positions, self.wide_mean, self.own_positions, self.own_mean),
            *(numbers for block in self.own for numbers in block.packed()),
            *(numbers for block in self.wide for numbers in block.packed()),
        )
        return np.concatenate([np.ravel(part).astype(np.float64) for part in parts])


def glm_density_address(kernel: Kernel, slope_kernel: Kernel) -> int:
    """The address of a function as `compiled_density.density_address` has it."""
    kernels = kernel, slope_kernel
    return compiled_once("mixed_density", kernels, _of_glm, c_density).address


def jet_density_address(kernels: Kernels) -> int:
    """The same for the `jet_kernels` of a family."""
    return compiled_once("mixed_jets", kernels, _of_jet, c_density).address


def _of_glm(kernel: Kernel, slope_kernel: Kernel, checksum: int) -> Callable[..., int]:
    return _make_density(kernel, slope_kernel, no_jet, checksum)


def _of_jet(jet: JetKernel, *others: Any) -> Callable[..., int]:
    return _make_density(no_kernel, no_kernel, jet, others[-1])


def no_kernel(eta: Array, y: Array, p0: float, p1: float, t: Array, g: Array) -> None:
    """Of a family that is no GLM."""


def no_jet(etas: Array, u: Array, row: Array, value: Array, first: Array) -> None:
    """Of a GLM."""


HELPERS = (
    *compiled_prior.HELPERS,
    *compiled_frame.HELPERS,
    *compiled_rows.HELPERS,
    no_kernel,
    no_jet,
)


def _make_density(
    kernel: Kernel, slope_kernel: Kernel, jet: JetKernel, checksum: int
) -> Callable[..., int]:
    carray: Any = import_module("numba").carray
    extending: Any = import_module("numba.extending")
    for helper in HELPERS:
        extending.register_jitable(**OPTIONS)(helper)
    # numba keeps what it compiled as long as this file is the same, whatever the others are.
    others = (compiled_frame, compiled_prior, compiled_rows)
    helpers = sum(zlib.crc32(Path(str(one.__file__)).read_bytes()) for one in others)
    is_glm = jet is no_jet

    def density(dim: int, z_: Any, gradient_: Any, value_: Any, data_: Any) -> int:
        _ = checksum + helpers
        d = int(dim)
        z, gradient, value = carray(z_, d), carray(gradient_, d), carray(value_, 1)
        head = carray(data_, HEAD, np.float64)
        rows, p, linear = int(head[0]), int(head[1]), int(head[2])
        touched, fields, num_constants = int(head[3]), int(head[4]), int(head[5])
        P, groups, q = int(head[6]), int(head[7]), int(head[8])
        num_scales, num_effects, num_blocks = int(head[9]), int(head[10]), int(head[11])
        at_weights = HEAD + fields * rows
        at_rows = at_weights + rows
        at_constants = at_rows + rows_length(rows, p, touched)
        at_prior = at_constants + num_constants * CONSTANT
        at_scales = at_prior + linear * p * (1 + linear * p)
        at_further = at_scales + num_scales * SCALE + num_effects
        at_wide = at_further + int(head[13])
        at_own = at_wide + 2 * P
        at_own_blocks = at_own + 2 * groups * q
        at_blocks = at_own_blocks + q * (2 + groups * (2 + 2 * P + q))
        # The blocks of wide parameters come last; their places are at most P, turns at most P².
        longest = at_blocks + num_blocks * 2 + P * (3 + 2 * P)
        numbers = carray(data_, longest, np.float64)
        row, weights = numbers[HEAD:at_weights].reshape(fields, rows), numbers[at_weights:at_rows]
        of_rows, constants = numbers[at_rows:at_constants], numbers[at_constants:at_prior]
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

        etas, u = np.empty((linear, rows)), np.empty(num_constants)
        heights, first = np.empty(rows), np.empty((linear + num_constants, rows))
        for k in range(num_constants):
            place = int(constants[k * CONSTANT])
            u[k] = theta[place] if place >= 0 else constants[k * CONSTANT + 1]
        linear_predictors(theta, of_rows, p, touched, etas)
        if is_glm:
            p0 = u[0] if num_constants > 0 else 0.0
            p1 = u[1] if num_constants > 1 else 0.0
            work = np.empty((2, rows))
            for i in range(rows):
                heights[i] = etas[0, i]
                first[0, i] = etas[0, i]
            kernel(heights, row[0], p0, p1, work[0], work[1])
            slope_kernel(first[0], row[0], p0, p1, work[0], work[1])
        else:
            jet(etas, u, row, heights, first)

        total = head[12] + fixed_prior(theta[: linear * p], slope, numbers[at_prior:at_scales])
        for i in range(rows):
            weight = weights[i]
            # Rows of weight zero are passed over, even where they are not finite.
            if weight != 0.0:
                total += weight * heights[i]
        for j in range(first.shape[0]):
            for i in range(rows):
                first[j, i] = weights[i] * first[j, i] if weights[i] != 0.0 else 0.0
        pulled_rows(first, linear, of_rows, p, touched, slope)
        for k in range(num_constants):
            place = int(constants[k * CONSTANT])
            if place >= 0:
                form = constants[k * CONSTANT + 2 : (k + 1) * CONSTANT]
                total += form_value(form, u[k])
                pull = form_slope(form, u[k])
                for i in range(rows):
                    pull += first[linear + k, i]
                slope[place] += pull
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
