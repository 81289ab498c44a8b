"""Coordinates of a mixed model's sampler and back, in loops that numba compiles.

The mathematics is in `samplers.mixed_frame`: blocks of parameters that are drawn one after the
other, each ρ(v) x + √ρ(v) sd z with x linear in those before it. Here are the same steps on numbers
that lie in one row, and the way back for gradients. Cost of both: P² + Σ n² for the wide parameters
and G·q·(P + q) for the groups.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from corebayes.types import Array, Indices


class WideBlock(NamedTuple):
    """Wide parameters that are drawn together: U (ρ ⊙ x + √ρ ⊙ sd ⊙ z), x = Uᵀ(mean + lean·δ)."""

    places: Indices
    """Of its n parameters among the wide ones, and of their coordinates in z."""
    scale: int
    """Where its v is among the wide parameters; −1 where there is none and ρ = 1."""
    turn: Array
    """U, (n, n)."""
    sd: Array
    """At v̂, (n,)."""
    known: Array
    """λ, (n,)."""
    lean: Array
    """(n, P), zero but for the parameters before it, which move it by how far they moved."""

    def packed(self) -> list[Array]:
        head = np.array([self.places.size, self.scale], dtype=np.float64)
        places = self.places.astype(np.float64)
        return [head, places, self.turn, self.sd, self.known, self.lean]


class OwnBlock(NamedTuple):
    """One effect of every group of the main term, given all before it."""

    effect: int
    scale: int
    sd: Array
    """(G,)."""
    known: Array
    lean: Array
    """On the wide parameters, (G, P)."""
    siblings: Array
    """On the effects of the same group that come before, (G, q)."""

    def packed(self) -> list[Array]:
        head = np.array([self.effect, self.scale], dtype=np.float64)
        # Both layouts of the (G, P) matrix: one for each way, each read in order.
        return [head, self.sd, self.known, self.lean.T, self.lean, self.siblings]


def rho_at(known: float, here: float, change: float) -> float:
    """ρ where the prior's precision was `here` and is now `change` times that."""
    return (known + here) / (known + here * change)


def wide_forward(
    z: Array, mean: Array, blocks: Array, num_blocks: int, wide: Array, x: Array, rho: Array
) -> None:
    """Wide parameters, as distances from their means; x and ρ of every coordinate are kept."""
    P, at = mean.size, 0
    y, leaning = np.empty(P), np.empty(P)
    for k in range(P):
        wide[k] = 0.0
    for _ in range(num_blocks):
        n, scale = int(blocks[at]), int(blocks[at + 1])
        places, turn = blocks[at + 2 : at + 2 + n], at + 2 + n
        sd, known, lean = turn + n * n, turn + n * n + n, turn + n * n + 2 * n
        here, change = 0.0, 1.0
        if scale >= 0:
            here, change = math.exp(-2.0 * mean[scale]), math.exp(-2.0 * wide[scale])
        for i in range(n):
            value = mean[int(places[i])]
            row = blocks[lean + i * P : lean + (i + 1) * P]
            for k in range(P):
                value += row[k] * wide[k]
            leaning[i] = value
        for i in range(n):
            value = 0.0
            for j in range(n):
                value += blocks[turn + j * n + i] * leaning[j]
            place = int(places[i])
            x[place] = value
            rho[place] = 1.0 if scale < 0 else rho_at(blocks[known + i], here, change)
            y[i] = rho[place] * value + math.sqrt(rho[place]) * blocks[sd + i] * z[place]
        for j in range(n):
            value = 0.0
            for i in range(n):
                value += blocks[turn + j * n + i] * y[i]
            place = int(places[j])
            wide[place] = value - mean[place]
        at = lean + n * P


