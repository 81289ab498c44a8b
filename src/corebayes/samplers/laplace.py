"""Laplace approximations of π_w and of the full posterior, and draws from them.

π_w ≈ N(θ̂, H⁻¹) with θ̂ the mode of log π_0 + Σ_i w_i f_i and −H its Hessian there. Exact for
conjugate models, and under a proper prior always defined, also when the rows are linearly
separable (any M ≤ d rows are).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from corebayes.arguments import check_fields
from corebayes.deadline import check_time
from corebayes.models.priors.coefficient import DoubleExponential
from corebayes.rows import open_rows
from corebayes.samplers.draws import Draws
from corebayes.samplers.newton import newton
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.remembered import Remembered
from corebayes.scan.heights import Heights
from corebayes.scan.passes import Executor
from corebayes.scan.query import Derivatives, Slopes
from corebayes.types import Array, Block, Gaussian, Model

# A log density that falls by this many times what a Gaussian's would has another shape.
UNLIKE = 10.0


@dataclass(frozen=True, kw_only=True)
class Laplace:
    """Draws of the Laplace approximation of π_w. Cost: M·d² + d³ a Newton step, two when warm.

    `tolerance` is on the squared distance to the mode, in posterior standard deviations.
    The same name is that of a distribution: Laplace(mean, scale) is the prior `DoubleExponential`.
    """

    tolerance: float = 1e-8
    max_steps: int = 200
    matched: bool = False
    """Whether draws have exactly the mean and covariance of the fit: less noise in what is derived
    from them, but then they are not independent."""

    def __new__(cls, *prior: float, **fields: Any) -> Any:
        if prior or fields.keys() & {"mean", "scale"}:
            return DoubleExponential(*prior, **fields)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        check_fields(self, tolerance=0.0)

    def fit(self, posterior: Posterior, start: Array | None = None) -> Gaussian:
        """N(mode, inverse curvature) of π_w, from `start` or the origin."""
        start = np.zeros(posterior.dim) if start is None else start

        def rises(thetas: Array) -> Array:
            heights = posterior.log_density(thetas)
            return heights - heights[0]

        # Integrals over effects are computed for many places in the time of one.
        together = posterior.num_potentials > posterior.weights.size > 0
        return newton(
            start,
            posterior.gradient_and_hessian,
            posterior.value,
            rises=rises if together else None,
            tolerance=self.tolerance,
            max_steps=self.max_steps,
        )

    def try_fit(self, posterior: Posterior, start: Array | None = None) -> Gaussian | None:
        """The fit, or None when Newton's method leads to no finite one."""
        try:
            with np.errstate(all="ignore"):
                fit = self.fit(posterior, start)
        except (FloatingPointError, np.linalg.LinAlgError):
            return None
        return fit if np.all(np.isfinite(fit.mean)) and np.all(np.isfinite(fit.factor)) else None

    def draw(
        self, rng: Generator, posterior: Posterior, num_draws: int, start: Array | None = None
    ) -> Draws:
        fit = self.try_fit(posterior, start)
        if fit is None:
            size = posterior.weights.size
            raise ValueError(
                f"Newton's method finds no mode of the coreset posterior of size {size}, "
                "so there is no Laplace fit to draw from: a scale may go to zero where few rows "
                "have large weights. Draw with sampler=NUTS(), or leave the geometry to the method"
            )
        draws = (fit.draw_matched if self.matched else fit.draw)(rng, num_draws)
        if not posterior.model.log_concave:
            draws = pulled_in(posterior, fit, draws)
        return Draws(
            values=draws[None],
            location=fit.mean,
            independent=not self.matched,
            how="draws of the Laplace fit",
        )


def fit_or_units(posterior: Posterior, start: Array | None = None) -> Gaussian:
    """The Laplace fit from `start`; unit scales there when the density has no usable mode."""
    fit = Laplace().try_fit(posterior, start)
    at = np.zeros(posterior.dim) if start is None else start
    return Gaussian(at, np.eye(posterior.dim)) if fit is None else fit


