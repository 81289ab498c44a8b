"""Modes that draws of π_w do not visit, with mixtures whose masses are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.several_modes import FAMILIES, frequency_problem

import corebayes as cb
from corebayes.certify import certify
from corebayes.certify.search import search
from corebayes.models import CustomModel
from corebayes.rows import open_rows
from corebayes.samplers.modes.cover import cover
from corebayes.samplers.modes.places import find_places
from corebayes.samplers.modes.search import shares_of
from corebayes.samplers.posterior import Posterior
from tests.coresets import ALMOST_ONE, mixture, weighted


def lost_mode(num_rows: int, share: float) -> tuple[Any, Any, Any]:
    """Rows of two kinds; those of the second make a mode ten deviations away. The coreset is one
    row of the first kind, or one of each."""

    def log_likelihood(draws: np.ndarray, block: Any) -> np.ndarray:
        theta = draws[:, 0]
        second = np.logaddexp(0.0, 10.0 * theta - 50.0 + np.log(share / (1.0 - share)))
        kinds = np.where(block.X == 0.0, -0.5 * np.square(theta), second)
        return kinds * 2.0 / num_rows

    data = open_rows((np.arange(num_rows) % 2.0)[:, None])
    model = CustomModel(log_likelihood, lambda draws: -0.5 * np.square(draws[:, 0] / 30.0), 1)
    bound, half = model.bind(data), num_rows / 2.0
    return weighted(bound, data, [0], [half]), weighted(bound, data, [0, 1], [half, half]), data


class TestSearch:
    def test_both_modes_of_all_rows_are_found_and_none_is_lost(self) -> None:
        model, data = mixture([0.3, 0.7], [-5.0, 5.0], [0.5, 1.0])
        everything = weighted(model, data, np.arange(4), 1.0)
        found = search(np.random.default_rng(0), everything, data)
        assert found.lost == []
        np.testing.assert_allclose(shares_of(found.ours), [0.7, 0.3], atol=0.01)

    @pytest.mark.parametrize(
        ("share", "num_rows"),
        [
            (0.05, 800),
            *(pytest.param(0.05, n, marks=pytest.mark.slow) for n in (4000, 50_000)),
            *(pytest.param(0.4, n, marks=pytest.mark.slow) for n in (800, 4000, 50_000)),
        ],
    )
    @pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
    def test_a_mode_ten_deviations_away_however_many_rows(
        self, num_rows: int, share: float, seed: int
    ) -> None:
        lost, right, data = lost_mode(num_rows, share)
        certificate = certify(lost, data, seed=seed)
        assert not certificate.certified
        # KL = −log(1 − share), up to the prior
        assert certificate.reverse_kl.value == pytest.approx(-np.log(1.0 - share), rel=0.25)
        assert "the full posterior has a mode near θ = (9.9" in certificate.verdict
        assert certify(right, data, seed=seed).certified

    @pytest.mark.slow
    @pytest.mark.parametrize(("num_rows", "width"), [(2000, 4.0), (20_000, 3.0), (2000, 0.1)])
    def test_rows_that_nearly_cancel(self, num_rows: int, width: float) -> None:
        """The second mode is wider than the first, so that its rows have no bound: a subsample with
        some more of them than of the others has no distribution."""
        place = 6.0 * (1.0 + width)

        def log_likelihood(draws: np.ndarray, block: Any) -> np.ndarray:
            theta = draws[:, 0]
            first = -0.5 * np.square(theta)
            second = -np.log(width) - 0.5 * np.square((theta - place) / width)
            kinds = np.where(block.X == 0.0, first, np.logaddexp(0.0, second - first))
            return kinds * 2.0 / num_rows

        data = open_rows((np.arange(num_rows) % 2.0)[:, None])
        model = CustomModel(log_likelihood, lambda draws: -0.5 * np.square(draws[:, 0] / 40.0), 1)
        bound, half = model.bind(data), num_rows / 2.0
        for seed in range(3):
            lost = certify(weighted(bound, data, [0], [half]), data, seed=seed)
            assert not lost.certified
            right = certify(weighted(bound, data, [0, 1], [half, half]), data, seed=seed)
            assert right.certified

    def test_no_smaller_number_than_could_be_seen(self) -> None:
        right = lost_mode(800, 0.3)
        certificate = certify(right[1], right[2])
        assert certificate.reverse_kl == (1e-3, 0.0) and certificate.upper == 1e-3
        assert certificate.num_modes == 2
        assert "around the 2 modes that were found" in certificate.verdict
        assert "below 0.001 nats" in str(certificate)
        assert not certify(right[1], right[2], tol=5e-4).certified

    def test_places_of_many_rows_are_those_of_all(self) -> None:
        *_, data = lost_mode(20_000, 0.3)
        model = lost_mode(20_000, 0.3)[0].model
        places = find_places(np.random.default_rng(0), model, data).modes
        np.testing.assert_allclose(np.sort(places[:, 0]), [0.0, 10.0], atol=0.3)


class TestCover:
    def test_a_ridge_is_covered_by_clusters(self) -> None:
        data = open_rows(np.full((50, 1), 1.5))
        model = CustomModel(
            lambda draws, block: -0.5 * np.square(block.X - draws[:, 0] * draws[:, 1]),
            lambda draws: -0.5 * np.sum(np.square(draws / 2.0), axis=1),
            2,
        ).bind(data)
        posterior = Posterior(model, data.take(np.arange(50)), np.ones(50))
        rng = np.random.default_rng(0)
        found = search(rng, weighted(model, data, np.arange(50), 1.0), data)
        covered = cover(rng, posterior, found.ours, found.annealed.particles)
        assert covered is not None
        axis = np.linspace(-9.0, 9.0, 601)
        grid = np.column_stack([values.ravel() for values in np.meshgrid(axis, axis)])
        logs = posterior.log_density(grid)
        truth = np.logaddexp.reduce(logs) + 2.0 * np.log(axis[1] - axis[0])
        assert covered[1].log_evidence == pytest.approx(truth, abs=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_posteriors_of_several_modes_are_judged_by_their_masses(family: str) -> None:
    for case in FAMILIES[family](1):
        if case.rows.num_rows > 10_000:
            continue
        certificate = certify(case.coreset, case.rows, tol=0.05)
        if case.kl > 0.05:
            assert not certificate.certified, case.name
        elif case.kl < 0.025:
            assert certificate.certified, case.name


# With fewer rows: tests/constructions/test_stray.py.
@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_default_build_is_at_the_right_alias(seed: int) -> None:
    rows, model, truth = frequency_problem(seed, 400)
    coreset = cb.build(model, rows, size=25, seed=seed, progress=False)
    assert truth.kl(coreset) < 0.01


@pytest.mark.slow
def test_guards_do_not_look_where_one_row_outweighs_all() -> None:
    """Censored Weibull times under a wide prior: e^z overflows at draws of the prior."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    times = np.exp(1.0 + 0.5 * x) * rng.weibull(1.5, 600)
    ends = rng.exponential(8.0, 600)
    event = (times < ends).astype(float)

    def log_likelihood(draws: np.ndarray, block: Any) -> np.ndarray:
        shape = np.exp(draws[:, 2])
        z = (block["log"][:, None] - draws[:, 0] - draws[:, 1] * block["x"][:, None]) * shape
        return block["event"][:, None] * (np.log(shape) + z) - np.exp(z)

    rows = open_rows({"log": np.log(np.minimum(times, ends)), "x": x, "event": event})
    model = CustomModel(log_likelihood, lambda draws: -0.02 * np.sum(np.square(draws), axis=1), 3)
    coreset = cb.build(model, rows, size=30, seed=0, progress=False)
    assert certify(coreset, rows, tol=0.01).certified


