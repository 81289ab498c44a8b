"""Posteriors that move: months that are not alike, and sites that are not."""

import warnings
from dataclasses import replace

import numpy as np
import pandas
import pytest

import corebayes as cb
from corebayes.certify.chain import added_up
from tests.compose.rows import MODEL, kl

COUNTS = cb.PoissonRegression(prior=cb.Normal())


def _months(number, num_rows, dim, drift, seed=0, model=MODEL, widths=None):
    """Coefficients that go one way, and features that come and go, and may be wider."""
    fixed = np.random.default_rng(seed)
    way = fixed.normal(size=dim) / np.sqrt(dim)
    months = []
    for month in range(number):
        rng = np.random.default_rng([seed, month])
        X = rng.normal(size=(num_rows, dim)) + 0.3 * rng.normal(size=dim)
        X *= 1.0 if widths is None else widths[month]
        predictor = X @ (np.linspace(0.4, -0.4, dim) + drift * month * way)
        if model is COUNTS:
            y = rng.poisson(np.exp(predictor))
        else:
            y = rng.random(num_rows) < 1.0 / (1.0 + np.exp(-predictor))
        months.append((X, y.astype(float)))
    return months


def _grown(model, months, size, change=lambda coreset: coreset, moves=None):
    """The last coreset; `moves` gets the standard deviations by which each month moved it."""
    coreset = cb.build(model, months[0], size=size, seed=0)
    for number, month in enumerate(months[1:], start=1):
        before, coreset = coreset, cb.update(change(coreset), month, size=size, seed=number)
        if moves is not None:
            old, new = (cb.Laplace().fit(cb.Posterior.of(one)) for one in (before, coreset))
            shift = np.linalg.solve(old.factor, new.mean - old.mean)
            moves.append(np.sqrt(np.mean(shift**2)))
    return coreset


def _single(model, months, size):
    """Single builds of so few rows differ by several times from seed to seed."""
    builds = [cb.build(model, months, size=size, seed=seed, reserve=0) for seed in range(3)]
    return np.median([kl(one, months) for one in builds])


def test_what_a_reserve_misses_follows_the_posterior():
    months = _months(4, 3000, 3, 0.5)
    grown = _grown(MODEL, months, 10, moves=(moves := []))
    assert np.median(moves) > 1.5
    assert kl(grown, months) < 3 * _single(MODEL, months, 10)
    # Without it the reserve alone is further off, and it is told.
    with pytest.warns(UserWarning, match="widths from where what stands for the rows before"):
        bare = _grown(MODEL, months, 10, lambda coreset: replace(coreset, missed=None))
    assert kl(bare.finest, months) > 3 * kl(grown.finest, months)


@pytest.mark.slow
def test_rows_ten_times_wider_than_the_old():
    """Their skewness counts, and a polynomial of them is exact within fewer deviations."""
    months, size = _months(4, 3000, 6, 0.0, widths=(1.0, 1.0, 10.0, 10.0)), 28
    builds = [cb.build(MODEL, months, size=size, seed=seed, reserve=0) for seed in range(3)]
    # Too skewed for a KL of Laplace fits.
    grown, *single = (
        cb.certify(one, months, draws=4000, seed=3).reverse_kl.value
        for one in (_grown(MODEL, months, size), *builds)
    )
    assert grown < 3 * np.median(single)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "dim", "drift"),
    [(MODEL, 5, 0.15), (MODEL, 10, 0.1), (MODEL, 12, 0.15), (COUNTS, 5, 0.03)],
)
def test_months_that_are_not_alike_end_as_one_build(model, dim, drift):
    months, size = _months(8, 8000, dim, drift, 1, model), (dim + 1) * (dim + 2) // 2
    grown = _grown(model, months, size, moves=(moves := []))
    single = _single(model, months, size)
    assert np.median(moves) > 1.0
    assert kl(grown, months) < 3 * single
    merged = cb.merge([cb.build(model, month, size=size, seed=0) for month in months], size=size)
    assert kl(merged, months) < 3 * single