def pulled_in(posterior: Posterior, fit: Gaussian, draws: Array) -> Array:
    """Draws of the fit; those at which π_w is negligible are moved halfway to the mode until it is
    not, 60 times at most.

    A direction with next to no curvature at the mode makes the fit wide without bounds: draws
    there would overflow, and say nothing of π_w. Cost: S·M potentials each time.
    """
    z = np.linalg.solve(fit.factor, (draws - fit.mean).T)
    squares = np.einsum("is,is->s", z, z)
    draws, away = draws.copy(), np.arange(len(draws))
    with np.errstate(all="ignore"):
        height = posterior.value(fit.mean)
        for _ in range(60):
            check_time()
            heights = posterior.log_density(draws[away])
            # A Gaussian falls by ½ ‖z‖²; many times that is another shape.
            outside = ~(heights >= height - UNLIKE * (1.0 + 0.5 * squares[away]))
            away = away[outside]
            if away.size == 0:
                break
            draws[away] = 0.5 * (draws[away] + fit.mean)
            squares[away] *= 0.25
    return draws


def prior_fit(model: Model, rows: Block) -> Gaussian:
    """The prior as a Gaussian, to have places that are wide apart; `rows` are any of the model's.

    The Laplace fit where there is one. A prior may have no curvature at its mode (a Laplace or a
    horseshoe prior) or no mode at all (the scale of a hierarchy): then the origin of the
    unconstrained parameters, and along each axis the distance at which the log density has fallen
    by half a nat, as a Gaussian's has at one standard deviation. Cost: some d³ flops and at most
    122·d log priors.
    """
    fit = Laplace().try_fit(Posterior(model, rows, np.empty(0)).prior)
    with np.errstate(all="ignore"):
        if fit is not None:
            deviations = fit.factor.T
            draws = np.vstack([fit.mean, fit.mean + deviations, fit.mean - deviations])
            heights = model.log_prior(draws) if np.all(np.isfinite(draws)) else np.full(2, np.nan)
            falls = heights[0] - heights[1:]
            # ½ for a Gaussian; half of that and less, or many times as much, is another shape.
            if np.all((falls > 0.1) & (falls < 5.0)):
                return fit
        return _origin_fit(model)


def _origin_fit(model: Model) -> Gaussian:
    """The Gaussian at the origin that is as wide along each axis as the prior."""
    lengths = 2.0 ** np.arange(-30.0, 31.0)
    widths = np.ones(model.dim)
    height = model.log_prior(np.zeros((1, model.dim)))[0]
    for axis in range(model.dim):
        check_time()
        sides: list[float] = []
        for sign in (1.0, -1.0):
            draws = np.zeros((lengths.size, model.dim))
            draws[:, axis] = sign * lengths
            falls = height - model.log_prior(draws)
            first = int(np.argmax(np.abs(falls) >= 0.5))
            # A side on which the prior rises or is flat has no width.
            if falls[first] >= 0.5:
                sides.append(lengths[first])
        if sides:
            widths[axis] = np.exp(np.mean(np.log(sides)))
    return Gaussian(np.zeros(model.dim), np.diag(widths))


def full_posterior(model: Model, data: Any, executor: Executor | None = None) -> Gaussian:
    """Laplace approximation of the full posterior: about eight passes of N·d² flops."""
    return asked_posterior(model, open_rows(data, executor=executor).ask)


def asked_posterior(
    model: Model,
    ask: Callable[[Any], Any],
    *,
    start: Array | None = None,
    tolerance: float = 1e-20,
    max_steps: int = 200,
) -> Gaussian:
    """Laplace approximation of the posterior of whatever rows `ask` takes its answers from."""
    asked = ask if isinstance(ask, Remembered) else Remembered(ask)

    def slopes(theta: Array) -> tuple[Array, Array]:
        answer: Slopes = asked(Derivatives(model, theta))
        return (
            answer.gradient + model.log_prior_gradient(theta),
            answer.hessian + model.log_prior_hessian(theta),
        )

    def value(theta: Array) -> float:
        likelihood: float = asked(Derivatives(model, theta)).value
        return likelihood + float(model.log_prior(theta[None, :])[0])

    def rises(thetas: Array) -> Array:
        priors = model.log_prior(thetas)
        return asked(Heights(model, thetas)) + priors - priors[0]

    start = np.zeros(model.dim) if start is None else start
    return newton(start, slopes, value, rises=rises, tolerance=tolerance, max_steps=max_steps)
