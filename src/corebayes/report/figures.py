"""The drawings of a report."""

from __future__ import annotations

import numpy as np

from corebayes.coreset import Coreset
from corebayes.figures.plots import smooth_density
from corebayes.report import svg
from corebayes.report.cost import duration
from corebayes.report.curves import Curve
from corebayes.report.draws import DrawnParameter
from corebayes.report.findings import Sizes
from corebayes.report.landscape import Landscape
from corebayes.report.svg import AxisScale, number, spanning
from corebayes.types import Array, Estimate

SIZE = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 410, 28, 252
LARGEST_DISC = 13.0
# Characters of a name above its marginal.
LONGEST = 26


def kl_figure(sizes: Sizes, certified: Estimate | None, coreset: Coreset) -> str:
    """KL against the number of rows, on logarithmic axes."""
    if certified is not None and certified.value <= 0.0:
        certified = None
    ours, uniform = sizes.ours, sizes.uniform
    shown = [kl for kl in (*ours.kls, *uniform.kls) if 0.0 < kl < np.inf]
    shown += [] if certified is None else [certified.value]
    rows = [*ours.sizes, *uniform.sizes, coreset.size]
    x = spanning(rows, start=LEFT, stop=RIGHT - 8, log=True, margin=0.03)
    y = spanning(shown or [1.0], start=BOTTOM, stop=TOP, log=True)
    marks = svg.vertical_axis(y, LEFT, RIGHT, "KL from the full posterior (nats)")
    marks += svg.horizontal_axis(x, BOTTOM, "rows kept")
    marks += _curve(uniform, x, y, "b") + _curve(ours, x, y, "a")
    marks.append(_curve_name(uniform, x, y, "uniform subsample", "b"))
    marks.append(_curve_name(ours, x, y, "coreset", "a"))
    if certified is not None:
        marks += _certified(certified, float(x(coreset.size)), y)
    first, last = number(max(ours.kls), 3), number(min(ours.kls), 3)
    words = f"From {first} nats at {ours.sizes[0]} rows to {last} at {ours.sizes[-1]}."
    return svg.picture("kl", SIZE, "KL divergence against the number of rows kept", words, marks)


def _finite(curve: Curve) -> list[tuple[int, float]]:
    return [(size, kl) for size, kl in zip(*curve, strict=True) if 0.0 < kl < np.inf]


def _curve(curve: Curve, x: AxisScale, y: AxisScale, css: str) -> list[str]:
    marks: list[str] = []
    if points := _finite(curve):
        places, heights = np.array(points, float).T
        marks.append(svg.line(x(places), y(heights), f"line {css}"))
        marks.append(svg.dots(x(places), y(heights), 3.0, f"dots {css}"))
    # An infinite KL is shown, not left out: an arrow above everything else.
    beyond = [size for size, kl in zip(*curve, strict=True) if kl == np.inf]
    return marks + [svg.triangle(float(x(size)), TOP, f"disc {css}") for size in beyond]


