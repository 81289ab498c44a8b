"""Modes of the posterior of all rows that the coreset's lacks, so that no move on it comes there.

The search is that of `certify`. Where it cannot see, which is in many dimensions, this is said.
"""

from __future__ import annotations

import warnings
from typing import Self

from corebayes.certify.search import Found, full_mode, search
from corebayes.coreset import Coreset
from corebayes.models.structure import is_structured
from corebayes.rows import Rows
from corebayes.samplers.mode_search import Mode, distinct_modes
from corebayes.types import Rng

# Modes of π_w from which those of π are climbed to.
MOST_FULL_FITS = 4


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
    if model.log_concave or is_structured(model):
        return None
    found = search(rng, coreset, rows)
    if found.annealed is None:
        warnings.warn(
            f"modes of this model of {model.dim} parameters, which is not known to be log-concave, "
            "were looked for from a few places only: draws are of those that the coreset has",
            UserWarning,
            stacklevel=5,
        )
    return found


def full_modes(coreset: Coreset, rows: Rows, found: Found) -> list[Mode]:
    """The modes of π: those that π_w has too, and those that it lacks; the heaviest first."""
    starts = [mode.fit.mean for mode in found.ours[:MOST_FULL_FITS]]
    ours = [full_mode(coreset.model, rows, start) for start in starts]
    return distinct_modes([*(mode for mode in ours if mode is not None), *found.lost])
