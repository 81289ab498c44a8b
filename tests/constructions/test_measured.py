"""The KL that a build says where its rows match all that a tangent space sees."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logsumexp

import corebayes as cb


def skewed_counts(seed: int, num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(num_rows), rng.gamma(0.3, 1.0, num_rows)])
    return X, rng.poisson(np.exp(X @ np.array([-2.0, 0.4]))).astype(float)


def kl_on_a_grid(coreset: cb.Coreset, X: np.ndarray, y: np.ndarray) -> float:
    """KL(π_w ‖ π) of two parameters, as a sum over a fine grid around the coreset's posterior."""
    fit = cb.Laplace().fit(cb.Posterior.of(coreset))
    side = np.linspace(-9.0, 9.0, 401)
    z = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    grid = fit.mean + z @ fit.factor.T
    ours = cb.Posterior.of(coreset).log_density(grid)
    eta = grid @ X.T
    full = eta @ y - np.exp(eta).sum(axis=1) + coreset.model.log_prior(grid)
    ours, full = ours - logsumexp(ours), full - logsumexp(full)
    return float(np.exp(ours) @ (ours - full))


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2))])
@pytest.mark.parametrize("size", [6, 12])
def test_a_matched_space_is_no_kl_of_zero(seed: int, size: int) -> None:
    """A space of degree three or more that six or seven rows match said 10⁻¹¹ for 4·10⁻⁴."""
    X, y = skewed_counts(seed, 100)
    model = cb.PoissonRegression(link="log", prior=cb.Normal(0.0, 1.0))
    coreset = cb.build(model, (X, y), size=size, progress=False)
    truth, own = kl_on_a_grid(coreset, X, y), coreset.trace[-1]["kl"]
    assert truth > 1e-9
    assert truth / 3.0 < own < 3.0 * truth


def test_what_more_rows_would_do_is_said_truly() -> None:
    """Six rows match the third degree, and said that more would not lower KL: eight do."""
    X, y = skewed_counts(2, 100)
    model = cb.PoissonRegression(link="log", prior=cb.Normal(0.0, 1.0))
    few, more = (cb.build(model, (X, y), size=size, progress=False) for size in (8, 40))
    assert few.size < 8 and more.size < 40
    assert few.reason.endswith("a larger size looks closer")
    assert more.reason.endswith("more would not lower KL visibly")
    assert kl_on_a_grid(more, X, y) < 1e-3 * kl_on_a_grid(few, X, y)


def lognormal_counts(seed: int, num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A few rows lie so far out that the model does not hold for them."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(0.0, 1.2, (num_rows, 5))
    X[:, 0] = 1.0
    eta = X @ np.array([-1.0, 0.2, -0.2, 0.1, 0.15])
    return X, rng.poisson(np.exp(np.clip(eta, -20.0, 8.0))).astype(float)


@pytest.mark.parametrize("seed", [3, 4])
def test_rows_far_out_are_reached_and_seen(seed: int) -> None:
    """A subsample without them led nowhere, and a build ended some 10¹³⁰ nats away; what degree
    three does not see of them was not in its own KL."""
    rows = lognormal_counts(seed, 60_000)
    model = cb.PoissonRegression(prior=cb.Normal())
    coreset = cb.build(model, rows, size=18, reserve=0, progress=False)
    own, kl = coreset.trace[-1]["kl"], cb.certify(coreset, rows, draws=1000).reverse_kl
    assert kl is not None and kl.value < 1e-4
    noise = 2.0 * kl.standard_error
    assert (kl.value - noise) / 3.0 < own < 3.0 * (kl.value + noise)


@pytest.mark.filterwarnings("ignore:the coreset posterior is about")
@pytest.mark.parametrize(
    "family", ["logistic", "poisson", pytest.param("student", marks=pytest.mark.slow)]
)
def test_far_from_the_posterior_it_is_not_the_second_order(family: str) -> None:
    """Few rows for their parameters are tens of nats away: ½ Var r says many times as many."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(1000), rng.gamma(0.3, 1.0, (1000, 4))])
    eta = X @ np.array([-1.0, 0.3, -0.2, 0.2, 0.1])
    if family == "logistic":
        model, y = cb.LogisticRegression(prior=cb.Normal()), rng.random(1000) < expit(eta)
    elif family == "poisson":
        model, y = cb.PoissonRegression(prior=cb.Normal()), rng.poisson(np.exp(eta))
    else:
        model = cb.StudentTRegression(prior=cb.Normal(), df=3.0, scale=1.0)
        y = eta + rng.standard_t(3.0, 1000)
    coreset = cb.build(model, (X, y.astype(float)), size=5, progress=False)
    kl = cb.certify(coreset, (X, y.astype(float)), draws=1000).reverse_kl
    assert kl is not None and kl.value > 1.0
    assert kl.value / 3.0 < coreset.trace[-1]["kl"] < 3.0 * kl.value
