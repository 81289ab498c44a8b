"""What is handed over to judge a coreset is checked like what it was built from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import corebayes as cb
from corebayes import diagnostics
from corebayes.rows import open_rows

N = 9000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
TARGETS = {
    cb.LogisticRegression: (RNG.uniform(size=N) < 0.4).astype(float),
    cb.PoissonRegression: RNG.poisson(1.0, size=N).astype(float),
    cb.NegativeBinomialRegression: RNG.poisson(1.0, size=N).astype(float),
}


def built(model, y, **more):
    return cb.build(model, (X, y), size=8, method=cb.Uniform(), **more)


def sentence(call):
    with pytest.raises(ValueError) as refusal:
        call()
    return str(refusal.value)


@pytest.mark.parametrize("family", TARGETS, ids=lambda family: family.__name__)
@pytest.mark.parametrize("value", [7.5, 0.5, -3.0])
@pytest.mark.parametrize("place", [1, 5000, -1])
def test_a_target_outside_the_coreset_is_refused_with_the_words_of_build(family, value, place):
    coreset = built(family(), TARGETS[family])
    outside = np.setdiff1d(np.arange(N), coreset.indices)
    y = TARGETS[family].copy()
    y[outside[place]] = value
    words = sentence(lambda: built(family(), y))
    assert f"row {outside[place]}, column 'y': {value!r} is not a target of" in words
    assert sentence(lambda: cb.certify(coreset, (X, y), sampler=Prior())) == words


class Prior:
    """Draws at once: the labels are looked at whatever the draws are."""

    def draw(self, rng, posterior, num_draws, start=None):
        values = 0.1 * rng.standard_normal((1, num_draws, posterior.dim))
        return cb.Draws(values=values, location=values[0, 0], independent=True)


def test_two_ways_to_write_a_class_are_refused_wherever_they_meet():
    y = TARGETS[cb.LogisticRegression]
    coreset = built(cb.LogisticRegression(prior=cb.Normal()), y)
    mixed = y.copy()
    last = np.setdiff1d(np.flatnonzero(y == 0.0), coreset.indices)[-1]
    mixed[last] = -1.0
    words = sentence(lambda: built(cb.LogisticRegression(prior=cb.Normal()), mixed))
    assert f"row {last}" in words and "not both" in words
    assert sentence(lambda: cb.certify(coreset, (X, mixed), sampler=Prior())) == words


def test_rows_that_count_nothing_are_passed_over():
    y, counts = TARGETS[cb.LogisticRegression].copy(), np.ones(N)
    y[17], counts[17] = 7.0, 0.0
    coreset = built(cb.LogisticRegression(prior=cb.Normal()), y, counts=counts)
    cb.certify(coreset, (X, y), counts=counts, sampler=Prior())


def test_report_and_diagnostics_refuse_it_too():
    y = TARGETS[cb.LogisticRegression]
    coreset = built(cb.LogisticRegression(prior=cb.Normal()), y)
    wrong = y.copy()
    wrong[np.setdiff1d(np.arange(N), coreset.indices)[3]] = 7.0
    draws = np.zeros((4, 2))
    with pytest.raises(ValueError, match=r"7\.0 is not a target"):
        diagnostics.log_ratios(coreset, open_rows((X, wrong)), draws)
    with pytest.raises(ValueError, match=r"7\.0 is not a target"):
        cb.report(coreset, (X, wrong), draws=100, progress=False)
    with pytest.raises(ValueError, match=r"7\.0 is not a target"):
        cb.build(cb.LogisticRegression(prior=cb.Normal()), (X, wrong), size=20, start=coreset)


def test_the_check_costs_no_pass_and_changes_no_bit():
    y = TARGETS[cb.LogisticRegression]
    data = open_rows((X, y))
    coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), data, size=8, method=cb.Uniform())
    before = data.meter.rows_decoded
    draws = RNG.normal(size=(5, 2))
    # Rows that are open were checked for this model by build.
    ratios = diagnostics.log_ratios(coreset, data, draws)
    assert data.meter.rows_decoded - before == N
    direct = data.take(np.arange(N))
    model = coreset.model
    expected = model.sum_potentials(draws, direct)
    expected -= model.sum_potentials(draws, coreset.rows, coreset.weights)
    np.testing.assert_allclose(ratios, expected - expected.mean(), rtol=1e-9)


def test_other_columns_and_another_order_are_refused():
    # Values do not tell the columns apart, names do.
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 0], "c": X[:, 1], "y": X[:, 1]})
    how = {"target": "y", "features": ["a", "c"]}
    coreset = cb.build(cb.LinearRegression(noise_sd=1.0, prior=cb.Normal()), frame, size=8, **how)
    assert cb.certify(coreset, frame, **how).reverse_kl is not None
    for features, words in [
        (["b", "c"], "feature 1 of this data is 'b', where the coreset was built on 'a'"),
        (["c", "a"], "feature 1 of this data is 'c'"),
        (["a"], "feature 2 of this data is missing, where the coreset was built on 'c'"),
        (["a", "c", "b"], "feature 3 of this data is 'b', where the coreset was built on no more"),
    ]:
        for call in (cb.certify, cb.report):
            given = {"target": "y", "features": features}
            assert words in sentence(lambda: call(coreset, frame, **given))  # noqa: B023
    with pytest.raises(ValueError, match="feature 1 of this data is 'b'"):
        cb.build(
            cb.LinearRegression(noise_sd=1.0, prior=cb.Normal()),
            frame,
            size=12,
            start=coreset,
            target="y",
            features=["b", "c"],
        )
