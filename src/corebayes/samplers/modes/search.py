"""The modes of π_w that Newton's method finds from many places, and their masses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corebayes.deadline import check_time
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.parts import squared_distances
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Gaussian


class Mode(NamedTuple):
    """A local Laplace fit and the log of its mass, up to a constant."""

    fit: Gaussian
    log_mass: float


def find_modes(posterior: Posterior, starts: Iterable[Array]) -> Iterator[Mode]:
    """The modes of π_w that Newton's method reaches from the starts."""
    for start in starts:
        mode = find_mode(posterior, start)
        if mode is not None:
            yield mode


def find_mode(posterior: Posterior, start: Array) -> Mode | None:
    """The mode that Newton's method reaches from the start, if it reaches one."""
    fit = Laplace().try_fit(posterior, start)
    if fit is None:
        return None
    with np.errstate(all="ignore"):
        # ‖Lᵀ∇‖ is the distance to the mode in its own standard deviations.
        distance = np.linalg.norm(fit.factor.T @ posterior.gradient(fit.mean))
    mass = log_mass(posterior, fit)
    return Mode(fit, mass) if mass > -np.inf and distance < 1e-2 else None


def modes_of_particles(
    posterior: Posterior, particles: Array, *, known: Sequence[Mode] = (), most: int = 60
) -> list[Mode]:
    """The distinct modes that particles lead to, the heaviest first, with those known already.

    A particle that lies in a mode that was found says nothing new. Cost: at most `most` fits.
    """
    modes = distinct_modes(known)
    left = particles
    for mode in modes:
        left = left[~_inside(mode.fit, left)]
    for _ in range(most):
        check_time()
        if len(left) == 0:
            break
        start, left = left[0], left[1:]
        mode = find_mode(posterior, start)
        if mode is not None:
            modes = _with_mode(modes, mode)
            left = left[~_inside(mode.fit, left)]
    return modes


def log_mass(posterior: Posterior, fit: Gaussian) -> float:
    """Laplace's log density · |L|. The height alone would prefer a spike to where the mass is."""
    with np.errstate(all="ignore"):
        mass = posterior.value(fit.mean) + log_volume(fit)
    return mass if np.isfinite(mass) else -np.inf


def distinct_modes(modes: Iterable[Mode]) -> list[Mode]:
    """Each mode once, the heaviest first."""
    distinct: list[Mode] = []
    for mode in sorted(modes, key=lambda mode: -mode.log_mass):
        if not any(same_mode(known, mode) for known in distinct):
            distinct.append(mode)
    return distinct


def _with_mode(distinct: list[Mode], mode: Mode) -> list[Mode]:
    """Distinct modes with one more, unless it is among them; those are not compared again."""
    if any(same_mode(*sorted((known, mode), key=lambda one: -one.log_mass)) for known in distinct):
        return distinct
    return sorted([*distinct, mode], key=lambda one: -one.log_mass)


def same_mode(one: Mode, other: Mode) -> bool:
    """Whether two fits are of one mode, up to a tenth of a deviation."""
    return lies_in(one.fit, other.fit.mean[None], 1e-2)


def shares_of(modes: Sequence[Mode]) -> Array:
    """The share of each mode in the mass of all."""
    return shares_of_logs(np.array([mode.log_mass for mode in modes]))


def shares_of_logs(logs: Array) -> Array:
    """Shares of what is known by its logarithms; none of what is not finite."""
    logs = np.where(np.isfinite(logs), logs, -np.inf)
    shares = np.exp(logs - logs.max())
    return shares / shares.sum()


def lies_in(fit: Gaussian, draws: Array, scale: float) -> bool:
    """Whether a draw lies where draws of N(mean, scale · LLᵀ) do: ‖z‖² ≤ d + 4 √(2d)."""
    dim = fit.mean.size
    nearest = float(np.min(squared_distances(fit, draws)))
    return nearest <= scale * (dim + 4.0 * np.sqrt(2.0 * dim))


def _inside(fit: Gaussian, draws: Array) -> NDArray[np.bool_]:
    """Which draws lie well within a mode: ‖z‖² ≤ d + 2 √(2d)."""
    dim = fit.mean.size
    if len(draws) == 0:
        return np.zeros(0, dtype=np.bool_)
    return squared_distances(fit, draws) <= dim + 2.0 * np.sqrt(2.0 * dim)


def log_volume(fit: Gaussian) -> float:
    return float(np.linalg.slogdet(fit.factor)[1])
