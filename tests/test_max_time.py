"""A time limit holds also within a step that takes long."""

import time

import numpy as np

import corebayes as cb
from corebayes.constructions import Info
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
        space = geometry.space(rng, problem, state.points, state.weights)
        ends = time.perf_counter() + 20.0
        while time.perf_counter() < ends:
            if self.look_at_rows:
                problem.ask(Totals(space))
            else:
                geometry.space(rng, problem, state.points, state.weights)
        return state, Info(None, done="nobody stopped it")


class EndlessDraws(Endless):
    look_at_rows = False


def test_a_step_is_given_up_and_the_state_before_it_returned():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = (rng.uniform(size=2000) < 0.5).astype(float)
    began = time.perf_counter()
    coreset = cb.build(cb.LogisticRegression(), (X, y), size=20, method=Endless(), max_time=1.0)
    assert 1.0 <= time.perf_counter() - began < 10.0
    assert coreset.reason == "time limit of 1 s" and 0 < coreset.size <= 20
    np.testing.assert_allclose(coreset.weights.sum(), 2000.0)


def test_draws_that_take_long_are_given_up_too():
    X = np.random.default_rng(0).normal(size=(100, 2))
    began = time.perf_counter()
    coreset = cb.build(
        cb.LinearRegression(), (X, X[:, 0]), size=20, method=EndlessDraws(), max_time=1.0
    )
    assert 1.0 <= time.perf_counter() - began < 10.0
    assert coreset.reason == "time limit of 1 s" and coreset.size > 0
