"""Figures, with matplotlib, in colours that everyone can tell apart (Okabe and Ito)."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from corebayes.extras import import_extra
from corebayes.files.atomic import write_atomically
from corebayes.types import Array, Estimate, Gaussian

BLUE, ORANGE, GREY, BLACK = "#0072B2", "#D55E00", "#9A9A9A", "#333333"
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": BLACK,
    "axes.labelcolor": BLACK,
    "text.color": BLACK,
    "xtick.color": BLACK,
    "ytick.color": BLACK,
    "axes.linewidth": 0.8,
    "legend.frameon": False,
    "savefig.dpi": 120,
}
KL_LABEL = "KL divergence from the full posterior (nats)"
# Sizes, and the KL at each.
BySize = tuple[Sequence[int], Sequence[float]]


def save_figure(
    paths: Sequence[Path], size: tuple[float, float], draw: Callable[[Any], None], dpi: int = 160
) -> None:
    """Draw on an empty figure of `size` inches and write it, as .png or .svg, the same bytes every
    time."""
    matplotlib = import_matplotlib()
    module: Any = importlib.import_module("matplotlib.figure")
    # Text stays text, and identifiers do not depend on the clock.
    style = {**STYLE, "svg.fonttype": "none", "svg.hashsalt": paths[0].stem}
    with matplotlib.rc_context(style):
        figure = module.Figure(figsize=size, layout="constrained")
        draw(figure)
        for path in paths:
            form, buffer = path.suffix[1:], io.BytesIO()
            how = {"png": {"pil_kwargs": {"optimize": True}}, "svg": {"metadata": {"Date": None}}}
            figure.savefig(buffer, format=form, dpi=dpi, **how[form])
            write_atomically(path, buffer.getvalue())


def draw_marginals(
    figure: Any, names: Sequence[str], draws: Array, full: Gaussian, num_rows: int
) -> None:
    """One small panel for each parameter: full posterior filled, coreset draws as a line."""
    columns = 5
    axes = figure.subplots(-(-len(names) // columns), columns, squeeze=False).ravel()
    sds = np.sqrt(np.square(full.factor).sum(axis=1))
    handles: list[Any] = []
    for name, axis, own, mean, sd in zip(names, axes, draws.T, full.mean, sds, strict=False):
        low, high = min(mean - 4.0 * sd, own.min()), max(mean + 4.0 * sd, own.max())
        grid: Array = np.linspace(float(low), float(high), 200)
        # N(mean, sd²) has height 1/√(2π) in units of its sd
        density = np.exp(-0.5 * ((grid - mean) / sd) ** 2) / np.sqrt(2.0 * np.pi)
        handles = [
            axis.fill_between(grid, density, color=GREY, alpha=0.45, linewidth=0),
            axis.plot(grid, sd * smooth_density(own, grid), color=BLUE, lw=1.6)[0],
        ]
        axis.set_title(name, fontsize=9, pad=3)
        axis.set_ylim(0.0, None)
        axis.set_yticks([])
        axis.spines["left"].set_visible(False)
        axis.set_xticks(two_ticks(mean - 2.5 * sd, mean + 2.5 * sd))
        axis.tick_params(labelsize=8, length=3)
    for axis in axes[len(names) :]:
        axis.set_visible(False)
    labels = [f"all {num_rows:,} rows", "coreset, NUTS"]
    figure.legend(handles, labels, loc="outside upper center", ncols=2, fontsize=9)


def draw_kl(axis: Any, ours: BySize, uniform: BySize, certified: Estimate | None) -> None:
    """KL of the coreset as it grew, of uniform subsamples, and as certified."""
    largest = max(kl for kl in (*ours[1], *uniform[1]) if np.isfinite(kl))
    for (sizes, kls), color, dashes in ((uniform, ORANGE, "--"), (ours, BLUE, "-")):
        axis.loglog(sizes, kls, color=color, lw=1.7, ls=dashes, marker="o", ms=3.5)
        # An infinite KL is shown, not left out: an arrow above everything else.
        beyond = [size for size, kl in zip(sizes, kls, strict=True) if not np.isfinite(kl)]
        axis.plot(beyond, [10.0 * largest] * len(beyond), color=color, marker="^", ls="", ms=6)
    style: dict[str, Any] = {"va": "center", "fontsize": 9, "fontweight": "bold"}
    for (sizes, kls), text, color, offset, side in (
        (uniform, "uniform subsample", ORANGE, (6, 8), "left"),
        (ours, "coreset", BLUE, (-6, -8), "right"),
    ):
        if sizes:
            middle = (len(sizes) - 1) // 2
            note(axis, text, (sizes[middle], kls[middle]), offset, color=color, ha=side, **style)
    if certified is not None and certified.value > 0.0:
        at, error = (ours[0][-1], certified.value), 2.0 * certified.standard_error
        # A log axis has no room for zero: the lower end stops a decade below.
        ends = [[min(error, 0.9 * certified.value)], [error]]
        mark: dict[str, Any] = {"color": BLACK, "marker": "D", "ms": 5, "capsize": 3, "lw": 1.2}
        axis.errorbar([at[0]], [at[1]], yerr=ends, zorder=5, **mark)
        note(axis, "certified", at, (9, 0), color=BLACK, **style)
    axis.set_xlabel("rows asked for")
    axis.set_ylabel(KL_LABEL)
    grid_lines(axis)


def grid_lines(axis: Any) -> None:
    """Light ones, behind everything."""
    axis.grid(axis="y", color="#E6E6E6", lw=0.6)
    axis.set_axisbelow(True)


def note(axis: Any, text: str, at: Any, offset: tuple[int, int], **style: Any) -> None:
    """Words beside a point."""
    axis.annotate(text, at, xytext=offset, textcoords="offset points", **style)


def smooth_density(values: Array, grid: Array, shares: Array | None = None) -> Array:
    """Gaussian kernel density with the normal reference bandwidth. Cost: n · grid exp.

    `shares`, which add up to one, say how much each value counts; all the same by default. The
    bandwidth is that of the values, so that only their shares tell two densities apart.
    """
    spread = min(values.std(ddof=1), np.subtract(*np.quantile(values, [0.75, 0.25])) / 1.349)
    width = 1.06 * spread * values.size ** (-0.2)
    z = (grid[:, None] - values[None, :]) / width
    if shares is None:
        shares = np.full(values.size, 1.0 / values.size)
    return np.exp(-0.5 * z**2) @ shares / (width * np.sqrt(2.0 * np.pi))


def import_matplotlib() -> Any:
    """matplotlib, or an error that says what to install."""
    return import_extra("matplotlib", "figures need", "plot")


def two_ticks(low: float, high: float) -> list[float]:
    """Two round numbers between the limits, far enough apart for their labels not to meet."""
    ticker: Any = importlib.import_module("matplotlib.ticker")
    inside = [0.5 * (low + high)]
    for number in (4, 8, 12):
        round_numbers = ticker.MaxNLocator(nbins=number).tick_values(low, high)
        inside = [float(tick) for tick in round_numbers if low <= tick <= high]
        if inside[-1] - inside[0] >= 0.65 * (high - low):
            break
    return [inside[0], inside[-1]]


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
