"""The drawings of a report."""

from __future__ import annotations

import numpy as np

from corebayes.plots import smooth_density
from corebayes.report import svg
from corebayes.report.cost import duration
from corebayes.report.curves import Curve
from corebayes.report.draws import Parameter
from corebayes.report.findings import Sizes
from corebayes.report.landscape import Landscape
from corebayes.report.scale import Scale, spanning
from corebayes.types import Array, Coreset, Estimate

WIDTH, HEIGHT = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 410, 28, 252
LARGEST_DISC = 13.0


def kl_figure(sizes: Sizes, certified: Estimate | None, coreset: Coreset) -> str:
    """KL against the number of rows, on logarithmic axes."""
    shown = [kl for curve in (sizes.ours, sizes.uniform) for kl in curve.kls]
    finite = [kl for kl in shown if 0.0 < kl < np.inf]
    if certified is not None and certified.value > 0.0:
        finite.append(certified.value)
    rows = [*sizes.ours.sizes, *sizes.uniform.sizes, coreset.size]
    x = spanning(rows, start=LEFT, stop=RIGHT - 8, log=True, margin=0.03)
    y = spanning(finite or [1.0], start=BOTTOM, stop=TOP, log=True)
    marks = svg.vertical_axis(y, LEFT, RIGHT, "KL from the full posterior (nats)")
    marks += svg.horizontal_axis(x, BOTTOM, "rows kept")
    for curve, css in ((sizes.uniform, "b"), (sizes.ours, "a")):
        marks += _curve(curve, x, y, css)
    if sizes.uniform.sizes:
        marks.append(_label(sizes.uniform, x, y, "uniform subsample", "b"))
    marks.append(_label(sizes.ours, x, y, "coreset", "a"))
    if certified is not None and certified.value > 0.0:
        marks += _certified(certified, float(x(coreset.size)), y)
    best = min(sizes.ours.kls)
    return svg.picture(
        WIDTH,
        HEIGHT,
        marks,
        name="kl",
        title="KL divergence against the number of rows kept",
        description=f"From {max(sizes.ours.kls):.3g} nats at {sizes.ours.sizes[0]} rows to "
        f"{best:.3g} at {sizes.ours.sizes[-1]}.",
    )


def _curve(curve: Curve, x: Scale, y: Scale, css: str) -> list[str]:
    marks: list[str] = []
    points = [(m, kl) for m, kl in zip(*curve, strict=True) if 0.0 < kl < np.inf]
    if points:
        places, heights = (np.array(values, float) for values in zip(*points, strict=True))
        marks.append(svg.line(x(places), y(heights), f"line {css}"))
        marks.append(svg.dots(x(places), y(heights), 3.0, f"dots {css}"))
    for size, kl in zip(*curve, strict=True):
        # An infinite KL is shown, not left out: an arrow above everything else.
        if kl == np.inf:
            marks.append(svg.triangle(float(x(size)), TOP, f"disc {css}"))
    return marks


