"""Each claim of the paper beside what was measured here, and whether it holds.

A claim is a comparison of medians over the trials. Where the paper's words leave open how much
counts ("orders of magnitude", "comparable", "appreciably"), the number used is part of the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from corebayes.experiments.experiment import NAMES
from corebayes.experiments.results import Curve, Results

Curves = dict[str, Curve]
# "Continually improve": KL at M is at most this share of that at M/2; above the other, it stalls.
IMPROVES, STALLS = 0.5, 0.2


class Claim(NamedTuple):
    """A sentence of the paper (or ours), what was measured, and the verdict."""

    source: str
    """Section of the paper, or "ours"."""
    data: str
    statement: str
    measured: str
    holds: bool

    @property
    def verdict(self) -> str:
        return "holds" if self.holds else "does not hold"


def all_claims(results: Results) -> list[Claim]:
    """Every claim on the experiments that were run."""
    claims: list[Claim] = []
    for experiment in results.experiments():
        for data in results.sets(experiment):
            curves = results.curves(experiment, data)
            if experiment == "gaussian":
                claims += _gaussian(curves)
            elif experiment == "rbf":
                claims += _rbf(data, curves)
            else:
                claims += _regression(data, curves)
            claims.append(_default_is_lowest(data, curves))
    return claims


def _gaussian(curves: Curves) -> Iterator[Claim]:
    ours, giga = curves["SparseVI"], curves["GIGA"]
    half, last = _half_and_last(ours)
    yield Claim(
        "4.1",
        "gaussian",
        "SparseVI continually improves the approximation (KL at least halves from "
        f"M = {half} to {last}).",
        _from_to("SparseVI", ours, half, last),
        ours.at(last) <= IMPROVES * ours.at(half),
    )
    yield Claim(
        "4.1",
        "gaussian",
        "A fixed tangent plane fundamentally limits past algorithms: GIGA stalls even when given "
        "the "
        f"exact posterior (KL falls to no less than a fifth from M = {half} to {last}).",
        _from_to("GIGA", giga, half, last),
        giga.at(last) >= STALLS * giga.at(half),
    )
    others = {label: curves[label].last for label in ("GIGA", "GIGA, realistic", "Uniform")}
    yield Claim(
        "4.1",
        "gaussian",
        f"Orders of magnitude below all past methods (100 times or more, M = {last}).",
        f"SparseVI {ours.last:.2g}; {_list(others)}",
        ours.last <= 0.01 * min(others.values()),
    )


def _rbf(data: str, curves: Curves) -> Iterator[Claim]:
    ours, giga = curves["SparseVI"], curves["GIGA"]
    half, last = _half_and_last(ours)
    early = [int(size) for size in ours.sizes if 10 <= size <= half]
    worst = max(early, key=lambda size: ours.at(size) / giga.at(size))
    yield Claim(
        "4.2",
        data,
        "Of comparable quality to Hilbert coresets given the exact posterior, up to a size of "
        "about "
        f"{half} (at most 10 times the KL of GIGA (optimal), M = {early[0]} to {half}).",
        f"largest ratio {ours.at(worst) / giga.at(worst):.2g}, at M = {worst}",
        ours.at(worst) <= 10.0 * giga.at(worst),
    )
    yield Claim(
        "4.2",
        data,
        "Beyond that, past methods become limited: SparseVI is below GIGA (optimal) at M = "
        f"{last}.",
        f"SparseVI {ours.last:.2g}; {NAMES['GIGA']} {giga.last:.2g}",
        ours.last < giga.last,
    )
    yield Claim(
        "4.2",
        data,
        f"The proposed method continues to improve beyond that (KL at least halves from M = {half} "
        f"to {last}).",
        _from_to("SparseVI", ours, half, last),
        ours.at(last) <= IMPROVES * ours.at(half),
    )
    realistic, uniform = curves["GIGA, realistic"], curves["Uniform"]
    yield Claim(
        "4.2",
        data,
        f"Uniform subsampling outperforms GIGA with a realistic choice of π̂ (M = {last}).",
        f"Uniform {uniform.last:.2g}; {NAMES['GIGA, realistic']} {realistic.last:.2g}",
        uniform.last < realistic.last,
    )


def _regression(data: str, curves: Curves) -> Iterator[Claim]:
    ours, giga = curves["SparseVI"], curves["GIGA"]
    realistic, uniform = curves["GIGA, realistic"], curves["Uniform"]
    last, prior = int(ours.sizes[-1]), ours.at(0)
    yield Claim(
        "4.3",
        data,
        f"SparseVI is as low or lower than GIGA (optimal) at M = {last}.",
        f"SparseVI {ours.last:.2g}; {NAMES['GIGA']} {giga.last:.2g}",
        ours.last <= giga.last,
    )
    yield Claim(
        "4.3",
        data,
        f"SparseVI is lower than GIGA (realistic) at M = {last}.",
        f"SparseVI {ours.last:.2g}; {NAMES['GIGA, realistic']} {realistic.last:.2g}",
        ours.last < realistic.last,
    )
    rivals = {"GIGA, realistic": realistic.last / prior, "Uniform": uniform.last / prior}
    yield Claim(
        "4.3",
        data,
        "Apart from GIGA (optimal), SparseVI is the only practical method that reduces KL "
        f"appreciably (below 1 % of the prior's at M = {last}, the others not).",
        f"SparseVI {ours.last / prior:.2g} of the prior's; {_list(rivals)}",
        ours.last / prior < 0.01 <= min(rivals.values()),
    )
    slower = ours.seconds[-1] / giga.seconds[-1]
    yield Claim(
        "4.3",
        data,
        f"SparseVI is significantly slower than GIGA (10 times or more, M = {last}).",
        f"{ours.seconds[-1]:.2g} s against {giga.seconds[-1]:.2g} s of CPU: {slower:.0f} times",
        bool(slower >= 10.0),
    )


def _default_is_lowest(data: str, curves: Curves) -> Claim:
    """Ours, at every size that a figure shows."""
    default = curves["AnnealedSparseVI"]
    rivals = {label: curve for label, curve in curves.items() if label != "AnnealedSparseVI"}
    others = np.min([curve.median for curve in rivals.values()], axis=0)
    shown = default.sizes > 0
    lowest = (default.median <= others)[shown]
    above = [int(size) for size in default.sizes[shown][~lowest]]
    last = int(default.sizes[-1])
    where = f"; another method is lower at M = {', '.join(map(str, above))}" if above else ""
    rival = min(rivals, key=lambda label: rivals[label].last)
    return Claim(
        "ours",
        data,
        f"Our default, AnnealedSparseVI, is below all others at M = {last}.",
        f"{default.last:.2g}, next {NAMES[rival]} {curves[rival].last:.2g}; lowest at "
        f"{lowest.sum()} of {lowest.size} sizes{where}",
        default.last < others[-1],
    )


def _half_and_last(curve: Curve) -> tuple[int, int]:
    """The largest M, and the measured one closest to its half."""
    last = int(curve.sizes[-1])
    return int(curve.sizes[np.argmin(np.abs(curve.sizes - last / 2))]), last


def _from_to(label: str, curve: Curve, first: int, last: int) -> str:
    return f"{NAMES[label]} {curve.at(first):.2g} at M = {first}, {curve.at(last):.2g} at {last}"


def _list(values: dict[str, float]) -> str:
    return ", ".join(f"{NAMES[label]} {value:.2g}" for label, value in values.items())
