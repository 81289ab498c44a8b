"""Modes of the posterior of all rows that the coreset's lacks, so that no move on it comes there.

The search is that of `certify`. Where it cannot see, which is in many dimensions, this is said.
"""

from __future__ import annotations

import warnings
from typing import Self

import numpy as np

from corebayes.certify.search import Found, full_mode, search
from corebayes.coreset import Coreset
from corebayes.models.custom.touching import may_have_modes
from corebayes.rows import Rows
from corebayes.samplers.modes.search import Mode, distinct_modes, log_volume, shares_of_logs
from corebayes.samplers.posterior import Posterior
from corebayes.scan.heights import log_posterior
from corebayes.types import Rng

# Modes of π_w from which those of π are climbed to.
MOST_FULL_FITS = 12
# A mode that π has so many times as much of as π_w, draws of π_w do not come to often enough; one
# with less of the mass than this is not missed.
MOST_SPARSE, NEGLIGIBLE = 5.0, 1e-4
# And one that π has so many times as much of they never come to.
NEVER = 1000.0


class LostModeError(ValueError):
    """The coreset posterior lacks a mode, and what lies there cannot be drawn from."""

    @classmethod
    def at(cls, mode: Mode, trouble: str) -> Self:
        place = ", ".join(f"{value:.3g}" for value in mode.fit.mean[:5])
        more = ", …" if mode.fit.mean.size > 5 else ""
        return cls(
            f"the posterior of all rows has a mode near θ = ({place}{more}) that the coreset's "
            f"does not have, and {trouble}"
        )


def searched(rng: Rng, coreset: Coreset, rows: Rows) -> Found | None:
    """The modes of both posteriors, where there may be several; see `certify.search`.

    Cost: particles on M and on 500 rows; passes of N·d² flops only where π_w may lack a mode.
    """
    model = coreset.model
    if not may_have_modes(model):
        return None
    found = search(rng, coreset, rows)
    unseen = found.unseen(model)
    if unseen is not None:
        warnings.warn(
            "draws are of the modes that the coreset has, and no search can tell that there is no "
            f"other, since {unseen}",
            UserWarning,
            stacklevel=5,
        )
    return found


def told_apart(coreset: Coreset, rows: Rows, found: Found) -> tuple[Found, bool]:
    """What was found, with modes that π_w hardly visits among the lost ones, and no others; and
    whether there is one that it never visits.

    A mode that π_w has in a thousandth of its mass is as good as lost where π has a tenth there:
    no draw of a few thousand comes to it, and those elsewhere look perfect. One that Newton's
    method did not meet from where π_w lies (steps, plateaus) is none where π_w has its share. So
    of every mode the shares p_k ∝ π_w(θ_k) |Σ_k|^½ and q_k ∝ p_k e^{r(θ_k)} are compared. Cost:
    one pass of as many potentials a row as there are modes, and fits on all rows of those that
    π_w has in vain.
    """
    modes = [*found.ours, *found.lost]
    if len(modes) < 2:
        return found, bool(found.lost)
    model, places = coreset.model, np.array([mode.fit.mean for mode in modes])
    with np.errstate(all="ignore"):
        ours = Posterior.of(coreset).finite_log_density(places)
    full = log_posterior(rows.ask, model, places)
    volumes = np.array([log_volume(mode.fit) for mode in modes])
    have, want = (shares_of_logs(heights + volumes) for heights in (ours, full))
    sparse = (want > NEGLIGIBLE) & (have * MOST_SPARSE < want)
    kept = [mode for mode, gone in zip(modes, sparse.tolist(), strict=True) if not gone]
    lost: list[Mode] = []
    for place in np.flatnonzero(sparse).tolist():
        mode: Mode | None = modes[place]
        if place < len(found.ours):
            # Where π has it may be some deviations off.
            mode = full_mode(model, rows, modes[place].fit.mean)
        lost.extend([] if mode is None else [mode])
    never = bool(np.any(sparse & (have * NEVER < want)))
    return found._replace(ours=kept or found.ours, lost=distinct_modes(lost)), never


def full_modes(coreset: Coreset, rows: Rows, found: Found) -> list[Mode]:
    """The modes of π: those that π_w has too, and those that it lacks; the heaviest first."""
    starts = [mode.fit.mean for mode in found.ours[:MOST_FULL_FITS]]
    ours = [full_mode(coreset.model, rows, start) for start in starts]
    return distinct_modes([*(mode for mode in ours if mode is not None), *found.lost])
