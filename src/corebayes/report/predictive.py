"""The section of a report that holds the data against data as the model would make them."""

from __future__ import annotations

import numpy as np

from corebayes.predict.check import Check
from corebayes.predict.picture import Bins
from corebayes.report import svg
from corebayes.report.html import Markup, element, figure, section, table
from corebayes.report.svg import number, spanning

SIZE = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 410, 28, 252


def predictive(check: Check | None) -> Markup:
    """Statistics of the rows beside those of replicates, and a picture of the targets."""
    if check is None:
        return Markup("")
    header = ["statistic", "data", "replicated", "5 %", "95 %", "p"]
    rows = [
        [one.name, *(number(value) for value in one[1:5]), f"{one.p:.3f}"]
        for one in check.statistics
    ]
    caption = f"All rows, and {check.num_draws:,} data sets as the model would make them"
    words = (
        f"{check.verdict} p is the share of replicated data sets in which a statistic is larger; "
        "near 0 or 1 the model makes other data than these."
    )
    listed = table(caption, header, rows)
    if len(check.edges) < 3:
        # Of two labels the table says all.
        return section("check", "Does the model fit the data", element("p", words), listed)
    bins = check.bins
    told = (
        f"{'Square roots of the shares' if bins.roots else 'Shares'} of rows by "
        f"{check.target_name}: the data as dots, the middle 90 % of the replicated data sets as "
        "bars. What lies beyond the axis is in its first and last bins."
    )
    drawing = figure(predictive_figure(check, bins), told)
    return section("check", "Does the model fit the data", element("p", words), drawing, listed)


def predictive_figure(check: Check, bins: Bins) -> str:
    """The share of rows in each bin."""
    places, data, low, high, roots = bins
    x = spanning(places, start=LEFT, stop=RIGHT)
    top = 1.05 * max(float(data.max()), float(high.max()))
    y = svg.Scale(low=0.0, high=top, start=BOTTOM, stop=TOP)
    label = "√ share of rows" if roots else "share of rows"
    marks = svg.vertical_axis(y, LEFT, RIGHT, label)
    across = x(places)
    bars = "".join(
        svg.line(np.array([place, place]), y(np.array([a, max(b, a + 0.004 * top)])), "line a")
        for place, a, b in zip(across, low, high, strict=True)
    )
    width = max(2.0, min(14.0, 0.6 * (RIGHT - LEFT) / len(places)))
    marks.append(f'<g stroke-width="{width:.1f}" class="bars">{bars}</g>')
    marks.append(svg.dots(across, y(data), 2.6, "dots b"))
    marks += svg.horizontal_axis(x, BOTTOM, check.target_name)
    words = (
        f"Of {len(places)} bins the data are outside of the replicated 90 % in {bins.num_outside}."
    )
    title = f"{check.target_name}: the data and replicates of them"
    return svg.picture("check", SIZE, title, words, marks)
