"""How far the ends of a chain of Gaussians can be from each other: KL has no triangle inequality,
but between Gaussians P, Q, R of any dimension

    KL(P ‖ R) ≤ K(K⁻¹(KL(P ‖ Q)) + K⁻¹(KL(Q ‖ R))),     K(x) = ½ (eˣ − 1 − x)

with equality for scales that grow in one direction, so that no smaller bound holds; to second order
√KL adds up. Hence it is the supremum that Xiao, Zhang, Liu, Ding, Li and Li give ("Relaxed triangle
inequality for Kullback-Leibler divergence between multivariate Gaussian distributions", 2026, arXiv
2602.02577: ε₁ + ε₂ + 2 √(ε₁ε₂) for small ones; its theorem in full was not compared); the bound of
Zhang et al. (2023), 3 ε₁ + 3 ε₂ + 2 √(ε₁ε₂), is larger. The proof here is our own.

In coordinates with Q = N(0, I) let P = N(m, A), R = N(n, B⁻¹), h(y) = y − 1 − log y, s = ‖m‖,
t² = nᵀBn and φ the function with φ(2 K(x)) = eˣ − 1. Then 2 KL(P ‖ Q) = tr h(A) + s²,
2 KL(Q ‖ R) = tr h(B) + t², and

    2 KL(P ‖ R) = 2 KL(P ‖ Q) + 2 KL(Q ‖ R) + tr (A − I)(B − I) + mᵀ(B − I)m − 2 mᵀBn.

As 2 K(x + y) = 2 K(x) + 2 K(y) + (eˣ − 1)(eʸ − 1), the last three terms must not exceed
φ(tr h(A) + s²) φ(tr h(B) + t²). Now |y − 1| ≤ φ(h(y)), and φʹ = 1 + 1/φ makes φ² convex, with
φ²(0) = 0, so that squares add up to no more: ‖A − I‖ ≤ u = φ(tr h(A)), ‖B − I‖ ≤ v = φ(tr h(B)) as
roots of sums of squares, and no eigenvalue of B is above 1 + v. With them and Cauchy's inequality
the three terms are at most

    uv + v s² + 2 √(1 + v) st = (u + s²) v + √2 s · √(2 (1 + v)) t
                             ≤ √((u + s²)² + 2 s²) · √(v² + 2 (1 + v) t²)

and by (φ²)ʹ = 2 (1 + φ), (φ²)ʺ ≥ 2 the first root is at most φ(tr h(A) + s²), the second at most
φ(tr h(B) + t²). ∎
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from corebayes.types import Array

# Beyond it nats are no numbers.
NEWTON_STEPS, LONGEST = 60, 700.0


def added_up(distances: Sequence[float]) -> float:
    """KL from one end to the other of a chain of Gaussians with these between them, at the most.

    >>> round(added_up([0.01, 0.01]), 4)
    0.0428
    """
    steps = np.asarray(distances, dtype=np.float64)
    # Newton's steps from above, where convex K is larger.
    lengths = np.minimum(2.0 * np.sqrt(steps), 2.0 * np.log(steps + 1.0) + 4.0).clip(max=LONGEST)
    for _ in range(NEWTON_STEPS):
        slope = 0.5 * np.expm1(lengths)
        lengths = lengths - (_nats(lengths) - steps) / np.where(slope > 0.0, slope, 1.0)
    return float(_nats(np.minimum(lengths.sum(keepdims=True), LONGEST))[0])


def _nats(length: Array) -> Array:
    """K(x) = ½ (eˣ − 1 − x), exact where x is small, too."""
    series = 0.25 * length**2 * (1.0 + length / 3.0 + length**2 / 12.0 + length**3 / 60.0)
    return np.asarray(np.where(length < 1e-2, series, 0.5 * (np.expm1(length) - length)))
