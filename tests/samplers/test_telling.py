"""Rows that may carry a mode alone are in a subsample, and it stands for all rows all the same."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.certify.measure import measure
from corebayes.coreset import Coreset
from corebayes.rows import open_rows
from corebayes.samplers.modes.places import race_error
from corebayes.samplers.modes.search import Mode
from corebayes.samplers.modes.subsamples import subsample
from corebayes.samplers.modes.telling import find_tellers
from corebayes.scan.telling import TellingRows, uniforms
from corebayes.types import Gaussian

NUM_ROWS = 5000


def likelihood(draws, block):
    """All rows share −θ²/2; those of `mode` have a second mode, ten deviations away."""
    theta = draws[:, 0]
    shared = -0.5 * np.square(theta) / NUM_ROWS * np.ones((len(block), 1))
    return shared + block["mode"][:, None] * np.logaddexp(0.0, 10.0 * theta - 50.0)


def prior(draws):
    return -0.5 * np.square(draws[:, 0] / 20.0)


def rows_with(carriers):
    mode = np.zeros(NUM_ROWS)
    mode[carriers] = 1.0 / len(carriers)
    rows = open_rows({"mode": mode}).check()
    return rows, cb.CustomModel(likelihood, prior, 1).bind(rows)


@pytest.mark.parametrize("carriers", [[4321], [17, 1000, 2600, 2601, 4999]])
def test_rows_that_carry_a_mode_are_taken(carriers):
    rows, model = rows_with(carriers)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        tellers = find_tellers(rng, model, rows, np.zeros(1))
        assert set(carriers) <= set(tellers.numbers.tolist())
        sample = tellers.subsample(rng, rows, 200)
        assert sample.weights.size <= 700
        # All rows, to within what 200 of them can be wrong about what all share.
        places = np.array([[0.0], [10.0]])
        full = model.sum_potentials(places, rows.take(np.arange(NUM_ROWS)), np.ones(NUM_ROWS))
        ours = model.sum_potentials(places, sample.rows, sample.weights)
        assert ours == pytest.approx(full, rel=1e-6, abs=1e-6)


def test_sums_are_without_bias():
    """Heavy rows and light ones, over many subsamples: the mean is the sum of all rows."""
    rng = np.random.default_rng(0)
    x = rng.standard_cauchy(3000)
    rows = open_rows({"x": x}).check()

    def cauchy(draws, block):
        return -np.log1p(np.square(block["x"][:, None] - draws[:, 0]))

    model = cb.CustomModel(cauchy, prior, 1).bind(rows)
    places, everything = np.array([[0.2], [3.0], [-15.0]]), rows.take(np.arange(3000))
    gain = np.diff(model.sum_potentials(places, everything, np.ones(3000)))
    found, errors = [], []
    for seed in range(24):
        rng = np.random.default_rng(seed)
        sample = find_tellers(rng, model, rows, places[0]).subsample(rng, rows, 150)
        found.append(np.diff(model.sum_potentials(places, sample.rows, sample.weights)))
        modes = [Mode(Gaussian(place, np.eye(1)), 0.0) for place in places[:2]]
        errors.append(race_error(sample, *modes))
    found = np.array(found)
    assert np.all(np.abs(found.mean(axis=0) - gain) < 4.0 * found.std(axis=0) / np.sqrt(24))
    # And the error that is said is about what it is.
    assert np.mean(errors) == pytest.approx(found[:, 0].std(), rel=0.5)


def test_errors_of_rows_at_random_are_as_before():
    rows, model = rows_with([3])
    sample, _ = subsample(np.random.default_rng(0), model, rows, 500)
    modes = [Mode(Gaussian(np.array([place]), np.eye(1)), 0.0) for place in (0.0, 3.0)]
    terms = np.diff(model.potentials(np.array([[3.0], [0.0]]), sample.rows))[:, 0] * sample.weights
    expected = terms.std() * np.sqrt(500 * (1.0 - 500 / NUM_ROWS))
    assert race_error(sample, *modes) == pytest.approx(expected, abs=1e-9)


def test_parts_of_the_rows_merge_to_the_answer_of_all():
    rng = np.random.default_rng(1)
    rows = open_rows({"mode": rng.exponential(size=400)}).check()
    model = cb.CustomModel(likelihood, prior, 1).bind(rows)
    query = TellingRows(model, np.array([[0.0], [9.0], [-4.0]]), 6, seed=5)
    numbers = np.arange(400)
    whole = query.answer(rows.take(numbers), numbers)
    parts = [query.answer(rows.take(part), part) for part in np.split(numbers, [3, 150])]
    merged = query.merge(query.merge(parts[0], parts[1]), parts[2])
    assert np.array_equal(whole.numbers, merged.numbers)
    assert np.array_equal(whole.keys, merged.keys)
    assert whole.keys.shape == (7, 2)
    sums = model.sum_potentials(query.places, rows.take(numbers), np.ones(400))
    np.testing.assert_allclose(whole.heights, sums[1:] - sums[0])
    np.testing.assert_allclose(merged.heights, whole.heights)


def test_uniforms_are_uniform_and_others_for_other_seeds():
    one, other = uniforms(np.arange(20_000), 3), uniforms(np.arange(20_000), 4)
    assert np.all((one > 0.0) & (one < 1.0))
    counts = np.histogram(one, 20, range=(0.0, 1.0))[0]
    assert np.sum(np.square(counts - 1000.0) / 1000.0) < 50.0
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.03


def test_a_mode_that_one_row_carries_is_not_certified_away():
    """The lost mode holds half of the mass; without the row KL is log 2."""
    rows, model = rows_with([4321])
    lost = np.array([7])
    coreset = Coreset(lost, np.array([5000.0]), rows.take(lost), model, NUM_ROWS, float(NUM_ROWS))
    found = measure(coreset, rows, tol=0.05)
    assert not found.certified
    assert found.reverse_kl is not None
    assert abs(found.reverse_kl.value - np.log(2.0)) < 4.0 * found.reverse_kl.standard_error + 0.02
    assert "near θ = (9.9" in found.verdict
    both = np.array([7, 4321])
    right = Coreset(both, np.array([4999.0, 1.0]), rows.take(both), model, NUM_ROWS, 5000.0)
    assert measure(right, rows, tol=0.05).certified
