"""Priors as functions that numba compiles: numbers in, a log density out, its slope added.

The scales' priors are numbers of a `ScaleForm`. Student-t and double exponential priors of single
coefficients, and horseshoes, come as one array; see `packed_further`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from corebayes.models.mixed.prior import MixedPrior
from corebayes.models.priors.coefficient import DoubleExponential, Flat, StudentT
from corebayes.models.priors.scale import EXPONENTIAL, SOFT
from corebayes.types import Array

# A prior of a scale is so many numbers.
FORM = 6
# The same and, for a scale of effects, its place and the number of its effects.
SCALE = FORM + 2
# Place, kind, degrees of freedom, mean, scale and height of the prior of one coefficient.
OTHER = 6
T_KIND, EXPONENTIAL_KIND = 1.0, 2.0
LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)


def packed_further(prior: MixedPrior) -> Array | None:
    """The priors of coefficients that are not Normal, as `further_priors` takes them; None where
    one of them has no compiled form."""
    others = list[list[float]]()
    for place, other in prior.others:
        height = float(other.log_density(np.array(getattr(other, "mean", 0.0))))
        match other:
            case StudentT(df, mean, scale):
                others.append([place, T_KIND, df, mean, scale, height])
            case DoubleExponential(mean, scale):
                others.append([place, EXPONENTIAL_KIND, 0.0, mean, scale, height])
            case Flat():
                pass
            case _:
                return None
    parts: list[Any] = [[len(others)], *others, [len(prior.horseshoes)]]
    for one in prior.horseshoes:
        sizes = one.places.size, one.nodes.size, one.tau, one.slab, one.log_units
        parts += [sizes, one.horseshoe.tau.form, one.horseshoe.slab.form]
        parts += [one.nodes, one.log_weights, one.places, one.units]
    return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])


def form_value(form: Array, u: float) -> float:
    """log p(u) of a scale's prior; see `ScaleForm`."""
    x = form[3] * u - form[4]
    if form[5] == EXPONENTIAL:
        height = math.exp(x)
    elif form[5] == SOFT:
        height = max(x, 0.0) + math.log1p(math.exp(-abs(x)))
    else:
        height = 0.5 * x * x
    return form[0] + form[1] * u - form[2] * height


def form_slope(form: Array, u: float) -> float:
    x = form[3] * u - form[4]
    if form[5] == EXPONENTIAL:
        slope = math.exp(x)
    elif form[5] == SOFT:
        slope = 1.0 / (1.0 + math.exp(-x))
    else:
        slope = x
    return form[1] - form[2] * form[3] * slope


def fixed_prior(beta: Array, slope: Array, numbers: Array) -> float:
    """−½ (β − μ)ᵀQ(β − μ), its slope added."""
    p, total = beta.size, 0.0
    for k in range(p):
        bent = 0.0
        row = numbers[p + k * p : p + (k + 1) * p]
        for j in range(p):
            bent += row[j] * (beta[j] - numbers[j])
        total -= 0.5 * bent * (beta[k] - numbers[k])
        slope[k] -= bent
    return total


def scales_prior(theta: Array, slope: Array, scales: Array, num_scales: int) -> float:
    """The prior of scales and effects, its slope added. The effects are behind the scales."""
    at, total = num_scales * SCALE, 0.0
    for j in range(num_scales):
        form = scales[j * SCALE : j * SCALE + FORM]
        place = int(scales[j * SCALE + FORM])
        number = int(scales[j * SCALE + FORM + 1])
        v = theta[place]
        inverse, squares = math.exp(-v), 0.0
        for i in range(at, at + number):
            position = int(scales[i])
            whitened = theta[position] * inverse
            squares += whitened * whitened
            slope[position] -= whitened * inverse
        total += form_value(form, v) - 0.5 * squares - number * (v + LOG_ROOT_2PI)
        slope[place] += form_slope(form, v) + squares - number
        at += number
    return total


def further_priors(theta: Array, slope: Array, numbers: Array) -> float:
    """Priors of coefficients that are not Normal, their slopes added."""
    total, at = 0.0, 1
    for _ in range(int(numbers[0])):
        place, scale = int(numbers[at]), numbers[at + 4]
        z = (theta[place] - numbers[at + 3]) / scale
        if numbers[at + 1] == T_KIND:
            df = numbers[at + 2]
            total += numbers[at + 5] - 0.5 * (df + 1.0) * math.log1p(z * z / df)
            slope[place] -= (df + 1.0) * z / (scale * (df + z * z))
        else:
            total += numbers[at + 5] - abs(z)
            slope[place] -= (1.0 if z > 0.0 else -1.0 if z < 0.0 else 0.0) / scale
        at += OTHER
    num_horseshoes = int(numbers[at])
    at += 1
    for _ in range(num_horseshoes):
        total += horseshoe_prior(theta, slope, numbers[at:])
        at += 5 + 2 * FORM + 2 * int(numbers[at]) + 2 * int(numbers[at + 1])
    return total


def horseshoe_prior(theta: Array, slope: Array, numbers: Array) -> float:
    """One horseshoe; see `horseshoe_prior.HorseshoePrior`."""
    many, nodes = int(numbers[0]), int(numbers[1])
    tau, slab = int(numbers[2]), int(numbers[3])
    t, k = theta[tau], theta[slab]
    of_tau, of_slab = numbers[5 : 5 + FORM], numbers[5 + FORM : 5 + 2 * FORM]
    start = 5 + 2 * FORM
    work = np.empty((4, nodes))
    q, A, height, share = work[0], work[1], work[2], work[3]
    C = math.exp(-k)
    for i in range(nodes):
        A[i] = math.exp(-2.0 * (t + numbers[start + i]))
        q[i] = A[i] + C
        height[i] = numbers[start + nodes + i] + 0.5 * math.log(q[i])
    total = form_value(of_tau, t) + form_value(of_slab, k) - numbers[4]
    by_tau, by_slab = form_slope(of_tau, t), form_slope(of_slab, k)
    first = start + 2 * nodes
    for j in range(many):
        place, unit = int(numbers[first + j]), numbers[first + many + j]
        x = theta[place] / unit
        squares, top = x * x, -np.inf
        for i in range(nodes):
            share[i] = height[i] - 0.5 * squares * q[i]
            top = max(top, share[i])
        whole, precision, local, known, variance = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(nodes):
            r = math.exp(share[i] - top)
            whole += r
            precision += r * q[i]
            local += r * A[i]
            known += r * A[i] / q[i]
            variance += r / q[i]
        total += top + math.log(whole)
        slope[place] -= x * precision / (whole * unit)
        by_tau += (squares * local - known) / whole
        by_slab += 0.5 * C * (squares - variance / whole)
    slope[tau] += by_tau
    slope[slab] += by_slab
    return total


HELPERS = (
    form_value,
    form_slope,
    fixed_prior,
    scales_prior,
    horseshoe_prior,
    further_priors,
)
