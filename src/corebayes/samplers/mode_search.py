"""The modes of π_w that Newton's method finds from several places, and their masses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from corebayes.samplers.laplace import Laplace
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Gaussian


class Mode(NamedTuple):
    """A local Laplace fit and the log of its mass, up to a constant."""

    fit: Gaussian
    log_mass: float


def find_modes(posterior: Posterior, starts: Iterable[Array]) -> Iterator[Mode]:
    """The modes of π_w that Newton's method reaches from the starts."""
    for start in starts:
        fit = Laplace().try_fit(posterior, start)
        if fit is None:
            continue
        with np.errstate(all="ignore"):
            # ‖Lᵀ∇‖ is the distance to the mode in its own standard deviations.
            distance = np.linalg.norm(fit.factor.T @ posterior.gradient(fit.mean))
        mass = log_mass(posterior, fit)
        if mass > -np.inf and distance < 1e-2:
            yield Mode(fit, mass)


def log_mass(posterior: Posterior, fit: Gaussian) -> float:
    """Laplace's log density · |L|. The height alone would prefer a spike to where the mass is."""
    with np.errstate(all="ignore"):
        mass = posterior.value(fit.mean) + log_volume(fit)
    return mass if np.isfinite(mass) else -np.inf


def distinct_modes(modes: Iterable[Mode]) -> list[Mode]:
    """Each mode once, the heaviest first."""
    distinct: list[Mode] = []
    for mode in sorted(modes, key=lambda mode: -mode.log_mass):
        if not any(lies_in(known.fit, mode.fit.mean[None], 1e-2) for known in distinct):
            distinct.append(mode)
    return distinct


def shares_of(modes: list[Mode]) -> Array:
    """The share of each mode in the mass of all."""
    masses = np.array([mode.log_mass for mode in modes])
    shares = np.exp(masses - masses.max())
    return shares / shares.sum()


def lies_in(fit: Gaussian, draws: Array, scale: float) -> bool:
    """Whether a draw lies where draws of N(mean, scale · LLᵀ) do: ‖z‖² ≤ d + 4 √(2d)."""
    z = np.linalg.solve(fit.factor, (draws - fit.mean).T)
    dim = fit.mean.size
    nearest = float(np.min(np.einsum("is,is->s", z, z)))
    return nearest <= scale * (dim + 4.0 * np.sqrt(2.0 * dim))


def log_volume(fit: Gaussian) -> float:
    return float(np.linalg.slogdet(fit.factor)[1])
