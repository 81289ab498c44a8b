"""Figure 1: coreset construction on the manifold, in one tangent plane and in a moving one.

All of it is computed: the chart is the face of two rows of a logistic regression, its contours are
the KL divergence, arrows are geodesics of the Fisher metric, and every plane's error is drawn where
the plane has it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from corebayes.experiments import figures
from corebayes.experiments.claims import Claim
from corebayes.experiments.geometry import (
    Manifold,
    fixed_plane,
    logistic_manifold,
    minimise,
    moving_plane,
)
from corebayes.method_plots import style_of
from corebayes.plots import BLACK
from corebayes.types import Array, Indices

MOST_ROWS = 5
# The guess for the fixed plane has this share of the weights.
GUESS = 0.1
# Length of the arrows, in the Fisher metric.
ARROW = 0.4


def draw(stem: Path) -> tuple[figures.Figure, Claim]:
    """The figure, and what it says about the two constructions."""
    manifold = logistic_manifold()
    grown, rows = moving_plane(manifold, MOST_ROWS)
    face, best = rows[:2], grown[2]
    guess = GUESS * best
    fixed = fixed_plane(manifold, guess, MOST_ROWS)
    kls = [[manifold.kl(weights) for weights in path] for path in (fixed, grown)]

    def panels(figure: Any) -> None:
        left, middle, right = figure.subplots(1, 3, width_ratios=[1.15, 1.15, 1.0])
        for axis in (left, middle):
            _background(axis, manifold, face, best)
        _hilbert(left, manifold, face, guess)
        _riemannian(middle, manifold, face, grown)
        middle.set_ylabel("")
        _errors(right, *kls)

    figures.save(stem, (11.0, 3.9), panels)
    figure = figures.Figure(
        stem,
        "Figure 1. Coreset construction on the manifold of coreset posteriors, computed",
        "Logistic regression with one parameter and 100 rows, by quadrature. Left and middle: the "
        "face of "
        "two rows, with the weights as chart. Grey contours: KL(π_w ‖ π), one line a decade; the "
        "star is "
        "its minimum. Arrows: geodesics of the Fisher metric from π_ŵ or π_{w_t} towards each row, "
        "all of "
        f"length {ARROW}. (a) Hilbert: all distances are measured in the one plane at π_ŵ, whose "
        "error has the "
        "dashed contours and the minimum ◆. (b) Riemannian: every step takes the plane at the "
        "coreset "
        "posterior π_{w_t} it has reached. (c) KL as rows are added.",
    )
    return figure, Claim(
        "3",
        "geometry",
        "Hilbert coresets operate in a single tangent space, while the proposed method improves "
        "its "
        f"tangent space as it iterates (KL is lower with each of 1 to {MOST_ROWS} rows).",
        "; ".join(
            f"{name} plane {', '.join(f'{kl:.2g}' for kl in path[1:])}"
            for name, path in zip(("fixed", "moving"), kls, strict=True)
        ),
        all(moving < one for one, moving in zip(kls[0][1:], kls[1][1:], strict=True)),
    )


def _background(axis: Any, manifold: Manifold, face: Indices, best: Array) -> None:
    """KL over the chart of the face."""
    wide, high = 1.55 * best[face[0]], 2.4 * best[face[1]]
    first, second = np.linspace(0.0, wide, 90), np.linspace(0.0, high, 90)
    kl = np.array([manifold.kls(_along(manifold, face, first, b)) for b in second])
    levels = np.arange(np.floor(np.log10(kl.min())), 2.1)
    shades = axis.contourf(first, second, np.log10(kl), levels=levels, cmap="Greys_r", alpha=0.45)
    shades.set_edgecolor("face")
    axis.contour(first, second, np.log10(kl), levels=levels, colors="#8C8C8C", linewidths=0.6)
    axis.plot(*best[face], marker="*", ms=13, color="white", mec=BLACK, mew=1.0, zorder=6)
    axis.set_xlabel("weight of the first row")
    axis.set_ylabel("weight of the second row")
    axis.set_xlim(-0.03 * wide, wide)
    axis.set_ylim(-0.04 * high, high)


def _hilbert(axis: Any, manifold: Manifold, face: Indices, guess: Array) -> None:
    look = style_of("GIGA")
    metric = manifold.metric(guess)
    lowest = manifold.solution(guess, face)
    _error_contours(axis, metric, face, look.color)
    _geodesics(axis, manifold, guess, face, look.color)
    axis.plot(*guess[face], marker="o", ms=6, color=look.color, zorder=6)
    axis.plot(*lowest[face], marker="D", ms=7, color=look.color, mec=BLACK, zorder=6)
    _label(axis, "$\\pi_{\\hat w}$", guess[face], look.color, (9, -8))
    _label(axis, "$\\pi_w$", lowest[face], look.color)
    axis.set_title("(a) Hilbert: one tangent plane", fontsize=9.5)


def _riemannian(axis: Any, manifold: Manifold, face: Indices, grown: list[Array]) -> None:
    look = style_of("AnnealedSparseVI")
    # One row to its best weight, then the steps with both.
    steps = minimise(manifold, grown[1], face)
    passed = [grown[0], grown[1], steps[1], steps[-1]]
    places = np.array([weights[face] for weights in passed])
    axis.plot(places[:, 0], places[:, 1], color=look.color, lw=1.6, marker="o", ms=5, zorder=5)
    for number, weights in enumerate(passed[:-1]):
        _geodesics(axis, manifold, weights, face, look.color)
        offset = (9, 5) if number == 0 else (-24, 4)
        _label(axis, f"$\\pi_{{w_{number}}}$", weights[face], look.color, offset)
    axis.set_title("(b) Riemannian: a plane at every step", fontsize=9.5)


def _error_contours(axis: Any, metric: Array, face: Indices, color: str) -> None:
    """‖Σ_n g_n − Σ_i v_i g_i‖² in a plane, over the chart: ellipses around its minimum."""
    (low, high), (bottom, top) = map(_floats, (axis.get_xlim(), axis.get_ylim()))
    first, second = np.meshgrid(np.linspace(low, high, 120), np.linspace(bottom, top, 120))
    v = np.stack([first, second])
    gram = metric[np.ix_(face, face)]
    cross = metric[face].sum(axis=1)
    error = metric.sum() - 2.0 * np.tensordot(cross, v, 1)
    error += np.einsum("iab,ij,jab->ab", v, gram, v)
    levels = error.min() + np.array([0.03, 0.3, 3.0, 30.0])
    axis.contour(first, second, error, levels=levels, colors=color, linewidths=1.0, linestyles="--")


def _geodesics(axis: Any, manifold: Manifold, weights: Array, face: Indices, color: str) -> None:
    for row in face:
        direction = np.zeros(manifold.num_rows)
        direction[row] = 1.0
        path = manifold.geodesic(weights, direction, ARROW, face)[:, face]
        axis.plot(path[:, 0], path[:, 1], color=color, lw=1.2, zorder=4)
        axis.annotate(
            "",
            path[-1],
            path[-4],
            arrowprops={"arrowstyle": "-|>", "color": color, "lw": 1.2, "shrinkA": 0, "shrinkB": 0},
            zorder=4,
        )


def _errors(axis: Any, fixed: list[float], moving: list[float]) -> None:
    for kls, label, text in (
        (fixed, "GIGA", "one plane"),
        (moving, "AnnealedSparseVI", "moving plane"),
    ):
        look = style_of(label)
        axis.semilogy(range(len(kls)), kls, color=look.color, marker=look.marker, label=text)
    axis.set_xlabel("rows in the coreset")
    axis.set_ylabel("KL divergence (nats)")
    axis.set_title("(c) KL as rows are added", fontsize=9.5)
    axis.grid(axis="y", color="#E6E6E6", lw=0.6)
    axis.legend(fontsize=8.5)


def _label(axis: Any, text: str, at: Array, color: str, offset: tuple[int, int] = (6, 7)) -> None:
    axis.annotate(
        text, at, xytext=offset, textcoords="offset points", color=color, fontsize=11, zorder=7
    )


def _floats(limits: Any) -> tuple[float, float]:
    return float(limits[0]), float(limits[1])


def _along(manifold: Manifold, face: Indices, first: Array, second: float) -> Array:
    """Weights on a line of the chart."""
    weights = np.zeros((first.size, manifold.num_rows))
    weights[:, face[0]], weights[:, face[1]] = first, second
    return weights