def wide_backward(
    z: Array,
    mean: Array,
    blocks: Array,
    num_blocks: int,
    wide: Array,
    x: Array,
    rho: Array,
    slope: Array,
    pulled: Array,
) -> float:
    """∇ in z from ∇ in the wide parameters, which is used up; log |dθ/dz| is returned."""
    P, at, total = mean.size, 0, 0.0
    starts, y, back = np.zeros(num_blocks, np.int64), np.empty(P), np.empty(P)
    for b in range(num_blocks):
        starts[b] = at
        n = int(blocks[at])
        at += 2 + n * (3 + n + P)
    for b in range(num_blocks - 1, -1, -1):
        at = starts[b]
        n, scale = int(blocks[at]), int(blocks[at + 1])
        places, turn = blocks[at + 2 : at + 2 + n], at + 2 + n
        sd, known, lean = turn + n * n, turn + n * n + n, turn + n * n + 2 * n
        prior = 0.0 if scale < 0 else math.exp(-2.0 * (mean[scale] + wide[scale]))
        for i in range(n):
            value = 0.0
            for j in range(n):
                value += blocks[turn + j * n + i] * slope[int(places[j])]
            y[i] = value
        for i in range(n):
            place = int(places[i])
            spread = math.sqrt(rho[place]) * blocks[sd + i]
            pulled[place] = spread * y[i]
            if scale >= 0:
                # d log ρ / dv = 2α with α = e^{−2v} / (λ + e^{−2v})
                alpha = prior / (blocks[known + i] + prior)
                slope[scale] += alpha * (
                    1.0 + y[i] * (2.0 * rho[place] * x[place] + spread * z[place])
                )
                total += 0.5 * math.log(rho[place])
        for j in range(n):
            value = 0.0
            for i in range(n):
                value += blocks[turn + j * n + i] * rho[int(places[i])] * y[i]
            back[j] = value
        for j in range(n):
            row = blocks[lean + j * P : lean + (j + 1) * P]
            for k in range(P):
                slope[k] += row[k] * back[j]
    return total


def own_forward(
    z: Array,
    mean: Array,
    wide_mean: Array,
    blocks: Array,
    wide: Array,
    moved: Array,
    x: Array,
    rho: Array,
) -> None:
    """Effects of the main term, as distances from their means (G, q)."""
    P, (groups, q) = wide.size, moved.shape
    size, value = 2 + groups * (2 + 2 * P + q), np.empty(groups)
    for b in range(q):
        at = b * size
        effect, scale = int(blocks[at]), int(blocks[at + 1])
        sd, known, lean = at + 2, at + 2 + groups, at + 2 + 2 * groups
        siblings = lean + 2 * groups * P
        here, change = math.exp(-2.0 * wide_mean[scale]), math.exp(-2.0 * wide[scale])
        for g in range(groups):
            value[g] = mean[g * q + effect]
        for k in range(P):
            column = blocks[lean + k * groups : lean + (k + 1) * groups]
            for g in range(groups):
                value[g] += column[g] * wide[k]
        for g in range(groups):
            # Only what was drawn before has a share; the rest is not filled in yet.
            for j in range(effect + 1, q):
                value[g] += blocks[siblings + g * q + j] * moved[g, j]
            i = g * q + effect
            x[i] = value[g]
            rho[i] = rho_at(float(blocks[known + g]), here, change)
            y = rho[i] * x[i] + math.sqrt(rho[i]) * blocks[sd + g] * z[i]
            moved[g, effect] = y - mean[i]


def own_backward(
    z: Array,
    wide_mean: Array,
    blocks: Array,
    wide: Array,
    x: Array,
    rho: Array,
    slope: Array,
    of_wide: Array,
    pulled: Array,
    groups: int,
) -> float:
    """∇ in z from ∇ in the effects (G·q,), which is used up; ∇ in the wide parameters grows."""
    P, q, total = wide.size, x.size // groups, 0.0
    size = 2 + groups * (2 + 2 * P + q)
    for b in range(q - 1, -1, -1):
        at = b * size
        effect, scale = int(blocks[at]), int(blocks[at + 1])
        sd, known, lean = at + 2, at + 2 + groups, at + 2 + 2 * groups + groups * P
        siblings = lean + groups * P
        prior = math.exp(-2.0 * (wide_mean[scale] + wide[scale]))
        of_scale = 0.0
        for g in range(groups):
            i = g * q + effect
            spread = math.sqrt(rho[i]) * blocks[sd + g]
            pulled[i] = spread * slope[i]
            alpha = prior / (blocks[known + g] + prior)
            of_scale += alpha * (1.0 + slope[i] * (2.0 * rho[i] * x[i] + spread * z[i]))
            total += 0.5 * math.log(rho[i])
            of_x = rho[i] * slope[i]
            row = blocks[lean + g * P : lean + (g + 1) * P]
            for k in range(P):
                of_wide[k] += row[k] * of_x
            for j in range(effect + 1, q):
                slope[g * q + j] += blocks[siblings + g * q + j] * of_x
        of_wide[scale] += of_scale
    return total


HELPERS = (rho_at, wide_forward, wide_backward, own_forward, own_backward)
