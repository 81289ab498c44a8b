"""The tangent space of a generalised linear model by Hermite expansion: no draws, no noise.

With π_w ≈ N(μ, LLᵀ) the linear predictor of row n is η ~ N(x_nᵀμ, ‖β_n‖²), β_n = Lᵀx_n, and

    f_n − E f_n = Σ_k c_{n,k} ⟨β_n^{⊗k}, He_k⟩ / k!,     c_{n,k} = E[∂^k f_n / ∂η^k].

The coefficients are one-dimensional Gaussian integrals, taken by Gauss–Hermite quadrature.
Degrees beyond `order` are dropped; linear regression is the exact case of order 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.polynomial import hermite_e
from scipy.linalg import cho_solve, solve_triangular

from corebayes.arguments import check_fields
from corebayes.models.families.glm import GLM
from corebayes.models.quadrature import Rule, gauss_hermite
from corebayes.models.special import scratch
from corebayes.problem import Problem
from corebayes.samplers.exact import Exact, is_conjugate
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.posterior import Posterior
from corebayes.tangent.gaussian import gaussian_free_energy
from corebayes.tangent.geometry import Geometry, half_square
from corebayes.tangent.ridge import ROOT_2, RidgeAlgebra, Ridges
from corebayes.types import Array, Block, Estimate, Gaussian, Model, Rng, Total, WeightedPoints

MAX_ORDER = 8
# Steps to the Gaussian closest to π_w, and the nats at which it is there.
MOST_STEPS, CENTRED = 20, 1e-10
# Steps that are tried, each a fourth of the one before; the nats from which whole ones are safe.
SHORTER_STEPS, CLOSE = 4, 1e-3
# Nats to that Gaussian from where a Laplace fit says little of the posterior, and from where the
# steps of Newton do; how much narrower is tried then.
ASTRAY, OUT_OF_SIGHT, NARROWER = 10.0, 1e12, (4.0, 16.0, 64.0)
# Derivatives that every family has.
KNOWN = 3
# From this order on what is not seen does not count: of rare rows it would be said to be too much.
UNSEEN = 3
# Up to this spread of η so many nodes give E f within 1e-9: the error is that of a polynomial of
# twice their degree, s⁴/12, s⁶/120 and s¹²/665,280 of the fourth, sixth and twelfth derivative.
NARROW = ((0.01, 2), (0.1, 3), (0.5, 6))


@dataclass(frozen=True)
class HermiteSpace(RidgeAlgebra):
    """Ridge polynomials at N(location, factor factorᵀ)."""

    model: GLM
    location: Array
    factor: Array
    num_nodes: int

    @property
    def width(self) -> int:
        return max(super().width, self.num_nodes)

    @property
    def gaussian(self) -> Gaussian:
        """What π_w is taken for."""
        return Gaussian(self.location, self.factor)

    def embed(self, block: Block, *, reuse: bool = False) -> Ridges:
        """Cost: n·d² flops and n·num_nodes derivatives."""
        design, target = self.model.design(block), self.model.target(block)
        ridges = Ridges(np.empty(design.shape), np.empty((len(design), self.order)))
        for part in self._parts(len(block)):
            made, _ = self._ridges(design[part], target[part])
            ridges.beta[part], ridges.coefficients[part] = made
        return ridges

    def _ridges(self, design: Array, target: Array) -> tuple[Ridges, Array]:
        """The rows' polynomials, β valid until the next call, and E f_n.

        Entries of many rows stand side by side, (d, n): loops over them are long.
        """
        # A new array for every block would cost more than what is computed there.
        columns = scratch("beta", design.shape[::-1])
        beta = np.matmul(self.factor.T, design.T, out=columns).T
        spread = np.sqrt(np.einsum("in,in->n", columns, columns))
        centre = design @ self.location
        tiers = self._tiers(spread)
        if len(tiers) == 1:
            coefficients, means = self._integrals(centre, spread, target, tiers[0][1])
            return Ridges(beta, coefficients), means
        coefficients, means = np.empty((self.order, len(design))).T, np.empty(len(design))
        for rows, rule in tiers:
            parts = self._integrals(centre[rows], spread[rows], target[rows], rule)
            coefficients[rows], means[rows] = parts
        return Ridges(beta, coefficients), means

    def _tiers(self, spread: Array) -> list[tuple[Any, Rule]]:
        """Rows that share a quadrature: as few nodes as the spread of their η needs; later ones
        count where rows stand twice."""
        full = gauss_hermite(self.num_nodes)
        if self.order > KNOWN:
            # Coefficients by parts are differences of what the nodes see.
            return [(slice(None), full)]
        widest = spread.max(initial=0.0)
        tiers: list[tuple[Any, Rule]] = []
        left = np.ones(spread.size, dtype=np.bool_)
        for most, num_nodes in NARROW:
            if num_nodes >= self.num_nodes:
                break
            rule = gauss_hermite(num_nodes)
            if widest <= most and not tiers:
                return [(slice(None), rule)]
            rows = np.flatnonzero(left & (spread <= most))
            if rows.size:
                tiers.append((rows, rule))
                left[rows] = False
        rows = np.flatnonzero(left)
        tiers += [(rows, full)] if rows.size else []
        if tiers[0][0].size > spread.size // 2:
            # The cheapest for all rows costs less than to pick most of them out.
            tiers[0] = slice(None), tiers[0][1]
        return tiers

    def _integrals(
        self, centre: Array, spread: Array, target: Array, rule: Rule
    ) -> tuple[Array, Array]:
        """c_{n,k} (n, order) and E f_n. Cost: n·num_nodes derivatives and potentials."""
        # η = centre + spread·node of every row
        predictor = scratch("predictor", (rule.nodes.size, centre.size))
        np.multiply(rule.nodes[:, None], spread, out=predictor)
        predictor += centre
        predictor = predictor.T
        known = min(self.order, KNOWN)
        derivatives = self.model.derivatives(predictor, target[:, None], known)
        # c_k = E[∂^k f / ∂η^k]
        coefficients = np.empty((self.order, centre.size))
        for degree, values in enumerate(derivatives):
            coefficients[degree] = values @ rule.weights
        # Beyond the derivatives at hand by parts: c_{k+j} = E[∂^k f / ∂η^k He_j(z)] / ‖β‖^j
        inverse = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0.0)
        for more in range(1, self.order - known + 1):
            weights = rule.weights * hermite_e.hermeval(rule.nodes, [0.0] * more + [1.0])
            coefficients[known + more - 1] = (derivatives[-1] @ weights) * inverse**more
        potentials = self.model.log_density(predictor, target[:, None], predictor)
        return coefficients.T, potentials @ rule.weights

    def total(self, block: Block) -> Total:
        """Cost: n·d^order flops, and n derivatives and potentials for each node."""
        counts = block.multiplicity()
        design, target = self.model.design(block), self.model.target(block)
        ridges, means = self._ridges(design, target)
        return Total(self.combine(ridges, counts), float(counts @ means))

    def newton(self, total: Total, share: float = 1.0) -> tuple[Gaussian, float]:
        """A step towards the Gaussian closest to the posterior with this total of the rows.

        With g = LᵀE∇ log π and P = −LᵀE∇² log π L it is N(μ + L P⁻¹g, L P⁻¹ Lᵀ), or a `share` s of
        that way: s·g for g and (1 − s) I + s P for P. The second number is how far that is in nats
        to second order, ½ gᵀP⁻¹g + ¼ ‖P − I‖²; infinite, with no step, where P is not positive
        definite in floating point. Cost: d³ flops.
        """
        prior, dim = self.model.gaussian_prior, self.dim
        slopes, curvature = self.slopes_and_curvature(total.element)
        pull = self.factor.T @ prior.precision
        # g = Σ c_1 β − LᵀΛ(μ − μ_0),   P = LᵀΛL − Σ c_2 ββᵀ
        gradient = share * (slopes - pull @ (self.location - prior.mean))
        precision = share * (pull @ self.factor - curvature)
        precision += (1.0 - share) * np.eye(dim)
        try:
            root: Array = np.asarray(np.linalg.cholesky(precision), dtype=np.float64)
        except np.linalg.LinAlgError:
            # So wide that averages of an exponential link are beyond all numbers.
            return self.gaussian, np.inf
        step = cho_solve((root, True), gradient)
        nearer = Gaussian(
            self.location + self.factor @ step,
            solve_triangular(root, self.factor.T, lower=True).T,
        )
        misfit = 0.5 * gradient @ step + 0.25 * np.sum(np.square(precision - np.eye(dim)))
        return nearer, float(misfit)

    def cut(self, total: Total, order: int) -> tuple[HermiteSpace, Total]:
        """The space without degrees beyond `order`, and a total there."""
        if self.order <= order:
            return self, total
        lower = replace(self, order=order)
        return lower, total._replace(element=total.element[: lower.num_numbers])

    def slopes_and_curvature(self, element: Array) -> tuple[Array, Array]:
        """Σ c_1 β and Σ c_2 ββᵀ of an element: mean gradient and Hessian, in units of L."""
        slopes, curvature = self._split(element)[:2]
        return slopes, ROOT_2 * curvature.reshape(self.dim, self.dim)

    def beyond(self, points: WeightedPoints) -> float:
        """Nats of KL(π_w ‖ π) in the first degree that the space does not see.

        Weights that are fitted to the degrees before are as good as random there. A row of weight
        w stands for w − 1 others that are not like it, so with the degree k

            ½ Σ_i w_i |w_i − 1| c_{i,k}² ‖β_i‖^{2k} / k!.

        Cost: M·d² flops.
        """
        if self.order >= UNSEEN:
            return 0.0
        space, weights = replace(self, order=self.order + 1), points.weights
        others = np.abs(weights - points.rows.multiplicity())
        return float(0.5 * (weights * others) @ space.last_degree(space.embed(points.rows)))

    def free_energy(self, total: Total) -> float:
        return gaussian_free_energy(self.model.gaussian_prior, self.gaussian, total)


@dataclass(frozen=True, kw_only=True)
class Hermite(Geometry):
    """Tangent spaces of a GLM at its Laplace posterior. Cost of a total: N·d^order flops.

    Order 2 sees location and scale, which is all there is for large N; order 3 also skewness; the
    highest are for few parameters, where many points can match more than that.
    """

    order: int = 2
    num_nodes: int = 16
    centred: bool = False
    """Whether the Gaussian is the one closest to π_w, with its mean, instead of the Laplace fit at
    the mode: of a skewed posterior it is the better one."""

    def __post_init__(self) -> None:
        check_fields(self, num_nodes=2)
        if self.order > MAX_ORDER:
            raise ValueError(f"order must be 1 to {MAX_ORDER}, got {self.order}")

    def space(
        self, rng: Rng, problem: Problem, points: WeightedPoints, start: Array | None = None
    ) -> HermiteSpace:
        model = _require_glm(problem.model)
        sampler = Exact() if is_conjugate(problem.model) else Laplace()
        posterior = Posterior(model, points.rows, points.weights)
        fit = sampler.fit(posterior, start)
        rows = Block(points.rows.fields, points.weights)
        if self.centred or self._astray(problem, fit, rows):
            return self._centred(problem, fit, rows)
        return self.space_at(problem, fit)

    def _astray(self, problem: Problem, fit: Gaussian, rows: Block) -> bool:
        """Whether a Laplace fit says little of π_w. Cost: M·d² flops."""
        if self.order == 1:
            return False
        space = replace(self, order=2).space_at(problem, fit)
        return not space.newton(space.total(rows))[1] <= ASTRAY

    def _centred(self, problem: Problem, fit: Gaussian, rows: Block) -> HermiteSpace:
        """The space at the Gaussian closest to π_w. Cost: M·d² + d³ flops a step, a few of them."""
        rough = replace(self, order=min(self.order, 2))
        space, total = rough.descend(
            _require_glm(problem.model),
            fit,
            lambda space: space.total(rows),
            enough=CENTRED,
            most_steps=MOST_STEPS,
        )
        nearer, misfit = space.newton(total)
        last = nearer if misfit <= CENTRED else space.gaussian
        return self.space_at(problem, last)

    def descend(
        self,
        model: GLM,
        fit: Gaussian,
        ask: Callable[[HermiteSpace], Total],
        *,
        enough: float,
        most_steps: int,
        near: float = 0.0,
        most_looks: float = np.inf,
    ) -> tuple[HermiteSpace, Total]:
        """Towards the Gaussian closest to a posterior, until so few nats are left, and its total.

        Newton's steps, each shortened until KL falls: whole ones go back and forth where a
        posterior is as wide as its prior on one side and narrow on the other (separated classes).
        So many nats as are `near` will do where a step no longer halves them.
        """
        space, total = self._within_sight(model, fit, ask)
        share, last, looks = 1.0, np.inf, 0
        for _ in range(most_steps):
            misfit = space.newton(total)[1]
            if misfit <= (near if misfit > 0.5 * last else enough):
                break
            energy, last = space.free_energy(total), misfit
            for _ in range(SHORTER_STEPS):
                looks += 1
                if looks > most_looks:
                    return space, total
                nearer = self.at(model, space.newton(total, share)[0])
                answer = ask(nearer)
                # So close that the last digits of the energy say nothing, whole steps get closer.
                closer = misfit <= CLOSE and nearer.newton(answer)[1] < misfit
                if closer or nearer.free_energy(answer) < energy:
                    break
                share /= 4.0
            else:
                break
            space, total, share = nearer, answer, min(1.0, 2.0 * share)
        return space, total

    def _within_sight(
        self, model: GLM, fit: Gaussian, ask: Callable[[HermiteSpace], Total]
    ) -> tuple[HermiteSpace, Total]:
        """The space at a fit, made narrower until the averages of all rows are numbers; its total.

        A posterior that is as wide as its prior on one side of the mode, and that an exponential
        ends on the other, has a Laplace fit under which that exponential has no mean to speak of.
        """
        space = self.at(model, fit)
        total = ask(space)
        for narrower in NARROWER:
            if space.newton(total)[1] < OUT_OF_SIGHT:
                break
            space = self.at(model, Gaussian(fit.mean, fit.factor / narrower))
            total = ask(space)
        return space, total

    def space_at(self, problem: Problem, at: Gaussian) -> HermiteSpace:
        return self.at(_require_glm(problem.model), at)

    def at(self, model: GLM, at: Gaussian) -> HermiteSpace:
        return HermiteSpace(model.dim, self.order, model, *at, self.num_nodes)

    def kl(self, problem: Problem, space: HermiteSpace, residual: Array) -> Estimate:
        """½ Var_w r, the second-order KL; deterministic, so its standard error is zero."""
        return Estimate(half_square(residual), 0.0)


def _require_glm(model: Model) -> GLM:
    if not isinstance(model, GLM):
        raise TypeError(
            f"the Hermite space is for generalised linear models, not {type(model).__name__}; "
            "use MonteCarlo()"
        )
    return model
