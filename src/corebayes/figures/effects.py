"""The effects of groups with their intervals, from two posteriors side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corebayes.figures.plots import BLUE, ORANGE
from corebayes.types import Array

# The ends of an interval of 90 %, and its middle.
ENDS = (0.05, 0.5, 0.95)


def draw_effects(
    axis: Any, labels: Sequence[str], first: Array, second: Array, names: tuple[str, str]
) -> None:
    """Every group's interval of 90 % and median from draws (S, G) of two posteriors, the groups in
    the order of the second's medians."""
    middles = np.median(second, axis=0)
    order = np.argsort(middles)
    handles: list[Any] = []
    for draws, color, shift in ((first, BLUE, -0.17), (second, ORANGE, 0.17)):
        low, middle, high = np.quantile(draws[:, order], ENDS, axis=0)
        places = np.arange(order.size) + shift
        handles.append(axis.vlines(places, low, high, color=color, lw=1.6))
        axis.plot(places, middle, "o", color=color, ms=2.6)
    axis.axhline(0.0, color="#BBBBBB", lw=0.8, zorder=0)
    axis.set_xticks(np.arange(order.size), [labels[k] for k in order], rotation=90, fontsize=7)
    axis.set_xlim(-1.0, order.size)
    axis.set_ylabel("effect, 90 % interval")
    axis.legend(handles, names, loc="upper left", fontsize=9)
