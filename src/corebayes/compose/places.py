"""How far the posterior has gone from where what stands for the old rows was made.

What a reserve misses is kept as a polynomial (`build/missed.py`), which holds within a few widths
of its place. Every step writes it anew around the posterior of its time, but of rows that are gone
it knows no more than the polynomials before it knew: months that go one way for long end where the
first of them says nothing, however short the steps. So earlier places are remembered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from corebayes.certify.steps import PLACES
from corebayes.coreset import Coreset
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.posterior import Posterior
from corebayes.types import Gaussian

# Those that are furthest away.
MOST_PLACES = 8


class Away(NamedTuple):
    furthest: float | None
    """Widths, as a root mean square over the parameters; None where nothing was kept."""
    stored: list[dict[str, Any]]
    """The places, for the provenance."""


def how_far(before: Sequence[Coreset], after: Coreset) -> Away:
    """From every place that the coresets before have, to the posterior of what came of them."""
    dim = after.model.dim
    places = [place for coreset in before for place in _places_of(coreset, dim)]
    there = Laplace().try_fit(Posterior.of(after)) if places else None
    if there is None:
        return Away(None, [])
    far = sorted(((_widths(place, there), k) for k, place in enumerate(places)), reverse=True)
    kept = [places[k] for _, k in far[:MOST_PLACES]]
    stored = [{"mean": mean.tolist(), "factor": factor.tolist()} for mean, factor in kept]
    return Away(far[0][0], stored)


def _widths(place: Gaussian, there: Gaussian) -> float:
    shift = np.linalg.solve(place.factor, there.mean - place.mean)
    return float(np.sqrt(np.mean(np.square(shift))))


def _places_of(coreset: Coreset, dim: int) -> list[Gaussian]:
    """Where its polynomial lies, and those before it, as a file may have them."""
    stored: Any = coreset.provenance.get(PLACES)
    found: list[Gaussian] = [] if coreset.missed is None else [coreset.missed.at]
    for entry in cast("list[Any]", stored) if isinstance(stored, list) else ():
        if not isinstance(entry, Mapping):
            continue
        known = cast(Mapping[str, Any], entry)
        mean, factor = (np.asarray(known.get(name), dtype=np.float64) for name in Gaussian._fields)
        if mean.shape != (dim,) or factor.shape != (dim, dim):
            continue
        if (
            np.all(np.isfinite(mean))
            and np.all(np.diag(factor) > 0.0)
            and np.isfinite(factor).all()
        ):
            found.append(Gaussian(mean, np.tril(factor)))
    return found
