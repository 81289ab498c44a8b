"""Families at all their predictors: densities against SciPy, derivatives against differences."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.predictor_cases import CASES, NAMES

cases = pytest.mark.parametrize("case", CASES, ids=NAMES)


@pytest.fixture
def drawn(case):
    rng = np.random.default_rng(7)
    at = case.predictors(rng, 60)
    return at, case.rows(rng, at)


@cases
def test_the_log_density_is_scipys(case, drawn):
    at, row = drawn
    found = case.family.log_likelihood(at, row) + case.family.row_base(row)
    expected = case.log_density(row["y"], row, *at)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(case.family.jet(at, row).value, found - case.family.row_base(row))


@cases
def test_derivatives_are_those_of_the_density(case, drawn):
    at, row = drawn
    jet, h = case.family.jet(at, row), 1e-5
    short = case.family.jet(at, row, 1)
    assert len(jet.first) == len(at) == len(jet.second)
    for i in range(len(at)):
        up, down = ([one + s * h * (k == i) for k, one in enumerate(at)] for s in (1.0, -1.0))
        slope = case.family.log_likelihood(up, row) - case.family.log_likelihood(down, row)
        np.testing.assert_allclose(
            jet.first[i] + 0.0 * at[0], slope / (2 * h), rtol=2e-6, atol=2e-6
        )
        np.testing.assert_array_equal(short.first[i], jet.first[i])
        above, below = case.family.jet(up, row), case.family.jet(down, row)
        for j in range(i + 1):
            bend = (above.first[j] - below.first[j]) / (2 * h)
            np.testing.assert_allclose(
                jet.second[i][j] + 0.0 * at[0], bend + 0.0 * at[0], rtol=2e-6, atol=2e-6
            )


@cases
def test_predictors_broadcast(case, drawn):
    at, row = drawn
    # Constants are (1, S), the linear ones (n, S) and a row (n, 1).
    linear = len(case.family.linear)
    wide = [one[:, None] + np.array([0.0, 0.2, -0.1]) for one in at[:linear]]
    wide += [one[None, :3] for one in at[linear:]]
    columns = {name: values[:, None] for name, values in row.items()}
    values = case.family.log_likelihood(wide, columns)
    assert values.shape == (60, 3)
    for s in range(3):
        single = [one[:, s] if one.shape[0] > 1 else np.full(60, one[0, s]) for one in wide]
        np.testing.assert_allclose(values[:, s], case.family.log_likelihood(single, row))
    jet = case.family.jet(wide, columns)
    np.testing.assert_allclose(jet.value, values)
    assert case.family.mean(wide, columns).shape[:2] == (60, 3)
    assert case.family.draw(np.random.default_rng(0), wide, columns).shape == (60, 3)


@cases
def test_draws_have_the_mean_and_are_targets(case):
    rng = np.random.default_rng(11)
    at = [np.full(40_000, value) for value in case.at]
    row = case.rows(rng, at)
    if "event" in row:
        row["event"] = np.ones(at[0].size)
    y, mean = row["y"], case.family.mean(at, row)
    bad, _ = case.family.check_target(y, np.inf)
    assert not np.any(bad)
    observed = y[:, None] == np.arange(mean.shape[1]) if mean.ndim == 2 else y
    gap = np.atleast_2d((observed - mean).T)
    assert np.all(np.abs(gap.mean(axis=1)) < 4.5 * gap.std(axis=1) / np.sqrt(y.size))
    # A Monte Carlo estimate of ∫ p = 1 with draws of p at other predictors.
    others = [one + 0.05 for one in at]
    ratio = np.exp(case.family.log_likelihood(others, row) - case.family.log_likelihood(at, row))
    assert abs(ratio.mean() - 1.0) < 4.5 * ratio.std() / np.sqrt(y.size)
