"""Generalised linear models: everything but the family.

    f_n(θ) = ℓ(η_n, y_n),   η_n = x_nᵀθ,     ∇ f_n = ℓ'(η_n) x_n,    ∇² f_n = ℓ''(η_n) x_n x_nᵀ

A family is one small class that gives ℓ and its derivatives in η. What other parts of the package
ask of it is on the class too, where it is there: names on the command line, a compiled kernel, a
line of Stan, the distribution in NumPyro and PyMC. This one is complete:

    @dataclass(frozen=True, kw_only=True, eq=False)
    class RateRegression(GLM):
        '''Waiting times with rate exp(η): ℓ = η − y exp(η).'''

        def log_density(self, eta, y, out):
            rate = np.exp(eta)
            return np.subtract(eta, y * rate, out=out)

        def derivatives(self, eta, y, order=3):
            slope = -y * np.exp(eta)
            return (1.0 + slope, slope, slope)[:order]

        def check_target(self, y, lowest):
            return ~((y > 0) & np.isfinite(y)), "waiting times must be positive"
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corebayes.models.compiled import jit
from corebayes.models.design import NamedColumns, Targets, coefficient_names
from corebayes.models.families.family import Family, Jet, Row
from corebayes.models.priors.default import by_name, stated_priors
from corebayes.models.priors.given import all_normal
from corebayes.models.priors.normal import Normal
from corebayes.models.special import scratch
from corebayes.types import Array, Block, Data

# Values of η held at once in a sum over rows, 8 MB; a block of a pass is smaller.
VALUES_AT_ONCE = 1 << 20
# Fewer values are not worth importing numba for, most of a second, at the dozen places that fits of
# a subsample ask for; which code runs depends on the shape alone.
COMPILED_FROM = 1 << 15


@dataclass(frozen=True, kw_only=True, eq=False)
class GLM(Family):
    """A regression whose potentials depend on a row through η = xᵀθ and y alone.

    With a constant that is to be learned, or columns that are no features, it is a family like any
    other, and `bind` makes a regression of several predictors of it.
    """

    @property
    def kernel(self) -> jit.Kernel | None:
        """The compiled form of `log_density`, when there is one."""
        return None

    @property
    def slope_kernel(self) -> jit.Kernel | None:
        """The same for ℓ', when there is one: NUTS then runs without Python."""
        return None

    @property
    def density_kernels(self) -> tuple[jit.Kernel, jit.Kernel] | None:
        """ℓ and ℓ' for a compiled density of few rows."""
        if self.kernel is None or self.slope_kernel is None:
            return None
        return self.kernel, self.slope_kernel

    @abstractmethod
    def log_density(self, eta: Array, y: Array, out: Array) -> Array:
        """ℓ(η, y) without terms free of η, into `out`, which may be `eta` itself.

        `eta` is (n, S) and `y` (n, 1).
        """

    @abstractmethod
    def derivatives(self, eta: Array, y: Array, order: int = 3) -> tuple[Array, ...]:
        """The first `order` of ℓ', ℓ'' and ℓ''' in η, for any shapes that broadcast."""

    def log_likelihood(self, at: Sequence[Array], row: Row) -> Array:
        (eta,), y = at, self.own_target(row["y"])
        eta, y = np.broadcast_arrays(eta, y)
        return self.log_density(eta.copy(), y, np.empty(eta.shape))

    def jet(self, at: Sequence[Array], row: Row, order: int = 2) -> Jet:
        first, *second = self.derivatives(at[0], self.own_target(row["y"]), order)
        return Jet(self.log_likelihood(at, row), (first,), tuple((one,) for one in second))

    def row_base(self, row: Row) -> Array:
        return self.log_base_of(row["y"])

    def log_base_of(self, y: Array) -> Array:
        """The terms free of η that `log_density` leaves out, shape (n,)."""
        return np.zeros_like(y)

    @property
    def several(self) -> bool:
        return bool(self.unknown or self.row_columns or not all_normal(self.prior))

    def bind(self, data: Data) -> Any:
        """This model for these rows: itself, its prior on their scale; or, where a constant is
        unknown or a prior is not Normal, the regression of a family like any other.

        Cost: a pass over the rows, N·d² flops.
        """
        if self.several:
            return super().bind(data)
        names = coefficient_names(data, intercept=self.intercept)
        if isinstance(self.prior, Normal):
            bound = self.with_names(names)
            data.check(Targets(bound))
            return bound.with_target(data.target_name)
        chosen = by_name(self.prior, names)
        moments = data.learn(Targets(NamedColumns(self, names))).moments
        known = None if self.bound is None or self.bound.given is not self.prior else self.bound
        stated = None if known is None else known.stated
        priors = stated_priors(self, chosen, names, moments, stated)
        return self.with_priors(priors).with_target(data.target_name)

    def row_check(self) -> Targets:
        """The question whether every row has a target of this family."""
        return Targets(self, rank=False)

    def design(self, block: Block) -> Array:
        """X, with a last column of ones when there is an intercept, (n, d)."""
        X = block.X
        if not self.intercept:
            return X
        design = np.empty((X.shape[0], X.shape[1] + 1))
        design[:, :-1] = X
        design[:, -1] = 1.0
        return design

    def target(self, block: Block) -> Array:
        """y in the family's own form, (n,)."""
        return self.own_target(block.y)

    def own_target(self, y: Array) -> Array:
        """The same of any targets."""
        return y

    def row(self, block: Block) -> Row:
        """What the family sees of rows beside their predictors, (n, 1)."""
        return {"y": block.y[:, None]} if "y" in block.fields else {}

    def predictors(self, draws: Array, block: Block) -> tuple[Array, ...]:
        """All predictors of the family at draws (S, d): η (n, S), then the known constants."""
        constants = ((one, self.known(one)) for one in self.learnable)
        known = (
            np.full((1, 1), one.on_line(value)) for one, value in constants if value is not None
        )
        return (self.design(block) @ draws.T, *known)

    def potentials(self, draws: Array, block: Block, out: Array | None = None) -> Array:
        eta = np.matmul(self.design(block), draws.T, out=out)
        return self.transform(eta, self.target(block))

    def transform(self, eta: Array, target: Array) -> Array:
        """ℓ(η, y) over η (n, S), in place, for the family's own y (n,)."""
        kernel = self.compiled_kernel(eta.size)
        if kernel is None:
            return self.log_density(eta, target[:, None], eta)
        jit.transform(kernel, eta, target, *self.constants.values())
        return eta

    def compiled_kernel(self, num_values: int) -> jit.Kernel | None:
        """The kernel for that many values, if they are worth a compiled loop and it is there."""
        return self.kernel if num_values >= COMPILED_FROM and jit.available() else None

    def sum_potentials(self, draws: Array, block: Block, weights: Array | None = None) -> Array:
        if len(block) * len(draws) > VALUES_AT_ONCE and len(block) > 1:
            return self._sum_in_parts(draws, block, weights)
        eta = scratch("eta", (len(block), len(draws)))
        kernel = self.compiled_kernel(eta.size)
        if kernel is None:
            values = self.potentials(draws, block, eta)
            return values.sum(axis=0) if weights is None else weights @ values
        np.matmul(self.design(block), draws.T, out=eta)
        weights = np.ones(len(block)) if weights is None else weights
        return jit.weighted_sums(kernel, eta, self.target(block), weights, *self.constants.values())

    def _sum_in_parts(self, draws: Array, block: Block, weights: Array | None) -> Array:
        total = np.zeros(len(draws))
        step = max(1, VALUES_AT_ONCE // len(draws))
        for start in range(0, len(block), step):
            part = slice(start, start + step)
            part_weights = None if weights is None else weights[part]
            total += self.sum_potentials(draws, block.take(part), part_weights)
        return total

    def gradient(self, theta: Array, block: Block, weights: Array) -> Array:
        design = self.design(block)
        (first,) = self.derivatives(design @ theta, self.target(block), 1)
        return (weights * first) @ design

    def gradient_and_hessian(
        self, theta: Array, block: Block, weights: Array
    ) -> tuple[Array, Array]:
        design = self.design(block)
        first, second = self.derivatives(design @ theta, self.target(block), 2)
        return (weights * first) @ design, (design.T * (weights * second)) @ design

    def hessian(self, theta: Array, block: Block, weights: Array) -> Array:
        """∇² Σ_n w_n f_n(θ), without the prior, shape (d, d)."""
        return self.gradient_and_hessian(theta, block, weights)[1]

    def row_gradients(self, draws: Array, block: Block, coefficients: Array) -> dict[str, Array]:
        """Σ_s a_s ∇ f_n(θ_s) in the numbers of row n: X, and y in a location family.

        ∂f_n/∂x_n = ℓ'(η_n) θ without the intercept, and ∂f_n/∂y_n = −ℓ'(η_n) there.
        Cost: n·S·d flops.
        """
        eta = self.design(block) @ draws.T
        (first,) = self.derivatives(eta, self.target(block)[:, None], 1)
        scaled = first * coefficients
        gradients = {"X": scaled @ draws[:, : block.X.shape[1]]}
        if self.location_family:
            gradients["y"] = -scaled.sum(axis=1)
        return gradients

    def log_base(self, block: Block) -> Array:
        return self.log_base_of(block.y)