def _curve_name(curve: Curve, x: AxisScale, y: AxisScale, words: str, css: str) -> str:
    """Beside a point near the curve's middle: curves fall, so there is room above on the right, and
    below on the left."""
    points = [(float(x(size)), float(y(kl))) for size, kl in _finite(curve)]
    if not points:
        return ""
    width = svg.CHARACTER * len(words) + 8
    place, height = points[len(points) // 2]
    if css == "a" and place - width > LEFT:
        return svg.text(place - 8, height + 18, words, css=css, anchor="end")
    fits = [point for point in points[: len(points) // 2 + 1] if point[0] + width <= RIGHT]
    place, height = (fits or points)[-1 if fits else 0]
    return svg.text(place + 8, height - 8, words, css=css, anchor="start")


def _certified(kl: Estimate, x: float, y: AxisScale) -> list[str]:
    error, height = 2.0 * kl.standard_error, float(y(kl.value))
    ends = np.array([max(kl.value - error, y.low), min(kl.value + error, y.high)])
    inside = x < RIGHT - 80
    place = (x + 8, height + 4) if inside else (x - 9, height - 7)
    return [
        svg.line(np.array([x, x]), y(ends), "line ink"),
        svg.circle(x, height, 4.5, "disc ink", "certified"),
        svg.text(*place, "certified", css="ink", anchor="start" if inside else "end"),
    ]


def marginal_figure(parameter: DrawnParameter, shares: Array | None, place: int) -> str:
    """One parameter: its coreset posterior as a line, the corrected one filled."""
    width, height, base = 200, 132, 100
    values = parameter.values
    exact = parameter.exact
    shown = values if exact is None else np.concatenate([values, exact])
    low, high = np.quantile(shown, [0.001, 0.999])
    scale = spanning([low, high], start=22.0, stop=width - 22.0, margin=0.15)
    grid = np.linspace(scale.low, scale.high, 90)
    if np.ptp(values) == 0.0:
        marks = [svg.line(np.full(2, width / 2), np.array([26.0, base]), "line a")]
    else:
        ours = smooth_density(values, grid)
        theirs = None if shares is None else smooth_density(values, grid, shares)
        if exact is not None and np.ptp(exact) > 0.0:
            theirs = smooth_density(exact, grid)
        top = max(ours.max(), 0.0 if theirs is None else theirs.max())
        upright = AxisScale(low=0.0, high=float(top), start=base, stop=26.0)
        marks = [] if theirs is None else [svg.area(scale(grid), upright(theirs), base, "fill")]
        marks.append(svg.line(scale(grid), upright(ours), "line a"))
    mean, sd = parameter.summary["mean"], parameter.summary["sd"]
    description = f"Coreset posterior: mean {number(mean)}, sd {number(sd, 3)}."
    if parameter.corrected is not None:
        mean, sd = parameter.corrected
        description += f" Corrected to all rows: mean {number(mean)}, sd {number(sd, 3)}."
    marks += svg.horizontal_axis(scale, base, most=4)
    name = parameter.name
    marks.append(svg.text(width / 2, 14, title_of(name), css="name", anchor="middle"))
    title = f"Posterior of {name}"
    return svg.picture(f"marginal{place}", (width, height), title, description, marks)


def title_of(name: str) -> str:
    """At most LONGEST characters: of a category its level rather than its column."""
    if len(name) <= LONGEST:
        return name
    level = name[name.find("[") :] if name.endswith("]") else name[-LONGEST // 2 :]
    level = level if len(level) < LONGEST - 4 else level[4 - LONGEST :]
    return f"{name[: LONGEST - 1 - len(level)].rstrip()}…{level}"


def weights_figure(coreset: Coreset) -> str:
    """All weights, largest first."""
    weights = np.sort(coreset.weights)[::-1]
    x = AxisScale(low=0.5, high=weights.size + 0.5, start=LEFT, stop=RIGHT)
    y = AxisScale(low=0.0, high=1.04 * float(weights[0]) or 1.0, start=BOTTOM, stop=TOP)
    width = max(0.6, min(14.0, 0.7 * (RIGHT - LEFT) / weights.size))
    bars = svg.stems(x(np.arange(1, weights.size + 1)), y(weights), BOTTOM, "line a")
    marks = svg.vertical_axis(y, LEFT, RIGHT, "weight")
    marks.append(f'<g stroke-width="{width:.1f}" class="bars">{bars}</g>')
    marks += svg.horizontal_axis(x, BOTTOM, "rows of the coreset, largest weight first")
    words = f"{weights.size} weights from {number(weights[0])} to {number(weights[-1])}."
    return svg.picture("weights", SIZE, "Weights of the coreset's rows", words, marks)


def landscape_figure(landscape: Landscape, coreset: Coreset) -> str:
    """Some rows as small dots, the chosen ones as discs whose area is their weight."""
    both = np.vstack([landscape.some, landscape.chosen])
    x = spanning(both[:, 0], start=LEFT, stop=RIGHT)
    y = spanning(both[:, 1], start=BOTTOM, stop=TOP)
    marks = svg.vertical_axis(y, LEFT, RIGHT, landscape.axes[1])
    marks += svg.horizontal_axis(x, BOTTOM, landscape.axes[0])
    marks.append(svg.dots(x(landscape.some[:, 0]), y(landscape.some[:, 1]), 1.2, "dots cloud"))
    weights = coreset.weights
    # The area is the weight; a row of hardly any is still to be seen.
    largest = float(weights.max(initial=0.0)) or 1.0
    radii = np.maximum(LARGEST_DISC * np.sqrt(weights / largest), 1.5)
    across, up = x(landscape.chosen[:, 0]), y(landscape.chosen[:, 1])
    for k in np.argsort(-radii):
        words = f"row {coreset.indices[k]}, weight {number(float(weights[k]))}"
        marks.append(svg.circle(float(across[k]), float(up[k]), float(radii[k]), "chosen", words))
    words = (
        f"{len(landscape.some):,} rows of the data as dots and the {coreset.size} rows of the "
        "coreset as discs whose area is their weight."
    )
    title = "Where the chosen rows lie among all rows"
    return svg.picture("landscape", SIZE, title, words, marks)


def cost_figure(bars: list[tuple[str, float, str]]) -> str:
    """Seconds of each step as bars on a logarithmic axis."""
    x = spanning([seconds for _, seconds, _ in bars], start=10.0, stop=RIGHT, log=True)
    # Bars begin at a decade below the shortest, since a logarithm has no zero.
    x = AxisScale(low=x.low / 3.0, high=x.high, start=10.0, stop=RIGHT, log=True)
    marks: list[str] = []
    for k, (words, seconds, css) in enumerate(bars):
        top, width = 34.0 * k + 18.0, float(x(seconds)) - 10.0
        marks.append(svg.text(10, top - 4, f"{words}: {duration(seconds)}"))
        marks.append(
            f'<rect class="disc {css}" x="10" y="{top:.1f}" width="{width:.1f}" height="9"/>'
        )
    marks += svg.horizontal_axis(x, 34.0 * len(bars) + 8.0)
    size, title = (SIZE[0], 34 * len(bars) + 40), "Seconds of each step, on a logarithmic axis"
    told = "; ".join(f"{words} {duration(seconds)}" for words, seconds, _ in bars)
    return svg.picture("cost", size, title, f"{told}.", marks)
