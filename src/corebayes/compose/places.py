"""How far the posterior has gone from where the errors of earlier steps are known.

The error r_i of a step was measured at the posterior of its time, N(μ_i, Σ_i), or is known as far
as its reserve was matched, at draws κ times as wide (`build/wide_draws.py`) or by a polynomial of
what it misses (`build/missed.py`). Later rows move the posterior to N(μ, Σ), by
δ = Σ_i^{−1/2} (μ − μ_i) widths, and narrow it, to no more than b times those in any direction. Seen
from there, the part of degree l of r_i has parts of lower degrees j:
He_l(z + δ) = Σ_j C(l, j) δ^{l−j} He_j(z). So KL, which is ½ Var r_i to second order, has become no
more than

    ‖T‖² times as much,    T_jl = b^j C(l, j) ‖δ‖^{l−j} √(j! / l!),    1 ≤ j ≤ l ≤ k

the largest singular value of T, squared, where r_i is of degree k: two of conjugate models, three
of others, whose quadratics are matched. That is the worst case: rows like the old, which bring
‖δ‖² ≈ (1 − b²) d, make it a few times or a few dozen. Degrees beyond that are not known. Since ‖δ‖
of rows alike is at most √d or so, it is far when it is above √d + 3 and 2 √d, and then nothing is
said of models that are not conjugate.

Every step writes its reserve anew around the posterior of its time, but of rows that are gone it
knows no more than was known before: months that go one way for long end where the first of them
says nothing, however short the steps. So places are kept. Of mixed models it is the parameters that
all groups share whose place is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb, factorial
from typing import Any, NamedTuple, cast

import numpy as np

from corebayes.build.missed import posterior_fit
from corebayes.build.wide_draws import KEPT_WIDTH, WIDTHS, is_seen_at_draws
from corebayes.certify.steps import PLACES
from corebayes.coreset import Coreset
from corebayes.models.structure import is_hierarchical, is_structured
from corebayes.samplers.exact import is_conjugate
from corebayes.tangent.arrow.geometry import closest_arrow
from corebayes.types import Array, Gaussian, WeightedPoints

# Widths beyond those that rows alike would bring, as norms, and in times of them.
FAR, FAR_TIMES = 3.0, 2.0
# Places that are kept, those that are furthest away, and about how many numbers.
MOST_PLACES, MOST_NUMBERS = 8, 20_000


class Away(NamedTuple):
    """Where the posterior lies, seen from the places before."""

    furthest: float | None = None
    """Widths, as a root mean square over the parameters; None where that is not known."""
    growth: float | None = None
    """By how much errors there may have grown here."""
    is_far: bool = False
    """Whether that may say little."""
    stored: Sequence[dict[str, Any]] = ()
    """The places, for the provenance."""


def how_far(before: Sequence[Coreset], after: Coreset, points: WeightedPoints) -> Away:
    """From every place that the coresets before have, to the posterior of the `points` that came of
    them: the more of them the better, as few rows may have modes of their own."""
    there = place_of(after, points)
    places = [place for coreset in before for place in _places_of(coreset)]
    if there is None or any(
        place is None or place.mean.size != there.mean.size for place in places
    ):
        return Away()
    known = sorted(
        (cast(Gaussian, place) for place in places), key=lambda one: -_widths(one, there)
    )
    dim, conjugate = there.mean.size, is_conjugate(after.model)
    most = int(np.clip(MOST_NUMBERS // max(dim**2, 1), 1, MOST_PLACES))
    distance = _widths(known[0], there)
    return Away(
        distance / float(np.sqrt(dim)),
        max(1.0, *(_growth(place, there, 2 if conjugate else 3) for place in known)),
        bool(distance > max(np.sqrt(dim) + FAR, FAR_TIMES * np.sqrt(dim))) and not conjugate,
        [{"mean": one.mean.tolist(), "factor": one.factor.tolist()} for one in known[:most]],
    )


def place_of(coreset: Coreset, points: WeightedPoints) -> Gaussian | None:
    """Where the posterior of these points of a coreset lies; None where no Gaussian is like it."""
    model = coreset.model
    if not (is_structured(model) and is_hierarchical(model)):
        return posterior_fit(model, points)
    try:
        gaussian = closest_arrow(model, points)
        shared = np.concatenate([model.structure.shared, model.structure.scales])
        chosen = np.isin(gaussian.layout.wide_positions, shared)
        root = gaussian.factor[chosen]
        factor = np.asarray(np.linalg.cholesky(root @ root.T), dtype=np.float64)
    except (FloatingPointError, np.linalg.LinAlgError):
        return None
    return Gaussian(gaussian.wide_mean[chosen], factor)


def _shift(place: Gaussian, there: Gaussian) -> Array:
    return np.asarray(np.linalg.solve(place.factor, there.mean - place.mean), dtype=np.float64)


def _widths(place: Gaussian, there: Gaussian) -> float:
    return float(np.linalg.norm(_shift(place, there)))


def _growth(place: Gaussian, there: Gaussian, degree: int) -> float:
    """‖T‖²; see the file."""
    distance = _widths(place, there)
    width = float(np.linalg.norm(np.linalg.solve(place.factor, there.factor), 2))
    matrix = np.zeros((degree, degree))
    for upper in range(1, degree + 1):
        for lower in range(1, upper + 1):
            share = comb(upper, lower) * np.sqrt(factorial(lower) / factorial(upper))
            matrix[lower - 1, upper - 1] = width**lower * share * distance ** (upper - lower)
    return float(np.linalg.norm(matrix, 2)) ** 2


def _places_of(coreset: Coreset) -> list[Gaussian | None]:
    """Where its own error is known, and those before it, as a file may have them."""
    found = [_own_place(coreset)]
    stored: Any = coreset.provenance.get(PLACES)
    for entry in cast("list[Any]", stored) if isinstance(stored, list) else ():
        if not isinstance(entry, Mapping):
            continue
        known = cast(Mapping[str, Any], entry)
        mean, factor = (np.asarray(known.get(name), dtype=np.float64) for name in Gaussian._fields)
        if mean.ndim != 1 or factor.shape != (mean.size, mean.size):
            continue
        if np.all(np.isfinite(mean)) and np.isfinite(factor).all() and np.diag(factor).min() > 0.0:
            found.append(Gaussian(mean, np.tril(factor)))
    return found


def _own_place(coreset: Coreset) -> Gaussian | None:
    """As wide as what stands for its rows was matched."""
    if coreset.reserve is not None and coreset.missed is not None:
        return coreset.missed.at
    place = place_of(coreset, coreset.finest.points)
    if place is None or coreset.reserve is None or not is_seen_at_draws(coreset.model):
        return place
    # Files from before it was noted have the widest.
    width = coreset.provenance.get(KEPT_WIDTH)
    known = width if isinstance(width, float) and width in WIDTHS else WIDTHS[0]
    return place._replace(factor=known * place.factor)