def many_parameters(dim: int) -> tuple[Any, Any]:
    """Two rows of each kind: a mode that the first kind has, one twelve deviations away that only
    the second has, and Gaussians beside them."""

    def log_likelihood(draws: np.ndarray, block: Any) -> np.ndarray:
        theta = draws[:, 0]
        second = np.logaddexp(0.0, 12.0 * theta - 72.0)
        rest = -0.5 * np.sum(np.square(draws[:, 1:] - 0.3), axis=1) - 0.5 * np.square(theta)
        return np.where(block.X == 0.0, rest, second) / 2.0

    def gradient(theta: np.ndarray, block: Any, weights: np.ndarray) -> np.ndarray:
        first, second = weights[block.X[:, 0] == 0.0].sum(), weights[block.X[:, 0] == 1.0].sum()
        slope = -0.5 * first * (theta - np.r_[0.0, np.full(dim - 1, 0.3)])
        slope[0] += 6.0 * second / (1.0 + np.exp(72.0 - 12.0 * theta[0]))
        return slope

    data = open_rows(np.array([[0.0], [1.0], [0.0], [1.0]]))
    model = CustomModel(
        log_likelihood,
        lambda draws: -0.5 * np.sum(np.square(draws / 9.0), axis=1),
        dim,
        gradient=gradient,
    )
    return model.bind(data), data


@pytest.mark.slow
def test_lost_modes_of_thirty_parameters_are_seen() -> None:
    model, data = many_parameters(30)
    assert certify(weighted(model, data, np.arange(4), ALMOST_ONE), data, tol=0.05).certified
    lost = certify(weighted(model, data, [0, 2], [1.0, 1.0]), data, tol=0.05)
    assert not lost.certified and lost.fault == "coreset"


