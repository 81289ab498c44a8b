"""Modes that draws never visit: the one error that draws themselves cannot show.

Importance ratios are known only where draws of π_w fell. A mode of π elsewhere, or of π_w that no
chain found, leaves them looking perfect. So modes are searched for by Newton's method from wide
draws of the prior, and weighed by Laplace's approximation e^{log density} · |L|.
"""

from __future__ import annotations

import numpy as np

from corebayes.coreset import Coreset
from corebayes.rows import Rows
from corebayes.samplers.laplace import asked_posterior, prior_fit
from corebayes.samplers.mode_search import (
    Mode,
    distinct_modes,
    find_modes,
    lies_in,
    log_volume,
    shares_of,
)
from corebayes.samplers.posterior import Posterior
from corebayes.scan.query import Derivatives
from corebayes.types import Array, Block, Model

NUM_STARTS = 12
# Rows of the subsample on which modes of π are looked for before any further pass.
SUBSAMPLE_ROWS = 1000
# A mode with less than this share of the mass cannot matter to a certificate.
NEGLIGIBLE = 1e-3
MAX_FULL_SEARCHES = 4


def unvisited_mode(
    rng: np.random.Generator, coreset: Coreset, data: Rows, draws: Array
) -> str | None:
    """Why draws (S, d) of π_w cannot be trusted to show all of π_w and π; None when they can.

    Cost: Newton fits of the coreset and of a subsample of the rows; some thirty passes of N·d²
    flops when a mode that shows on the subsample lies away from the draws and must be weighed.
    """
    model = coreset.model
    # Modes that draws do visit are needed too, to weigh the others against.
    visited = list(rng.choice(draws, size=3, axis=0))
    starts = [*prior_starts(rng, coreset), *visited]
    ours = list(find_modes(Posterior.of(coreset), starts))
    missed = _heavy_unvisited(ours, draws)
    if missed is not None:
        return _reason("the coreset posterior", missed)
    rows, weights, scale = _subsample(rng, data)
    candidates = list(find_modes(Posterior(model, rows, weights), starts))
    if scale == 1.0:
        missed = _heavy_unvisited(candidates, draws)
    else:
        # A mode of the subsample lies √scale posterior widths from the one it stands for.
        away = [mode for mode in candidates if not lies_in(mode.fit, draws, 1.0 + scale)]
        away = sorted(away, key=lambda mode: -mode.log_mass)[:MAX_FULL_SEARCHES]
        if not away:
            return None
        begins = [*visited, *(mode.fit.mean for mode in away)]
        full = [_full_mode(model, data, begin) for begin in begins]
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
    distinct = distinct_modes(modes)
    if not distinct:
        return None
    for mode, share in zip(distinct, shares_of(distinct), strict=True):
        if share > NEGLIGIBLE and not lies_in(mode.fit, draws, 1.0):
            return mode, float(share)
    return None


def _full_mode(model: Model, data: Rows, start: Array) -> Mode:
    """The mode of the full posterior that Newton's method reaches. Cost: N·d² flops a pass."""
    fit = asked_posterior(model, data.ask, start=start, tolerance=1e-8)
    height = data.ask(Derivatives(model, fit.mean)).value
    height += float(model.log_prior(fit.mean[None, :])[0])
    return Mode(fit, height + log_volume(fit))


def prior_starts(rng: np.random.Generator, coreset: Coreset) -> Array:
    """Draws of the prior, or of a Gaussian as wide where it is not Gaussian."""
    return prior_fit(coreset.model, coreset.rows).draw(rng, NUM_STARTS)


def _subsample(rng: np.random.Generator, data: Rows) -> tuple[Block, Array, float]:
    """Rows, weights that add up to Σ_n c_n, and how many rows of the data one stands for."""
    if data.num_rows <= SUBSAMPLE_ROWS:
        rows = data.take(np.arange(data.num_rows))
        return rows, rows.multiplicity(), 1.0
    rows = data.take(data.some(rng, SUBSAMPLE_ROWS))
    counts = rows.multiplicity()
    weights = counts * (data.total_count / max(float(counts.sum()), 1.0))
    return rows, weights, data.num_rows / SUBSAMPLE_ROWS
