"""The Gaussian that is closest to a mixed model's posterior, by Newton steps with expected slopes.

    Σ⁻¹ = −E_q ∇² log π,    μ ← μ + Σ E_q ∇ log π       (Gaussian variational inference)

Expectations are over the predictors, so a step takes one sum over the rows: of the few rows of a
coreset, or of all rows in a pass. Scales are those of the marginal (see `prior`); the rows' share
of a step stands still while they are found. A step must raise the evidence bound, or it is halved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from corebayes.arrow.gaussian import ArrowGaussian
from corebayes.arrow.layout import Layout
from corebayes.arrow.prior import ArrowPrior, PriorParts
from corebayes.arrow.sums import ArrowSums
from corebayes.deadline import check_time
from corebayes.types import Array

# EM for the scales: a hundredth of a per cent of τ, or so many rounds.
SETTLED_SCALES, MOST_ROUNDS = 1e-4, 100
# The logarithm of a scale grows by this much at most in a step.
WIDER = 1.0
# A learned constant moves by a factor of e² at most in a step.
LONGEST = 2.0
# Where a precision is not positive definite it is turned over in the directions that are at fault,
# to this share of its diagonal at least; and where that is not enough its diagonal is raised.
LEAST_SHARE, ROUND_OFF = 0.01, 1e-12
RAISED = (0.0, 0.01, 0.1, 1.0, 10.0, 100.0)
# Shares of a step that are tried where it leads out of all numbers: a parameter of somebody else's
# model may be the logarithm of anything.
SHARES = (1.0, 0.1, 0.01, 0.001)


class Fitted(NamedTuple):
    """A Gaussian, what the rows say around it, and the evidence bound there."""

    gaussian: ArrowGaussian
    sums: ArrowSums
    bound: float


class NewtonStep(NamedTuple):
    """Where Newton goes from a fit."""

    gaussian: ArrowGaussian
    decrement: float
    """The squared length of the step, in standard deviations, over all parameters; infinite where
    a scale went as far as it may."""


@dataclass(frozen=True, eq=False)
class Fitting:
    """Newton steps on sums that someone else takes."""

    layout: Layout
    prior: PriorParts

    def start(self, theta: Array) -> ArrowGaussian:
        """A point: no spread at all."""
        layout = self.layout
        p, (num_groups, q) = layout.num_wide, layout.own_positions.shape
        return ArrowGaussian(
            layout,
            theta[layout.wide_positions],
            theta[layout.own_positions],
            np.zeros((p, p)),
            np.zeros((num_groups, q, p)),
            np.broadcast_to(1e9 * np.eye(q), (num_groups, q, q)),
        )

    def at(self, gaussian: ArrowGaussian, sums: ArrowSums) -> Fitted:
        bound = sums.value + self.prior.expected_log_density(gaussian)
        if gaussian.factor.any():
            bound += gaussian.log_volume()
        else:
            bound = -np.inf
        return Fitted(gaussian, sums, bound)

    def step(self, fitted: Fitted) -> NewtonStep:
        """Newton's step, with the scales that go with it, or the share of it that leads to a place
        where there is a Gaussian. Cost: a few sums over groups."""
        for share in SHARES[:-1]:
            try:
                return self._step(fitted, share)
            except (np.linalg.LinAlgError, FloatingPointError):
                continue
        return self._step(fitted, SHARES[-1])

    def _step(self, fitted: Fitted, share: float) -> NewtonStep:
        gaussian, sums, _ = fitted
        scales = self.layout.structure.scales
        # EM climbs out of small scales very slowly, and the first steps may have led there.
        theta = self.prior.lifted(gaussian.mean, sums)
        # Rows far out in a tail pull and do not bend: effects and scales would chase each other.
        widest = gaussian.mean[scales] + WIDER
        theta[scales] = np.minimum(theta[scales], widest)
        new, decrement = self._newton(theta, gaussian, sums, share)
        for _ in range(MOST_ROUNDS if scales.size else 0):
            check_time()
            better = np.minimum(self.prior.best_scales(new), widest)
            moved = float(np.max(np.abs(better - theta[scales])))
            theta = theta.copy()
            theta[scales] = better
            new, _ = self._newton(theta, gaussian, sums, share)
            if moved < SETTLED_SCALES:
                break
        new, decrement = self._newton(theta, gaussian, sums, share, coupled=new)
        # A scale that would be wider still, as in dollars from a start at one, has not settled.
        return NewtonStep(new, np.inf if np.any(theta[scales] >= widest) else decrement)

    def _newton(
        self,
        theta: Array,
        gaussian: ArrowGaussian,
        sums: ArrowSums,
        share: float,
        coupled: ArrowGaussian | None = None,
    ) -> tuple[ArrowGaussian, float]:
        """A share of the step from θ for the scales that θ has; `coupled` adds their own
        uncertainty."""
        layout = self.layout
        at = theta if coupled is None else _with_scales(coupled.mean, theta, layout)
        prior = self.prior.sums(theta, spread=gaussian)
        total = sums.padded(layout.num_wide).plus(prior)
        wide_mean, own_mean = theta[layout.wide_positions], theta[layout.own_positions]
        plain = _gaussian(layout, wide_mean, own_mean, total)
        shift_wide, shift_own = _solve(plain, total, self._learned)
        # The scales' gradient is no part of the step.
        touched = slice(0, layout.num_touched)
        decrement = float(total.wide[touched] @ shift_wide[touched] + np.sum(total.own * shift_own))
        wide_mean = wide_mean + np.where(
            np.arange(layout.num_wide) < layout.num_touched, share * shift_wide, 0.0
        )
        own_mean = own_mean + share * shift_own
        if coupled is None:
            return ArrowGaussian(
                layout, wide_mean, own_mean, plain.factor, plain.slopes, plain.root
            ), decrement
        with_scales = sums.padded(layout.num_wide).plus(
            self.prior.sums(at, spread=coupled, coupled=coupled)
        )
        return _gaussian(layout, wide_mean, own_mean, with_scales), decrement

    @property
    def _learned(self) -> slice:
        """The places of learned constants among the wide parameters."""
        if not isinstance(self.prior, ArrowPrior):
            return slice(0, 0)
        start = self.prior.prior.fixed.dim
        return slice(start, start + len(self.prior.prior.learned))

    def between(self, old: ArrowGaussian, new: ArrowGaussian, share: float) -> ArrowGaussian:
        """A part of the way, with the spread of the end."""
        return ArrowGaussian(
            self.layout,
            old.wide_mean + share * (new.wide_mean - old.wide_mean),
            old.own_mean + share * (new.own_mean - old.own_mean),
            new.factor,
            new.slopes,
            new.root,
        )


def fit(
    fitting: Fitting,
    start: ArrowGaussian,
    sums_at: Callable[[ArrowGaussian], ArrowSums],
    *,
    tolerance: float,
    max_steps: int = 50,
) -> Fitted:
    """Newton steps until the decrement is at most `tolerance` for each parameter.

    `sums_at` sums over the rows: it is called once for each step, and for each that is halved.
    Where steps do not settle the place of the highest bound is given.
    """
    fitted = highest = fitting.at(start, sums_at(start))
    for _ in range(max_steps):
        try:
            gaussian, decrement = fitting.step(fitted)
        except FloatingPointError:
            if not highest.gaussian.factor.any():
                raise
            # Far up a spike, as of one heavy row, numbers end.
            break
        settled = abs(decrement) <= tolerance * fitting.layout.dim
        if settled and fitted.gaussian.factor.any():
            return fitted
        raised = _raised(fitting, fitted, gaussian, sums_at)
        if np.isfinite(fitted.bound) and not np.isfinite(raised.bound):
            # No part of the step leads to a place that has a density.
            break
        fitted = raised
        if fitted.bound > highest.bound or not highest.gaussian.factor.any():
            highest = fitted
    return highest


def _raised(
    fitting: Fitting,
    fitted: Fitted,
    gaussian: ArrowGaussian,
    sums_at: Callable[[ArrowGaussian], ArrowSums],
) -> Fitted:
    """The longest of the step's halves that does not lower the bound by more than round-off; the
    shortest if all do: the spread of its end may be a way out."""
    share, best = _first_share(fitting, fitted, gaussian, sums_at), fitted
    for _ in range(20):
        check_time()
        candidate = fitting.between(fitted.gaussian, gaussian, share)
        with np.errstate(all="ignore"):
            best = fitting.at(candidate, sums_at(candidate))
        if best.bound >= fitted.bound - 1e-6 * abs(fitted.bound) and np.isfinite(best.bound):
            return best
        share *= 0.5
    return best


def _first_share(
    fitting: Fitting,
    fitted: Fitted,
    gaussian: ArrowGaussian,
    sums_at: Callable[[ArrowGaussian], ArrowSums],
) -> float:
    """How much of a step from a point raises the density: a point has no bound to compare with."""
    if fitted.bound > -np.inf:
        return 1.0

    def height(share: float) -> float:
        between = fitting.between(fitted.gaussian, gaussian, share).mean
        # All with the scales of the end, since smaller ones are a gain in themselves.
        point = fitting.start(_with_scales(between, gaussian.mean, fitting.layout))
        rows = fitted.sums if share == 0.0 else sums_at(point)
        return rows.value + fitting.prior.expected_log_density(point)

    share, lowest = 1.0, height(0.0)
    for _ in range(20):
        with np.errstate(all="ignore"):
            if height(share) >= lowest:
                break
        share *= 0.5
    return share


def _with_scales(theta: Array, source: Array, layout: Layout) -> Array:
    result = theta.copy()
    result[layout.structure.scales] = source[layout.structure.scales]
    return result


def _gaussian(layout: Layout, wide_mean: Array, own_mean: Array, total: ArrowSums) -> ArrowGaussian:
    """N(mean, (−H)⁻¹), −H made positive definite where it is not."""
    wide_wide, own_wide, own_own = -total.wide_wide, -total.own_wide, -total.own_own
    if all(np.all(np.isfinite(block)) for block in (wide_wide, own_wide, own_own)):
        try:
            return ArrowGaussian.of_precision(
                layout, wide_mean, own_mean, wide_wide, own_wide, own_own
            )
        except np.linalg.LinAlgError:
            # Raising all of the diagonal would tie effects down that rows say much about, and their
            # scales with them.
            wide_wide, own_own = _turned_over(wide_wide, own_wide, own_own)
        wide_diagonal = np.diag(np.abs(np.diagonal(total.wide_wide)))
        own_diagonal = np.abs(total.own_own) * np.eye(layout.num_own)
        for raised in RAISED:
            try:
                return ArrowGaussian.of_precision(
                    layout,
                    wide_mean,
                    own_mean,
                    wide_wide + raised * wide_diagonal,
                    own_wide,
                    own_own + raised * own_diagonal,
                )
            except np.linalg.LinAlgError:
                continue
    raise FloatingPointError(
        "the log density of the mixed model has no curvature that a Gaussian could be fitted to: "
        "look at the scale of the columns and of the target"
    )


def _turned_over(wide_wide: Array, own_wide: Array, own_own: Array) -> tuple[Array, Array]:
    """Blocks of a precision that is positive definite: each group's, then what is left of the wide
    parameters given the groups."""
    own_own = _definite(own_own, own_own)
    known = np.einsum("gqp,gqr->pr", own_wide, np.linalg.solve(own_own, own_wide), optimize=True)
    return known + _definite(wide_wide - known, wide_wide), own_own


def _definite(matrices: Array, units: Array) -> Array:
    """The same with the opposite of all eigenvalues that are not positive, in units of a diagonal;
    (…, n, n)."""
    scale = np.sqrt(np.abs(np.diagonal(units, axis1=-2, axis2=-1)))
    scale = np.where(scale > 0.0, scale, 1.0)
    both = scale[..., :, None] * scale[..., None, :]
    values, vectors = np.linalg.eigh(matrices / both)
    values = np.where(values > ROUND_OFF, values, np.maximum(np.abs(values), LEAST_SHARE))
    return both * ((vectors * values[..., None, :]) @ np.swapaxes(vectors, -2, -1))


def _solve(gaussian: ArrowGaussian, total: ArrowSums, learned: slice) -> tuple[Array, Array]:
    """Σ g in the two parts, the `learned` constants no further than they may go.

    They are logarithms: where there is hardly any curvature a step would leave all numbers. All
    other parameters go where they go best with what is left of that.
    """
    pulled = total.wide - np.einsum("gqp,gq->p", gaussian.slopes, total.own)
    wide: Array = gaussian.factor @ (gaussian.factor.T @ pulled)
    furthest = float(np.max(np.abs(wide[learned]), initial=0.0))
    if furthest > LONGEST:
        # All by the same share: constants that go together would leave the way up one by one.
        short = (LONGEST / furthest - 1.0) * wide[learned]
        covariance: Array = gaussian.factor @ gaussian.factor[learned].T
        wide = wide + covariance @ np.linalg.solve(covariance[learned], short)
    whitened = np.einsum("gij,gj->gi", gaussian.inverse_root, total.own)
    own = np.einsum("gji,gj->gi", gaussian.inverse_root, whitened)
    return wide, own - gaussian.slopes @ wide