def test_what_no_search_can_see_is_not_certified() -> None:
    model, data = many_parameters(45)
    everything = weighted(model, data, np.arange(4), ALMOST_ONE)
    certificate = certify(everything, data, tol=0.05)
    assert not certificate.certified and certificate.fault == "search"
    assert certificate.reverse_kl is not None and certificate.upper <= 0.05
    assert "cannot be annealed in 45 dimensions" in certificate.verdict


@pytest.mark.slow
def test_modes_that_are_more_than_fits_are_not_said_to_be_lost() -> None:
    """The sign of each of six parameters changes next to nothing: 64 modes."""
    rng, dim = np.random.default_rng(4), 6
    kind = np.arange(60 * dim) % dim
    y = rng.uniform(1.0, 2.5, dim)[kind] ** 2 + 2.0 * rng.normal(size=kind.size)

    def log_likelihood(draws: np.ndarray, block: Any) -> np.ndarray:
        place = draws.T[block["kind"].astype(int)]
        return -np.square(block["y"][:, None] - np.square(place)) / 8.0

    data = open_rows({"kind": kind.astype(float), "y": y})
    model = CustomModel(
        log_likelihood, lambda draws: -0.125 * np.sum(np.square(draws - 0.2), axis=1), dim
    ).bind(data)
    near = np.exp(0.02 * rng.normal(size=kind.size))
    found = certify(weighted(model, data, np.arange(kind.size), near), data)
    assert found.certified
    assert found.num_modes is not None and found.num_modes > 30
    wrong = np.where(y > np.median(y), 1.3, 0.8)
    assert not certify(weighted(model, data, np.arange(kind.size), wrong), data).certified


def test_the_modes_of_a_sampler_of_ones_own_are_ones_own() -> None:
    lost, _, data = lost_mode(800, 0.3)
    found = certify(lost, data, tol=0.05, sampler=cb.NUTS(chains=2), draws=200)
    assert "where the draws of this sampler lie" in found.verdict


@pytest.mark.parametrize("family", ["cauchy", "labels"])
def test_samples_visit_all_modes_in_proportion(family: str) -> None:
    case = next(iter(FAMILIES[family](2)))
    posterior = Posterior.of(case.coreset)
    drawn = cb.Automatic().draw(np.random.default_rng(0), posterior, 4000)
    assert drawn.how.startswith("independence Metropolis")
    axis = np.linspace(-12.0, 12.0, 241 if posterior.dim == 2 else 4001)
    grid = np.column_stack([v.ravel() for v in np.meshgrid(*[axis] * posterior.dim)])
    shares = np.exp(posterior.log_density(grid) - posterior.log_density(grid).max())
    shares /= shares.sum()
    mean = shares @ grid
    np.testing.assert_allclose(drawn.flat.mean(axis=0), mean, atol=0.3)
    right = float(shares[grid[:, 0] > 0.0].sum())
    assert np.mean(drawn.flat[:, 0] > 0.0) == pytest.approx(right, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_corrected_draws_visit_the_modes_that_a_coreset_lost(seed: int) -> None:
    case = next(iter(FAMILIES["lost"](seed)))
    assert case.kl > 0.05
    exactly = cb.correct(case.coreset, case.rows, draws=500, seed=seed)
    both = case.rows.take(np.arange(2))
    grid = np.linspace(-15.0, 30.0, 4001)[:, None]
    logs = case.coreset.model.sum_potentials(grid, both, np.full(2, case.rows.num_rows / 2.0))
    logs += case.coreset.model.log_prior(grid)
    shares = np.exp(logs - np.logaddexp.reduce(logs))
    values = exactly.posterior["theta"].values.ravel()
    assert values.mean() == pytest.approx(float(shares @ grid[:, 0]), abs=0.6)
    assert exactly.posterior.attrs["surrogate"] == "modes of all rows"
    with pytest.raises(ValueError, match="a mode near θ"):
        cb.correct(case.coreset, case.rows, method="psis", seed=seed)


@pytest.mark.slow
def test_a_mode_with_next_to_nothing_counts_where_the_full_posterior_has_nothing() -> None:
    """0.0005 of π_w lies where π is lower by 300 nats: KL is 0.15."""

    def log_likelihood(draws: np.ndarray, block: Any) -> np.ndarray:
        theta = draws[:, 0]
        two = np.logaddexp(
            np.log(0.9995) - 0.5 * np.square(theta),
            np.log(0.0005 / 0.3) - 0.5 * np.square((theta - 10.0) / 0.3),
        )
        none = -300.0 * np.exp(-np.square(theta - 10.0) / 8.0)
        return np.where(block.X == 0.0, two, none)

    data = open_rows(np.array([[0.0], [1.0]]))
    model = CustomModel(log_likelihood, lambda draws: -0.5 * np.square(draws[:, 0] / 20.0), 1)
    coreset = weighted(model.bind(data), data, [0], [1.0])
    for seed in range(3):
        certificate = certify(coreset, data, tol=0.05, seed=seed)
        assert not certificate.certified and certificate.num_modes == 2
