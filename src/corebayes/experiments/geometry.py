"""The manifold of coreset posteriors of a one-parameter model, by quadrature.

Coreset posteriors π_w(θ) ∝ exp(Σ_n w_n f_n(θ)) π_0(θ) are an exponential family with the weights
as coordinates. Its Fisher metric and the geodesics of that metric are

    G_nm(w) = Cov_w[f_n, f_m],      ẅ_k = −½ Σ_l G⁻¹_kl Σ_nm T_lnm ẇ_n ẇ_m,

with third cumulants T_lnm = E_w[g_l g_n g_m] of the centred potentials (G is the Hessian of log Z,
so the Christoffel symbols of the first kind are ½ T). With one parameter all of these are sums
over a grid (Campbell and Beronov 2019, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import rel_entr

from corebayes.types import Array, Indices
from corebayes.weights.nnls import nonnegative_least_squares


@dataclass(frozen=True)
class Manifold:
    """Potentials on a grid of θ, and the prior as weights of the grid's points."""

    potentials: Array
    """f_n(θ_j), shape (N, grid)."""
    prior: Array
    """π_0(θ_j) times the distance of the grid's points, shape (grid,)."""

    @property
    def num_rows(self) -> int:
        return self.potentials.shape[0]

    @cached_property
    def full(self) -> Array:
        """π on the grid: all weights one."""
        return self.density(np.ones(self.num_rows))

    def density(self, weights: Array) -> Array:
        """π_w on the grid, with sum one; for weights (…, N)."""
        active = np.flatnonzero(weights.reshape(-1, self.num_rows).any(axis=0))
        exponent = weights[..., active] @ self.potentials[active]
        values = np.exp(exponent - exponent.max(axis=-1, keepdims=True)) * self.prior
        return values / values.sum(axis=-1, keepdims=True)

    def centred(self, weights: Array) -> tuple[Array, Array]:
        """g_n = f_n − E_w f_n on the grid, and π_w."""
        density = self.density(weights)
        return self.potentials - (self.potentials @ density)[:, None], density

    def metric(self, weights: Array) -> Array:
        """G(w), shape (N, N)."""
        potentials, density = self.centred(weights)
        return (potentials * density) @ potentials.T

    def kl(self, weights: Array) -> float:
        """KL(π_w ‖ π), π the posterior with all weights one."""
        return float(self.kls(weights[None, :])[0])

    def kls(self, weights: Array) -> Array:
        """The same for weights (n, N)."""
        # Σ p log(p/q), with 0 log 0 = 0
        return rel_entr(self.density(weights), self.full).sum(axis=-1)

    def solution(self, at: Array, active: Indices) -> Array:
        """argmin_{v ≥ 0} ‖Σ_n g_n − Σ_i v_i g_i‖ over the active rows, in the plane at π_`at`."""
        metric = self.metric(at)
        weights = np.zeros(self.num_rows)
        gram, cross = metric[np.ix_(active, active)], metric[active].sum(axis=1)
        weights[active] = nonnegative_least_squares(gram, cross)
        return weights

    def best_row(self, at: Array, weights: Array, active: Indices) -> int:
        """The row outside the coreset whose geodesic direction at π_`at` is best aligned with what
        is missing: argmax corr[f_n, Σ_m (1 − w_m) f_m]."""
        metric = self.metric(at)
        scores = metric @ (1.0 - weights) / np.sqrt(np.diag(metric))
        scores[active] = -np.inf
        return int(scores.argmax())

    def geodesic(
        self, weights: Array, direction: Array, length: float, active: Indices, *, points: int = 40
    ) -> Array:
        """The geodesic from `weights` in a direction, on the face of the active rows.

        Its length is in the Fisher metric. Shape (points, N).
        """
        metric = self.metric(weights)[np.ix_(active, active)]
        velocity = direction[active]
        velocity = velocity / np.sqrt(velocity @ metric @ velocity)

        def slope(_: float, state: Array) -> Array:
            place, speed = np.split(state, 2)
            full = np.zeros(self.num_rows)
            full[active] = place
            potentials, density = self.centred(full)
            potentials = potentials[active]
            moving = speed @ potentials
            # Σ_nm T_lnm ẇ_n ẇ_m = E_w[g_l (Σ_n ẇ_n g_n)²]
            third = potentials @ (density * moving**2)
            gram = (potentials * density) @ potentials.T
            bend = -0.5 * np.linalg.solve(gram, third)
            return np.concatenate([speed, bend.astype(np.float64)])

        times, begin = np.linspace(0.0, length, points), np.concatenate([weights[active], velocity])
        answer = solve_ivp(slope, (0.0, length), begin, t_eval=times, rtol=1e-8)
        path = np.zeros((answer.y.shape[1], self.num_rows))
        path[:, active] = answer.y[: active.size].T
        return path


def logistic_manifold(num_rows: int = 100, seed: int = 3) -> Manifold:
    """Logistic regression on one covariate without intercept, with a standard normal prior."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(-5.0, 8.0, 801)
    x = rng.normal(size=num_rows)
    y = np.where(rng.random(num_rows) < 1.0 / (1.0 + np.exp(-2.5 * x)), 1.0, -1.0)
    prior = np.exp(-0.5 * grid**2)
    return Manifold(-np.logaddexp(0.0, -np.outer(x * y, grid)), prior / prior.sum())


def fixed_plane(manifold: Manifold, reference: Array, num_rows: int) -> list[Array]:
    """Hilbert coresets: rows and weights as the one plane at π_`reference` has them."""
    active: Indices = np.empty(0, dtype=np.int64)
    path = [np.zeros(manifold.num_rows)]
    for _ in range(num_rows):
        active = np.append(active, manifold.best_row(reference, path[-1], active))
        path.append(manifold.solution(reference, active))
    return path


def moving_plane(manifold: Manifold, num_rows: int) -> tuple[list[Array], Indices]:
    """Riemannian coresets: each row and its weights in the planes at the coreset posterior itself.

    The coresets of 0, 1, … rows, and the rows in the order in which they were chosen.
    """
    active: Indices = np.empty(0, dtype=np.int64)
    path = [np.zeros(manifold.num_rows)]
    for _ in range(num_rows):
        active = np.append(active, manifold.best_row(path[-1], path[-1], active))
        path.append(minimise(manifold, path[-1], active)[-1])
    return path, active


def minimise(
    manifold: Manifold, weights: Array, active: Indices, *, steps: int = 60
) -> list[Array]:
    """Natural-gradient steps to the lowest KL on the active rows, and all weights passed.

    Each goes to the solution in the plane at the current π_w, or part of the way, so that KL falls.
    """
    path, kl = [weights], manifold.kl(weights)
    for _ in range(steps):
        goal, share = manifold.solution(path[-1], active), 1.0
        while share > 1e-6:
            candidate = path[-1] + share * (goal - path[-1])
            lower = manifold.kl(candidate)
            if lower < kl:
                break
            share *= 0.5
        else:
            return path
        path.append(candidate)
        if kl - lower < 1e-12:
            return path
        kl = lower
    return path
