"""Levels of a category with a handful of rows, under priors that are as wide as these are rare."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import corebayes as cb

RARE = {"all fail": (4, 0), "one of five": (5, 1), "one of six": (6, 1), "one of seven": (7, 1)}


def visits(seed: int) -> pd.DataFrame:
    """Twenty-four common levels, and four with so many rows and successes."""
    rng = np.random.default_rng(seed)
    level = rng.integers(24, size=6_000)
    x = rng.normal(size=level.size)
    rate = 1.0 / (1.0 + np.exp(1.0 - 0.7 * x - 0.1 * (level - 12)))
    frame = pd.DataFrame(
        {"y": (rng.random(level.size) < rate).astype(int), "x": x, "place": level.astype(str)}
    )
    start = 0
    for name, (rows, successes) in RARE.items():
        frame.loc[start : start + rows - 1, "place"] = name
        frame.loc[start : start + rows - 1, "y"] = 0
        frame.loc[start : start + successes - 1, "y"] = 1
        start += rows
    return frame.sample(frac=1.0, random_state=seed, ignore_index=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_coreset_has_the_rows_that_say_all_there_is_about_a_level(seed):
    frame = visits(seed)
    model, rows = cb.from_formula("y ~ x + place", frame, family="bernoulli")
    coreset = cb.build(model, rows, size=300, seed=seed)
    kept = frame.iloc[coreset.indices]
    # Without its success the coefficient of a level would be where the prior leaves it.
    for name in ("one of five", "one of six", "one of seven"):
        assert kept.loc[kept["place"] == name, "y"].sum() == 1
    certificate = cb.certify(coreset, rows, seed=seed)
    assert certificate.certified
    assert certificate.reverse_kl.value < 0.005
