"""Figure 1: coreset construction on the manifold, in one tangent plane and in a moving one.

All of it is computed: the chart is the face of two rows of a logistic regression, its contours are
the KL divergence, arrows are geodesics of the Fisher metric, and every plane's error is drawn where
the plane has it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from corebayes.experiments.claims import Claim
from corebayes.experiments.figures import Figure
from corebayes.experiments.geometry import (
    Manifold,
    fixed_plane,
    logistic_manifold,
    minimise,
    moving_plane,
)
from corebayes.figures.methods import style_of
from corebayes.figures.plots import BLACK, grid_lines, note
from corebayes.types import Array, Indices

MOST_ROWS = 5
# The guess for the fixed plane has this share of the weights.
GUESS = 0.1
# Length of the arrows, in the Fisher metric.
ARROW = 0.4
CAPTION = (
    "Logistic regression with one parameter and 100 rows, by quadrature. Left and middle: the face "
    "of two rows, with the weights as chart. Grey contours: KL(π_w ‖ π), one line a decade; the "
    "star is its minimum. Arrows: geodesics of the Fisher metric from π_ŵ or π_{w_t} towards each "
    f"row, all of length {ARROW}. (a) Hilbert: all distances are measured in the one plane at π_ŵ, "
    "whose error has the dashed contours and the minimum ◆. (b) Riemannian: every step takes the "
    "plane at the coreset posterior π_{w_t} it has reached. (c) KL as rows are added."
)


def draw(stem: Path) -> tuple[Figure, Claim]:
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
        left.set_ylabel("weight of the second row")
        _hilbert(left, manifold, face, guess)
        _riemannian(middle, manifold, face, grown)
        _errors(right, *kls)

    title = "Figure 1. Coreset construction on the manifold of coreset posteriors, computed"
    fixed_kls, moving_kls = (", ".join(f"{kl:.2g}" for kl in path[1:]) for path in kls)
    return Figure(stem, title, CAPTION).save((11.0, 3.9), panels), Claim(
        "3",
        "geometry",
        "Hilbert coresets operate in a single tangent space, while the proposed method improves "
        f"its tangent space as it iterates (KL is lower with each of 1 to {MOST_ROWS} rows).",
        f"fixed plane {fixed_kls}; moving plane {moving_kls}",
        all(moving < one for one, moving in zip(kls[0][1:], kls[1][1:], strict=True)),
    )


def _background(axis: Any, manifold: Manifold, face: Indices, best: Array) -> None:
    """KL over the chart of the face."""
    wide, high = 1.55 * best[face[0]], 2.4 * best[face[1]]
    first, second = np.linspace(0.0, wide, 90), np.linspace(0.0, high, 90)
    weights = np.zeros((90, manifold.num_rows))
    weights[:, face[0]] = first
    lines: list[Array] = []
    for value in second:
        weights[:, face[1]] = value
        lines.append(np.log10(manifold.kls(weights)))
    height = np.array(lines)
    levels = np.arange(np.floor(height.min()), 2.1)
    shades = axis.contourf(first, second, height, levels=levels, cmap="Greys_r", alpha=0.45)
    shades.set_edgecolor("face")
    axis.contour(first, second, height, levels=levels, colors="#8C8C8C", linewidths=0.6)
    axis.plot(*best[face], marker="*", ms=13, color="white", mec=BLACK, mew=1.0, zorder=6)
    axis.set_xlabel("weight of the first row")
    axis.set_xlim(-0.03 * wide, wide)
    axis.set_ylim(-0.04 * high, high)


def _hilbert(axis: Any, manifold: Manifold, face: Indices, guess: Array) -> None:
    color = style_of("GIGA").color
    lowest = manifold.solution(guess, face)
    _error_contours(axis, manifold.metric(guess), face, color)
    _geodesics(axis, manifold, guess, face, color)
    axis.plot(*guess[face], marker="o", ms=6, color=color, zorder=6)
    axis.plot(*lowest[face], marker="D", ms=7, color=color, mec=BLACK, zorder=6)
    note(axis, "$\\pi_{\\hat w}$", guess[face], (9, -8), color=color, fontsize=11, zorder=7)
    note(axis, "$\\pi_w$", lowest[face], (6, 7), color=color, fontsize=11, zorder=7)
    axis.set_title("(a) Hilbert: one tangent plane", fontsize=9.5)


def _riemannian(axis: Any, manifold: Manifold, face: Indices, grown: list[Array]) -> None:
    color = style_of("AnnealedSparseVI").color
    # One row to its best weight, then the steps with both.
    steps = minimise(manifold, grown[1], face)
    passed = [grown[0], grown[1], steps[1], steps[-1]]
    places = np.array([weights[face] for weights in passed])
    axis.plot(*places.T, color=color, lw=1.6, marker="o", ms=5, zorder=5)
    for number, weights in enumerate(passed[:-1]):
        _geodesics(axis, manifold, weights, face, color)
        offset, words = ((9, 5) if number == 0 else (-24, 4)), f"$\\pi_{{w_{number}}}$"
        note(axis, words, weights[face], offset, color=color, fontsize=11, zorder=7)
    axis.set_title("(b) Riemannian: a plane at every step", fontsize=9.5)


def _error_contours(axis: Any, metric: Array, face: Indices, color: str) -> None:
    """‖Σ_n g_n − Σ_i v_i g_i‖² in a plane, over the chart: ellipses around its minimum."""
    limits: Any = (axis.get_xlim(), axis.get_ylim())
    sides = [np.linspace(float(low), float(high), 120) for low, high in limits]
    first, second = np.meshgrid(*sides)
    v = np.stack([first, second])
    error = metric.sum() - 2.0 * np.tensordot(metric[face].sum(axis=1), v, 1)
    error += np.einsum("iab,ij,jab->ab", v, metric[np.ix_(face, face)], v)
    levels = error.min() + np.array([0.03, 0.3, 3.0, 30.0])
    axis.contour(first, second, error, levels=levels, colors=color, linewidths=1.0, linestyles="--")


def _geodesics(axis: Any, manifold: Manifold, weights: Array, face: Indices, color: str) -> None:
    arrow = {"arrowstyle": "-|>", "color": color, "lw": 1.2, "shrinkA": 0, "shrinkB": 0}
    for direction in np.eye(manifold.num_rows)[face]:
        path = manifold.geodesic(weights, direction, ARROW, face)[:, face]
        axis.plot(*path.T, color=color, lw=1.2, zorder=4)
        axis.annotate("", path[-1], path[-4], arrowprops=arrow, zorder=4)


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
    grid_lines(axis)
    axis.legend(fontsize=8.5)
