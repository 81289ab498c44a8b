"""A time limit holds also within a step that takes long."""

import time

import numpy as np
import pytest

import corebayes as cb
from corebayes.constructions import Info
from corebayes.deadline import OutOfTimeError, check_time, deadline_at
from corebayes.scan.query import Totals
from corebayes.tangent import MonteCarlo


class Slow(cb.Laplace):
    """A sampler that takes a tenth of a second."""

    def draw(self, *arguments, **options):
        time.sleep(0.1)
        return super().draw(*arguments, **options)


class Endless(cb.Uniform):
    """Its second step looks at the rows, or draws, for twenty seconds unless it is stopped."""

    look_at_rows = True

    def step(self, rng, problem, state):
        if problem.rows_scanned == 0:
            state, _ = super().step(rng, problem, state)
            problem.data.meter.ask(1)
            return state, Info(None)
        geometry = MonteCarlo(num_draws=50, sampler=Slow())
        space = geometry.space(rng, problem, state.points)
        ends = time.perf_counter() + 20.0
        while time.perf_counter() < ends:
            if self.look_at_rows:
                problem.ask(Totals(space))
            else:
                geometry.space(rng, problem, state.points)
        return state, Info(None, done="nobody stopped it")


class EndlessDraws(Endless):
    look_at_rows = False


def test_a_step_is_given_up_and_the_state_before_it_returned():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = (rng.uniform(size=2000) < 0.5).astype(float)
    began = time.perf_counter()
    coreset = cb.build(
        cb.LogisticRegression(prior=cb.Normal()), (X, y), size=20, method=Endless(), max_time=1.0
    )
    assert 1.0 <= time.perf_counter() - began < 10.0
    assert coreset.reason == "time limit of 1 s" and 0 < coreset.size <= 20
    np.testing.assert_allclose(coreset.weights.sum(), 2000.0)


def test_draws_that_take_long_are_given_up_too():
    X = np.random.default_rng(0).normal(size=(100, 2))
    began = time.perf_counter()
    coreset = cb.build(
        cb.LinearRegression(noise_sd=1.0, prior=cb.Normal()),
        (X, X[:, 0]),
        size=20,
        method=EndlessDraws(),
        max_time=1.0,
    )
    assert 1.0 <= time.perf_counter() - began < 10.0
    assert coreset.reason == "time limit of 1 s" and coreset.size > 0


def slow_likelihood(draws, block):
    time.sleep(0.1)
    return -np.abs(block.y[:, None] - np.tanh(block.X @ draws.T))


def half_square(draws):
    return -0.5 * np.square(draws).sum(axis=1)


@pytest.mark.parametrize("method", [cb.AnnealedSparseVI(), cb.SparseVI()], ids=["default", "paper"])
def test_a_first_step_that_does_not_end_leaves_random_rows_and_says_so(method):
    X = np.random.default_rng(0).normal(size=(500, 3))
    model = cb.CustomModel(slow_likelihood, half_square, 3)
    began = time.perf_counter()
    with pytest.warns(cb.TimeWarning, match=r"max_time of 0\.5 s ended before \w*SparseVI had"):
        coreset = cb.build(model, (X, X[:, 0]), size=10, method=method, max_time=0.5)
    assert 0.5 <= time.perf_counter() - began < 5.0
    assert coreset.reason == "time limit of 0.5 s" and coreset.size == 10
    np.testing.assert_allclose(coreset.weights, 50.0)


def test_a_path_without_a_first_coreset_ends_with_a_sentence():
    X = np.random.default_rng(0).normal(size=(500, 3))
    model = cb.CustomModel(slow_likelihood, half_square, 3)
    with pytest.raises(TimeoutError, match=r"max_time of 0\.5 s ended before there was"):
        cb.build_path(model, (X, X[:, 0]), sizes=[5, 10], method=cb.SparseVI(), max_time=0.5)


def test_a_nuts_run_is_ended_too_and_the_clock_is_put_back():
    X = np.random.default_rng(0).normal(size=(300, 3))
    model = cb.CustomModel(slow_likelihood, half_square, 3).bind(cb.open((X, X[:, 0])))
    rows = cb.open((X, X[:, 0])).take(np.arange(5))
    began = time.perf_counter()
    with deadline_at(began + 1.0), pytest.raises(OutOfTimeError):
        posterior = cb.Posterior(model, rows, np.ones(5))
        cb.NUTS(chains=1).draw(np.random.default_rng(0), posterior, 500)
    assert time.perf_counter() - began < 6.0
    check_time()


@pytest.mark.filterwarnings("ignore::corebayes.ToleranceWarning")
def test_certificates_within_a_build_keep_to_it():
    X = np.random.default_rng(0).normal(size=(2000, 3))
    began = time.perf_counter()
    coreset = cb.build(
        cb.LogisticRegression(prior=cb.Normal()), (X, (X[:, 0] > 0.0) * 1.0), tol=1e-9, max_time=1.5
    )
    assert coreset.size and time.perf_counter() - began < 6.0


def test_what_compiles_for_long_is_waited_for_until_the_deadline_only():
    pytest.importorskip("jax")
    from corebayes.models.custom import compiling

    calls = []

    def compiles(argument):
        calls.append(argument)
        if len(calls) == 1:
            time.sleep(1.5)
        return argument + 1.0

    began = time.perf_counter()
    with deadline_at(began + 0.3), pytest.raises(OutOfTimeError):
        compiling.call(compiles, np.ones(3))
    assert time.perf_counter() - began < 1.4
    # The next waits for what is under way, and then calls it.
    with deadline_at(began + 60.0):
        np.testing.assert_array_equal(compiling.call(compiles, np.ones(3)), 2.0)
    assert len(calls) == 2


def test_errors_of_what_is_compiled_are_raised_and_not_kept():
    pytest.importorskip("jax")
    from corebayes.models.custom import compiling

    def refuses(argument):
        raise ValueError("no such thing")

    for _ in range(2):
        with deadline_at(time.perf_counter() + 60.0), pytest.raises(ValueError, match="no such"):
            compiling.call(refuses, np.ones(3))


def test_a_search_before_the_first_row_takes_a_part_of_the_time(monkeypatch):
    """And leaves the rest for a coreset."""
    from corebayes import problem

    def endless(*_):
        while True:
            time.sleep(0.01)
            check_time()

    monkeypatch.setattr(problem, "find_places", endless)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    model = cb.CustomModel(
        lambda draws, block: -np.log1p((block.X @ draws.T) ** 2),
        lambda draws: -0.5 * np.sum(draws**2, axis=1),
        dim=2,
    )
    coreset = cb.build(model, X, size=10, max_time=10.0, progress=False)
    assert coreset.size > 0
