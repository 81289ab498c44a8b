"""Ways along which weighted rows raise the posterior without end, and others that only look so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln

import corebayes as cb
from corebayes.build import spiked
from corebayes.build.spiked import KEPT_WHOLE, spike_of_few
from corebayes.coreset import Coreset
from corebayes.deadline import check_time
from corebayes.problem import Problem
from corebayes.rows import open_rows
from corebayes.samplers.modes.search import distinct_modes, find_modes
from corebayes.samplers.modes.spikes import Spike, find_spike
from corebayes.samplers.posterior import Posterior


def half_normal(log_scales: Any) -> Any:
    return np.sum(log_scales - 0.5 * np.exp(2.0 * log_scales) / 4.0, axis=1)


def log_normal(log_scales: Any) -> Any:
    return -0.5 * np.sum(np.square(log_scales), axis=1)


def mixture(*, shared: bool, prior: Any = half_normal) -> cb.CustomModel:
    """Two locations, their scales or the one of both, half of the rows each."""

    def likelihood(draws: Any, block: Any) -> Any:
        x = block["x"][:, None]
        first, second = draws[:, 2], draws[:, -1]
        one = -first - 0.5 * np.square((x - draws[:, 0]) * np.exp(-first))
        return np.logaddexp(one, -second - 0.5 * np.square((x - draws[:, 1]) * np.exp(-second)))

    def log_prior(draws: Any) -> Any:
        return -0.5 * np.sum(np.square(draws[:, :2] / 5.0), axis=1) + prior(draws[:, 2:])

    return cb.CustomModel(likelihood, log_prior, 3 if shared else 4)


def two_clusters(number: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {"x": rng.normal(size=number) + np.where(np.arange(number) % 2 == 0, -2.5, 2.5)}


def student(number: int, seed: int) -> tuple[cb.CustomModel, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=number)

    def likelihood(draws: Any, block: Any) -> Any:
        scale, degrees = draws[:, 2], np.exp(draws[:, 3])
        z = (block["y"][:, None] - draws[:, 0] - draws[:, 1] * block["x"][:, None]) / np.exp(scale)
        height = gammaln(0.5 * (degrees + 1.0)) - gammaln(0.5 * degrees) - 0.5 * np.log(degrees)
        return height - scale - 0.5 * (degrees + 1.0) * np.log1p(z * z / degrees)

    def log_prior(draws: Any) -> Any:
        degrees = 2.0 * draws[:, 3] - 0.1 * np.exp(draws[:, 3])
        return (
            -0.02 * np.sum(np.square(draws[:, :2]), axis=1) + half_normal(draws[:, 2:3]) + degrees
        )

    y = 1.0 + 2.0 * x + rng.standard_t(4.0, size=number)
    return cb.CustomModel(likelihood, log_prior, 4), {"x": x, "y": y}


def unequal_scales(number: int, seed: int) -> tuple[cb.CustomModel, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=number)

    def likelihood(draws: Any, block: Any) -> Any:
        x = block["x"][:, None]
        scale = draws[:, 2] + draws[:, 3] * x
        mean = draws[:, 0] + draws[:, 1] * x
        return -scale - 0.5 * np.square((block["y"][:, None] - mean) * np.exp(-scale))

    def log_prior(draws: Any) -> Any:
        return -0.5 * np.sum(np.square(draws), axis=1) / 9.0

    y = 0.5 + x + np.exp(0.2 + 0.4 * x) * rng.normal(size=number)
    return cb.CustomModel(likelihood, log_prior, 4), {"x": x, "y": y}


def factors(number: int, seed: int) -> tuple[cb.CustomModel, dict[str, Any]]:
    """One factor of three columns; its quadratic form loses all digits as a variance goes to 0."""
    rng = np.random.default_rng(seed)
    loadings, noise = np.array([1.0, 0.8, 0.6]), np.array([0.7, 0.6, 0.9])
    values = rng.normal(size=(number, 1)) * loadings + rng.normal(size=(number, 3)) * noise

    def likelihood(draws: Any, block: Any) -> Any:
        loaded, precision = draws[:, :3], np.exp(-2.0 * draws[:, 3:])
        whole = 1.0 + np.sum(np.square(loaded) * precision, axis=1)
        rows = np.stack([block[name] for name in "abc"], axis=1)
        form = np.square(rows) @ precision.T - np.square(rows @ (loaded * precision).T) / whole
        return -0.5 * (form + np.log(whole)) - draws[:, 3:].sum(axis=1)

    def log_prior(draws: Any) -> Any:
        return -0.5 * np.sum(np.square(draws[:, :3]), axis=1) + half_normal(draws[:, 3:])

    return cb.CustomModel(likelihood, log_prior, 6), dict(zip("abc", values.T, strict=True))


def spike_of(model: Any, data: Any, weights: Any, start: Any) -> Spike | None:
    """Of the first rows, from the modes that a place leads to, and its mirror image."""
    rows = open_rows(data)
    bound, weights = model.bind(rows), np.asarray(weights) * rows.num_rows / np.sum(weights)
    posterior = Posterior(bound, rows.take(np.arange(len(weights))), weights)
    start = np.asarray(start, dtype=float)
    starts = [start, np.concatenate([start[:2][::-1], start[2:]])]
    return find_spike(posterior, distinct_modes(find_modes(posterior, starts)), 0)


def uneven(size: int, seed: int) -> Any:
    return np.random.default_rng(seed).gamma(1.0, size=size)


@pytest.mark.parametrize(
    ("weights", "num_rows"),
    [
        (uneven(40, 1), 2000),
        pytest.param(np.ones(60), 2000, marks=pytest.mark.slow),
        pytest.param(np.ones(100), 300, marks=pytest.mark.slow),
    ],
)
def test_a_scale_of_its_own_goes_to_zero_at_a_row_that_counts_often(
    weights: Any, num_rows: int
) -> None:
    found = spike_of(mixture(shared=False), two_clusters(num_rows, 3), weights, [-2.5, 2.5, 0, 0])
    assert found is not None
    assert found.axis >= 2
    assert not found.rises
    assert found.way.rising


@pytest.mark.parametrize(
    ("model", "weights", "num_rows"),
    [
        (mixture(shared=True), uneven(40, 1), 2000),
        # Every row once: the posterior itself.
        (mixture(shared=False), np.ones(200), 200),
        # Proper, and its spike is e^-200 of the mass.
        (mixture(shared=False, prior=log_normal), np.ones(60), 2000),
    ],
)
def test_a_mixture_without_a_spike_that_counts(model: Any, weights: Any, num_rows: int) -> None:
    start = [-2.5, 2.5, 0.0, 0.0][: model.dim]
    assert spike_of(model, two_clusters(num_rows, 3), weights, start) is None


def test_a_spike_that_ends_and_outweighs_all_modes() -> None:
    model = mixture(shared=False, prior=log_normal)
    weights = np.append(np.ones(40), 12.0)
    found = spike_of(model, two_clusters(2000, 3), weights, [-2.5, 2.5, 0, 0])
    assert found is not None
    assert found.row == 40


def test_a_model_of_one_parameter() -> None:
    """A scale alone: no other parameter has to follow it."""

    def likelihood(draws: Any, block: Any) -> Any:
        scale = draws[:, 0]
        return -scale - 0.5 * np.square(block["x"][:, None] * np.exp(-scale))

    model = cb.CustomModel(likelihood, half_normal, 1)
    x = np.random.default_rng(0).normal(size=200)
    assert spike_of(model, {"x": x}, np.ones(20), [0.1]) is None


@pytest.mark.slow
def test_degrees_of_freedom_that_may_go_to_zero() -> None:
    """Rows far away then cost little, and the one of most weight has the scale for itself."""
    model, data = student(3000, 1)
    found = spike_of(model, data, uneven(50, 2), [1.0, 2.0, 0.0, 1.4])
    assert found is not None
    assert found.axis == 2
    assert spike_of(model, data, np.ones(300), [1.0, 2.0, 0.0, 1.4]) is None


@pytest.mark.parametrize("size", [20, 80])
def test_scales_that_rows_share_have_no_spike(size: int) -> None:
    model, data = unequal_scales(3000, 1)
    assert spike_of(model, data, uneven(size, 4), [0.5, 1.0, 0.2, 0.4]) is None


def test_rounding_that_rises_is_no_spike() -> None:
    model, data = factors(3000, 1)
    start = [1.0, 0.8, 0.6, -0.4, -0.5, -0.1]
    assert spike_of(model, data, uneven(8, 5), start) is None


def mixture_coreset(data: Any, *, shared: bool) -> Coreset:
    rows = open_rows(data)
    chosen = np.arange(0, rows.num_rows, 9)
    weights = np.full(chosen.size, rows.num_rows / chosen.size)
    model = mixture(shared=shared).bind(rows)
    return Coreset(chosen, weights, rows.take(chosen), model, rows.num_rows, float(rows.num_rows))


@pytest.mark.slow
def test_no_certificate_of_what_is_no_distribution() -> None:
    data = two_clusters(600, 7)
    found = cb.certify(mixture_coreset(data, shared=False), data, tol=100.0)
    assert not found.certified
    assert found.fault == "model"
    assert found.reverse_kl is None
    assert "as theta[" in found.verdict
    assert "of weight 8.96" in found.verdict
    assert "cb.correct" in found.verdict
    # One scale for both: few rows at random are far from all, but there is a distance.
    assert cb.certify(mixture_coreset(data, shared=True), data, tol=100.0).certified


@pytest.mark.slow
def test_a_posterior_of_all_rows_that_is_none_either() -> None:
    """Rounded measurements: values that stand there often."""
    data = {"x": np.round(two_clusters(400, 8)["x"], 1)}
    rows = open_rows(data)
    model = mixture(shared=False).bind(rows)
    values, counts = np.unique(data["x"], return_counts=True)
    assert counts.max() > 5
    distinct = np.array([np.flatnonzero(data["x"] == value)[0] for value in values])
    order = np.argsort(distinct)
    coreset = Coreset(
        distinct[order],
        counts[order].astype(float),
        rows.take(distinct[order]),
        model,
        400,
        400.0,
    )
    found = cb.certify(coreset, data)
    assert not found.certified
    assert "no distribution either" in found.verdict


@pytest.mark.slow
def test_corrected_draws_of_a_coreset_that_is_no_distribution() -> None:
    """They are of all rows, which have no spike."""
    data = two_clusters(600, 9)
    with pytest.warns(cb.ModeWarning, match="cannot be certified"):
        coreset = cb.build(mixture(shared=False), data, size=60, progress=False)
    draws = cb.correct(coreset, data, draws=500, seed=1)
    values = draws.posterior["theta"].to_numpy().reshape(-1, 4)
    assert values[:, 2:].min() > -1.0
    np.testing.assert_allclose(np.exp(values[:, 2:]).mean(axis=0), 1.0, atol=0.15)
    np.testing.assert_allclose(np.abs(values[:, :2]).mean(axis=0), 2.5, atol=0.2)


def problem_of(model: Any, data: Any) -> Problem:
    rows = open_rows(data)
    return Problem(model.bind(rows), rows)


def test_a_spike_of_few_rows_is_foreseen() -> None:
    words = spike_of_few(problem_of(mixture(shared=False), two_clusters(200, 9)))
    assert words is not None
    assert words.startswith("rows that count 4 times have no posterior under this model")
    assert "goes to −∞" in words


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (mixture(shared=True), two_clusters(200, 9)),
        (mixture(shared=False, prior=log_normal), two_clusters(200, 9)),
        unequal_scales(300, 1),
        factors(300, 1),
        student(300, 1),
    ],
)
def test_no_spike_is_foreseen_where_few_rows_have_a_posterior(model: Any, data: Any) -> None:
    assert spike_of_few(problem_of(model, data)) is None


def test_a_build_to_a_tolerance_takes_all_rows_where_no_fewer_have_a_posterior() -> None:
    data = two_clusters(200, 9)
    coreset = cb.build(mixture(shared=False), data, tol=0.01, seed=1, progress=False)
    assert coreset.size == 200
    assert "have no posterior under this model" in coreset.reason
    assert coreset.trace[-1]["kl"] == 0.0
    assert cb.certify(coreset, data).certified


def test_time_that_ends_while_spikes_are_foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random rows, as wherever no step has ended."""

    def late(problem: Problem) -> str:
        while True:
            check_time()

    monkeypatch.setattr(spiked, "spike_of_few", late)
    with pytest.warns(cb.TimeWarning), pytest.warns(cb.ToleranceWarning):
        coreset = cb.build(
            mixture(shared=True), two_clusters(300, 9), tol=0.01, max_time=1.0, progress=False
        )
    assert 0 < coreset.size < 300


@pytest.mark.slow
def test_a_build_to_a_tolerance_ends_where_no_number_of_rows_is_certified() -> None:
    data = two_clusters(KEPT_WHOLE + 1000, 9)
    with pytest.warns(Warning) as told:
        coreset = cb.build(mixture(shared=False), data, tol=0.01, seed=1, progress=False)
    assert coreset.size < 100
    assert "no posterior under this model" in coreset.reason
    assert any("tol=0.01 was not reached" in str(one.message) for one in told)
