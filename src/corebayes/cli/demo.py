"""The demonstration: generated logistic data compressed, sampled, certified and compared, then a
mixed model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.console import Console
from typer import Option

import corebayes as cb
from corebayes.cli.demo_mixed import DemoSteps, run_mixed
from corebayes.cli.options import Json, Seed, make_console, print_json
from corebayes.coreset import Coreset
from corebayes.figures.plots import draw_kl, draw_marginals, save_figure
from corebayes.files.outputs import probe_folder, write_or_keep
from corebayes.report.cost import duration, gradient_seconds, shortest_seconds
from corebayes.report.curves import Curve, coreset_curve, laplace_kl, uniform_curve
from corebayes.rows import Rows, open_rows
from corebayes.samplers.laplace import full_posterior
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Gaussian, Model, Points

# Unequal in size and sign, so that a mistake in either would show.
COEFFICIENTS = (1.5, -0.8, 0.4, 0.1, -0.3, 0.9, -1.2, 0.2, 0.6)
INTERCEPT = -1.0
FULL_NUTS_SECONDS = 6.0
FULL_NUTS_DRAWS = 300
# From as many rows as parameters, where no construction does well, upwards.
CORESET_SIZES = (10, 12, 15, 20, 26, 34, 45, 55)
# Rows of the mixed model, at most: NUTS on all of them is part of it.
MOST_MIXED_ROWS = 100_000


def run_demo(
    *, num_rows: int, size: int, seed: int, out: Path, say: Callable[[str], None]
) -> dict[str, Any]:
    """Run everything, say what happens, write `demo.png` and `demo-mixed.png` into `out`; the
    figures as plain numbers.

    Cost: the build, one of several smaller sizes, a pass or two to certify, about eight
    for the full posterior; then the mixed model.
    """
    probe_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    steps = DemoSteps(say)
    timed, tell = steps.timed, steps.tell
    data = timed("generate", lambda: open_rows(generate_rows(num_rows, seed)))
    features = f"{len(COEFFICIENTS)} correlated features and an intercept"
    say(f"{num_rows:,} rows of logistic regression, {features}.\n")
    given = cb.LogisticRegression(intercept=True)
    build = partial(cb.build, given, data, size=size, seed=seed)
    coreset = timed("build", build, shown=False)
    model = coreset.model
    tell("build", f"build     {num_rows:,} rows became {coreset.size} weighted rows")
    draws = timed("sample", lambda: _coreset_draws(coreset, seed))
    tell("sample", "sample    NUTS on the coreset: 4 chains of 1,000 draws")
    certificate = timed("certify", lambda: cb.certify(coreset, data, seed=seed + 1))
    tell("certify", "certify   all rows at fresh draws, until the verdict is clear")
    full = timed("full", lambda: full_posterior(model, data))
    tell("full", "compare   Laplace fit of the posterior of all rows")
    say(f"\n{certificate.verdict}\n")
    comparison = _compare(coreset, data, full, draws)
    say(_comparison_lines(comparison))
    reference = _full_nuts(model, data, seed)
    if reference is not None:
        say(_nuts_line(reference, draws))
    sizes = partial(coreset_curve, coreset, data, full, CORESET_SIZES, seed)
    ours = timed("sizes", sizes, shown=False)
    uniform = timed("uniform", lambda: uniform_curve(model, data, full, seed))
    drawn = timed("draw", lambda: _draw(out, coreset, certificate, draws, full, ours, uniform))
    tell("sizes", f"\nfigure    {len(ours.sizes) - 1} other sizes in one run")
    tell("uniform", f"          uniform subsamples of up to {max(uniform.sizes):,} rows")
    say(f"\nThe figure is {drawn}")
    num_mixed = min(num_rows, MOST_MIXED_ROWS)
    mixed = run_mixed(num_rows=num_mixed, seed=seed, out=out, steps=steps)
    return {
        "num_rows": num_rows,
        "size": coreset.size,
        "reason": coreset.reason,
        "seed": seed,
        "seconds": steps.seconds,
        "certificate": certificate.to_dict(),
        "comparison": comparison,
        "kl_by_size": {"coreset": _plain(ours), "uniform": _plain(uniform)},
        "figure": str(drawn),
        "mixed": mixed,
    }


def generate_rows(num_rows: int, seed: int) -> tuple[Array, Array]:
    """Features with correlation 0.5^|i − j|, and labels 0 or 1 from the coefficients above."""
    rng = np.random.default_rng(seed)
    places = np.arange(len(COEFFICIENTS))
    correlation = 0.5 ** np.abs(np.subtract.outer(places, places))
    X = rng.standard_normal((num_rows, places.size)) @ np.linalg.cholesky(correlation).T
    eta = X @ np.array(COEFFICIENTS) + INTERCEPT
    return X, (rng.random(num_rows) < 1.0 / (1.0 + np.exp(-eta))).astype(np.float64)


def _compare(coreset: Coreset, data: Rows, full: Gaussian, draws: Array) -> dict[str, Any]:
    """Coreset draws against the full posterior, and what one gradient costs on each."""
    model, rows, weights = coreset.model, coreset.rows, coreset.weights
    sd = np.sqrt(np.square(full.factor).sum(axis=1))
    ratios = draws.std(axis=0, ddof=1) / sd
    return {
        "largest_mean_difference_in_sd": float(np.max(np.abs(draws.mean(axis=0) - full.mean) / sd)),
        "smallest_sd_ratio": float(ratios.min()),
        "largest_sd_ratio": float(ratios.max()),
        "laplace_kl": laplace_kl(model, Points(coreset.indices, rows), weights, full),
        "gradient_full_seconds": _plain_gradient_seconds(data),
        "gradient_coreset_seconds": gradient_seconds(model, rows, weights, repeats=1000),
    }


def _comparison_lines(found: dict[str, Any]) -> str:
    slow, fast = found["gradient_full_seconds"], found["gradient_coreset_seconds"]
    return (
        "posterior means   differ by at most "
        f"{found['largest_mean_difference_in_sd']:.3f} posterior sd\n"
        f"posterior sds     are {found['smallest_sd_ratio']:.3f} to "
        f"{found['largest_sd_ratio']:.3f} times the full ones\n"
        f"Laplace KL        {found['laplace_kl']:.2g} nats, computed without sampling\n"
        f"one gradient      {duration(slow)} on all rows, {duration(fast)} on the coreset: "
        f"{slow / fast:,.0f} times faster"
    )


def _coreset_draws(coreset: Coreset, seed: int) -> Array:
    """(4000, d) NUTS draws, columns as `parameter_names`."""
    posterior = cb.sample(coreset, draws=1000, chains=4, seed=seed, progress=False).posterior
    both = [posterior["beta"].values, posterior["intercept"].values[..., None]]
    return np.concatenate(both, axis=2).reshape(-1, coreset.model.dim)


def _full_nuts(model: Model, data: Rows, seed: int) -> Array | None:
    """NUTS on all rows, where some five gradients for each draw take a few seconds only."""
    rows, weights = data.take(np.arange(data.num_rows)), np.ones(data.num_rows)
    seconds = 5 * 2 * FULL_NUTS_DRAWS * gradient_seconds(model, rows, weights, repeats=3)
    if seconds > FULL_NUTS_SECONDS:
        return None
    sampler = cb.NUTS(num_tune=FULL_NUTS_DRAWS, chains=1)
    posterior = Posterior(model, rows, weights)
    return sampler.draw(np.random.default_rng(seed), posterior, FULL_NUTS_DRAWS).flat


def _nuts_line(reference: Array, draws: Array) -> str:
    sd = reference.std(axis=0, ddof=1)
    largest = float(np.max(np.abs(reference.mean(axis=0) - draws.mean(axis=0)) / sd))
    return (
        f"full-data NUTS    means differ by at most {largest:.3f} posterior sd "
        f"({len(reference)} draws, noise about {len(reference) ** -0.5:.2f})"
    )


def _plain_gradient_seconds(data: Rows) -> float:
    """The same on all rows, as one would write it in NumPy for these rows alone."""
    block = data.take(np.arange(data.num_rows))
    X = np.column_stack([block.X, np.ones(len(block))])
    sign, theta = 2.0 * block.y - 1.0, np.zeros(X.shape[1])

    def step() -> tuple[float, Array]:
        margin = sign * (X @ theta)
        tail = np.exp(-np.abs(margin))
        value = float(np.sum(np.minimum(margin, 0.0) - np.log1p(tail)))
        return value, X.T @ (sign * np.where(margin > 0.0, tail, 1.0) / (1.0 + tail))

    return shortest_seconds(step, 30)


def _draw(
    out: Path,
    coreset: Coreset,
    certificate: cb.Certificate,
    draws: Array,
    full: Gaussian,
    ours: Curve,
    uniform: Curve,
) -> Path:
    """Posterior marginals of coreset and full data, and KL against the number of rows kept."""
    names = [f"β{k}" for k in range(draws.shape[1] - 1)] + ["intercept"]

    def draw(figure: Any) -> None:
        left, right = figure.subfigures(1, 2, width_ratios=[1.6, 1.0], wspace=0.04)
        draw_marginals(left, names, draws, full, coreset.num_rows)
        draw_kl(right.subplots(), ours, uniform, certificate.reverse_kl)

    path = out / "demo.png"
    write_or_keep(
        lambda place: save_figure((place,), (11.5, 4.4), draw, dpi=120), path, "the figure"
    )
    return path


def _plain(curve: Curve) -> list[tuple[int, float | None]]:
    """Pairs for JSON, which has no infinity."""
    return [(m, kl if np.isfinite(kl) else None) for m, kl in zip(*curve, strict=True)]


EXAMPLE = "Example: corebayes demo --rows 100000 --out demo/"


def demo(
    rows: Annotated[int, Option(help="Rows to generate.")] = 1_000_000,
    size: Annotated[int, Option(help="Rows to keep.")] = 66,
    seed: Seed = 0,
    out: Annotated[Path, Option(help="Folder for the figure.")] = Path("demo"),
    quick: Annotated[bool, Option("--quick", help="10,000 rows.")] = False,
    as_json: Json = False,
) -> None:
    """Compress generated data, sample, certify and compare with all rows."""
    if rows < 1000:
        raise ValueError(f"--rows must be at least 1000 to show anything, got {rows}")
    console = Console(stderr=True, highlight=False, markup=False) if as_json else make_console()
    report = run_demo(
        num_rows=10_000 if quick else rows,
        size=size,
        seed=seed,
        out=out,
        say=lambda text: console.print(text, soft_wrap=True),
    )
    if as_json:
        print_json(command="demo", **report)