@pytest.mark.slow
def test_short_steps_that_all_go_one_way_are_told(tmp_path):
    """No step is far, but the first month says nothing of where the last one is: sums of steps were
    forty times below the truth, and nothing was said."""
    months, size = _months(6, 800, 8, 1.2), 45
    coreset = cb.build(MODEL, months[0], size=size, seed=0)
    finer = cb.certify(coreset.finest, months[0], draws=200)
    coreset = cb.with_certificate(coreset, cb.certify(coreset, months[0], draws=200), finer)
    told = []
    for number, month in enumerate(months[1:], start=1):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            coreset = cb.update(coreset, month, size=size, seed=number, certify=True, draws=200)
        told.append([str(one.message) for one in said])
        coreset.save(tmp_path / "c.parquet")
        coreset = cb.load(tmp_path / "c.parquet")
    steps = coreset.provenance["steps"][1:]
    assert len(coreset.provenance["places"]) == 5
    away = [step["away"] for step in steps]
    assert away[0] < 1.0 and away == sorted(away) and away[-1] > 2.1
    assert kl(coreset, months) > 1e-3
    first = next(k for k, step in enumerate(steps) if step["far"])
    assert [k for k, words in enumerate(told) if words] == [first]
    assert "widths from where what stands" in told[first][0]
    found = cb.certify(coreset, tol=1.0)
    assert not found.certified and "widths from where the errors" in found.verdict


def test_it_is_kept_in_files_and_goes_with_the_reserve(tmp_path):
    coreset = cb.build(MODEL, _months(1, 2000, 3, 0.0)[0], size=10, seed=0)
    coreset.save(tmp_path / "c.parquet")
    back = cb.load(tmp_path / "c.parquet")
    assert np.array_equal(back.missed.numbers, coreset.missed.numbers)
    assert np.array_equal(back.missed.at.factor, coreset.missed.at.factor)
    grown, again = (cb.update(one, _months(1, 500, 3, 0.0, 1)[0]) for one in (coreset, back))
    assert grown.reserve.weights.tobytes() == again.reserve.weights.tobytes()
    coreset.save(tmp_path / "bare.parquet", reserve=False)
    assert cb.load(tmp_path / "bare.parquet").missed is None
    assert cb.build(MODEL, _months(1, 2000, 3, 0.0)[0], size=10, reserve=0).missed is None
    assert coreset.finest.missed is None


@pytest.mark.parametrize("reserve", [None, 0])
def test_a_sum_of_steps_is_not_below_the_truth_after_moves(reserve):
    """Without a reserve the sum was seen a hundred times below the truth."""
    months = _months(3, 2000, 3, 0.35)
    coreset = cb.build(MODEL, months[0], size=10, reserve=reserve, seed=0)
    found = [cb.certify(one, months[0], draws=200) for one in (coreset, coreset.finest)]
    coreset = cb.with_certificate(coreset, *found[: 1 if reserve == 0 else 2])
    for month in months[1:]:
        coreset = cb.update(coreset, month, reserve=reserve, certify=True, draws=200)
    growth, said = coreset.provenance["steps"][-1]["growth"], cb.certify(coreset, tol=1.0)
    assert said.reverse_kl.value >= kl(coreset, months)
    assert growth > 5.0 if reserve == 0 else growth == 1.0
    assert ("times as much of earlier steps" in said.verdict) is (reserve == 0)


@pytest.mark.parametrize(
    ("step", "value", "words"),
    [
        ({"growth": 1.0, "away": 0.5}, added_up([1e-5, 1e-5, 1e-5]), "by the sum"),
        ({"growth": 9.0, "away": 1.5}, added_up([9e-5, 9e-5, 1e-5]), "9 times as much"),
        ({"growth": 1.0, "away": 2.5, "far": True}, None, "2.5 widths from where the errors"),
        ({}, None, "how far the posterior has moved since is not known"),
    ],
)
def test_errors_of_earlier_steps_count_for_what_they_may_have_become(step, value, words):
    coreset = cb.build(MODEL, _months(1, 500, 3, 0.0)[0], size=10, reserve=0)
    first = {"kind": "build", "names": [], "num_rows": 500, "size": 10, "kl": 1e-5, "kl_se": 0.0}
    update = {**first, "kind": "update", "growth": 1.0}
    steps = [first, update, {**update, "growth": None, **step}]
    grown = replace(coreset, provenance={**coreset.provenance, "steps": steps})
    found = cb.certify(grown)
    assert words in found.verdict.replace("By the", "by the")
    assert (found.reverse_kl is None) if value is None else found.reverse_kl.value == value