def _label(curve: Curve, x: Scale, y: Scale, words: str, css: str) -> str:
    """The curve's name, on the side of its middle where there is room."""
    points = [(m, kl) for m, kl in zip(*curve, strict=True) if 0.0 < kl < np.inf]
    if not points:
        return ""
    size, kl = points[len(points) // 2]
    place, height = float(x(size)), float(y(kl))
    if css == "b" and place < (LEFT + RIGHT) / 2:
        return svg.text(place + 10, height - 12, words, css="b")
    if css == "b":
        return svg.text(place + 6, height - 14, words, css="b", anchor="middle")
    left = place < LEFT + 70
    return svg.text(
        place + (8 if left else -8), height + 18, words, css="a", anchor="start" if left else "end"
    )


def _certified(kl: Estimate, x: float, y: Scale) -> list[str]:
    error = 2.0 * kl.standard_error
    ends = (max(kl.value - error, y.low), min(kl.value + error, y.high))
    height = float(y(kl.value))
    return [
        svg.segment((x, x), (float(y(ends[0])), float(y(ends[1]))), "line ink"),
        svg.circle(x, height, 4.5, "disc ink", "certified"),
        svg.text(x + 8, height + 4, "certified", css="ink")
        if x < RIGHT - 80
        else svg.text(x - 9, height - 7, "certified", css="ink", anchor="end"),
    ]


def marginal_figure(parameter: Parameter, shares: Array | None, place: int) -> str:
    """One parameter: its coreset posterior as a line, the corrected one filled."""
    width, height, base = 200, 132, 100
    values = parameter.values
    low, high = np.quantile(values, [0.001, 0.999])
    scale = spanning([low, high], start=22.0, stop=width - 22.0, margin=0.15)
    grid = np.linspace(scale.low, scale.high, 90)
    if np.ptp(values) == 0.0:
        marks = [svg.segment((width / 2, width / 2), (26.0, float(base)), "line a")]
    else:
        ours = smooth_density(values, grid)
        theirs = None if shares is None else smooth_density(values, grid, shares)
        top = max(ours.max(), 0.0 if theirs is None else theirs.max())
        upright = Scale(low=0.0, high=float(top), start=base, stop=26.0)
        marks = [] if theirs is None else [svg.area(scale(grid), upright(theirs), base, "fill")]
        marks.append(svg.line(scale(grid), upright(ours), "line a"))
    summary = parameter.summary
    description = f"Coreset posterior: mean {summary['mean']:.4g}, sd {summary['sd']:.3g}."
    if parameter.corrected_mean is not None:
        description += (
            f" Corrected to all rows: mean {parameter.corrected_mean:.4g}, "
            f"sd {parameter.corrected_sd:.3g}."
        )
    marks += svg.horizontal_axis(scale, base, most=4)
    marks.append(svg.text(width / 2, 14, _short(parameter.name), css="name", anchor="middle"))
    return svg.picture(
        width,
        height,
        marks,
        name=f"marginal{place}",
        title=f"Posterior of {parameter.name}",
        description=description,
    )


def weights_figure(coreset: Coreset) -> str:
    """All weights, largest first."""
    weights = np.sort(coreset.weights)[::-1]
    x = Scale(low=0.5, high=weights.size + 0.5, start=LEFT, stop=RIGHT)
    y = Scale(low=0.0, high=1.04 * float(weights[0]) or 1.0, start=BOTTOM, stop=TOP)
    marks = svg.vertical_axis(y, LEFT, RIGHT, "weight")
    width = max(0.6, min(14.0, 0.7 * (RIGHT - LEFT) / weights.size))
    bars = svg.stems(x(np.arange(1, weights.size + 1)), y(weights), BOTTOM, "line a")
    marks.append(f'<g stroke-width="{width:.1f}" class="bars">{bars}</g>')
    marks += svg.horizontal_axis(x, BOTTOM, "rows of the coreset, largest weight first")
    return svg.picture(
        WIDTH,
        HEIGHT,
        marks,
        name="weights",
        title="Weights of the coreset's rows",
        description=f"{weights.size} weights from {weights[0]:.4g} to {weights[-1]:.4g}.",
    )


def landscape_figure(landscape: Landscape, coreset: Coreset) -> str:
    """Some rows as small dots, the chosen ones as discs whose area is their weight."""
    both = np.vstack([landscape.some, landscape.chosen])
    x = spanning(both[:, 0], start=LEFT, stop=RIGHT)
    y = spanning(both[:, 1], start=BOTTOM, stop=TOP)
    marks = svg.vertical_axis(y, LEFT, RIGHT, landscape.axes[1])
    marks += svg.horizontal_axis(x, BOTTOM, landscape.axes[0])
    marks.append(svg.dots(x(landscape.some[:, 0]), y(landscape.some[:, 1]), 1.2, "dots cloud"))
    largest = float(coreset.weights.max(initial=0.0)) or 1.0
    # The area is the weight; a row of hardly any is still to be seen.
    radii = np.maximum(LARGEST_DISC * np.sqrt(coreset.weights / largest), 1.5)
    for k in np.argsort(-radii):
        words = f"row {coreset.indices[k]}, weight {coreset.weights[k]:.4g}"
        place, height = x(landscape.chosen[k, 0]), y(landscape.chosen[k, 1])
        marks.append(svg.circle(float(place), float(height), float(radii[k]), "chosen", words))
    return svg.picture(
        WIDTH,
        HEIGHT,
        marks,
        name="landscape",
        title="Where the chosen rows lie among all rows",
        description=f"{len(landscape.some):,} rows of the data as dots and the {coreset.size} "
        "rows of the coreset as discs whose area is their weight.",
    )


def cost_figure(bars: list[tuple[str, float, str]]) -> str:
    """Seconds of each step as bars on a logarithmic axis."""
    height = 34 * len(bars) + 40
    x = spanning([seconds for _, seconds, _ in bars], start=10.0, stop=RIGHT, log=True)
    # Bars begin at a decade below the shortest, since a logarithm has no zero.
    x = Scale(low=x.low / 3.0, high=x.high, start=10.0, stop=RIGHT, log=True)
    marks: list[str] = []
    for k, (words, seconds, css) in enumerate(bars):
        top, stop = 34.0 * k + 18.0, float(x(seconds))
        marks.append(svg.text(10, top - 4, f"{words}: {duration(seconds)}"))
        marks.append(
            f'<rect class="disc {css}" x="10" y="{top:.1f}" width="{stop - 10:.1f}" height="9"/>'
        )
    marks += svg.horizontal_axis(x, 34.0 * len(bars) + 8.0)
    return svg.picture(
        WIDTH,
        height,
        marks,
        name="cost",
        title="Seconds of each step, on a logarithmic axis",
        description="; ".join(f"{words} {duration(seconds)}" for words, seconds, _ in bars) + ".",
    )


def _short(name: str) -> str:
    return name if len(name) <= 26 else name[:12] + "…" + name[-13:]
