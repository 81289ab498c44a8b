"""The pictures of "The idea in pictures", computed with the library itself.

    python docs/pictures.py

writes docs/images/idea-*.svg; the same bytes every time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

import corebayes as cb
from corebayes.coreset import Coreset
from corebayes.figures.methods import STYLES
from corebayes.figures.plots import BLACK, BLUE, GREY, ORANGE, STYLE, draw_kl
from corebayes.problem import Problem
from corebayes.rows import open_rows
from corebayes.samplers.laplace import full_posterior
from corebayes.types import Data, Gaussian
from corebayes.weights.pursuit import orthogonal_pursuit

IMAGES = Path(__file__).parent / "images"
GREEN = STYLES["OrthogonalPursuit"].color


def main() -> None:
    save("idea-rows", (9.6, 4.3), draw_rows)
    save("idea-tangent", (9.6, 3.6), draw_tangent)
    save("idea-temperatures", (9.6, 4.1), draw_temperatures)
    save("idea-size", (6.4, 4.2), draw_size)


def save(name: str, size: tuple[float, float], draw: Callable[[Figure], None]) -> None:
    style = {**STYLE, "svg.fonttype": "none", "svg.hashsalt": name}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})
    print(f"images/{name}.svg")


def logistic_rows(num_rows: int, coefficients: list[float], seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(num_rows, len(coefficients)))
    y = rng.random(num_rows) < 1 / (1 + np.exp(-X @ coefficients))
    return X, y.astype(float)


def draw_rows(figure: Figure) -> None:
    """All rows and the few that are kept; the posteriors of all, of these, and of a subsample."""
    X, y = logistic_rows(20_000, [1.0, -0.6], seed=1)
    data, model = open_rows((X, y)), cb.LogisticRegression(prior=cb.Normal())
    coreset = cb.build(model, data, size=7, seed=0)
    uniform = cb.build(model, data, size=7, seed=3, method=cb.Uniform())
    left, right = figure.subplots(1, 2)
    some = slice(0, 4000)
    for outcome, colour in ((0.0, ORANGE), (1.0, BLUE)):
        cloud = X[some][y[some] == outcome]
        left.scatter(*cloud.T, s=3, color=colour, alpha=0.3, linewidths=0, rasterized=True)
        kept = coreset.rows.y == outcome
        area = 600 * coreset.weights[kept] / coreset.weights.max()
        left.scatter(
            *coreset.rows.X[kept].T, s=area, facecolor="none", edgecolor=colour, linewidths=1.6
        )
        left.scatter(*coreset.rows.X[kept].T, s=8, color=colour)
    left.set_title(f"{coreset.size} of {coreset.num_rows:,} rows, area = weight", fontsize=9)
    left.set_xlabel("$x_1$")
    left.set_ylabel("$x_2$")
    left.set_aspect("equal")
    full = full_posterior(model.bind(data), data)
    ellipses(right, full, fill=GREY)
    ellipses(right, fit(coreset), color=BLUE)
    ellipses(right, fit(uniform), color=ORANGE, ls="--")
    label(right, "all rows (filled)", full.mean, "#5A5A5A", (0, 36))
    label(right, "coreset (lines)", full.mean, BLUE, (0, 24))
    label(right, f"{uniform.size} rows at random", fit(uniform).mean, ORANGE, (0, -28))
    right.autoscale_view()
    right.margins(0.15)
    right.set_title("posteriors: 50 % and 95 % of the mass", fontsize=9)
    right.set_xlabel("$\\theta_1$")
    right.set_ylabel("$\\theta_2$")


def draw_tangent(figure: Figure) -> None:
    """One parameter: the tangent space of order 2 is a plane, so it can be drawn."""
    pool = np.sort(np.random.default_rng(4).choice(400, 10, replace=False))
    X, y = logistic_rows(400, [0.8], seed=5)
    data = open_rows((X, y))
    problem = Problem(cb.LogisticRegression(prior=cb.Normal(0.0, 3.0)).bind(data), data)
    rng = np.random.default_rng(0)
    # The space at a posterior of few rows: from there not all of them pull the same way.
    some = np.arange(6)
    points = problem.points(some, np.ones(some.size))
    space = cb.Hermite(order=2).space(rng, problem, points)
    rows = data.take(np.arange(data.num_rows))
    vectors = space.embed(rows)
    total = space.total(rows).element
    every = np.array(
        [
            space.combine(space.take(vectors, np.array([n])), np.ones(1))
            for n in range(data.num_rows)
        ]
    )
    left, right = figure.subplots(1, 2)
    for vector in every[:150]:
        arrow(left, np.zeros(2), vector, color="#C4C4C4", width=0.7)
    for vector in every[pool]:
        arrow(left, np.zeros(2), vector, color=BLUE, width=1.4)
    short = 5.0 * total / data.num_rows
    arrow(left, np.zeros(2), short, color=BLACK, width=2.2)
    label(left, "their sum\n(shortened)", short, BLACK, (-44, -4))
    left.set_title("150 of 400 rows, each a vector; in blue a pool of 10", fontsize=9)
    arrow(right, np.zeros(2), total, color=BLACK, width=2.2)
    label(right, "all 400 rows", total, BLACK, (-14, -12))
    choices = orthogonal_pursuit(space, data.take(pool), total, [1, 2])
    # How far along its arrow a label is, and how far from it.
    places = [[(0.3, (64, 8))], [(0.62, (66, 8)), (0.5, (40, -12))]]
    for choice, colour, labels in zip(choices, (ORANGE, GREEN), places, strict=True):
        at = np.zeros(2)
        word = "first" if choice.taken.size == 1 else "then"
        for n, weight, (share, offset) in zip(
            pool[choice.taken], choice.weights, labels, strict=True
        ):
            step = weight * every[n]
            arrow(right, at, at + step, color=colour, width=1.8)
            label(right, f"{word} {weight:.0f} × row {n}", at + share * step, colour, offset)
            at, word = at + step, "and"
        if choice.taken.size == 1:
            right.plot(*zip(at, total, strict=True), color=GREY, ls=":", lw=1.2)
    right.set_title("pursuit in the pool: one row, then two, to the sum", fontsize=9)
    for axis in (left, right):
        axis.axhline(0.0, color="#E6E6E6", lw=0.8, zorder=0)
        axis.axvline(0.0, color="#E6E6E6", lw=0.8, zorder=0)
        axis.set_xlabel("slope")
        axis.set_ylabel("curvature")
        axis.margins(0.12)
        axis.set_aspect("equal", adjustable="datalim")


def draw_temperatures(figure: Figure) -> None:
    """From the prior to the posterior: each π_β is in sight of the one before."""
    X, y = logistic_rows(20_000, [1.6, -1.0], seed=1)
    axes = figure.subplots(1, 2)
    data = open_rows((X, y))
    model = cb.LogisticRegression(prior=cb.Normal()).bind(data)
    rows = data.take(np.arange(0, data.num_rows))
    temperatures = [0.0, *(4.0**-k for k in range(6, -1, -1))]
    shades = matplotlib.colormaps["Blues"](np.linspace(0.25, 0.95, len(temperatures)))
    for temperature, shade in zip(temperatures, shades, strict=True):
        stage = cb.Laplace().fit(cb.Posterior(model, rows, np.full(data.num_rows, temperature)))
        for axis in axes:
            ellipses(axis, stage, color=shade, levels=(0.95,))
        if temperature in (0.0, 4.0**-6, 4.0**-4):
            name = "prior" if temperature == 0.0 else f"β = 1/{round(1 / temperature):,}"
            top = stage.mean[1] + 2.45 * np.linalg.norm(stage.factor[1])
            label(axes[0], name, (stage.mean[0], top), shade if temperature else GREY, (0, 6))
    axes[0].autoscale_view()
    half = 0.28
    low, high = stage.mean - half, stage.mean + half
    axes[1].set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    axes[1].set_title("the square on the left, magnified; β = 1 is the posterior", fontsize=9)
    axes[0].plot(
        [low[0], high[0], high[0], low[0], low[0]],
        [low[1], low[1], high[1], high[1], low[1]],
        color=ORANGE,
        lw=1.0,
    )
    axes[0].set_title("95 % of the mass of $\\pi_\\beta$", fontsize=9)
    for axis in axes:
        axis.set_xlabel("$\\theta_1$")
        axis.set_ylabel("$\\theta_2$")
        axis.set_aspect("equal")


def draw_size(figure: Figure) -> None:
    """KL by size: the coreset against subsamples, on 100,000 generated rows."""
    data = open_rows(logistic_rows(100_000, [0.5, -1.0, 0.3, 0.0, 0.8, -0.4], seed=0))
    model = cb.LogisticRegression(prior=cb.Normal())
    sizes = [7, 10, 14, 20, 28, 40, 60]
    ours = cb.build_path(model, data, sizes=sizes, seed=0)
    kls = [cb.diagnostics.laplace_kl(coreset, data) for coreset in ours]
    medians = [
        np.median([uniform_kl(model, data, size, seed) for seed in range(5)]) for size in sizes
    ]
    axis = figure.subplots()
    draw_kl(axis, (sizes, kls), (sizes, medians), None)
    enough = 6 * (6 + 3) // 2 + 1
    axis.axvline(enough, color=GREY, lw=0.8, ls=":")
    axis.annotate(
        f"d(d + 3)/2 + 1 = {enough}",
        (enough, 0.03),
        xycoords=("data", "axes fraction"),
        xytext=(5, 0),
        textcoords="offset points",
        fontsize=8,
        color="#5A5A5A",
    )
    axis.set_xticks(sizes, [str(size) for size in sizes])
    axis.set_xticks([], minor=True)


def uniform_kl(model: Any, data: Data, size: int, seed: int) -> float:
    coreset = cb.build(model, data, size=size, seed=seed, method=cb.Uniform())
    return cb.diagnostics.laplace_kl(coreset, data)


def fit(coreset: Coreset) -> Gaussian:
    return cb.Laplace().fit(cb.Posterior.of(coreset))


def ellipses(
    axis: Any,
    posterior: Gaussian,
    *,
    color: Any = None,
    fill: str | None = None,
    ls: str = "-",
    levels: tuple[float, ...] = (0.95, 0.5),
) -> None:
    """Where a Gaussian of two parameters has these shares of its mass."""
    values, directions = np.linalg.eigh(posterior.factor @ posterior.factor.T)
    angle = np.degrees(np.arctan2(directions[1, 1], directions[0, 1]))
    for level in levels:
        # P(‖z‖² ≤ q) = 1 − e^{−q/2} in two dimensions
        minor, major = 2.0 * np.sqrt(-2.0 * np.log1p(-level) * values)
        axis.add_patch(
            Ellipse(
                tuple(posterior.mean),
                major,
                minor,
                angle=angle,
                facecolor=fill or "none",
                alpha=0.35 if fill else 1.0,
                edgecolor="none" if fill else color,
                ls=ls,
                lw=1.8,
            )
        )


def arrow(axis: Any, start: Any, end: Any, *, color: str, width: float) -> None:
    axis.annotate(
        "",
        end,
        xytext=start,
        arrowprops={"arrowstyle": "-|>", "color": color, "lw": width, "shrinkA": 0, "shrinkB": 0},
    )
    # Annotations do not widen the axes; invisible points do.
    axis.plot(*zip(start, end, strict=True), alpha=0.0)


def label(axis: Any, text: str, at: Any, color: Any, offset: tuple[float, float]) -> None:
    axis.annotate(
        text,
        tuple(at),
        xytext=offset,
        textcoords="offset points",
        ha="center",
        va="center",
        color=color,
        fontsize=9,
        fontweight="bold",
    )


if __name__ == "__main__":
    main()