@pytest.mark.parametrize(("drift", "is_told"), [(0.0, False), (2.5, True)])
def test_mixed_models_are_told_when_what_all_groups_share_has_moved(drift, is_told):
    months = []
    for month in range(2):
        rng = np.random.default_rng([3, month])
        X, g = rng.normal(size=(800, 2)), rng.integers(0, 5, 800)
        predictor = X @ [0.5, -0.5 + drift * month] + 0.4 * np.arange(-2, 3)[g]
        y = rng.random(800) < 1.0 / (1.0 + np.exp(-predictor))
        months.append(
            {"x1": X[:, 0], "x2": X[:, 1], "one": np.ones(800), "g": g * 1.0, "y": y * 1.0}
        )
    model = cb.MixedRegression(
        family=cb.LogisticRegression(), terms=[cb.GroupTerm(group="g", effects=("one",))]
    )
    coreset = cb.build(model, pandas.DataFrame(months[0]), target="y", size=60, seed=0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        grown = cb.update(coreset, pandas.DataFrame(months[1]), seed=0)
    told = [str(one.message) for one in said if "widths from where" in str(one.message)]
    assert bool(told) is is_told is grown.provenance["steps"][-1]["far"]
    # Three coefficients and the scale of the groups.
    assert len(grown.provenance["places"][0]["mean"]) == 4


@pytest.mark.parametrize("places", ["many", [3], [{"mean": [0.0]}], [{"mean": [0, 0, 0]}]])
def test_places_of_a_strangers_file_are_passed_over(places):
    coreset = cb.build(MODEL, _months(1, 500, 3, 0.0)[0], size=10, seed=0)
    edited = replace(coreset, provenance={**coreset.provenance, "places": places})
    grown = cb.update(edited, _months(1, 300, 3, 0.0, 1)[0])
    assert len(grown.provenance["places"]) == 1


def _counted_months(number, num_rows, drift):
    """Counts with a spread of their own, whose coefficients go one way."""
    months = []
    for month in range(number):
        rng = np.random.default_rng([7, month])
        X = np.column_stack([rng.normal(size=(num_rows, 2)), np.ones(num_rows)])
        mean = np.exp(X @ (np.array([0.3, -0.3, 0.2]) + drift * month * np.array([1.0, 1.0, -1.0])))
        months.append((X, rng.poisson(rng.gamma(2.0, mean / 2.0)).astype(float)))
    return months


@pytest.mark.slow
def test_a_model_that_is_no_glm_keeps_a_reserve_at_wide_draws():
    """Months were thousands of times further off: `build` kept nothing, and failed when asked."""
    months, model, size = _counted_months(4, 1500, 0.2), cb.NegativeBinomialRegression(), 15
    with pytest.warns(UserWarning, match="widths from where what stands for the rows before"):
        grown = _grown(model, months, size, moves=(moves := []))
    assert max(moves) > 1.5
    assert kl(grown, months) < 10 * _single(model, months, size)
    with pytest.warns(UserWarning, match="widths from where what stands for the rows before"):
        without = _grown(model, months, size, lambda coreset: replace(coreset, reserve=None))
    assert kl(without, months) > 30 * kl(grown, months)


@pytest.mark.parametrize("model", [cb.GammaRegression(), cb.WeibullRegression()])
def test_a_reserve_that_was_asked_for_is_kept_whatever_the_model(model):
    (X, y), *_ = _counted_months(1, 300, 0.0)
    asked = cb.build(model, (X, y + 0.5), size=16, reserve=60, seed=0)
    usual = cb.build(model, (X, y + 0.5), size=16, seed=0)
    assert asked.reserve.size > 16 and usual.reserve.size > 16
    assert asked.missed is None
    assert cb.build(model, (X, y + 0.5), size=16, reserve=0, seed=0).reserve is None
