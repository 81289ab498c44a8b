"""Each claim of the paper beside what was measured here, and whether it holds.

A claim is a comparison of medians over the trials. Where the paper's words leave open how much
counts ("orders of magnitude", "comparable", "appreciably"), the number used is part of the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from corebayes.experiments.catalogue import NAMES
from corebayes.experiments.measure import Quartiles, Results

Curves = dict[str, Quartiles]
# Statement, what was measured, whether it holds.
Found = tuple[str, str, bool]
# "Continually improve": KL at M is at most this share of that at M/2; above the other, it stalls.
IMPROVES, STALLS = 0.5, 0.2


class Claim(NamedTuple):
    """A sentence of the paper (its section) or ours, what was measured, and the verdict."""

    source: str
    data: str
    statement: str
    measured: str
    holds: bool

    @property
    def verdict(self) -> str:
        return "holds" if self.holds else "does not hold"


def all_claims(results: Results) -> list[Claim]:
    """Every claim on the experiments that were run."""
    sections = {"gaussian": ("4.1", _gaussian), "rbf": ("4.2", _rbf)}
    claims: list[Claim] = []
    for experiment in results.experiments():
        source, find = sections.get(experiment, ("4.3", _regression))
        for data in results.sets(experiment):
            curves = results.curves(experiment, data)
            claims += [Claim(source, data, *found) for found in find(curves)]
            claims.append(Claim("ours", data, *_default_is_lowest(curves)))
    return claims


def _gaussian(curves: Curves) -> Iterator[Found]:
    ours, giga = curves["SparseVI"], curves["GIGA"]
    half, last = _half_and_last(ours)
    yield (
        "SparseVI continually improves the approximation (KL at least halves from "
        f"M = {half} to {last}).",
        _from_to("SparseVI", curves, half, last),
        ours.at(last) <= IMPROVES * ours.at(half),
    )
    yield (
        "A fixed tangent plane fundamentally limits past algorithms: GIGA stalls even when given "
        f"the exact posterior (KL falls to no less than a fifth from M = {half} to {last}).",
        _from_to("GIGA", curves, half, last),
        giga.at(last) >= STALLS * giga.at(half),
    )
    others = ("GIGA", "GIGA, realistic", "Uniform")
    yield (
        f"Orders of magnitude below all past methods (100 times or more, M = {last}).",
        f"SparseVI {ours.last:.2g}; {', '.join(_last(label, curves) for label in others)}",
        ours.last <= 0.01 * min(curves[label].last for label in others),
    )


def _rbf(curves: Curves) -> Iterator[Found]:
    ours, giga = curves["SparseVI"], curves["GIGA"]
    half, last = _half_and_last(ours)
    early = [int(size) for size in ours.sizes if 10 <= size <= half]
    ratios = {size: ours.at(size) / giga.at(size) for size in early}
    worst = max(early, key=lambda size: ratios[size])
    yield (
        "Of comparable quality to Hilbert coresets given the exact posterior, up to a size of "
        f"about {half} (at most 10 times the KL of GIGA (optimal), M = {early[0]} to {half}).",
        f"largest ratio {ratios[worst]:.2g}, at M = {worst}",
        ours.at(worst) <= 10.0 * giga.at(worst),
    )
    yield (
        "Beyond that, past methods become limited: SparseVI is below GIGA (optimal) at M = "
        f"{last}.",
        f"{_last('SparseVI', curves)}; {_last('GIGA', curves)}",
        ours.last < giga.last,
    )
    yield (
        f"The proposed method continues to improve beyond that (KL at least halves from M = {half} "
        f"to {last}).",
        _from_to("SparseVI", curves, half, last),
        ours.at(last) <= IMPROVES * ours.at(half),
    )
    yield (
        f"Uniform subsampling outperforms GIGA with a realistic choice of π̂ (M = {last}).",
        f"{_last('Uniform', curves)}; {_last('GIGA, realistic', curves)}",
        curves["Uniform"].last < curves["GIGA, realistic"].last,
    )


def _regression(curves: Curves) -> Iterator[Found]:
    ours, giga = curves["SparseVI"], curves["GIGA"]
    last, prior = int(ours.sizes[-1]), ours.at(0)
    yield (
        f"SparseVI is as low or lower than GIGA (optimal) at M = {last}.",
        f"{_last('SparseVI', curves)}; {_last('GIGA', curves)}",
        ours.last <= giga.last,
    )
    yield (
        f"SparseVI is lower than GIGA (realistic) at M = {last}.",
        f"{_last('SparseVI', curves)}; {_last('GIGA, realistic', curves)}",
        ours.last < curves["GIGA, realistic"].last,
    )
    rivals = {label: curves[label].last / prior for label in ("GIGA, realistic", "Uniform")}
    listed = ", ".join(f"{NAMES[label]} {share:.2g}" for label, share in rivals.items())
    yield (
        "Apart from GIGA (optimal), SparseVI is the only practical method that reduces KL "
        f"appreciably (below 1 % of the prior's at M = {last}, the others not).",
        f"SparseVI {ours.last / prior:.2g} of the prior's; {listed}",
        ours.last / prior < 0.01 <= min(rivals.values()),
    )
    slower = float(ours.seconds[-1] / giga.seconds[-1])
    yield (
        f"SparseVI is significantly slower than GIGA (10 times or more, M = {last}).",
        f"{ours.seconds[-1]:.2g} s against {giga.seconds[-1]:.2g} s of CPU: {slower:.0f} times",
        slower >= 10.0,
    )


def _default_is_lowest(curves: Curves) -> Found:
    """Ours, at every size that a figure shows."""
    rivals = dict(curves)
    default = rivals.pop("AnnealedSparseVI")
    others = np.min([curve.median for curve in rivals.values()], axis=0)
    shown = default.sizes > 0
    lowest = (default.median <= others)[shown]
    above = [str(int(size)) for size in default.sizes[shown][~lowest]]
    where = f"; another method is lower at M = {', '.join(above)}" if above else ""
    rival = min(rivals, key=lambda label: rivals[label].last)
    return (
        f"Our default, AnnealedSparseVI, is below all others at M = {int(default.sizes[-1])}.",
        f"{default.last:.2g}, next {_last(rival, curves)}; lowest at "
        f"{lowest.sum()} of {lowest.size} sizes{where}",
        default.last < others[-1],
    )


def _half_and_last(curve: Quartiles) -> tuple[int, int]:
    """The largest M, and the measured one closest to its half."""
    last = int(curve.sizes[-1])
    return int(curve.sizes[np.argmin(np.abs(curve.sizes - last / 2))]), last


def _last(label: str, curves: Curves) -> str:
    return f"{NAMES[label]} {curves[label].last:.2g}"


def _from_to(label: str, curves: Curves, first: int, last: int) -> str:
    begin, end = curves[label].at(first), curves[label].at(last)
    return f"{NAMES[label]} {begin:.2g} at M = {first}, {end:.2g} at {last}"
