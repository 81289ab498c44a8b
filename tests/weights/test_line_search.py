"""The single weight update, against minimisers of the exact KL."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

import corebayes as cb
from corebayes.diagnostics import gaussian_kl
from tests.contract.cases import MODELS, some_points

CASES = {case.name: case for case in MODELS}


def exact_kl(problem, points):
    model = problem.model

    def kl(weights):
        fit = model.posterior(model.statistics(points.rows, np.asarray(weights)))
        return gaussian_kl(fit, problem.full_posterior)

    return kl


@pytest.mark.parametrize("name", ["gaussian", "linear"])
def test_one_point_gets_the_weight_of_least_kl(name):
    problem = CASES[name].problem()
    points = some_points(problem, 7)
    kl = exact_kl(problem, points)
    best = minimize_scalar(lambda w: kl([w]), bounds=(0.0, 200.0), options={"xatol": 1e-9})
    restriction = cb.ClosedForm().restrict(problem, points)
    weights = cb.LineSearch().run(np.random.default_rng(0), restriction, np.zeros(1))
    assert best.x > 0.3
    assert weights[0] == pytest.approx(best.x, rel=1e-4)


@pytest.mark.parametrize("name", ["gaussian", "linear"])
def test_scale_and_new_weight_minimise_kl_together(name):
    problem = CASES[name].problem()
    points = some_points(problem, 3, 17, 40, 41)
    kl, before = exact_kl(problem, points), np.array([9.0, 2.0, 21.0, 0.0])
    new = np.array([0.0, 0.0, 0.0, 1.0])
    best = min(
        (
            minimize(
                lambda x: kl(x[0] * before + x[1] * new),
                start,
                bounds=[(0, None)] * 2,
                options={"ftol": 1e-15, "gtol": 1e-10},
            )
            for start in ([1.0, 0.1], [0.5, 20.0])
        ),
        key=lambda result: result.fun,
    )
    restriction = cb.ClosedForm().restrict(problem, points)
    weights = cb.LineSearch().run(np.random.default_rng(0), restriction, before)
    assert np.allclose(weights[:3] / before[:3], weights[0] / before[0]), "one common factor"
    assert kl(weights) < kl(before)
    assert kl(weights) == pytest.approx(best.fun, rel=1e-6)


def test_an_active_row_may_lose_weight():
    problem = CASES["gaussian"].problem()
    points = some_points(problem, 3, 17, 40)
    restriction = cb.ClosedForm().restrict(problem, points)
    heavy = np.array([5.0, 5.0, 500.0])
    weights = cb.LineSearch().run(np.random.default_rng(0), restriction, heavy)
    kl = exact_kl(problem, points)
    best = minimize(
        lambda x: kl(x[0] * np.array([5.0, 5.0, 0.0]) + x[1] * np.eye(3)[2]),
        [1.0, 50.0],
        bounds=[(0, None)] * 2,
        options={"ftol": 1e-15, "gtol": 1e-10},
    )
    assert weights[2] < 100.0 and weights[0] == weights[1]
    assert kl(weights) == pytest.approx(best.fun, rel=1e-6)


def test_gradients_are_those_of_the_chain_rule():
    from corebayes.weights.line_search import Plane

    problem = CASES["linear"].problem()
    points = some_points(problem, 3, 17, 40)
    basis = np.array([[9.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    plane = Plane(cb.ClosedForm().restrict(problem, points), basis)
    kl, at, rng = exact_kl(problem, points), np.array([1.2, 4.0]), np.random.default_rng(0)
    differences = [
        (kl(basis @ (at + step)) - kl(basis @ (at - step))) / 2e-5 for step in 1e-5 * np.eye(2)
    ]
    assert np.allclose(plane.gradient(rng, at), differences, rtol=1e-5)
    assert np.allclose(plane.moments(rng, at).gradient(at), differences, rtol=1e-5)
    assert np.allclose(plane.curvature(rng, at).gradient, differences, rtol=1e-5)


@pytest.mark.parametrize("update", [cb.LineSearch(), cb.LineSearch(update=cb.Quadratic())])
def test_drives_sparse_vi_closer_with_every_row(update):
    case = CASES["linear"]
    method = cb.SparseVI(update=update, num_iterations=30)
    coreset = cb.build(case.model, case.data(num_rows=200), size=200, method=method)
    kls = [entry["kl"] for entry in coreset.trace]
    assert kls[-1] < 0.02 * kls[2]


class Watch:
    """A line search that keeps the weights it was given."""

    def __init__(self):
        self.seen = []

    def run(self, rng, restriction, weights):
        self.seen.append(weights.copy())
        return cb.LineSearch().run(rng, restriction, weights)


def test_the_selected_row_is_last_also_when_it_was_active_before():
    case, watch, rng = CASES["gaussian"], Watch(), np.random.default_rng(0)
    problem, method = case.problem(), cb.SparseVI(update=watch)
    state = method.init(rng, problem, 60)
    for _ in range(40):
        vectors = state.space.embed(state.points.rows) if state.points.weights.size else None
        before = state
        state, _ = method.step(rng, problem, state)
        given = watch.seen[-1]
        if vectors is None or given[-1] == 0.0:
            continue
        scores = np.abs(before.space.project(vectors, before.residual))
        scores /= np.sqrt(before.space.squared_norms(vectors))
        assert given[-1] == before.points.weights[np.argmax(scores)]
        return
    pytest.fail("no step selected an active row")
