"""ImportanceSampling: probabilities in proportion to norms, unbiased weights."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.diagnostics import laplace_kl
from corebayes.rows import open_rows
from tests.constructions.dense import dense, paths, repeated
from tests.problems import coins

SIZE = 10


@pytest.mark.parametrize("counted", [False, True])
def test_weights_are_the_formula(counted):
    case = dense("poisson", counts=repeated("poisson")[1] if counted else None)
    norms = case.counts * np.linalg.norm(case.G, axis=1)
    probabilities = norms / norms.sum()
    method = cb.ImportanceSampling(weighting=case.weighting)
    (weights,) = paths(method, case, SIZE, 1)
    taken = weights > 0
    times = weights[taken] * SIZE * probabilities[taken] / case.counts[taken]
    assert np.allclose(times, np.round(times), rtol=0, atol=1e-9)
    assert times.sum() == pytest.approx(SIZE)


def test_unbiased_for_the_total():
    counts = repeated("poisson")[1]
    case = dense("poisson", counts=counts)
    method, mean = cb.ImportanceSampling(weighting=case.weighting), np.zeros(25)
    num_trials, times = 2000, np.zeros(25)
    state = method.init(np.random.default_rng(0), case.problem, SIZE)
    rng = np.random.default_rng(1)
    for _ in range(num_trials):
        after, _ = method.step(rng, case.problem, state)
        mean[after.points.indices] += after.points.weights / num_trials
        times[after.points.indices] += 1
    p = counts * np.linalg.norm(case.G, axis=1)
    p /= p.sum()
    # Var w_n = c_n² (1 − p_n) / (M p_n)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.where(p > 0, counts * np.sqrt((1 - p) / (SIZE * p * num_trials)), 0.0)
    assert np.all(np.abs(mean - counts) <= 4.5 * error)
    assert np.all(times[counts == 0] == 0)


def test_beats_uniform_when_rows_differ_in_weight():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 4)) * rng.choice([0.1, 3.0], p=[0.9, 0.1], size=(2_000, 1))
    y = coins(rng, X @ [1.0, -1.0, 0.5, 0.2])
    data, kls = open_rows((X, y)), []
    for method in (cb.Uniform(), cb.ImportanceSampling(), cb.ImportanceSampling(refit=True)):
        trials = [
            laplace_kl(
                cb.build(
                    cb.LogisticRegression(prior=cb.Normal()), data, size=60, method=method, seed=s
                ),
                data,
            )
            for s in range(5)
        ]
        kls.append(np.median(trials))
    assert kls[2] < 0.1 * kls[1] < 0.1 * 0.5 * kls[0]


def test_needs_a_size_and_a_direction():
    with pytest.raises(ValueError, match="ImportanceSampling needs a size"):
        cb.build(cb.GaussianMean(), np.arange(20.0), tol=0.1, method=cb.ImportanceSampling())
    X = np.zeros((20, 2))
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="constant in θ"):
        cb.build(
            cb.LogisticRegression(prior=cb.Normal()),
            (X, np.arange(20) % 2),
            size=5,
            method=cb.ImportanceSampling(),
        )


def test_refit_of_rows_that_lead_away_keeps_them():
    """One row that points away from the total: least squares would give it weight zero."""
    X = np.concatenate([np.full((40, 1), 2.0), np.full((1, 1), -30.0)])
    y = np.ones(41)
    method = cb.ImportanceSampling(weighting=cb.GivenDraws([[-0.01], [0.01]]), refit=True)
    for seed in range(30):
        coreset = cb.build(
            cb.LogisticRegression(prior=cb.Normal()), (X, y), size=1, method=method, seed=seed
        )
        assert coreset.size == 1 and coreset.weights[0] > 0
        if coreset.indices[0] == 40:
            break
    else:
        pytest.fail("no seed drew the row that leads away")
