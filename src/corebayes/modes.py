"""Modes that draws never visit: the one error that draws themselves cannot show.

Importance ratios are known only where draws of π_w fell. A mode of π elsewhere, or of π_w that no
chain found, leaves them looking perfect. So modes are searched for by Newton's method from wide
draws of the prior, and weighed by Laplace's approximation e^{log density} · |L|.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from corebayes.samplers.laplace import Laplace, full_log_density, full_posterior
from corebayes.scan.query import Executor
from corebayes.types import Array, Block, Coreset, Data, Gaussian, Model

NUM_STARTS = 12
# Rows of the subsample on which modes of π are looked for before any further pass.
SUBSAMPLE_ROWS = 1000
# A mode with less than this share of the mass cannot matter to a certificate.
NEGLIGIBLE = 1e-3
MAX_FULL_SEARCHES = 4


class Mode(NamedTuple):
    """A local Laplace fit and the log of its mass, up to a constant."""

    fit: Gaussian
    log_mass: float


def unvisited_mode(
    rng: np.random.Generator, coreset: Coreset, data: Data, draws: Array, executor: Executor
) -> str | None:
    """Why draws (S, d) of π_w cannot be trusted to show all of π_w and π; None when they can.

    Cost: Newton fits of the coreset and of a subsample of the rows; some thirty passes of N·d²
    flops when a mode that shows on the subsample lies away from the draws and must be weighed.
    """
    model = coreset.model
    # Modes that draws do visit are needed too, to weigh the others against.
    visited = list(rng.choice(draws, size=3, axis=0))
    starts = [*_prior(coreset).draw(rng, NUM_STARTS), *visited]
    ours = list(_modes(model, coreset.rows, coreset.weights, starts))
    missed = _heavy_unvisited(ours, draws)
    if missed is not None:
        return _reason("the coreset posterior", missed)
    rows, weights, scale = _subsample(rng, data)
    candidates = list(_modes(model, rows, weights, starts))
    if scale == 1.0:
        missed = _heavy_unvisited(candidates, draws)
    else:
        # A mode of the subsample lies √scale posterior widths from the one it stands for.
        away = [mode for mode in candidates if not _visited(mode.fit, draws, 1.0 + scale)]
        away = sorted(away, key=lambda mode: -mode.log_mass)[:MAX_FULL_SEARCHES]
        if not away:
            return None
        begins = [*visited, *(mode.fit.mean for mode in away)]
        full = [_full_mode(model, data, executor, begin) for begin in begins]
        missed = _heavy_unvisited(full, draws)
    return None if missed is None else _reason("the full posterior", missed)


def _reason(which: str, missed: tuple[Mode, float]) -> str:
    mode, share = missed
    place = ", ".join(f"{value:.3g}" for value in mode.fit.mean[:5])
    more = ", …" if mode.fit.mean.size > 5 else ""
    return (
        f"{which} has a mode near θ = ({place}{more}) with about {100.0 * share:.3g} % of the mass "
        "that no draw visits. Build with a larger size, or use a model with one mode"
    )


def _heavy_unvisited(modes: list[Mode], draws: Array) -> tuple[Mode, float] | None:
    """The heaviest distinct mode away from all draws, and its share of the mass."""
    distinct: list[Mode] = []
    for mode in sorted(modes, key=lambda mode: -mode.log_mass):
        if not any(_visited(known.fit, mode.fit.mean[None], 1e-2) for known in distinct):
            distinct.append(mode)
    if not distinct:
        return None
    shares = np.exp([mode.log_mass - distinct[0].log_mass for mode in distinct])
    for mode, share in zip(distinct, shares / shares.sum(), strict=True):
        if share > NEGLIGIBLE and not _visited(mode.fit, draws, 1.0):
            return mode, float(share)
    return None


def _visited(fit: Gaussian, draws: Array, scale: float) -> bool:
    """Whether a draw lies where draws of N(mean, scale · LLᵀ) do: ‖z‖² ≤ d + 4 √(2d)."""
    z = np.linalg.solve(fit.factor, (draws - fit.mean).T)
    dim = fit.mean.size
    nearest = float(np.min(np.einsum("is,is->s", z, z)))
    return nearest <= scale * (dim + 4.0 * np.sqrt(2.0 * dim))


def _modes(model: Model, rows: Block, weights: Array, starts: list[Array]) -> Iterator[Mode]:
    """The modes of log π_0 + Σ w f that Newton's method reaches from the starts."""
    for start in starts:
        with np.errstate(all="ignore"):
            try:
                fit = Laplace().fit(model, rows, weights, start)
            except (FloatingPointError, np.linalg.LinAlgError):
                continue
            gradient = model.log_prior_gradient(fit.mean) + model.gradient(fit.mean, rows, weights)
            value = model.log_prior(fit.mean[None])[0]
            value += model.sum_potentials(fit.mean[None], rows, weights)[0]
        # ‖Lᵀ∇‖ is the distance to the mode in its own standard deviations.
        if np.isfinite(value) and np.linalg.norm(fit.factor.T @ gradient) < 1e-2:
            yield Mode(fit, float(value) + _log_volume(fit))


def _full_mode(model: Model, data: Data, executor: Executor, start: Array) -> Mode:
    """The mode of the full posterior that Newton's method reaches. Cost: N·d² flops a pass."""

    fit = full_posterior(model, data, executor, start=start, tolerance=1e-8)
    height = full_log_density(model, data, executor, fit.mean)
    return Mode(fit, height + _log_volume(fit))


def _log_volume(fit: Gaussian) -> float:
    return float(np.linalg.slogdet(fit.factor)[1])


def _prior(coreset: Coreset) -> Gaussian:
    """The prior, or its Laplace approximation where it is not Gaussian."""
    return Laplace().fit(coreset.model, coreset.rows.take(slice(0, 0)), np.empty(0))


def _subsample(rng: np.random.Generator, data: Data) -> tuple[Block, Array, float]:
    """Rows, weights that add up to Σ_n c_n, and how many rows of the data one stands for."""
    if data.num_rows <= SUBSAMPLE_ROWS:
        rows = data.take(np.arange(data.num_rows))
        return rows, rows.multiplicity(), 1.0
    numbers = np.sort(rng.choice(data.num_rows, SUBSAMPLE_ROWS, replace=False))
    rows = data.take(numbers)
    counts = rows.multiplicity()
    weights = counts * (data.total_count / max(float(counts.sum()), 1.0))
    return rows, weights, data.num_rows / SUBSAMPLE_ROWS
