"""Where fits start, and constants that only the rows bring: priors as wide as nothing."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from scipy import optimize, stats

import corebayes as cb

WIDE = cb.HalfNormal(100.0)


def times(num_rows: int = 2500) -> pandas.DataFrame:
    """Weibull times of shape 1.7, of which some are censored."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(num_rows, 3))
    scale = np.exp(1.5 + x @ [0.4, -0.3, 0.1])
    time, end = scale * rng.weibull(1.7, num_rows), 6.0 * rng.exponential(size=num_rows)
    columns = {f"x{k}": x[:, k] for k in range(3)}
    return pandas.DataFrame({**columns, "time": np.minimum(time, end), "seen": 1.0 * (time <= end)})


def test_a_wide_prior_of_a_shape_is_no_place_to_start():
    """At its mode, a shape of a hundred, the density of most rows has no digits."""
    frame = times()
    model, rows = cb.from_formula(
        "Surv(time, seen) ~ x0 + x1 + x2",
        frame,
        family="weibull",
        prior=cb.Normal(0.0, 100.0),
        learned={"shape": WIDE},
    )
    coreset = cb.build(model, rows, size=40, seed=0, progress=False)
    drawn = cb.Automatic().draw(np.random.default_rng(0), cb.Posterior.of(coreset), 2000).flat
    X = np.column_stack([np.ones(len(frame)), frame[["x0", "x1", "x2"]]])
    y, seen = frame["time"].to_numpy(), frame["seen"].to_numpy() > 0.0

    def energy(theta: np.ndarray) -> float:
        of_row = stats.weibull_min(np.exp(theta[-1]), scale=np.exp(X @ theta[:-1]))
        return -np.where(seen, of_row.logpdf(y), of_row.logsf(y)).sum()

    best = optimize.minimize(energy, np.zeros(5), method="BFGS").x
    assert np.all(np.abs(drawn.mean(axis=0) - best) < 0.25 * drawn.std(axis=0))


@pytest.mark.parametrize("scale", [1.0, 100.0, 1e6])
def test_wide_priors_begin_where_the_family_does(scale):
    frame = times(50)
    model, rows = cb.from_formula(
        "time ~ x0", frame, family="weibull", learned={"shape": cb.HalfNormal(scale)}
    )
    assert abs(model.bind(rows).prior.middle[-1]) < 1.0


def test_narrow_priors_begin_at_their_mode():
    """Gamma(50, 1): fifty rows say less than such a prior."""
    model, rows = cb.from_formula(
        "time ~ x0", times(50), family="weibull", learned={"shape": cb.Gamma(50.0, 1.0)}
    )
    assert model.bind(rows).prior.middle[-1] == pytest.approx(np.log(50.0))


def levels() -> pandas.DataFrame:
    rng = np.random.default_rng(1)
    return pandas.DataFrame({"x": rng.normal(size=80), "y": rng.integers(0, 4, size=80) * 1.0})


def test_gaps_may_have_priors_before_the_levels_are_known():
    model, rows = cb.from_formula("y ~ x", levels(), family="cumulative", learned={"gap_3": WIDE})
    found = {name: (prior, where) for name, prior, where in model.bind(rows).priors()}
    assert found["gap_3"] == ("HalfNormal(100)", "given")
    assert found["gap_2"][1] == "default"


@pytest.mark.parametrize("name", ["gap_7", "gap", "gaps_2"])
def test_gaps_that_there_are_not(name):
    with pytest.raises(ValueError, match=f"no constant '{name}'"):
        model, rows = cb.from_formula("y ~ x", levels(), family="cumulative", learned={name: WIDE})
        model.bind(rows)
